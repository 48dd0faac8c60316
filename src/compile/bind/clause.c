/* Binds clauses: matches their probes, and makes one bound instance for all probes that pass their
 * arguments in the same way. */
#include "compile/bind/foreign.h"
#include "compile/bind/bind_private.h"

#include <ctype.h>
#include <errno.h>
#include <signal.h>

#include "base/glob.h"

/* --- the probe arguments of a clause --- */

/* Collects the probe arguments that a clause uses. Visits each inline and function once, because
 * they may name each other. */
struct scan {
	struct bind_cx *cx;
	struct arg_use *use;
	struct hash seen;              /* nodes of definitions visited */
	VEC(const struct node *) todo; /* lists to visit */
};

static void scan_later(struct scan *s, const struct node *def)
{
	bool fresh;

	hash_put(&s->seen, &def, sizeof(def), &fresh);
	if (fresh)
		vec_push(&s->todo, def->inl.value);
}

static void scan_name(struct scan *s, const char *name)
{
	struct inline_def *def;
	int b = builtin_find(s->cx, name);

	if (b >= BUILTIN_ARG0 && b <= BUILTIN_ARG9)
		s->use->plain |= 1u << (b - BUILTIN_ARG0);
	s->use->mod |= b == BUILTIN_PROBEMOD;
	s->use->func |= b == BUILTIN_PROBEFUNC;
	if (b >= 0 || var_find(s->cx, SCOPE_NONE, name))
		return;
	def = inline_find(s->cx, name);
	if (def && !is_lib_node(s->cx, def->node))
		scan_later(s, def->node);
}

static void scan_list(struct scan *s, const struct node *n);

static void scan_index(struct scan *s, const struct node *n)
{
	if (n->e.a->kind == N_IDENT && n->e.a->ident.scope == SCOPE_NONE &&
	    !strcmp(n->e.a->ident.name, "args")) {
		if (n->e.b && n->e.b->kind == N_INT && n->e.b->i.value < 16)
			s->use->typed |= 1u << n->e.b->i.value;
		else
			s->use->typed |= 0xffff;
	} else {
		scan_list(s, n->e.a);
	}
	scan_list(s, n->e.b);
}

static void scan_node(struct scan *s, const struct node *n)
{
	const struct func_def *def = n->kind == N_CALL ? func_find(s->cx, n->call.func) : NULL;
	struct node_lists below = node_lists(n);

	if (n->kind == N_INDEX) {
		scan_index(s, n);
		return;
	}
	if (n->kind == N_IDENT && n->ident.scope == SCOPE_NONE)
		scan_name(s, n->ident.name);
	for (uint32_t i = 0; i < ARRAY_SIZE(below.list); i++)
		scan_list(s, below.list[i]);
	if (def)
		scan_later(s, def->node);
}

static void scan_list(struct scan *s, const struct node *n)
{
	for (; n; n = n->next)
		scan_node(s, n);
}

static void scan_clause(struct bind_cx *cx, const struct node *clause, struct arg_use *ret)
{
	struct scan s = { .cx = cx, .use = ret };

	scan_list(&s, clause->clause.pred);
	scan_list(&s, clause->clause.body);
	for (uint32_t i = 0; i < s.todo.n; i++)
		scan_list(&s, s.todo.v[i]);
	vec_fini(&s.todo);
	hash_fini(&s.seen);
}

/* --- probes --- */

struct matching {
	struct hash seen; /* set of probes: a probe that two descriptions match fires once */
	VEC(struct probe *) probes;
	struct probe *unavailable; /* the first of this description */
	uint32_t available;        /* of this description */
};

static void found(void *arg, struct probe *p)
{
	struct matching *m = arg;
	bool fresh;

	if (p->unavailable) {
		if (!m->unavailable || (m->unavailable->never && !p->never))
			m->unavailable = p;
		return;
	}
	m->available++;
	hash_put(&m->seen, &p, sizeof(p), &fresh);
	if (fresh)
		vec_push(&m->probes, p);
}

