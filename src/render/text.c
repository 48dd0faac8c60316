/* The text sink: prints as DTrace does, to the column.
 *
 *	CPU     ID                    FUNCTION:NAME
 *	  0    177                       read:entry  execname
 */
#include "render/render.h"

struct text_sink {
	struct sink s;
	struct out out;
	struct output file;
	bool packets; /* lines go to the freopen()ed file, which gets nothing else */
	bool heading_done;
	bool testing; /* _DTRACE_TESTING: no CPU and ID columns */
	/* -F */
	int indent;
	uint32_t last_probe, last_segment;
};

static struct text_sink *text_sink_of(struct sink *s)
{
	return (struct text_sink *)s;
}

/* The file is set after sink_text_new(), and freopen() changes it. */
static struct out *out_of(struct sink *s)
{
	struct text_sink *t = text_sink_of(s);

	if (!t->out.file)
		t->out.file = s->out;
	return &t->out;
}

static struct err *text_begin(struct sink *s)
{
	struct text_sink *t = text_sink_of(s);

	t->last_probe = t->last_segment = UINT32_MAX;
	t->testing = getenv("_DTRACE_TESTING") != NULL;
	t->out.file = s->out;
	return NULL;
}

/* Prints the header before the first line, not at the start, because a run that prints no line has
 * no header. */
static void heading(struct text_sink *t, bool flow)
{
	if (t->heading_done)
		return;
	t->heading_done = true;
	if (!flow && sink_quiet(&t->s))
		return;
	if (!t->testing)
		out_str(&t->out, flow ? "CPU " : "CPU     ID ");
	if (flow)
		out_printf(&t->out, "%-41s\n", "FUNCTION");
	else
		out_printf(&t->out, "%32s\n", "FUNCTION:NAME");
}

enum flow { FLOW_NONE, FLOW_ENTRY, FLOW_RETURN };

/* Returns true for "entry", or a name that ends in "-entry"; not for "carpentry". */
static bool is_kind(const char *name, const char *kind)
{
	size_t n = strlen(name), k = strlen(kind);

	return n >= k && !strcmp(name + n - k, kind) && (n == k || name[n - k - 1] == '-');
}

/* The first record of a firing indents, and the last one unindents. Records between belong to the
 * inside. */
static enum flow flow_of(const struct text_sink *t, const struct record_view *r)
{
	if (is_kind(r->probe->name, "entry")) {
		if (t->last_probe == r->head->probe && t->last_segment != r->head->segment)
			return FLOW_NONE;
		return FLOW_ENTRY;
	}
	if (is_kind(r->probe->name, "return") && !r->more)
		return FLOW_RETURN;
	return FLOW_NONE;
}

static void flow_line(struct text_sink *t, const struct record_view *r)
{
	const struct image_probe *p = r->probe;
	enum flow flow = flow_of(t, r);
	bool syscall = !strcmp(p->prov, "syscall");
	const char *prefix = flow == FLOW_NONE    ? "| "
			     : flow == FLOW_ENTRY ? (syscall ? " => " : " -> ")
			     : syscall            ? " <= "
						  : " <- ";
	struct out *o = &t->out;
	size_t start;

	if (flow == FLOW_RETURN && t->indent > 0)
		t->indent -= 2;
	if (!t->testing) {
		out_signed(o, r->head->cpu, 3);
		out_char(o, ' ');
	}
	out_room(o, (size_t)t->indent + 64);
	start = o->n;
	out_fill(o, ' ', (size_t)t->indent);
	out_str(o, prefix);
	out_str(o, p->func);
	if (flow == FLOW_NONE) {
		out_char(o, ':');
		out_str(o, p->name);
	}
	/* A flush in between has emptied the buffer, so the name was longer than the column. */
	if (o->n >= start && o->n - start < 41)
		out_fill(o, ' ', 41 - (o->n - start));
	out_char(o, ' ');
	if (flow == FLOW_ENTRY && t->indent < 4096)
		t->indent += 2;
}

static void probe_line(struct text_sink *t, const struct record_view *r)
{
	struct out *o = &t->out;
	size_t func = strlen(r->probe->func), name = strlen(r->probe->name);

	if (!t->testing) {
		out_signed(o, r->head->cpu, 3);
		out_char(o, ' ');
		out_unsigned(o, r->probe->id, 6);
		out_char(o, ' ');
	}
	if (func + 1 + name < 32)
		out_fill(o, ' ', 32 - (func + 1 + name));
	out_mem(o, r->probe->func, func);
	out_char(o, ':');
	out_mem(o, r->probe->name, name);
	out_char(o, ' ');
}

