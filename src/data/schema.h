/* Layouts of records and aggregation keys, and the actions on them. The compiler writes them, every
 * engine follows them, and the consumer reads by them. */
#ifndef DESCRY_DATA_SCHEMA_H
#define DESCRY_DATA_SCHEMA_H

#include <stdbool.h>
#include <stdint.h>

#include "base/diag.h"
#include "data/format.h"
#include "program/type/type.h"

enum field_kind {
	FIELD_INT,    /* size 1 2 4 8, little-endian; signed by type */
	FIELD_STRING, /* NUL-terminated text in `size` bytes */
	/* uint32_t id. Below image.nprobes * 4: string `id % 4` (prov mod func name) of probe
	 * id / 4; else text id - nprobes * 4 of image.strings. */
	FIELD_STRID,
	FIELD_BYTES,    /* `size` raw bytes of type `type` (struct, union, array) */
	FIELD_KSTACK,   /* int64_t length in bytes or -errno, then up to (size - 8) / 8 pcs */
	FIELD_USTACK,   /* uint32_t tgid, uint32_t 0, int64_t length or -errno, then pcs */
	FIELD_KSTACKID, /* int64_t id in the stack map, or -errno (keys) */
	FIELD_USTACKID, /* uint32_t tgid, uint32_t 0, int64_t id or -errno (keys) */
	FIELD_SYM,      /* uint64_t kernel address: sym()/func() */
	FIELD_MOD,
	FIELD_USYM, /* uint32_t tgid, uint32_t 0, uint64_t address: usym()/ufunc() */
	FIELD_UMOD,
	FIELD_UADDR,
	FIELD_MEM, /* tracemem(): uint64_t dynamic length, then bytes */
};

struct field {
	enum field_kind kind;
	uint32_t offset; /* from the start of the record (header included) or of the key */
	uint32_t size;   /* bytes, all parts */
	type_id type;
	uint32_t strsize; /* FIELD_USTACK: size of the string table requested, unused otherwise */
};

/* Actions of a segment, in program order. Their lists of fields and aggregations are indices into
 * the segment's and the image's arrays. */
enum action_kind {
	ACT_TRACE,
	ACT_TRACEMEM,
	ACT_PRINTF,
	ACT_PRINTA,
	ACT_PRINT,
	ACT_STACK,
	ACT_USTACK,
	ACT_SYM /* mod, usym.. by field kind */,
	ACT_EXIT,
	ACT_CLEAR,
	ACT_TRUNC,
	ACT_NORMALIZE,
	ACT_DENORMALIZE,
	ACT_COMMIT,
	ACT_DISCARD,
	ACT_FREOPEN,
	ACT_FTRUNCATE,
	ACT_SYSTEM,
	ACT_SETOPT,
	ACT_PCAP,    /* link type, length of the packet, its bytes */
	ACT_DEFAULT, /* no action: print the probe's name only */
};

struct action {
	enum action_kind kind;
	loc_t loc;
	const struct format *format; /* printf printa freopen system */
	uint32_t *fields;            /* indices into segment.fields */
	uint32_t nfields;
	uint32_t *aggs; /* indices into image.aggs */
	uint32_t naggs;
	const char *text; /* setopt: option name (value: text2) */
	const char *text2;
};

/* A straight run of statements in a clause, for which one record is written. All its data-recording
 * actions print on one line. */
struct segment {
	uint32_t clause; /* index in program order */
	uint32_t size;   /* bytes of the record, header included */
	bool control;    /* travels in the control ring */
	bool prints;     /* has an action that prints (without one, no line is printed) */
	bool speculative;
	bool own; /* of BEGIN, END, tick-N, or their ERROR: the in-process engine runs it itself */
	struct field *fields;
	uint32_t nfields;
	struct action *actions;
	uint32_t nactions;
};

enum agg_func {
	AGG_COUNT,
	AGG_SUM,
	AGG_AVG,
	AGG_MIN,
	AGG_MAX,
	AGG_STDDEV,
	AGG_QUANTIZE,
	AGG_LQUANTIZE,
	AGG_LLQUANTIZE
};

/* Value layouts in the map, all uint64_t/int64_t words, per CPU (or thread):
 *	count:      n
 *	sum avg:    n, sum                     (n = number of updates)
 *	min max:    n, value                   (value valid when n > 0)
 *	stddev:     n, sum, sumsq_low, sumsq_high
 *	quantize:   n, bucket[127]             (bucket 63 is value 0; 64 + k: [2^k, 2^(k+1)); 62 - k: (-2^(k+1), -2^k])
 *	lquantize:  n, bucket[levels + 2]      (first: below base; last: at or above limit)
 *	llquantize: n, bucket[...]             (see agg_ll_* in data/agg.h)
 * Values are merged by adding word by word, except min/max. An entry with n == 0 on every CPU
 * exists but is empty. */
struct agg {
	const char *name; /* "" for @ */
	uint32_t id;      /* in order of first use */
	enum agg_func func;
	type_id type;              /* of the argument, for its sign; T_UINT64 for count */
	const char *unit;          /* unit of an argument that is a time: ns us ms s; else NULL */
	int64_t base, limit, step; /* lquantize */
	uint32_t factor, low_mag, high_mag, steps; /* llquantize */
	struct field *keys;
	uint32_t nkeys;
	uint32_t key_size; /* 0: no keys (array of one) */
	uint32_t nwords;   /* value words */
	/* 0: entries are found by key. Otherwise all possible keys are known, and the map is an
	 * array. The value of the key slot_keys[s * key_size] is at index s. A slot with n == 0 was
	 * never counted and is no entry. */
	uint32_t nslots;
	const uint8_t *slot_keys;   /* owned by the image */
	const uint32_t *slot_order; /* the slots sorted by their keys; owned by the image */
	uint32_t map;               /* index into image.maps */
	/* Not 0: the map is shared, and its keys begin with this 64-bit word, not in key_size. */
	uint32_t tag;
	loc_t loc;
};

#endif
