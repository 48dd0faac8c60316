/* ELF object files: symbols, notes, file offsets and addresses.
 *
 * In: a path (any bytes; hostile files end in an error, never in a crash).
 * Out: function symbols sorted by address, USDT probes (.note.stapsdt, DOF), build-id, address <->
 * file offset.
 * Always true: an object is immutable after object_open() and may be shared. Symbols are read on
 * first use. */
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
	uint64_t size;    /* if 0 in the file: up to the next symbol of the section */
	bool is_func, is_ifunc, is_global;
};

struct object_usdt {
	const char *provider, *name;
	const char *args; /* stapsdt argument text, "-4@%edi 8@%rsi"; "" for none */
	uint64_t addr; /* link-time virtual address of the nop, adjusted for prelink (.stapsdt.base) */
	uint64_t offset;    /* its file offset */
	uint64_t semaphore; /* file offset of the semaphore word, 0: none */
	const char *func;   /* the function around it, "": unknown */
	const char *types;  /* DOF: types of args[], each with its NUL, then ""; NULL: not known */
};

/* DOF: a place where the program asks whether a probe is enabled. `no` is one instruction of three
 * bytes that answers no. `yes` is an instruction that answers yes in its place. */
struct object_question {
	const char *provider, *name;
	uint64_t addr; /* link-time virtual address */
	uint8_t no[3], yes[3];
};

struct err *object_open(const char *path, struct object **ret);
/* Opens an image in memory (the vdso, tests). Copies the bytes. name is its name in messages. */
struct err *object_open_memory(const char *name, const void *p, size_t n, struct object **ret);
void object_free(struct object *o);
/* A place for a pointer to what text/ knows of the object. NULL at first. */
void **object_text(struct object *o);
/* Closes the descriptor. Headers, and data read before, stay available. Later reads find nothing.
 * object_reopen() opens the file again, and returns true when it still exists and has not
 * changed. */
void object_close_file(struct object *o);
bool object_reopen(struct object *o);
bool object_is_open(const struct object *o);
/* Returns true when the open file has been written to or truncated since it was opened. Data read
 * from it may be of any version. */
bool object_was_written(const struct object *o);
/* Returns true when its path leads to the file as it was opened. */
bool object_is_at_path(const struct object *o);
enum { OBJECT_FILE_PATH = 32 }; /* bytes with the NUL */
/* Writes a path that leads to the open file itself, whatever is at its own path now. Valid in this
 * process while the file stays open. Returns false when the file is not open, or has been written
 * to since it was opened. */
bool object_file_path(const struct object *o, char ret[OBJECT_FILE_PATH]);
/* Returns true when the symbols have been read. They need the file no more then. */
bool object_has_symbols(const struct object *o);
/* Returns the size in the file of its symbols and of their names, in bytes. */
uint64_t object_symbols_size(const struct object *o);
/* Returns the file, it or its debug file, that changed while symbols were read from it, or NULL.
 * The object then has no symbols, because they might be of any version. */
const char *object_changed(const struct object *o);
/* Returns its memory in bytes, about. */
size_t object_memory(const struct object *o);
const char *object_path(const struct object *o);
/* Calls fstat() for the open file. Returns false when the object is in memory, or its file is
 * closed. */
struct stat;
bool object_stat(const struct object *o, struct stat *ret);
bool object_is_executable(const struct object *o); /* ET_EXEC or PIE main program, not a library */
bool object_is_fixed(const struct object *o);      /* ET_EXEC: loaded at its link-time addresses */
bool object_is_x86_64(const struct object *o);
bool object_is_go(
	const struct object *o); /* built by Go: its stacks move, so return addresses must stay */
const char *object_interp(const struct object *o); /* its dynamic linker, or NULL */
const char *object_soname(const struct object *o); /* DT_SONAME, or NULL */
/* Returns all function symbols of .symtab, else of .dynsym together with the debug file, or else
 * with .gnu_debugdata and Go's table. Sorted by address, with aliases. */
const struct object_symbol *object_symbols(struct object *o, uint32_t *ret_n);
/* Returns the function that covers a link-time address, or NULL. Of aliases: a global one with the
 * fewest leading underscores. */