/* Returns true for pid123, the provider of a process that can be examined. */
static bool is_pid(const char *prov)
{
	return !strncmp(prov, "pid", 3) && isdigit((unsigned char)prov[3]) &&
	       !prov[3 + strspn(prov + 3, "0123456789")];
}

static bool process_exists(const char *prov)
{
	long pid = strtol(prov + 3, NULL, 10);

	return pid > 0 && pid <= INT32_MAX && (!kill((pid_t)pid, 0) || errno == EPERM);
}

static bool is_offset(const char *name)
{
	return *name && !name[strspn(name, "0123456789abcdefABCDEF")];
}

/* Returns the tag of the error for a description that matches nothing. For the pid provider, the
 * tag names the part that is wrong. */
static const char *pid_tag(const struct probe_desc *d)
{
	bool whole = !strcmp(d->func, "-") ||
		     !strcmp(d->func, "--"); /* offsets in an object, not in a function */

	if (!strncmp(d->prov, "pid", 3) && isdigit((unsigned char)d->prov[3]) &&
	    (!is_pid(d->prov) || !strtol(d->prov + 3, NULL, 10)))
		return "D_PROC_BADPID";
	if (!is_pid(d->prov))
		return "D_PDESC_ZERO";
	if (whole && *d->mod && strcmp(d->mod, "a.out"))
		return "D_PROC_LIB";
	if (whole && !is_offset(d->name))
		return "D_PROC_NAME";
	if (!*d->func || glob_is_pattern(d->mod) || glob_is_pattern(d->func) ||
	    glob_is_pattern(d->name))
		return "D_PDESC_ZERO";
	if (*d->name && strcmp(d->name, "entry") && strcmp(d->name, "return") &&
	    !is_offset(d->name))
		return "D_PROC_NAME";
	return is_offset(d->name) ? "D_PROC_OFF" : "D_PROC_FUNC";
}

static void match(struct bind_cx *cx, struct matching *m, const struct pdesc *d)
{
	const struct probe_desc pd = { d->prov, d->mod, d->func, d->name };
	struct probe *one = NULL;
	struct err *err;
	uint32_t n = 0;
	char *why;
	const char *foreign;

	m->unavailable = NULL;
	m->available = 0;
	if (d->by_id) {
		err = probe_by_id(cx->probes, d->id, &one);
		if (one)
			found(m, one);
	} else {
		err = probe_match(cx->probes, &pd, found, m, &n);
	}
	if (err) {
		diag_error(cx->diags, d->loc, d->end,
			   is_pid(pd.prov) && !process_exists(pd.prov) && strcmp(pd.prov, "pid0")
				   ? "D_PROC_GRAB"
			   : is_pid(pd.prov) ? pid_tag(&pd)
					     : "D_PDESC_INVAL",
			   "%s", err->text);
		err_free(err);
		return;
	}
	cx->state->out->matched += m->available;
	if (m->available)
		return;
	if (m->unavailable && m->unavailable->never) {
		one = m->unavailable;
		diag_warn(cx->diags, d->loc, d->end, "D_PDESC_ZERO", "%s:%s:%s:%s never fires: %s",
			  one->prov, one->mod, one->func, one->name, one->unavailable);
		return;
	}
	if (m->unavailable && opt_on(cx->options, OPT_ZDEFS)) {
		one = m->unavailable;
		diag_warn(cx->diags, d->loc, d->end, "D_PDESC_INVAL",
			  "probe %s:%s:%s:%s is left out: %s", one->prov, one->mod, one->func,
			  one->name, one->unavailable);
		return;
	}
	if (m->unavailable) {
		one = m->unavailable;
		diag_error(cx->diags, d->loc, d->end, "D_PDESC_INVAL",
			   "probe %s:%s:%s:%s cannot be enabled: %s", one->prov, one->mod,
			   one->func, one->name, one->unavailable);
		return;
	}
	if (!d->by_id && probe_never_fires(&pd)) {
		diag_warn(cx->diags, d->loc, d->end, "D_PDESC_ZERO",
			  "Linux has no system call %s: %s:%s:%s:%s never fires", pd.func, pd.prov,
			  pd.mod, pd.func, pd.name);
		return;
	}
	if (opt_on(cx->options, OPT_ZDEFS)) {
		if (!d->by_id && probe_missing(&pd))
			diag_warn(cx->diags, d->loc, d->end, "D_PDESC_ZERO",
				  "probe description %s:%s:%s:%s is left out: %s", pd.prov, pd.mod,
				  pd.func, pd.name, probe_missing(&pd));
		return;
	}
	if (d->by_id) {
		diag_error(cx->diags, d->loc, d->end, "D_PDESC_ZERO",
			   "probe identifier %u does not match any probes", d->id);
		return;
	}
	diag_error(cx->diags, d->loc, d->end, pid_tag(&pd),
		   "probe description %s:%s:%s:%s does not match any probes", pd.prov, pd.mod,
		   pd.func, pd.name);
	foreign = foreign_probe(&pd);
	why = diags_full(cx->diags) ? NULL
	      : foreign             ? xstrdup(foreign)
				    : probe_explain(cx->probes, &pd);
	if (why)
		diag_note(cx->diags, d->loc, d->end, "%s", why);
	free(why);
}

