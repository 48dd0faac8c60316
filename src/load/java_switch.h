/* The probes that running JVMs pass only while flags of theirs are true, and that code lacks which
 * was compiled before: switched on while a program runs, for both engines.
 *
 * In: an image. Out: JVMs whose flags are true, and whose code has the probes.
 * Always true: when this process ends, also by SIGKILL, the JVMs reset their flags, and give up the
 * code with the probes.
 */
#ifndef DESCRY_LOAD_JAVA_SWITCH_H
#define DESCRY_LOAD_JAVA_SWITCH_H

#include "base/mem.h"
#include "data/image.h"

struct java_switches {
	VEC(int) fifos; /* java_attach() */
	VEC(struct java_switched) flags;
};

/* A flag that the probes need. */
struct java_switched {
	pid_t pid;
	uint64_t at;
	const char *what;                                             /* of probe_java_switch */
	enum { JAVA_FLAG_UNSEEN, JAVA_FLAG_ON, JAVA_FLAG_OFF } state; /* off: was reported */
};

/* Switches on what the image's probes need. inside: the in-process engine runs it, and sets the
 * flags that no compiled code depends on. On failure, *ret has what is on nevertheless. */
struct err *java_switches_on(const struct image *img, bool inside, struct java_switches *ret);
/* Finds the next flag that somebody else has reset since: of two tracers of a JVM that do not know
 * of each other, the first one to end does so. Returns false when there is none; reports each
 * once. */
bool java_switches_lost(struct java_switches *s, struct java_switched *ret);
void java_switches_off(struct java_switches *s);

#endif
