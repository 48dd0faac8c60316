/* Routines that walk kernel objects or write records: paths, arguments, files, parents, time on
 * CPU, faults, late strings. The engine attaches programs, or they run in this process. The results
 * are compared with /proc and libc. */
#include "kernel_test.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "program/type/type.h"
#include "wire/late.h"
#include "wire/offsets.h"

enum { M_STATE, M_DATA, M_CONTROL, M_COUNTERS, M_AREA, M_LATE, M_TLS, M_SCRATCH, M_COUNT };
enum { SIZE = 256 };

/* Value of M_AREA, which generated code would call rodata and scratch. */
struct area {
	struct wire_offsets offsets;
	uint64_t result, pid;
	uint64_t in[4];
	struct wire_firing firing;
	struct wire_late_item item;
	char dst[SIZE];
};

static struct type_graph *types;
static struct image_map maps[M_COUNT] = {
	[M_STATE] = { "state", MAP_STATE, BPF_MAP_TYPE_ARRAY, 4, sizeof(struct wire_state), 1,
		      BPF_F_MMAPABLE },
	[M_DATA] = { "data", MAP_DATA, BPF_MAP_TYPE_RINGBUF, 0, 0, 65536 },
	[M_CONTROL] = { "control", MAP_CONTROL, BPF_MAP_TYPE_RINGBUF, 0, 0, 65536 },
	[M_COUNTERS] = { "counters", MAP_COUNTERS, BPF_MAP_TYPE_PERCPU_ARRAY, 4, 8,
			 WIRE_FIXED_COUNTERS },
	[M_AREA] = { "area", MAP_OTHER, BPF_MAP_TYPE_ARRAY, 4, sizeof(struct area), 1,
		     BPF_F_MMAPABLE },
	[M_LATE] = { "late", MAP_LATE, BPF_MAP_TYPE_HASH, 4, sizeof(struct wire_late_wait), 64 },
	[M_TLS] = { "tls", MAP_TLS, BPF_MAP_TYPE_TASK_STORAGE, 4, 16, 0 },
	[M_SCRATCH] = { "scratch", MAP_SCRATCH, BPF_MAP_TYPE_ARRAY, 4, 64, WIRE_SCRATCH_SLOTS },
};
static loc_t locs[128];

struct run {
	struct image img;
	struct image_prog progs[3];
	struct engine *e;
	struct area *area;
};

static void fill_offsets(struct wire_offsets *o)
{
	type_id t;
	struct type_member m;

#define X(field, s, mem) \
	o->field = type_lookup(types, NULL, TYPE_STRUCT, s, &t) && \
				   type_find_member(types, t, mem, &m) \
			   ? (uint32_t)(m.bit_offset / 8) \
			   : WIRE_NO_OFFSET;
	WIRE_OFFSETS(X)
#undef X
}

static void run_open(struct run *r, uint32_t nprogs)
{
	r->img.maps = maps;
	r->img.nmaps = M_COUNT;
	r->img.progs = r->progs;
	r->img.nprogs = nprogs;
	r->img.types = types;
	for (uint32_t i = 0; i < nprogs; i++)
		r->progs[i].locs = locs;
	r->e = engine_kernel.new(&(struct engine_setting){ 0 });
	assert_ok(r->e->ops->load(r->e, &r->img, false));
	struct kernel_engine *k = (struct kernel_engine *)r->e;
	for (uint32_t i = 0; i < k->instances.n; i++) {
		struct bpf_prog_info info = { 0 };
		union bpf_attr a = { .info = { .bpf_fd = (uint32_t)k->instances.v[i].fd,
					       .info_len = sizeof(info),
					       .info = (uintptr_t)&info } };

		sys_bpf(BPF_OBJ_GET_INFO_BY_FD, &a, sizeof(a));
		print_message("%s: %u instructions walked\n", info.name, info.verified_insns);
		assert_true(info.verified_insns < 20000);
	}
	r->area = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, k->maps[M_AREA].fd, 0);
	assert_ptr_not_equal(r->area, MAP_FAILED);
	fill_offsets(&r->area->offsets);
	r->area->pid = (uint64_t)getpid();
	assert_ok(r->e->ops->attach(r->e));
	r->e->state->active = WIRE_ON;
}

static void run_close(struct run *r)
{
	munmap(r->area, 4096);
	r->e->ops->free(r->e);
}

