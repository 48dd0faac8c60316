/* Routines of bpf/ that are the agent's own code, beside the same routines in the interpreter. */
#include "unit.h"

#include <errno.h>

#include "agent_link.h"
#include "agent_world.h"
#include "data/image.h"
#include "insn.h"
#include "isa/interp.h"
#include "load/link.h"

enum { STACKS, COUNTERS, KEPT = 64, COUNTS = 64 };

static struct world w;
/* the interpreter's maps */
static struct {
	int64_t id;
	struct wire_stack s;
} kept[KEPT];
static uint32_t nkept;
static uint64_t counts[COUNTS];

static struct args {
	struct wire_stack *s;
	int64_t bytes;
} args;

static bool resolve(struct interp *in, const struct bpf_insn *insn, uint64_t *ret)
{
	*ret = (uint64_t)(uint32_t)insn->imm + 1000;
	return insn->src_reg == BPF_PSEUDO_MAP_FD;
}

static uint64_t helper(struct interp *in, uint32_t id, const uint64_t a[5])
{
	bool map = id == BPF_FUNC_map_lookup_elem || id == BPF_FUNC_map_update_elem;
	const void *value,
		*key = map ? interp_bytes(in, a[1], a[0] == 1000 + STACKS ? 8 : 4, false) : NULL;
	uint64_t r0, next[5] = { 0, a[2] };

	switch (id) {
	case BPF_FUNC_loop:
		for (uint64_t i = 0; i < (uint32_t)a[0]; i++) {
			next[0] = i;
			if (!interp_call(in, a[1], next, &r0))
				return 0;
			if (r0)
				return i + 1;
		}
		return (uint32_t)a[0];
	case BPF_FUNC_get_current_pid_tgid: return 0; /* values that the optimizer must not know */
	case BPF_FUNC_map_lookup_elem:
		if (!key)
			return 0;
		if (a[0] == 1000 + COUNTERS)
			return *(const uint32_t *)key < COUNTS
				       ? (uintptr_t)&counts[*(const uint32_t *)key]
				       : 0;
		for (uint32_t i = 0; i < nkept; i++)
			if (kept[i].id == *(const int64_t *)key)
				return (uintptr_t)&kept[i].s;
		return 0;
	case BPF_FUNC_map_update_elem:
		value = interp_bytes(in, a[2], sizeof(struct wire_stack), false);
		if (!key || !value || a[0] != 1000 + STACKS || a[3] != BPF_NOEXIST)
			break;
		if (nkept == KEPT)
			return (uint64_t)-E2BIG;
		kept[nkept].id = *(const int64_t *)key;
		kept[nkept++].s = *(const struct wire_stack *)value;
		return 0;
	}
	interp_fail(in, "helper %u", id);
	return 0;
}

static void no_error(struct err *e)
{
	if (e)
		fail_msg("%s", e->text);
}

static int64_t interpreted(const struct linked *l, struct wire_stack *s, int64_t bytes)
{
	static const struct interp_ops ops = { .helper = helper, .resolve = resolve };
	struct interp_mem mem = { 0 };
	struct interp in;
	uint64_t r0 = 0;
	struct err *e;

	args = (struct args){ s, bytes };
	interp_mem_add(&mem, &args, sizeof(args), true);
	interp_mem_add(&mem, s, sizeof(*s), true);
	interp_mem_add(&mem, counts, sizeof(counts), true);
	interp_mem_add(&mem, kept, sizeof(kept), true);
	interp_init(&in, &ops, NULL, l->insns, l->ninsns, &mem);
	e = interp_run(&in, 0, (uintptr_t)&args, &r0);
	no_error(e);
	interp_fini(&in);
	interp_mem_fini(&mem);
	return (int64_t)r0;
}

static void link_routine(struct linked *l)
{
	struct bpf_insn p[] = {
		ALU64_REG(MOV, 6, 1),
		LD64(1, 0, 0),
		LD64(2, 0, 0),
		LDX(DW, 3, 6, offsetof(struct args, s)),
		LDX(DW, 4, 6, offsetof(struct args, bytes)),
		INSN(BPF_JMP | BPF_CALL, 0, BPF_PSEUDO_CALL, 0, -1),
		EXIT(),
	};
	struct reloc relocs[] = {
		{ .insn = 1, .kind = RELOC_MAP, .target = STACKS },
		{ .insn = 3, .kind = RELOC_MAP, .target = COUNTERS },
		{ .insn = 7, .kind = RELOC_ROUTINE, .name = "d_stack_id" },
	};
	world_link(p, ARRAY_SIZE(p), relocs, ARRAY_SIZE(relocs), l);
}

static void test_stack_id(void **state)
{
	struct wire_stack *s, twin = { 0 };
	struct wire_thread *t;
	struct linked l;
	uint64_t *drops, r = 1, full = 0;
	int64_t id, want;

	world_make(&w);
	t = world_thread(&w, 4711);
	drops = (uint64_t *)((uint8_t *)t + w.maps[WORLD_COUNTERS].base) + WIRE_DROP_STACK;
	s = (struct wire_stack *)w.room;
	link_routine(&l);
	for (int i = 0; i < 400; i++) {
		/* frames, ways to end; errors; the same stack again */
		int64_t bytes = i % 16 == 15 ? -i : i % 129 < 128 ? i % 129 * 8 : 5;

		memset(s, 0, sizeof(*s));
		r = r * 6364136223846793005ull + (i % 3 ? 1442695040888963407ull : 0);
		s->end = (uint32_t)i % 5;
		for (uint32_t k = 0; k < WIRE_STACK_FRAMES; k++)
			s->pc[k] = i % 7 == 3 ? k : r * (k + 1) >> 16;
		if (i % 11 == 4 && i > 100) { /* one met before */
			*s = kept[i % (int)nkept].s;
			bytes = s->n * 8;
		}
		if (bytes > WIRE_STACK_FRAMES * 8)
			bytes = WIRE_STACK_FRAMES * 8;
		twin = *s;
		want = interpreted(&l, &twin, bytes);
		id = (int64_t)world_call(&w, WIRE_AGENT_stack_id, world_map(&w, WORLD_STACKS),
					 world_map(&w, WORLD_COUNTERS), (uintptr_t)s,
					 (uint64_t)bytes);
		assert_int_equal(id, want);
		assert_memory_equal(s, &twin, sizeof(*s));
		assert_int_equal(*drops, counts[WIRE_DROP_STACK]);
		full += id == -E2BIG;
		if (bytes < 0)
			assert_int_equal(id, bytes);
	}
	assert_int_equal(nkept, KEPT);
	assert_true(full > 100 && *drops == full);
	for (uint32_t i = 0; i < nkept; i++) {
		const struct wire_stack *v;

		memcpy(w.room, &kept[i].id, 8);
		v = (const struct wire_stack *)world_call(&w, WIRE_AGENT_map_lookup,
							  world_map(&w, WORLD_STACKS),
							  (uintptr_t)w.room, 0, 0);
		assert_non_null(v);
		assert_memory_equal(v, &kept[i].s, sizeof(*v));
	}
	linked_free(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stack_id),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
