/* src/memory/leaks/ on memory that is made up. */
#include "unit.h"

#include <errno.h>

#include <unistd.h>

#include "heap_memory.h"
#include "memory/leaks/typed_blocks.h"
#include "memory/alloc/leak_stacks.h"
#include "memory/alloc/trace.h"

static struct heap_memory mem;

static int setup(void **state)
{
	(void)state;
	heap_memory_init(&mem);
	return 0;
}

static struct leaks *find(void)
{
	struct memory_copy *c = NULL;
	struct leaks *l = NULL;

	assert_null(memory_copy(&mem.space, &c));
	assert_null(leaks_find(c, &l));
	memory_copy_free(c);
	return l;
}

/* Expects these roots, by their addresses. */
static void expect(const uint64_t *addr, uint32_t n)
{
	struct leaks *l = find();

	assert_false(l->torn);
	assert_int_equal(l->blocks.n, n);
	for (uint32_t i = 0; i < n; i++) {
		bool found = false;

		for (uint32_t k = 0; k < n; k++)
			found |= l->blocks.v[k].addr == addr[i];
		assert_true(found);
	}
	leaks_free(l);
}

static void roots(void **state)
{
	uint64_t lost, a, b, c, d;

	(void)state;
	a = heap_memory_chunk(&mem, 0x20, false);
	lost = heap_memory_chunk(&mem, 0x40, false);
	b = heap_memory_chunk(&mem, 0x40, true);
	c = heap_memory_chunk(&mem, 0x30, false);
	d = heap_memory_chunk(&mem, 0x30, true);
	heap_memory_put(&mem, HM_VAR, a);
	heap_memory_put(&mem, a + 8, b);                  /* through a block */
	mem.thread.regs.r12 = c + 5;                      /* a register, into the middle */
	heap_memory_put(&mem, HM_STACK + 0x1800, d + 39); /* the stack; its last byte */
	expect(&lost, 1);
	/* below the stack pointer nothing counts, but for the red zone */
	heap_memory_put(&mem, HM_STACK + 0x800, lost);
	expect(&lost, 1);
	heap_memory_put(&mem, HM_STACK + 0x1000 - 128, lost);
	expect(NULL, 0);
}

static void what_holds_what(void **state)
{
	uint64_t head, v[6];
	struct leaks *l;

	(void)state;
	for (int i = 0; i < 6; i++)
		v[i] = heap_memory_chunk(&mem, 0x20, i & 1);
	heap_memory_put(&mem, v[0], v[1]); /* a list that begins in the middle of the heap */
	heap_memory_put(&mem, v[2], v[0]);
	heap_memory_put(&mem, v[3], v[4]); /* a circle with a block that it leads to */
	heap_memory_put(&mem, v[4], v[3]);
	heap_memory_put(&mem, v[4] + 8, v[5]);
	l = find();
	assert_int_equal(l->blocks.n, 2);
	assert_int_equal(l->leaked, 6);
	for (uint32_t i = 0; i < 2; i++) {
		head = l->blocks.v[i].addr;
		assert_true(head == v[2] || head == v[3] || head == v[4]);
		assert_int_equal(l->blocks.v[i].held, 2);
	}
	leaks_free(l);
}

static void free_chunks(void **state)
{
	uint64_t cache, a, b, fast, more, bin, lost;

	(void)state;
	cache = heap_memory_chunk(&mem, 0x290, false);
	a = heap_memory_chunk(&mem, 0x30, false);
	b = heap_memory_chunk(&mem, 0x30, true);
	fast = heap_memory_chunk(&mem, 0x20, false);
	more = heap_memory_chunk(&mem, 0x20, false);
	bin = heap_memory_chunk(&mem, 0x500, false);
	lost = heap_memory_chunk(&mem, 0x20, false);
	heap_memory_put(&mem, HM_VAR, cache);
	heap_memory_put(&mem, cache, 2ull << 16); /* two of 0x30 */
	heap_memory_put(&mem, cache + 128 + 8, a);
	heap_memory_put(&mem, a, a >> 12 ^ b);
	heap_memory_put(&mem, b, b >> 12);
	heap_memory_put(&mem, HM_ARENA + ARENA_FASTBINS, fast - 16);
	heap_memory_put(&mem, fast, fast >> 12 ^ (more - 16));
	heap_memory_put(&mem, more, more >> 12);
	heap_memory_put(&mem, lost - 16, 0x500); /* the chunk before is free */
	heap_memory_put(&mem, lost - 8, 0x20);
	heap_memory_put(&mem, bin, HM_ARENA + ARENA_BINS - 16);
	heap_memory_put(&mem, bin + 8, HM_ARENA + ARENA_BINS - 16);
	heap_memory_put(&mem, HM_ARENA + ARENA_BINS, bin - 16);
	heap_memory_put(&mem, HM_ARENA + ARENA_BINS + 8, bin - 16);
	expect(&lost, 1);
}

