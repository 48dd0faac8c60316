/* Islands: memory within 2 GB of each patched module, with the stubs of its sites. */
#define _GNU_SOURCE
#include "load/inproc/patch/islands.h"

#include <errno.h>
#include <sys/mman.h>

#include "load/inproc/memory/agent_blob.h"
#include "load/inproc/memory/inproc_files.h"
#include "load/inproc/patch/bell.h"
#include "load/inproc/patch/inproc_patch.h"
#include "load/inproc/undo/undo.h"

/* Gates behind those of the programs' thunks. */
enum {
	GATE_SIGACTION,
	GATE_LOADS,
	GATE_EXECS,
	GATE_SECCOMP,
	GATE_PRCTL,
	GATE_SYSCALL,
	GATE_FORK,
	GATE_CLONE,
	GATES
};
enum {
	PAGE = 4096,
	LINE = 64, /* of the cache */
	STUB_ALIGN = 16,
	STUB_ROOM = 128, /* room for the moved instructions and the jump back */
	STUB_PROBE = 96, /* for each probe of a stub, with the copy of a return */
};
/* Stubs call a gate (struct wire_gate), which jumps to the thunk. An indirect call in each stub
 * needs no gate, but each such call needs its own branch prediction: with hundreds of probed
 * functions, these cost two thirds of a firing. While a program sleeps, its gates lead back to the
 * stub at once. `target` is data, so the tracer changes it while threads run. */

/* Behind the gates stands a byte for each program: is it awake? Where the flags are free, the stubs
 * of a program that sleeps look at it, and so save the way to the gate and back. */
static uint64_t awake_at(uint32_t nprogs, uint32_t prog)
{
	return round_up(((uint64_t)nprogs * WIRE_STUB_ALL + GATES) * sizeof(struct wire_gate),
			LINE) +
	       prog;
}

/* Bytes of gates and of the programs' bytes. */
static uint64_t gates_size(const struct inproc_engine *e)
{
	const uint32_t n = e->base.image->nprogs;

	return round_up(awake_at(n, n), LINE);
}

static void write_gate(struct inproc_module *m, uint64_t i, uint64_t target)
{
	const struct wire_gate g = { WIRE_GATE_CODE, target };

	memcpy(m->island_mem + i * sizeof(g), &g, sizeof(g));
}

/* The gates of a program in an island, by kind of stub. */
static uint64_t first_gate(uint32_t prog)
{
	return (uint64_t)prog * WIRE_STUB_ALL;
}

static uint64_t gate_target(const struct inproc_engine *e, const struct inproc_module *m,
			    uint32_t prog, uint32_t kind)
{
	const uint64_t own = m->island + (first_gate(prog) + kind) * sizeof(struct wire_gate);

	return e->progs[prog].asleep ? own + WIRE_GATE_BACK
				     : e->progs[prog].addr + e->progs[prog].code.thunk[kind];
}

static void turn_gates(struct inproc_engine *e, uint32_t prog)
{
	for (uint32_t i = 0; i < e->processes.n; i++) {
		const struct inproc_process *p = &e->processes.v[i];

		for (uint32_t k = 0; k < p->modules.n; k++) {
			const struct inproc_module *m = &p->modules.v[k];
			struct wire_gate *gates = (struct wire_gate *)(void *)m->island_mem;

			for (uint32_t kind = 0; gates && kind < WIRE_STUB_ALL; kind++)
				__atomic_store_n(&gates[first_gate(prog) + kind].target,
						 gate_target(e, m, prog, kind), __ATOMIC_RELEASE);
			if (gates)
				__atomic_store_n(m->island_mem +
							 awake_at(e->base.image->nprogs, prog),
						 !e->progs[prog].asleep, __ATOMIC_RELEASE);
		}
	}
}

void islands_turn(struct inproc_engine *e)
{
	const int map = image_find_map(e->base.image, MAP_GLOBALS);

	for (uint32_t i = 0; map >= 0 && i < e->base.image->nprogs; i++) {
		const struct image_prog *p = &e->base.image->progs[i];
		uint8_t any = 0;

		/* A process may write them at any time, so their values mean nothing else. */
		for (uint32_t k = 0; k < p->nguards; k++) {
			const uint8_t *at =
				(const uint8_t *)e->maps[map].base + p->guards[k].offset;

			for (uint32_t byte = 0; byte < p->guards[k].size; byte++)
				any |= __atomic_load_n(at + byte, __ATOMIC_RELAXED);
		}
		if (!p->nguards || e->progs[i].asleep == !any)
			continue;
		e->progs[i].asleep = !any;
		turn_gates(e, i);
	}
}

uint64_t island_room(const struct inproc_engine *e, const struct inproc_process *p,
		     const struct inproc_module *m)
{
	uint64_t n = gates_size(e) + (m->loads_state ? BELL_ROOM : 0) + (m->execs ? BELL_ROOM : 0);

	for (uint32_t i = 0; i < m->nsites; i++) {
		const struct inproc_site *s = &p->sites.v[m->first_site + i];

		n += STUB_ROOM + s->text.len * 8u + (uint64_t)s->points.n * STUB_PROBE;
	}
	return round_up(n, PAGE);
}

