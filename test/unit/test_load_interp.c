/* The interpreting engine on images made by hand. */
#include "unit.h"

#include <unistd.h>

#include "base/mem.h"
#include "insn.h"
#include "load/engine.h"
#include "wire/routines.h"

/* The maps every image here has, in this order. */
enum { M_STATE, M_DATA, M_CONTROL, M_COUNTERS, M_RODATA, M_AGG, M_TLS, M_ONE, M_COUNT };

static const char rodata[64] = "hello world";

static struct image_map maps[M_COUNT] = {
	{ "state", MAP_STATE, BPF_MAP_TYPE_ARRAY, 4, sizeof(struct wire_state), 1, BPF_F_MMAPABLE,
	  NULL, 0 },
	{ "data", MAP_DATA, BPF_MAP_TYPE_RINGBUF, 0, 0, 4096, 0, NULL, 0 },
	{ "control", MAP_CONTROL, BPF_MAP_TYPE_RINGBUF, 0, 0, 4096, 0, NULL, 0 },
	{ "counters", MAP_COUNTERS, BPF_MAP_TYPE_PERCPU_ARRAY, 4, 8, WIRE_FIXED_COUNTERS + 2, 0,
	  NULL, 0 },
	{ "rodata", MAP_RODATA, BPF_MAP_TYPE_ARRAY, 4, sizeof(rodata), 1, BPF_F_RDONLY_PROG, rodata,
	  0 },
	{ "agg", MAP_AGG, BPF_MAP_TYPE_PERCPU_HASH, 8, 8, 3, 0, NULL, 0 },
	{ "tls", MAP_TLS, BPF_MAP_TYPE_TASK_STORAGE, 4, 16, 0, BPF_F_NO_PREALLOC, NULL, 0 },
	{ "one", MAP_AGG, BPF_MAP_TYPE_PERCPU_ARRAY, 4, 8, 1, 0, NULL, 0 },
};

static struct agg aggs[] = {
	{ .name = "a", .key_size = 8, .nwords = 1, .map = M_AGG },
	{ .name = "b", .key_size = 0, .nwords = 1, .map = M_ONE },
};

/* One program with the relocations that stand in its LD_IMM64s: src_reg as linked, imm = map,
 * second imm = addend. */
struct maker {
	struct image img;
	struct image_prog prog;
	struct image_probe probe;
	struct probe p;
	struct reloc relocs[32];
	uint32_t probes[1];
	struct engine *e;
};

static void make(struct maker *m, enum attach_kind attach, struct bpf_insn *insns, uint32_t n)
{
	memset(m, 0, sizeof(*m));
	m->probe = (struct image_probe){
		.probe = &m->p, .prov = "p", .mod = "m", .func = "f", .name = "n"
	};
	m->p.kind = attach;
	m->p.period_ns = 2000000;
	m->prog = (struct image_prog){ .name = "test",
				       .attach = attach,
				       .insns = insns,
				       .ninsns = n,
				       .relocs = m->relocs,
				       .probes = m->probes,
				       .nprobes = 1 };
	m->prog.locs = xcalloc(n, sizeof(loc_t));
	for (uint32_t i = 0; i < n; i++) {
		struct reloc *r = &m->relocs[m->prog.nrelocs];

		if (ebpf_is_ld_imm64(&insns[i]) && insns[i].src_reg) {
			r->kind = insns[i].src_reg == BPF_PSEUDO_MAP_FD ? RELOC_MAP
									: RELOC_MAP_VALUE;
			r->target = (uint32_t)insns[i].imm;
			r->addend = insns[i + 1].imm;
		} else if (insns[i].code == (BPF_JMP | BPF_CALL) &&
			   insns[i].src_reg == BPF_PSEUDO_CALL) {
			static const char *const names[] = { "d_strlen", "d_quantize_bucket",
							     "d_lltostr" };

			r->kind = RELOC_ROUTINE;
			r->name = names[insns[i].imm];
		} else {
			continue;
		}
		r->insn = i;
		m->prog.nrelocs++;
	}
	m->img = (struct image){ .maps = maps,
				 .nmaps = M_COUNT,
				 .progs = &m->prog,
				 .nprogs = 1,
				 .probes = &m->probe,
				 .nprobes = 1,
				 .aggs = aggs,
				 .naggs = 2 };
	m->e = engine_interp.new(&(struct engine_setting){ 0 });
}

static void load(struct maker *m)
{
	struct err *e = m->e->ops->load(m->e, &m->img, true);

	if (e)
		fail_msg("%s", e->text);
}

static void unmake(struct maker *m)
{
	m->e->ops->free(m->e);
	free(m->prog.locs);
}

