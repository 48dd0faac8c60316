/* descry list: the providers, or the probes of a description or a word, with their price, arguments
 * and limits. */
#include <string.h>

#include "base/glob.h"
#include "base/mem.h"
#include "commands.h"
#include "listing.h"
#include "probe/stability.h"
#include "render/json.h"
#include "run.h"
#include "tool.h"

#define OPTS_OF struct cmdline

// clang-format off
const struct opt list_opts[] = {
	{ 'p', NULL, "PID", OPT_PROCESS, "also this process: its probes ($target stands for it), its interpreter" },
	{ 'c', NULL, "COMMAND", OPT_COMMAND, "... in this command, which is started, not run, and ended" },
	{ 'x', NULL, "NAME[=VALUE]", OPT_SETTING, "sets an option; descry help options lists them" },
	{ OPT_LONG, "json", NULL, NULL, "one JSON object a line", FLAG(json) },
	OPT_HELP,
	{ 0 },
};
// clang-format on

static const char help[] =
	"usage: descry list [options]               the providers\n"
	"       descry list [options] PATTERN...    probes\n"
	"\n"
	"A PATTERN with colons is a probe description, provider:module:function:name, as in syscall::open*:entry.\n"
	"Another one is a provider, or a part of a probe's name: open, tcp, malloc.\n"
	"\n";

/* The cost of one firing, without the program's own actions: medians of bench/ at 3 GHz. They show
 * the order of magnitude. */
static const struct price {
	uint32_t ns; /* 0: not known */
	const char *text;
} prices[ATTACH_KIND_COUNT] = {
	[ATTACH_SELF] = { 0, "nothing: descry runs it itself, once" },
	[ATTACH_SYSCALL_ENTRY] = { 30,
				   "about 30 ns, and a part of that for every other system call" },
	[ATTACH_SYSCALL_RETURN] = { 30,
				    "about 30 ns, and a part of that for every other system call" },
	[ATTACH_RAW_TP] = { 30, "about 30 ns" },
	[ATTACH_TP_BTF] = { 35, "about 35 ns" },
	[ATTACH_TRACEPOINT] = { 0, "about 100 ns: the kernel writes the event's text form first" },
	[ATTACH_PROFILE] = { 0, "an interrupt, at the rate that its name says" },
	[ATTACH_TICK] = { 0, "one interrupt, at the rate that its name says" },
	[ATTACH_UPROBE] = { 550, "0.25 to 4 us by the kernel" },
	[ATTACH_URETPROBE] = { 830, "0.5 to 4 us by the kernel" },
	[ATTACH_KPROBE] = { 0, "a kprobe; a BPF trampoline, where one can be had, is cheaper" },
	[ATTACH_KRETPROBE] = { 0,
			       "a kretprobe; a BPF trampoline, where one can be had, is cheaper" },
};

static const struct price inside_price = { 3, "1 to 3 ns in the process (patched jump)" };

static struct price price_of(const struct probe *p, const char *inside)
{
	return inside && !strcmp(inside, "patched jump") ? inside_price : prices[p->kind];
}

static const char *arg_type(const struct listing *l, struct arena *a, const struct probe_arg *arg)
{
	return arg->xlate ? arg->xlate : type_name(l->cx->types, a, arg->type, NULL);
}

static void print_args(struct listing *l, struct probe *p)
{
	struct probe_args args = { 0 };
	struct arena a;
	struct err *e;

	probe_use_fields(l->cx->probes, p);
	e = probe_args(l->cx->probes, p, &args);
	printf("    arguments    ");
	if (e)
		printf("not known: %s", e->text);
	else if (!args.ntyped)
		printf("%s", args.known ? "none" : "none with types; arg0, arg1 ... are integers");
	arena_init(&a);
	for (uint32_t i = 0; !e && i < args.ntyped; i++)
		printf("%sargs[%u] %s", i ? ", " : "", i, arg_type(l, &a, &args.typed[i]));
	putchar('\n');
	arena_fini(&a);
	err_free(e);
}

