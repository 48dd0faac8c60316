/* User stacks walked in the kernel, from a real uprobe on malloc: every frame's caller is compared
 * with libdw's walk of the same stopped thread. Prints rates and the cost of a frame.
 * UNWIND_STOPS=n: stops per program (default 15). */
#define _GNU_SOURCE
#include "kernel_test.h"

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>

#include "libdw_stack.h"
#include "load/kernel/unwind_tables.h"
#include "program/object/object.h"
#include "program/symbol/symbol.h"
#include "wire/wire_unwind.h"

enum { HELPER_SEND_SIGNAL = 109, FRAMES = WIRE_STACK_FRAMES };

struct area {
	uint64_t always, countdown;
	uint64_t result, bytes, calls, pad;
	struct wire_unwind_offsets o;
	uint32_t pad2;
	struct wire_stack s; /* with what follows a struct wire_walk */
	uint64_t state[WIRE_UNWIND_STATE];
};

static struct area *area;
static int area_fd;
static struct unwind_tables *tables;
static uint32_t verified;

static int32_t hook_map(void *arg, uint32_t index)
{
	return index == 0   ? area_fd
	       : index == 1 ? unwind_tables_chunks(tables)
	       : index == 2 ? unwind_tables_processes(tables)
			    : unwind_tables_wanted(tables);
}

static void area_open(void)
{
	union bpf_attr a = { .map_type = BPF_MAP_TYPE_ARRAY,
			     .key_size = 4,
			     .value_size = sizeof(struct area),
			     .max_entries = 1,
			     .map_flags = BPF_F_MMAPABLE };

	area_fd = sys_bpf(BPF_MAP_CREATE, &a, sizeof(a));
	assert_true(area_fd >= 0);
	area = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, area_fd, 0);
	assert_ptr_not_equal(area, MAP_FAILED);
}

#define AT(field) ((int)offsetof(struct area, field))

/* Takes the stack when the countdown ends, and stops the thread; `always`: each time, without
 * stopping. */
