/* The kernel engine on images built by hand. */
#include "kernel_test.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "base/io.h"
#include "program/object/object.h"
#include "wire/syscall.h"

enum { M_STATE, M_DATA, M_CONTROL, M_COUNTERS, M_SYSCALLS, M_AGG, M_AGG1, M_COUNT };

static const char *const source = "syscall::getppid:entry { @ = count(); }\n";

/* An image with the maps every program has, a keyed and an unkeyed aggregation. */
struct fixture {
	struct image img;
	struct image_map maps[M_COUNT];
	struct agg aggs[2];
	struct diags diags;
	struct options options;
	struct wire_syscall table[WIRE_SYSCALL_MAX];
};

static void fixture_init(struct fixture *f)
{
	memset(f, 0, sizeof(*f));
	f->maps[M_STATE] = (struct image_map){ .name = "state",
					       .role = MAP_STATE,
					       .type = BPF_MAP_TYPE_ARRAY,
					       .key_size = 4,
					       .value_size = sizeof(struct wire_state),
					       .max_entries = 1,
					       .flags = BPF_F_MMAPABLE };
	f->maps[M_DATA] = (struct image_map){
		.name = "data", .role = MAP_DATA, .type = BPF_MAP_TYPE_RINGBUF, .max_entries = 60000
	};
	f->maps[M_CONTROL] = (struct image_map){ .name = "control",
						 .role = MAP_CONTROL,
						 .type = BPF_MAP_TYPE_RINGBUF,
						 .max_entries = 4096 };
	f->maps[M_COUNTERS] =
		(struct image_map){ .name = "counters",
				    .role = MAP_COUNTERS,
				    .type = BPF_MAP_TYPE_PERCPU_ARRAY,
				    .key_size = 4,
				    .value_size = 8,
				    .max_entries = WIRE_FIXED_COUNTERS + 8 * WIRE_PROBE_SLOTS };
	f->maps[M_SYSCALLS] = (struct image_map){ .name = "syscalls",
						  .role = MAP_SYSCALLS,
						  .type = BPF_MAP_TYPE_ARRAY,
						  .key_size = 4,
						  .value_size = sizeof(struct wire_syscall),
						  .max_entries = WIRE_SYSCALL_MAX,
						  .init = f->table,
						  .ninit = WIRE_SYSCALL_MAX };
	f->maps[M_AGG] = (struct image_map){ .name = "agg",
					     .role = MAP_AGG,
					     .type = BPF_MAP_TYPE_PERCPU_HASH,
					     .key_size = 8,
					     .value_size = 8,
					     .max_entries = 20000 };
	f->maps[M_AGG1] = (struct image_map){ .name = "agg1",
					      .role = MAP_AGG,
					      .type = BPF_MAP_TYPE_PERCPU_ARRAY,
					      .key_size = 4,
					      .value_size = 16,
					      .max_entries = 1 };
	f->aggs[0] = (struct agg){ .name = "a", .key_size = 8, .nwords = 1, .map = M_AGG };
	f->aggs[1] = (struct agg){ .name = "b", .key_size = 0, .nwords = 2, .map = M_AGG1 };
	f->img.maps = f->maps;
	f->img.nmaps = M_COUNT;
	f->img.aggs = f->aggs;
	f->img.naggs = 2;
	diags_init(&f->diags);
	source_add(&f->diags, SOURCE_ARG, source, source, strlen(source));
	f->img.diags = &f->diags;
	options_init(&f->options);
	f->img.options = &f->options;
}

static void fixture_fini(struct fixture *f)
{
	diags_fini(&f->diags);
	options_fini(&f->options);
}

static loc_t locs[256];

/* --- system calls: dispatch table, per-CPU counting, active switch --- */

static void sum_agg(void *arg, const void *key, const uint64_t *values, uint32_t ncpus)
{
	uint64_t *n = arg;

	for (uint32_t i = 0; i < ncpus; i++)
		*n += values[i];
}

