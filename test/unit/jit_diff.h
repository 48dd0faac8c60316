/* One program through the interpreter and the compiler: same r0, same memory. */
#ifndef DESCRY_TEST_JIT_DIFF_H
#define DESCRY_TEST_JIT_DIFF_H

#include "isa/interp.h"
#include "jit_mock.h"
#include "jit_random.h"

static const uint32_t diff_values[RANDOM_MAPS] = { 1, 1, RANDOM_ENTRIES };
static uint8_t diff_memory[RANDOM_MAPS][RANDOM_ENTRIES * RANDOM_VALUE];

static bool diff_resolve(struct interp *in, const struct bpf_insn *insn, uint64_t *ret)
{
	if ((uint32_t)insn->imm >= RANDOM_MAPS)
		return false;
	*ret = (uintptr_t)diff_memory[insn->imm] + (uint32_t)insn[1].imm;
	return true;
}

static uint64_t diff_helper(struct interp *in, uint32_t id, const uint64_t a[5])
{
	uint64_t args[5] = { 0, a[2] }, r0;
	uint32_t *key;

	switch (id) {
	case BPF_FUNC_map_lookup_elem:
		key = interp_bytes(in, a[1], 4, false);
		return key && *key < RANDOM_ENTRIES ? a[0] + *key * RANDOM_VALUE : 0;
	case BPF_FUNC_loop:
		for (uint64_t i = 0; i < (uint32_t)a[0]; i++) {
			args[0] = i;
			if (!interp_call(in, a[1], args, &r0))
				return 0;
			if (r0)
				return i + 1;
		}
		return (uint32_t)a[0];
	}
	interp_fail(in, "helper %u", id);
	return 0;
}

static void diff_init(void)
{
	mock_init();
	mock_add_map(WIRE_MAP_ARRAY, RANDOM_VALUE, 1);
	mock_add_map(WIRE_MAP_THREAD_ARRAY, RANDOM_VALUE, 1);
	mock_add_map(WIRE_MAP_THREAD_ARRAY, RANDOM_VALUE, RANDOM_ENTRIES);
}

static void diff_reset(uint64_t seed)
{
	for (uint32_t m = 0; m < RANDOM_MAPS; m++)
		for (uint32_t i = 0; i < sizeof(diff_memory[m]); i++)
			diff_memory[m][i] = (uint8_t)((seed >> i % 57) + i);
}

static void diff_fill(void)
{
	for (uint32_t m = 0; m < RANDOM_MAPS; m++)
		memcpy(mock_value(m, 0), diff_memory[m], diff_values[m] * RANDOM_VALUE);
}

/* Fires the compiled program by a stub: its thunk may have a shortcut. Returns the map that is not
 * as the interpreter left it, or -1. */
static int diff_fire(uint64_t seed)
{
	uint8_t want[sizeof(diff_memory)];
	int differs = -1;

	memcpy(want, diff_memory, sizeof(want));
	diff_reset(seed);
	diff_fill();
	memcpy(diff_memory, want, sizeof(want));
	mock_know_thread();
	((void (*)(void))mock_stub((enum wire_stub_kind)(seed % WIRE_STUB_KINDS), 1, 2))();
	for (uint32_t m = 0; m < RANDOM_MAPS && differs < 0; m++)
		if (memcmp(mock_value(m, 0), diff_memory[m], diff_values[m] * RANDOM_VALUE))
			differs = (int)m;
	return differs;
}

/* Describes the difference, or returns NULL. */
static char *diff_run(const struct random_program *r, uint64_t seed, uint64_t *ret_r0)
{
	static const struct interp_ops ops = { .helper = diff_helper, .resolve = diff_resolve };
	struct interp_mem mem = { 0 };
	struct interp in;
	struct err *e;
	uint64_t want = 0, got;
	char *why = NULL;
	int differs;

	diff_reset(seed);
	diff_fill();
	interp_mem_add(&mem, diff_memory, sizeof(diff_memory), true);
	interp_init(&in, &ops, NULL, r->p, r->n, &mem);
	e = interp_run(&in, 0, 0, &want);
	interp_fini(&in);
	interp_mem_fini(&mem);
	if (e) {
		why = xasprintf("the interpreter refuses: %s", e->text);
		err_free(e);
		return why;
	}
	e = mock_compile(r->p, r->n);
	if (e) {
		why = xasprintf("the compiler refuses: %s", e->text);
		err_free(e);
		return why;
	}
	mock.calls[WIRE_AGENT_violation] = 0;
	got = mock_host(NULL, 0);
	*ret_r0 = want;
	if (mock.calls[WIRE_AGENT_violation])
		return xasprintf("violation at instruction %u", mock.insn);
	if (got != want)
		return xasprintf("interpreter 0x%llx, compiler 0x%llx", (unsigned long long)want,
				 (unsigned long long)got);
	for (uint32_t m = 0; m < RANDOM_MAPS; m++)
		if (memcmp(mock_value(m, 0), diff_memory[m], diff_values[m] * RANDOM_VALUE))
			return xasprintf("memory of map %u differs", m);
	differs = diff_fire(seed);
	if (differs >= 0)
		return xasprintf("memory of map %d differs after a firing", differs);
	return NULL;
}

#endif
