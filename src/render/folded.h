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

enum { FOLDED_WHOLE = UINT32_MAX, FOLDED_LONGEST = 4096, FOLDED_SHORTEST = 32 };
/* Writes at most name_most bytes of a name, then "..". */
void folded_write(const struct stacktree *t, uint32_t name_most, struct out *o);
/* Returns the bytes that folded_write() writes, without the counts. The tree has each name once,
 * and the text has it once in each stack. */
uint64_t folded_size(const struct stacktree *t, uint32_t name_most);
/* Returns how long names may be so that the text has at most `most` bytes: FOLDED_WHOLE, or
 * FOLDED_LONGEST to FOLDED_SHORTEST; 0: it has more with the shortest. */
uint32_t folded_name_most(const struct stacktree *t, uint64_t most);
void stacktree_json(const struct stacktree *t, struct out *o);

#endif
