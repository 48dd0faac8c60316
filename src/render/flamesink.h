/* A sink that makes one stack tree of all output of a D program (descry flame -n).
 *
 * In: aggregations with stacks among their keys, printed in any way. Each row becomes a stack in
 * the tree, and its other keys become the frames at its root. Other output of the program (events
 * with stack() and ustack(), lines of other formats) is text, which is read as descry flame reads a
 * file. Out: the tree of a struct stackin.
 */
#ifndef DESCRY_RENDER_FLAMESINK_H
#define DESCRY_RENDER_FLAMESINK_H

#include "consume/sink.h"
#include "input/stackin/stackin.h"

/* in is borrowed, and gets all text before the sink is freed. The caller calls stackin_end()
 * afterwards. */
struct sink *flamesink_new(struct stackin *in);

#endif
