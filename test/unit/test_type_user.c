/* Types from DWARF: this program's own. */
#define _GNU_SOURCE
#include "program/object/dwarf.h"
#include "unit.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"
#include "program/space/space.h"
#include "program/type/type.h"

enum user_mood { USER_SAD = -2, USER_GLAD = 7 };

struct user_point {
	int x, y;
};

typedef struct user_thing {
	char name[12];
	struct user_thing *next;
	unsigned int low : 3, high : 7;
	union {
		long as_long;
		unsigned char as_bytes[8];
	};
	const struct user_point *const corner;
	struct user_point grid[3][2];
	enum user_mood mood;
	int (*call)(int);
	_Bool set;
	double number;
	struct inode *opaque; /* the kernel has a struct of this tag */
} user_thing_t;

typedef struct {
	int a, b;
} user_untagged_t;

static volatile user_thing_t thing = { .mood = USER_GLAD };

static struct type_graph *graph(void)
{
	struct type_graph *g = type_graph_new();

	type_use_process(g, getpid());
	return g;
}

static struct type_member member(struct type_graph *g, type_id t, const char *name)
{
	struct type_member m;

	if (!type_find_member(g, t, name, &m))
		fail_msg("no member %s", name);
	return m;
}

static void test_struct(void **state)
{
	struct type_graph *g = graph();
	struct type_member m;
	type_id t;

	type_use_kernel(g, "/sys/kernel/btf/vmlinux");
	assert_true(type_lookup(g, NULL, TYPE_STRUCT, "user_thing", &t));
	assert_int_equal(type_size(g, t), sizeof(thing));
	assert_int_equal(member(g, t, "next").bit_offset, 8 * offsetof(struct user_thing, next));
	assert_true(type_same(g, type_ref(g, type_strip(g, member(g, t, "next").type)), t));
	m = member(g, t, "high");
	assert_int_equal(m.bit_size, 7);
	assert_int_equal(m.bit_offset, 8 * offsetof(struct user_thing, next) + 64 + 3);
	assert_int_equal(member(g, t, "as_bytes").bit_offset,
			 8 * offsetof(struct user_thing, as_bytes));
	m = member(g, t, "grid");
	assert_int_equal(type_size(g, m.type), sizeof(thing.grid));
	assert_int_equal(type_nelems(g, m.type), 3);
	assert_int_equal(type_kind(g, type_strip(g, member(g, t, "set").type)), TYPE_INT);
	assert_int_equal(type_kind(g, type_strip(g, member(g, t, "number").type)), TYPE_FLOAT);
	assert_true(type_is_pointer(g, member(g, t, "call").type));
	assert_int_equal(
		type_size(g,
			  type_strip(g, type_ref(g, type_strip(g, member(g, t, "opaque").type)))),
		0);
	assert_true(type_is_char_array(g, member(g, t, "name").type));
	m = member(g, type_ref(g, type_strip(g, member(g, t, "corner").type)), "y");
	assert_int_equal(m.bit_offset, 32);
	type_graph_free(g);
}

static void test_names(void **state)
{
	struct type_graph *g = graph();
	int64_t value;
	type_id t, u;

	assert_true(type_lookup(g, "", TYPE_TYPEDEF, "user_thing_t", &t));
	assert_true(type_lookup(g, "user", TYPE_STRUCT, "user_thing", &u));
	assert_int_equal(type_strip(g, t), u);
	assert_true(type_lookup(g, "test_type_user", TYPE_STRUCT, "user_point", &t));
	assert_false(type_lookup(g, "libnowhere", TYPE_STRUCT, "user_point", &t));
	assert_false(type_lookup(g, NULL, TYPE_STRUCT, "user_nothing", &t));
	assert_false(type_lookup(g, "D", TYPE_STRUCT, "user_point", &t));
	assert_true(type_enumerator(g, "USER_SAD", &value, &t));
	assert_int_equal(value, -2);
	assert_int_equal(type_kind(g, t), TYPE_ENUM);
	assert_false(type_enumerator(g, "USER_BAD", &value, &t));
	type_graph_free(g);
}

static void test_no_process(void **state)
{
	struct type_graph *g = type_graph_new();
	type_id t;

	type_use_process(g, 999999999);
	assert_false(type_lookup(g, NULL, TYPE_STRUCT, "user_point", &t));
	type_graph_free(g);
}

static void copy_file(const char *from, const char *to)
{
	cleanup_free char *bytes = NULL;
	size_t n;
	int fd;

	assert_null(io_read_file(from, &bytes, &n));
	fd = open(to, O_WRONLY | O_CREAT | O_EXCL, 0755);
	assert_true(fd >= 0);
	assert_true(write(fd, bytes, n) == (ssize_t)n);
	close(fd);
}

