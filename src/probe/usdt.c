/* usdt: probes that a program carries itself (<sys/sdt.h>, or DOF of another DTrace),
 * `PROVIDERpid:OBJECT:FUNCTION:NAME`, by kernel uprobes.
 *
 *	python123:::function-entry    of process 123; "__" in a name is written "-", either is understood
 *	python*:::                    of the processes named with -p and -c; of every process that has it now
 *	                              when none is named and no other provider has such a name
 *	:python3.11::                 of the named processes too, because an empty provider matches theirs
 *
 * A probe with a semaphore costs nothing until a tracer attaches. The kernel then counts the
 * semaphore up.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/glob.h"
#include "base/out.h"
#include "probe/process.h"
#include "probe/usdt.h"

enum {
	ARGUMENTS = 10,      /* that a program sees */
	OPERAND_SHOWN = 100, /* bytes of one in a remark */
};

struct match {
	const struct provider *pv;
	struct probe_set *ps;
	const struct probe_desc *pd;
	probe_fn *found;
	void *arg;
	bool any;   /* the process at hand has such a probe */
	bool later; /* the object at hand is not loaded yet */
	bool named; /* likewise, and the description names it */
	/* of the note at hand, in functions of a language; NULL: of another note */
	const struct usdt_names *names;
	const char *names_mod, *names_func; /* patterns that select them; NULL: all */
	const char *names_filter;           /* the condition, NULL: none */
	bool names_wild;                    /* D has no condition for them */
	struct hash flags; /* "OBJECT PID LATER NAME" of a note of a JVM -> its usdt_jvm_flag */
};

static size_t trailing_digits(const char *s)
{
	size_t n = strlen(s), digits = 0;

	while (digits < n && s[n - 1 - digits] >= '0' && s[n - 1 - digits] <= '9')
		digits++;
	return digits;
}

static bool usdt_claims(const struct provider *pv, const char *pattern)
{
	size_t digits = trailing_digits(pattern);

	if (!*pattern || glob_is_pattern(pattern))
		return true;
	/* pid123 belongs to the pid provider */
	return digits && digits < strlen(pattern) &&
	       !(digits == strlen(pattern) - 3 && !strncmp(pattern, "pid", 3));
}

/* Returns DTrace's form of a probe name: "function-entry" for "function__entry". */
static const char *dtrace_name(struct probe_set *ps, const char *name)
{
	char *out = arena_strdup(&ps->arena, name), *to = out;

	for (const char *p = out; *p;) {
		if (p[0] == '_' && p[1] == '_') {
			*to++ = '-';
			p += 2;
		} else {
			*to++ = *p++;
		}
	}
	*to = 0;
	return out;
}

/* Adds a remark to note when some arguments will read as 0. */
static const char *arguments_note(struct probe_set *ps, const struct process_object *po,
				  const struct object_usdt *u, const char *note)
{
	const char *text = u->args, *start;
	struct out o = { 0 };
	uint32_t i = 0;
	size_t n;

	out_str(&o, note);
	for (; usdt_next_operand(&text, &start, &n); i++) {
		struct usdt_operand op;
		const char *reason;

		/* The file may have any number of operands, of any length. */
		if (i < ARGUMENTS &&
		    !usdt_parse_operand(start, n, po->object, u->addr, &op, &reason))
			out_printf(&o, "; arg%u (%.*s%s) is not available: %s", i,
				   n > OPERAND_SHOWN ? OPERAND_SHOWN : (int)n, start,
				   n > OPERAND_SHOWN ? "..." : "", reason);
	}
	if (i > ARGUMENTS)
		out_printf(&o, "; it has %u arguments, of which %d are seen", i, ARGUMENTS);
	note = arena_strndup(&ps->arena, o.v ? o.v : "", o.n);
	out_fini(&o);
	return note;
}