static void show_text(struct listing *l, struct probe *p)
{
	cleanup_free char *remark = NULL, *none = NULL;
	cleanup_free char *mechanism = engine_kernel.how(&l->scene, p, &remark);
	cleanup_free char *inside = engine_inproc.how(&l->scene, p, &none);
	struct stability names, data;

	probe_stability(p, &names, &data);
	printf("%s:%s:%s:%s\n", p->prov, p->mod, p->func, p->name);
	if (p->unavailable)
		printf("    unavailable  %s\n", p->unavailable);
	print_args(l, p);
	if (!p->unavailable)
		printf("    a firing     %s\n", price_of(p, inside).text);
	printf("    by           %s%s%s\n", mechanism, inside ? "; in the process: " : "",
	       inside ? inside : "");
	if (p->note)
		printf("    note         %s\n", p->note);
	if (remark)
		printf("    note         %s\n", remark);
	printf("    stability    names %s, arguments %s\n", stability_levels[names.names],
	       stability_levels[data.data]);
}

static void json_text(struct out *o, const char *key, const char *text)
{
	out_printf(o, ",\"%s\":", key);
	if (text)
		json_string(o, text, strlen(text));
	else
		out_str(o, "null");
}

static void json_args(struct listing *l, struct probe *p, struct out *o)
{
	struct probe_args args = { 0 };
	struct arena a;
	struct err *e;

	probe_use_fields(l->cx->probes, p);
	e = probe_args(l->cx->probes, p, &args);
	arena_init(&a);
	out_str(o, ",\"arguments\":");
	if (e)
		out_str(o, "null");
	else
		out_char(o, '[');
	for (uint32_t i = 0; !e && i < args.ntyped; i++) {
		const char *type = arg_type(l, &a, &args.typed[i]);

		if (i)
			out_char(o, ',');
		json_string(o, type, strlen(type));
	}
	if (!e)
		out_char(o, ']');
	arena_fini(&a);
	err_free(e);
}

static void json_end(struct out *o)
{
	out_str(o, "}\n");
	fwrite(o->v, 1, o->n, stdout);
	out_fini(o);
}

static void show_json(struct listing *l, struct probe *p)
{
	cleanup_free char *remark = NULL, *none = NULL;
	cleanup_free char *mechanism = engine_kernel.how(&l->scene, p, &remark);
	cleanup_free char *inside = engine_inproc.how(&l->scene, p, &none);
	struct price price = price_of(p, inside);
	struct stability names, data;
	struct out o;

	probe_stability(p, &names, &data);
	out_init(&o, NULL);
	out_printf(&o, "{\"type\":\"probe\",\"id\":%u", p->id);
	json_text(&o, "provider", p->prov);
	json_text(&o, "module", p->mod);
	json_text(&o, "function", p->func);
	json_text(&o, "name", p->name);
	json_args(l, p, &o);
	json_text(&o, "mechanism", mechanism);
	json_text(&o, "inside", inside);
	json_text(&o, "price", p->unavailable ? NULL : price.text);
	if (price.ns && !p->unavailable)
		out_printf(&o, ",\"price_ns\":%u", price.ns);
	out_printf(&o, ",\"stability\":{\"names\":\"%s\",\"arguments\":\"%s\"}",
		   stability_levels[names.names], stability_levels[data.data]);
	json_text(&o, "note", p->note ? p->note : remark);
	out_printf(&o, ",\"available\":%s", p->unavailable ? "false" : "true");
	json_text(&o, "unavailable", p->unavailable);
	json_end(&o);
}

/* --- the providers --- */

struct provider_count {
	uint32_t available, unavailable;
	const char *why;
};

static void count_probe(void *arg, struct probe *p)
{
	struct provider_count *n = arg;

	n->available += !p->unavailable;
	n->unavailable += p->unavailable != NULL;
	if (p->unavailable && !n->why)
		n->why = p->unavailable;
}

static bool is_of_process(const struct provider *pv)
{
	return pv == &provider_pid || pv == &provider_plt || pv == &provider_plockstat ||
	       pv == &provider_node || pv == &provider_usdt;
}

/* Returns the provider pattern of its probes in the traced process; "" without a process. */
static char *process_pattern(const struct listing *l, const struct provider *pv)
{
	const struct probe_set *ps = l->cx->probes;

	if (!ps->targets.n)
		return xstrdup("");
	return xasprintf("%s%d", pv == &provider_usdt ? "*" : pv->name, (int)ps->targets.v[0].pid);
}

static void show_provider(struct listing *l, const struct provider *pv,
			  const struct provider_count *n)
{
	struct out o;
	char number[16] = "-";

	if (n->available + n->unavailable)
		snprintf(number, sizeof(number), "%u", n->available);
	if (!l->c->json) {
		printf("%-12s %8s  %s%s%s\n", pv->name, number, pv->doc,
		       !n->available && n->why ? "; unavailable: " : "",
		       !n->available && n->why ? n->why : "");
		return;
	}
	out_init(&o, NULL);
	out_str(&o, "{\"type\":\"provider\"");
	json_text(&o, "provider", pv->name);
	out_printf(&o, ",\"probes\":%u,\"unavailable_probes\":%u", n->available, n->unavailable);
	json_text(&o, "doc", pv->doc);
	json_text(&o, "unavailable", n->why);
	json_end(&o);
}

