/* The table of heap sources, and the opening of a heap by it (`descry heap`).
 *
 * In: a file, or the address space of a process or core. Out: a finished graph.
 */
#ifndef DESCRY_MEMORY_HEAP_HEAP_H
#define DESCRY_MEMORY_HEAP_HEAP_H

#include "base/out.h"
#include "memory/copy/memory_copy.h"
#include "memory/graph/source.h"
#include "view/stacktree.h"

#define SOURCE(name) extern const struct heap_source heap_source_##name;
#include "memory/heap/sources.def"
#undef SOURCE

/* Reads a dump file. *ret_source is the kind that it is of. ENOEXEC: it is of no known kind. */
struct err *heap_read_file(const char *path, const struct graph_wanted *w, struct graph **ret,
			   const struct heap_source **ret_source);

/* Reads the heap in an address space by the first source whose runtime runs there. p: how its
 * memory is copied. ENOENT: no known runtime runs in it. */
struct err *heap_read_space(struct space *s, struct memory_stop *p, const struct graph_wanted *w,
			    struct graph **ret, const struct heap_source **ret_source);
/* The same; then calls look() with the copy of the memory, in which more is to be read. g: NULL
 * when the heap cannot be read. */
struct heap_look {
	void (*look)(void *arg, struct space *copied, struct graph *g);
	void *arg;
};
struct err *heap_read_looking(struct space *s, struct memory_stop *p, const struct graph_wanted *w,
			      const struct heap_look *look, struct graph **ret,
			      const struct heap_source **ret_source);

/* ---- What is shown ---- */

struct heap_shown {
	const char *name; /* of the file, process or core */
	const struct heap_source *source;
	uint64_t pause_ns; /* as long was the process stopped; 0: it was not */
	const char *whole; /* NULL: no copy by clone(2) was asked for; "": made; else why not */
	uint32_t most;     /* rows that are listed */
	uint32_t percent;  /* of the reachable bytes, from which on something is a suspect */
	bool json;         /* JSON lines in place of tables */
};

/* heap_summary.c: the sums, and the leak suspects. */
void heap_show_summary(struct graph *g, const struct heap_shown *how, struct out *o);
void heap_show_suspects(struct graph *g, const struct heap_shown *how, struct out *o);

/* heap_tables.c */
void heap_show_histogram(struct graph *g, enum graph_which which, const struct heap_shown *how,
			 struct out *o);
/* Only the numbers of objects, as `COUNT CLASS`, the most first. */
void heap_show_counts(struct graph *g, const struct heap_shown *how, struct out *o);
void heap_show_retained(struct graph *g, const struct heap_shown *how, struct out *o);
void heap_show_biggest(struct graph *g, const struct heap_shown *how, struct out *o);
void heap_show_duplicates(struct graph *g, const struct heap_shown *how, struct out *o);
void heap_show_diff(struct graph *before, struct graph *after, const struct heap_shown *how,
		    struct out *o);

/* heap_reach.c: `what` is a class's name or an object's address. ENOENT: there is none. */
struct err *heap_show_paths(struct graph *g, const char *what, const struct heap_shown *how,
			    struct out *o);
struct err *heap_show_refs(struct graph *g, const char *address, const struct heap_shown *how,
			   struct out *o);

/* heap_find.c: the objects for which the expression `find` of D is true, NULL: all; with `by`,
 * their sums by the value of this expression. EINVAL: an expression is wrong; the error has the
 * diagnostics. */
struct heap_find;
struct err *heap_find_new(const char *find, const char *by, struct heap_find **ret);
void heap_find_free(struct heap_find *f); /* NULL is fine */
/* Returns true when the graph needs labels and values for it. */
bool heap_find_inside(const struct heap_find *f);
struct err *heap_show_find(struct graph *g, const struct heap_find *f, const struct heap_shown *how,
			   struct out *o);

/* heap_text.c: puts the text that an object is, in UTF-8 and with a NUL behind it, in place of what
 * `ret` has; the first part of a long one. Returns false when the object is no text, the graph has
 * no values, or *budget is spent: references and words of text that may still be looked at, of
 * which this function takes some. Objects may share their parts with any number of others. */
bool heap_text(struct graph *g, graph_id id, struct out *ret, uint64_t *budget);

/* heap_snapshot.c: writes the heap as a snapshot of V8. The graph has labels; texts are written
 * when it has values. EFBIG: it has too many objects for that. */
struct err *heap_write_snapshot(struct graph *g, struct out *o);

/* heap_tree.c: the dominator tree, objects of one class under the same parent merged, as a stack
 * tree with retained bytes. ret_paths, when not NULL: a text for each node, the merged paths from
 * roots to its objects, NULL for those at the bottom of a large tree; freed by
 * heap_tree_paths_free(). The graph then has labels. */
void heap_stacktree(struct graph *g, struct stacktree *ret, char ***ret_paths);
void heap_tree_paths_free(char **paths, const struct stacktree *t);

/* Writes merged paths as lines. */
void heap_put_paths(struct graph *g, struct graph_paths *p, const struct heap_shown *how,
		    struct out *o);

/* Shared by these: "0x7f.. (java.lang.String)" of an object, a share, a member of a JSON line. */
void heap_put_object(struct graph *g, graph_id id, struct out *o);
void heap_put_percent(struct out *o, uint64_t part, uint64_t all);
void heap_json_text(struct out *o, const char *name, const char *text);
void heap_json_number(struct out *o, const char *name, uint64_t v);
void heap_json_address(struct out *o, const char *name, uint64_t v);

#endif