const struct object_symbol *object_find_addr(struct object *o, uint64_t addr);
const struct object_symbol *object_find_name(struct object *o, const char *name);
/* Returns all symbols of that name (static functions may share one), the one of object_find_name()
 * first. */
const struct object_symbol *const *object_find_names(struct object *o, const char *name,
						     uint32_t *ret_n);
/* Finds the address of any symbol of the file, data included. Returns false when there is no such
 * symbol. */
bool object_symbol_value(struct object *o, const char *name, uint64_t *ret_addr);
const struct object_usdt *object_usdts(struct object *o, uint32_t *ret_n);
/* Returns the same probes without reading symbols: the functions are not known, unless
 * object_usdts() was called before. */
const struct object_usdt *object_usdt_names(struct object *o, uint32_t *ret_n);
const struct object_question *object_questions(struct object *o, uint32_t *ret_n);
/* Converts by PT_LOAD. Returns false when the address is in no segment of the file. */
bool object_addr_to_offset(const struct object *o, uint64_t addr, uint64_t *ret_off);
/* Returns true when more than one segment maps the byte's page of the file writable, as in files
 * linked by lld. */
bool object_shares_page(const struct object *o, uint64_t off);
/* Returns the i-th program header, of any type, unchecked. Returns false past the last. */
struct object_segment {
	uint32_t type, flags; /* PT_*, PF_* */
	uint64_t addr, filesz, memsz;
};
bool object_segment(const struct object *o, uint32_t i, struct object_segment *ret);
/* Returns true when a link-time address is in a loaded, executable segment. */
bool object_is_text(const struct object *o, uint64_t addr);
/* Returns the i-th loaded, executable segment. Returns false when there is none. */
bool object_text_segment(const struct object *o, uint32_t i, uint64_t *ret_off, uint64_t *ret_n,
			 uint64_t *ret_addr);
bool object_offset_to_addr(const struct object *o, uint64_t off, uint64_t *ret_addr);
/* Returns the link-time address of the first byte of an executable mapping from a whole page of the
 * file on. The segment may begin inside this page, and lld lets several segments share a page, so
 * object_offset_to_addr() may find another. */
bool object_text_mapping_addr(const struct object *o, uint64_t off, uint64_t *ret_addr);
/* Reads up to n bytes of text at a link-time address (for decoding). Returns the count. */
uint32_t object_read(const struct object *o, uint64_t addr, void *buf, uint32_t n);
/* Returns a section's contents, malloc()ed, and its link-time address, or NULL when the file has
 * none, or has more than 256 MB of it (512 MB of .debug_*). Unpacks compressed sections. */
uint8_t *object_section(const struct object *o, const char *name, uint64_t *ret_addr,
			size_t *ret_n);
/* Returns .eh_frame in the same way. Without section headers finds it by PT_GNU_EH_FRAME (it then
 * runs to its segment's end). */
uint8_t *object_eh_frame(const struct object *o, uint64_t *ret_addr, size_t *ret_n);
const uint8_t *object_build_id(const struct object *o, uint32_t *ret_n);

/* The kernel's handling of a uprobe at an instruction, which decides its cost, or whether it is
 * refused. */
enum uprobe_class {
	UPROBE_EMULATED, /* nop, push, jmp...: one int3, ~520 ns */
	UPROBE_NOP5,     /* 5-byte nop: can become a call, ~250 ns */
	UPROBE_STEPPED,  /* single-stepped out of line, ~3,800 ns */
	UPROBE_REFUSED,  /* lock prefix, int3, undecodable...: fails a whole uprobe_multi link */
};
/* Classifies the instruction. code: bytes at the probe point. *ret_len: its length. */
enum uprobe_class uprobe_classify(const uint8_t *code, uint32_t n, uint32_t *ret_len,
				  const char **ret_reason);
/* Returns true when the function at addr reads or writes below its stack pointer (the red zone of
 * the psABI), or cannot be decoded. Counts the bytes decoded in *read, and decodes no more when
 * they are too many, because functions may overlap, in any number of files. */
enum { OBJECT_RED_ZONE_READ_MAX = 64 << 20 };
bool object_uses_red_zone(struct object *o, uint64_t addr, uint64_t *read);

#endif