static int list_providers(struct listing *l)
{
	if (!l->c->json)
		printf("%-12s %8s  %s\n", "PROVIDER", "PROBES", "WHAT IT IS ABOUT");
	for (const struct provider *const *pv = providers; *pv; pv++) {
		cleanup_free char *pattern = is_of_process(*pv) ? process_pattern(l, *pv)
								: xstrdup((*pv)->name);
		struct probe_desc pd = { pattern, "", "", "" };
		struct provider_count n = { 0 };
		cleanup_err struct err *e = NULL;
		cleanup_free char *why = NULL;
		uint32_t all = 0;

		/* Counting every function of every library would take too long. */
		if (*pattern && *pv != &provider_pid)
			e = probe_match(l->cx->probes, &pd, count_probe, &n, &all);
		if (!e && *pattern && !all && *pv != &provider_pid)
			why = probe_explain(l->cx->probes, &pd);
		n.why = e ? e->text : n.why ? n.why : why;
		show_provider(l, *pv, &n);
	}
	runtimes_list(l);
	if (!l->c->json)
		printf("\ndescry list PROVIDER lists its probes; -p PID adds those of a process; descry help providers "
		       "tells more.\n");
	return 0;
}

/* --- a word --- */

/* Shows each probe that has the word in one of its four fields. Tries a description for each
 * field. */
static int list_word(struct listing *l, const char *word)
{
	cleanup_free char *part = glob_is_pattern(word) ? xstrdup(word) : xasprintf("*%s*", word);
	cleanup_free char *pid = process_pattern(l, &provider_pid);
	cleanup_free char *of_process = process_pattern(l, &provider_usdt);
	const struct probe_desc names[] = {
		{ word, "", "", "" }, /* a provider; else the other fields */
		{ part, "", "", "" },       { "", "", part, "" },
		{ "", "", "", part },       { of_process, "", "", part },
		{ pid, "", part, "entry" }, { pid, "", part, "return" },
	};
	uint32_t before = l->n, n = 0;
	int status = 0;

	for (size_t i = 0; i < ARRAY_SIZE(names) && !status; i++) {
		if (i >= 4 && !*pid)
			break;
		status = listing_match(l, &names[i], &n);
		if (!i && n)
			return status;
	}
	if (l->n == before && !status)
		return tool_wrong("no probe has %s in its name%s", word,
				  *pid ? "" : "; functions of programs are listed with -p PID"),
		       1;
	return status;
}

/* Shows a probe once, however many patterns match it. */
static void show_once(struct listing *l, struct probe *p)
{
	bool is_new;

	hash_put(&l->shown, &p, sizeof(p), &is_new);
	if (!is_new)
		return;
	if (l->c->json)
		show_json(l, p);
	else
		show_text(l, p);
}

int catalog(struct cmdline *c, struct bind_cx *cx)
{
	struct listing l = { .c = c,
			     .cx = cx,
			     .show = show_once,
			     .scene = { .types = cx->types,
					.options = cx->options,
					.targets = cx->probes->targets.n > 0 } };
	int status = 0;

	if (!c->programs.n && !c->words.n)
		return list_providers(&l);
	status = listing_programs(&l);
	for (uint32_t i = 0; i < c->words.n; i++)
		status |= list_word(&l, c->words.v[i]);
	engine_scene_fini(&l.scene);
	return status;
}

int cmd_list(int argc, char **argv)
{
	struct cmdline c = { .progname = "descry list", .mode = CMD_LIST, .catalog = true };
	struct opt_parse parse = { .table = list_opts, .help = help, .into = &c, .program = &c };
	int status;

	vec_push(&c.args, argv[0]);
	status = opts_take(&parse, argc, argv);
	for (int i = optind; i < argc; i++) {
		if (strchr(argv[i], ':'))
			vec_push(&c.programs, (struct cmd_program){ PDESC_NAME, false, argv[i] });
		else
			vec_push(&c.words, argv[i]);
	}
	status = status ?: cmd_run(&c);
	cmdline_fini(&c);
	return status;
}