static void sum_agg2(void *arg, const void *key, const uint64_t *values, uint32_t ncpus)
{
	uint64_t *n = arg;

	assert_null(key);
	for (uint32_t i = 0; i < ncpus; i++) {
		n[0] += values[2 * i];
		n[1] += values[2 * i + 1];
	}
}

/* sys_enter: if state.active == WIRE_ON and the table has the call: @b = {n += 1, sum += 3}, in
 * our own process only. */
/* clang-format off */
static struct bpf_insn count_insns[] = {
	MOV(R6, R1),
	LD64(R1, 0),                                     /* 1 state */
	LDXW(R2, R1, 0),                                 /* 3 */
	JNEI(R2, WIRE_ON, 24),
	LDX(R7, R6, 8),                                  /* 5 number */
	STXW(R10, R7, -4),
	LD64(R1, 0),                                     /* 7 syscalls */
	MOV(R2, R10),
	ADDI(R2, -4),
	CALL(BPF_FUNC_map_lookup_elem),                  /* 11 */
	JEQI(R0, 0, 16),
	LDXW(R1, R0, 0),
	JEQI(R1, 0, 14),
	CALL(BPF_FUNC_get_current_pid_tgid),             /* 15 */
	I(BPF_ALU64 | BPF_RSH | BPF_K, R0, 0, 0, 32),
	I(BPF_JMP | BPF_JNE | BPF_K, R0, 0, 11, 0),      /* 17 patched: our pid */
	STIW(R10, -4, 0),
	LD64(R1, 0),                                     /* 19 agg1 */
	MOV(R2, R10),
	ADDI(R2, -4),
	CALL(BPF_FUNC_map_lookup_elem),                  /* 23 */
	JEQI(R0, 0, 4),
	MOVI(R1, 1),
	I(BPF_STX | BPF_ATOMIC | BPF_DW, R0, R1, 0, BPF_ADD),
	MOVI(R1, 3),
	I(BPF_STX | BPF_ATOMIC | BPF_DW, R0, R1, 8, BPF_ADD),
	MOVI(R0, 0),                                     /* 29 */
	EXIT,
};
/* clang-format on */
static struct reloc count_relocs[] = {
	{ .insn = 1, .kind = RELOC_MAP_VALUE, .target = M_STATE },
	{ .insn = 7, .kind = RELOC_MAP, .target = M_SYSCALLS },
	{ .insn = 19, .kind = RELOC_MAP, .target = M_AGG1 },
};

static double now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1e3 + ts.tv_nsec / 1e6;
}

static void getppid_times(int n)
{
	for (int i = 0; i < n; i++)
		syscall(SYS_getppid);
}

static void test_syscalls(void **state)
{
	struct fixture f;
	struct image_probe probe = { 0 };
	struct probe desc = { .kind = ATTACH_SYSCALL_ENTRY, .number = SYS_getppid };
	uint32_t probes[] = { 0 };
	struct image_prog prog = { .name = "syscall:entry",
				   .attach = ATTACH_SYSCALL_ENTRY,
				   .insns = count_insns,
				   .ninsns = ARRAY_SIZE(count_insns),
				   .locs = locs,
				   .relocs = count_relocs,
				   .nrelocs = ARRAY_SIZE(count_relocs),
				   .probes = probes,
				   .nprobes = 1 };

	fixture_init(&f);
	count_insns[17].imm = getpid();
	f.table[SYS_getppid].probe = 1;
	probe.probe = &desc;
	f.img.progs = &prog;
	f.img.nprogs = 1;
	f.img.probes = &probe;
	f.img.nprobes = 1;

	struct engine *e = engine_kernel.new(&(struct engine_setting){ 0 });
	uint64_t n[2] = { 0 };

	assert_ok(e->ops->load(e, &f.img, true));
	assert_ok(e->ops->attach(e));
	getppid_times(10); /* not active yet */
	e->state->active = WIRE_ON;
	getppid_times(1000);
	syscall(SYS_getuid); /* not in the table */
	e->state->active = WIRE_OFF;
	getppid_times(10);
	assert_ok(e->ops->agg_read(e, 1, sum_agg2, n));
	assert_int_equal(n[0], 1000);
	assert_int_equal(n[1], 3000);

	uint64_t *last = xcalloc(e->ncpus, 16);

	assert_ok(e->ops->agg_delete(e, 1, NULL, last));
	n[0] = n[1] = 0;
	sum_agg2(n, NULL, last, e->ncpus);
	assert_int_equal(n[0], 1000);
	free(last);
	n[0] = 0;
	assert_ok(e->ops->agg_read(e, 1, sum_agg2, n));
	assert_int_equal(n[0], 0);

	struct engine_prog_report r[2];

	assert_int_equal(e->ops->report(e, r, 2), 1);
	if (!e->nnotes) { /* measuring needs CAP_SYS_ADMIN */
		assert_true(r[0].runs >= 1020);
		assert_true(r[0].run_ns > 0);
	}
	assert_string_equal(r[0].mode, "raw tracepoint");

	double t = now_ms();

	assert_ok(e->ops->detach(e));
	t = now_ms() - t;
	print_message("detach of syscall entry: %.1f ms\n", t);
	assert_true(t < 100);
	e->state->active = WIRE_ON;
	getppid_times(10);
	n[0] = 0;
	assert_ok(e->ops->agg_read(e, 1, sum_agg2, n));
	assert_int_equal(n[0], 0);
	e->ops->free(e);
	fixture_fini(&f);
}

