/* The pid and usdt providers against live processes: a fork of this test, bash stopped at its exec,
 * the tracee of test/tracee/usdt.c in its own words (the same probes are in this test). */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/mem.h"
#include "elf_make.h"
#include "probe/probe.h"
#include "unit.h"

#if __has_include(<sys/sdt.h>)
#include <sys/sdt.h>
#define HAVE_SDT 1
#else
#define HAVE_SDT 0
#define DTRACE_PROBE(p, n)
#define DTRACE_PROBE3(p, n, a, b, c)
#endif

/* A function whose instructions are known:
 *	0 endbr64  4 push %rbp  5 mov %rsp,%rbp  8 lock incl (%rsp)  c pop %rbp  d ret */
void pid_test_known(void);
/* The same start, but a loop comes back to behind the endbr64: the probe must stay at 0.
 *	0 endbr64  4 push %rax  5 pop %rax  6 dec %rdi  9 jne 4  b ret */
void pid_test_loop(void);
void pid_test_locked(void);
__asm__(".text\n"
	".globl pid_test_known\n.type pid_test_known,@function\npid_test_known:\n"
	".byte 0xf3,0x0f,0x1e,0xfa\n push %rbp\n mov %rsp,%rbp\n lock incl (%rsp)\n pop %rbp\n ret\n"
	".size pid_test_known, .-pid_test_known\n"
	".globl __pid_test_alias\n.set __pid_test_alias, pid_test_known\n"
	".globl pid_test_loop\n.type pid_test_loop,@function\npid_test_loop:\n"
	".byte 0xf3,0x0f,0x1e,0xfa\n1: push %rax\n pop %rax\n dec %rdi\n jne 1b\n ret\n"
	".size pid_test_loop, .-pid_test_loop\n"
	".globl pid_test_locked\n.type pid_test_locked,@function\npid_test_locked:\n"
	" lock incl (%rdi)\n ret\n"
	".size pid_test_locked, .-pid_test_locked\n"
	".globl pid_test_nameless\n.cfi_startproc\npid_test_nameless:\n"
	" mov $0x11905011, %eax\n ret\n.cfi_endproc\n");
/* It is no function for the symbol table; the unwind tables know it. */
void pid_test_nameless(void);

__attribute__((noinline, used)) static void fire(int a, const char *text)
{
	volatile long local = a;

	DTRACE_PROBE(pidtest, twice);
	DTRACE_PROBE3(pidtest, work__start, a, text, local);
	DTRACE_PROBE(pidtest, twice);
}

struct seen {
	struct probe *p[65536];
	uint32_t n;
};

static void found(void *arg, struct probe *p)
{
	struct seen *s = arg;

	if (s->n < ARRAY_SIZE(s->p))
		s->p[s->n] = p;
	s->n++;
}

struct fixture {
	struct symbols *symbols;
	struct probe_set ps;
	struct seen seen;
	pid_t pid;
	char pid_prov[32];
};

static struct fixture *fixture_new(pid_t pid, bool is_command)
{
	struct fixture *f = xcalloc(1, sizeof(*f));

	f->symbols = symbols_new();
	f->pid = pid;
	snprintf(f->pid_prov, sizeof(f->pid_prov), "pid%d", (int)pid);
	probe_set_init(&f->ps, NULL, f->symbols);
	vec_push(&f->ps.targets, (struct probe_target){ .pid = pid, .is_command = is_command });
	return f;
}

static void fixture_free(struct fixture *f)
{
	kill(f->pid, SIGKILL);
	waitpid(f->pid, NULL, 0);
	probe_set_fini(&f->ps);
	symbols_free(f->symbols);
	free(f);
}

static uint32_t match(struct fixture *f, const char *prov, const char *mod, const char *func,
		      const char *name)
{
	struct probe_desc pd = { prov, mod, func, name };
	const struct provider *pv = !strncmp(prov, "pid", 3) && strncmp(prov, "pidtest", 7)
					    ? &provider_pid
					    : &provider_usdt;
	struct err *e;

	f->seen.n = 0;
	assert_true(pv->claims(pv, prov));
	e = pv->match(pv, &f->ps, &pd, found, &f->seen);
	if (e)
		fail_msg("%s", e->text);
	return f->seen.n;
}

static struct fixture *fork_self(void)
{
	pid_t pid = fork();

	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* a failing test must not leave us behind */
		fire(1, "x");
		pause();
		_exit(0);
	}
	return fixture_new(pid, false);
}