#define AREA(field) ((int)offsetof(struct area, field))
/* A program's beginning: r9 = area; each argument; the call; its result into the area. */
#define LOAD_AREA I(BPF_LD | BPF_IMM | BPF_DW, R9, 0, 0, 0), I(0, 0, 0, 0, 0)
#define LOAD_MAP(r) I(BPF_LD | BPF_IMM | BPF_DW, r, 0, 0, 0), I(0, 0, 0, 0, 0)
#define FINISH STX(R9, R0, AREA(result)), MOVI(R0, 0), EXIT

static int64_t fire(struct run *r, uint32_t prog)
{
	assert_ok(r->e->ops->fire(r->e, prog));
	return (int64_t)r->area->result;
}

/* --- d_getfile, d_path --- */

static void check_fd(struct run *r, int fd)
{
	char link[64], want[SIZE] = "";

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	assert_true(readlink(link, want, sizeof(want) - 1) > 0);
	r->area->in[0] = (uint64_t)fd;
	uint64_t file = (uint64_t)fire(r, 0);

	assert_true(file != 0);
	r->area->in[0] = file + r->area->in[3];
	memset(r->area->dst, 'q', SIZE);
	int64_t got = fire(r, 1);

	if (got || strcmp(r->area->dst, want))
		fail_msg("fd %d: %ld, got %s, want %s", fd, got, r->area->dst, want);
}

static void test_paths(void **state)
{
	struct bpf_insn getfile[] = { LOAD_AREA, LDX(R1, R9, AREA(in[0])), MOV(R2, R9),
				      ROUTINE_CALL, FINISH };
	struct bpf_insn path[] = { LOAD_AREA,
				   MOV(R1, R9),
				   ADDI(R1, AREA(dst)),
				   MOVI(R2, SIZE),
				   LDX(R3, R9, AREA(in[0])),
				   MOV(R4, R9),
				   ROUTINE_CALL,
				   FINISH };
	struct reloc r0[] = { { .insn = 0, .kind = RELOC_MAP_VALUE, .target = M_AREA },
			      { .insn = 4, .kind = RELOC_ROUTINE, .name = "d_getfile" } };
	struct reloc r1[] = { { .insn = 0, .kind = RELOC_MAP_VALUE, .target = M_AREA },
			      { .insn = 7, .kind = RELOC_ROUTINE, .name = "d_path" } };
	struct run r = { .progs = {
				 { .name = "getfile",
				   .attach = ATTACH_SELF,
				   .insns = getfile,
				   .ninsns = ARRAY_SIZE(getfile),
				   .relocs = r0,
				   .nrelocs = 2 },
				 { .name = "path",
				   .attach = ATTACH_SELF,
				   .insns = path,
				   .ninsns = ARRAY_SIZE(path),
				   .relocs = r1,
				   .nrelocs = 2 },
			 } };
	static const char *const open_these[] = {
		"/",           "/usr",        "/usr/bin/env", "/proc/self/status",
		"/dev/null",   "/sys/kernel", "/tmp",         "/proc/sys/kernel/ostype",
		"/etc/passwd", "/dev/shm"
	};
	type_id t;
	struct type_member m;
	int p[2];

	run_open(&r, 2);
	assert_true(type_lookup(types, NULL, TYPE_STRUCT, "file", &t) &&
		    type_find_member(types, t, "f_path", &m));
	r.area->in[3] = m.bit_offset / 8;
	for (uint32_t i = 0; i < ARRAY_SIZE(open_these); i++) {
		int fd = open(open_these[i], O_RDONLY | O_CLOEXEC);

		if (fd < 0)
			continue;
		check_fd(&r, fd);
		close(fd);
	}
	/* Components of every length round the word size, deep. */
	char dir[] = "/tmp/descry-path-XXXXXX";
	assert_non_null(mkdtemp(dir));
	int top = open(dir, O_RDONLY | O_DIRECTORY), fd = dup(top);
	for (int i = 1; i <= 17; i++) {
		char name[32];

		memset(name, 'a' + i, sizeof(name));
		name[i] = '\0';
		assert_int_equal(mkdirat(fd, name, 0700), 0);
		int next = openat(fd, name, O_RDONLY | O_DIRECTORY);
		close(fd);
		fd = next;
		check_fd(&r, fd);
	}
	close(fd);
	close(top);
	char cmd[64];
	snprintf(cmd, sizeof(cmd), "rm -rf %s", dir);
	assert_int_equal(system(cmd), 0);

	assert_int_equal(pipe(p), 0);
	check_fd(&r, p[0]);
	int s = socket(AF_UNIX, SOCK_STREAM, 0), ev = eventfd(0, 0);
	check_fd(&r, s);
	check_fd(&r, ev);
	r.area->in[0] = 100000;
	assert_int_equal(fire(&r, 0), 0);
	r.area->in[0] = (uint64_t)-1;
	assert_int_equal(fire(&r, 0), 0);
	r.area->in[0] = 8;
	assert_int_equal(fire(&r, 1), -EFAULT);
	run_close(&r);
}