/* --- fire(), rings, records, drops --- */

/* Writes one record of 40 bytes to the data ring, and one to the control ring. Lost ones are
 * counted. */
/* clang-format off */
static struct bpf_insn record_insns[] = {
	LD64(R1, 0),                                     /* 0 data ring */
	MOVI(R2, 40),
	MOVI(R3, 0),
	CALL(BPF_FUNC_ringbuf_reserve),                  /* 4 */
	JNEI(R0, 0, 9),
	STIW(R10, -4, WIRE_DROP_DATA),                   /* 6 */
	LD64(R1, 0),                                     /* 7 counters */
	MOV(R2, R10),
	ADDI(R2, -4),
	CALL(BPF_FUNC_map_lookup_elem),
	JEQI(R0, 0, 15),                                 /* 12 -> 28 */
	MOVI(R1, 1),
	I(BPF_JMP | BPF_JA, 0, 0, 11, 0),                /* 14 -> 26 */
	MOV(R6, R0),                                     /* 15 */
	CALL(BPF_FUNC_ktime_get_ns),
	STX(R6, R0, 0),
	STI(R6, 8, 0),
	STI(R6, 16, 0),
	STI(R6, 24, 0),
	STI(R6, 32, 0x1234),
	MOV(R1, R6),                                     /* 22 */
	MOVI(R2, 0),
	CALL(BPF_FUNC_ringbuf_submit),
	I(BPF_JMP | BPF_JA, 0, 0, 2, 0),                 /* 25 -> 28 */
	I(BPF_STX | BPF_ATOMIC | BPF_DW, R0, R1, 0, BPF_ADD),
	MOVI(R0, 0),
	MOVI(R0, 0),                                     /* 28 */
	EXIT,
};
/* clang-format on */
static struct reloc record_relocs[] = {
	{ .insn = 0, .kind = RELOC_MAP, .target = M_DATA },
	{ .insn = 7, .kind = RELOC_MAP, .target = M_COUNTERS },
};

struct seen {
	uint32_t n, control;
	uint64_t last;
};

static void see(void *arg, const struct wire_record *r, uint32_t size, bool control)
{
	struct seen *s = arg;

	assert_int_equal(size, 40);
	assert_int_equal(((const uint64_t *)r)[4], 0x1234);
	assert_true(r->time >= s->last);
	s->last = r->time;
	s->n++;
	s->control += control;
}