static void test_claims(void **state)
{
	const struct provider *p = &provider_pid, *u = &provider_usdt;

	assert_true(p->claims(p, "pid1"));
	assert_true(p->claims(p, "pid*"));
	assert_false(p->claims(p, "pid"));
	assert_false(p->claims(p, "pid1x"));
	assert_false(p->claims(p, "python1"));
	assert_false(p->claims(p, ""));
	assert_true(u->claims(u, "python12"));
	assert_true(u->claims(u, "python*"));
	assert_false(u->claims(u, "pid12"));
	assert_false(u->claims(u, "12"));
	assert_false(u->claims(u, "syscall"));
	assert_true(u->claims(u, "")); /* any provider of the target */
}

static void test_known_function(void **state)
{
	struct fixture *f = fork_self();
	struct probe *entry, *ret, *p;
	struct probe_args args = { 0 };

	assert_int_equal(match(f, f->pid_prov, "a.out", "pid_test_known", "entry"), 1);
	entry = f->seen.p[0];
	assert_string_equal(entry->mod, "test_probe_pid");
	assert_string_equal(entry->func, "pid_test_known");
	assert_int_equal(entry->kind, ATTACH_UPROBE);
	assert_int_equal(entry->pid, f->pid);
	assert_true(entry->id >= 100000);
	assert_null(entry->unavailable);
	assert_non_null(strstr(entry->note, "endbr64"));
	assert_int_equal(match(f, "pid*", "test_probe_pid", "pid_test_known", "return"), 1);
	ret = f->seen.p[0];
	assert_int_equal(ret->kind, ATTACH_URETPROBE);
	assert_int_equal(ret->offset + 4, entry->offset);
	assert_true(ret->id > entry->id);
	/* the same again is the same probe */
	assert_int_equal(match(f, f->pid_prov, "", "pid_test_known", "entry"), 1);
	assert_ptr_equal(f->seen.p[0], entry);

	/* instructions: 0 4 5 8(refused) c d */
	assert_int_equal(match(f, f->pid_prov, "a.out", "pid_test_known", ""), 8);
	assert_int_equal(match(f, f->pid_prov, "a.out", "pid_test_know?", ""), 7);
	assert_int_equal(f->ps.notes.n, 1);
	assert_non_null(
		strstr(f->ps.notes.v[0], "pid_test_known:8 (the kernel refuses a lock prefix)"));
	assert_int_equal(match(f, f->pid_prov, "a.out", "pid_test_known", "5"), 1);
	assert_int_equal(f->seen.p[0]->offset, ret->offset + 5);
	assert_string_equal(f->seen.p[0]->name, "5");
	assert_int_equal(match(f, f->pid_prov, "a.out", "pid_test_known", "[cd]"), 2);
	assert_int_equal(match(f, f->pid_prov, "a.out", "pid_test_known", "6"), 1);
	assert_non_null(f->seen.p[0]->unavailable);
	assert_int_equal(match(f, f->pid_prov, "a.out", "pid_test_known", "8"), 1);
	assert_non_null(strstr(f->seen.p[0]->unavailable, "lock"));
	assert_int_equal(match(f, f->pid_prov, "a.out", "pid_test_known", "100"), 0);

	/* an alias by its name, but once per address by pattern */
	assert_int_equal(match(f, f->pid_prov, "a.out", "__pid_test_alias", "entry"), 1);
	assert_int_equal(match(f, f->pid_prov, "a.out", "*pid_test_[ak]*", "entry"), 1);
	assert_ptr_equal(f->seen.p[0], entry);

	/* a loop to behind the endbr64 keeps the probe at the start */
	assert_int_equal(match(f, f->pid_prov, "a.out", "pid_test_loop", "entry"), 1);
	p = f->seen.p[0];
	assert_int_equal(match(f, f->pid_prov, "a.out", "pid_test_loop", "return"), 1);
	assert_int_equal(f->seen.p[0]->offset, p->offset);

	/* a refused first instruction */
	assert_int_equal(match(f, f->pid_prov, "a.out", "pid_test_locked", "entry"), 1);
	assert_non_null(f->seen.p[0]->unavailable);
	assert_int_equal(match(f, f->pid_prov, "a.out", "pid_test_locke*", "entry"), 0);

	assert_null(provider_pid.args(&f->ps, entry, &args));
	assert_int_equal(args.arg[0].source, ARG_REG);
	assert_int_equal(args.arg[0].value, UREG_RDI);
	assert_int_equal(args.arg[5].value, UREG_R9);
	assert_int_equal(args.arg[6].source, ARG_USDT);
	assert_int_equal(args.arg[6].usdt.disp, 8);
	assert_int_equal(args.arg[6].usdt.base, UREG_RSP);
	memset(&args, 0, sizeof(args));
	assert_null(provider_pid.args(&f->ps, ret, &args));
	assert_int_equal(args.arg[0].source, ARG_CONST);
	assert_int_equal(args.arg[1].source, ARG_RETURN);
	fixture_free(f);
}