static const char *no_class(void *arg, uint64_t word)
{
	(void)arg;
	(void)word;
	return NULL;
}

/* struct node { node *next; long n; } */
static void types(void **state)
{
	uint64_t table, a, b, lost, text;
	struct typed_blocks t = { .maps = &mem.maps };
	struct memory_copy *c = NULL;
	struct type_graph *g = type_graph_new();
	struct leaks *l = NULL;
	type_id node;
	uint32_t i;

	(void)state;
	table = heap_memory_chunk(&mem, 0x40, false); /* an array of pointers */
	a = heap_memory_chunk(&mem, 0x20, false);
	b = heap_memory_chunk(&mem, 0x20, false);
	lost = heap_memory_chunk(&mem, 0x20, false);
	text = heap_memory_chunk(&mem, 0x20, false);
	heap_memory_put(&mem, HM_VAR, table);
	heap_memory_put(&mem, table + 24, a);
	heap_memory_put(&mem, a, b);
	heap_memory_put(&mem, b, 7); /* no pointer */
	heap_memory_put(&mem, lost, b);
	heap_memory_put(&mem, text, 0x6161616161616161);
	assert_null(memory_copy(&mem.space, &c));
	assert_null(leaks_find(c, &l));
	assert_int_equal(l->blocks.n, 2);
	t.c = c;
	t.h = l->heap;
	layouts_init(&t.layouts, g, &l->arena);
	node = type_new_sou(g, TYPE_STRUCT, "node");
	type_add_member(g, node, "next", type_new_pointer(g, node), 0);
	type_add_member(g, node, "n", T_LONG, 0);
	type_complete(g, node);
	layouts_add(&t.layouts,
		    &(struct type_user_item){ .name = "node", .type = node, .is_tag = true });
	layouts_ready(&t.layouts);
	vec_push(&t.variables,
		 (struct typed_variable){ HM_VAR, type_new_pointer(g, type_new_pointer(g, node)) });
	typed_blocks_find(&t, no_class, NULL);
	i = t.of[heap_chunk(l->heap, a)];
	assert_true(i && i == t.of[heap_chunk(l->heap, b)]);
	assert_string_equal(t.layouts.v.v[i].name, "struct node");
	assert_int_equal(t.of[heap_chunk(l->heap, lost)], 0);
	assert_int_equal(typed_block_guess(&t, heap_chunk(l->heap, lost)), i);
	assert_int_equal(typed_block_guess(&t, heap_chunk(l->heap, text)), 0);
	typed_blocks_fini(&t);
	type_graph_free(g);
	leaks_free(l);
	memory_copy_free(c);
}

static void mapped(void **state)
{
	uint64_t lost = HM_MAPPED + 0x1010, kept = HM_MAPPED + 0x10;

	(void)state;
	heap_memory_put(&mem, kept - 8, 0x1000 | 2);
	heap_memory_put(&mem, lost - 8, 0x1000 | 2);
	heap_memory_put(&mem, HM_VAR, kept + 0xfe0);
	expect(&lost, 1);
}

/* The end of a page as a header whose block is the byte behind it. */
static void forged_mapped(void **state)
{
	uint64_t whole = HM_MAPPED + 0x10;
	struct leaks *l;

	(void)state;
	heap_memory_put(&mem, HM_MAPPED + 8, 0x1000 | 2);
	heap_memory_put(&mem, HM_MAPPED + 0xff0, 0xff0);
	heap_memory_put(&mem, HM_MAPPED + 0xff8, 0x10 | 2);
	expect(&whole, 1);
	l = find();
	assert_int_equal(heap_chunk(l->heap, whole), l->blocks.v[0].chunk);
	leaks_free(l);
}