static void test_records(void **state)
{
	struct fixture f;
	struct image_prog prog = { .name = "BEGIN",
				   .attach = ATTACH_SELF,
				   .insns = record_insns,
				   .ninsns = ARRAY_SIZE(record_insns),
				   .locs = locs,
				   .relocs = record_relocs,
				   .nrelocs = ARRAY_SIZE(record_relocs) };

	fixture_init(&f);
	f.img.progs = &prog;
	f.img.nprogs = 1;

	struct engine *e = engine_kernel.new(&(struct engine_setting){ 0 });
	struct seen s = { 0 };
	struct engine_counters c;
	uint64_t drops = 0;

	assert_ok(e->ops->load(e, &f.img, false));
	assert_ok(e->ops->attach(e));
	for (int i = 0; i < 100; i++)
		assert_ok(e->ops->fire(e, 0));
	e->ops->poll(e, 1000);
	e->ops->drain(e, see, &s);
	assert_int_equal(s.n, 100);
	assert_int_equal(s.control, 0);
	/* 65536 bytes hold 1365 records of 48: the rest is counted. */
	for (int i = 0; i < 2000; i++)
		assert_ok(e->ops->fire(e, 0));
	e->ops->drain(e, see, &s);
	e->ops->counters(e, &c);
	for (uint32_t i = 0; i < c.ncpus; i++)
		drops += c.fixed[i * WIRE_FIXED_COUNTERS + WIRE_DROP_DATA];
	assert_true(drops > 0);
	assert_int_equal(s.n + drops, 2100);

	double t = now_ms();

	e->ops->poll(e, 50); /* empty: waits */
	assert_true(now_ms() - t >= 40);
	assert_true(e->ops->wait_fd(e) >= 0);
	e->ops->free(e);
	fixture_fini(&f);
}

/* --- aggregations with keys --- */

/* raw tracepoint sys_enter: @a[arg 0 of the call] += 1, for getpriority(which = key) of our
 * process. */
/* clang-format off */
static struct bpf_insn keyed_insns[] = {
	MOV(R6, R1),
	CALL(BPF_FUNC_get_current_pid_tgid),
	I(BPF_ALU64 | BPF_RSH | BPF_K, R0, 0, 0, 32),
	I(BPF_JMP | BPF_JNE | BPF_K, R0, 0, 20, 0),      /* 3 our pid */
	LDX(R1, R6, 8),
	JNEI(R1, SYS_getpriority, 18),                   /* 5 */
	LDX(R3, R6, 0),
	ADDI(R3, 112),                                   /* pt_regs.di */
	MOV(R1, R10),
	ADDI(R1, -8),
	MOVI(R2, 8),
	CALL(BPF_FUNC_probe_read_kernel),
	STI(R10, -16, 1),                                /* 12 */
	LD64(R1, 0),                                     /* 13 agg */
	MOV(R2, R10),
	ADDI(R2, -8),
	MOV(R3, R10),
	ADDI(R3, -16),
	MOVI(R4, 0),
	CALL(BPF_FUNC_map_update_elem),                  /* 20 */
	MOVI(R0, 0), MOVI(R0, 0), MOVI(R0, 0),
	MOVI(R0, 0),                                     /* 24 */
	EXIT,
};
/* clang-format on */
static struct reloc keyed_relocs[] = { { .insn = 13, .kind = RELOC_MAP, .target = M_AGG } };

static void test_keys(void **state)
{
	struct fixture f;
	struct image_probe probe = { 0 };
	struct probe desc = { .kind = ATTACH_RAW_TP, .object = "sys_enter" };
	uint32_t probes[] = { 0 };
	struct image_prog prog = { .name = "keys",
				   .attach = ATTACH_RAW_TP,
				   .insns = keyed_insns,
				   .ninsns = ARRAY_SIZE(keyed_insns),
				   .locs = locs,
				   .relocs = keyed_relocs,
				   .nrelocs = 1,
				   .probes = probes,
				   .nprobes = 1 };

	fixture_init(&f);
	keyed_insns[3].imm = getpid();
	probe.probe = &desc;
	f.img.progs = &prog;
	f.img.nprogs = 1;
	f.img.probes = &probe;
	f.img.nprobes = 1;

	struct engine *e = engine_kernel.new(&(struct engine_setting){ 0 });
	uint64_t n = 0, key = 77, none = 999999;

	assert_ok(e->ops->load(e, &f.img, false));
	assert_ok(e->ops->attach(e));
	for (uint64_t i = 1000; i < 11000; i++)
		syscall(SYS_getpriority, i, 0);
	syscall(SYS_getpriority, key, 0);
	assert_ok(e->ops->detach(e));
	assert_ok(e->ops->agg_read(e, 0, sum_agg, &n));
	assert_int_equal(n, 10001);

	uint64_t *last = xcalloc(e->ncpus, 8);

	assert_ok(e->ops->agg_delete(e, 0, &key, last));
	n = 0;
	sum_agg(&n, &key, last, e->ncpus);
	assert_int_equal(n, 1);
	assert_ok(e->ops->agg_delete(e, 0, &key, NULL));
	assert_ok(e->ops->agg_delete(e, 0, &none, last));
	n = 0;
	assert_ok(e->ops->agg_read(e, 0, sum_agg, &n));
	assert_int_equal(n, 10000);
	free(last);
	e->ops->free(e);
	fixture_fini(&f);
}