static int load(enum bpf_prog_type type)
{
	struct bpf_insn ins[64];
	struct reloc relocs[8];
	uint32_t n = 0, nr = 0, jump[4], nj = 0;
	static char log[1 << 20];

	relocs[nr++] = (struct reloc){ .insn = n, .kind = RELOC_MAP_VALUE };
	ins[n++] = I(BPF_LD | BPF_IMM | BPF_DW, R9, 0, 0, 0);
	ins[n++] = I(0, 0, 0, 0, 0);
	ins[n++] = LDX(R1, R9, AT(always));
	ins[n++] = JNEI(R1, 0, 5);
	ins[n++] = LDX(R1, R9, AT(countdown));
	jump[nj++] = n;
	ins[n++] = JEQI(R1, 0, 0);
	ins[n++] = ADDI(R1, -1);
	ins[n++] = STX(R9, R1, AT(countdown));
	jump[nj++] = n;
	ins[n++] = JNEI(R1, 0, 0);
	for (uint32_t i = 1; i <= 3; i++) {
		relocs[nr++] = (struct reloc){ .insn = n, .kind = RELOC_MAP, .target = i };
		ins[n++] = I(BPF_LD | BPF_IMM | BPF_DW, R0 + i, 0, 0, 0);
		ins[n++] = I(0, 0, 0, 0, 0);
	}
	ins[n++] = MOV(R4, R9);
	ins[n++] = ADDI(R4, AT(s));
	ins[n++] = MOVI(R5, FRAMES);
	ins[n++] = I(BPF_STX | BPF_MEM | BPF_W, R4, R5, offsetof(struct wire_stack, n), 0);
	ins[n++] = MOV(R5, R9);
	ins[n++] = ADDI(R5, AT(o));
	relocs[nr++] = (struct reloc){ .insn = n, .kind = RELOC_ROUTINE, .name = "d_ustack" };
	ins[n++] = ROUTINE_CALL;
	ins[n++] = STX(R9, R0, AT(result));
	ins[n++] = LDX(R1, R9, AT(bytes));
	ins[n++] = I(BPF_ALU64 | BPF_ADD | BPF_X, R1, R0, 0, 0);
	ins[n++] = STX(R9, R1, AT(bytes));
	ins[n++] = LDX(R1, R9, AT(calls));
	ins[n++] = ADDI(R1, 1);
	ins[n++] = STX(R9, R1, AT(calls));
	ins[n++] = LDX(R1, R9, AT(always));
	jump[nj++] = n;
	ins[n++] = JNEI(R1, 0, 0);
	ins[n++] = MOVI(R1, SIGSTOP);
	ins[n++] = CALL(HELPER_SEND_SIGNAL);
	for (uint32_t i = 0; i < nj; i++)
		ins[jump[i]].off = (int16_t)(n - jump[i] - 1);
	ins[n++] = MOVI(R0, 0);
	ins[n++] = EXIT;

	struct image_prog p = {
		.name = "unwind", .insns = ins, .ninsns = n, .relocs = relocs, .nrelocs = nr
	};
	struct link_hooks hooks = { .map = hook_map };
	struct linked l;

	assert_ok(link_prog(&p, &hooks, &l));
	linked_types(&l);
	cleanup_close int btf = sys_btf_load(l.btf, l.btf_size);
	assert_true(btf >= 0);
	union bpf_attr a = { .prog_type = type,
			     .license = (uintptr_t) "GPL",
			     .insns = (uintptr_t)l.insns,
			     .insn_cnt = l.ninsns,
			     .prog_btf_fd = (uint32_t)btf,
			     .func_info = (uintptr_t)l.func_info,
			     .func_info_cnt = l.nfuncs,
			     .func_info_rec_size = sizeof(struct bpf_func_info),
			     .log_buf = (uintptr_t)log,
			     .log_size = sizeof(log),
			     .log_level = 4 };

	if (type == BPF_PROG_TYPE_KPROBE)
		a.expected_attach_type = (enum bpf_attach_type)48;
	int fd = sys_prog_load(&a);

	if (fd < 0) {
		a.log_level = 1;
		sys_prog_load(&a);
		size_t len = strlen(log);

		fail_msg("%s\n...%s", strerror(errno), log + (len > 3000 ? len - 3000 : 0));
	}
	const char *walked = strstr(log, "processed "), *depth = strstr(log, "stack depth ");

	verified = walked ? (uint32_t)atoi(walked + 10) : 0;
	printf("verifier: %u instructions, %.*s\n", verified, depth ? (int)strcspn(depth, "\n") : 0,
	       depth ? depth : "");
	linked_free(&l);
	return fd;
}

static void test_verifies(void **state)
{
	static const enum bpf_prog_type types[] = { BPF_PROG_TYPE_RAW_TRACEPOINT,
						    BPF_PROG_TYPE_PERF_EVENT };

	for (uint32_t i = 0; i < ARRAY_SIZE(types); i++)
		close(load(types[i]));
	/* The verifier does not know area->o.java here, nor o.javascript, and walks all code. */
	assert_true(verified < 120000);
}

static pid_t start(char *const *argv)
{
	pid_t pid = fork();

	if (!pid) {
		if (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr))
			_exit(126);
		execvp(argv[0], argv);
		_exit(127);
	}
	return pid;
}

static void sleep_ms(uint32_t ms)
{
	struct timespec t = { ms / 1000, ms % 1000 * 1000000L };

	nanosleep(&t, NULL);
}

static double clock_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Waits for the stop that the program requested. */
static bool wait_stop(pid_t pid)
{
	int status;
	double until = clock_s() + 5;

	while (clock_s() < until) {
		pid_t got = waitpid(pid, &status, __WALL | WNOHANG);

		if (got == pid && !WIFSTOPPED(status))
			return false;
		if (got == pid && WSTOPSIG(status) == SIGSTOP && !(status >> 16))
			return true;
		if (got == pid)
			ptrace(PTRACE_CONT, pid, NULL, status >> 16 ? 0 : WSTOPSIG(status));
		else
			sleep_ms(1);
	}
	return false;
}