/* --- d_psargs, d_progenyof --- */

static void test_processes(void **state)
{
	struct bpf_insn psargs[] = { LOAD_AREA,
				     CALL(BPF_FUNC_get_current_task),
				     MOV(R3, R0),
				     MOV(R1, R9),
				     ADDI(R1, AREA(dst)),
				     MOVI(R2, 80),
				     MOV(R4, R9),
				     ROUTINE_CALL,
				     FINISH };
	struct bpf_insn progeny[] = { LOAD_AREA, LDX(R1, R9, AREA(in[0])), MOV(R2, R9),
				      ROUTINE_CALL, FINISH };
	struct reloc r0[] = { { .insn = 0, .kind = RELOC_MAP_VALUE, .target = M_AREA },
			      { .insn = 8, .kind = RELOC_ROUTINE, .name = "d_psargs" } };
	struct reloc r1[] = { { .insn = 0, .kind = RELOC_MAP_VALUE, .target = M_AREA },
			      { .insn = 4, .kind = RELOC_ROUTINE, .name = "d_progenyof" } };
	struct run r = { .progs = {
				 { .name = "psargs",
				   .attach = ATTACH_SELF,
				   .insns = psargs,
				   .ninsns = ARRAY_SIZE(psargs),
				   .relocs = r0,
				   .nrelocs = 2 },
				 { .name = "progeny",
				   .attach = ATTACH_SELF,
				   .insns = progeny,
				   .ninsns = ARRAY_SIZE(progeny),
				   .relocs = r1,
				   .nrelocs = 2 },
			 } };
	char want[4096] = "";
	FILE *f = fopen("/proc/self/cmdline", "r");
	size_t n = fread(want, 1, sizeof(want) - 1, f);

	fclose(f);
	for (size_t i = 0; i + 1 < n; i++)
		if (!want[i])
			want[i] = ' ';
	want[79] = '\0';
	run_open(&r, 2);
	assert_int_equal(fire(&r, 0), 0);
	assert_string_equal(r.area->dst, want);
	r.area->in[0] = (uint64_t)getpid();
	assert_int_equal(fire(&r, 1), 1);
	r.area->in[0] = (uint64_t)getppid();
	assert_int_equal(fire(&r, 1), 1);
	r.area->in[0] = 1;
	assert_int_equal(fire(&r, 1), 1);
	r.area->in[0] = 999999999;
	assert_int_equal(fire(&r, 1), 0);
	run_close(&r);
}

/* --- d_scratch_get, d_fault --- */

struct seen {
	uint32_t n;
	struct wire_fault fault;
	struct wire_late late;
};

static void see(void *arg, const struct wire_record *rec, uint32_t size, bool control)
{
	struct seen *s = arg;

	assert_true(control);
	s->n++;
	if (rec->segment == WIRE_SEG_FAULT) {
		assert_int_equal(size, sizeof(s->fault));
		memcpy(&s->fault, rec, size);
	} else {
		assert_int_equal(size, sizeof(s->late));
		memcpy(&s->late, rec, size);
	}
}

