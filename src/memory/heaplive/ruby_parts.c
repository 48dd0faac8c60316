/* The memory that an object of Ruby has beyond its slot: what its type says where the structures
 * are known, and the block of malloc(3) otherwise. */
#include "memory/heaplive/ruby_heap.h"

enum {
	RUBY_3_2 = 0x0302,
	BLOCK_MAX = 1 << 26, /* bytes of a block whose size only malloc(3) knows */
	/* st_table */
	ST_SIZE = 56,
	ST_BINS = 24,
	ST_START = 32,
	ST_BOUND = 40,
	ST_ENTRIES = 48,
	ST_ENTRY = 24,
	ST_POWER_MAX = 40,
	/* rb_id_table: numbers of items that it has room for, int; items */
	ID_SIZE = 24,
	ID_ITEMS = 16,
	ID_ITEM = 16,
	/* of a Hash of at most 8 pairs */
	PAIRS_EMBEDDED = 8, /* where they begin in a Hash that has them in its slot */
	PAIRS_SIZE = 128,
	ENCODING_SHIFT = 22,
};

const uint8_t *ruby_memory(struct ruby_reader *x, uint64_t addr, uint64_t n)
{
	return memory_at_near(x->copy, &x->last, addr, n);
}

uint64_t ruby_block_size(struct ruby_reader *x, uint64_t addr)
{
	uint32_t i = x->has_blocks && !(addr & 15) ? heap_chunk(&x->blocks, addr) : LEAKS_NONE;

	if (i == LEAKS_NONE || chunk_block(&x->blocks.chunks.v[i]) != addr ||
	    x->blocks.chunks.v[i].bits & CHUNK_FREE)
		return 0;
	return chunk_usable(&x->blocks.chunks.v[i]);
}

static void add_part(struct ruby_parts *p, enum ruby_part_kind kind, uint64_t addr, uint64_t n,
		     uint64_t bytes)
{
	if (addr && p->n < RUBY_PARTS && n < UINT64_MAX / 2)
		p->v[p->n++] = (struct ruby_part){ kind, addr, n, bytes };
}

/* A block of which only its size is known. */
static void add_block(struct ruby_reader *x, struct ruby_parts *p, enum ruby_part_kind kind,
		      uint64_t addr)
{
	uint64_t n = ruby_block_size(x, addr);

	if (n)
		add_part(p, kind, addr, n < BLOCK_MAX ? n : BLOCK_MAX, n);
}

static void add_st(struct ruby_reader *x, struct ruby_parts *p, enum ruby_part_kind kind,
		   uint64_t table, bool embedded)
{
	const uint8_t *t = table & 7 || !table ? NULL : ruby_memory(x, table, ST_SIZE);
	uint64_t start, bound, entries, bins;
	uint32_t power, bin_power;

	if (!t)
		return;
	power = t[0];
	bin_power = t[1] + t[2];
	start = ruby_slot_word(t, ST_START);
	bound = ruby_slot_word(t, ST_BOUND);
	entries = ruby_slot_word(t, ST_ENTRIES);
	bins = ruby_slot_word(t, ST_BINS);
	if (power > ST_POWER_MAX || bin_power > ST_POWER_MAX || start > bound ||
	    bound > 1ull << power)
		return;
	if (!embedded)
		add_part(p, RUBY_PART_BYTES, table, 0, ST_SIZE);
	if (bins)
		add_part(p, RUBY_PART_BYTES, bins, 0, ((1ull << bin_power) + 7) / 8 * 8);
	if (entries)
		add_part(p, kind, entries + start * ST_ENTRY, (bound - start) * ST_ENTRY,
			 (1ull << power) * ST_ENTRY);
}

static void add_ids(struct ruby_reader *x, struct ruby_parts *p, enum ruby_part_kind kind,
		    uint64_t table)
{
	const uint8_t *t = table & 7 || !table ? NULL : ruby_memory(x, table, ID_SIZE);
	uint32_t room;

	if (!t)
		return;
	memcpy(&room, t, sizeof(room));
	if (room > INT32_MAX)
		return;
	add_part(p, RUBY_PART_BYTES, table, 0, ID_SIZE);
	if (room)
		add_part(p, kind, ruby_slot_word(t, ID_ITEMS), (uint64_t)room * ID_ITEM,
			 (uint64_t)room * ID_ITEM);
}