/* --- signatures --- */

typedef VEC(char) bytes_t;

static void clause_put(bytes_t *b, const void *p, size_t n)
{
	vec_reserve(b, n);
	memcpy(b->v + b->n, p, n);
	b->n += (uint32_t)n;
}

static void clause_put_text(bytes_t *to, const char *s)
{
	clause_put(to, s ? s : "", (s ? strlen(s) : 0) + 1);
}

static void put_arg(bytes_t *to, const struct probe_arg *a, bool typed)
{
	const int64_t words[] = {
		a->source,
		a->value,
		a->usdt.size,
		a->usdt.mode,
		a->usdt.disp,
		a->usdt.base,
		a->usdt.index,
		a->usdt.scale,
		a->usdt.reg_shift,
		a->usdt.path.n,
		a->usdt.path.steps[0],
		a->usdt.path.steps[1],
		a->usdt.path.steps[2],
		a->usdt.path.text.state,
		a->usdt.path.text.ascii,
		a->usdt.path.text.utf8,
		a->usdt.ruby.what,
		a->usdt.ruby.form,
		(int64_t)a->usdt.ruby.symbols,
		(int64_t)a->usdt.ruby.unknown,
	};

	clause_put(to, words, a->source == ARG_USDT ? sizeof(words) : 2 * sizeof(words[0]));
	clause_put(to, &a->size, sizeof(a->size));
	clause_put_text(to, a->expr);
	if (!typed)
		return;
	clause_put(to, &a->type, sizeof(a->type));
	clause_put_text(to, a->xlate);
}

static bool filter_has_args(const struct probe *p)
{
	return p->filter && p->kind == ATTACH_UPROBE;
}

/* Adds the arguments that a D text names. */
static void use_args(const char *text, struct arg_use *use)
{
	for (const char *p = text; p && (p = strstr(p, "arg")); p += 3)
		if (isdigit((unsigned char)p[3]))
			use->plain |= 1u << (p[3] - '0');
}

/* Adds the arguments from which the names of functions come, and by which these are selected. */
static void use_names(const struct matching *m, struct arg_use *use)
{
	for (uint32_t i = 0; i < m->probes.n; i++) {
		const struct probe *p = m->probes.v[i];

		use_args(use->mod ? p->mod_text : NULL, use);
		use_args(use->func ? p->func_text : NULL, use);
		use_args(p->names_filter, use);
	}
}

