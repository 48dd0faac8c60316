/* The argument text of stapsdt notes, "-4@%edi 8@-8(%rbp)"; the processes that have USDT probes:
 * private to src/probe/. */
#ifndef DESCRY_PROBE_USDT_H
#define DESCRY_PROBE_USDT_H

#include "probe/probe.h"

/* Decodes one operand of n bytes. addr is the probe's link-time address in o, for operands relative
 * to the instruction pointer and for symbols (refused when o is NULL). On false, *ret_reason is the
 * reason. */
bool usdt_parse_operand(const char *text, size_t n, struct object *o, uint64_t addr,
			struct usdt_operand *ret, const char **ret_reason);
/* Finds the next operand of an argument text and moves *text behind it. Returns false at the
 * end. */
bool usdt_next_operand(const char **text, const char **ret_start, size_t *ret_n);

struct process_object;

/* --- usdt_machine.c --- */
/* Calls found for each executable object that has a probe of a matching provider, in each process
 * but descry itself. The pattern includes the process's pid. The first call for a probe set looks
 * at all processes. Later calls use what the first call saw, so all descriptions of a program see
 * the same processes. They do not see a process that started after the first call. */
void usdt_machine_match(struct probe_set *ps, const char *prov_pattern,
			void (*found)(void *arg, const struct process_object *po), void *arg);

/* --- usdt_python.c --- */
/* Returns true for a probe that CPython passes only while another one is enabled. */
bool usdt_is_python_entry(struct object *o, const struct object_usdt *u);
/* Places that are always passed instead, by link-time address: file, function and line. */
enum { USDT_PYTHON_PLACES = 2, USDT_PYTHON_ARGS = 3 };
struct usdt_python {
	uint64_t addr;
	struct usdt_operand args[USDT_PYTHON_ARGS];
};
/* Finds them, once for each file and probe set. Returns NULL and sets *ret_reason when they are not
 * known. */
const struct usdt_python *usdt_python_places(struct probe_set *ps, const struct process_object *po,
					     const char **ret_reason);

/* --- usdt_jvm.c --- */
/* A flag of the JVM without which it does not pass a probe. */
struct usdt_jvm_flag {
	const char *name;    /* NULL: the probe needs none, or the flag is set already */
	uint64_t addr;       /* link-time address of the bool; 0: it is not to be set */
	const char *refused; /* the reason */
};
/* loaded: the JVM is in the process, and may have compiled functions. */
struct usdt_jvm_flag usdt_jvm_flag(const struct process_object *po, const struct object_usdt *u,
				   bool loaded);

#endif
