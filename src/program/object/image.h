/* Inside program/object/: the parsed headers of one ELF file, shared by elf.c, symtab.c, usdt.c and
 * dof.c.
 *
 * Always true: sections and segments hold the numbers of the file unchecked; every read of contents
 * goes through image_read() or image_section(), which refuse what the file does not hold. Contents
 * are read with pread(), not mapped: a file truncated under us must be a short read, not a
 * SIGBUS.
 */
#ifndef DESCRY_PROGRAM_OBJECT_IMAGE_H
#define DESCRY_PROGRAM_OBJECT_IMAGE_H

#include "base/bytes.h"
#include "base/changed.h"
#include "base/mem.h"
#include "program/object/object.h"

struct section {
	const char *name; /* into shstrtab, "" when unnamed */
	uint32_t type, link;
	uint64_t flags, addr, offset, size;
};

struct segment {
	uint32_t type, flags;
	uint64_t addr, offset, filesz, memsz;
};

struct object {
	char *path;
	int fd; /* -1: image in memory */
	uint8_t *mem;
	uint64_t size;           /* of the file */
	struct file_state state; /* of the file, when it was opened */
	char *changed; /* the file that was changed while symbols were read from it, NULL none */
	bool is64, is_pie;
	uint16_t type, machine;
	char *shstrtab;
	VEC(struct section) sections;
	VEC(struct segment) segments;
	uint8_t build_id[64];
	uint32_t build_id_len;
	char *interp, *soname;

	/* symtab.c, at first use */
	bool symbols_read;
	struct object_symbol *symbols;
	uint32_t nsymbols;
	uint64_t *max_end; /* max_end[i]: the largest addr + size among symbols[0..i] */
	const struct object_symbol **by_name; /* sorted by name, then rank; made at first use */
	VEC(char *) strings;                  /* string tables the symbols point into */
	size_t string_bytes;

	/* usdt.c, at first use */
	bool usdts_read;
	VEC(struct object_usdt) usdts;
	VEC(struct object_question) questions;
	VEC(char *) notes;
	uint32_t dof_probes; /* looked at */
	size_t dof_text;     /* bytes of arguments and types */
};

bool image_read(const struct object *o, uint64_t off, uint64_t n, void *buf);
/* The first section of that name, NULL none. */
const struct section *image_find(const struct object *o, const char *name);
/* A section's contents, malloc()ed with a NUL behind them; NULL when the file does not hold them
 * (or NOBITS). */
uint8_t *image_section(const struct object *o, const struct section *s, size_t *ret_n);
/* Is it the debug file of one with that build-id, or, where either has none, that checksum? crc may
 * be NULL. */
bool image_is_debug_of(const struct object *debug, const uint8_t *id, uint32_t id_len,
		       const uint32_t *crc);
/* Frees what symtab.c and usdt.c made. */
void image_symbols_fini(struct object *o);
void image_usdts_fini(struct object *o);
/* dof.c: appends the probes of a section that holds DOF; data, its contents, must stay as long as
 * the object. */
void image_read_dof(struct object *o, const struct section *s, const uint8_t *data, size_t n);
/* "-4@%edi": argument arg of a call, of a size negative when it is signed, as stapsdt writes it
 * where the call stands. stack: bytes from rsp to the first argument that no register holds. */
void image_put_operand(char *out, size_t n, uint32_t arg, int size, uint32_t stack);

#endif