/* Bytes of the zero that ends a text in this encoding. */
static uint32_t terminator(uint64_t flags)
{
	switch (flags >> ENCODING_SHIFT & 127) {
	case 3: /* UTF-16BE, UTF-16LE, UTF-16 */
	case 4:
	case 7: return 2;
	case 5: /* UTF-32BE, UTF-32LE, UTF-32 */
	case 6:
	case 8: return 4;
	}
	return 1;
}

static void string_parts(uint64_t flags, const uint8_t *slot, struct ruby_parts *p)
{
	p->from = p->to = 0;
	if (!(flags & RUBY_USER(1)))
		return;
	if (flags & RUBY_USER(2)) { /* its bytes are another String's */
		p->from = 32;
		p->to = 40;
	} else if (!(flags & RUBY_USER(18))) {
		add_part(p, RUBY_PART_BYTES, ruby_slot_word(slot, 24), 0,
			 ruby_slot_word(slot, 32) + terminator(flags));
	}
}

static void array_parts(uint64_t flags, const uint8_t *slot, struct ruby_parts *p)
{
	if (flags & RUBY_USER(1))
		return;
	p->from = p->to = 0;
	if (flags & RUBY_USER(2)) { /* its items are another Array's */
		p->from = 24;
		p->to = 32;
		return;
	}
	add_part(p, RUBY_PART_ITEMS, ruby_slot_word(slot, 32), ruby_slot_word(slot, 16) * 8,
		 ruby_slot_word(slot, 24) * 8);
}

static void hash_parts(struct ruby_reader *x, uint64_t addr, uint64_t flags, const uint8_t *slot,
		       struct ruby_parts *p)
{
	const bool embedded = x->ruby->layout.version >= RUBY_3_3;
	uint64_t body = embedded ? addr + 24 : ruby_slot_word(slot, 16);
	uint64_t pairs = flags >> (RUBY_USER_SHIFT + 8) & 15;

	p->from = embedded ? 16 : 24; /* the default value */
	p->to = p->from + 8;
	if (flags & RUBY_USER(3))
		add_st(x, p, RUBY_PART_TABLE, body, embedded);
	else if (body)
		add_part(p, RUBY_PART_VALUES, body + (embedded ? PAIRS_EMBEDDED : 0),
			 (pairs < 8 ? pairs : 8) * 16, embedded ? 0 : PAIRS_SIZE);
}

static void struct_parts(struct ruby_reader *x, uint64_t flags, const uint8_t *slot,
			 struct ruby_parts *p)
{
	const uint64_t mask = x->ruby->layout.version >= RUBY_3_3 ? 127 : 3;

	if (flags >> (RUBY_USER_SHIFT + 1) & mask)
		return;
	p->from = p->to = 0;
	add_part(p, RUBY_PART_ITEMS, ruby_slot_word(slot, 24), ruby_slot_word(slot, 16) * 8,
		 ruby_slot_word(slot, 16) * 8);
}

static void object_parts(struct ruby_reader *x, uint64_t flags, const uint8_t *slot,
			 struct ruby_parts *p)
{
	uint32_t n;

	if (flags & RUBY_USER(1))
		return;
	p->from = p->to = 0;
	if (x->ruby->layout.version >= RUBY_3_2) {
		add_block(x, p, RUBY_PART_IVARS, ruby_slot_word(slot, 16));
		return;
	}
	memcpy(&n, slot + 16, sizeof(n));
	add_part(p, RUBY_PART_IVARS, ruby_slot_word(slot, 24), n * 8ull, n * 8ull);
}

/* rb_classext_t of 2.7 to 3.1: tables of its objects' variables, of its own, of methods, of
 * constants, of methods that can be called, of caches. */
static void class_parts(struct ruby_reader *x, uint64_t flags, const uint8_t *slot, uint32_t size,
			struct ruby_parts *p)
{
	const uint32_t type = ruby_type(flags);
	uint64_t extra;
	const uint8_t *e;