/* The path and file offset of malloc of pid's libc. */
static char *find_malloc(pid_t pid, uint64_t *ret_offset)
{
	struct mappings maps;
	char *found = NULL;

	if (mappings_read(pid, &maps))
		return NULL;
	for (uint32_t i = 0; i < maps.n && !found; i++) {
		const struct object_symbol *s;
		struct object *o;

		if (!strstr(maps.v[i].path, "/libc.so.6") || object_open(maps.v[i].path, &o))
			continue;
		s = object_find_name(o, "malloc");
		if (s && object_addr_to_offset(o, s->addr, ret_offset))
			found = xstrdup(maps.v[i].path);
		object_free(o);
	}
	mappings_free(&maps);
	return found;
}

static void run_stats(int prog, uint64_t *ret_ns, uint64_t *ret_runs)
{
	struct bpf_prog_info info = { 0 };
	union bpf_attr a = { .info = { .bpf_fd = (uint32_t)prog,
				       .info_len = sizeof(info),
				       .info = (uintptr_t)&info } };

	sys_bpf(BPF_OBJ_GET_INFO_BY_FD, &a, sizeof(a));
	*ret_ns = info.run_time_ns;
	*ret_runs = info.run_cnt;
}

static void measure(int prog)
{
	union bpf_attr a = { .enable_stats = { .type = BPF_STATS_RUN_TIME } };
	cleanup_close int stats = sys_bpf(BPF_ENABLE_STATS, &a, sizeof(a));
	uint64_t ns0, runs0, ns, runs;

	area->bytes = area->calls = 0;
	run_stats(prog, &ns0, &runs0);
	area->always = 1;
	sleep_ms(300);
	area->always = 0;
	sleep_ms(2);
	run_stats(prog, &ns, &runs);
	if (area->calls)
		printf("             %lu stacks of %.1f frames, %.0f ns each, %.0f ns a frame\n",
		       (unsigned long)area->calls, (double)area->bytes / 8 / (double)area->calls,
		       (double)(ns - ns0) / (double)area->calls,
		       (double)(ns - ns0) / ((double)area->bytes / 8));
}

struct rate {
	uint32_t stops, same, ends[WIRE_UNWIND_END_COUNT + 1];
};

