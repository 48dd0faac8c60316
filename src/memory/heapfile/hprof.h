/* The inside of the reader of HPROF files, the heap dumps of Java.
 *
 * A file is a header and records; records of two kinds are heap dumps, which have records of their
 * own. All numbers are big-endian; an id has 4 or 8 bytes. Two passes: the first learns the classes
 * and how large objects really are, the second fills the graph, in several threads when it can.
 */
#ifndef DESCRY_MEMORY_HEAPFILE_HPROF_H
#define DESCRY_MEMORY_HEAPFILE_HPROF_H

#include "base/hash.h"
#include "base/sorted.h"
#include "memory/graph/graph.h"
#include "memory/heapfile/unpack.h"

enum {
	HPROF_RECORD = 9, /* bytes of a record's head */
	HPROF_HEAP_DUMP = 0x0c,
	HPROF_HEAP_DUMP_SEGMENT = 0x1c,
};

/* Types of fields. */
enum hprof_type {
	HPROF_OBJECT = 2,
	HPROF_BOOLEAN = 4,
	HPROF_CHAR,
	HPROF_FLOAT,
	HPROF_DOUBLE,
	HPROF_BYTE,
	HPROF_SHORT,
	HPROF_INT,
	HPROF_LONG,
	HPROF_NTYPES,
};

/* A field of an instance that refers to an object. */
struct hprof_ref {
	uint32_t at; /* in the bytes of the instance */
	uint32_t label;
	enum graph_strength strength;
};

/* A field of an instance that has a number. */
struct hprof_number {
	uint32_t at; /* in the bytes of the instance */
	uint32_t size;
};

struct hprof_class {
	uint64_t id, super;
	uint32_t name;           /* in names; 0: not known */
	uint32_t field, nfields; /* in fields, of the class itself */
	bool described;          /* there was a class dump */
	bool laid_out;
	uint32_t ref, nrefs;       /* in refs, those of the classes above too */
	uint32_t number, nnumbers; /* in numbers, likewise, when they are wanted */
	uint32_t bytes;            /* of an instance in the file */
	uint32_t walked;           /* number + 1 of the class above which it was met last */
	uint64_t least;       /* from an instance to the next object, at least; 0: none was seen */
	uint32_t graph_class; /* + 1; 0: none yet */
};

struct hprof_local {
	uint64_t id;
	uint32_t thread; /* serial number */
	const char *kind;
};

/* What the graph has for a name. */
struct hprof_name {
	uint32_t label, field; /* + 1; 0: not asked for yet */
};

struct hprof {
	struct unpack in;
	struct graph *graph;
	unsigned id_size;
	struct intern names;
	struct hash name_ids; /* id -> name */
	VEC(struct hprof_name) of_names;
	VEC(struct hprof_class) classes;
	struct {
		uint64_t id;
		uint32_t number; /* + 1 */
	} * class_hash;
	uint32_t class_mask;
	uint32_t last_class; /* + 1 */
	VEC(struct hprof_field {
		uint32_t name;
		uint8_t type;
	}) fields;
	VEC(struct hprof_ref) refs;
	VEC(struct hprof_number) numbers;
	uint64_t laid_out;                  /* fields that lay_out() went over */
	uint64_t class_class;               /* the id of java.lang.Class */
	uint32_t array_class[HPROF_NTYPES]; /* of arrays of numbers: of the graph, + 1 */

	bool skim;                /* this is the first pass */
	uint64_t skimmed;         /* offset up to which the first pass went */
	uint64_t records_at;      /* offset of the first record */
	uint64_t objects_at;      /* offset of the first object */
	uint64_t objects_segment; /* and of the record that has it */
	bool undescribed;         /* an instance came before its class */
	uint64_t first_id;        /* the first object of a reader's part */
	uint64_t last_id;         /* the object before */
	uint32_t last_number;     /* its class + 1; 0: an array */
	uint64_t last_length;     /* of an array: elements, and their size in the file */
	unsigned last_element;
	unsigned array_header; /* learnt: bytes in front of the elements, 0: not yet */
	unsigned narrow, wide; /* arrays of references of 4, and perhaps 8 bytes */
	unsigned ref_size;     /* of references in memory */
	unsigned header;       /* of an instance in memory */

