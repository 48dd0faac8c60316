/* V8's code: its places, and the pieces that its compilers have made. */
#include <string.h>

#include "program/runtime/v8/v8.h"

enum {
	ALIGN = 64,       /* of the instructions */
	SEARCH = 1 << 20, /* bytes of the largest piece */
	PAGE = 4096,
	RANGES_MAX = 1 << 12,
	PREFIXES = 4, /* opcodes that set the width of the next opcode's operands */
	OPERAND_FORMS = 3,
};

static void add_range(struct v8 *v, uint64_t start, uint64_t end, bool made)
{
	if (start < end && v->ranges.n < RANGES_MAX)
		vec_push(&v->ranges, (struct v8_range){ start, end, made });
}

/* Adds the part of a mapping that has the built-in code: in the file's own mapping, and where V8
 * has mapped this part of the file near the code that it makes. */
static void add_builtins(struct v8 *v, const struct mapping *m, const struct mapping *own)
{
	uint64_t from = own->offset + (v->blob - own->start), to = from + v->blob_size;
	uint64_t end = m->offset + (m->end - m->start);

	if (strcmp(m->path, own->path) != 0)
		return;
	from = from > m->offset ? from : m->offset;
	to = to < end ? to : end;
	if (from < to)
		add_range(v, m->start + (from - m->offset), m->start + (to - m->offset), false);
}

/* Reads the list once, from a stopped process or a core. */
static void read_ranges(struct v8 *v)
{
	const struct mappings *maps;
	struct err *e = space_mappings(v->runtime.space, 0, &maps);
	const struct mapping *own = e ? NULL : mappings_find(maps, v->blob);

	v->ranges_read = true;
	for (uint32_t i = 0; !e && i < maps->n; i++) {
		const struct mapping *m = &maps->v[i];

		if (!m->exec)
			continue;
		if (!m->path || !*m->path)
			add_range(v, m->start, m->end, true);
		else if (own && own->path)
			add_builtins(v, m, own);
	}
	err_free(e);
}

bool v8_is_code(struct v8 *v, uint64_t addr, bool *ret_made)
{
	if (!v->ranges_read)
		read_ranges(v);
	for (uint32_t from = 0, to = v->ranges.n; from < to;) { /* in order, as the mappings are */
		const uint32_t middle = from + (to - from) / 2;
		const struct v8_range *range = &v->ranges.v[middle];

		if (addr >= range->start && addr < range->end) {
			*ret_made = range->made;
			return true;
		}
		if (addr < range->start)
			to = middle;
		else
			from = middle + 1;
	}
	return false;
}

/* Returns true when there is code whose instructions begin at an address. */
static bool code_at(struct v8 *v, uint64_t start, struct v8_code *ret)
{
	const struct v8_version *k = v->version;
	uint64_t object = start - k->stream_start + 1;

	if (k->stream_code) {
		uint64_t stream = object;

		if (v8_type(v, &stream) != v->n.type_stream || stream != object)
			return false;
		object = v8_member(v, stream, k->stream_code, v->n.type_code);
		if (!object || v8_get(v, object, k->code_start) != start)
			return false;
	} else if (v8_type(v, &object) != v->n.type_code || object != start - k->stream_start + 1) {
		return false;
	}
	*ret = (struct v8_code){
		.start = start,
		.end = start + v8_u32(v, object - 1 + k->code_size),
		.object = object,
		.kind = v8_u32(v, object - 1 + k->code_flags) & (uint32_t)v->n.code_kind_mask,
	};
	return true;
}

/* Searches a page for the header of the code around pc, from the last header on. */
static bool find_in_page(struct v8 *v, uint64_t page, uint64_t pc, struct v8_code *ret, bool *stop)
{
	const uint32_t front = v->version->stream_start;
	uint64_t words[PAGE / 8];
	uint32_t n = space_read_some(v->runtime.space, page, words, sizeof(words));
	uint32_t first = (ALIGN - front % ALIGN) % ALIGN;

	*stop = !n;
	for (uint32_t at = PAGE - ALIGN + first;; at -= ALIGN) {
		uint64_t start = page + at + front;

		if (at + 8 <= n && start <= pc && v8_is_pointer(words[at / 8]) &&
		    code_at(v, start, ret)) {
			*stop = true;
			return pc < ret->end;
		}
		if (at < ALIGN)
			return false;
	}
}

bool v8_code_find(struct v8 *v, uint64_t pc, struct v8_code *ret)
{
	uint64_t page = pc - pc % PAGE;
	bool stop = false;

	for (uint32_t i = 0; i < v->codes.n; i++)
		if (pc >= v->codes.v[i].start && pc < v->codes.v[i].end) {
			*ret = v->codes.v[i];
			return true;
		}
	for (uint32_t i = 0; !stop && i < SEARCH / PAGE && v->work >= PAGE; i++, page -= PAGE) {
		v->work -= PAGE;
		if (find_in_page(v, page, pc, ret, &stop)) {
			if (v8_afford(v, sizeof(*ret))) {
				v->passing_size += sizeof(*ret);
				vec_push(&v->codes, *ret);
			}
			return true;
		}
	}
	return false;
}

/* Returns the length of the bytecode at a place, with its prefix. 0: not known. */
static uint32_t length_of(const uint8_t *bytes, uint32_t n, uint32_t i, const uint8_t *sizes,
			  uint32_t opcodes)
{
	uint32_t form = 0, prefix = 0;

	if (bytes[i] < PREFIXES) {
		form = 1 + (bytes[i] & 1);
		prefix = 1;
	}
	return i + prefix < n && bytes[i + prefix] < opcodes
		       ? prefix + sizes[form * opcodes + bytes[i + prefix]]
		       : 0;
}

/* Reads the table of code lengths: of the function's entry, then of each bytecode. */
int32_t v8_baseline_place(struct v8 *v, const struct v8_code *c, uint64_t bytecodes, uint64_t pc,
			  bool called)
{
	uint32_t opcodes = v->version->opcodes, ntable, nbytes, i = 0, place = 0;
	uint64_t end, offset = pc - c->start + !called;
	const uint8_t *table, *bytes;
	uint8_t sizes[256 * OPERAND_FORMS];

	if (!v->sizes || space_read_some(v->runtime.space, v->sizes, sizes,
					 opcodes * OPERAND_FORMS) != opcodes * OPERAND_FORMS)
		return V8_NOWHERE;
	table = v8_bytes(v, v8_get(v, c->object, v->version->code_places),
			 (uint32_t)v->n.array_data, &ntable);
	bytes = table ? v8_bytes(v, bytecodes, (uint32_t)v->n.bytecodes_data, &nbytes) : NULL;
	if (!bytes || v->work < ntable)
		return V8_NOWHERE;
	v->work -= ntable > V8_FREE_TABLE ? ntable : 0;
	end = v8_number(table, ntable, &i);
	if (offset <= end)
		return V8_ENTRY;
	while (i < ntable && place < nbytes) {
		uint32_t n = length_of(bytes, nbytes, place, sizes, opcodes);

		end += v8_number(table, ntable, &i);
		if (offset <= end)
			return (int32_t)place;
		if (!n)
			return V8_NOWHERE;
		place += n;
	}
	return V8_NOWHERE;
}