static void test_scratch_and_fault(void **state)
{
	/* Takes a slot and, when in[0], gives it back: result 1, or 0 when none was free. */
	struct bpf_insn scratch[] = { LOAD_AREA,
				      LOAD_MAP(R1),
				      ROUTINE_CALL,
				      JEQI(R0, 0, 5),
				      LDX(R1, R9, AREA(in[0])),
				      JEQI(R1, 0, 2),
				      MOVI(R1, 0),
				      STX(R0, R1, 0),
				      MOVI(R0, 1),
				      FINISH };
	struct bpf_insn fault[] = { LOAD_AREA,
				    LOAD_MAP(R1),
				    LOAD_MAP(R2),
				    MOV(R3, R9),
				    ADDI(R3, AREA(firing)),
				    LDX(R4, R9, AREA(in[0])),
				    LDX(R5, R9, AREA(in[1])),
				    ROUTINE_CALL,
				    FINISH };
	struct reloc r0[] = { { .insn = 0, .kind = RELOC_MAP_VALUE, .target = M_AREA },
			      { .insn = 2, .kind = RELOC_MAP, .target = M_SCRATCH },
			      { .insn = 4, .kind = RELOC_ROUTINE, .name = "d_scratch_get" } };
	struct reloc r1[] = { { .insn = 0, .kind = RELOC_MAP_VALUE, .target = M_AREA },
			      { .insn = 2, .kind = RELOC_MAP, .target = M_CONTROL },
			      { .insn = 4, .kind = RELOC_MAP, .target = M_COUNTERS },
			      { .insn = 10, .kind = RELOC_ROUTINE, .name = "d_fault" } };
	struct run r = { .progs = {
				 { .name = "scratch",
				   .attach = ATTACH_SELF,
				   .insns = scratch,
				   .ninsns = ARRAY_SIZE(scratch),
				   .relocs = r0,
				   .nrelocs = 3 },
				 { .name = "fault",
				   .attach = ATTACH_SELF,
				   .insns = fault,
				   .ninsns = ARRAY_SIZE(fault),
				   .relocs = r1,
				   .nrelocs = 4 },
			 } };
	struct seen s = { 0 };
	struct engine_counters c;
	uint64_t faults = 0, drops = 0;

	run_open(&r, 2);
	r.area->in[0] = 1;
	for (int i = 0; i < 20; i++)
		assert_int_equal(fire(&r, 0), 1);
	/* Kept: at most four on each CPU. */
	r.area->in[0] = 0;
	uint32_t got = 0;
	for (int i = 0; i < 200; i++)
		got += fire(&r, 0) == 1;
	assert_in_range(got, WIRE_SCRATCH_SLOTS, WIRE_SCRATCH_SLOTS * r.e->ncpus);

	r.area->firing =
		(struct wire_firing){ .time = 777, .probe = 3, .clause = 4, .insn = 55, .tid = 66 };
	r.area->in[0] = WIRE_FAULT_DIVZERO | 1234ull << 32;
	r.area->in[1] = 0xdeadbeef;
	fire(&r, 1);
	r.e->ops->drain(r.e, see, &s);
	assert_int_equal(s.n, 1);
	assert_int_equal(s.fault.head.time, 777);
	assert_int_equal(s.fault.head.probe, 3);
	assert_int_equal(s.fault.head.tid, 66);
	assert_int_equal(s.fault.clause, 4);
	assert_int_equal(s.fault.code, WIRE_FAULT_DIVZERO);
	assert_int_equal(s.fault.value, 0xdeadbeef);
	assert_int_equal(s.fault.loc, 1234);
	assert_int_equal(s.fault.insn, 55);
	/* 64 bytes each in 65536: the ring holds 1024. */
	for (int i = 0; i < 1100; i++)
		fire(&r, 1);
	r.e->ops->drain(r.e, see, &s);
	r.e->ops->counters(r.e, &c);
	for (uint32_t i = 0; i < c.ncpus; i++) {
		faults += c.fixed[i * WIRE_FIXED_COUNTERS + WIRE_FAULTS];
		drops += c.fixed[i * WIRE_FIXED_COUNTERS + WIRE_DROP_CONTROL];
	}
	assert_int_equal(faults, 1101);
	assert_true(drops > 0);
	assert_int_equal(s.n + drops, 1101);
	run_close(&r);
}

/* --- d_sched_switch --- */