/* --- cookies: one program, several probes; timers, tracepoints, uprobes --- */

/* counters[16 + 2 * cookie] += 1 */
/* clang-format off */
static struct bpf_insn cookie_insns[] = {
	CALL(174 /* bpf_get_attach_cookie */),
	I(BPF_ALU64 | BPF_LSH | BPF_K, R0, 0, 0, 1),
	ADDI(R0, WIRE_FIXED_COUNTERS),
	STXW(R10, R0, -4),
	LD64(R1, 0),                                     /* 4 */
	MOV(R2, R10),
	ADDI(R2, -4),
	CALL(BPF_FUNC_map_lookup_elem),
	JEQI(R0, 0, 2),
	MOVI(R1, 1),
	I(BPF_STX | BPF_ATOMIC | BPF_DW, R0, R1, 0, BPF_ADD),
	MOVI(R0, 0),
	EXIT,
};
/* clang-format on */
static struct reloc cookie_relocs[] = { { .insn = 4, .kind = RELOC_MAP, .target = M_COUNTERS } };

static struct image_prog cookie_prog(enum attach_kind kind, uint32_t *probes, uint32_t n)
{
	return (struct image_prog){ .name = "cookies",
				    .attach = kind,
				    .insns = cookie_insns,
				    .ninsns = ARRAY_SIZE(cookie_insns),
				    .locs = locs,
				    .relocs = cookie_relocs,
				    .nrelocs = 1,
				    .probes = probes,
				    .nprobes = n,
				    .uses_cookie = true };
}

/* Runs the program for the probes, and `work` while it is attached; gives the engine's notes
 * count. */
static void run_cookies(enum attach_kind kind, struct probe *descs, uint32_t n, void (*work)(void),
			uint64_t *ret_fired, uint32_t *ret_notes)
{
	struct fixture f;
	uint32_t *index = xcalloc(n, 4);
	struct image_probe *probes = xcalloc(n, sizeof(*probes));
	struct engine_counters c;

	for (uint32_t i = 0; i < n; i++) {
		index[i] = i;
		descs[i].kind = kind;
		probes[i] = (struct image_probe){
			.probe = &descs[i], .prov = "p", .mod = "m", .func = "f", .name = "n"
		};
	}
	struct image_prog prog = cookie_prog(kind, index, n);

	fixture_init(&f);
	f.maps[M_COUNTERS].max_entries = WIRE_FIXED_COUNTERS + n * WIRE_PROBE_SLOTS;
	f.img.progs = &prog;
	f.img.nprogs = 1;
	f.img.probes = probes;
	f.img.nprobes = n;

	struct type_graph *types = type_graph_new();

	type_use_kernel(types, NULL);
	f.img.types = types;

	struct engine *e = engine_kernel.new(&(struct engine_setting){ 0 });

	assert_ok(e->ops->load(e, &f.img, false));
	assert_ok(e->ops->attach(e));
	work();
	double t = now_ms();
	assert_ok(e->ops->detach(e));
	print_message("%s: %u probes detached in %.1f ms\n", prog.name, n, now_ms() - t);
	e->ops->counters(e, &c);
	memcpy(ret_fired, c.fired, n * sizeof(uint64_t));
	if (ret_notes)
		*ret_notes = e->nnotes;
	e->ops->free(e);
	type_graph_free(types);
	fixture_fini(&f);
	free(probes);
	free(index);
}

