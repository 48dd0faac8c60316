/* Relocatable objects compiled against DTrace's <sys/sdt.h> or the headers of its -h. A probe is a
 * call of __dtrace_PROVIDER___PROBE. The question whether a probe is enabled is a call of
 * __dtraceenabled_PROVIDER___PROBE. Neither function exists.
 *
 * In: a .o file. Out: the same file with the calls made nops, and a list of their places.
 * Always true: an object is as long as before except for two tables at its end, and stays valid for
 * another run. A disabled relocation keeps its place and symbol (R_X86_64_NONE), and its addend is
 * the form of the old instruction. */
#ifndef DESCRY_PROGRAM_OBJECT_CALL_SITES_H
#define DESCRY_PROGRAM_OBJECT_CALL_SITES_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"

/* Prefixes of symbol names; "PROVIDER___PROBE" follows. */
#define CALLS_PROBE "__dtrace_"
#define CALLS_ASKS "__dtraceenabled_"
/* New names of such symbols in an object. ASKS_BY_POINTER: the answer is stored through the first
 * argument, as since Oracle's DTrace 2. Objects refer to the first, so that a linker takes the
 * object that defines it from an archive. */
#define CALLS_PROBE_DONE "__descry_probe_"
#define CALLS_ASKS_BY_POINTER "__descry_enabled_"

enum calls_form {
	CALLS_NOTES, /* questions stay calls, of functions made by -G */
	CALLS_DOF,   /* without notes: questions become an instruction that answers no */
};

struct call_site {
	const char *provider, *name; /* as in the symbol: "__" is a hyphen of the probe's name */
	bool asks;                   /* a question; by_pointer: how the answer is returned */
	bool by_pointer;
	bool tail; /* it was a jump: arguments on the stack are one word further */
	/* A global, hidden symbol of the section; undefined when the linker drops the section as a
	 * duplicate. */
	const char *anchor;
	/* From anchor: the probe's nop; of a question, behind the answering instruction. */
	int64_t place;
	int64_t func_place; /* from anchor: the function's first byte */
	const char *func;   /* "": not known */
	/* Of provider and name, and of func: sites are compared with each other, and a file may
	 * give all of them long names with the same beginning. */
	uint64_t probe_hash, func_hash;
};

struct calls;

/* Reads and changes an object in memory. An error names the path and, for a call that cannot be
 * changed, the function. */
struct err *calls_open(const char *path, enum calls_form form, struct calls **ret);
void calls_free(struct calls *c);
/* Returns the calls. Valid until calls_free(). */
const struct call_site *calls_sites(const struct calls *c, uint32_t *ret_n);
/* Replaces the file if anything in it was changed. */
struct err *calls_write(struct calls *c);

/* An argument of a probe's definition. */
struct probe_definition_arg {
	const char *type;  /* C text of the native type */
	const char *shown; /* C text of the type in args[] */
	int size;          /* bytes, negative when signed; 8 for other than integers */
	uint8_t native;    /* index of the call's argument */
};

/* Most calls of probes in an object, and in a run of -G: they are compared with each other. */
enum { CALLS_SITES_MOST = 8192 };
/* Section into which -G writes DOF. */
#define CALLS_DOF_SECTION ".SUNW_dof"

struct probe_definition {
	const char *provider, *name; /* as in the symbol */
	uint32_t nargs;              /* of args[] */
	struct probe_definition_arg args[32];
	uint32_t nnative;
	const char *native[32]; /* C text of the call's argument types */
};

/* Writes assembler text that defines the missing symbols of the changed objects, as statements of a
 * C file: __asm__("..."). sites: of all objects; skips those of other definitions. */
void calls_put_notes(FILE *out, const struct probe_definition *d,
		     const struct call_site *const *sites, uint32_t n);
/* Writes a place for a probe that a program only checks and never fires. It is never reached, but a
 * tracer can enable the probe there. */
void calls_put_unreached(FILE *out, const char *provider, const char *name);
/* Writes the markers that objects refer to, for DOF without notes. Notes define the markers
 * themselves. */
void calls_put_markers(FILE *out, const struct probe_definition *d,
		       const struct call_site *const *sites, uint32_t n);
/* Writes DOF for the definitions of one provider. sites: questions only of objects opened for
 * CALLS_DOF. comment: a remark kept in the DOF, or NULL. */
void calls_put_dof(FILE *out, const struct probe_definition *const *defs, uint32_t ndefs,
		   const struct call_site *const *sites, uint32_t n, const char *comment);

#endif