/* Sets the places where the program asks whether the probe is enabled. */
static void add_asks(struct probe_set *ps, struct probe *p, struct object *o,
		     const struct object_usdt *u)
{
	p->asks = usdt_questions(ps, o, u, &p->nasks);
	if (p->nasks && p->note)
		p->note = arena_printf(
			&ps->arena,
			"%s; the program checks whether it is enabled, and only the in-process engine answers yes",
			p->note);
}

/* Sets the note about the price of a firing, or the reason why the place cannot be probed. */
static void classify(struct probe_set *ps, struct probe *p, const struct process_object *po)
{
	enum uprobe_class class;
	const char *reason;
	uint8_t code[16];
	uint32_t len;

	class = uprobe_classify(code, object_read(po->object, p->addr, code, sizeof(code)), &len,
				&reason);
	p->red_zone = class == UPROBE_NOP5 &&
		      object_uses_red_zone(po->object, p->addr, &ps->red_zone_read);
	if (class == UPROBE_REFUSED)
		p->unavailable = reason;
	else if (!object_is_x86_64(po->object))
		p->unavailable = "it is not x86-64 code";
	else
		p->note = process_price(class, ATTACH_UPROBE);
}

/* Looks once for each name: a file may have 200,000 notes of one name, and the answer needs the
 * mappings and the memory of the process. */
static struct usdt_jvm_flag known_flag(struct match *m, const struct process_object *po,
				       const struct object_usdt *u)
{
	cleanup_free char *key = NULL;
	uint64_t *known;

	if (strcmp(u->provider, "hotspot"))
		return (struct usdt_jvm_flag){ 0 };
	key = xasprintf("%p %d %d %s", (void *)po->object, (int)po->pid, m->later, u->name);
	known = hash_put(&m->flags, key, strlen(key), NULL);
	if (!*known) {
		struct usdt_jvm_flag *f = arena_new(&m->ps->arena, struct usdt_jvm_flag);

		*f = usdt_jvm_flag(m->ps, po, u, !m->later);
		*known = (uintptr_t)f;
	}
	return *(const struct usdt_jvm_flag *)(uintptr_t)*known;
}

/* Sets the flag of the JVM that the probe needs. */
static void add_jvm_flag(struct match *m, struct probe *p, const struct process_object *po,
			 const struct object_usdt *u)
{
	struct usdt_jvm_flag f = known_flag(m, po, u);

	p->flag = f.addr;
	if (f.on.what) {
		struct probe_java_switch *on = arena_new(&m->ps->arena, struct probe_java_switch);

		*on = f.on;
		p->java_switch = on;
	}
	/* a description of functions by their names must not miss calls */
	if (f.refused && m->names && !strncmp(p->prov, "java", 4))
		p->unavailable = arena_printf(
			&m->ps->arena, "it fires only in a JVM that was started with -XX:+%s: %s",
			f.name, f.refused);
	else if (f.refused)
		process_note(
			m->ps,
			xasprintf("%s:%s::%s fires only in a JVM that was started with -XX:+%s: %s",
				  p->prov, p->mod, p->name, f.name, f.refused));
	if (f.name && p->note)
		p->note = arena_printf(
			&m->ps->arena,
			f.refused ? "%s; it fires only in a JVM that was started with -XX:+%s"
			: f.on.what && !f.addr
				? "%s; descry's library in the JVM sets its flag %s while the probe is enabled"
				: "%s; the in-process engine sets the JVM's flag %s",
			p->note, f.name);
}

/* Adds a probe of the note at hand at a place. */
static struct probe *add_probe(struct match *m, pid_t pid, const struct process_object *po,
			       const char *prov, const char *func, const char *name,
			       uint64_t offset, bool *ret_new)
{
	struct process_object named = *po;
	struct probe *p;

	if (m->names_mod)
		named.name = m->names_mod;
	p = process_add_probe(m->ps, m->pv, pid, &named, prov, m->names_func ? m->names_func : func,
			      name, ATTACH_UPROBE, offset, ret_new);
	if (*ret_new && m->names) {
		p->mod_text = m->names->mod;
		p->func_text = m->names->func;
		p->names_filter = m->names_filter;
		if (m->names_wild)
			p->unavailable =
				"names of functions may have a * at the beginning and one at the end, and no other wildcards";
	}
	return p;
}