	VEC(struct hprof_local) locals;
	VEC(struct hprof_thread {
		uint64_t id;
		uint32_t serial;
	}) threads;
	uint64_t unread; /* instances whose class is not in the file */
	uint64_t record; /* offset of the record that is being read */
	uint64_t absent; /* bytes of arrays and instances that are there without them */
	bool reader;     /* of hprof_threads(): it has a part of the file, and makes no class */
	bool stuck;      /* the part has what a reader cannot read */
	struct err *error;
};

static inline uint32_t hprof_u16(const uint8_t *p)
{
	return (uint32_t)(p[0] << 8 | p[1]);
}

static inline uint32_t hprof_u32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return __builtin_bswap32(v);
}

static inline uint64_t hprof_u64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return __builtin_bswap64(v);
}

static inline uint64_t hprof_id(const struct hprof *h, const uint8_t *p)
{
	return h->id_size == 8 ? hprof_u64(p) : hprof_u32(p);
}

/* Returns the bytes of a type in the file, 0: there is no such type. */
static inline unsigned hprof_type_size(const struct hprof *h, unsigned type)
{
	static const uint8_t sizes[HPROF_NTYPES] = { 0, 0, 0, 0, 1, 2, 4, 8, 1, 2, 4, 8 };

	return type == HPROF_OBJECT ? h->id_size : type < HPROF_NTYPES ? sizes[type] : 0;
}

/* Copies a number of the file to the byte order of graph_values(). */
static inline void hprof_turn(uint8_t *to, const uint8_t *from, uint32_t size)
{
	while (size--)
		*to++ = from[size];
}

/* Makes sure that n bytes are at in.pos; else sets the error: the file is truncated. */
bool hprof_need(struct hprof *h, size_t n);
bool hprof_skip(struct hprof *h, uint64_t n);
/* Sets the error "byte N: ...", unless there is one. Returns false. */
bool hprof_bad(struct hprof *h, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Reads the records up to an offset. */
bool hprof_records(struct hprof *h, uint64_t end);

/* hprof_threads.c: reads all records in several threads. Returns false when that is not possible;
 * then the graph has no objects. On an error too, and sets it. */
bool hprof_threads(struct hprof *h, const char *path);
/* Has the first pass seen the classes, and objects enough? */
bool hprof_skimmed_enough(const struct hprof *h);
/* Sets the bytes of a file that are worth a thread, and those of objects in the first pass, for
 * tests. */
void hprof_limits(uint64_t part, uint64_t skimmed);

/* Returns the text with this id, in names; 0: there is none. */
uint32_t hprof_name(const struct hprof *h, uint64_t id);

/* hprof_class.c */
/* Returns the class with this id, which it makes. Valid until the next call. */
struct hprof_class *hprof_class(struct hprof *h, uint64_t id);
/* The same, NULL when there is none or it has no class dump. Lays it out. */
struct hprof_class *hprof_class_laid_out(struct hprof *h, uint64_t id);
uint32_t hprof_graph_class(struct hprof *h, struct hprof_class *c);
uint32_t hprof_array_class(struct hprof *h, unsigned type);
/* Makes all classes of the graph, and lays them out. */
bool hprof_classes_prepare(struct hprof *h);
/* Reads a class dump. */
bool hprof_class_dump(struct hprof *h);
/* Gives the classes of the graph their names and sizes. */
void hprof_classes_finish(struct hprof *h);

/* hprof_size.c */
/* Notes the address of an object that comes behind another, which tells how large that is. */
void hprof_size_note(struct hprof *h, uint64_t id);
/* Decides how large references and headers are, by what was noted. */
void hprof_size_decide(struct hprof *h);
uint64_t hprof_array_size(const struct hprof *h, uint64_t n, unsigned element);
uint64_t hprof_instance_size(const struct hprof *h, const struct hprof_class *c);

/* hprof_heap.c: reads the records of a heap dump of `length` bytes. */
bool hprof_heap(struct hprof *h, uint64_t length);

#endif
