/* One session for each program that traced processes execute. */
#include "session/family.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "load/inproc/memory/owner.h"
#include "program/space/mapping.h"
#include "program/target/target.h"
#include "session/program_files.h"
#include "wire/inproc.h"

/* The in-process engine's memory in descry has places for as many sessions. */
enum {
	PROGRAMS_MAX = WIRE_BASES,
	/* A process that has ended keeps up to 0.3 MB of its session's memory. A session without
	 * processes is ended behind so many, and a new one begins. */
	TAKEN_MAX = 64,
	ROUND_NS =
		100000000, /* programs are taken for so long until ^C and ticks have their turn */
};
_Static_assert((int)PROGRAMS_MAX < (int)SESSIONS_MAX, "and one of the kernel's engine");

/* A program as one process began to run it. Two processes with the same program have the same
 * probes. */
struct program {
	pid_t pid;
	struct program_id {
		uint64_t dev, inode, size, changed; /* of its file; changed: ns */
		uint64_t user, mounts, pids;        /* uid and name spaces of the process */
	} id;
	struct program_files files;
};

struct member {
	struct session *session;
	struct session own;           /* of all but the first member */
	VEC(struct program) programs; /* of its targets */
	void *data;                   /* the caller's */
	uint64_t used;                /* when a process came last */
	uint32_t taken;               /* processes that came */
};

struct family {
	struct family_setting o;
	VEC(struct member *) members;
	VEC(struct session *) sessions; /* of the members */
	uint64_t left_out;              /* processes without a session, for lack of room */
	bool asked_kernel;              /* the first session's engine was looked at */
};

/* --- programs --- */

static uint64_t id_of_file(pid_t pid, const char *name)
{
	cleanup_free char *path = xasprintf("/proc/%d/%s", (int)pid, name);
	struct stat st;

	return stat(path, &st) ? 0 : st.st_ino;
}

static bool id_read(pid_t pid, struct program_id *ret)
{
	cleanup_free char *exe = xasprintf("/proc/%d/exe", (int)pid),
			  *dir = xasprintf("/proc/%d", (int)pid);
	struct stat file, process;

	if (stat(exe, &file) || stat(dir, &process))
		return false;
	*ret = (struct program_id){
		.dev = file.st_dev,
		.inode = file.st_ino,
		.size = (uint64_t)file.st_size,
		.changed =
			(uint64_t)file.st_ctim.tv_sec * 1000000000 + (uint64_t)file.st_ctim.tv_nsec,
		.user = process.st_uid,
		.mounts = id_of_file(pid, "ns/mnt"),
		.pids = id_of_file(pid, "ns/pid"),
	};
	return true;
}

/* Returns false when the process has ended, or may not be looked at. */
static bool program_read(pid_t pid, struct program *ret)
{
	struct mappings maps = { 0 };

	*ret = (struct program){ .pid = pid };
	if (!id_read(pid, &ret->id) || err_drop(mappings_read(pid, &maps)))
		return false;
	program_files_init(&ret->files, &maps);
	mappings_free(&maps);
	return true;
}

static void program_free(struct program *p)
{
	program_files_fini(&p->files);
}

/* Returns true when the probes of `known` are all that a process of program p needs: it maps no
 * file more. */
static bool program_covers(const struct program *known, const struct program *p)
{
	return !memcmp(&known->id, &p->id, sizeof(p->id)) &&
	       program_files_cover(&known->files, &p->files);
}

/* --- members --- */

static struct member *add_member(struct family *f, struct session *s)
{
	struct member *m = xcalloc(1, sizeof(*m));

	m->session = s ? s : &m->own;
	m->used = clock_ns(CLOCK_MONOTONIC);
	vec_push(&f->members, m);
	vec_push(&f->sessions, m->session);
	return m;
}

static void drop_member(struct family *f, uint32_t i)
{
	struct member *m = f->members.v[i];

	if (m->session == &m->own) {
		session_fini(&m->own);
		f->o.drop(f->o.arg, m->data);
	}
	for (uint32_t k = 0; k < m->programs.n; k++)
		program_free(&m->programs.v[k]);
	vec_fini(&m->programs);
	free(m);
	f->members.n--;
	f->sessions.n--;
	memmove(f->members.v + i, f->members.v + i + 1, (f->members.n - i) * sizeof(*f->members.v));
	memmove(f->sessions.v + i, f->sessions.v + i + 1,
		(f->sessions.n - i) * sizeof(*f->sessions.v));
}

