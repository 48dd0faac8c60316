/* Walks down the dominator tree without recursion. */
#ifndef DESCRY_MEMORY_GRAPH_GRAPH_TREE_H
#define DESCRY_MEMORY_GRAPH_GRAPH_TREE_H

#include "graph_private.h"

/* A walk through all objects below `top`, and `top` itself: each is entered, then those that it
 * dominates, then it is left. top GRAPH_NONE: all reachable objects. */
struct graph_descent {
	struct graph *g;
	graph_id top, at;
	struct graph_list next; /* uint32_t: the child that is entered next, of each on the way */
	bool begun, done;
};
void graph_descent_init(struct graph_descent *d, struct graph *g, graph_id top);
/* Returns false at the end. */
bool graph_descent_next(struct graph_descent *d, graph_id *ret, bool *ret_entered);
void graph_descent_fini(struct graph_descent *d);

#endif