static void test_addresses(void **state)
{
	struct fixture *f = fork_self();
	char name[32];
	uint64_t off;

	match(f, f->pid_prov, "a.out", "pid_test_known", "return");
	off = f->seen.p[0]->offset;
	/* of the process, because a fork has the same addresses */
	snprintf(name, sizeof(name), "%llx", (unsigned long long)(uintptr_t)pid_test_known);
	assert_int_equal(match(f, f->pid_prov, "", "-", name), 1);
	assert_int_equal(f->seen.p[0]->offset, off);
	assert_string_equal(f->seen.p[0]->func, "-");
	assert_string_equal(f->seen.p[0]->name, name);
	snprintf(name, sizeof(name), "%llx", (unsigned long long)(uintptr_t)pid_test_known + 6);
	assert_int_equal(match(f, f->pid_prov, "a.out", "-", name), 1);
	assert_non_null(f->seen.p[0]->unavailable);
	/* of the file */
	match(f, f->pid_prov, "a.out", "pid_test_known", "entry");
	snprintf(name, sizeof(name), "%llx", (unsigned long long)f->seen.p[0]->addr + 5);
	assert_int_equal(match(f, f->pid_prov, "a.out", "-", name), 1);
	assert_int_equal(f->seen.p[0]->offset, off + 5);
	assert_int_equal(match(f, f->pid_prov, "a.out", "-", "1"), 0);
	/* of the file alone, whatever the process has mapped there */
	assert_int_equal(match(f, f->pid_prov, "a.out", "--", name), 1);
	assert_int_equal(f->seen.p[0]->offset, off + 5);
	assert_string_equal(f->seen.p[0]->func, "--");
	snprintf(name, sizeof(name), "%llx", (unsigned long long)(uintptr_t)pid_test_known);
	assert_int_equal(match(f, f->pid_prov, "a.out", "--", name), 0);
	/* the inside of an instruction that no symbol covers */
	for (uint32_t i = 0; i < 6; i++) {
		snprintf(name, sizeof(name), "%llx",
			 (unsigned long long)(uintptr_t)pid_test_nameless + i);
		assert_int_equal(match(f, f->pid_prov, "a.out", "-", name), 1);
		assert_int_equal(!f->seen.p[0]->unavailable, i == 0 || i == 5);
	}
	fixture_free(f);
}

static void test_modules(void **state)
{
	struct fixture *f = fork_self();
	static const char *const names[] = { "libc.so.6", "libc.so",   "libc",
					     "libc.*",    "libc.so.?", "libc*" };

	for (uint32_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (match(f, f->pid_prov, names[i], "fopencookie", "entry") != 1)
			fail_msg("%s: %u probes", names[i], f->seen.n);
		assert_string_equal(f->seen.p[0]->mod, "libc.so.6");
	}
	assert_int_equal(match(f, f->pid_prov, "lib", "fopencookie", "entry"), 0);
	assert_int_equal(match(f, f->pid_prov, "libm", "fopencookie", "entry"), 0);
	assert_int_equal(match(f, f->pid_prov, "libc", "no_such_function", "entry"), 0);
	assert_true(match(f, f->pid_prov, "libc", "str*", "entry") > 50);
	/* functions that a return probe would break */
	assert_int_equal(match(f, f->pid_prov, "libc", "setjmp", "return"), 1);
	assert_non_null(f->seen.p[0]->unavailable);
	assert_int_equal(match(f, f->pid_prov, "libc", "setjmp", "entry"), 1);
	assert_null(f->seen.p[0]->unavailable);
	assert_int_equal(match(f, f->pid_prov, "a.out", "_start", "return"), 1);
	assert_non_null(f->seen.p[0]->unavailable);
	match(f, f->pid_prov, "libc", "", "return");
	for (uint32_t i = 0; i < f->seen.n; i++) {
		assert_null(strstr(f->seen.p[i]->func, ".cold"));
		assert_null(strstr(f->seen.p[i]->func, "setjmp")
				    ? f->seen.p[i]->unavailable ? NULL : "offered"
				    : NULL);
	}
	fixture_free(f);
}