/* Reports that a process is not traced in its program. One that has ended needs no report. */
static void say_untraced(const struct family *f, pid_t pid, struct err *e)
{
	if (e->code != ESRCH && f->members.v[0]->session->failure != SESSION_WRONG_D)
		session_say(f->o.first,
			    "%s: the program that process %d has executed is not traced", e->text,
			    (int)pid);
	err_free(e);
}

static void end_member(struct family *f, uint32_t i)
{
	struct err *e = session_stop(f->members.v[i]->session, NULL);

	if (e)
		session_say(f->o.first, "%s", e->text);
	err_free(e);
	drop_member(f, i);
}

/* Makes room for one more session: ends the one without processes that was used least of late.
 * Returns false when all sessions have processes. */
static bool make_room(struct family *f)
{
	uint32_t oldest = 0, n = 0;

	for (uint32_t i = 0; i < f->members.n; i++)
		n += session_can_enter(f->members.v[i]->session);
	if (n < PROGRAMS_MAX)
		return true;
	for (uint32_t i = 1; i < f->members.n; i++)
		if (session_is_idle(f->members.v[i]->session) &&
		    (!oldest || f->members.v[i]->used < f->members.v[oldest]->used))
			oldest = i;
	if (oldest)
		end_member(f, oldest);
	return oldest;
}

/* Gives a session the settings and options of the first one. */
static void set_member(struct family *f, struct session *s, const struct engine_type *engine)
{
	struct session_setting o = f->o.first->o;

	o.engine = engine;
	o.hands_over = engine == &engine_inproc;
	o.symbols = f->o.first->symbols;
	session_init(s, &o);
	options_copy(&s->options, &f->o.first->options);
	if (!o.hands_over)
		options_put(&s->options, OPT_FOLLOW, false);
}

/* As plan.c has it for named processes. */
static struct err *check_owner(const struct session *s, pid_t pid)
{
	if (plan_engine_named(&s->options) || !owner_is_stranger(pid))
		return NULL;
	return err_new(EPERM,
		       "process %d is another user's, or has privileges that descry lacks "
		       "(-X engine=inproc traces it)",
		       (int)pid);
}

static struct err *run_member(struct family *f, struct member *m)
{
	struct session *s = m->session;
	struct err *e = session_bind(s);

	e = e ?: session_compile(s);
	e = e ?: session_allowed(s);
	e = e ?: session_load(s);
	return e ?: session_start(s, f->o.sink(f->o.arg, m->data));
}

static struct err *start_member(struct family *f, struct member *m, const struct executed *x)
{
	struct session *s = m->session;
	struct err *e = session_hold(s, x) ?: check_owner(s, x->pid);

	e = e ?: f->o.prepare(f->o.arg, s, &m->data);
	return e ?: run_member(f, m);
}

struct err *family_beside(struct family *f, const struct engine_type *engine,
			  struct err *(*prepare)(void *arg, struct session *s, void **ret_own))
{
	struct member *m = add_member(f, NULL);
	struct err *e;

	set_member(f, m->session, engine);
	e = prepare(f->o.arg, m->session, &m->data) ?: run_member(f, m);
	if (e)
		drop_member(f, f->members.n - 1);
	return e;
}

/* Takes ownership of p. */
static void begin_member(struct family *f, const struct executed *x, struct program *p)
{
	struct member *m;
	struct err *e;

	if (!make_room(f)) {
		control_free(x->control);
		program_free(p);
		if (!f->left_out++)
			session_say(
				f->o.first,
				"more than %d programs run at once: those that begin now are not "
				"traced (the first is process %d)",
				PROGRAMS_MAX, (int)x->pid);
		return;
	}
	m = add_member(f, NULL);
	vec_push(&m->programs, *p);
	set_member(f, m->session, &engine_inproc);
	e = start_member(f, m, x);
	if (!e)
		return;
	drop_member(f, f->members.n - 1);
	say_untraced(f, x->pid, e);
}

