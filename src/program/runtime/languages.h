/* The interpreters of traced processes: what programs need to walk their frames, and the names of
 * the functions that programs met.
 *
 * In: processes, and words of stacks (wire/language.h). Out: functions, files and lines.
 * Always true: a name stays known when its process has ended; a code object that nobody could
 * read has no name.
 */
#ifndef DESCRY_PROGRAM_RUNTIME_LANGUAGES_H
#define DESCRY_PROGRAM_RUNTIME_LANGUAGES_H

#include "program/runtime/runtime.h"
#include "wire/language.h"

struct languages;
struct languages *languages_new(void);
void languages_free(struct languages *l);
/* Looks for an interpreter in a process. True: there is one that programs can walk, and *ret says
 * how. space: a number of the process's address space; while it is the same, what was found stays.
 * 0: not known. */
bool languages_find(struct languages *l, pid_t pid, uint32_t space, struct wire_language *ret);
/* Reads the names of a code object now, while it is there: its address and id (wire/language.h). */
void languages_learn(struct languages *l, pid_t pid, uint64_t code, uint64_t id);
/* Does an address lie in the loop of the process's interpreter? */
bool languages_is_loop(const struct languages *l, pid_t pid, uint64_t addr);
/* The function and line of a frame; strings live as long as l. False: not known. */
bool languages_frame(struct languages *l, pid_t pid, uint64_t word, struct runtime_frame *ret);

#endif
