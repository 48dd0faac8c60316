/* Provider plockstat: pthread locks of a process,
 * `plockstat123:libc.so.6:pthread_mutex_lock:mutex-acquire`.
 *
 *	entry of a lock function    its lock is kept in a variable of the thread
 *	futex(FUTEX_WAIT) within    mutex-block, rw-block: the first wait of that call
 *	return                      mutex-blocked, rw-blocked when it had waited; then -acquire or -error
 *
 * Clauses that run before the program's own keep the values of the entry. They are enabled in every
 * process named with -p or -c. Solaris's spin probes do not exist here, because libc spins without
 * a call that could have a probe.
 */
#include <string.h>

#include "base/glob.h"
#include "probe/process.h"
#include "probe/provider.h"

static const char before[] =
	"self uint64_t __pl_lock;\n"
	"self int __pl_inside, __pl_writer, __pl_waits;\n"
	"pid*::pthread_mutex_[lct]*ock:entry, pid*::pthread_rwlock_*rdlock:entry, "
	"pid*::pthread_rwlock_*wrlock:entry {\n"
	"	self->__pl_lock = arg0;\n"
	"	self->__pl_waits = 0;\n"
	"	self->__pl_inside = 1;\n"
	"}\n"
	"pid*::pthread_mutex_[lct]*ock:entry { self->__pl_writer = 2; }\n"
	"pid*::pthread_rwlock_*rdlock:entry { self->__pl_writer = 0; }\n"
	"pid*::pthread_rwlock_*wrlock:entry { self->__pl_writer = 1; }\n"
	/* the commands FUTEX_WAIT, FUTEX_LOCK_PI, FUTEX_WAIT_BITSET, FUTEX_LOCK_PI2 */
	"syscall::futex:entry /self->__pl_inside != 0 && ((arg1 & 0x7f) == 0 || (arg1 & 0x7f) == 6 || "
	"(arg1 & 0x7f) == 9 || (arg1 & 0x7f) == 13)/ {\n"
	"	self->__pl_waits++;\n"
	"}\n";

/* The kernel runs several programs at one place in no fixed order. This clause may therefore run
 * before the return probes, which use the remaining variables. */
static const char after[] =
	"pid*::pthread_mutex_[lct]*ock:return, pid*::pthread_rwlock_*rdlock:return, "
	"pid*::pthread_rwlock_*wrlock:return {\n"
	"	self->__pl_inside = 0;\n"
	"}\n";

enum where { ENTRY, RETURN, FUTEX };

enum { MAX_ARGS = 3, FUTEX_NUMBER = 202 };

struct row {
	const char *name;
	const char *func; /* pattern */
	enum where where;
	const char *filter;
	struct {
		const char *type, *expr;
	} args[MAX_ARGS];
	const char *note;
};

/* Words of struct pt_regs: uregs[10] is rax, uregs[14] rdi. The second word of glibc's mutex counts
 * how often its owner holds it. */
#define LOCKED "self->__pl_lock != 0 && (int)uregs[10] == 0"
#define FAILED "self->__pl_lock != 0 && (int)uregs[10] != 0"
#define WAITED "self->__pl_lock != 0 && self->__pl_waits != 0"
// clang-format off
#define LOCK { "uint64_t", "self->__pl_lock" }
#define RDI { "uint64_t", "(uint64_t)uregs[14]" }
#define WRITER { "int", "self->__pl_writer" }
#define GOT_IT { "int", "(int)uregs[10] == 0 ? 1 : 0" }
#define ERRNO { "int", "(int)uregs[10]" }
#define AGAIN(lock) { "int", "*(uint32_t *)copyin((uintptr_t)(" lock " + 4), 4) > 1 ? 1 : 0" }
// clang-format on

static const struct row rows[] = {
	{ "mutex-acquire",
	  "pthread_mutex_[lct]*ock",
	  RETURN,
	  LOCKED,
	  { LOCK, AGAIN("self->__pl_lock") },
	  NULL },
	{ "mutex-error",
	  "pthread_mutex_[lct]*ock",
	  RETURN,
	  FAILED,
	  { LOCK, ERRNO },
	  "a trylock of a held mutex counts too" },
	{ "mutex-blocked", "pthread_mutex_[lct]*ock", RETURN, WAITED, { LOCK, GOT_IT }, NULL },
	{ "mutex-release",
	  "pthread_mutex_unlock",
	  ENTRY,
	  NULL,
	  { RDI, AGAIN("uregs[14]") },
	  "before it is given back; pthread_cond_wait() gives back and takes without these probes" },
	{ "rw-acquire", "pthread_rwlock_*rdlock", RETURN, LOCKED, { LOCK, WRITER }, NULL },
	{ "rw-acquire", "pthread_rwlock_*wrlock", RETURN, LOCKED, { LOCK, WRITER }, NULL },
	{ "rw-error", "pthread_rwlock_*rdlock", RETURN, FAILED, { LOCK, WRITER, ERRNO }, NULL },
	{ "rw-error", "pthread_rwlock_*wrlock", RETURN, FAILED, { LOCK, WRITER, ERRNO }, NULL },
	{ "rw-blocked", "pthread_rwlock_*rdlock", RETURN, WAITED, { LOCK, WRITER, GOT_IT }, NULL },
	{ "rw-blocked", "pthread_rwlock_*wrlock", RETURN, WAITED, { LOCK, WRITER, GOT_IT }, NULL },
	{ "rw-release", "pthread_rwlock_unlock", ENTRY, NULL, { RDI }, "before it is given back" },
	{ "mutex-block", "pthread_mutex_*", FUTEX, NULL, { LOCK }, "the first wait of a call" },
	{ "rw-block", "pthread_rwlock_*", FUTEX, NULL, { LOCK, WRITER }, "the first wait of a call" },
};