static void add_usdt(struct match *m, pid_t pid, const struct process_object *po, const char *prov,
		     const char *name, const struct object_usdt *u)
{
	bool is_new;
	struct probe *p = add_probe(m, pid, po, prov, u->func, name, u->offset, &is_new);

	if (is_new) {
		struct usdt_place *place = arena_new(&m->ps->arena, struct usdt_place);

		*place = (struct usdt_place){
			.object = po->object, .addr = u->addr, .args = u->args, .types = u->types
		};
		p->priv = place;
		p->addr = u->addr;
		p->semaphore = u->semaphore;
		p->semaphore_shares_page = u->semaphore &&
					   object_shares_page(po->object, u->semaphore);
		classify(m->ps, p, po);
		if (usdt_ruby_refusal(u))
			p->unavailable = usdt_ruby_refusal(u);
		if (p->note)
			p->note = arguments_note(m->ps, po, u, p->note);
		add_asks(m->ps, p, po->object, u);
		add_jvm_flag(m, p, po, u);
	}
	m->found(m->arg, p);
}

/* Adds a probe that the interpreter has neither as a note nor at places that descry knows. */
static void add_placeless(struct match *m, pid_t pid, const struct process_object *po,
			  const char *prov, const char *name, const char *reason)
{
	bool is_new;
	struct probe *p = add_probe(m, pid, po, prov, "", name, 0, &is_new);

	if (is_new) {
		struct usdt_place *place = arena_new(&m->ps->arena, struct usdt_place);

		place->object = po->object;
		place->args = "";
		p->priv = place;
		p->unavailable =
			arena_printf(&m->ps->arena, "its file has no such probe, and %s", reason);
	}
	m->found(m->arg, p);
}

/* A frame of a method ends, or of a block that is one. */
static const char ruby_filter[] = "(arg9 & 0x7fff0001) == 0x11110001 || "
				  "((arg9 & 0x7fff0001) == 0x22220001 && arg9 & 0x40)";

/* Returns true when the process is a command that descry starts, which has run nothing yet. */
static bool begins(const struct probe_set *ps, pid_t pid)
{
	for (uint32_t i = 0; i < ps->targets.n; i++)
		if (ps->targets.v[i].pid == pid)
			return ps->targets.v[i].is_command;
	return false;
}

/* Adds one of Ruby's probes that are passed at their notes only while a TracePoint is enabled. */
static void add_ruby_method(struct match *m, pid_t pid, const struct process_object *po,
			    const char *prov, const char *name, const struct object_usdt *u,
			    enum usdt_ruby_kind kind)
{
	const char *reason;
	const struct usdt_ruby *places = usdt_ruby_places(m->ps, po, &reason);

	if (!places) {
		if (!u->addr) {
			add_placeless(m, pid, po, prov, name, reason);
			return;
		}
		process_note(
			m->ps,
			xasprintf("%s:%s::%s fires only while a TracePoint is enabled, too: %s",
				  prov, po->name, name, reason));
		add_usdt(m, pid, po, prov, name, u);
		return;
	}
	reason = m->later || begins(m->ps, pid) ? NULL : usdt_ruby_compiled(po);
	for (uint32_t i = 0; i < places->n; i++) {
		const struct usdt_ruby_place *at = &places->v[i];
		struct usdt_place *place;
		struct probe *p;
		uint64_t offset;
		bool is_new;

		if ((i < places->nentries) != (kind == USDT_RUBY_ENTRY) ||
		    !object_addr_to_offset(po->object, at->addr, &offset))
			continue;
		p = add_probe(m, pid, po, prov, u->func, name, offset, &is_new);
		if (is_new) {
			place = arena_new(&m->ps->arena, struct usdt_place);
			place->object = po->object;
			place->addr = at->addr;
			place->noperands = USDT_RUBY_ARGS;
			memcpy(place->operands, at->args, sizeof(at->args));
			place->flags = at->flags;
			p->priv = place;
			p->addr = at->addr;
			p->filter = at->flags.size ? ruby_filter : NULL;
			classify(m->ps, p, po);
			p->misses_compiled = true;
			if (reason)
				p->unavailable = reason;
		}
		m->found(m->arg, p);
	}
}