/* Appends to `to` everything of the probe that the clause's code depends on. */
static void signature(const struct probe *p, const struct probe_args *args,
		      const struct arg_use *use, bytes_t *to)
{
	const int64_t words[] = { p->kind, p->thread_arg };

	clause_put(to, words, sizeof(words));
	clause_put_text(to, p->filter);
	clause_put_text(to, p->names_filter);
	clause_put_text(to, use->mod ? p->mod_text : NULL);
	clause_put_text(to, use->func ? p->func_text : NULL);
	if (filter_has_args(p))
		put_arg(to, &args->arg[PROBE_FILTER_ARG], false);
	if (p->kind == ATTACH_SELF)
		clause_put_text(to, p->name);
	for (int i = 0; i < 10; i++) {
		if (use->plain & 1u << i)
			put_arg(to, &args->arg[i], false);
	}
	if (!use->typed)
		return;
	clause_put(to, &args->known, sizeof(args->known));
	clause_put(to, &args->ntyped, sizeof(args->ntyped));
	for (uint32_t i = 0; i < args->ntyped; i++) {
		if (use->typed & 1u << i)
			put_arg(to, &args->typed[i], true);
	}
}

static void use_fields(void *arg, struct probe *p)
{
	probe_use_fields(arg, p);
}

/* Runs before any clause is bound, because all clauses of a probe share one way to attach it. */
void bind_choose_events(struct bind_cx *cx)
{
	struct bind_state *s = cx->state;

	for (uint32_t i = 0; i < s->clauses.n && cx->probes->sdt_fields; i++) {
		struct arg_use use = { 0 };

		scan_clause(cx, s->clauses.v[i], &use);
		for (const struct pdesc *d = s->clauses.v[i]->clause.pdescs;
		     d && (use.plain || use.typed); d = d->next) {
			struct probe_desc pd = { d->prov, d->mod, d->func, d->name };
			struct probe *p = NULL;

			if (d->by_id)
				err_free(probe_by_id(cx->probes, d->id, &p));
			else if (provider_sdt.claims(&provider_sdt, d->prov))
				err_free(provider_sdt.match(&provider_sdt, cx->probes, &pd,
							    use_fields, cx->probes));
			if (p)
				probe_use_fields(cx->probes, p);
		}
	}
}

struct group {
	struct probe_args args;
	VEC(struct probe *) probes;
};
typedef VEC(struct group *) groups_t;

static bool group_probes(struct bind_cx *cx, const struct node *n, const struct matching *m,
			 groups_t *groups)
{
	const struct arg_use *use = &cx->state->known_use;
	struct hash by_key = { 0 };
	bytes_t key = { 0 };
	struct probe_args args;
	struct err *err = NULL;

	for (uint32_t i = 0; i < m->probes.n && !err; i++) {
		struct probe *p = m->probes.v[i];
		uint64_t *slot;
		bool fresh;

		memset(&args, 0, sizeof(args));
		p->typed_used |= use->typed;
		if (use->plain || use->typed || filter_has_args(p))
			err = probe_args(cx->probes, p, &args);
		if (err)
			break;
		if (use->typed && cx->state->providers.n)
			provider_types(cx, p, &args);
		key.n = 0;
		signature(p, &args, use, &key);
		slot = hash_put(&by_key, key.v, key.n, &fresh);
		if (fresh) {
			struct group *g = arena_new(cx->arena, struct group);

			g->args = args;
			vec_push(groups, g);
			*slot = groups->n - 1;
		}
		vec_push(&groups->v[*slot]->probes, p);
	}
	hash_fini(&by_key);
	vec_fini(&key);
	if (!err && (use->plain | use->typed) & 1u << 1)
		probe_note_results(cx->probes, m->probes.v, m->probes.n);
	if (!err)
		return true;
	diag_error(cx->diags, n->loc, n->end, "D_PDESC_INVAL", "%s", err->text);
	err_free(err);
	return false;
}

/* --- trees --- */

static void bind_condition(struct bind_cx *cx, struct node *n, const char *what)
{
	bind_expr(cx, n);
	/* An array does not decay to a pointer here, because its address would always be true. */
	if (!is_poison(n) && kind_of(cx, n->type) == TYPE_FUNC)
		decay(cx, n);
	if (!is_poison(n) && !is_scalar(cx, n))
		bind_error(cx, n, "D_PRED_SCALAR", "%s must be of scalar type, not \"%s\"", what,
			   value_text(cx, n));
}