/* Orders points as they fire: by address, then points that note system calls, then by probe. */
static int by_point(const void *a, const void *b)
{
	const struct inproc_point *x = a, *y = b;
	bool xbooks = x->kind == WIRE_STUB_SYSNOTE || x->kind == WIRE_STUB_SYSFORK;
	bool ybooks = y->kind == WIRE_STUB_SYSNOTE || y->kind == WIRE_STUB_SYSFORK;

	if (x->addr != y->addr)
		return x->addr < y->addr ? -1 : 1;
	if (xbooks != ybooks)
		return xbooks ? -1 : 1;
	if (x->probe == y->probe)
		return x->prog < y->prog ? -1 : x->prog > y->prog;
	return x->probe < y->probe ? -1 : x->probe > y->probe;
}

/* Returns the address of a point's gate. An island begins with the gates: for each program one for
 * each kind of stub, then the agent's, then those of bells, whose code follows. */
static uint64_t gate_of(const struct inproc_module *m, const struct inproc_point *p,
			uint32_t nprogs)
{
	const uint64_t own = (uint64_t)nprogs * WIRE_STUB_ALL;
	uint64_t i = p->probe == INPROC_SIGACTION ? own + GATE_SIGACTION
		     : p->probe == INPROC_LOADS   ? own + GATE_LOADS
		     : p->probe == INPROC_EXECS   ? own + GATE_EXECS
		     : p->probe == INPROC_SECCOMP ? own + GATE_SECCOMP
		     : p->probe == INPROC_PRCTL   ? own + GATE_PRCTL
		     : p->probe == INPROC_SYSCALL ? own + GATE_SYSCALL
		     : p->probe == INPROC_FORK    ? own + GATE_FORK
		     : p->probe == INPROC_CLONE   ? own + GATE_CLONE
						  : first_gate(p->prog) + p->kind;

	return m->island + i * sizeof(struct wire_gate);
}

/* Returns the system call that returns at point k. The last point of a place drops the noted
 * number. */
static uint32_t call_of(const struct inproc_point *points, uint32_t n, uint32_t k)
{
	if (!wire_stub_is_behind(points[k].kind))
		return 0;
	if (points[k].number >= 0)
		return (uint32_t)points[k].number + 1;
	for (uint32_t i = k + 1; i < n && points[i].addr == points[k].addr; i++)
		if (wire_stub_is_behind(points[i].kind))
			return WIRE_STUB_CALL_KEEP;
	return 0;
}

static bool runs_guarded(const struct inproc_engine *e, const struct inproc_point *p)
{
	const struct image *image = e->base.image;

	return p->probe < image->nprobes && image->progs[p->prog].nguards;
}

static struct err *write_stub(const struct inproc_engine *e, const struct inproc_module *m,
			      struct inproc_site *s, uint64_t at)
{
	const struct image *image = e->base.image;
	struct text_point points[TEXT_POINTS_MAX];
	uint32_t code = 0, n = s->points.n;
	struct err *err;

	if (n > TEXT_POINTS_MAX)
		return err_new(E2BIG, "%u probes at one instruction; %d is the most", n,
			       TEXT_POINTS_MAX);
	qsort(s->points.v, n, sizeof(*s->points.v), by_point);
	for (uint32_t k = 0; k < n; k++) {
		const struct inproc_point *p = &s->points.v[k];

		points[k] = (struct text_point){
			.at = (uint8_t)(p->addr - s->text.addr),
			.kind = p->kind,
			.probe = p->probe,
			.shown = p->shown ? p->shown + s->bias : 0,
			.call = call_of(s->points.v, n, k),
			.gate = gate_of(m, p, image->nprogs),
			.awake = runs_guarded(e, p) ? m->island + awake_at(image->nprogs, p->prog)
						    : 0,
			.split = &p->split,
		};
	}
	err = text_stub_points(&s->text, s->bias, m->island + at, points, n, m->island_mem + at,
			       (uint32_t)(m->island_size - at), &s->stub_len, &code, s->moved);
	s->stub = m->island + at;
	s->code_at = s->stub + code;
	return err;
}

struct err *island_write_stubs(struct inproc_engine *e, struct inproc_process *p,
			       struct inproc_module *m)
{
	const uint32_t *entry = agent_blob()->entry;
	uint32_t nprogs = e->base.image->nprogs;
	const uint64_t numbered = e->addr + WIRE_PRIVATE + offsetof(struct wire_private, process);
	uint64_t own = (uint64_t)nprogs * WIRE_STUB_ALL;
	uint64_t at = gates_size(e);
	struct err *err = NULL;

