/* Interpreters of processes that come and go: files are closed, and there is room for others. */
#include "unit.h"

#include <dirent.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/procdir.h"
#include "base/procmem.h"
#include "program/runtime/languages.h"

static uint32_t descriptors(void)
{
	cleanup_dir DIR *d = opendir("/proc/self/fd");
	uint32_t n = 0;

	for (int fd; procdir_next(d, &fd);)
		n++;
	return n;
}

static pid_t begin(char *const argv[])
{
	pid_t pid = fork();

	if (!pid) {
		execvp(argv[0], argv);
		_exit(127);
	}
	return pid;
}

/* Returns false when the machine has no such interpreter. */
static bool find_in(struct languages *l, pid_t pid)
{
	struct wire_language w;
	uint32_t ms;

	/* the interpreter begins; it ends itself at the latest after a minute */
	while (!languages_find(l, pid, 0, &w, &ms)) {
		if (waitpid(pid, NULL, WNOHANG))
			return false;
		nap_ns(5000000);
		if (languages_left_out(l))
			return false;
	}
	return true;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void test_files(void **state)
{
	enum { N = 4 };
	char *const ruby[] = { "ruby", "-e", "sleep 60", NULL };
	struct languages *l = languages_new();
	const uint32_t before = descriptors();
	uint64_t now = now_ns();
	pid_t pids[N];
	uint32_t n = 0;

	while (n < N && find_in(l, pids[n] = begin(ruby)))
		n++;
	languages_tidy(l, now += 2000000000); /* they live */
	assert_true(descriptors() >= before + n);
	for (uint32_t i = 0; i < n; i++)
		end(pids[i]);
	languages_tidy(l, now += 2000000000);
	/* procmem has one of its own, of the process that was read last */
	assert_true(descriptors() <= before + 1);
	languages_free(l);
	if (n < N)
		skip();
}

static void test_others(void **state)
{
	enum { MOST = 4 };
	char *const python[] = { "python3", "-c", "import time; time.sleep(60)", NULL };
	struct languages *l = languages_new();
	uint64_t now = now_ns();
	bool any = true;

	languages_limit(l, 64 << 20, MOST);
	for (int i = 0; i < 3 * MOST && any; i++) {
		pid_t pid = begin(python);

		any = find_in(l, pid);
		if (!any && !i)
			break;
		assert_true(any);
		end(pid);
		languages_tidy(l, now += 2000000000);
	}
	assert_int_equal(languages_left_out(l), 0);
	languages_free(l);
	if (!any)
		skip();
}

/* Returns the id by which walks ask for a code object. */
static uint64_t id_of(const struct wire_language *w, pid_t pid, uint64_t code)
{
	uint64_t about[WIRE_PYTHON_ABOUT], line = 0;

	assert_int_equal(procmem_read(pid, about, sizeof(about), code + w->python.code_about),
			 sizeof(about));
	assert_int_equal(procmem_read(pid, &line, 4, code + w->python.code_line), 4);
	if (w->frames == WIRE_LANGUAGE_OBJECTS)
		about[WIRE_PYTHON_ABOUT - 1] = 0;
	return wire_language_python_id((uint32_t)pid, code, about, line);
}

/* A function whose names find no more room in memory is counted, as one that takes too long. */
static void test_budget(void **state)
{
	char *const python[] = { "python3", "-c",
				 "import time\ndef f(): time.sleep(60)\n"
				 "print(id(f.__code__), flush=True)\nf()",
				 NULL };
	struct languages *l = languages_new();
	struct wire_unwind_ask ask = { 0 };
	struct wire_language w;
	int fds[2], out = dup(1);
	char text[32] = "";
	uint32_t ms;
	pid_t pid;
	bool any;

	assert_int_equal(pipe(fds), 0);
	dup2(fds[1], 1);
	pid = begin(python);
	dup2(out, 1);
	close(out);
	close(fds[1]);
	any = find_in(l, pid);
	if (any) {
		assert_true(read(fds[0], text, sizeof(text) - 1) > 0);
		ask.code = strtoull(text, NULL, 10);
		assert_true(languages_find(l, pid, 0, &w, &ms));
		ask.id = id_of(&w, pid, ask.code);
		languages_limit(l, 16, 1);
		languages_learn(l, pid, &ask);
		assert_false(languages_known(l, pid, ask.id));
		assert_int_equal(languages_left_out(l), 1);
		languages_limit(l, 64 << 20, 1);
		languages_learn(l, pid, &ask);
		assert_true(languages_known(l, pid, ask.id));
		assert_int_equal(languages_left_out(l), 1);
	}
	end(pid);
	close(fds[0]);
	languages_free(l);
	if (!any)
		skip();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_files),
		cmocka_unit_test(test_others),
		cmocka_unit_test(test_budget),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
