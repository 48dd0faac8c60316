/* -l: the probes that exist, a line each; -v adds how they fire, what that costs, and their arguments. */
#include "cmdline.h"
#include "tool.h"

#include "base/mem.h"
#include "compile/bind/bind.h"
#include "load/engine.h"
#include "probe/fentry.h"
#include "probe/stability.h"
#include "program/object/object.h"
#include "program/text/text.h"
#include "render/json.h"

struct listing {
	struct cmdline *c;
	struct bind_cx *cx;
	uint32_t n;
	char *path; /* the file whose code was looked at last */
	struct object *object;
	struct text *text;
};

static void listing_fini(struct listing *l)
{
	text_free(l->text);
	object_free(l->object);
	free(l->path);
	l->text = NULL;
	l->object = NULL;
	l->path = NULL;
}

/* What the in-process engine would do with a probe of one process. */
static void list_inside(struct listing *l, const struct probe *p)
{
	const char *why;

	if ((p->kind != ATTACH_UPROBE && p->kind != ATTACH_URETPROBE) ||
	    !l->cx->probes->targets.n || !p->object || p->unavailable)
		return;
	if (!l->path || strcmp(l->path, p->object)) {
		listing_fini(l);
		l->path = xstrdup(p->object);
		err_free(object_open(p->object, &l->object));
		if (l->object)
			err_free(text_open(l->object, &l->text));
	}
	if (!l->text)
		return;
	why = engine_inproc_refusal(l->object, l->text, p);
	printf("\tIn-process: %s%s\n", why ? "refused: " : "patched jump", why ? why : "");
}

/* By what a kernel function is traced: few of them by BPF trampolines, where these can take it. */
static void list_mechanism(struct listing *l, const struct probe *p)
{
	const char *kind = attach_kind_name(p->kind);
	cleanup_free char *why = NULL;
	struct fentry_target t = { 0 };
	uint32_t max;

	if (p->kind != ATTACH_KPROBE && p->kind != ATTACH_KRETPROBE) {
		printf("\n\tMechanism: %s%s%s\n", kind, p->object && *p->object ? " " : "",
		       p->object ? p->object : "");
		return;
	}
	max = engine_kernel_fentry_max(l->cx->types, l->cx->options);
	why = engine_kernel_no_fentry(l->cx->types, p, &t);
	if (why || !max) {
		printf("\n\tMechanism: %s\n", kind);
		if (why)
			printf("\tNo BPF trampoline: %s\n", why);
		return;
	}
	printf("\n\tMechanism: %s", p->kind == ATTACH_KPROBE ? "fentry" : "fexit");
	if (max != UINT32_MAX)
		printf("; %s of more than %u functions at once", kind, max);
	if (t.nargs > FENTRY_REG_ARGS)
		printf("; %s where trampolines pass no %u arguments", kind, t.nargs);
	putchar('\n');
}

/* Under DTrace's name, what DTrace says. */
static void list_stability(const char *what, const struct stability *s)
{
	printf("\n\t%s Attributes\n\t\tIdentifier Names: %s\n\t\tData Semantics:   %s\n"
	       "\t\tDependency Class: %s\n",
	       what, s->names, s->data, s->dependency);
}

static void list_args(struct listing *l, struct probe *p)
{
	struct probe_args args = { 0 };
	struct arena a;
	struct err *e = probe_args(l->cx->probes, p, &args);

	if (e) {
		printf("\t%s\n", e->text);
		err_free(e);
		return;
	}
	arena_init(&a);
	if (l->c->dtrace_name) {
		struct stability names, data;

		probe_stability(p, &names, &data);
		list_stability("Probe Description", &names);
		list_stability("Argument", &data);
	} else {
		list_mechanism(l, p);
		list_inside(l, p);
		if (p->unavailable)
			printf("\tUnavailable: %s\n", p->unavailable);
		if (p->note)
			printf("\tNote: %s\n", p->note);
	}
	printf("\n\tArgument Types\n");
	for (uint32_t i = 0; i < args.ntyped; i++)
		printf("\t\targs[%u]: %s\n", i,
		       args.typed[i].xlate ? args.typed[i].xlate
					   : type_name(l->cx->types, &a, args.typed[i].type, NULL));
	if (!args.ntyped)
		printf("\t\tNone\n");
	putchar('\n');
	arena_fini(&a);
}

