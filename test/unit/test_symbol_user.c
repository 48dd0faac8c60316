/* Addresses of processes: this process, an ended child, deleted files, JIT code, the vdso. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <time.h>

#include "base/io.h"
#include "base/mem.h"
#include "program/symbol/symbol.h"
#include "unit.h"

__attribute__((noinline)) int symbol_test_function(int x);
__attribute__((noinline)) int symbol_test_function(int x)
{
	return x * 3 + 1;
}

static void check_place(struct symbols *s, pid_t pid, uint64_t addr, const char *expect)
{
	struct place p;
	char buf[256];

	symbols_user(s, pid, 0, addr, &p);
	place_format(&p, addr, true, buf, sizeof(buf));
	assert_string_equal(buf, expect);
}

static void test_own(void **state)
{
	struct symbols *s = symbols_new();
	uint64_t f = (uintptr_t)symbol_test_function;
	struct place p;
	char buf[256];

	check_place(s, getpid(), f, "test_symbol_user`symbol_test_function+0x0");
	check_place(s, getpid(), f + 1, "test_symbol_user`symbol_test_function+0x1");
	assert_true(symbols_user(s, getpid(), 0, f + 1, &p));
	place_format(&p, f + 1, false, buf, sizeof(buf));
	assert_string_equal(buf, "test_symbol_user`symbol_test_function");
	assert_true(p.module_base < f);
	assert_false(symbols_user(s, getpid(), 0, 8, &p));
	assert_null(p.module);
	place_format(&p, 8, true, buf, sizeof(buf));
	assert_string_equal(buf, "0x8");
	/* a stack address has no name */
	assert_false(symbols_user(s, getpid(), 0, (uintptr_t)&p, &p));
	assert_true(symbols_user(s, getpid(), 0, (uintptr_t)dlsym(RTLD_NEXT, "getppid"), &p));
	assert_string_equal(p.module, "libc.so.6");
	assert_string_equal(p.function, "getppid");
	symbols_free(s);
}

static void test_vdso(void **state)
{
	uint64_t base = getauxval(AT_SYSINFO_EHDR);
	struct symbols *s = symbols_new();
	struct place p;

	if (!base)
		skip();
	assert_true(symbols_user(s, getpid(), 0, base + 4, &p));
	assert_string_equal(p.module, "[vdso]");
	bool any = false;

	for (uint64_t off = 0x400; off < 0x2000 && !any; off += 16) {
		symbols_user(s, getpid(), 0, base + off, &p);
		any = p.function && strstr(p.function, "clock_gettime");
	}
	assert_true(any);
	symbols_free(s);
}

static pid_t start_child(void)
{
	pid_t pid = fork();

	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pause();
		_exit(0);
	}
	return pid;
}

