/* A sink that makes one stack tree of all that a D program shows (descry flame -n).
 *
 * In: aggregations with stacks among their keys, whichever way they are printed: each row is a
 * stack in the tree, its other keys are the frames at its root. What the program prints beside them
 * (events with stack() and ustack(), lines of other formats) is text, read as descry flame reads a
 * file.
 * Out: the tree of a struct stackin.
 */
#ifndef DESCRY_RENDER_FLAMESINK_H
#define DESCRY_RENDER_FLAMESINK_H

#include "consume/sink.h"
#include "input/stackin/stackin.h"

/* in is borrowed, and gets all text before the sink is freed; then stackin_end() is next. */
struct sink *flamesink_new(struct stackin *in);

#endif