/* Adds a probe of Ruby's collector in a build without notes. */
static void add_ruby_mark(struct match *m, pid_t pid, const struct process_object *po,
			  const char *prov, const char *name, const struct object_usdt *u,
			  enum usdt_ruby_kind kind)
{
	struct object_usdt at = *u;
	const char *reason = usdt_ruby_mark(po->object, kind, &at.addr);

	if (!reason && object_addr_to_offset(po->object, at.addr, &at.offset))
		add_usdt(m, pid, po, prov, name, &at);
	else
		add_placeless(m, pid, po, prov, name, reason ?: "its code has no place in it");
}

/* Adds Ruby's probe `raise` in a build without notes. */
static void add_ruby_raise(struct match *m, pid_t pid, const struct process_object *po,
			   const char *prov, const char *name, const struct object_usdt *u)
{
	struct usdt_ruby_place at;
	const char *reason = usdt_ruby_raise(po->object, &at);
	struct usdt_place *place;
	struct probe *p;
	uint64_t offset;
	bool is_new;

	if (reason || !object_addr_to_offset(po->object, at.addr, &offset)) {
		add_placeless(m, pid, po, prov, name, reason ?: "its code has no place in it");
		return;
	}
	p = add_probe(m, pid, po, prov, u->func, name, offset, &is_new);
	if (is_new) {
		place = arena_new(&m->ps->arena, struct usdt_place);
		place->object = po->object;
		place->addr = at.addr;
		place->noperands = USDT_RUBY_RAISE_ARGS;
		memcpy(place->operands, at.args, USDT_RUBY_RAISE_ARGS * sizeof(at.args[0]));
		p->priv = place;
		p->addr = at.addr;
		classify(m->ps, p, po);
	}
	m->found(m->arg, p);
}

/* Adds Ruby's probe `line`, which has no note. */
static void add_ruby_line(struct match *m, pid_t pid, const struct process_object *po)
{
	cleanup_free char *prov = xasprintf("ruby%d", (int)pid);
	struct usdt_ruby_line line;
	struct usdt_place *place;
	struct probe *p;
	uint64_t offset;
	bool is_new;

	if (!glob_match(m->pd->prov, prov) || !glob_match(m->pd->func, "vm_trace") ||
	    !glob_match(m->pd->name, "line") ||
	    !usdt_ruby_line(po, !m->later && !begins(m->ps, pid), &line))
		return;
	m->any = true;
	if (!line.addr || !object_addr_to_offset(po->object, line.addr, &offset)) {
		add_placeless(m, pid, po, prov, "line",
			      line.refused ?: "its code has no place in it");
		return;
	}
	p = process_add_probe(m->ps, m->pv, pid, po, prov, "vm_trace", "line", ATTACH_UPROBE,
			      offset, &is_new);
	if (is_new) {
		place = arena_new(&m->ps->arena, struct usdt_place);
		place->object = po->object;
		place->addr = line.addr;
		place->noperands = USDT_RUBY_LINE_ARGS;
		memcpy(place->operands, line.args, sizeof(line.args));
		place->flags = line.args[1];
		p->priv = place;
		p->addr = line.addr;
		p->filter = "arg9 != 0"; /* other instructions with events are none of lines */
		p->flag = line.flag;
		classify(m->ps, p, po);
		if (line.flag && p->note)
			p->note = arena_printf(&m->ps->arena,
					       "%s; the in-process engine sets Ruby's flag for it",
					       p->note);
		if (line.refused)
			p->unavailable = line.refused;
	}
	m->found(m->arg, p);
}

