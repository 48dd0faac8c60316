/* -l: prints the existing probes, a line each. -v adds how they fire, their cost and their
 * arguments. */
#include "listing.h"
#include "tool.h"

#include "base/mem.h"
#include "compile/bind/bind.h"
#include "show_stability.h"
#include "render/json.h"

static void list_how(struct listing *l, const struct probe *p)
{
	cleanup_free char *note = NULL, *none = NULL;
	cleanup_free char *mechanism = engine_kernel.how(&l->scene, p, &note);
	cleanup_free char *inside = engine_inproc.how(&l->scene, p, &none);

	printf("\n\tMechanism: %s\n", mechanism);
	if (note)
		printf("\t%s\n", note);
	if (inside)
		printf("\tIn-process: %s\n", inside);
}

static void list_args(struct listing *l, struct probe *p)
{
	struct probe_args args = { 0 };
	struct arena a;
	struct err *e;

	probe_use_fields(l->cx->probes, p);
	e = probe_args(l->cx->probes, p, &args);
	if (e) {
		printf("\t%s\n", e->text);
		err_free(e);
		return;
	}
	arena_init(&a);
	if (l->c->dtrace_name) {
		struct stability names, data;

		probe_stability(p, &names, &data);
		print_stability(stdout, "Probe Description", names);
		print_stability(stdout, "Argument", data);
	} else {
		list_how(l, p);
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

static void show(struct listing *l, struct probe *p)
{
	if (l->c->json) {
		list_json(p);
		return;
	}
	printf("%5u %10s %17s %33s %s%s\n", p->id, p->prov, p->mod, p->func, p->name,
	       p->unavailable && !l->c->dtrace_name ? " (unavailable)" : "");
	if (l->c->verbose)
		list_args(l, p);
}

static void found(void *arg, struct probe *p)
{
	struct listing *l = arg;

	l->n++;
	l->show(l, p);
	tool_check_output();
}

static int listing_failed(struct listing *l, struct err *e)
{
	fprintf(stderr, "%s: %s\n", l->c->progname, e->text);
	err_free(e);
	return 1;
}

int listing_match(struct listing *l, const struct probe_desc *pd, uint32_t *ret_n)
{
	struct err *e = probe_match(l->cx->probes, pd, found, l, ret_n);

	return e ? listing_failed(l, e) : 0;
}

static int list_id(struct listing *l, uint32_t id)
{
	struct probe *p = NULL;
	struct err *e = probe_by_id(l->cx->probes, id, &p);

	if (e)
		return listing_failed(l, e);
	if (!p) {
		fprintf(stderr, "%s: probe id %u does not exist\n", l->c->progname, id);
		return 1;
	}
	found(l, p);
	return 0;
}

static int list_one(struct listing *l, const struct probe_desc *pd)
{
	uint32_t n = 0;
	int status = listing_match(l, pd, &n);
	char *why;

	if (status || n)
		return status;
	if (l->c->dtrace_name) {
		fprintf(stderr, "%s: failed to match %s:%s:%s:%s: No probe matches description\n",
			l->c->progname, pd->prov, pd->mod, pd->func, pd->name);
		return 0;
	}
	why = probe_explain(l->cx->probes, pd);
	fprintf(stderr, "%s: probe description %s:%s:%s:%s does not match any probes%s%s\n",
		l->c->progname, pd->prov, pd->mod, pd->func, pd->name, why ? ": " : "",
		why ? why : "");
	free(why);
	return 1;
}

int listing_programs(struct listing *l)
{
	int status = 0;

	for (uint32_t i = 0; i < l->c->programs.n; i++) {
		/* The sources were read in order. Parses their descriptions again, without
		 * predicates and bodies. */
		struct parse_cx parse = *l->cx->parse;
		struct node *top = parse_source(&parse, i, l->c->programs.v[i].form);

		for (; top; top = top->next)
			for (const struct pdesc *d = top->kind == D_CLAUSE ? top->clause.pdescs
									   : NULL;
			     d; d = d->next) {
				struct probe_desc pd = { d->prov, d->mod, d->func, d->name };

				status |= d->by_id ? list_id(l, d->id) : list_one(l, &pd);
			}
	}
	return status;
}

int cmdline_list(struct cmdline *c, struct bind_cx *cx)
{
	struct listing l = { .c = c,
			     .cx = cx,
			     .show = show,
			     .scene = { .types = cx->types,
					.options = cx->options,
					.targets = cx->probes->targets.n > 0 } };
	struct probe_desc all = { "", "", "", "" };
	int status;

	cx->probes->loaded_only = !cx->probes->targets.n;
	if (c->catalog)
		return catalog(c, cx);
	if (!c->json)
		printf("%5s %10s %17s %33s %s\n", "ID", "PROVIDER", "MODULE", "FUNCTION", "NAME");
	status = c->programs.n ? listing_programs(&l) : list_one(&l, &all);
	engine_scene_fini(&l.scene);
	return status;
}