static void test_no_process(void **state)
{
	struct symbols *s = symbols_new();
	struct probe_set ps;
	struct probe_desc pd = { "pid999999999", "", "main", "entry" };
	struct seen *seen = xcalloc(1, sizeof(*seen));
	struct err *e;

	probe_set_init(&ps, NULL, s);
	e = provider_pid.match(&provider_pid, &ps, &pd, found, seen);
	assert_non_null(e);
	assert_non_null(strstr(e->text, "999999999"));
	err_free(e);
	pd.prov = "python999999999";
	assert_null(provider_usdt.match(&provider_usdt, &ps, &pd, found, seen));
	pd.prov = "pid*";
	assert_null(provider_pid.match(&provider_pid, &ps, &pd, found, seen));
	assert_int_equal(seen->n, 0);
	free(seen);
	probe_set_fini(&ps);
	symbols_free(s);
}

/* bash stopped at its exec maps itself and ld.so only; its libraries must be found all the same. */
static void test_command(void **state)
{
	struct fixture *f;
	int status;
	pid_t pid = fork();

	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		execl("/bin/bash", "bash", "-c", "exit 0", (char *)NULL);
		_exit(127);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSTOPPED(status));
	f = fixture_new(pid, true);
	assert_int_equal(match(f, "pid*", "libc", "malloc", "entry"), 1);
	assert_string_equal(f->seen.p[0]->mod, "libc.so.6");
	assert_int_equal(access(f->seen.p[0]->object, R_OK), 0);
	assert_true(match(f, f->pid_prov, "a.out", "", "entry") > 100);
	assert_string_equal(f->seen.p[0]->mod, "bash");
	assert_true(match(f, f->pid_prov, "libtinfo", "", "entry") > 50);
	assert_true(match(f, f->pid_prov, "ld-linux-x86-64", "", "entry") > 5);
	/* malloc lies in libc and, for its own use, in ld.so: never twice in one file */
	assert_true(match(f, f->pid_prov, "", "malloc", "entry") >= 1);
	for (uint32_t i = 1; i < f->seen.n; i++)
		assert_string_not_equal(f->seen.p[i]->object, f->seen.p[0]->object);
	fixture_free(f);
}

static void test_usdt(void **state)
{
	struct fixture *f = fork_self();
	struct probe_args args = { 0 };
	char prov[32];

	if (!HAVE_SDT) {
		fixture_free(f);
		skip();
	}
	snprintf(prov, sizeof(prov), "pidtest%d", (int)f->pid);
	assert_int_equal(match(f, prov, "", "", ""), 3);
	assert_int_equal(match(f, "pidtest*", "a.out", "fire", "work-start"), 1);
	assert_int_equal(match(f, prov, "", "fire", "work__start"), 1);
	assert_string_equal(f->seen.p[0]->prov, prov);
	assert_string_equal(f->seen.p[0]->name, "work-start");
	assert_string_equal(f->seen.p[0]->func, "fire");
	assert_int_equal(f->seen.p[0]->pid, f->pid);
	assert_null(provider_usdt.args(&f->ps, f->seen.p[0], &args));
	assert_true(args.known);
	assert_int_equal(args.ntyped, 3);
	assert_int_equal(args.typed[0].type, T_INT32);
	assert_int_equal(args.arg[1].source, ARG_USDT);
	assert_int_equal(args.arg[3].source, ARG_NONE);
	/* one name at two places: two probes, and the same two at the second query */
	assert_int_equal(match(f, prov, "", "", "twice"), 2);
	struct probe *a = f->seen.p[0], *b = f->seen.p[1];

	assert_ptr_not_equal(a, b);
	assert_int_not_equal(a->id, b->id);
	assert_int_not_equal(a->offset, b->offset);
	assert_int_equal(match(f, prov, "", "", "twice"), 2);
	assert_ptr_equal(f->seen.p[0], a);
	assert_ptr_equal(f->seen.p[1], b);
	assert_int_equal(match(f, prov, "", "", "nothing"), 0);
	fixture_free(f);
}

