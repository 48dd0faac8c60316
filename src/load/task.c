#include "load/task.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "base/mem.h"

enum { OBJECT_MIN = 4096, COMM_SIZE = 16, NORMAL_PRIO = 120 };

struct maker {
	struct type_graph *types;
	const struct task_memory *mem;
};

/* A kernel structure in our memory; type T_VOID when BTF does not have it: nothing can be put into it then. */
struct object {
	uint8_t *p;
	uint64_t size;
	type_id type;
};

/* What /proc tells of a process. */
struct facts {
	int pid, ppid, pgid, sid, threads;
	int uid, gid, euid, egid;
	uint64_t start_stack, arg_start, arg_end;
	char comm[COMM_SIZE];
};

static struct object object_new(const struct maker *m, const char *tag)
{
	struct object o = { .size = OBJECT_MIN, .type = T_VOID };

	if (m->types && type_lookup(m->types, NULL, TYPE_STRUCT, tag, &o.type) &&
	    type_size(m->types, o.type) > o.size)
		o.size = type_size(m->types, o.type);
	o.p = m->mem->alloc(m->mem->arg, o.size);
	return o;
}

/* Writes the member, and the first bytes of it when it is itself a struct or an array; `index`: of an array of n-byte
 * elements. */
static void put_at(const struct maker *mk, const struct object *o, const char *member,
		   uint32_t index, const void *value, uint32_t n)
{
	struct type_member m;
	uint64_t off;

	if (o->type == T_VOID || !type_find_member(mk->types, o->type, member, &m))
		return;
	off = m.bit_offset / 8 + (uint64_t)index * n;
	if (off + n <= o->size)
		memcpy(o->p + off, value, n);
}

static void put(const struct maker *m, const struct object *o, const char *member,
		const void *value, uint32_t n)
{
	put_at(m, o, member, 0, value, n);
}

static void put_int(const struct maker *m, const struct object *o, const char *member, int value)
{
	put_at(m, o, member, 0, &value, sizeof(value));
}

/* proc(5): /proc/PID/stat; behind the name's ')' comes field 3. */
static void read_stat(struct facts *f)
{
	cleanup_free char *path = xasprintf("/proc/%d/stat", f->pid), *text = NULL;
	char *p, *name;

	err_free(io_read_file(path, &text, NULL));
	p = text ? strrchr(text, ')') : NULL;
	name = text ? strchr(text, '(') : NULL;
	if (p && name)
		snprintf(f->comm, COMM_SIZE, "%.*s", (int)(p - name - 1), name + 1);
	for (int field = 3; p && (p = strchr(p, ' ')); field++) {
		uint64_t v = strtoull(++p, NULL, 10);

		switch (field) {
		case 4: f->ppid = (int)v; break;
		case 5: f->pgid = (int)v; break;
		case 6: f->sid = (int)v; break;
		case 20: f->threads = (int)v; break;
		case 28: f->start_stack = v; break;
		case 48: f->arg_start = v; break;
		case 49: f->arg_end = v; break;
		default: break;
		}
	}
}

static void read_status(struct facts *f)
{
	cleanup_free char *path = xasprintf("/proc/%d/status", f->pid), *text = NULL;
	char *p;

	err_free(io_read_file(path, &text, NULL));
	p = text ? strstr(text, "\nUid:") : NULL;
	if (p && sscanf(p, "\nUid: %d %d", &f->uid, &f->euid) != 2)
		f->uid = f->euid = -1;
	p = text ? strstr(text, "\nGid:") : NULL;
	if (p && sscanf(p, "\nGid: %d %d", &f->gid, &f->egid) != 2)
		f->gid = f->egid = -1;
}

static struct object mm_new(const struct maker *m, const struct facts *f)
{
	struct object mm = object_new(m, "mm_struct");
	uint64_t end = 0x7ffffffff000;

	put(m, &mm, "task_size", &end, 8);
	put(m, &mm, "start_stack", &f->start_stack, 8);
	put(m, &mm, "arg_start", &f->arg_start, 8);
	put(m, &mm, "arg_end", &f->arg_end, 8);
	return mm;
}

static void put_pid(const struct maker *m, const struct object *signal, uint32_t index, pid_t id)
{
	struct object pid = object_new(m, "pid");

	put_int(m, &pid, "numbers", id); /* struct upid begins with nr */
	put_at(m, signal, "pids", index, &pid.p, 8);
}

static void fill_self(const struct maker *m, const struct object *task, const struct facts *f)
{
	struct object mm = mm_new(m, f), cred = object_new(m, "cred");
	struct object signal = object_new(m, "signal_struct");

	put_int(m, &cred, "uid", f->uid);
	put_int(m, &cred, "gid", f->gid);
	put_int(m, &cred, "euid", f->euid);
	put_int(m, &cred, "egid", f->egid);
	put_int(m, &signal, "nr_threads", f->threads ? f->threads : 1);
	put_pid(m, &signal, 2, f->pgid);
	put_pid(m, &signal, 3, f->sid);
	put(m, task, "mm", &mm.p, 8);
	put(m, task, "cred", &cred.p, 8);
	put(m, task, "real_cred", &cred.p, 8);
	put(m, task, "signal", &signal.p, 8);
}

uint64_t task_stand_in(struct type_graph *types, pid_t pid, const struct task_memory *mem)
{
	struct maker m = { types, mem };
	struct facts f[2] = { { .pid = pid } };
	struct object task[2];

	read_stat(&f[0]);
	read_status(&f[0]);
	f[1].pid = f[0].ppid;
	read_stat(&f[1]);
	for (int i = 0; i < 2; i++)
		task[i] = object_new(&m, "task_struct");
	for (int i = 0; i < 2; i++) {
		put_int(&m, &task[i], "pid", f[i].pid);
		put_int(&m, &task[i], "tgid", f[i].pid);
		put_int(&m, &task[i], "prio", NORMAL_PRIO);
		put_int(&m, &task[i], "static_prio", NORMAL_PRIO);
		put(&m, &task[i], "comm", f[i].comm, COMM_SIZE);
		put(&m, &task[i], "group_leader", &task[i].p, 8);
		put(&m, &task[i], "real_parent", &task[1].p, 8);
	}
	fill_self(&m, &task[0], &f[0]);
	return (uintptr_t)task[0].p;
}