static void work_switches(void)
{
	for (int i = 0; i < 20; i++) {
		pid_t pid = fork();

		if (!pid)
			_exit(0);
		waitpid(pid, NULL, 0);
	}
}

static void test_raw_tp_cookies(void **state)
{
	struct probe descs[] = { { .object = "sched_process_exit" },
				 { .object = "sched_process_fork" },
				 { .object = "sched_switch" } };
	uint64_t fired[3];

	run_cookies(ATTACH_RAW_TP, descs, 3, work_switches, fired, NULL);
	assert_true(fired[0] >= 20 && fired[1] >= 20 && fired[2] >= 20);
	run_cookies(ATTACH_TP_BTF, descs, 3, work_switches, fired, NULL);
	assert_true(fired[0] >= 20 && fired[1] >= 20 && fired[2] >= 20);
}

static void work_200ms(void)
{
	double end = now_ms() + 200;

	while (now_ms() < end)
		;
}

static void test_timers(void **state)
{
	struct probe profile[] = { { .period_ns = 1003009 }, { .period_ns = 10000000 } };
	uint64_t fired[2];
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	run_cookies(ATTACH_PROFILE, profile, 2, work_200ms, fired, NULL);
	print_message("profile-997: %lu, profile-10ms: %lu on %ld CPUs in 200 ms\n", fired[0],
		      fired[1], cpus);
	assert_in_range(fired[0], 30, 300 * (uint64_t)cpus); /* an emulated machine misses most */
	assert_in_range(fired[1], 10, 30 * (uint64_t)cpus);
	run_cookies(ATTACH_TICK, profile, 2, work_200ms, fired, NULL);
	assert_in_range(fired[1], 10, 30);
}

/* --- uprobes on this program --- */

__attribute__((noinline, aligned(16))) int traced_a(int x)
{
	asm volatile("nop");
	return x + 1;
}
__attribute__((noinline, aligned(16))) int traced_b(int x)
{
	asm volatile("nop");
	return x + 2;
}
/* An instruction no kernel probes: a locked exchange, as first one. */
__attribute__((naked, nocf_check, noinline, aligned(16))) int traced_locked(volatile int *x)
{
	asm("lock incl (%rdi)\n\txor %eax, %eax\n\tret");
}

static uint64_t file_offset(const void *fn)
{
	char line[512];
	uint64_t ret = 0;
	FILE *maps = fopen("/proc/self/maps", "r");

	while (fgets(line, sizeof(line), maps)) {
		uint64_t start, end, off;

		if (sscanf(line, "%lx-%lx %*s %lx", &start, &end, &off) == 3 &&
		    (uintptr_t)fn >= start && (uintptr_t)fn < end)
			ret = (uintptr_t)fn - start + off;
	}
	fclose(maps);
	return ret;
}

static void work_calls(void)
{
	volatile int x = 0;

	for (int i = 0; i < 50; i++)
		x += traced_a(i);
	for (int i = 0; i < 30; i++)
		x += traced_b(i);
	traced_locked(&x);
}

static void test_uprobes(void **state)
{
	struct probe descs[3];
	struct object *self;
	uint64_t fired[3];
	uint32_t notes;

	assert_ok(object_open("/proc/self/exe", &self));
	memset(descs, 0, sizeof(descs));
	for (int i = 0; i < 3; i++) {
		descs[i].object = "/proc/self/exe";
		descs[i].file = self;
		descs[i].pid = getpid();
	}
	descs[0].offset = file_offset(traced_a);
	descs[1].offset = file_offset(traced_locked);
	descs[2].offset = file_offset(traced_b);
	run_cookies(ATTACH_UPROBE, descs, 3, work_calls, fired, &notes);
	assert_int_equal(fired[0], 50);
	assert_int_equal(fired[1], 0);
	assert_int_equal(fired[2], 30);
	assert_int_equal(notes, 1);
	run_cookies(ATTACH_URETPROBE, descs, 3, work_calls, fired, &notes);
	assert_int_equal(fired[0], 50);
	assert_int_equal(fired[2], 30);
	/* Another process's probes do not fire here. */
	for (int i = 0; i < 3; i++)
		descs[i].pid = getppid();
	run_cookies(ATTACH_UPROBE, descs, 3, work_calls, fired, &notes);
	assert_int_equal(fired[0], 0);
	object_free(self);
}