/* --- processes --- */

/* Without -x follow a session is for one process at a time, as its engine demands. */
static bool has_place(const struct family *f, const struct member *m)
{
	return session_can_enter(m->session) &&
	       (opt_on(&f->o.first->options, OPT_FOLLOW) || session_is_idle(m->session));
}

static void end_worn(struct family *f)
{
	for (uint32_t i = f->members.n - 1; i > 0; i--)
		if (f->members.v[i]->taken >= TAKEN_MAX &&
		    session_is_idle(f->members.v[i]->session))
			end_member(f, i);
}

static struct member *find_member(struct family *f, const struct program *p, pid_t *ret_like)
{
	for (uint32_t i = 0; i < f->members.n; i++)
		for (uint32_t k = 0;
		     k < f->members.v[i]->programs.n && has_place(f, f->members.v[i]); k++)
			if (program_covers(&f->members.v[i]->programs.v[k], p)) {
				*ret_like = f->members.v[i]->programs.v[k].pid;
				return f->members.v[i];
			}
	return NULL;
}

static void take(struct family *f, const struct executed *x)
{
	struct program p;
	struct member *m;
	struct err *e;
	pid_t like;

	if (!program_read(x->pid, &p)) {
		control_free(x->control);
		program_free(&p);
		return;
	}
	end_worn(f);
	m = find_member(f, &p, &like);
	if (!m) {
		begin_member(f, x, &p);
		return;
	}
	program_free(&p);
	m->used = clock_ns(CLOCK_MONOTONIC);
	m->taken++;
	e = session_enter(m->session, x, like);
	if (e)
		say_untraced(f, x->pid, e);
}

/* Takes processes that have executed a program. Their earlier records come first. Those that are
 * left when the round is over stay held until the next round. */
static struct err *take_executed(struct family *f)
{
	const uint64_t until = clock_ns(CLOCK_MONOTONIC) + ROUND_NS;
	struct err *e = NULL;
	struct executed x;

	for (uint32_t i = 0; i < f->members.n && !e; i++)
		while (!e && i < f->members.n && clock_ns(CLOCK_MONOTONIC) < until &&
		       session_executed(f->members.v[i]->session, &x)) {
			e = session_catch_up_all(f->sessions.v, f->sessions.n,
						 clock_ns(CLOCK_MONOTONIC));
			f->o.executed(f->o.arg, x.pid);
			take(f, &x);
		}
	return e;
}

/* Says once that the first session's engine cannot hold processes. */
static void look_at_engine(struct family *f)
{
	if (!f->asked_kernel && opt_on(&f->o.first->options, OPT_FOLLOW) &&
	    !session_can_enter(f->o.first))
		session_say(f->o.first,
			    "the %s engine does not trace the programs that traced processes "
			    "execute (-X engine=inproc does)",
			    f->o.first->plan.engine->ops->name);
	f->asked_kernel = true;
}

bool family_poll(struct family *f, int timeout_ms, struct err **ret_err)
{
	bool more;

	look_at_engine(f);
	more = session_poll_all(f->sessions.v, f->sessions.n, timeout_ms, ret_err);
	if (more && !*ret_err)
		*ret_err = take_executed(f);
	return more && !*ret_err;
}

void family_end(struct family *f)
{
	while (f->members.n > 1)
		end_member(f, f->members.n - 1);
	if (f->left_out)
		session_say(f->o.first,
			    "%llu executed programs were not traced: more than %d ran at once",
			    (unsigned long long)f->left_out, PROGRAMS_MAX);
	f->left_out = 0;
}

struct family *family_new(const struct family_setting *o)
{
	struct family *f = xcalloc(1, sizeof(*f));
	struct member *m;

	f->o = *o;
	m = add_member(f, o->first);
	for (uint32_t i = 0; i < o->first->targets.n; i++) {
		struct program p;

		if (program_read(o->first->targets.v[i].pid, &p))
			vec_push(&m->programs, p);
		else
			program_free(&p);
	}
	return f;
}

void family_free(struct family *f)
{
	if (!f)
		return;
	while (f->members.n)
		drop_member(f, f->members.n - 1);
	vec_fini(&f->members);
	vec_fini(&f->sessions);
	free(f);
}
