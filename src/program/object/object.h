/* ELF object files: symbols, notes, where a file offset and an address meet.
 *
 * In: a path (any bytes; hostile files end in an error, never in a crash).
 * Out: function symbols sorted by address, USDT probes (.note.stapsdt, DOF), build-id, address <->
 * file offset.
 * Always true: an object is immutable after object_open() and may be shared; symbols are read on
 * first use.
 */
#ifndef DESCRY_PROGRAM_OBJECT_OBJECT_H
#define DESCRY_PROGRAM_OBJECT_OBJECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct object;

struct object_symbol {
	const char *name; /* without @VERSION; owned by the object */
	uint64_t addr;    /* link-time virtual address */
	uint64_t size;    /* 0 in the file: up to the next symbol of the section */
	bool is_func, is_ifunc, is_global;
};

struct object_usdt {
	const char *provider, *name;
	const char *args; /* stapsdt argument text, "-4@%edi 8@%rsi"; "" for none */
	uint64_t addr; /* link-time virtual address of the nop, adjusted for prelink (.stapsdt.base) */
	uint64_t offset;    /* its file offset */
	uint64_t semaphore; /* file offset of the semaphore word, 0 none */
	const char *func;   /* the function it lies in, "" unknown */
	const char *
		types; /* DOF: types of args[], each with its NUL, then an empty one; NULL not known */
};

/* DOF: where the program asks whether a probe is enabled. Three bytes, one instruction, that answer
 * no; what answers yes in their place is one, too. */
struct object_question {
	const char *provider, *name;
	uint64_t addr; /* link-time virtual address */
	uint8_t no[3], yes[3];
};

struct err *object_open(const char *path, struct object **ret);
/* An image in memory (the vdso, tests); the bytes are copied. name is what messages call it. */
struct err *object_open_memory(const char *name, const void *p, size_t n, struct object **ret);
void object_free(struct object *o);
/* Closes the descriptor: headers, and what was asked before, still answer; later reads find
 * nothing. object_reopen() opens its file another time, which is true when it is still there and
 * was not changed. */
void object_close_file(struct object *o);
bool object_reopen(struct object *o);
bool object_is_open(const struct object *o);
/* Has the open file been written to or cut short since? What was read of it may be of any
 * version. */
bool object_was_written(const struct object *o);
/* Does its path lead to the file as it was when it was opened? */
bool object_is_at_path(const struct object *o);
/* Have the symbols been read? Then they need the file no more. */
bool object_has_symbols(const struct object *o);
/* The file, it or its debug file, that was changed while symbols were read from it: there are none
 * then, for they might be of any version. NULL: none was. */
const char *object_changed(const struct object *o);
/* Bytes of memory that it takes, about. */
size_t object_memory(const struct object *o);
const char *object_path(const struct object *o);
/* fstat() of the open file; false: the object is in memory, or its file closed. */
struct stat;
bool object_stat(const struct object *o, struct stat *ret);
bool object_is_executable(
	const struct object *o); /* ET_EXEC or PIE main program rather than a library */
bool object_is_fixed(const struct object *o); /* ET_EXEC: loaded at its link-time addresses */
bool object_is_x86_64(const struct object *o);
bool object_is_go(
	const struct object *o); /* built by Go: its stacks move, return addresses must stay */
const char *object_interp(const struct object *o); /* the dynamic linker it asks for, NULL none */
const char *object_soname(const struct object *o); /* DT_SONAME, NULL none */
/* All function symbols of .symtab, else .dynsym, with those of the debug file, or else
 * .gnu_debugdata and Go's table, added; by address, aliases kept. */
const struct object_symbol *object_symbols(struct object *o, uint32_t *ret_n);
/* The function covering a link-time address; of aliases a global one with the fewest leading
 * underscores. NULL: none. */
const struct object_symbol *object_find_addr(struct object *o, uint64_t addr);
const struct object_symbol *object_find_name(struct object *o, const char *name);
/* The address of any symbol of the file, data included. False: no such symbol. */
bool object_symbol_value(struct object *o, const char *name, uint64_t *ret_addr);
const struct object_usdt *object_usdts(struct object *o, uint32_t *ret_n);
const struct object_question *object_questions(struct object *o, uint32_t *ret_n);
/* By PT_LOAD. False when the address is in no segment of the file. */
bool object_addr_to_offset(const struct object *o, uint64_t addr, uint64_t *ret_off);
/* Is the byte's page of the file mapped writable by more than one segment, as lld links files? */
bool object_shares_page(const struct object *o, uint64_t off);
/* The i-th program header, any type. False past the last. Numbers of the file, unchecked. */
struct object_segment {
	uint32_t type, flags; /* PT_*, PF_* */
	uint64_t addr, filesz, memsz;
};
bool object_segment(const struct object *o, uint32_t i, struct object_segment *ret);
/* Is a link-time address in a loaded, executable segment? */
bool object_is_text(const struct object *o, uint64_t addr);
/* The i-th loaded, executable segment; false: there is none. */
bool object_text_segment(const struct object *o, uint32_t i, uint64_t *ret_off, uint64_t *ret_n,
			 uint64_t *ret_addr);
bool object_offset_to_addr(const struct object *o, uint64_t off, uint64_t *ret_addr);
/* The link-time address of the first byte of an executable mapping from a whole page of the file
 * on. The segment may begin inside that page, and lld lets several segments share one:
 * object_offset_to_addr() may then find another. */
bool object_text_mapping_addr(const struct object *o, uint64_t off, uint64_t *ret_addr);
/* Up to n bytes of text at a link-time address (for decoding); the count read. */
uint32_t object_read(const struct object *o, uint64_t addr, void *buf, uint32_t n);
/* A section's contents, malloc()ed, and its link-time address; NULL when the file has none.
 * Compressed ones are unpacked. */
uint8_t *object_section(const struct object *o, const char *name, uint64_t *ret_addr,
			size_t *ret_n);
/* .eh_frame the same way; without section headers found by PT_GNU_EH_FRAME (it then runs to its
 * segment's end). */
uint8_t *object_eh_frame(const struct object *o, uint64_t *ret_addr, size_t *ret_n);
const uint8_t *object_build_id(const struct object *o, uint32_t *ret_n);

/* What the kernel will do with a uprobe there: decides its price, or refuses it. */
enum uprobe_class {
	UPROBE_EMULATED, /* nop, push, jmp...: one int3, ~520 ns */
	UPROBE_NOP5,     /* 5-byte nop: may become a call, ~250 ns */
	UPROBE_STEPPED,  /* single-stepped out of line, ~3,800 ns */
	UPROBE_REFUSED,  /* lock prefix, int3, undecodable...: fails a whole uprobe_multi link */
};
/* code: bytes at the probe point. *ret_len: the instruction's length. */
enum uprobe_class uprobe_classify(const uint8_t *code, uint32_t n, uint32_t *ret_len,
				  const char **ret_reason);
/* Does the function at addr read or write below its stack pointer (the red zone of the psABI)? True
 * when it cannot be decoded. */
bool object_uses_red_zone(struct object *o, uint64_t addr);

#endif