static void fire(struct maker *m)
{
	struct err *e = m->e->ops->fire(m->e, 0);

	if (e)
		fail_msg("%s", e->text);
}

#define MAP(r, map) LD64(r, BPF_PSEUDO_MAP_FD, map)
#define VALUE_OF(r, map, off) LD64(r, EBPF_PSEUDO_MAP_VALUE, (uint64_t)(off) << 32 | (map))
#define ROUTINE(i) INSN(BPF_JMP | BPF_CALL, 0, BPF_PSEUDO_CALL, 0, i)

struct seen {
	uint32_t n, control, sizes[8];
	uint64_t first[8];
};

static void on_record(void *arg, const struct wire_record *r, uint32_t size, bool control)
{
	struct seen *s = arg;

	if (s->n < 8) {
		s->sizes[s->n] = size;
		s->first[s->n] = r->time;
	}
	s->n++;
	s->control += control;
}

static void test_records_and_drops(void **state)
{
	struct bpf_insn p[] = {
		MAP(1, M_DATA),
		ALU64_IMM(MOV, 2, 1024),
		ALU64_IMM(MOV, 3, 0),
		CALL(BPF_FUNC_ringbuf_reserve),
		JMP_IMM(JEQ, 0, 0, 5),
		ST(DW, 0, 0, 77),
		ST(W, 0, 1020, 1),
		ALU64_REG(MOV, 1, 0),
		ALU64_IMM(MOV, 2, 0),
		CALL(BPF_FUNC_ringbuf_submit),
		/* and one of 8 bytes from the stack to the control ring */
		ST(DW, 10, -8, 5),
		MAP(1, M_CONTROL),
		ALU64_REG(MOV, 2, 10),
		ALU64_IMM(ADD, 2, -8),
		ALU64_IMM(MOV, 3, 8),
		ALU64_IMM(MOV, 4, 0),
		CALL(BPF_FUNC_ringbuf_output),
		ALU64_IMM(MOV, 0, 0),
		EXIT(),
	};
	struct seen s = { 0 };
	struct maker m;

	make(&m, ATTACH_SELF, p, ARRAY_SIZE(p));
	load(&m);
	for (int i = 0; i < 5; i++)
		fire(&m);
	/* 1024 + 8 bytes each: three fit into 4096 */
	m.e->ops->drain(m.e, on_record, &s);
	assert_int_equal(s.n, 3 + 5);
	assert_int_equal(s.control, 5);
	assert_int_equal(s.sizes[0], 1024);
	assert_int_equal(s.first[0], 77);
	assert_int_equal(s.first[3], 5);
	memset(&s, 0, sizeof(s));
	m.e->ops->drain(m.e, on_record, &s);
	assert_int_equal(s.n, 0);
	fire(&m);
	m.e->ops->drain(m.e, on_record, &s);
	assert_int_equal(s.n, 2);
	unmake(&m);
}

struct rows {
	uint32_t n;
	uint64_t sum_keys, sum_values;
	bool null_key;
};

static void on_row(void *arg, const void *key, const uint64_t *values, uint32_t ncpus)
{
	struct rows *r = arg;

	assert_int_equal(ncpus, 1);
	r->n++;
	r->null_key = !key;
	r->sum_keys += key ? *(const uint64_t *)key : 0;
	r->sum_values += values[0];
}