/* The stacks of a recording share the texts of their frames, which may be long. */
static void stacks_share(void **state)
{
	char path[] = "/tmp/descry-leaks-XXXXXX";
	struct alloc_event event = { .op = ALLOC_MALLOC, .thread = 1, .size = 8 };
	struct alloc_writer *w;
	uint32_t frames[2];
	struct leaks *l;

	(void)state;
	close(mkstemp(path));
	assert_null(alloc_writer_new(path, &w));
	alloc_writer_thread(w, 100);
	frames[1] = alloc_writer_frame(w, "main", 4);
	for (uint32_t i = 1; i <= 2; i++) {
		frames[0] = alloc_writer_frame(w, i == 1 ? "one" : "two", 3);
		event.stack = alloc_writer_stack(w, frames, 2);
		event.addr = heap_memory_chunk(&mem, 0x20, false);
		alloc_write(w, &event);
	}
	assert_null(alloc_writer_end(w));
	l = find();
	assert_null(leak_stacks(path, 0, l));
	assert_int_equal(l->blocks.n, 2);
	assert_int_equal(l->stacks.n, 3);
	for (uint32_t i = 0; i < 2; i++) {
		const struct leaks_stack *s = &l->stacks.v[l->blocks.v[i].stack];

		assert_int_equal(s->n, 2);
		assert_string_equal(s->frames[0], i ? "two" : "one");
		assert_string_equal(s->frames[1], "main");
	}
	assert_ptr_equal(l->stacks.v[1].frames[1], l->stacks.v[2].frames[1]);
	leaks_free(l);
	unlink(path);
}

static void damage(void **state)
{
	uint64_t a = heap_memory_chunk(&mem, 0x20, false);
	struct leaks *l;

	(void)state;
	heap_memory_chunk(&mem, 0x40, false);
	for (int i = 0; i < 40; i++)
		heap_memory_chunk(&mem, 0x20, false);
	heap_memory_put(&mem, a + 0x40 + 0x20 * 30 + 24, 0xfffffffffffffff1);
	l = find();
	assert_true(l->torn);
	assert_int_equal(l->remarks.n, 1);
	assert_non_null(strstr(l->remarks.v[0], "damaged"));
	leaks_free(l);
}

static void not_glibc(void **state)
{
	struct memory_copy *c = NULL;
	struct leaks *l = NULL;
	struct err *e;

	(void)state;
	heap_memory_put(&mem, HM_ARENA + ARENA_BINS + 64, 7);
	assert_null(memory_copy(&mem.space, &c));
	e = leaks_find(c, &l);
	assert_non_null(e);
	assert_int_equal(e->code, ENOENT);
	err_free(e);
	memory_copy_free(c);
}

/* A process can have more memory than the machine: the same pages, in many places. */
static void too_large(void **state)
{
	struct memory_copy *c = NULL;
	struct err *e;

	(void)state;
	mem.map[HM_PARTS - 1].end = mem.map[HM_PARTS - 1].start + (1ull << 44);
	e = memory_copy(&mem.space, &c);
	assert_non_null(e);
	assert_int_equal(e->code, ENOMEM);
	assert_non_null(strstr(e->text, "available"));
	assert_null(c);
	err_free(e);
}

/* Segments of a core file can begin and end anywhere. Words of them lie behind the last byte. */
static void odd_segment(void **state)
{
	struct mapping *m = &mem.map[HM_PARTS - 1];
	const struct memory_region *r;
	struct memory_copy *c = NULL;
	uint64_t last;

	(void)state;
	m->start += 3;
	m->end = m->start + HM_SIZE / 2;
	assert_null(memory_copy(&mem.space, &c));
	r = memory_region_at(c, m->start);
	assert_non_null(r);
	last = r->end & ~7ull;
	assert_true(last + 8 > r->end);
	assert_true((uintptr_t)r->bytes + (last - r->start) + 8 <= r->room.end);
	assert_int_equal(memory_word(r, last) >> 8 * (r->end - last), 0);
	memory_copy_free(c);
}

