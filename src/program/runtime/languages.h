/* The interpreters of traced processes: the data that programs need to walk their frames, and the
 * names of the functions that programs met.
 *
 * In: processes, and words of stacks (wire/language.h). Out: functions, files and lines. Always
 * true: a name stays known when its process has ended. A code object that could not be read in time
 * has no name.
 */
#ifndef DESCRY_PROGRAM_RUNTIME_LANGUAGES_H
#define DESCRY_PROGRAM_RUNTIME_LANGUAGES_H

#include "program/runtime/runtime.h"
#include "wire/language.h"

struct languages;
struct languages *languages_new(void);
void languages_free(struct languages *l);
/* Looks for an interpreter in a process. Returns true when programs can walk its frames; *ret has
 * the data for that. space: a number of the process's address space. The result stays valid while
 * this number stays the same. 0: not known. */
bool languages_find(struct languages *l, pid_t pid, uint32_t space, struct wire_language *ret);
/* Reads the names of a code object now, while it exists: its address and id (wire/language.h). */
void languages_learn(struct languages *l, pid_t pid, uint64_t code, uint64_t id);
/* Returns true when an address lies in the loop of the process's interpreter. */
bool languages_is_loop(const struct languages *l, pid_t pid, uint64_t addr);
/* Returns the function and line of a frame. The strings live as long as l. Returns false when they
 * are not known. */
bool languages_frame(struct languages *l, pid_t pid, uint64_t word, struct runtime_frame *ret);

#endif
