/* The objects of a heap, what refers to what, and the questions about them (`descry heap`).
 *
 * In: objects by address with their class, size and references, and the roots, in any order, from
 * one source (source.h): a dump file, a process, a core. graph_finish() makes the compact form.
 * Out: histograms, dominators, retained sizes, paths to roots, leak suspects, referrers.
 * Always true: the input is untrusted. Circles, repeated objects, references to nothing and absurd
 * sizes are dropped or counted, and no walk recurses. A reference that is weak, soft or phantom
 * retains nothing.
 *
 * Between graph_new() and graph_finish(), only the functions under "Making a graph" work; behind
 * graph_finish(), all the others.
 */
#ifndef DESCRY_MEMORY_GRAPH_GRAPH_H
#define DESCRY_MEMORY_GRAPH_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"

struct graph;

/* An object of a finished graph: objects are numbered from 0 in the order of their addresses. */
typedef uint32_t graph_id;
#define GRAPH_NONE UINT32_MAX

/* ---- Making a graph ------------------------------------------------------------------------- */

struct graph_wanted {
	bool labels;   /* the names of references are kept: 4 bytes for each */
	bool contents; /* equal strings and arrays are counted (graph_content()) */
	/* So many bytes of large arrays are kept in memory, the others in files; 0: as many as the
	 * machine has room for. */
	uint64_t memory;
	bool values; /* the numbers of objects are kept (graph_values()), and texts */
	/* Only the objects and bytes of each class are counted: graph_histogram(GRAPH_ALL),
	 * graph_totals() and the remarks answer, and nothing else. References and roots are
	 * dropped, and a repeated address counts again. */
	bool counts;
};
struct graph *graph_new(const struct graph_wanted *w);
void graph_free(struct graph *g); /* NULL is fine */
const struct graph_wanted *graph_wanted(const struct graph *g);

/* Returns the class of this key (any number that the source chooses, such as the address of the
 * class). Makes it, without a name, when it is new. Classes are numbered from 0 in order of
 * appearance. */
uint32_t graph_class(struct graph *g, uint64_t key);
/* Names a class. A class without a name is shown as "class 0xKEY". */
void graph_class_name(struct graph *g, uint32_t class, const char *name, size_t n);
/* Names the object that is the class itself. Every instance then refers to that object, without an
 * edge of its own. */
void graph_class_object(struct graph *g, uint32_t class, uint64_t address);
/* Sets the size of the class's objects that were added with the size GRAPH_SIZE_OF_CLASS. May be
 * called at any time before graph_finish(). */
void graph_class_size(struct graph *g, uint32_t class, uint64_t size);

#define GRAPH_LABEL_NONE 0u
#define GRAPH_LABEL_INDEX (1u << 31)
/* Returns the label of this name: a field, a variable. Equal texts have equal labels. An element of
 * an array has the label GRAPH_LABEL_INDEX | its index. Returns GRAPH_LABEL_NONE when labels are
 * not wanted. */
uint32_t graph_label(struct graph *g, const char *name, size_t n);

#define GRAPH_SIZE_OF_CLASS UINT64_MAX
/* Adds an object of this many bytes without what it refers to. When the address has been added
 * before, the later object is dropped at the end, with its references. */
void graph_object(struct graph *g, uint64_t address, uint32_t class, uint64_t size);
/* Adds n objects of a class that have `bytes` bytes together. Only when the graph counts. */
void graph_count(struct graph *g, uint32_t class, uint64_t n, uint64_t bytes);
/* Adds bytes to the size of the object that was added last. */
void graph_object_add(struct graph *g, uint64_t more);
/* Gives the contents of the string or array that was added last, for graph_duplicates(). */
void graph_content(struct graph *g, const void *p, size_t n);

/* Numbers have the types of the JVM: Z and B (1 byte), C and S (2), I and F (4), J and D (8). 0:
 * there is no such type. */
unsigned graph_type_size(char type);
/* The number of a name of such fields. */
uint32_t graph_field_name(struct graph *g, const char *name, size_t n);
/* Adds a field with a number to a class: one that each of its instances has, behind those that were
 * added before; or a static one, with its value. */