/* Returns the name under which the description selects the probe: its own, else the one it had in
 * other systems. NULL: it does not. */
static const char *matching_name(struct match *m, const struct object_usdt *u)
{
	const char *name = dtrace_name(m->ps, u->name);

	if (glob_match(m->pd->name, name) || glob_match(m->pd->name, u->name))
		return name;
	name = usdt_ruby_old_name(u);
	return name && glob_match(m->pd->name, name) ? name : NULL;
}

/* Adds a probe of CPython that is passed at its note only while line is enabled, or has none. */
static void add_python_entry(struct match *m, pid_t pid, const struct process_object *po,
			     const char *prov, const char *name, const struct object_usdt *u)
{
	const char *reason;
	const struct usdt_python *places = usdt_python_places(m->ps, po, u, &reason);

	if (!places) {
		if (!u->addr) {
			add_placeless(m, pid, po, prov, name, reason);
			return;
		}
		process_note(m->ps, xasprintf("%s:%s::%s fires only while line is enabled, too: %s",
					      prov, po->name, name, reason));
		add_usdt(m, pid, po, prov, name, u);
		return;
	}
	for (uint32_t i = 0; i < places->n; i++) {
		struct usdt_place *place;
		struct probe *p;
		uint64_t offset;
		bool is_new;

		if (!object_addr_to_offset(po->object, places->v[i].addr, &offset))
			continue;
		p = add_probe(m, pid, po, prov, u->func, name, offset, &is_new);
		if (is_new) {
			place = arena_new(&m->ps->arena, struct usdt_place);
			place->object = po->object;
			place->addr = places->v[i].addr;
			place->noperands = USDT_PYTHON_ARGS;
			memcpy(place->operands, places->v[i].args, sizeof(places->v[i].args));
			p->priv = place;
			p->addr = places->v[i].addr;
			classify(m->ps, p, po);
		}
		m->found(m->arg, p);
	}
}

/* Adds the probes of a note under a name. */
static void add_note(struct match *m, pid_t pid, const struct process_object *po, const char *prov,
		     const char *name, const struct object_usdt *u)
{
	enum usdt_ruby_kind kind = usdt_ruby_kind(u);

	if (kind == USDT_RUBY_RAISE)
		add_ruby_raise(m, pid, po, prov, name, u);
	else if (kind >= USDT_RUBY_MARK_BEGIN)
		add_ruby_mark(m, pid, po, prov, name, u, kind);
	else if (kind)
		add_ruby_method(m, pid, po, prov, name, u, kind);
	else if (usdt_is_python_entry(po->object, u))
		add_python_entry(m, pid, po, prov, name, u);
	else
		add_usdt(m, pid, po, prov, name, u);
	m->any = true;
}

/* Takes the description's object and function as names of the language. */
static void select_names(struct match *m)
{
	const struct probe_desc *pd = m->pd;
	const char *filter = usdt_names_filter(&m->ps->arena, m->names, pd->mod, pd->func);

	m->names_mod = *pd->mod ? pd->mod : "*";
	m->names_func = *pd->func ? pd->func : "*";
	m->names_filter = filter && *filter ? filter : NULL;
	m->names_wild = !filter;
}

/* Takes them as the interpreter's own names again. */
static void select_own(struct match *m)
{
	m->names_mod = m->names_func = m->names_filter = NULL;
	m->names_wild = false;
}

/* Adds the probes of the provider java at a note of the JVM. */
static void add_java(struct match *m, pid_t pid, const struct process_object *po,
		     const struct object_usdt *u)
{
	cleanup_free char *prov = xasprintf("java%d", (int)pid);

	if (!*m->pd->prov || !glob_match(m->pd->prov, prov) ||
	    !glob_match(m->pd->name, m->names->java))
		return;
	select_names(m);
	add_note(m, pid, po, prov, m->names->java, u);
	select_own(m);
}

