/* Private to program/object/: the parsed headers of an ELF file, shared by elf.c, symtab.c,
 * usdt_notes.c and dof.c.
 *
 * Always true: sections and segments hold the file's numbers unchecked. Every read of contents goes
 * through image_read() or image_section(), which refuse bytes outside the file. Contents are read
 * with pread(), not mapped, so that a truncated file gives a short read, not a SIGBUS. */
#ifndef DESCRY_PROGRAM_OBJECT_OBJECT_PRIVATE_H
#define DESCRY_PROGRAM_OBJECT_OBJECT_PRIVATE_H

#include "base/bytes.h"
#include "base/changed.h"
#include "base/hash.h"
#include "base/mem.h"
#include "program/object/object.h"

struct section {
	const char *name; /* into section_names, "" when unnamed or longer than those looked for */
	uint32_t type, link;
	uint64_t flags, addr, offset, size;
};

struct segment {
	uint32_t type, flags;
	uint64_t addr, offset, filesz, memsz;
};

/* A symbol that has an address, for object_symbol_value(). */
struct symbol_value {
	uint64_t name; /* its hash_bytes(), which no file can make equal to another's */
	uint64_t addr;
	uint32_t order; /* the first of a name counts */
};

struct object {
	void *text; /* of text/ */
	char *path;
	int fd; /* -1: image in memory */
	uint8_t *mem;
	uint64_t size;           /* of the file */
	struct file_state state; /* of the file when it was opened */
	char *changed;           /* file that changed while symbols were read from it, or NULL */
	bool is64, is_pie, is_go;
	uint16_t type, machine;
	VEC(char) section_names;
	/* of object_uses_red_zone(): the last function, and its answer */
	uint64_t red_zone_addr, red_zone_size;
	bool red_zone;
	VEC(struct section) sections;
	VEC(struct segment) segments;
	uint8_t build_id[64];
	uint32_t build_id_len;
	char *interp, *soname;

	/* symtab.c, on first use. */
	bool symbols_read;
	struct object_symbol *symbols;
	uint32_t nsymbols;
	uint64_t *max_end; /* max_end[i]: largest addr + size among symbols[0..i] */
	const struct object_symbol **by_name; /* sorted by name, then rank; made on first use */
	VEC(char *) strings;                  /* string tables of the symbols */
	size_t string_bytes;
	VEC(struct symbol_value) values; /* sorted; made when many were asked for */
	bool values_listed;
	uint32_t values_asked; /* before they are listed */

	/* usdt_notes.c, on first use. */
	bool usdts_read, usdts_placed; /* placed: with their functions */
	VEC(struct object_usdt) usdts;
	uint32_t nnotes;         /* the first of usdts, which are from notes */
	struct hash note_places; /* address -> index into usdts, while DOF is read */
	VEC(struct object_question) questions;
	VEC(char *) notes;
	uint32_t dof_probes; /* read so far */
	size_t dof_text;     /* bytes of arguments and types */
};

bool image_read(const struct object *o, uint64_t off, uint64_t n, void *buf);
/* Returns the first section of this name, or NULL. */
const struct section *image_find(const struct object *o, const char *name);
/* Returns a section's contents, malloc()ed with a NUL behind them, or NULL when the file does not
 * hold them (or NOBITS). */
uint8_t *image_section(const struct object *o, const struct section *s, size_t *ret_n);
/* Returns true for the debug file of an object with this build-id, or, if either has none, this
 * checksum. crc may be NULL. */
bool image_is_debug_of(const struct object *debug, const uint8_t *id, uint32_t id_len,
		       const uint32_t *crc);
/* Returns true for a path through another process's root, or to one of its files. */
bool image_path_is_foreign(const char *path);
/* Returns true when the debug file, found beside the file `main`, may name its functions: it
 * belongs to main's owner, to root or to this user, and not everybody may write it. Names become
 * breakpoints in main, so its neighbours must not choose them. */
struct stat;
bool image_trusts_neighbour(const struct stat *main, const struct object *debug);
/* Frees the data of symtab.c and usdt_notes.c. */
void image_symbols_fini(struct object *o);
void image_usdts_fini(struct object *o);
/* dof.c: appends the probes of a section that holds DOF. data, its contents, must live as long as
 * the object. */
void image_read_dof(struct object *o, const struct section *s, const uint8_t *data, size_t n);
/* Returns the probe of a note with the same address and the same names, or NULL. */
struct object_usdt *image_find_note(struct object *o, const struct object_usdt *like);
/* Writes "-4@%edi": argument arg of a call, with its size (negative when signed), in stapsdt's
 * notation at the call. stack: bytes from rsp to the first argument that is not in a register. */
void image_put_operand(char *out, size_t n, uint32_t arg, int size, uint32_t stack);

#endif
