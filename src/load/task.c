/* Makes stand-ins for struct task_struct from /proc and from the kernel's BTF. */
#include "load/task.h"

#include <stdio.h>
#include <string.h>

#include "base/io.h"
#include "base/mem.h"
#include "base/procstatus.h"

enum { OBJECT_MIN = 4096, COMM_SIZE = 16, NORMAL_PRIO = 120, ANCESTORS = 64 };

struct maker {
	struct type_graph *types;
	const struct task_memory *mem;
	bool full; /* there was no memory for an object */
};

/* A kernel structure in descry's memory. type T_VOID: BTF lacks it, and no member can be
 * written. */
struct object {
	uint8_t *p;
	const char *tag;
	uint64_t size;
	type_id type;
};

/* Finds a member in the layout. False: there is no layout, or it lacks the member. */
static bool remembered(const struct maker *m, const char *tag, const char *member,
		       type_id *ret_type, int64_t *ret)
{
	const struct task_layout *l = m->mem->layout;

	for (uint32_t i = 0; l && i < l->n; i++)
		if (l->v[i].tag == tag && l->v[i].member == member) {
			*ret_type = l->v[i].type;
			*ret = l->v[i].offset;
			return true;
		}
	return false;
}

static void remember(const struct maker *m, const char *tag, const char *member, type_id type,
		     int64_t value)
{
	struct task_layout *l = m->mem->layout;

	if (!l || l->n == ARRAY_SIZE(l->v))
		return;
	l->v[l->n].tag = tag;
	l->v[l->n].member = member;
	l->v[l->n].type = type;
	l->v[l->n++].offset = value;
}

static struct object object_new(struct maker *m, const char *tag)
{
	struct object o = { .tag = tag, .size = OBJECT_MIN, .type = T_VOID };
	int64_t size = OBJECT_MIN;

	if (!remembered(m, tag, NULL, &o.type, &size)) {
		if (m->types && type_lookup(m->types, NULL, TYPE_STRUCT, tag, &o.type) &&
		    type_size(m->types, o.type) > OBJECT_MIN)
			size = (int64_t)type_size(m->types, o.type);
		remember(m, tag, NULL, o.type, size);
	}
	o.size = (uint64_t)size;
	o.p = m->mem->alloc(m->mem->arg, o.size);
	m->full |= !o.p;
	return o;
}

static int64_t member_offset(const struct maker *mk, const struct object *o, const char *member)
{
	int64_t off = -1;
	type_id t = o->type;
	struct type_member m;

	if (remembered(mk, o->tag, member, &t, &off))
		return off;
	if (o->type != T_VOID && type_find_member(mk->types, o->type, member, &m))
		off = (int64_t)(m.bit_offset / 8);
	remember(mk, o->tag, member, o->type, off);
	return off;
}

/* Writes a member. For a struct or an array, writes its first bytes. `index`: the element of an
 * array of n-byte elements. */
static void put_at(const struct maker *mk, const struct object *o, const char *member,
		   uint32_t index, const void *value, uint32_t n)
{
	int64_t off = member_offset(mk, o, member);

	if (off < 0 || !o->p)
		return;
	off += (int64_t)index * n;
	if ((uint64_t)off + n <= o->size)
		memcpy(o->p + off, value, n);
}

static void task_put(const struct maker *m, const struct object *o, const char *member,
		     const void *value, uint32_t n)
{
	put_at(m, o, member, 0, value, n);
}

static void put_int(const struct maker *m, const struct object *o, const char *member, int value)
{
	put_at(m, o, member, 0, &value, sizeof(value));
}

/* Reads /proc/PID/stat, proc(5). Field 3 follows the name's ')'. */
static bool read_stat(pid_t pid, struct task_facts *f)
{
	cleanup_free char *path = xasprintf("/proc/%d/stat", (int)pid), *text = NULL;
	char *p, *name;

	err_free(io_read_file(path, &text, NULL));
	p = text ? strrchr(text, ')') : NULL;
	name = text ? strchr(text, '(') : NULL;
	if (!p || !name)
		return false;
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
	return true;
}

static bool read_status(pid_t pid, struct task_facts *f)
{
	cleanup_free char *text = procstatus_read(pid);

	if (!text)
		return false;
	f->tgid = (int)procstatus_number(text, "Tgid", 0);
	f->uid = (int)procstatus_number(text, "Uid", 0);
	f->euid = (int)procstatus_number(text, "Uid", 1);
	f->gid = (int)procstatus_number(text, "Gid", 0);
	f->egid = (int)procstatus_number(text, "Gid", 1);
	return true;
}