/* named: the description's object may be this one. methods: the kinds of Ruby's probes that are
 * added already, because all notes of a kind have the same places. */
static void match_note(struct match *m, pid_t pid, const struct process_object *po, bool named,
		       const struct object_usdt *u, bool methods[])
{
	enum usdt_ruby_kind kind = usdt_ruby_kind(u);
	cleanup_free char *prov = xasprintf("%s%d", u->provider, (int)pid);
	const char *name = matching_name(m, u);

	m->names = usdt_names(u);
	if (m->names && m->names->java)
		add_java(m, pid, po, u);
	if (!name || methods[kind] || !glob_match(m->pd->prov, prov))
		return;
	if (!named || !glob_match(m->pd->func, u->func)) {
		if (!m->names || !*m->pd->prov)
			return;
		select_names(m);
	}
	methods[kind] = kind != USDT_RUBY_OTHER;
	add_note(m, pid, po, prov, name, u);
	select_own(m);
}

/* Adds the probes of methods of a JVM that has no notes. */
static void match_java_unnoted(struct match *m, pid_t pid, const struct process_object *po)
{
	struct object_usdt u[USDT_JAVA_UNNOTED];
	struct usdt_names names[USDT_JAVA_UNNOTED];
	uint32_t n = m->later ? 0 : usdt_java_unnoted(m->ps, po, u, names);

	for (uint32_t i = 0; i < n; i++) {
		m->names = &names[i];
		add_java(m, pid, po, &u[i]);
	}
}

static void match_object(struct match *m, pid_t pid, const struct process_object *po, bool named)
{
	uint32_t n;
	const struct object_usdt *u = object_usdts(po->object, &n);
	uint32_t npython, nruby;
	const struct object_usdt *python = usdt_python_unnoted(po->object, &npython);
	const struct object_usdt *ruby = usdt_ruby_unnoted(po->object, &nruby);
	bool methods[USDT_RUBY_KINDS] = { false };

	for (uint32_t k = 0; k < n; k++)
		match_note(m, pid, po, named, &u[k], methods);
	for (uint32_t k = 0; k < npython; k++)
		match_note(m, pid, po, named, &python[k], methods);
	for (uint32_t k = 0; k < nruby; k++)
		match_note(m, pid, po, named, &ruby[k], methods);
	match_java_unnoted(m, pid, po);
	m->names = NULL;
	if ((n || nruby) && named)
		add_ruby_line(m, pid, po);
}

/* Matches a library that is not loaded yet. A uprobe on its file fires when the library is
 * loaded. */
static void match_later(void *arg, const struct process_object *later)
{
	struct match *m = arg;
	bool before = m->any;

	m->any = false;
	m->later = true;
	match_object(m, later->pid, later, m->named || process_object_matches(later, m->pd->mod));
	m->later = false;
	if (m->any)
		process_note(m->ps, xasprintf("%s:%s is not loaded: its probes fire when %s is",
					      m->pd->prov, later->name, later->path));
	m->any |= before;
}

/* Matches the probes of the objects that the process has loaded or is about to load. */
static struct err *match_loaded(struct match *m, pid_t pid, const struct process_objects **ret)
{
	struct err *e = process_objects(m->ps, pid, ret);

	m->any = false;
	for (uint32_t i = 0; !e && i < (*ret)->n; i++)
		match_object(m, pid, &(*ret)->v[i],
			     process_object_matches(&(*ret)->v[i], m->pd->mod));
	return e;
}

/* Matches the probes of one process whose provider matches prov_pattern. The pattern includes the
 * pid's digits. */
static struct err *match_process(struct match *m, pid_t pid)
{
	const struct process_objects *objects;
	struct err *e = match_loaded(m, pid, &objects);