	write_gate(m, own + GATE_SIGACTION, e->addr + entry[WIRE_AGENT_sigaction_site]);
	write_gate(m, own + GATE_SECCOMP, e->addr + entry[WIRE_AGENT_seccomp_site]);
	write_gate(m, own + GATE_PRCTL, e->addr + entry[WIRE_AGENT_prctl_entry]);
	write_gate(m, own + GATE_SYSCALL, e->addr + entry[WIRE_AGENT_syscall_entry]);
	write_gate(m, own + GATE_FORK, e->addr + entry[WIRE_AGENT_fork_site]);
	write_gate(m, own + GATE_CLONE, e->addr + entry[WIRE_AGENT_clone_site]);
	if (m->loads_state) {
		/* rings while r_state is RT_CONSISTENT (0), and not in a forked child */
		write_gate(m, own + GATE_LOADS, m->island + at);
		bell_code(e, numbered, m->loads_state, BELL_LOADS, m->island_mem + at);
		at += BELL_ROOM;
	}
	if (m->execs) { /* rings always, also in followed children before they have a number */
		write_gate(m, own + GATE_EXECS, m->island + at);
		bell_code(e, e->area->follow ? (uintptr_t)&e->area->version : numbered,
			  (uintptr_t)&e->area->zero, 0, m->island_mem + at);
		at += BELL_ROOM;
	}
	for (uint32_t i = 0; i < nprogs; i++) {
		for (uint32_t k = 0; k < WIRE_STUB_ALL; k++)
			write_gate(m, first_gate(i) + k, gate_target(e, m, i, k));
		m->island_mem[awake_at(nprogs, i)] = !e->progs[i].asleep;
	}
	for (uint32_t i = 0; i < m->nsites && !err; i++) {
		struct inproc_site *s = &p->sites.v[m->first_site + i];

		at = round_up(at, STUB_ALIGN);
		err = write_stub(e, m, s, at);
		at += s->stub_len;
	}
	return err;
}

int island_file(const struct inproc_engine *e, uint64_t size)
{
	char name[UNDO_NAME];

	undo_island_name(e->addr, name);
	return file_new(name, size);
}

/* Returns the earlier place of a module that is mapped at the same address again. It uses the old
 * stubs and records again. */
static const struct inproc_place *find_place(const struct inproc_module *m, const struct ranges *r)
{
	for (uint32_t i = 0; i < m->places.n; i++) {
		const struct inproc_place *x = &m->places.v[i];

		if (x->bias == m->bias && ranges_free(r, x->island, x->island + m->island_size))
			return x;
	}
	return NULL;
}

/* Returns a gap where no stub has ever been, because a forked child may still have an old stub and
 * its record. */
static uint64_t find_new_gap(const struct inproc_process *p, const struct inproc_module *m,
			     struct ranges *r)
{
	for (uint32_t i = 0; i < p->modules.n && !r->searched; i++)
		for (uint32_t k = 0; k < p->modules.v[i].places.n; k++) {
			uint64_t lo = p->modules.v[i].places.v[k].island;

			ranges_avoid(r, lo, lo + p->modules.v[i].island_size);
		}
	return ranges_gap(r, m->lo, m->hi, m->island_size);
}

struct err *island_place(struct inproc_engine *e, struct inproc_process *p, struct inproc_module *m,
			 struct ranges *r, int fd, uint64_t *at)
{
	const struct inproc_place *before;
	void *mem;

	if (!ranges_has(r, m->lo) && loads_stays(m->object))
		return err_new(ESRCH, "process %d ends, or executes another program, just now",
			       (int)p->pid);
	m->gone = !ranges_has(r, m->lo); /* the module may return */
	if (m->gone)
		return NULL;
	m->island_size = island_room(e, p, m);
	before = m->fresh ? NULL : find_place(m, r);
	m->island = before ? before->island : find_new_gap(p, m, r);
	if (!m->island)
		return err_new(ENOMEM, "process %d has no %llu free bytes within 2 GB of %s",
			       (int)p->pid, (unsigned long long)m->island_size,
			       object_path(m->object));
	if (before) {
		m->first_undo = before->first_undo;
		m->records = true;
	}
	ranges_take(r, m->island, m->island + m->island_size);
	m->island_at = *at;
	*at += m->island_size;
	mem = mmap(NULL, m->island_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		   (off_t)m->island_at);
	if (mem == MAP_FAILED)
		return err_errno(errno, "mapping stubs");
	m->island_mem = mem;
	m->island_bias = m->bias;
	return NULL;
}

struct err *islands_prepare(struct inproc_engine *e, struct inproc_process *p)
{
	struct ranges r = { 0 };
	struct err *err = ranges_read(p->pid, &r);
	uint64_t used = 0;

	if (!err && !r.list.n)
		err = err_new(ESRCH, "process %d ends, or executes another program, just now",
			      (int)p->pid);
	for (uint32_t i = 0; i < p->modules.n; i++)
		used += island_room(e, p, &p->modules.v[i]);
	p->island_fd = island_file(e, used);
	if (!err && p->island_fd < 0)
		err = err_errno(errno, "memfd_create");
	for (uint32_t i = 0; i < p->modules.n && !err; i++) {
		struct inproc_module *m = &p->modules.v[i];

		if (!m->nsites)
			continue;
		err = island_place(e, p, m, &r, p->island_fd, &p->island_used);
		if (!err && m->island_mem)
			err = island_write_stubs(e, p, m);
	}
	ranges_fini(&r);
	return err ?: file_seal(&p->island_fd, &e->files.unsealed);
}