static uint64_t now_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static void test_vtimestamp(void **state)
{
	struct bpf_insn on_switch[] = { LDX(R2, R1, 8), LDX(R3, R1, 16), LOAD_MAP(R1),
					ROUTINE_CALL,   MOVI(R0, 0),     EXIT };
	struct reloc r0[] = { { .insn = 2, .kind = RELOC_MAP, .target = M_TLS },
			      { .insn = 4, .kind = RELOC_ROUTINE, .name = "d_sched_switch" } };
	/* tp_btf sys_enter of getppid: result = accumulated + now - since; the first time it
	 * starts the clock. */
	/* clang-format off */
	struct bpf_insn read[] = {
		LOAD_AREA, LDX(R2, R1, 8), JNEI(R2, SYS_getppid, 25),                   /* 3 */
		CALL(BPF_FUNC_get_current_pid_tgid), I(BPF_ALU64 | BPF_RSH | BPF_K, R0, 0, 0, 32),
		LDX(R1, R9, AREA(pid)), I(BPF_JMP | BPF_JNE | BPF_X, R0, R1, 21, 0),    /* 7 */
		CALL(158 /* bpf_get_current_task_btf */), MOV(R2, R0), LOAD_MAP(R1), MOVI(R3, 0), MOVI(R4, 1),
		CALL(BPF_FUNC_task_storage_get), JEQI(R0, 0, 13),                       /* 15 */
		MOV(R6, R0), CALL(BPF_FUNC_ktime_get_ns), LDX(R1, R6, 0), JNEI(R1, 0, 2),
		STX(R6, R0, 0), MOV(R1, R0),                                            /* 20, 21 */
		I(BPF_ALU64 | BPF_SUB | BPF_X, R0, R1, 0, 0), LDX(R1, R6, 8), I(BPF_ALU64 | BPF_ADD | BPF_X, R0, R1, 0, 0),
		STX(R9, R0, AREA(result)), MOVI(R0, 0), EXIT,
	};
	/* clang-format on */
	struct reloc r1[] = { { .insn = 0, .kind = RELOC_MAP_VALUE, .target = M_AREA },
			      { .insn = 10, .kind = RELOC_MAP, .target = M_TLS } };
	struct run r = { .progs = {
				 { .name = "switch",
				   .attach = ATTACH_TP_BTF,
				   .tracepoint = "sched_switch",
				   .insns = on_switch,
				   .ninsns = ARRAY_SIZE(on_switch),
				   .relocs = r0,
				   .nrelocs = 2 },
				 { .name = "read",
				   .attach = ATTACH_TP_BTF,
				   .tracepoint = "sys_enter",
				   .insns = read,
				   .ninsns = ARRAY_SIZE(read),
				   .relocs = r1,
				   .nrelocs = 2 },
			 } };

	/* Jumps go to the last "r0 = 0; exit". */
	for (uint32_t i = 0; i < ARRAY_SIZE(read); i++)
		if (read[i].code == (BPF_JMP | BPF_JNE | BPF_K) ||
		    read[i].code == (BPF_JMP | BPF_JEQ | BPF_K) ||
		    read[i].code == (BPF_JMP | BPF_JNE | BPF_X))
			if (i != 19)
				read[i].off = (int16_t)(ARRAY_SIZE(read) - 2 - i - 1);
	run_open(&r, 2);
	syscall(SYS_getppid);
	uint64_t v0 = r.area->result, cpu0 = now_ns(CLOCK_THREAD_CPUTIME_ID),
		 wall0 = now_ns(CLOCK_MONOTONIC);

	for (int i = 0; i < 5; i++) {
		usleep(20000);
		uint64_t until = now_ns(CLOCK_THREAD_CPUTIME_ID) + 20000000;
		while (now_ns(CLOCK_THREAD_CPUTIME_ID) < until)
			;
	}
	syscall(SYS_getppid);
	uint64_t v = r.area->result - v0, cpu = now_ns(CLOCK_THREAD_CPUTIME_ID) - cpu0,
		 wall = now_ns(CLOCK_MONOTONIC) - wall0;

	print_message("on CPU %.2f ms by vtimestamp, %.2f ms by the kernel, %.2f ms by the clock\n",
		      (double)v / 1e6, (double)cpu / 1e6, (double)wall / 1e6);
	/* Stolen time is on CPU for the scheduler's tracepoint and not for the thread's clock. */
	assert_true(v >= cpu * 9 / 10);
	assert_true(v <= wall - 90000000);
	run_close(&r);
}

/* --- late strings --- */