static void list_json(const struct probe *p)
{
	const struct {
		const char *key, *text;
	} texts[] = {
		{ "provider", p->prov },
		{ "module", p->mod },
		{ "function", p->func },
		{ "name", p->name },
		{ "mechanism", attach_kind_name(p->kind) },
	};
	struct out o;

	out_init(&o, NULL);
	out_printf(&o, "{\"type\":\"probe\",\"id\":%u", p->id);
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		out_printf(&o, ",\"%s\":", texts[i].key);
		json_string(&o, texts[i].text, strlen(texts[i].text));
	}
	out_printf(&o, ",\"available\":%s}\n", p->unavailable ? "false" : "true");
	fwrite(o.v, 1, o.n, stdout);
	out_fini(&o);
}

static void found(void *arg, struct probe *p)
{
	struct listing *l = arg;

	l->n++;
	if (l->c->json) {
		list_json(p);
		tool_check_output();
		return;
	}
	printf("%5u %10s %17s %33s %s%s\n", p->id, p->prov, p->mod, p->func, p->name,
	       p->unavailable && !l->c->dtrace_name ? " (unavailable)" : "");
	if (l->c->verbose)
		list_args(l, p);
	tool_check_output();
}

static int list_one(struct listing *l, const struct pdesc *d)
{
	struct probe_desc pd = { d->prov, d->mod, d->func, d->name };
	struct probe *p = NULL;
	struct err *e;
	uint32_t n;

	if (d->by_id) {
		e = probe_by_id(l->cx->probes, d->id, &p);
		if (!e && p)
			found(l, p);
		n = p != NULL;
	} else {
		e = probe_match(l->cx->probes, &pd, found, l, &n);
	}
	if (e) {
		fprintf(stderr, "%s: %s\n", l->c->progname, e->text);
		err_free(e);
		return 1;
	}
	if (!n && l->c->dtrace_name && !d->by_id) {
		fprintf(stderr, "%s: failed to match %s:%s:%s:%s: No probe matches description\n",
			l->c->progname, d->prov, d->mod, d->func, d->name);
		return 0;
	}
	if (!n) {
		char *why = d->by_id ? NULL : probe_explain(l->cx->probes, &pd);

		if (d->by_id)
			fprintf(stderr, "%s: probe id %u does not exist\n", l->c->progname, d->id);
		else
			fprintf(stderr,
				"%s: probe description %s:%s:%s:%s does not match any probes%s%s\n",
				l->c->progname, d->prov, d->mod, d->func, d->name, why ? ": " : "",
				why ? why : "");
		free(why);
		return 1;
	}
	return 0;
}

int cmd_list(struct cmdline *c, struct bind_cx *cx)
{
	struct listing l = { .c = c, .cx = cx };
	struct pdesc all = { .prov = "", .mod = "", .func = "", .name = "" };
	int status = 0;

	if (!c->json)
		printf("%5s %10s %17s %33s %s\n", "ID", "PROVIDER", "MODULE", "FUNCTION", "NAME");
	if (!c->programs.n)
		status = list_one(&l, &all);
	for (uint32_t i = 0; i < c->programs.n; i++) {
		/* The sources were read in order: parse their descriptions again, bare of predicates and bodies. */
		struct parse_cx parse = *cx->parse;
		struct node *top = parse_source(&parse, i, c->programs.v[i].form);

		for (; top; top = top->next)
			for (const struct pdesc *d = top->kind == D_CLAUSE ? top->clause.pdescs
									   : NULL;
			     d; d = d->next)
				status |= list_one(&l, d);
	}
	listing_fini(&l);
	return status;
}