static void test_aggregations(void **state)
{
	/* @a[value of word 0 of the tls]++, tls word++; @b += 2 */
	struct bpf_insn p[] = {
		CALL(BPF_FUNC_get_current_task_btf),
		ALU64_REG(MOV, 2, 0),
		MAP(1, M_TLS),
		ALU64_IMM(MOV, 3, 0),
		ALU64_IMM(MOV, 4, BPF_LOCAL_STORAGE_GET_F_CREATE),
		CALL(BPF_FUNC_task_storage_get),
		LDX(DW, 6, 0, 0),
		ALU64_REG(MOV, 1, 6),
		ALU64_IMM(ADD, 1, 1),
		STX(DW, 0, 1, 0),
		STX(DW, 10, 6, -8),
		ST(DW, 10, -16, 1),
		MAP(1, M_AGG),
		ALU64_REG(MOV, 2, 10),
		ALU64_IMM(ADD, 2, -8),
		ALU64_REG(MOV, 3, 10),
		ALU64_IMM(ADD, 3, -16),
		ALU64_IMM(MOV, 4, BPF_NOEXIST),
		CALL(BPF_FUNC_map_update_elem),
		ALU64_REG(MOV, 6, 0),
		ST(W, 10, -4, 0),
		MAP(1, M_ONE),
		ALU64_REG(MOV, 2, 10),
		ALU64_IMM(ADD, 2, -4),
		CALL(BPF_FUNC_map_lookup_elem),
		LDX(DW, 1, 0, 0),
		ALU64_IMM(ADD, 1, 2),
		STX(DW, 0, 1, 0),
		/* the result of the update, for the test */
		VALUE_OF(1, M_STATE, offsetof(struct wire_state, exit_status)),
		STX(W, 1, 6, 0),
		ALU64_IMM(MOV, 0, 0),
		EXIT(),
	};
	uint64_t key = 1, value = 99;
	struct rows r = { 0 };
	struct maker m;

	make(&m, ATTACH_SELF, p, ARRAY_SIZE(p));
	load(&m);
	for (int i = 0; i < 3; i++)
		fire(&m);
	assert_int_equal(m.e->state->exit_status, 0);
	fire(&m); /* the map has three entries */
	assert_int_equal(m.e->state->exit_status, -7 /* E2BIG */);
	assert_null(m.e->ops->agg_read(m.e, 0, on_row, &r));
	assert_int_equal(r.n, 3);
	assert_int_equal(r.sum_keys, 0 + 1 + 2);
	assert_int_equal(r.sum_values, 3);
	assert_null(m.e->ops->agg_delete(m.e, 0, &key, &value));
	assert_int_equal(value, 1);
	assert_null(m.e->ops->agg_delete(m.e, 0, &key, &value));
	assert_int_equal(value, 0);
	fire(&m); /* there is room again */
	assert_int_equal(m.e->state->exit_status, 0);
	memset(&r, 0, sizeof(r));
	assert_null(m.e->ops->agg_read(m.e, 1, on_row, &r));
	assert_int_equal(r.n, 1);
	assert_true(r.null_key);
	assert_int_equal(r.sum_values, 10);
	assert_null(m.e->ops->agg_delete(m.e, 1, NULL, &value));
	assert_int_equal(value, 10);
	unmake(&m);
}

static void test_routines(void **state)
{
	struct bpf_insn p[] = {
		VALUE_OF(1, M_RODATA, 6),
		ALU64_IMM(MOV, 2, 64),
		ROUTINE(0),
		ALU64_REG(MOV, 6, 0),
		ALU64_IMM(MOV, 1, 1000),
		ROUTINE(1),
		ALU64_IMM(MUL, 0, 100),
		ALU64_REG(ADD, 6, 0),
		VALUE_OF(1, M_STATE, offsetof(struct wire_state, exit_status)),
		STX(W, 1, 6, 0),
		/* a bad address is -EFAULT */
		ALU64_IMM(MOV, 1, 16),
		ALU64_IMM(MOV, 2, 64),
		ROUTINE(0),
		VALUE_OF(1, M_STATE, offsetof(struct wire_state, target_pid)),
		STX(W, 1, 0, 0),
		ALU64_IMM(MOV, 0, 0),
		EXIT(),
	};
	struct engine_prog_report report;
	struct maker m;

	make(&m, ATTACH_SELF, p, ARRAY_SIZE(p));
	load(&m);
	fire(&m);
	/* strlen("world") + 100 * (64 + 9) */
	assert_int_equal(m.e->state->exit_status, 5 + 7300);
	assert_int_equal((int32_t)m.e->state->target_pid, -14);
	assert_int_equal(m.e->ops->report(m.e, &report, 1), 1);
	assert_string_equal(report.mode, "interpreted");
	assert_int_equal(report.runs, 1);
	assert_true(report.ninsns > ARRAY_SIZE(p));
	unmake(&m);
}

static void test_helpers(void **state)
{
	/* reads its own comm by way of the task, and text from a page's end */
	struct bpf_insn p[] = {
		CALL(BPF_FUNC_get_current_pid_tgid),
		ALU64_IMM(RSH, 0, 32),
		VALUE_OF(6, M_STATE, 0),
		STX(W, 6, 0, offsetof(struct wire_state, target_pid)),
		VALUE_OF(3, M_RODATA, 0),
		ALU64_REG(MOV, 1, 10),
		ALU64_IMM(ADD, 1, -16),
		ALU64_IMM(MOV, 2, 8),
		CALL(BPF_FUNC_probe_read_kernel_str),
		STX(W, 6, 0, offsetof(struct wire_state, late_pending)),
		LDX(DW, 1, 10, -16),
		STX(DW, 6, 1, offsetof(struct wire_state, boot_offset)),
		ALU64_REG(MOV, 1, 10),
		ALU64_IMM(ADD, 1, -16),
		ALU64_IMM(MOV, 2, 16),
		LD64(3, 0, 0xffff888000000000),
		CALL(BPF_FUNC_probe_read_kernel),
		STX(W, 6, 0, offsetof(struct wire_state, exit_status)),
		ALU64_IMM(MOV, 0, 0),
		EXIT(),
	};
	struct maker m;

	make(&m, ATTACH_SELF, p, ARRAY_SIZE(p));
	load(&m);
	fire(&m);
	assert_int_equal(m.e->state->target_pid, getpid());
	assert_int_equal(m.e->state->late_pending, 8);
	assert_memory_equal(&m.e->state->boot_offset, "hello w", 8);
	assert_int_equal(m.e->state->exit_status, -14);
	unmake(&m);
}

