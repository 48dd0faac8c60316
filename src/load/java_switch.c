/* Collects the flags that the probes of an image need, JVM by JVM, and switches them on. */
#include "load/java_switch.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/out.h"
#include "base/procmem.h"
#include "load/java_attach.h"
#include "probe/probe.h"
#include "wire/jvm_text.h"

/* The flags of one JVM. */
struct wanted {
	pid_t pid;
	const struct probe_java_switch *flags[JAVA_SWITCH_FLAGS];
	uint32_t n;
	struct out methods; /* whose arguments are read */
	uint32_t access_at;
	struct out entered; /* that the interpreter is to pass probes of */
	const struct probe_java_interpreter *interpreter;
};
typedef VEC(struct wanted) wanted_vec;

static struct wanted *wanted_of(wanted_vec *all, pid_t pid)
{
	for (uint32_t i = 0; i < all->n; i++)
		if (all->v[i].pid == pid)
			return &all->v[i];
	vec_push(all, (struct wanted){ .pid = pid });
	return vec_last(all);
}

/* Classes have slashes in the JVM. */
static void want_method(struct out *to, const struct probe *p)
{
	out_char(to, ';');
	for (const char *c = p->mod; *c; c++)
		out_char(to, *c == '.' ? '/' : *c);
	out_printf(to, ".%s", p->func);
}

/* Returns true when the names are those of methods, and not of the JVM's functions. */
static bool names_methods(const struct probe *p)
{
	return !strncmp(p->prov, "java", 4);
}

/* Returns true for java123:CLASS:METHOD:entry, whose args[] are the method's. */
static bool is_method(const struct probe *p)
{
	return names_methods(p) && !strcmp(p->name, "entry");
}

static const char any_method[] = ";*.*";

static void want_entered(struct out *to, const struct probe *p)
{
	if (names_methods(p))
		want_method(to, p);
	else
		out_printf(to, "%s", any_method);
}

static void want(wanted_vec *all, const struct probe *p)
{
	struct wanted *w = wanted_of(all, p->pid);
	uint32_t i = 0;

	while (i < w->n && w->flags[i]->flag_at != p->java_switch->flag_at)
		i++;
	if (i == w->n && w->n < JAVA_SWITCH_FLAGS)
		w->flags[w->n++] = p->java_switch;
	if (p->java_switch->interpreter) {
		w->interpreter = p->java_switch->interpreter;
		want_entered(&w->entered, p);
	}
	if (p->java_switch->access_at && p->typed_used && is_method(p)) {
		w->access_at = p->java_switch->access_at;
		want_method(&w->methods, p);
	}
}

/* Too many methods for one text: the interpreter then passes the probes of all. */
static void write_interpreter(struct out *to, const struct wanted *w)
{
	enum { ROOM = JAVA_SWITCH_TEXT / 3 };

	for (uint32_t i = 0; i < JAVA_INTERPRETER_NUMBERS; i++)
		out_printf(to, "%s%" PRIx64, i ? "," : " #", w->interpreter->number[i]);
	out_printf(to, "%.*s",
		   w->entered.n < ROOM ? (int)w->entered.n : (int)sizeof(any_method) - 1,
		   w->entered.n < ROOM ? w->entered.v : any_method);
}

static struct err *switch_one(const struct wanted *w, struct java_switches *ret)
{
	struct out text = { 0 };
	struct err *e;
	int fifo;

	out_printf(&text, "%" PRIx64, w->flags[0]->white_box_at);
	for (uint32_t i = 0; i < w->n; i++)
		out_printf(&text, " %s%" PRIx64, w->flags[i]->was_off ? "-" : "",
			   w->flags[i]->flag_at);
	if (w->interpreter)
		out_printf(&text, " %s%" PRIx64, w->interpreter->native_off ? "-" : "",
			   w->interpreter->native_at);
	if (w->interpreter)
		write_interpreter(&text, w);
	if (w->methods.n)
		out_printf(&text, " @%" PRIx32 "%.*s", w->access_at, (int)w->methods.n,
			   w->methods.v);
	if (text.n >= JAVA_SWITCH_TEXT - JAVA_SWITCH_PATH) {
		out_fini(&text);
		return err_new(E2BIG, "arguments of too many methods of process %d are read",
			       (int)w->pid);
	}
	out_char(&text, 0);
	e = java_attach(w->pid, text.v, &fifo);
	out_fini(&text);
	if (e)
		return err_wrap(e, "the JVM of process %d cannot be told to pass the probes of %s",
				(int)w->pid, w->flags[0]->what);
	vec_push(&ret->fifos, fifo);
	return NULL;
}

static void watch_flag(struct java_switches *s, const struct probe *p)
{
	const struct probe_java_switch *on = p->java_switch;

	for (uint32_t i = 0; i < s->flags.n; i++)
		if (s->flags.v[i].pid == p->pid && s->flags.v[i].at == on->flag_at)
			return;
	vec_push(&s->flags,
		 ((struct java_switched){ .pid = p->pid, .at = on->flag_at, .what = on->what }));
}

bool java_switches_lost(struct java_switches *s, struct java_switched *ret)
{
	for (uint32_t i = 0; i < s->flags.n; i++) {
		struct java_switched *f = &s->flags.v[i];
		uint8_t on;

		if (f->state == JAVA_FLAG_OFF || procmem_read(f->pid, &on, 1, f->at) != 1)
			continue;
		if (on)
			f->state = JAVA_FLAG_ON;
		if (on || f->state == JAVA_FLAG_UNSEEN)
			continue;
		f->state = JAVA_FLAG_OFF;
		*ret = *f;
		return true;
	}
	return false;
}

struct err *java_switches_on(const struct image *img, bool inside, struct java_switches *ret)
{
	wanted_vec all = { 0 };
	struct err *e = NULL;

	for (uint32_t i = 0; i < img->nprobes; i++) {
		const struct probe *p = img->probes[i].probe;

		if (!p || !p->java_switch)
			continue;
		watch_flag(ret, p);
		if (!(inside && p->flag))
			want(&all, p);
	}
	for (uint32_t i = 0; i < all.n && !e; i++)
		e = switch_one(&all.v[i], ret);
	for (uint32_t i = 0; i < all.n; i++)
		out_fini(&all.v[i].methods), out_fini(&all.v[i].entered);
	vec_fini(&all);
	return e;
}

void java_switches_off(struct java_switches *s)
{
	for (uint32_t i = 0; i < s->fifos.n; i++)
		java_let_go(s->fifos.v[i]);
	vec_fini(&s->fifos);
	vec_fini(&s->flags);
	s->fifos.n = s->flags.n = 0;
}