static void end_child(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void test_gone(void **state)
{
	struct symbols *s = symbols_new();
	pid_t pid = start_child();
	struct place p;

	symbols_remember(s, pid);
	end_child(pid);
	check_place(s, pid, (uintptr_t)symbol_test_function,
		    "test_symbol_user`symbol_test_function+0x0");
	symbols_remember(s, pid); /* finds nothing, forgets nothing */
	check_place(s, pid, (uintptr_t)symbol_test_function + 2,
		    "test_symbol_user`symbol_test_function+0x2");
	symbols_refresh(s, pid);
	assert_false(symbols_user(s, pid, 0, (uintptr_t)symbol_test_function, &p));
	symbols_free(s);
}

/* A copy of this program, mapped, then deleted. */
static void test_deleted(void **state)
{
	char path[] = "/tmp/test_symbol_deleted.XXXXXX";
	cleanup_free char *text = NULL;
	struct symbols *s = symbols_new();
	struct mappings maps;
	bool found = false;
	size_t len;
	void *map;
	int fd = mkstemp(path);

	assert_null(io_read_file("/proc/self/exe", &text, &len));
	assert_true(write(fd, text, len) == (ssize_t)len);
	map = mmap(NULL, len, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	assert_true(map != MAP_FAILED);
	close(fd);
	unlink(path);
	assert_null(mappings_read(getpid(), &maps));
	for (uint32_t i = 0; i < maps.n; i++) {
		cleanup_free char *open_path = NULL;
		struct place p;

		if (maps.v[i].start != (uintptr_t)map)
			continue;
		found = true;
		assert_true(maps.v[i].exec);
		assert_non_null(strstr(maps.v[i].path, " (deleted)"));
		open_path = mapping_open_path(getpid(), &maps.v[i]);
		if (open_path) { /* map_files needs privilege */
			struct object *o = symbols_object(s, getpid(), &maps.v[i]);

			assert_non_null(o);
			const struct object_symbol *f = object_find_name(o, "symbol_test_function");
			uint64_t off;

			assert_non_null(f);
			assert_true(object_addr_to_offset(o, f->addr, &off));
			assert_true(symbols_user(s, getpid(), 0, (uintptr_t)map + off, &p));
			assert_string_equal(p.function, "symbol_test_function");
			assert_string_equal(p.module, strrchr(path, '/') + 1);
		}
	}
	assert_true(found);
	mappings_free(&maps);
	munmap(map, len);
	symbols_free(s);
}

static void test_jit(void **state)
{
	cleanup_free char *path = xasprintf("/tmp/perf-%d.map", (int)getpid());
	struct symbols *s = symbols_new();
	unsigned long long code;
	FILE *f = fopen(path, "w");
	void *map = mmap(NULL, 8192, PROT_READ | PROT_WRITE | PROT_EXEC,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct place p;

	assert_non_null(f);
	assert_true(map != MAP_FAILED);
	code = (uintptr_t)map;
	fprintf(f,
		"not a line\n%llx 40 LazyCompile:*old app.js:1\n%llx 20 LazyCompile:*hot app.js:7\n%llx 0 none\n%llx",
		code, code, code + 0x100, code + 0x200);
	fclose(f);
	assert_true(symbols_user(s, getpid(), 0, code + 0x10, &p));
	assert_string_equal(p.function, "LazyCompile:*hot app.js:7");
	assert_int_equal(p.offset, 0x10);
	assert_true(symbols_user(s, getpid(), 0, code + 0x30, &p));
	assert_string_equal(p.function, "LazyCompile:*old app.js:1");
	assert_false(symbols_user(s, getpid(), 0, code + 0x100, &p));
	unlink(path);
	munmap(map, 8192);
	symbols_free(s);
}

/* Starts a child with code at `code` and a perf map for it. The map still exists after the child's
 * end. */
static pid_t end_jit_child(struct symbols *s, uint64_t code, const char *text, char **ret_path)
{
	pid_t pid = start_child();
	int fd;

	*ret_path = xasprintf("/tmp/perf-%d.map", (int)pid);
	fd = open(*ret_path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	symbols_remember(s, pid);
	dprintf(fd, text, (unsigned long long)code);
	close(fd);
	end_child(pid);
	return pid;
}

static void *jit_memory(void)
{
	void *map = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(map != MAP_FAILED);
	return map;
}

/* One file for each case, each of an ended process. Its owner and time show whether it is the
 * process's. */
static void test_jit_gone(void **state)
{
	static const char text[] = "%llx 40 gone_spin\n";
	struct timespec old[2] = { { .tv_sec = time(NULL) - 60 }, { .tv_sec = time(NULL) - 60 } };
	void *map = jit_memory();
	uint64_t code = (uintptr_t)map;
	struct symbols *s = symbols_new();
	char *path;
	struct place p;
	pid_t pid = end_jit_child(s, code, text, &path);

	check_place(s, pid, code + 4, "[jit]`gone_spin+0x4");
	unlink(path);
	check_place(s, pid, code + 5, "[jit]`gone_spin+0x5");
	free(path);

	pid = end_jit_child(s, code, text, &path);
	assert_int_equal(utimensat(AT_FDCWD, path, old, 0), 0);
	assert_false(symbols_user(s, pid, 0, code + 4, &p)); /* of an earlier process */
	unlink(path);
	free(path);

	pid = end_jit_child(s, code, text, &path);
	if (!chown(path, 65534, 65534))
		assert_false(symbols_user(s, pid, 0, code + 4, &p)); /* another user's */
	unlink(path);
	free(path);
	munmap(map, 4096);
	symbols_free(s);
}

/* Starts a child whose /tmp is a folder out of reach after its end. Returns -1 when this is not
 * permitted. */
static pid_t start_child_in(const char *root)
{
	int done[2];
	char said = 0;
	pid_t pid;

	assert_int_equal(pipe(done), 0);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (!chroot(root) && write(done[1], "x", 1) == 1)
			pause();
		_exit(0);
	}
	close(done[1]);
	if (read(done[0], &said, 1) == 1) {
		close(done[0]);
		return pid;
	}
	close(done[0]);
	end_child(pid);
	return -1;
}

/* Looks become rarer while nothing changes; a map that begins then is read before the process ends
 * all the same. */
static void test_jit_elsewhere(void **state)
{
	const struct timespec pass = { .tv_nsec = 60 * 1000 * 1000 };
	char root[] = "/tmp/test_symbol_root.XXXXXX";
	void *map = jit_memory();
	uint64_t code = (uintptr_t)map;
	struct symbols *s = symbols_new();
	cleanup_free char *tmp = NULL, *path = NULL;
	pid_t pid;
	FILE *f;

	assert_non_null(mkdtemp(root));
	tmp = xasprintf("%s/tmp", root);
	mkdir(tmp, 0755);
	pid = start_child_in(root);
	if (pid > 0) {
		path = xasprintf("%s/perf-%d.map", tmp, (int)pid);
		for (int i = 0; i < 8; i++) {
			symbols_remember(s, pid);
			nanosleep(&pass, NULL);
		}
		for (int i = 0; i < 2; i++) { /* and one that grows */
			f = fopen(path, "a");
			assert_non_null(f);
			fprintf(f, "%llx 40 far_spin_%d\n", (unsigned long long)code + 0x40 * i, i);
			fclose(f);
			symbols_remember(s, pid);
			nanosleep(&pass, NULL);
		}
		end_child(pid);
		unlink(path);
		check_place(s, pid, code + 4, "[jit]`far_spin_0+0x4");
		check_place(s, pid, code + 0x44, "[jit]`far_spin_1+0x4");
	}
	rmdir(tmp);
	rmdir(root);
	munmap(map, 4096);
	symbols_free(s);
	if (pid < 0) {
		free(tmp); /* skip() jumps past what frees it */
		free(path);
		skip();
	}
}

/* The file at the place of a perf map may be hostile. */
static void test_jit_hostile(void **state)
{
	cleanup_free char *path = xasprintf("/tmp/perf-%d.map", (int)getpid()),
			  *name = xcalloc(1, 100001);
	uint64_t code;
	void *map = jit_memory();
	struct symbols *s = symbols_new();
	struct place p;
	FILE *f;

	code = (uintptr_t)map;
	unlink(path);
	assert_int_equal(mkfifo(path, 0644), 0);
	assert_false(symbols_user(s, getpid(), 0, code, &p));
	unlink(path);
	symbols_refresh(s, getpid());
	assert_int_equal(symlink("/dev/zero", path), 0);
	assert_false(symbols_user(s, getpid(), 0, code, &p));
	unlink(path);
	symbols_refresh(s, getpid());
	/* A name without end, and a file that seems to have none. */
	memset(name, 'x', 100000);
	f = fopen(path, "w");
	assert_non_null(f);
	fprintf(f, "%llx 40 %s\n", (unsigned long long)code, name);
	fflush(f);
	(void)ftruncate(fileno(f), 1ll << 42);
	fclose(f);
	assert_true(symbols_user(s, getpid(), 0, code + 4, &p));
	assert_int_equal(strlen(p.function), 512);
	assert_string_equal(p.function + 508, "x...");
	unlink(path);
	munmap(map, 4096);
	symbols_free(s);
}

static void test_demangle(void **state)
{
	struct symbols *s = symbols_new();
	char name[10000] = "";

	assert_string_equal(symbols_demangle(s, "_ZNSt6vectorIiSaIiEE9push_backERKi"),
			    "std::vector<int, std::allocator<int> >::push_back(int const&)");
	assert_string_equal(
		symbols_demangle(s, "_ZN4core3fmt9Formatter9write_str17h0123456789abcdefE"),
		"core::fmt::Formatter::write_str");
	assert_string_equal(symbols_demangle(s, "malloc"), "malloc");
	assert_string_equal(symbols_demangle(s, "_Z"), "_Z");
	assert_string_equal(symbols_demangle(s, "_ZZZZ"), "_ZZZZ");
	assert_true(symbols_demangle(s, "_Z3foov") == symbols_demangle(s, "_Z3foov"));
	memset(name, 'x', sizeof(name) - 1);
	assert_int_equal(strlen(symbols_demangle(s, name)), 4096);
	assert_string_equal(symbols_demangle(s, name) + 4092, "x...");
	name[4096] = '\0';
	assert_string_equal(symbols_demangle(s, name), name);
	symbols_free(s);
}

char *symbol_demangle_short(const char *name); /* program/symbol/demangle.c */

/* The names of perf script's kind, from files that a recording names. */
static void test_demangle_short(void **state)
{
	/* f<A<int>, A<A<int>, A<int>>, ...>: each argument is twice as long as the one before */
	static const char doubles[] =
		"_Z1fI1AIiES0_IS1_S1_ES0_IS2_S2_ES0_IS3_S3_ES0_IS4_S4_ES0_IS5_S5_ES0_IS6_S6_ES0_I"
		"S7_S7_ES0_IS8_S8_ES0_IS9_S9_ES0_ISA_SA_ES0_ISB_SB_ES0_ISC_SC_ES0_ISD_SD_ES0_ISE_"
		"SE_ES0_ISF_SF_ES0_ISG_SG_ES0_ISH_SH_ES0_ISI_SI_ES0_ISJ_SJ_ES0_ISK_SK_ES0_ISL_SL_"
		"ES0_ISM_SM_ES0_ISN_SN_ES0_ISO_SO_ES0_ISP_SP_ES0_ISQ_SQ_ES0_ISR_SR_ES0_ISS_SS_ES0"
		"_IST_ST_ES0_ISU_SU_ES0_ISV_SV_ES0_ISW_SW_EEvv";
	char *text = symbol_demangle_short("_ZN1a1bIiE1cEv");

	(void)state;
	assert_string_equal(text, "a::b<int>::c");
	free(text);
	assert_null(symbol_demangle_short("main"));
	assert_null(symbol_demangle_short(doubles));
}

struct counted {
	uint32_t n;
	bool vfs_read;
};

static void count(void *arg, const char *module, const char *name, uint64_t addr)
{
	struct counted *c = arg;

	c->n++;
	if (!strcmp(name, "vfs_read") && !strcmp(module, "vmlinux"))
		c->vfs_read = addr != 0;
}

static void test_kernel(void **state)
{
	struct symbols *s = symbols_new();
	struct counted c = { 0 };
	struct place p;
	uint64_t addr;
	char buf[128];

	if (symbols_kernel_err(s)) {
		print_message("[  note  ] %s\n", symbols_kernel_err(s));
		assert_false(symbols_kernel(s, 0xffffffff81000000, &p));
		symbols_free(s);
		skip();
	}
	assert_true(symbols_kernel_addr(s, NULL, "vfs_read", &addr));
	assert_true(symbols_kernel_addr(s, "vmlinux", "vfs_read", &addr));
	assert_false(symbols_kernel_addr(s, "nomodule", "vfs_read", &addr));
	assert_false(symbols_kernel_addr(s, NULL, "no_such_function_at_all", &addr));
	assert_true(symbols_kernel(s, addr + 9, &p));
	place_format(&p, addr + 9, true, buf, sizeof(buf));
	assert_string_equal(buf, "vmlinux`vfs_read+0x9");
	assert_true(symbols_kernel_module(s, addr + 9, &p));
	assert_true(p.module_base && p.module_base <= addr);
	assert_false(symbols_kernel(s, 0x1000, &p));
	assert_null(p.module);
	symbols_kernel_each(s, count, &c);
	assert_true(c.n > 1000 && c.vfs_read);
	symbols_free(s);
}

/* A process of another user, queried twice: its mappings may not be read, and it counts once. */
static void test_denied(void **state)
{
	struct symbols *s;
	struct symbols_losses l;
	struct place p;
	int status;
	pid_t pid;

	if (geteuid())
		skip();
	pid = fork();
	if (!pid) {
		if (setgid(65534) || setuid(65534))
			_exit(9);
		s = symbols_new();
		(void)symbols_user(s, getppid(), 0, (uintptr_t)symbol_test_function, &p);
		(void)symbols_user(s, getppid(), 0, (uintptr_t)symbol_test_function, &p);
		(void)symbols_user(s, getpid(), 0, 8,
				   &p); /* its own has no name, and may be read */
		symbols_losses(s, &l);
		symbols_free(s);
		_exit((int)l.denied);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_own),
		cmocka_unit_test(test_vdso),
		cmocka_unit_test(test_gone),
		cmocka_unit_test(test_deleted),
		cmocka_unit_test(test_jit),
		cmocka_unit_test(test_demangle),
		cmocka_unit_test(test_demangle_short),
		cmocka_unit_test(test_kernel),
		cmocka_unit_test(test_jit_gone),
		cmocka_unit_test(test_jit_hostile),
		cmocka_unit_test(test_jit_elsewhere),
		cmocka_unit_test(test_denied),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