static void run_program(const char *name, char *const *argv, struct rate *total)
{
	static struct frames libdw;
	struct rate r = { 0 };
	uint32_t want = getenv("UNWIND_STOPS") ? (uint32_t)atoi(getenv("UNWIND_STOPS")) : 15;
	pid_t pid = start(argv);
	uint64_t offset;
	cleanup_free char *libc = NULL;
	int status;

	sleep_ms(150);
	libc = find_malloc(pid, &offset);
	if (!libc || waitpid(pid, &status, WNOHANG)) {
		printf("%-12s does not run here\n", name);
		kill(pid, SIGKILL);
		waitpid(pid, &status, 0);
		return;
	}
	assert_ok(unwind_tables_add(tables, pid));
	assert_int_equal(ptrace(PTRACE_SEIZE, pid, NULL, NULL), 0);

	int prog = load(BPF_PROG_TYPE_KPROBE);
	struct uprobe_multi u = { .path = libc, .offsets = &offset, .n = 1, .pid = (uint32_t)pid };
	int link = sys_link_uprobe_multi(prog, &u);

	assert_true(link >= 0);
	while (r.stops < want) {
		area->countdown = 1 + (uint64_t)random() % 3000;
		if (!wait_stop(pid))
			break;
		libdw_stack(pid, &libdw);
		unwind_tables_refresh(tables);
		/* Stopped in the page where the kernel steps the probed instruction: libdw is
		 * lost. */
		if (libdw.error && libdw.n <= 2) {
			ptrace(PTRACE_CONT, pid, NULL, 0);
			continue;
		}

		const struct wire_stack *s = &area->s;
		uint32_t n = s->n, ln = libdw.n < FRAMES ? libdw.n : FRAMES, i = 1;

		r.stops++;
		assert_true(s->end >= 1 && s->end <= WIRE_UNWIND_END_COUNT);
		r.ends[s->end]++;
		/* Frame 0 may have gone on by an instruction. */
		while (i < n && i < ln && s->pc[i] == libdw.pc[i])
			i++;
		if (i == n && n == ln) {
			r.same++;
		} else {
			printf("  %s: %u frames (end %u), libdw %u%s, differ at %u: %#lx, libdw %#lx\n",
			       name, n, s->end - 1, libdw.n, libdw.error ? " (error)" : "", i,
			       i < n ? (unsigned long)s->pc[i] : 0,
			       i < ln ? (unsigned long)libdw.pc[i] : 0);
		}
		ptrace(PTRACE_CONT, pid, NULL, 0);
	}
	area->countdown = 0;
	printf("%-12s %4u stops, %6.2f%% as libdw, %u complete, %u too deep\n", name, r.stops,
	       r.stops ? 100.0 * r.same / r.stops : 0.0, r.ends[1 + WIRE_UNWIND_END_ROOT],
	       r.ends[1 + WIRE_UNWIND_END_DEEP]);
	measure(prog);
	fflush(stdout);
	total->stops += r.stops;
	total->same += r.same;
	close(link);
	close(prog);
	kill(pid, SIGKILL);
	waitpid(pid, &status, __WALL);
}

static void test_uprobe(void **state)
{
	static const char python[] =
		"import json,re,random\n"
		"def f(n): return [n] if n<2 else f(n-1)+f(n-2)\n"
		"while True:\n"
		" f(7); s=json.dumps({str(i):[random.random()]*3 for i in range(40)}); json.loads(s)\n"
		" re.findall(r'(\\d+\\.\\d)+', s*20); bytearray(5000); 'x'*3000\n";
	static const char bash[] = "f(){ local x=$1; ((x>0)) && f $((x-1)); y=${x//1/2}; }; "
				   "while :; do f 6; z=$(( z+1 )); printf -v w '%05d' $z; done";
	static const char perl[] =
		"while(1){ my %h; for my $i (1..300){ $h{\"k$i\"}=[map {$_*2} 1..5]; } "
		"my @k = sort keys %h; join(',',@k) =~ s/k(\\d+)/$1/gr; }";
	struct {
		const char *name;
		char *argv[8];
	} programs[] = {
		{ "python3", { "/usr/bin/python3", "-c", (char *)python } },
		{ "bash", { "bash", "-c", (char *)bash } },
		{ "perl", { "perl", "-e", (char *)perl } },
		{ "git",
		  { "sh", "-c", "exec git -C ${UNWIND_GIT:-.} log -p --stat --all >/dev/null" } },
	};
	struct rate total = { 0 };

	if (!feature(FEATURE_UPROBE_MULTI))
		skip();
	srandom((unsigned)time(NULL));
	for (uint32_t i = 0; i < ARRAY_SIZE(programs); i++)
		run_program(programs[i].name, programs[i].argv, &total);
	printf("tables: %lu KB\n", (unsigned long)(unwind_tables_bytes(tables) >> 10));
	assert_true(total.stops > 0);
	assert_true(total.same * 100 >= total.stops * 95);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_verifies),
		cmocka_unit_test(test_uprobe),
	};

	need_kernel();
	struct err *e = unwind_tables_new(NULL, &tables);

	if (e) {
		fprintf(stderr, "SKIP: %s\n", e->text);
		return SKIP;
	}
	area_open();

	int r = cmocka_run_group_tests(tests, NULL, NULL);

	unwind_tables_free(tables);
	return r;
}
