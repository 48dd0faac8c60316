/* Descriptions of USDT probes that name no process. The processes are forks of this test, which has
 * probes of provider "machinetest". This program's open(2) counts how often a file is opened. */
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/io.h"
#include "base/mem.h"
#include "probe/probe.h"
#include "unit.h"

#if __has_include(<sys/sdt.h>)
#include <sys/sdt.h>
#define HAVE_SDT 1
#else
#define HAVE_SDT 0
#define DTRACE_PROBE(p, n)
#endif

static struct {
	char path[PATH_MAX];
	uint32_t n;
} opens[2];

int open(const char *path, int flags, ...)
{
	va_list ap;
	int mode;

	va_start(ap, flags);
	mode = flags & O_CREAT ? va_arg(ap, int) : 0;
	va_end(ap);
	for (uint32_t i = 0; i < ARRAY_SIZE(opens); i++)
		opens[i].n += !strcmp(path, opens[i].path);
	return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

__attribute__((noinline, used)) static void fire(void)
{
	DTRACE_PROBE(machinetest, one);
	DTRACE_PROBE(machinetest, two);
	DTRACE_PROBE(machineother, one);
}

static pid_t start(void)
{
	pid_t pid = fork();

	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* a failing test must not leave it behind */
		fire();
		pause();
		_exit(0);
	}
	return pid;
}

static void stop(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

struct world {
	struct symbols *symbols;
	struct probe_set ps;
	VEC(struct probe *) found;
};

static void world_init(struct world *w)
{
	*w = (struct world){ .symbols = symbols_new() };
	probe_set_init(&w->ps, NULL, w->symbols);
}

static void world_fini(struct world *w)
{
	vec_fini(&w->found);
	probe_set_fini(&w->ps);
	symbols_free(w->symbols);
}

static void found(void *arg, struct probe *p)
{
	struct world *w = arg;

	vec_push(&w->found, p);
}

static uint32_t match(struct world *w, const char *prov, const char *mod, const char *name)
{
	struct probe_desc pd = { prov, mod, "", name };

	w->found.n = 0;
	assert_null(provider_usdt.match(&provider_usdt, &w->ps, &pd, found, w));
	return w->found.n;
}

/* Returns how many of the found probes are of the process and bear the name. */
static uint32_t of(const struct world *w, pid_t pid, const char *prov, const char *name)
{
	char full[64];
	uint32_t n = 0;

	snprintf(full, sizeof(full), "%s%d", prov, (int)pid);
	for (uint32_t i = 0; i < w->found.n; i++)
		n += w->found.v[i]->pid == pid && !strcmp(w->found.v[i]->prov, full) &&
		     !strcmp(w->found.v[i]->name, name);
	return n;
}

static void count_opens(uint32_t i, const char *path)
{
	snprintf(opens[i].path, sizeof(opens[i].path), "%s", path);
	opens[i].n = 0;
}

static void test_reads_once(void **state)
{
	const pid_t a = start(), b = start();
	char self[PATH_MAX] = "", maps[64];
	struct world w;

	if (!HAVE_SDT) {
		stop(a);
		stop(b);
		skip();
	}
	assert_true(readlink("/proc/self/exe", self, sizeof(self) - 1) > 0);
	snprintf(maps, sizeof(maps), "/proc/%d/maps", (int)b);
	world_init(&w);
	count_opens(0, self);
	count_opens(1, maps);
	/* no description matches: the file of two processes is opened once for them all */
	for (uint32_t i = 0; i < 8; i++)
		assert_int_equal(match(&w, "machinenone*", "", ""), 0);
	assert_int_equal(opens[0].n, 1);
	assert_int_equal(opens[1].n, 1);
	/* the symbols open it for the probes */
	for (uint32_t i = 0; i < 8; i++) {
		match(&w, "machinetest*", "", "one");
		assert_int_equal(of(&w, a, "machinetest", "one"), 1);
		assert_int_equal(of(&w, b, "machinetest", "one"), 1);
		match(&w, "machine*", "a.out", "");
		assert_int_equal(of(&w, a, "machineother", "one"), 1);
		assert_int_equal(of(&w, b, "machinetest", "two"), 1);
		assert_string_equal(w.found.v[0]->func, "fire");
	}
	assert_true(opens[0].n <= 2);
	assert_int_equal(opens[1].n, 1);
	count_opens(0, "");
	count_opens(1, "");
	world_fini(&w);
	stop(a);
	stop(b);
}

/* All descriptions of a program see the same processes. */
static void test_one_look(void **state)
{
	const pid_t a = start();
	struct world w, later;
	pid_t b;

	if (!HAVE_SDT) {
		stop(a);
		skip();
	}
	world_init(&w);
	match(&w, "machinetest*", "", "one");
	assert_int_equal(of(&w, a, "machinetest", "one"), 1);
	b = start();
	match(&w, "machinetest*", "", "two");
	assert_int_equal(of(&w, a, "machinetest", "two"), 1);
	assert_int_equal(of(&w, b, "machinetest", "two"), 0);
	world_init(&later);
	match(&later, "machinetest*", "", "two");
	assert_int_equal(of(&later, a, "machinetest", "two"), 1);
	assert_int_equal(of(&later, b, "machinetest", "two"), 1);
	world_fini(&later);
	world_fini(&w);
	stop(a);
	stop(b);
}

static void *map_file(const char *path)
{
	cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	void *p;

	assert_true(fd >= 0);
	p = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	return p == MAP_FAILED ? NULL : p;
}

/* A process that maps a file by two names has its probes once, by the first mapping. */
static void test_two_names(void **state)
{
	char dir[] = "/tmp/descry-unit-XXXXXX";
	cleanup_free char *text = NULL, *first = NULL, *second = NULL;
	void *p = NULL, *q = NULL;
	size_t n;
	FILE *f;

	if (!HAVE_SDT)
		skip();
	assert_non_null(mkdtemp(dir));
	first = xasprintf("%s/machine-first", dir);
	second = xasprintf("%s/machine-second", dir);
	assert_null(io_read_file("/proc/self/exe", &text, &n));
	f = fopen(first, "w");
	assert_non_null(f);
	assert_int_equal(fwrite(text, 1, n, f), n);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(link(first, second), 0);
	p = map_file(first);
	q = p ? map_file(second) : NULL;
	if (q) {
		const pid_t a = start();
		struct world w;

		world_init(&w);
		match(&w, "machinetest*", "machine-*", "one");
		assert_int_equal(of(&w, a, "machinetest", "one"), 1);
		/* the test's own file is another one */
		match(&w, "machinetest*", "", "one");
		assert_int_equal(of(&w, a, "machinetest", "one"), 2);
		world_fini(&w);
		stop(a);
		munmap(q, 4096);
	}
	if (p)
		munmap(p, 4096);
	unlink(first);
	unlink(second);
	rmdir(dir);
	if (!q)
		skip(); /* /tmp allows no programs */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reads_once),
		cmocka_unit_test(test_one_look),
		cmocka_unit_test(test_two_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