static void test_errors(void **state)
{
	struct bpf_insn wild[] = { ST(DW, 10, 8, 0), EXIT() };
	struct bpf_insn ro[] = { VALUE_OF(1, M_RODATA, 0), ST(B, 1, 0, 1), EXIT() };
	struct bpf_insn no_map[] = { ALU64_IMM(MOV, 1, 5), CALL(BPF_FUNC_map_lookup_elem), EXIT() };
	struct bpf_insn odd[] = { CALL(BPF_FUNC_skb_store_bytes), EXIT() };
	static const char *const want[] = { "write of 8 bytes", "write of 1 bytes", "is not a map",
					    "helper skb_store_bytes is not known" };
	struct bpf_insn *progs[] = { wild, ro, no_map, odd };
	uint32_t sizes[] = { ARRAY_SIZE(wild), ARRAY_SIZE(ro), ARRAY_SIZE(no_map),
			     ARRAY_SIZE(odd) };
	struct maker m;

	for (size_t i = 0; i < ARRAY_SIZE(progs); i++) {
		struct err *e;

		make(&m, ATTACH_SELF, progs[i], sizes[i]);
		load(&m);
		e = m.e->ops->fire(m.e, 0);
		assert_non_null(e);
		if (!strstr(e->text, want[i]))
			fail_msg("'%s' in '%s'", want[i], e->text);
		err_free(e);
		unmake(&m);
	}
	make(&m, ATTACH_UPROBE, wild, ARRAY_SIZE(wild));
	load(&m);
	{
		cleanup_err struct err *e = m.e->ops->attach(m.e);

		assert_non_null(e);
		assert_non_null(strstr(e->text, "p:m:f:n cannot fire in the interpreter"));
	}
	unmake(&m);
}

static void test_timers(void **state)
{
	/* counts its probe's firings in the counters map */
	struct bpf_insn p[] = {
		ST(W, 10, -4, WIRE_FIXED_COUNTERS + WIRE_PROBE_FIRED),
		MAP(1, M_COUNTERS),
		ALU64_REG(MOV, 2, 10),
		ALU64_IMM(ADD, 2, -4),
		CALL(BPF_FUNC_map_lookup_elem),
		JMP_IMM(JEQ, 0, 0, 3),
		LDX(DW, 1, 0, 0),
		ALU64_IMM(ADD, 1, 1),
		STX(DW, 0, 1, 0),
		ALU64_IMM(MOV, 0, 0),
		EXIT(),
	};
	struct bpf_insn bad[] = { LDX(DW, 0, 10, 8), EXIT() };
	struct engine_counters c;
	struct maker m;
	struct err *e;

	make(&m, ATTACH_TICK, p, ARRAY_SIZE(p));
	load(&m);
	m.e->state->active = WIRE_ON;
	assert_null(m.e->ops->attach(m.e));
	assert_true(m.e->ops->wait_fd(m.e) >= 0);
	for (int i = 0; i < 200; i++) {
		m.e->ops->poll(m.e, 100);
		m.e->ops->counters(m.e, &c);
		if (c.fired[0] >= 3)
			break;
	}
	assert_true(c.fired[0] >= 3);
	assert_int_equal(c.dropped[0], 0);
	assert_null(m.e->ops->detach(m.e));
	assert_int_equal(m.e->ops->wait_fd(m.e), -1);
	unmake(&m);

	/* a failing program ends the run */
	make(&m, ATTACH_PROFILE, bad, ARRAY_SIZE(bad));
	load(&m);
	m.e->state->active = WIRE_ON;
	assert_null(m.e->ops->attach(m.e));
	for (int i = 0; i < 200 && !m.e->state->exiting; i++)
		m.e->ops->poll(m.e, 100);
	assert_int_equal(m.e->state->exiting, 1);
	e = m.e->ops->detach(m.e);
	assert_non_null(e);
	err_free(e);
	unmake(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_records_and_drops),
		cmocka_unit_test(test_aggregations),
		cmocka_unit_test(test_routines),
		cmocka_unit_test(test_helpers),
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_timers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