void graph_class_field(struct graph *g, uint32_t class, bool is_static, char type, uint32_t name,
		       uint64_t value);
/* Returns room for n more bytes of the numbers of the object that was added last, or NULL when they
 * are not wanted: of an instance its fields, packed, in their order; of an array its elements; of a
 * text its bytes. Little-endian. Fields without bytes are 0. Valid until the next call. */
uint8_t *graph_values(struct graph *g, size_t n);

/* Gives the contents of the text that was added last, for both. */
void graph_text(struct graph *g, const char *text);
/* Gives the n characters of the text that was added last, for graph_values() only: `width` bytes
 * each, Latin-1, UTF-16 or UTF-32. The end of a long text is left out. */
void graph_characters(struct graph *g, const void *p, size_t n, unsigned width);

/* Adds a number that the object that was added last has under a label, when the numbers are wanted
 * and no field of its class has it. Under GRAPH_LABEL_NONE: the object is this number. Types more
 * than graph_type_size() has: N is nothing (nil, null), T a text, of which value is the label. */
void graph_number(struct graph *g, uint32_t label, char type, uint64_t value);
void graph_number_text(struct graph *g, uint32_t label, const char *text);
/* The labels of graph_number() for the place in the program that made the object. */
#define GRAPH_FILE "<file>"
#define GRAPH_LINE "<line>"

enum graph_strength { GRAPH_STRONG, GRAPH_WEAK, GRAPH_SOFT, GRAPH_PHANTOM };
/* Adds a reference from the object that was added last. The object at `to` may come later. A
 * reference to an address without an object is dropped at the end. */
void graph_edge(struct graph *g, uint64_t to, uint32_t label, enum graph_strength strength);
/* Adds a reference from any object. Costs more than graph_edge(): meant for the few. */
void graph_edge_from(struct graph *g, uint64_t from, uint64_t to, uint32_t label,
		     enum graph_strength strength);

/* Adds a root, with its kind in words: "thread", "global variable". An object may be the root of
 * several kinds. */
void graph_root(struct graph *g, uint64_t address, const char *kind);

/* Names the object of a reference as the memory has it, where that is not the object's address. */
void graph_alias(struct graph *g, uint64_t reference, uint64_t address);