	if (e)
		return e;
	if (m->any || !m->pd->prov[0])
		return NULL;
	m->named = m->pd->mod[0];
	if (m->named)
		process_libraries(m->ps, pid, objects, m->pd->mod, match_later, m);
	m->named = false;
	if (!m->any && m->pd->prov[0] != '*' && !m->ps->loaded_only)
		process_libraries_near(m->ps, pid, objects, match_later, m);
	return NULL;
}

static bool is_target(const struct probe_set *ps, pid_t pid)
{
	for (uint32_t i = 0; i < ps->targets.n; i++)
		if (ps->targets.v[i].pid == pid)
			return true;
	return false;
}

/* Matches in the process that the pattern names. The digits of "foo2345" may mean pid 2345, 345, 45
 * or 5, because provider names may also end in digits. */
static struct err *match_named(struct match *m)
{
	size_t digits = trailing_digits(m->pd->prov), len = strlen(m->pd->prov);
	struct err *first = NULL;
	bool any = false;

	for (size_t n = digits < len ? digits : len - 1; n; n--) {
		const char *s = m->pd->prov + len - n;
		unsigned long pid = strtoul(s, NULL, 10);
		struct err *e;

		if (s[0] == '0' || n > 9 || pid > INT_MAX)
			continue;
		e = match_process(m, (pid_t)pid);
		if (!e) {
			any = true;
		} else if (!first && is_target(m->ps, (pid_t)pid)) {
			first = e;
		} else {
			err_free(e);
		}
	}
	if (any || !first) {
		err_free(first);
		return NULL;
	}
	return first;
}

/* Returns true when the pattern can only mean providers of programs. For a pattern that begins with
 * a wildcard, or that matches another provider as "sys*" does, usdt does not read the files of all
 * processes. */
static bool means_programs(const struct provider *usdt, const char *pattern)
{
	if (strchr("*?[", pattern[0]))
		return false;
	for (const struct provider *const *pv = providers; *pv; pv++)
		if (*pv != usdt && glob_match(pattern, (*pv)->name))
			return false;
	return true;
}

/* Matches in an object of any process. */
static void match_any(void *arg, const struct process_object *po)
{
	struct match *m = arg;

	match_object(m, po->pid, po, process_object_matches(po, m->pd->mod));
}

/* Returns true for "pid123" and "plt123". To look for such a provider in all libraries that the
 * process may load would take longer than to find all else. */
static bool is_of_others(const char *prov)
{
	const size_t digits = trailing_digits(prov);

	return digits && strlen(prov) == 3 + digits &&
	       (!strncmp(prov, "pid", 3) || !strncmp(prov, "plt", 3));
}

static struct err *match_targets(struct match *m)
{
	struct probe_set *ps = m->ps;
	const struct probe_desc *pd = m->pd;
	struct err *e = NULL;

	if (pd->prov[0] && !glob_is_pattern(pd->prov))
		return match_named(m);
	if (!ps->targets.n && pd->prov[0] && means_programs(m->pv, pd->prov))
		usdt_machine_match(ps, pd->prov, match_any, m);
	for (uint32_t i = 0; i < ps->targets.n && !e; i++)
		e = match_process(m, ps->targets.v[i].pid);
	if (e && !pd->prov[0]) { /* the description does not name a provider of processes */
		err_free(e);
		e = NULL;
	}
	return e;
}

static struct err *usdt_match(const struct provider *pv, struct probe_set *ps,
			      const struct probe_desc *pd, probe_fn *found, void *arg)
{
	struct match m = { .pv = pv, .ps = ps, .pd = pd, .found = found, .arg = arg };
	struct err *e = is_of_others(pd->prov) ? NULL : match_targets(&m);

	hash_fini(&m.flags);
	return e;
}

const struct provider provider_usdt = {
	.name = "usdt",
	.doc = "probes built into programs and libraries with <sys/sdt.h>: python123:::function-entry",
	.stability = { P_UNKNOWN, P_UNKNOWN, P_UNKNOWN, P_UNKNOWN, P_UNKNOWN },
	.claims = usdt_claims,
	.match = usdt_match,
	.args = usdt_args,
};
