/* Rubies that begin to compile their methods while they are traced: the compiled code passes none
 * of the places at which descry sees methods (probe.misses_compiled).
 *
 * In: an image, or a further process. Out: each process that has such code, once.
 * The kernel reports the mappings of commands from their first instruction on, also of those that
 * have ended when they are asked for. Of other processes, and where the kernel reports nothing to
 * this user, the mappings are read at each call.
 */
#ifndef DESCRY_LOAD_RUBY_WATCH_H
#define DESCRY_LOAD_RUBY_WATCH_H

#include "base/mem.h"
#include "data/image.h"

struct ruby_watch {
	VEC(struct ruby_watched *) processes;
};

/* follow: children of its processes are traced, too. */
void ruby_watch_begin(const struct image *img, bool follow, struct ruby_watch *ret);
/* Watches a process, too, when it begins to be traced like another one that is watched. */
void ruby_watch_like(struct ruby_watch *w, pid_t pid, pid_t like);
/* Finds the next process that has compiled code. Returns false when there is none; reports each
 * once. */
bool ruby_watch_next(struct ruby_watch *w, pid_t *ret);
void ruby_watch_end(struct ruby_watch *w);

#endif
