/* Relocatable objects compiled against DTrace's <sys/sdt.h> or the headers of its -h: a probe is a
 * call of __dtrace_PROVIDER___PROBE, and the question whether it is enabled one of
 * __dtraceenabled_PROVIDER___PROBE. Both functions exist nowhere.
 *
 * In: a .o file. Out: the same file with the calls made nops, and a list of where they were.
 * Always true: an object is as long as before but for two tables at its end, and stays valid for
 * another run: a relocation that was taken out of use keeps its place and symbol (R_X86_64_NONE),
 * and its addend says which instruction stood there.
 */
#ifndef DESCRY_PROGRAM_OBJECT_CALLS_H
#define DESCRY_PROGRAM_OBJECT_CALLS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"

/* Prefixes of symbol names; "PROVIDER___PROBE" follows. */
#define CALLS_PROBE "__dtrace_"
#define CALLS_ASKS "__dtraceenabled_"
/* What such symbols of an object are renamed to. ASKS_BY_POINTER: the answer is stored where the
 * first argument points to, as since Oracle's DTrace 2. Objects refer to the first, so that a
 * linker takes the object that defines it from an archive. */
#define CALLS_PROBE_DONE "__descry_probe_"
#define CALLS_ASKS_BY_POINTER "__descry_enabled_"

enum calls_form {
	CALLS_NOTES, /* questions stay calls, of functions that -G makes */
	CALLS_DOF,   /* questions become an instruction that answers no */
};

struct call_site {
	const char *provider, *name; /* as in the symbol: "__" is a hyphen of the probe's name */
	bool asks;                   /* the question; by_pointer: how the answer is wanted */
	bool by_pointer;
	bool tail; /* was a jump: arguments on the stack are one word further */
	/* A global, hidden symbol of the section; undefined when the linker drops the section as a
	 * duplicate. */
	const char *anchor;
	int64_t place; /* from anchor: the probe's nop; of a question, the end of the instruction that answers */
	int64_t func_place; /* from anchor: the function's first byte */
	const char *func;   /* "" not known */
};

struct calls;

/* Reads and changes an object in memory. An error names the path and, for a call that cannot be
 * changed, the function. */
struct err *calls_open(const char *path, enum calls_form form, struct calls **ret);
void calls_free(struct calls *c);
/* Valid until calls_free(). */
const struct call_site *calls_sites(const struct calls *c, uint32_t *ret_n);
/* Replaces the file when anything in it was changed. */
struct err *calls_write(struct calls *c);

/* An argument of a probe's definition. */
struct probe_definition_arg {
	const char *type;  /* C text of the native type */
	const char *shown; /* of the type args[] has */
	int size;          /* bytes, negative when signed; 8 for what is no integer */
	uint8_t native;    /* which argument of the call it is */
};

/* Where -G puts DOF. */
#define CALLS_DOF_SECTION ".SUNW_dof"

struct probe_definition {
	const char *provider, *name; /* as in the symbol */
	uint32_t nargs;              /* of args[] */
	struct probe_definition_arg args[32];
	uint32_t nnative;
	const char *native[32]; /* C text of the call's argument types */
};

/* Writes assembler text that defines what the changed objects lack, as statements of a C file:
 * __asm__("..."). sites: of all objects, those of other definitions are passed over. */
void calls_put_notes(FILE *out, const struct probe_definition *d,
		     const struct call_site *const *sites, uint32_t n);
/* A place for a probe that a program only asks for, which nothing ever reaches: there a tracer can
 * enable it. */
void calls_put_unreached(FILE *out, const char *provider, const char *name);
/* As DOF, for the definitions of one provider. comment: a remark kept in it, NULL none. */
void calls_put_dof(FILE *out, const struct probe_definition *const *defs, uint32_t ndefs,
		   const struct call_site *const *sites, uint32_t n, const char *comment);

#endif