static const char prefix[] = "plockstat";

static bool plockstat_claims(const struct provider *pv, const char *pattern)
{
	size_t n = strspn(pattern + strnlen(pattern, sizeof(prefix) - 1), "0123456789");

	if (glob_is_pattern(pattern))
		return true;
	return !strncmp(pattern, prefix, sizeof(prefix) - 1) && n &&
	       !pattern[sizeof(prefix) - 1 + n];
}

/* Adds the probe on futex(2) whose filter selects a thread of this process inside a lock function
 * of the row's kind. __pl_writer is 2 in the functions of mutexes. */
static void add_futex(struct process_match *m, const struct process_object *po,
		      const struct row *row)
{
	bool is_new;
	struct probe *p;

	if (!glob_match(m->pd->func, "futex"))
		return;
	p = probe_add(m->ps, m->pv, 0, m->prov, po->name, "futex", row->name, &is_new);
	if (is_new) {
		p->kind = ATTACH_SYSCALL_ENTRY;
		p->object = "futex";
		p->number = FUTEX_NUMBER;
		p->priv = row;
		p->note = row->note;
		p->filter = arena_printf(
			&m->ps->arena,
			"pid == %d && self->__pl_waits == 1 && self->__pl_inside != 0 && self->__pl_writer %s 2",
			(int)m->pid, row->name[0] == 'm' ? "==" : "!=");
	}
	m->found(m->arg, p);
}

static void add_function(struct process_match *m, const struct process_object *po,
			 const struct row *row, const struct object_symbol *f)
{
	process_add_event(m, po, f,
			  &(struct process_event){ .name = row->name,
						   .kind = row->where == RETURN ? ATTACH_URETPROBE
										: ATTACH_UPROBE,
						   .filter = row->filter,
						   .note = row->note,
						   .priv = row });
}

static void match_row(struct process_match *m, const struct process_object *po,
		      const struct row *row)
{
	uint64_t last = UINT64_MAX;
	uint32_t n;
	const struct object_symbol *s = object_symbols(po->object, &n);

	for (uint32_t i = 0; i < n; i++) {
		if (!s[i].is_func || s[i].addr == last || !glob_match(row->func, s[i].name))
			continue;
		last = s[i].addr;
		if (row->where == FUTEX) {
			add_futex(m, po, row);
			return;
		}
		add_function(m, po, row, &s[i]);
	}
}

static struct err *match_process(struct process_match *m, pid_t pid)
{
	const struct process_objects *objects;
	struct err *e;

	m->pid = pid;
	snprintf(m->prov, sizeof(m->prov), "%s%d", prefix, (int)pid);
	if (!glob_match(m->pd->prov, m->prov))
		return NULL;
	e = process_objects(m->ps, pid, &objects);
	for (uint32_t i = 0; !e && i < objects->n; i++)
		for (size_t k = 0; k < ARRAY_SIZE(rows); k++)
			if (process_object_matches(&objects->v[i], m->pd->mod) &&
			    object_is_x86_64(objects->v[i].object) &&
			    glob_match(m->pd->name, rows[k].name))
				match_row(m, &objects->v[i], &rows[k]);
	return e;
}

static struct err *plockstat_match(const struct provider *pv, struct probe_set *ps,
				   const struct probe_desc *pd, probe_fn *found, void *arg)
{
	struct process_match m = { .pv = pv, .ps = ps, .pd = pd, .found = found, .arg = arg };
	struct err *e = NULL;

	if (!strncmp(pd->prov, "pid", 3))
		return NULL;
	for (uint32_t i = 0; i < ps->targets.n && !e; i++)
		e = match_process(&m, ps->targets.v[i].pid);
	return e;
}

static struct err *plockstat_args(struct probe_set *ps, const struct probe *p,
				  struct probe_args *ret)
{
	const struct row *row = p->priv;

	ret->known = true;
	for (uint32_t i = 0; i < MAX_ARGS && row->args[i].type; i++) {
		struct probe_arg a = { .source = ARG_EXPR,
				       .type = provider_type(ps, row->args[i].type),
				       .expr = row->args[i].expr };

		provider_set_arg(ps, ret, i, &a);
	}
	return NULL;
}

const struct provider provider_plockstat = {
	.name = prefix,
	.doc = "pthread mutexes and read-write locks of a process: taken, waited for, given back",
	.stability = { E_COMMON, P_UNKNOWN, P_UNKNOWN, E_COMMON, E_COMMON },
	.before = before,
	.after = after,
	.claims = plockstat_claims,
	.match = plockstat_match,
	.args = plockstat_args,
};