/* The path leads to another file after the object was read: the probe is in the file that was
 * read. */
static void test_uprobes_swapped(void **state)
{
	char link[] = "/tmp/descry-uprobe-XXXXXX";
	struct probe desc = { .object = link, .offset = file_offset(traced_a), .pid = getpid() };
	uint64_t fired;
	uint32_t notes;
	int fd = mkstemp(link);

	assert_true(fd >= 0);
	close(fd);
	assert_false(unlink(link) || symlink("/proc/self/exe", link));
	assert_ok(object_open(link, &desc.file));
	assert_false(unlink(link) || symlink("/bin/sh", link));
	run_cookies(ATTACH_UPROBE, &desc, 1, work_calls, &fired, &notes);
	unlink(link);
	assert_int_equal(fired, 50);
	object_free(desc.file);
}

static void test_file_path(void **state)
{
	char path[] = "/tmp/descry-object-XXXXXX", at[OBJECT_FILE_PATH];
	cleanup_free char *text = NULL;
	struct object *o;
	size_t n;
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_ok(io_read_file("/bin/true", &text, &n));
	assert_int_equal(write(fd, text, n), n);
	assert_ok(object_open(path, &o));
	assert_true(object_file_path(o, at));
	assert_int_equal(write(fd, "", 1), 1);
	assert_false(object_file_path(o, at));
	object_free(o);
	close(fd);
	unlink(path);
}

/* --- a program the verifier refuses: a diagnostic at its source --- */

static void test_rejection(void **state)
{
	struct bpf_insn insns[] = { MOVI(R1, 0), LDX(R0, R1, 8), EXIT };
	loc_t at[3];
	struct fixture f;
	struct image_prog prog = {
		.name = "bad", .attach = ATTACH_SELF, .insns = insns, .ninsns = 3, .locs = at
	};

	fixture_init(&f);
	at[0] = at[2] = f.diags.sources[0].base;
	at[1] = f.diags.sources[0].base + 26;
	f.img.progs = &prog;
	f.img.nprogs = 1;

	struct engine *e = engine_kernel.new(&(struct engine_setting){ 0 });
	struct err *err = e->ops->load(e, &f.img, false);

	assert_non_null(err);
	assert_true(f.diags.errors == 1);
	assert_string_equal(f.diags.list[0].tag, "D_VERIFIER");
	assert_int_equal(f.diags.list[0].loc, at[1]);
	assert_non_null(strstr(f.diags.list[0].text, "R1 invalid mem access"));
	err_free(err);
	e->ops->free(e);
	fixture_fini(&f);
}

/* An llquantize() of a machine with 1,024 CPUs has 80 MB of values for one key. */
static void test_chunk(void **state)
{
	assert_int_equal(maps_chunk(16), 256);
	assert_int_equal(maps_chunk(8 << 20), 7);
	assert_int_equal(maps_chunk(80ull << 20), 1);
	assert_int_equal(maps_chunk(1ull << 33), 1);
}

int main(void)
{
	need_kernel();
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_chunk),          cmocka_unit_test(test_syscalls),
		cmocka_unit_test(test_records),        cmocka_unit_test(test_keys),
		cmocka_unit_test(test_raw_tp_cookies), cmocka_unit_test(test_timers),
		cmocka_unit_test(test_uprobes),        cmocka_unit_test(test_uprobes_swapped),
		cmocka_unit_test(test_file_path),      cmocka_unit_test(test_rejection),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