	if (!x->ruby->layout.class_extra || x->ruby->layout.class_path) {
		p->to = size;
		return;
	}
	extra = ruby_slot_word(slot, x->ruby->layout.class_extra);
	p->from = 16;
	p->to = 24;
	e = extra & 7 || !extra ? NULL : ruby_memory(x, extra, 112);
	if (!e)
		return;
	add_block(x, p, RUBY_PART_BLOCK, extra);
	add_st(x, p, RUBY_PART_VALUED, ruby_slot_word(e, 8), false);
	add_ids(x, p, RUBY_PART_IDS, ruby_slot_word(e, 16));
	add_ids(x, p, RUBY_PART_CONSTS, ruby_slot_word(e, 24));
	add_ids(x, p, RUBY_PART_IDS, ruby_slot_word(e, 32));
	if (type != RUBY_ICLASS) {
		add_st(x, p, RUBY_PART_BYTES, ruby_slot_word(e, 0), false);
		add_ids(x, p, RUBY_PART_CACHES, ruby_slot_word(e, 40));
	}
}

enum { IMEMO_ENV = 0, IMEMO_TMPBUF = 8, IMEMO_AST = 9, IMEMO_CALLINFO = 11, IMEMO_CALLCACHE = 12 };

static void imemo_parts(struct ruby_reader *x, uint64_t flags, const uint8_t *slot,
			struct ruby_parts *p)
{
	p->from = 8;
	switch (ruby_imemo_kind(flags)) {
	case IMEMO_ENV:
		add_part(p, RUBY_PART_VARIABLES, ruby_slot_word(slot, 24),
			 ruby_slot_word(slot, 32) * 8, ruby_slot_word(slot, 32) * 8);
		break;
	case RUBY_IMEMO_METHOD:
	case IMEMO_AST: add_block(x, p, RUBY_PART_BLOCK, ruby_slot_word(slot, 16)); break;
	case RUBY_IMEMO_ISEQ: add_block(x, p, RUBY_PART_DEEP, ruby_slot_word(slot, 16)); break;
	case IMEMO_TMPBUF:
		add_part(p, RUBY_PART_VALUES, ruby_slot_word(slot, 16),
			 ruby_slot_word(slot, 32) * 8, ruby_slot_word(slot, 32) * 8);
		break;
	case IMEMO_CALLINFO: p->to = p->from; break;
	case IMEMO_CALLCACHE: p->weak = 8; break; /* the class whose calls it serves */
	}
}

void ruby_parts(struct ruby_reader *x, uint64_t addr, const uint8_t *slot, uint32_t size,
		struct ruby_parts *ret)
{
	const uint64_t flags = ruby_slot_word(slot, 0);

	ret->n = 0;
	ret->weak = 0;
	ret->from = 16;
	ret->to = size;
	switch (ruby_type(flags)) {
	case RUBY_OBJECT: object_parts(x, flags, slot, ret); break;
	case RUBY_CLASS:
	case RUBY_MODULE:
	case RUBY_ICLASS: class_parts(x, flags, slot, size, ret); break;
	case RUBY_STRING: string_parts(flags, slot, ret); break;
	case RUBY_ARRAY: array_parts(flags, slot, ret); break;
	case RUBY_HASH: hash_parts(x, addr, flags, slot, ret); break;
	case RUBY_STRUCT: struct_parts(x, flags, slot, ret); break;
	case RUBY_BIGNUM:
		ret->from = ret->to = 0;
		if (!(flags & RUBY_USER(2)))
			add_part(ret, RUBY_PART_BYTES, ruby_slot_word(slot, 24), 0,
				 ruby_slot_word(slot, 16) * 8);
		break;
	case RUBY_REGEXP:
		ret->from = 24;
		ret->to = 32;
		add_block(x, ret, RUBY_PART_BYTES, ruby_slot_word(slot, 16));
		break;
	case RUBY_MATCH: add_block(x, ret, RUBY_PART_BYTES, ruby_slot_word(slot, 24)); break;
	case RUBY_DATA:
		ret->from = ret->to = 0;
		add_block(x, ret, RUBY_PART_DEEP, ruby_slot_word(slot, 32));
		break;
	case RUBY_FILE: add_block(x, ret, RUBY_PART_DEEP, ruby_slot_word(slot, 16)); break;
	case RUBY_IMEMO: imemo_parts(x, flags, slot, ret); break;
	case RUBY_FLOAT:
	case RUBY_NODE:
	case RUBY_ZOMBIE:
	case RUBY_MOVED: ret->from = ret->to = 0; break;
	}
}