/* A core file can have any number as a register. */
static void forged_thread(void **state)
{
	(void)state;
	mem.thread.regs.fs_base = UINT64_MAX - 7;
	expect(NULL, 0);
}

/* Heaps in the middle of another, which all have the same chunks. */
static void forged_heaps(void **state)
{
	enum { HEAPS = 16, STEP = 0x40, AT = HM_SECOND + 0xc00, TAIL = HM_SECOND + 0x1800 };
	struct leaks *l;

	(void)state;
	for (uint64_t i = 0, heap = AT; i < HEAPS; i++, heap += STEP) {
		heap_memory_put(&mem, heap, HM_SECOND + 0x30); /* its arena, ... */
		heap_memory_put(&mem, heap + 8, heap + STEP);
		heap_memory_put(&mem, heap + 16, HM_SECOND + HM_SIZE - heap);
		heap_memory_put(&mem, heap + 0x38, (TAIL - (heap + 0x30)) | 1);
	}
	for (uint64_t at = TAIL; at < HM_SECOND + HM_SIZE; at += 0x20)
		heap_memory_put(&mem, at + 8, 0x21);
	heap_memory_put(&mem, HM_SECOND + 8, AT);
	l = find();
	assert_true(l->torn);
	assert_true(l->used_bytes + l->unused_bytes <= HM_PARTS * HM_SIZE);
	leaks_free(l);
}

enum { BIG = 2 << 20, LIST = 20000, CACHES = 1000 };
static uint8_t *big;

static uint32_t read_big(struct space *s, uint64_t addr, void *buf, uint32_t n, uint32_t *ret_gap)
{
	if (addr < HM_HEAP || addr >= HM_HEAP + BIG)
		return heap_memory_read(s, addr, buf, n, ret_gap);
	n = n < HM_HEAP + BIG - addr ? n : (uint32_t)(HM_HEAP + BIG - addr);
	memcpy(buf, big + (addr - HM_HEAP), n);
	return n;
}

static void put_big(uint64_t addr, uint64_t v)
{
	memcpy(big + (addr - HM_HEAP), &v, sizeof(v));
}

/* A thousand caches whose first list is the same, and whose second is none. */
static void forged_caches(void **state)
{
	struct space_ops ops = *mem.space.ops;
	uint64_t at = HM_HEAP;
	struct leaks *l;

	(void)state;
	big = calloc(1, BIG);
	ops.memory[0].read = read_big;
	mem.space.ops = &ops;
	mem.map[1].end = HM_HEAP + BIG;
	for (int i = 0; i < LIST; i++, at += 0x20) {
		put_big(at + 8, 0x21);
		put_big(at + 16, i + 1 < LIST ? at + 0x30 : 0);
	}
	for (int i = 0; i < CACHES; i++, at += 0x290) {
		put_big(at + 8, 0x291);
		put_big(at + 16, LIST | 5 << 16);
		put_big(at + 16 + 128, HM_HEAP + 16);
		put_big(at + 16 + 136, HM_HEAP + 8);
	}
	put_big(at + 8, (HM_HEAP + BIG - at) | 1);
	heap_memory_arena(&mem, HM_ARENA, HM_SECOND + 0x30, at, BIG);
	l = find();
	assert_true(l->torn);
	assert_non_null(strstr(l->remarks.v[0], "lists of free blocks"));
	leaks_free(l);
	free(big);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(roots, setup),
		cmocka_unit_test_setup(what_holds_what, setup),
		cmocka_unit_test_setup(free_chunks, setup),
		cmocka_unit_test_setup(types, setup),
		cmocka_unit_test_setup(mapped, setup),
		cmocka_unit_test_setup(forged_mapped, setup),
		cmocka_unit_test_setup(stacks_share, setup),
		cmocka_unit_test_setup(damage, setup),
		cmocka_unit_test_setup(not_glibc, setup),
		cmocka_unit_test_setup(too_large, setup),
		cmocka_unit_test_setup(odd_segment, setup),
		cmocka_unit_test_setup(forged_thread, setup),
		cmocka_unit_test_setup(forged_heaps, setup),
		cmocka_unit_test_setup(forged_caches, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