static struct err *text_record_begin(struct sink *s, const struct record_view *r)
{
	struct text_sink *t = text_sink_of(s);
	bool flow = s->options && opt_on(s->options, OPT_FLOWINDENT);

	out_of(s);
	heading(t, flow);
	if (flow)
		flow_line(t, r);
	else if (!sink_quiet(s))
		probe_line(t, r);
	t->last_probe = r->head->probe;
	t->last_segment = r->head->segment;
	return NULL;
}

static struct err *text_record_end(struct sink *s, const struct record_view *r)
{
	if (!sink_quiet(s))
		out_char(out_of(s), '\n');
	return NULL;
}

static struct err *text_action(struct sink *s, const struct record_view *r, const struct action *a)
{
	struct out *o = out_of(s);
	const struct segment *seg = r->segment;

	switch (a->kind) {
	case ACT_PRINTF: action_format(s, o, r, a); break;
	case ACT_PRINT: print_action(s, o, r, a); break;
	case ACT_PCAP:
		text_sink_of(s)->packets = text_sink_of(s)->file.other;
		pcap_print(s, o, r, a, text_sink_of(s)->packets);
		break;
	case ACT_TRACE:
	case ACT_TRACEMEM:
	case ACT_STACK:
	case ACT_USTACK:
	case ACT_SYM:
		for (uint32_t i = 0; i < a->nfields; i++) {
			const struct field *f = &seg->fields[a->fields[i]];

			trace_print(s, o, f,
				    r->traits ? r->traits[a->fields[i]] : field_traits(s->types, f),
				    r->data);
		}
		break;
	default: break;
	}
	return NULL;
}

static struct err *text_printa(struct sink *s, const struct record_view *r, const struct action *a,
			       struct agg_view *const *aggs, uint32_t n)
{
	if (a && a->format)
		aggs_format(s, out_of(s), a->format, aggs, n);
	else
		aggs_print(s, out_of(s), aggs, n, !r);
	return NULL;
}

/* DTrace's blank line at the end of every run. */
static struct err *text_final(struct sink *s)
{
	if (!text_sink_of(s)->packets)
		out_char(out_of(s), '\n');
	return NULL;
}

/* Writes messages behind the results that came before them, also when both go to one terminal. */
static struct err *say(struct sink *s, struct out *message)
{
	struct err *e = out_flush(out_of(s));

	sink_message(s, message->v, message->n);
	out_fini(message);
	return e;
}

static struct err *text_fault(struct sink *s, const struct image *img, const struct wire_fault *f)
{
	struct out message;

	out_init(&message, NULL);
	fault_message(s, &message, img, f);
	return say(s, &message);
}

static struct err *text_drop(struct sink *s, enum drop_kind kind, int cpu, uint64_t count)
{
	struct out message;

	out_init(&message, NULL);
	drop_message(s, &message, kind, cpu, count);
	return say(s, &message);
}

static void text_report(struct sink *s, const struct run_report *r)
{
	struct out message;

	out_init(&message, NULL);
	report_print(&message, r);
	err_free(say(s, &message));
}

static struct err *text_reopen(struct sink *s, const char *path)
{
	return output_reopen(s, &text_sink_of(s)->file, out_of(s), path);
}

static struct err *text_truncate(struct sink *s)
{
	return output_truncate(out_of(s));
}

static struct err *text_flush(struct sink *s)
{
	return out_flush(out_of(s));
}

static void text_free(struct sink *s)
{
	struct text_sink *t = text_sink_of(s);

	output_fini(s, &t->file);
	out_fini(&t->out);
	free(t);
}

static const struct sink_ops text_ops = {
	.name = "text",
	.begin = text_begin,
	.end = text_flush,
	.record_begin = text_record_begin,
	.action = text_action,
	.printa = text_printa,
	.record_end = text_record_end,
	.final = text_final,
	.fault = text_fault,
	.drop = text_drop,
	.reopen = text_reopen,
	.truncate = text_truncate,
	.flush = text_flush,
	.format = action_text,
	.report = text_report,
	.free = text_free,
};

struct sink *sink_text_new(void)
{
	struct text_sink *t = xcalloc(1, sizeof(*t));

	t->s.ops = &text_ops;
	t->s.out = stdout;
	t->s.progname = "descry";
	t->last_probe = t->last_segment = UINT32_MAX;
	return &t->s;
}
