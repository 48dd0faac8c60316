/* The interpreters of traced processes: the data that programs need to walk their frames, and the
 * names of the functions that programs met.
 *
 * In: processes, and words of stacks (wire/language.h). Out: functions, files and lines. Always
 * true: a name stays known when its process has ended, as long as there is room. A code object that
 * could not be read in time has no name.
 */
#ifndef DESCRY_PROGRAM_RUNTIME_LANGUAGES_H
#define DESCRY_PROGRAM_RUNTIME_LANGUAGES_H

#include "program/runtime/runtime.h"
#include "wire/language.h"

struct languages;
struct languages *languages_new(void);
void languages_free(struct languages *l);
/* Sets other limits, for a test: bytes of names and tables, and number of processes that are known
 * at a time. */
void languages_limit(struct languages *l, size_t bytes, uint32_t processes);
/* Looks for an interpreter in a process. Returns true when programs can walk its frames; *ret has
 * the data for that. space: a number of the process's address space. The result stays valid while
 * this number stays the same. 0: not known. On false, *ret_ms is the number of milliseconds after
 * which to call this again, because an interpreter seems to begin; 0: never. */
bool languages_find(struct languages *l, pid_t pid, uint32_t space, struct wire_language *ret,
		    uint32_t *ret_ms);
/* Reads the names of a code object now, while it exists. */
void languages_learn(struct languages *l, pid_t pid, const struct wire_unwind_ask *ask);
/* Returns true when the walks are to forget what they have requested: a runtime that moves objects
 * had moved one before its names were read, so a new request may have more success. After such a
 * request the next one waits 2 ms, and after each further one twice as long, up to 128 ms. */
bool languages_ask_again(struct languages *l, uint64_t now_ns);
/* Closes the files of processes that have ended, and forgets the names of those that were met first
 * when there is little room for others. Call it often. */
void languages_tidy(struct languages *l, uint64_t now_ns);
/* Returns the number of interpreters and functions that could not be read because of a limit of
 * reads, time or memory. */
uint64_t languages_left_out(const struct languages *l);
/* Finds a range that has the loop of the process's interpreter. Returns false when there is
 * none. */
bool languages_loop(const struct languages *l, pid_t pid, uint64_t *ret_start, uint64_t *ret_size);
/* Returns true when the name of a function is known. */
bool languages_known(const struct languages *l, pid_t pid, uint64_t id);
/* Returns the interpreter that the process has now, NULL: none. Valid until languages_find(). */
const struct runtime *languages_runtime(const struct languages *l, pid_t pid);
/* Returns true when an address lies in the loop of the process's interpreter. is_part: as
 * runtime_is_part(). */
bool languages_is_loop(const struct languages *l, pid_t pid, uint64_t addr);
bool languages_is_part(const struct languages *l, pid_t pid, uint64_t addr);
/* Returns the word of a frame that the frame `caller` called. A function without a place of its own
 * (one of Ruby in C) gets a word with the caller's place. */
uint64_t languages_called(struct languages *l, pid_t pid, uint64_t word, uint64_t caller);
/* Returns true when the words of a stack stand among the native frames, in true order (Java), and
 * not behind them. word: the first of them. */
bool languages_in_place(const struct languages *l, pid_t pid, uint64_t word);
/* Finds the function and line of a frame, as far as they are known. The strings live until
 * languages_tidy().
 * i: as in describe() of struct runtime_type; *ret_n is the number of functions of the frame.
 * Returns the language's name. */
const char *languages_frame(struct languages *l, pid_t pid, uint64_t word, uint32_t i,
			    uint32_t *ret_n, struct runtime_frame *ret);

#endif