/* Starts `path`, over which `real` lies in the new process's own mount namespace. Returns its pid,
 * or -1 when such a namespace is not permitted. */
static pid_t start_elsewhere(const char *path, const char *real)
{
	int ready[2], failed = 0;
	pid_t pid;

	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (!unshare(CLONE_NEWNS) && !mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) &&
		    !mount(real, path, NULL, MS_BIND, NULL))
			execl(path, path, "pause", NULL);
		(void)!write(ready[1], "x", 1);
		_exit(1);
	}
	close(ready[1]);
	/* exec() closes the other end */
	failed = read(ready[0], &(char){ 0 }, 1) != 0;
	close(ready[0]);
	if (!failed)
		return pid;
	waitpid(pid, NULL, 0);
	return -1;
}

/* In this namespace, the process's path leads to another program. */
static void test_other_namespace(void **state)
{
	char folder[] = "/tmp/test_type_user.XXXXXX", self[4096];
	cleanup_free char *path = NULL, *real = NULL;
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	struct type_graph *g = type_graph_new();
	struct mappings maps;
	bool same = false;
	type_id t;
	pid_t pid;

	assert_true(n > 0 && mkdtemp(folder));
	self[n] = '\0';
	path = xasprintf("%s/prog", folder);
	real = xasprintf("%s/real", folder);
	copy_file("/bin/true", path);
	copy_file(self, real);
	*strrchr(self, '/') = '\0';
	setenv("LD_LIBRARY_PATH", self, 1);
	pid = start_elsewhere(path, real);
	if (pid < 0) {
		print_message("[  note  ] no mount namespace can be made here: not tested\n");
	} else {
		assert_null(mappings_read(pid, &maps));
		for (uint32_t i = 0; i < maps.n; i++)
			same |= !strcmp(maps.v[i].path, path);
		assert_true(same);
		mappings_free(&maps);
		/* It may be a container, whose files are not trusted. */
		type_use_process(g, pid);
		assert_false(type_lookup(g, NULL, TYPE_STRUCT, "user_thing", &t));
		assert_non_null(dwarf_untrusted());
		dwarf_trust_all(true);
		type_use_process(g, pid);
		assert_true(type_lookup(g, NULL, TYPE_STRUCT, "user_thing", &t));
		assert_int_equal(type_size(g, t), sizeof(thing));
		assert_true(type_lookup(g, "prog", TYPE_STRUCT, "user_point", &t));
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
	type_graph_free(g);
	unlink(path);
	unlink(real);
	rmdir(folder);
}

struct found_items {
	struct type_graph *g;
	uint64_t variable;
	uint32_t things, typedefs;
	bool of_thing, of_function;
	uint64_t local; /* address of a function's variable */
};

static void look_at_item(void *arg, const struct type_user_item *item)
{
	struct found_items *f = arg;

	if (item->addr == f->variable) {
		f->of_thing = type_size(f->g, item->type) == sizeof(thing) &&
			      !strcmp(type_tag(f->g, type_strip(f->g, item->type)), "user_thing");
	} else if (item->addr == f->local) {
		f->of_function = type_size(f->g, item->type) == sizeof(user_untagged_t);
	} else if (!strcmp(item->name, "user_thing")) {
		f->things++;
		assert_true(item->is_tag && !item->is_system);
	} else if (!strcmp(item->name, "user_untagged_t")) {
		f->typedefs++;
		assert_false(item->is_tag);
	}
}

static void test_each(void **state)
{
	static volatile user_untagged_t local;
	struct type_graph *g = type_graph_new();
	struct found_items f = { .g = g,
				 .variable = (uintptr_t)&thing,
				 .local = (uintptr_t)&local };
	struct space *s;

	(void)state;
	local.a = 1;
	assert_null(space_live(getpid(), &s));
	type_use_space(g, s);
	type_user_each(g, look_at_item, &f);
	assert_true(f.of_thing);
	assert_int_equal(f.things, 1);
	assert_int_equal(f.typedefs, 1);
	assert_true(f.of_function);
	type_graph_free(g);
	space_free(s);
}

int main(int argc, char **argv)
{
	if (argc > 1) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pause();
	}
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_struct),
					    cmocka_unit_test(test_names),
					    cmocka_unit_test(test_no_process),
					    cmocka_unit_test(test_each),
					    cmocka_unit_test(test_other_namespace) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