/* Binds an if. The order rules of actions apply to each branch together with the statements before
 * the if, and to the statements behind it together with both branches. */
static void bind_if(struct bind_cx *cx, struct node *n)
{
	struct flow *f = &cx->state->flow, before, then;

	bind_condition(cx, n->cond.cond, "condition of if");
	before = *f;
	bind_statements(cx, n->cond.then);
	then = *f;
	*f = before;
	bind_statements(cx, n->cond.els);
	f->speculate |= then.speculate;
	f->commit |= then.commit;
	f->record |= then.record;
}

/* Binds a loop. In a second round, the end of the body comes before its beginning. The order rules
 * of actions ignore this, because each round makes its own records. */
static void bind_loop(struct bind_cx *cx, struct node *n)
{
	if (n->loop.cond && !n->loop.tail)
		bind_condition(cx, n->loop.cond, "condition of a loop");
	bind_statements(cx, n->loop.body);
	if (n->loop.cond && n->loop.tail)
		bind_condition(cx, n->loop.cond, "condition of a loop");
	if (n->loop.step)
		bind_statements(cx, n->loop.step);
}

/* Binds the statements of a block. Names declared in the block end with it. */
void bind_statements(struct bind_cx *cx, struct node *list)
{
	const struct env *outside = cx->state->env;

	for (struct node *n = list; n; n = n->next) {
		switch (n->kind) {
		case S_EXPR:
			if (n->block.body)
				bind_statement(cx, n->block.body);
			n = functions_first(cx, n);
			break;
		case S_BLOCK: bind_statements(cx, n->block.body); break;
		case S_IF: bind_if(cx, n); break;
		case S_LOOP: bind_loop(cx, n); break;
		case S_RETURN: bind_return(cx, n); break;
		case S_LOCAL: bind_local(cx, n, outside); break;
		case S_BREAK:
		case S_CONTINUE: break;
		default: bind_statement(cx, n); break;
		}
	}
	cx->state->env = outside;
}

static struct node *clone_list(struct bind_cx *cx, const struct node *n)
{
	struct node *list = NULL, **tail = &list;

	for (; n; n = n->next) {
		*tail = node_clone(cx->arena, n);
		(*tail)->next = NULL;
		tail = &(*tail)->next;
	}
	return list;
}

static void add_filter(struct bind_cx *cx, struct bound_clause *c, struct node *f,
		       const struct node *at)
{
	struct node *both;

	if (!f || is_poison(f))
		return;
	if (!c->pred) {
		c->pred = f;
		return;
	}
	both = make_node(cx, N_BINARY, at);
	both->op = OP_LAND;
	both->e.a = f;
	both->e.b = c->pred;
	both->type = T_INT;
	c->pred = both;
}

struct definitions {
	struct bind_cx *cx;
	bool found;
};

static void look_for_definition(void *arg, const struct node *n)
{
	struct definitions *d = arg;
	const struct node *l = n->e.a;

	if (n->kind == N_ASSIGN || (n->kind == N_UNARY && n->op >= OP_PREINC))
		d->found |= ident_is_new(d->cx, l->kind == N_INDEX ? l->e.a : l);
}

/* Returns true when the expression, which is not bound yet, creates a variable. */
static bool defines(struct bind_cx *cx, const struct node *n)
{
	struct definitions d = { .cx = cx };

	node_walk(n, look_for_definition, &d);
	return d.found;
}