static void test_late(void **state)
{
	/* sys_enter of openat in this process: item.address = args[1]; the string waits under a
	 * new number. */
	/* clang-format off */
	struct bpf_insn enter[] = {
		LOAD_AREA, LDX(R2, R1, 8), JNEI(R2, SYS_openat, 25), LDX(R6, R1, 0),    /* 4 */
		CALL(BPF_FUNC_get_current_pid_tgid), I(BPF_ALU64 | BPF_RSH | BPF_K, R0, 0, 0, 32), LDX(R1, R9, AREA(pid)),
		I(BPF_JMP | BPF_JNE | BPF_X, R0, R1, 20, 0),                            /* 8 */
		MOV(R1, R9), ADDI(R1, AREA(in[0])), MOVI(R2, 8), MOV(R3, R6), ADDI(R3, 104),    /* pt_regs.si */
		CALL(BPF_FUNC_probe_read_kernel),                                       /* 14 */
		LOAD_MAP(R1), ROUTINE_CALL, STXW(R9, R0, AREA(item.number)),            /* 15, 17, 18 */
		LOAD_MAP(R1), LOAD_MAP(R2), LOAD_MAP(R3), LDX(R4, R9, AREA(in[0])), MOV(R5, R9), ADDI(R5, AREA(item)),   /* 19 21 23 25 */
		ROUTINE_CALL, STX(R9, R0, AREA(result)),                                /* 28 */
		MOVI(R0, 0), EXIT,                                                      /* 30 */
	};
	/* clang-format on */
	struct reloc r0[] = {
		{ .insn = 0, .kind = RELOC_MAP_VALUE, .target = M_AREA },
		{ .insn = 15, .kind = RELOC_MAP_VALUE, .target = M_STATE },
		{ .insn = 17, .kind = RELOC_ROUTINE, .name = "d_late_number" },
		{ .insn = 19, .kind = RELOC_MAP, .target = M_LATE },
		{ .insn = 21, .kind = RELOC_MAP, .target = M_COUNTERS },
		{ .insn = 23, .kind = RELOC_MAP_VALUE, .target = M_STATE },
		{ .insn = 28, .kind = RELOC_ROUTINE, .name = "d_late_add" },
	};
	struct bpf_insn leave[] = { LDX(R5, R1, 0), LOAD_MAP(R1), LOAD_MAP(R2), LOAD_MAP(R3),
				    LOAD_MAP(R4),   ROUTINE_CALL, MOVI(R0, 0),  EXIT };
	struct reloc r1[] = {
		{ .insn = 1, .kind = RELOC_MAP, .target = M_LATE },
		{ .insn = 3, .kind = RELOC_MAP, .target = M_CONTROL },
		{ .insn = 5, .kind = RELOC_MAP, .target = M_COUNTERS },
		{ .insn = 7, .kind = RELOC_MAP_VALUE, .target = M_STATE },
		{ .insn = 9, .kind = RELOC_ROUTINE, .name = "d_late_sys_exit" },
	};
	struct run r = { .progs = {
				 { .name = "enter",
				   .attach = ATTACH_RAW_TP,
				   .tracepoint = "sys_enter",
				   .insns = enter,
				   .ninsns = ARRAY_SIZE(enter),
				   .relocs = r0,
				   .nrelocs = ARRAY_SIZE(r0) },
				 { .name = "leave",
				   .attach = ATTACH_RAW_TP,
				   .tracepoint = "sys_exit",
				   .insns = leave,
				   .ninsns = ARRAY_SIZE(leave),
				   .relocs = r1,
				   .nrelocs = ARRAY_SIZE(r1) },
			 } };
	struct seen s = { 0 };
	char file[] = "/tmp/descry-late-XXXXXX";
	int fd = mkstemp(file);

	enter[3].off = (int16_t)(30 - 3 - 1);
	enter[8].off = (int16_t)(30 - 8 - 1);
	assert_int_equal(write(fd, "/no/such/file", 14), 14);
	/* A fresh mapping: no page of it is in this process's tables yet. */
	char *path = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
	run_open(&r, 2);
	r.area->item = (struct wire_late_item){ .offset = 40, .probe = 9, .size = 64 };
	assert_int_equal(syscall(SYS_openat, AT_FDCWD, path, O_RDONLY), -1);
	r.e->ops->drain(r.e, see, &s);
	assert_int_equal(r.area->result, 1);
	assert_int_equal(s.n, 1);
	assert_int_equal(s.late.error, 0);
	assert_string_equal(s.late.text, "/no/such/file");
	assert_int_equal(s.late.offset, 40);
	assert_int_equal(s.late.head.probe, 9);
	assert_int_equal(s.late.head.late, r.area->item.number);
	assert_int_equal(s.late.head.tid, getpid());
	assert_int_equal(r.e->state->late_pending, 0);
	/* An invalid address is not read, and this is recorded. */
	assert_int_equal(syscall(SYS_openat, AT_FDCWD, 16L, O_RDONLY), -1);
	r.e->ops->drain(r.e, see, &s);
	assert_int_equal(s.n, 2);
	assert_true(s.late.error < 0);
	assert_string_equal(s.late.text, "");
	run_close(&r);
	munmap(path, 4096);
	close(fd);
	unlink(file);
}

int main(void)
{
	need_kernel();
	types = type_graph_new();
	type_use_kernel(types, NULL);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_paths),
		cmocka_unit_test(test_processes),
		cmocka_unit_test(test_scratch_and_fault),
		cmocka_unit_test(test_vtimestamp),
		cmocka_unit_test(test_late),
	};
	int r = cmocka_run_group_tests(tests, NULL, NULL);

	type_graph_free(types);
	return r;
}
