/* Reads the kernel's tracepoints from BTF, and their subsystems from tracefs. */
#include "probe/tracepoint.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/glob.h"
#include "base/io.h"

struct tracepoints {
	VEC(struct tracepoint) all;
	struct hash systems; /* tracepoint name -> interned system name */
	struct intern names;
	bool systems_read;
	int events; /* the directory in tracefs, -1: none */
};

static void add_tracepoint(void *arg, const char *name, type_id func)
{
	struct tracepoints *t = arg;

	vec_push(&t->all, (struct tracepoint){ .name = name, .func = func });
}

static struct tracepoints *get(struct probe_set *ps)
{
	struct tracepoints *t = ps->tracepoints;

	if (t)
		return t;
	t = ps->tracepoints = xcalloc(1, sizeof(*t));
	intern_init(&t->names);
	t->events = -1;
	type_kernel_tracepoints(ps->types, add_tracepoint, t);
	return t;
}

struct tracepoint *tracepoints_all(struct probe_set *ps, uint32_t *ret_n)
{
	struct tracepoints *t = get(ps);

	*ret_n = t->all.n;
	return t->all.v;
}

void tracepoints_free(struct tracepoints *t)
{
	if (!t)
		return;
	vec_fini(&t->all);
	hash_fini(&t->systems);
	intern_fini(&t->names);
	if (t->events >= 0)
		close(t->events);
	free(t);
}

int kernel_fs_open(const char *fs, const char *mounted_at, const char *path)
{
	enum { FSCONFIG_CMD_CREATE_ = 6 };
	cleanup_close int ctx = -1, mnt = open(mounted_at, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int fd = mnt < 0 ? -1 : openat(mnt, path, O_RDONLY | O_CLOEXEC);

	if (fd >= 0)
		return fd;
	if (mnt >= 0)
		close(mnt);
	mnt = -1;
	ctx = (int)syscall(SYS_fsopen, fs, 1 /* FSOPEN_CLOEXEC */);
	if (ctx < 0 || syscall(SYS_fsconfig, ctx, FSCONFIG_CMD_CREATE_, NULL, NULL, 0))
		return -1;
	mnt = (int)syscall(SYS_fsmount, ctx, 1 /* FSMOUNT_CLOEXEC */, 0);
	return mnt < 0 ? -1 : openat(mnt, path, O_RDONLY | O_CLOEXEC);
}

static void read_system(struct tracepoints *t, int events, const char *system)
{
	int fd = openat(events, system, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	uint32_t id = intern_str(&t->names, system);
	struct dirent *entry;

	if (!dir) {
		if (fd >= 0)
			close(fd);
		return;
	}
	while ((entry = readdir(dir))) {
		if (entry->d_type == DT_DIR && entry->d_name[0] != '.')
			*hash_put(&t->systems, entry->d_name, strlen(entry->d_name), NULL) = id;
	}
	closedir(dir);
}

/* Reads the directories events/SYSTEM/NAME/. Skips the 720 of syscalls/, because they are events of
 * perf and not tracepoints. */
static void read_systems(struct tracepoints *t)
{
	int fd;
	DIR *dir;
	struct dirent *entry;

	t->systems_read = true;
	t->events = kernel_fs_open("tracefs", "/sys/kernel/tracing", "events");
	fd = t->events < 0 ? -1 : fcntl(t->events, F_DUPFD_CLOEXEC, 0);
	dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir) {
		if (fd >= 0)
			close(fd);
		return;
	}
	while ((entry = readdir(dir))) {
		if (entry->d_type == DT_DIR && entry->d_name[0] != '.' &&
		    strcmp(entry->d_name, "syscalls"))
			read_system(t, dirfd(dir), entry->d_name);
	}
	closedir(dir);
}

const char *tracepoint_system(struct probe_set *ps, struct tracepoint *tp)
{
	struct tracepoints *t = get(ps);
	uint64_t *id;

	if (tp->system)
		return tp->system;
	if (!t->systems_read)
		read_systems(t);
	id = hash_get(&t->systems, tp->name, strlen(tp->name));
	tp->system = id ? intern_text(&t->names, *id) : "vmlinux";
	return tp->system;
}

struct err *tracepoint_format(struct probe_set *ps, const char *system, const char *name,
			      char **ret)
{
	cleanup_free char *path = xasprintf("%s/%s/format", system, name);
	struct tracepoints *t = get(ps);

	if (!t->systems_read)
		read_systems(t);
	if (t->events < 0)
		return err_new(ENOENT, "tracefs cannot be read");
	return io_read_at(t->events, path, ret, NULL);
}

char *tracepoints_explain(struct probe_set *ps, const struct probe_desc *pd)
{
	struct tracepoints *t;

	if ((strcmp(pd->prov, "sdt") && strcmp(pd->prov, "rawtp")) || glob_match(pd->mod, ""))
		return NULL;
	t = get(ps);
	if (!t->systems_read)
		read_systems(t);
	if (t->systems.n || !t->all.n)
		return NULL;
	return xasprintf(
		"which tracepoints belong to %s stands in tracefs, which this user may not read: it "
		"needs root; %s:::%s finds them by their own names",
		pd->mod, pd->prov, *pd->name ? pd->name : "NAME");
}

bool tracepoint_exists(struct probe_set *ps, const char *name, uint32_t *ret_nparams)
{
	type_id func;
	uint32_t n;
	bool varargs;

	if (!type_kernel_tracepoint(ps->types, name, &func))
		return false;
	if (ret_nparams) {
		type_params(ps->types, func, &n, &varargs);
		*ret_nparams = n;
	}
	return true;
}