bool task_facts_read(pid_t pid, struct task_facts *ret)
{
	struct task_facts f = { .pid = pid, .tgid = pid };

	/* the thread may end between the two reads */
	if (!read_stat(pid, &f) || !read_status(pid, &f))
		return false;
	*ret = f;
	return true;
}

static struct object mm_new(struct maker *m, const struct task_facts *f)
{
	struct object mm = object_new(m, "mm_struct");
	uint64_t end = 0x7ffffffff000;

	task_put(m, &mm, "task_size", &end, 8);
	task_put(m, &mm, "start_stack", &f->start_stack, 8);
	task_put(m, &mm, "arg_start", &f->arg_start, 8);
	task_put(m, &mm, "arg_end", &f->arg_end, 8);
	return mm;
}

static void put_pid(struct maker *m, const struct object *signal, uint32_t index, pid_t id)
{
	struct object pid = object_new(m, "pid");

	put_int(m, &pid, "numbers", id); /* struct upid begins with nr */
	put_at(m, signal, "pids", index, &pid.p, 8);
}

/* Makes a task. parent: the address of its parent's stand-in; 0: the task is its own parent. */
static struct object task_new(struct maker *m, const struct task_facts *f, uint64_t parent)
{
	struct object task = object_new(m, "task_struct");

	put_int(m, &task, "pid", f->pid);
	put_int(m, &task, "tgid", f->tgid);
	put_int(m, &task, "prio", NORMAL_PRIO);
	put_int(m, &task, "static_prio", NORMAL_PRIO);
	task_put(m, &task, "comm", f->comm, COMM_SIZE);
	task_put(m, &task, "group_leader", &task.p, 8);
	task_put(m, &task, "real_parent", parent ? (const void *)&parent : &task.p, 8);
	return task;
}

static void fill_self(struct maker *m, const struct object *task, const struct task_facts *f)
{
	struct object mm = mm_new(m, f), cred = object_new(m, "cred");
	struct object signal = object_new(m, "signal_struct");

	put_int(m, &cred, "uid", f->uid);
	put_int(m, &cred, "gid", f->gid);
	put_int(m, &cred, "euid", f->euid);
	put_int(m, &cred, "egid", f->egid);
	put_int(m, &signal, "nr_threads", f->threads ? f->threads : 1);
	put_int(m, &signal, "live", f->dead ? 0 : f->live ? f->live : f->threads ? f->threads : 1);
	put_pid(m, &signal, 2, f->pgid);
	put_pid(m, &signal, 3, f->sid);
	put_int(m, task, "exit_code", f->exit_code);
	task_put(m, task, "mm", &mm.p, 8);
	task_put(m, task, "cred", &cred.p, 8);
	task_put(m, task, "real_cred", &cred.p, 8);
	task_put(m, task, "signal", &signal.p, 8);
}

uint64_t task_from_facts(struct type_graph *types, const struct task_facts *self, uint64_t parent,
			 const struct task_memory *mem)
{
	struct maker m = { types, mem, false };
	struct object task = task_new(&m, self, parent);

	fill_self(&m, &task, self);
	return m.full ? 0 : (uintptr_t)task.p;
}

uint64_t task_ancestor(struct type_graph *types, const struct task_facts *f, uint64_t parent,
		       const struct task_memory *mem)
{
	struct maker m = { types, mem, false };

	return (uintptr_t)task_new(&m, f, parent).p;
}

void task_set_parent(struct type_graph *types, uint64_t task, uint64_t parent,
		     struct task_layout *layout)
{
	const struct task_memory mem = { .layout = layout };
	const struct maker m = { types, &mem, false };
	struct object o = { .tag = "task_struct", .type = T_VOID, .p = (uint8_t *)task };
	int64_t size = OBJECT_MIN;

	if (remembered(&m, o.tag, NULL, &o.type, &size)) {
		o.size = (uint64_t)size;
		task_put(&m, &o, "real_parent", &parent, 8);
	}
}

/* Makes stand-ins of the process and its ancestors. pid 0 is the ancestor of every process. */
static uint64_t ancestors(struct type_graph *types, pid_t pid, const struct task_memory *mem,
			  int left)
{
	struct task_facts f = { .pid = pid, .tgid = pid };

	if (pid)
		(void)task_facts_read(pid, &f);
	return task_ancestor(types, &f, pid && left ? ancestors(types, f.ppid, mem, left - 1) : 0,
			     mem);
}

uint64_t task_stand_in(struct type_graph *types, pid_t pid, const struct task_memory *mem)
{
	struct task_facts f = { .pid = pid, .tgid = pid };

	(void)task_facts_read(pid, &f);
	return task_from_facts(types, &f, ancestors(types, f.ppid, mem, ANCESTORS), mem);
}