static void bind_instance(struct bind_cx *cx, const struct node *n, struct bound_clause *c)
{
	const struct node *at = n->clause.pred ? n->clause.pred : n;
	struct bind_state *s = cx->state;
	bool first;

	s->clause = c;
	s->all += s->full ? 0 : s->nodes;
	s->nodes = 0;
	s->full = false;
	memset(&s->flow, 0, sizeof(s->flow));
	if (n->clause.pred)
		c->pred = node_clone(cx->arena, n->clause.pred);
	c->body = clone_list(cx, n->clause.body);
	c->default_action = !c->body;
	/* The predicate may read variables that the body defines, or define variables that the body
	 * reads. */
	first = c->pred && defines(cx, c->pred);
	if (first)
		bind_condition(cx, c->pred, "predicate result");
	bind_statements(cx, c->body);
	if (c->pred && !first)
		bind_condition(cx, c->pred, "predicate result");
	if (c->nprobes && c->probes[0]->names_filter)
		add_filter(cx, c, bind_args_text(cx, c->probes[0]->names_filter, at), at);
	if (c->nprobes && c->probes[0]->filter)
		add_filter(cx, c, bind_context_text(cx, c->probes[0]->filter, at), at);
	s->clause = NULL;
}

static struct bound_clause *new_instance(struct bind_cx *cx, const struct node *n, uint32_t index)
{
	struct bound_clause *c = arena_new(cx->arena, struct bound_clause);

	c->loc = n->loc;
	c->end = n->end;
	c->index = index;
	c->number = cx->state->ndescs;
	c->descs = n->clause.pdescs;
	if (n->clause.pdescs && !n->clause.pdescs->by_id)
		c->desc = arena_printf(cx->arena, "%s:%s:%s:%s", n->clause.pdescs->prov,
				       n->clause.pdescs->mod, n->clause.pdescs->func,
				       n->clause.pdescs->name);
	c->thread_arg = -1;
	return c;
}

/* Limit of the pairs of a clause and a probe in a program. Each costs memory and time in the
 * binder, however few clauses are compiled. */
enum { ENABLED_MAX = 16 << 20 };

void bind_clause(struct bind_cx *cx, const struct node *n, uint32_t index)
{
	struct bind_state *s = cx->state;
	struct matching m = { 0 };
	groups_t groups = { 0 };
	uint32_t errors;

	if (s->out->matched > ENABLED_MAX) /* reported already */
		return;
	for (const struct pdesc *d = n->clause.pdescs; d && s->out->matched <= ENABLED_MAX;
	     d = d->next)
		match(cx, &m, d);
	if (s->out->matched > ENABLED_MAX)
		diag_error(
			cx->diags, n->loc, 0, "D_TOO_LARGE",
			"up to this clause, the program enables more than %d probes, one that is in two clauses "
			"counted twice: narrower descriptions may do",
			ENABLED_MAX);
	memset(&s->known_use, 0, sizeof(s->known_use));
	scan_clause(cx, n, &s->known_use);
	use_names(&m, &s->known_use);
	group_probes(cx, n, &m, &groups);
	if (!groups.n) {
		/* Bind it for the errors in it and for the variables that other clauses may use. */
		s->dry = true;
		bind_instance(cx, n, new_instance(cx, n, index));
		s->dry = false;
	}
	errors = cx->diags->errors;
	for (uint32_t i = 0; i < groups.n; i++) {
		struct group *g = groups.v[i];
		struct bound_clause *c = new_instance(cx, n, index);

		c->nprobes = g->probes.n;
		c->probes = arena_array(cx->arena, struct probe *, g->probes.n);
		memcpy(c->probes, g->probes.v, g->probes.n * sizeof(*c->probes));
		vec_fini(&g->probes);
		c->args = g->args;
		c->attach = c->probes[0]->kind;
		c->thread_arg = c->probes[0]->thread_arg;
		/* An error in one instance is an error in most of them: report it once. */
		if (cx->diags->errors != errors)
			continue;
		bind_instance(cx, n, c);
		vec_push(&s->out->clauses, c);
		if (cx->diags->errors != errors && groups.n > 1)
			diag_note(
				cx->diags, 0, 0,
				"this clause was bound for probe %s:%s:%s:%s, whose arguments differ from those "
				"of others it matches",
				c->probes[0]->prov, c->probes[0]->mod, c->probes[0]->func,
				c->probes[0]->name);
	}
	vec_fini(&groups);
	vec_fini(&m.probes);
	hash_fini(&m.seen);
}
