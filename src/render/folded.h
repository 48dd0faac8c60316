/* A stack tree as folded text: "root;...;leaf COUNT" on each line, sorted by the bytes of the
 * stack; of a differential tree "... BEFORE AFTER". And as JSON: {"name", "value", "self",
 * "children"}, nested. A node 40 frames above the root has "part": N instead of children; the
 * root's "parts"[N] is that node again, with its children, and so on: many readers of JSON take no
 * more than 100 levels of nesting.
 */
#ifndef DESCRY_RENDER_FOLDED_H
#define DESCRY_RENDER_FOLDED_H

#include "base/out.h"
#include "view/stacktree.h"

/* Writes a frame with the mark of its kind behind it. */
void folded_frame(const struct stacktree_frame *f, struct out *o);
void folded_write(const struct stacktree *t, struct out *o);
void stacktree_json(const struct stacktree *t, struct out *o);

#endif