/* Adds a sentence that the user is to see: what of the source could not be read, and why. */
void graph_remark(struct graph *g, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Returns false, and makes the graph fail, when the machine has not `more` bytes of memory left. A
 * source asks for what it keeps itself; small amounts are always there. */
bool graph_room(struct graph *g, uint64_t more);

/* Adds the objects, references, roots and remarks of another graph, and frees that. Another thread
 * may have made it. It was made by the same struct graph_wanted, without contents, values and
 * counts; its numbers of classes and labels are those of `g`. */
void graph_join(struct graph *g, struct graph *more);

/* Drops all objects, references and roots, and an error. Classes and labels stay. */
void graph_restart(struct graph *g);

/* Makes the compact form. On an error (too many objects or references), only graph_free() is
 * allowed. */
struct err *graph_finish(struct graph *g);

/* ---- Looking things up ---------------------------------------------------------------------- */

struct graph_totals {
	uint64_t objects, bytes; /* all objects, with shallow sizes */
	uint64_t edges;          /* strong references between objects of the graph */
	uint64_t weak_edges;     /* weak, soft and phantom ones */
	uint64_t roots;
	uint64_t repeated; /* objects that were dropped because their address was taken */
	uint64_t dangling; /* references and roots that were dropped: there is no such object */
};
const struct graph_totals *graph_totals(const struct graph *g);
uint32_t graph_remarks(const struct graph *g);
const char *graph_remark_text(const struct graph *g, uint32_t i);

/* Returns GRAPH_NONE when there is no object with exactly this address. */
graph_id graph_find(const struct graph *g, uint64_t address);
/* The same for a reference as the memory has it (graph_alias()). */
graph_id graph_find_reference(const struct graph *g, uint64_t reference);
uint64_t graph_address(const struct graph *g, graph_id id);
uint32_t graph_class_of(const struct graph *g, graph_id id);
uint64_t graph_size(const struct graph *g, graph_id id); /* shallow, bytes */
uint32_t graph_classes(const struct graph *g);
/* Valid until graph_free(). */
const char *graph_class_text(const struct graph *g, uint32_t class);
/* Returns the object that is the class itself, or GRAPH_NONE. */
graph_id graph_class_id(const struct graph *g, uint32_t class);
/* Returns the class that this object is, or GRAPH_NONE. */
uint32_t graph_is_class(const struct graph *g, graph_id id);
/* Writes the text of a label: "name", "[7]", "" for none. */
const char *graph_label_text(const struct graph *g, uint32_t label, char *buf, size_t size);

struct graph_field {
	const char *name;
	char type;
	uint64_t value; /* of a static field */
};
/* The fields with numbers of a class. */
uint32_t graph_fields(const struct graph *g, uint32_t class, bool is_static);
struct graph_field graph_field_at(const struct graph *g, uint32_t class, bool is_static,
				  uint32_t k);
/* Returns the bytes of an object's numbers, or NULL when there are none. */
const uint8_t *graph_values_of(const struct graph *g, graph_id id, size_t *ret_n);
/* Finds a number of graph_number(). Returns false when the object has none under the label. */
bool graph_number_find(const struct graph *g, graph_id id, uint32_t label, struct graph_field *ret);
/* Returns the object that the reference with this label leads to; GRAPH_NONE: there is none. Takes
 * the references that it looks at from *budget. */
graph_id graph_member(const struct graph *g, graph_id id, uint32_t label, uint64_t *budget);

struct graph_root_of {
	graph_id id;
	const char *kind;
};
/* The roots, in order of objects. */
const struct graph_root_of *graph_roots(const struct graph *g, size_t *ret_n);
/* Returns the kind of the object's first root, or NULL when it is none. */
const char *graph_root_kind(const struct graph *g, graph_id id);

struct graph_edge_to {
	graph_id id; /* the other object */
	uint32_t label;
	enum graph_strength strength;
};
/* A walk over the references of an object, strong ones first. Without the implied reference to its
 * class:
 *   struct graph_walk w = graph_out(g, id);
 *   while (graph_walk_next(&w, &edge)) */
struct graph_walk {
	const struct graph *g;
	graph_id of;
	uint64_t at, end; /* of the strong ones */
	uint64_t weak, weak_end;
	bool in;
	/* With `in`: the object that the last reference came from, and where its list goes on. */
	graph_id from;
	uint32_t next;
};
struct graph_walk graph_out(const struct graph *g, graph_id id);
/* The same for the objects that refer to it. The first call makes the inverse table. */
struct graph_walk graph_in(struct graph *g, graph_id id);
bool graph_walk_next(struct graph_walk *w, struct graph_edge_to *ret);

/* ---- Questions ------------------------------------------------------------------------------ */

/* graph_histogram.c */
struct graph_row {
	uint32_t class;
	uint64_t n, bytes; /* objects and their shallow sizes */
	uint64_t retained; /* what all objects of the class retain together; 0 unless asked for */
};
struct graph_rows {
	struct graph_row *v;
	uint32_t n;
};
enum graph_which { GRAPH_ALL, GRAPH_REACHABLE, GRAPH_UNREACHABLE };
/* Rows of the classes that have such objects, the most bytes first. */
void graph_histogram(struct graph *g, enum graph_which which, struct graph_rows *ret);
/* The same of the reachable objects with the retained sizes, the most retained bytes first: the sum
 * over the objects of a class that no other object of it dominates. */
void graph_histogram_retained(struct graph *g, struct graph_rows *ret);
/* The same of an object and all that it dominates. */
void graph_histogram_below(struct graph *g, graph_id id, struct graph_rows *ret);
void graph_rows_free(struct graph_rows *r);

/* graph_dominators.c: made at the first call of one of these. */
struct graph_reach {
	uint64_t objects, bytes;   /* that a root reaches by strong references */
	uint64_t weak, weak_bytes; /* only through a weak, soft or phantom one */
	uint64_t unreachable, unreachable_bytes;
};
const struct graph_reach *graph_reach(struct graph *g);
bool graph_reachable(struct graph *g, graph_id id);
/* Returns the immediate dominator: GRAPH_NONE when no single object but only the roots together
 * hold it, or when it is not reachable. */
graph_id graph_dominator(struct graph *g, graph_id id);
/* Bytes that would be free without the object; 0 when it is not reachable. */
uint64_t graph_retained(struct graph *g, graph_id id);
/* The objects that `id` dominates immediately, in the order of their addresses; of GRAPH_NONE:
 * those that only the roots together hold. Valid until graph_free(). */
const graph_id *graph_dominated(struct graph *g, graph_id id, size_t *ret_n);

/* graph_paths.c */
struct graph_path_node {
	uint32_t parent; /* index of the node above; GRAPH_NONE: the way begins here, at roots */
	uint32_t class;
	uint32_t label; /* of the reference from the node above; an index stands for all of them */
	const char *root; /* kind of root, when it begins here */
	uint64_t n; /* objects on this node; those of one class behind each other are one node, but
			      * for objects that are classes */
	uint64_t wanted; /* wanted objects on this node and below */
	uint64_t bytes;  /* their shallow sizes */
	graph_id id;     /* one of its objects */
};
struct graph_paths {
	VEC(struct graph_path_node) nodes; /* a node comes behind the one above it */
	uint64_t wanted;                   /* objects that a root reaches */
	uint64_t without;                  /* that no root reaches */
};
/* The shortest path from a root to each object for which wanted() is true, merged by class and
 * label from the roots down. */
void graph_paths(struct graph *g, bool (*wanted)(void *arg, graph_id id), void *arg,
		 struct graph_paths *ret);
void graph_paths_fini(struct graph_paths *p);
/* The same for many small sets of objects: the paths are searched once. */
struct graph_ways *graph_ways_new(struct graph *g);
void graph_ways_free(struct graph_ways *w);
/* Takes the first of n different objects, at most 1000, and fewer when their paths are long.
 * Returns how many it has taken. */
size_t graph_ways_to(struct graph_ways *w, const graph_id *ids, size_t n, struct graph_paths *ret);

/* graph_suspects.c */
struct graph_suspect {
	graph_id id; /* one object; GRAPH_NONE: the objects of `class` that only roots hold */
	uint32_t class;
	uint64_t n;        /* objects: 1, or those of the group */
	uint64_t retained; /* bytes */
	graph_id point;    /* where the memory accumulates; GRAPH_NONE: of a group */
	uint64_t point_retained;
	uint64_t point_held;    /* objects that the point dominates immediately */
	struct graph_row below; /* of the class with the most bytes below the point */
};
struct graph_suspects {
	struct graph_suspect *v; /* the most retained bytes first */
	uint32_t n;
};
/* By the rules of Eclipse's Memory Analyzer: objects that no other object dominates and that retain
 * at least `percent` of the reachable bytes, and the groups by class of the others that do so
 * together. The accumulation point is the last object on the way down along the child that retains
 * most, before a child that retains less than 70 % of its parent; of objects of one class in a row,
 * the first. */
void graph_suspects(struct graph *g, unsigned percent, struct graph_suspects *ret);
void graph_suspects_free(struct graph_suspects *s);

/* graph_content.c */
struct graph_duplicate {
	uint32_t class;
	uint64_t n, bytes; /* objects with these contents, and their sizes together */
	uint64_t example;  /* the address of one */
	uint64_t length;   /* of the contents, bytes */
	char head[40];     /* the first bytes of it */
	uint8_t head_n;
};
/* The contents that more than one object has, the most bytes first. The caller frees *ret. */
size_t graph_duplicates(const struct graph *g, struct graph_duplicate **ret);

#endif
