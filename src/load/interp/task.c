#define _GNU_SOURCE
#include <sys/prctl.h>

#include "base/io.h"
#include "load/interp/interp_engine.h"
#include "program/type/type.h"

enum { OBJECT_MIN = 4096, COMM_SIZE = 16, NORMAL_PRIO = 120 };

/* A kernel structure in our memory; type T_VOID when BTF does not have it: nothing can be put into it then. */
struct object {
	uint8_t *p;
	uint64_t size;
	type_id type;
};

static struct object object_new(struct interp_engine *e, const char *tag)
{
	struct type_graph *types = e->base.image->types;
	struct object o = { .size = OBJECT_MIN, .type = T_VOID };

	if (types && type_lookup(types, NULL, TYPE_STRUCT, tag, &o.type) &&
	    type_size(types, o.type) > o.size)
		o.size = type_size(types, o.type);
	o.p = xcalloc(1, o.size);
	vec_push(&e->objects, o.p);
	interp_mem_add(&e->mem, o.p, o.size, false);
	return o;
}

/* Writes the member, and the first bytes of it when it is itself a struct or an array; `index`: of an array of n-byte
 * elements. */
static void put_at(struct interp_engine *e, const struct object *o, const char *member,
		   uint32_t index, const void *value, uint32_t n)
{
	struct type_member m;
	uint64_t off;

	if (o->type == T_VOID || !type_find_member(e->base.image->types, o->type, member, &m))
		return;
	off = m.bit_offset / 8 + (uint64_t)index * n;
	if (off + n <= o->size)
		memcpy(o->p + off, value, n);
}

static void put(struct interp_engine *e, const struct object *o, const char *member,
		const void *value, uint32_t n)
{
	put_at(e, o, member, 0, value, n);
}

static void put_int(struct interp_engine *e, const struct object *o, const char *member, int value)
{
	put_at(e, o, member, 0, &value, sizeof(value));
}

/* Where the arguments and the first stack word are: fields 48, 49 and 28 of /proc/self/stat. */
static struct object mm_new(struct interp_engine *e)
{
	struct object mm = object_new(e, "mm_struct");
	cleanup_free char *stat = NULL;
	uint64_t end = 0x7ffffffff000, v;
	char *p;

	put(e, &mm, "task_size", &end, 8);
	err_free(io_read_file("/proc/self/stat", &stat, NULL));
	p = stat ? strrchr(stat, ')') : NULL;
	/* behind the ')' comes field 3 */
	for (int field = 3; p && (p = strchr(p, ' ')); field++) {
		v = strtoull(++p, NULL, 10);
		if (field == 28)
			put(e, &mm, "start_stack", &v, 8);
		else if (field == 48)
			put(e, &mm, "arg_start", &v, 8);
		else if (field == 49)
			put(e, &mm, "arg_end", &v, 8);
	}
	return mm;
}

static void put_pid(struct interp_engine *e, const struct object *signal, uint32_t index, pid_t id)
{
	struct object pid = object_new(e, "pid");

	put_int(e, &pid, "numbers", id); /* struct upid begins with nr */
	put_at(e, signal, "pids", index, &pid.p, 8);
}

static void fill_self(struct interp_engine *e, const struct object *task)
{
	struct object mm = mm_new(e), cred = object_new(e, "cred");
	struct object signal = object_new(e, "signal_struct");

	put_int(e, &cred, "uid", (int)getuid());
	put_int(e, &cred, "gid", (int)getgid());
	put_int(e, &cred, "euid", (int)geteuid());
	put_int(e, &cred, "egid", (int)getegid());
	put_int(e, &signal, "nr_threads", 1);
	put_pid(e, &signal, 2, getpgid(0));
	put_pid(e, &signal, 3, getsid(0));
	put(e, task, "mm", &mm.p, 8);
	put(e, task, "cred", &cred.p, 8);
	put(e, task, "real_cred", &cred.p, 8);
	put(e, task, "signal", &signal.p, 8);
}

uint64_t interp_task(struct interp_engine *e)
{
	cleanup_free char *parent_comm = NULL, *path = xasprintf("/proc/%d/comm", getppid());
	char comm[2][COMM_SIZE] = { "" };
	int pid[2] = { getpid(), getppid() };
	struct object task[2];

	if (e->objects.n)
		return (uintptr_t)e->objects.v[0];
	prctl(PR_GET_NAME, comm[0]);
	err_free(io_read_file(path, &parent_comm, NULL));
	if (parent_comm)
		snprintf(comm[1], COMM_SIZE, "%.*s", (int)strcspn(parent_comm, "\n"), parent_comm);

	for (int i = 0; i < 2; i++)
		task[i] = object_new(e, "task_struct");
	for (int i = 0; i < 2; i++) {
		put_int(e, &task[i], "pid", pid[i]);
		put_int(e, &task[i], "tgid", pid[i]);
		put_int(e, &task[i], "prio", NORMAL_PRIO);
		put_int(e, &task[i], "static_prio", NORMAL_PRIO);
		put(e, &task[i], "comm", comm[i], COMM_SIZE);
		put(e, &task[i], "group_leader", &task[i].p, 8);
		put(e, &task[i], "real_parent", &task[1].p, 8);
	}
	fill_self(e, &task[0]);
	return (uintptr_t)e->objects.v[0];
}

void interp_task_fini(struct interp_engine *e)
{
	for (uint32_t i = 0; i < e->objects.n; i++) {
		interp_mem_del(&e->mem, e->objects.v[i]);
		free(e->objects.v[i]);
	}
	vec_fini(&e->objects);
}
