/* A sink that collects the counts of a D program over time into a heat map (descry heat).
 *
 * In: the aggregations of a run that have the time among their keys, printed by printa() or at the
 * end; or the lines of its printf() as events. Out: the matrix of a struct heatin. Always true: of
 * values that are printed several times, only the latest count, unless the program clears the
 * aggregation in between. Then the printed values add up.
 */
#ifndef DESCRY_RENDER_HEATSINK_H
#define DESCRY_RENDER_HEATSINK_H

#include "consume/sink.h"
#include "input/heatin/heatin.h"

/* in is borrowed; it is complete when the run is over. */
struct sink *heatsink_new(struct heatin *in);

#endif