/* The kernel must accept every probe offered, because one refusal fails a whole multi link. */
static void test_kernel_takes_all(void **state)
{
	static const uint64_t insns[] = { 0xb7, 0x95 };
	struct {
		uint32_t type, insn_cnt;
		uint64_t insns, license;
		uint32_t log_level, log_size;
		uint64_t log_buf;
		uint32_t kern_version, flags;
		char name[16];
		uint32_t ifindex, expected_attach_type;
	} load = {
		.type = 2,
		.insn_cnt = 2,
		.insns = (uintptr_t)insns,
		.license = (uintptr_t) "GPL",
		.expected_attach_type = 48,
	};
	struct fixture *f = fork_self();
	int prog = (int)syscall(SYS_bpf, 5, &load, sizeof(load));
	static const char *const names[] = { "entry", "return" };

	if (prog < 0) {
		print_message("[  note  ] no bpf here (%s)\n", strerror(errno));
		fixture_free(f);
		skip();
	}
	for (uint32_t k = 0; k < ARRAY_SIZE(names); k++) {
		uint32_t n = match(f, f->pid_prov, "libc", "", names[k]);
		uint64_t *offsets = xcalloc(n, sizeof(*offsets));
		struct {
			uint32_t prog, target, type, flags;
			uint64_t path, offsets, ref_ctr, cookies;
			uint32_t n, multi_flags, pid, pad;
		} link = {
			.prog = (uint32_t)prog,
			.type = 48,
			.path = (uintptr_t)f->seen.p[0]->object,
			.offsets = (uintptr_t)offsets,
			.n = n,
			.pid = (uint32_t)f->pid,
			.multi_flags = k,
		};
		int fd;

		assert_true(n > 1000);
		for (uint32_t i = 0; i < n; i++)
			offsets[i] = f->seen.p[i]->offset;
		fd = (int)syscall(SYS_bpf, 28, &link, sizeof(link));
		if (fd < 0 && k == 0 && errno == EINVAL)
			break; /* a kernel without uprobe_multi */
		if (fd < 0)
			fail_msg("%u %s probes of libc: %s", n, names[k], strerror(errno));
		close(fd);
		free(offsets);
	}
	close(prog);
	fixture_free(f);
}

/* Files whose text is a hole of 64 MB, in which 20 functions of 1 MB overlap: the code that is
 * decoded for a description has a limit for all objects, which holes do not raise. */
static void test_decoded(void **state)
{
	enum { FILES = 2, FUNCTIONS = 20, TEXT = 64 << 20, MB = 1 << 20 };
	char dir[] = "/tmp/descry-holes-XXXXXX", path[64], names[FUNCTIONS][8];
	struct elf_symbol symbols[FUNCTIONS];
	struct fixture *f;
	void *at[FILES];
	uint32_t noted = 0;

	assert_non_null(mkdtemp(dir));
	for (uint32_t i = 0; i < FUNCTIONS; i++) {
		snprintf(names[i], sizeof(names[i]), "f%u", i);
		symbols[i] = (struct elf_symbol){ names[i], ELF_TEXT_ADDR + i, MB,
						  STT_FUNC | STB_GLOBAL << 4 };
	}
	for (uint32_t i = 0; i < FILES; i++) {
		struct elf_make e = elf_make(symbols, FUNCTIONS, 0);
		Elf64_Phdr *text = (Elf64_Phdr *)(e.image + ((Elf64_Ehdr *)e.image)->e_phoff);
		int fd;

		text->p_filesz = text->p_memsz = TEXT;
		memset(e.image + ELF_TEXT_OFF, 0x06, ELF_TEXT_SIZE); /* no instruction */
		snprintf(path, sizeof(path), "%s/holes%u.so", dir, i);
		fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
		assert_int_equal(write(fd, e.image, e.size), e.size);
		assert_int_equal(ftruncate(fd, TEXT + 4096), 0);
		at[i] = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
		assert_true(at[i] != MAP_FAILED);
		close(fd);
		free(e.image);
	}
	f = fork_self(); /* has the same mappings */
	assert_int_equal(match(f, f->pid_prov, "holes*", "", "q*"), 0);
	for (uint32_t i = 0; i < f->ps.notes.n; i++)
		noted += strstr(f->ps.notes.v[i], "too much code") != NULL;
	assert_int_equal(noted, 1); /* 20 MB of the first file, 12 MB of the second */
	fixture_free(f);
	for (uint32_t i = 0; i < FILES; i++) {
		munmap(at[i], 4096);
		snprintf(path, sizeof(path), "%s/holes%u.so", dir, i);
		unlink(path);
	}
	rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_claims),     cmocka_unit_test(test_known_function),
		cmocka_unit_test(test_addresses),  cmocka_unit_test(test_modules),
		cmocka_unit_test(test_no_process), cmocka_unit_test(test_command),
		cmocka_unit_test(test_usdt),       cmocka_unit_test(test_kernel_takes_all),
		cmocka_unit_test(test_decoded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
