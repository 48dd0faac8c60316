/* Rubies that begin to compile their methods while they are traced: the compiled code passes none
 * of the places at which descry sees methods (probe.misses_compiled).
 *
 * In: an image, or a further process. Out: each process that has such code, once.
 * The kernel reports the mappings of a command that descry starts, from its first instruction on,
 * and also after it has ended. ruby_watch_next() reads the mappings of all other processes. It
 * reads those of commands, too, when the kernel reports nothing to this user.
 */
#ifndef DESCRY_LOAD_RUBY_WATCH_H
#define DESCRY_LOAD_RUBY_WATCH_H

#include "base/mem.h"
#include "data/image.h"

struct ruby_watch {
	VEC(struct ruby_watched *) processes;
};

/* Begins to watch the processes of the image's probes. follow: descry traces their children,
 * too. */
void ruby_watch_begin(const struct image *img, bool follow, struct ruby_watch *ret);
/* Watches a process, too, when it begins to be traced like another one that is watched. */
void ruby_watch_like(struct ruby_watch *w, pid_t pid, pid_t like);
/* Sets *ret to a process that has compiled code and was not returned before. Returns false when
 * there is no such process. */
bool ruby_watch_next(struct ruby_watch *w, pid_t *ret);
void ruby_watch_end(struct ruby_watch *w);

#endif
