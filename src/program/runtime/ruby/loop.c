/* Finds the functions of the interpreter's loop. rb_vm_exec() pushes a tag for longjmp() and calls
 * vm_exec_core(), which has the instructions. Stripped libraries name at most the first one. So the
 * functions are recognised by their use: the words of compiled code are addresses in the second
 * one; the first one calls the second, and its tags resume in it. */
#include <string.h>

#include "program/runtime/ruby/ruby.h"

/* .eh_frame_hdr: version and encodings, address of .eh_frame, count, then pairs of the address of
 * a function, relative to the section, and of its entry in .eh_frame, sorted. */
enum {
	HEADER = 12,
	PAIR = 8,
	FUNCTION_MAX = 1 << 20,
	LABELS_MAX = 256,
	CALL = 0xe8,
	CALL_SIZE = 5
};
static const uint8_t sorted_pairs[] = { 1, 0x1b, 0x03, 0x3b };

static bool read_table(struct ruby *r)
{
	if (!r->table)
		r->table = object_section(r->object, ".eh_frame_hdr", &r->table_addr, &r->ntable);
	return r->table && r->ntable > HEADER &&
	       !memcmp(r->table, sorted_pairs, sizeof(sorted_pairs));
}

static uint64_t pair_start(const struct ruby *r, size_t i)
{
	int32_t at;

	memcpy(&at, r->table + HEADER + i * PAIR, sizeof(at));
	return r->bias + r->table_addr + (uint64_t)(int64_t)at;
}

/* Returns the number of pairs that begin at an address or before it. */
static size_t pairs_up_to(const struct ruby *r, uint64_t addr)
{
	size_t low = 0, high = (r->ntable - HEADER) / PAIR;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (pair_start(r, mid) <= addr)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static bool nth_function(const struct ruby *r, size_t i, struct ruby_range *ret)
{
	if (i + 1 >= (r->ntable - HEADER) / PAIR)
		return false;
	ret->start = pair_start(r, i);
	ret->size = pair_start(r, i + 1) - ret->start;
	return ret->size <= FUNCTION_MAX;
}

bool ruby_function(struct ruby *r, uint64_t addr, struct ruby_range *ret)
{
	size_t n;

	if (addr - r->text.start >= r->text.size || !read_table(r))
		return false;
	n = pairs_up_to(r, addr);
	return n && nth_function(r, n - 1, ret);
}

bool ruby_next_function(struct ruby *r, uint64_t *addr, struct ruby_range *ret)
{
	const uint64_t from = *addr;

	if (!read_table(r) || !nth_function(r, pairs_up_to(r, from - 1), ret) ||
	    ret->start - r->text.start >= r->text.size)
		return false;
	/* a function may be there twice, and then seems to have no instruction */
	*addr = ret->start + (ret->size ?: 1);
	return *addr > from;
}

void ruby_find_core(struct ruby *r, const struct ruby_code *c)
{
	uint64_t instruction;

	if (!r->core.size && ruby_word(r, c->instructions, &instruction))
		ruby_function(r, instruction, &r->core);
}

/* Returns true when a function calls the other one's first instruction. */
static bool calls(const struct ruby *r, const struct ruby_range *f, uint64_t to)
{
	uint32_t n = (uint32_t)f->size;
	cleanup_free uint8_t *code = xmalloc(n + 1);

	n = object_read(r->object, f->start - r->bias, code, n);
	for (uint32_t i = 0; i + CALL_SIZE <= n; i++) {
		int32_t distance;

		memcpy(&distance, code + i + 1, sizeof(distance));
		if (code[i] == CALL && f->start + i + CALL_SIZE + (uint64_t)(int64_t)distance == to)
			return true;
	}
	return false;
}

static bool resumes_loop(struct ruby *r, uint64_t label)
{
	struct ruby_range f;

	if (!r->core.size || !ruby_function(r, label, &f))
		return false;
	if (f.start != r->core.start && !calls(r, &f, r->core.start))
		return false;
	r->exec = f;
	return true;
}

bool ruby_is_exec(struct ruby *r, uint64_t label)
{
	uint64_t *known;
	bool new;

	if (r->exec.size)
		return label - r->exec.start < r->exec.size;
	if (r->labels.n >= LABELS_MAX)
		return false;
	known = hash_put(&r->labels, &label, sizeof(label), &new);
	if (new)
		*known = resumes_loop(r, label);
	return *known;
}
