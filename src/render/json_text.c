/* The JSON sink: one object a line for each action, aggregation row, fault, drop, and for the
 * report.
 *
 * Always true: every line is a complete JSON value in valid UTF-8. Bytes of the traced program that
 * are not UTF-8 become the text \xNN (a backslash in the string, so \\xNN in the JSON).
 */
#include "render/json.h"

#include "base/diag.h"
#include "program/unwind/unwind.h"

struct json_sink {
	struct sink s;
	struct out out;
	struct output file;
	struct out scratch; /* formatted text before it is quoted */
};

static struct json_sink *json_of(struct sink *s)
{
	return (struct json_sink *)s;
}

static struct out *out_of(struct sink *s)
{
	struct json_sink *j = json_of(s);

	if (!j->out.file)
		j->out.file = s->out;
	return &j->out;
}

static void key(struct out *o, const char *name)
{
	out_char(o, ',');
	out_char(o, '"');
	out_str(o, name);
	out_str(o, "\":");
}

static void key_uint(struct out *o, const char *name, uint64_t v)
{
	key(o, name);
	out_unsigned(o, v, 0);
}

static void key_string(struct out *o, const char *name, const char *text)
{
	key(o, name);
	json_string(o, text ? text : "", text ? strlen(text) : 0);
}

static void open_object(struct out *o, const char *type)
{
	out_str(o, "{\"type\":\"");
	out_str(o, type);
	out_char(o, '"');
}

static void close_object(struct out *o)
{
	out_str(o, "}\n");
}

static void probe_object(struct out *o, const struct image_probe *p)
{
	key(o, "probe");
	out_str(o, "{\"id\":");
	out_unsigned(o, p->id, 0);
	key_string(o, "provider", p->prov);
	key_string(o, "module", p->mod);
	key_string(o, "function", p->func);
	key_string(o, "name", p->name);
	out_char(o, '}');
}

static void record_head(struct out *o, const struct record_view *r)
{
	key_uint(o, "time", r->head->time);
	key_uint(o, "cpu", r->head->cpu);
	key_uint(o, "tid", r->head->tid);
	probe_object(o, r->probe);
}

static void args(struct sink *s, struct out *o, const struct record_view *r, const struct action *a)
{
	key(o, "args");
	out_char(o, '[');
	for (uint32_t i = 0; i < a->nfields; i++) {
		const struct field *f = &r->segment->fields[a->fields[i]];

		if (i)
			out_char(o, ',');
		json_field(s, o, f, r->traits ? r->traits[a->fields[i]] : field_traits(s->types, f),
			   r->data);
	}
	out_char(o, ']');
}

static struct err *json_action(struct sink *s, const struct record_view *r, const struct action *a)
{
	static const char *const names[] = {
		[ACT_TRACE] = "trace", [ACT_TRACEMEM] = "tracemem", [ACT_PRINTF] = "printf",
		[ACT_PRINT] = "print", [ACT_STACK] = "stack",       [ACT_USTACK] = "ustack",
		[ACT_SYM] = "symbol",  [ACT_DEFAULT] = "probe",     [ACT_PCAP] = "pcap",
	};
	struct out *o = out_of(s), *text = &json_of(s)->scratch;

	if ((size_t)a->kind >= ARRAY_SIZE(names) || !names[a->kind])
		return NULL;
	open_object(o, names[a->kind]);
	record_head(o, r);
	if (a->kind == ACT_PRINTF) {
		text->n = 0;
		action_format(s, text, r, a);
		key(o, "text");
		json_string(o, text->v, text->n);
	}
	if (a->kind == ACT_PRINT) {
		key(o, "value");
		json_print_action(s, o, r, a);
	} else if (a->kind != ACT_DEFAULT) {
		args(s, o, r, a);
	}
	close_object(o);
	return NULL;
}

static void bound(struct out *o, const char *name, int64_t v, int64_t open_end)
{
	out_char(o, '"');
	out_str(o, name);
	out_str(o, "\":");
	if (v == open_end)
		out_str(o, "null");
	else
		out_signed(o, v, 0);
	out_char(o, ',');
}

/* Writes the buckets that are not empty: [{"min":1,"max":1,"count":3}, ...]; open ends are null. */
static void distribution(struct out *o, const struct agg_view *v, const struct agg_row *row)
{
	bool first = true;

	key(o, "distribution");
	out_char(o, '[');
	for (uint32_t i = 0; i + 1 < v->agg->nwords; i++) {
		int64_t min, max, count = row->words[i + 1];

		if (!count)
			continue;
		hist_bounds(v->agg, i, &min, &max);
		out_str(o, first ? "{" : ",{");
		bound(o, "min", min, INT64_MIN);
		bound(o, "max", max, INT64_MAX);
		out_str(o, "\"count\":");
		out_signed(o, agg_normalized(v, count), 0);
		out_char(o, '}');
		first = false;
	}
	out_char(o, ']');
}

static void agg_value(struct out *o, const struct agg_view *v, const struct agg_row *row)
{
	if (agg_is_distribution(v->agg))
		return distribution(o, v, row);
	key(o, "value");
	out_signed(o, agg_row_value(v, row), 0);
}

static void agg_object(struct sink *s, struct out *o, const struct record_view *r,
		       const struct agg_view *v, const struct agg_row *row)
{
	open_object(o, "aggregation");
	if (r)
		record_head(o, r);
	key_string(o, "name", v->agg->name);
	key_string(o, "func", agg_func_name(v->agg->func));
	key(o, "keys");
	out_char(o, '[');
	for (uint32_t i = 0; i < v->agg->nkeys; i++) {
		const struct field *f = &v->agg->keys[i];

		if (i)
			out_char(o, ',');
		json_field(s, o, f, field_traits(s->types, f), row->key);
	}
	out_char(o, ']');
	agg_value(o, v, row);
	if (v->normal != 1 && v->normal) {
		key(o, "normal");
		out_signed(o, v->normal, 0);
	}
	if (row->percpu) {
		key(o, "percpu");
		out_char(o, '[');
		for (uint32_t cpu = 0; cpu < row->ncpus; cpu++) {
			struct agg_row one = { .words =
						       row->percpu + (size_t)cpu * v->agg->nwords };

			out_str(o, cpu ? ",{\"cpu\":" : "{\"cpu\":");
			out_unsigned(o, cpu, 0);
			agg_value(o, v, &one);
			out_char(o, '}');
		}
		out_char(o, ']');
	}
	close_object(o);
}

static struct err *json_printa(struct sink *s, const struct record_view *r, const struct action *a,
			       struct agg_view *const *aggs, uint32_t n)
{
	struct out *o = out_of(s);

	for (uint32_t i = 0; i < aggs[0]->nrows; i++)
		for (uint32_t j = 0; j < n; j++)
			agg_object(s, o, r, aggs[j], &aggs[j]->rows[i]);
	return NULL;
}

static struct err *json_fault(struct sink *s, const struct image *img, const struct wire_fault *f)
{
	struct out *o = out_of(s);
	const char *file;
	uint32_t line, col;

	open_object(o, "fault");
	key_uint(o, "time", f->head.time);
	key_uint(o, "cpu", f->head.cpu);
	key_uint(o, "tid", f->head.tid);
	if (f->head.probe < img->nprobes)
		probe_object(o, &img->probes[f->head.probe]);
	key_uint(o, "clause", f->clause);
	key_uint(o, "code", f->code);
	key_string(o, "fault", fault_name(f->code));
	key(o, "value");
	out_printf(o, "\"0x%llx\"", (unsigned long long)f->value);
	key_uint(o, "pc", f->insn);
	if (img->diags && source_pos(img->diags, f->loc, &file, &line, &col)) {
		key_string(o, "file", file);
		key_uint(o, "line", line);
		key_uint(o, "column", col);
	}
	close_object(o);
	return out_flush(o);
}

static struct err *json_drop(struct sink *s, enum drop_kind kind, int cpu, uint64_t count)
{
	struct out *o = out_of(s);

	open_object(o, "drop");
	key_string(o, "kind", drop_name(kind));
	if (cpu >= 0)
		key_uint(o, "cpu", (uint64_t)cpu);
	key_uint(o, "count", count);
	close_object(o);
	return out_flush(o);
}

static void json_report(struct sink *s, const struct run_report *r)
{
	struct out *o = out_of(s);

	open_object(o, "report");
	if (r->engine)
		key_string(o, "engine", r->engine);
	key_uint(o, "elapsed_ns", r->elapsed_ns);
	key_uint(o, "records", r->records);
	key_uint(o, "bytes", r->bytes);
	key_uint(o, "faults", r->faults);
	key(o, "drops");
	out_char(o, '{');
	for (uint32_t i = 0; i < DROP_KIND_COUNT; i++)
		out_printf(o, "%s\"%s\":%llu", i ? "," : "", drop_name(i),
			   (unsigned long long)r->drops[i]);
	out_char(o, '}');
	key(o, "user_stacks");
	out_char(o, '{');
	for (uint32_t i = 0; i < WIRE_UNWIND_END_COUNT; i++)
		out_printf(o, "%s\"%s\":%llu", i ? "," : "",
			   unwind_end_name((enum wire_unwind_end)i),
			   (unsigned long long)r->ustacks[i]);
	out_char(o, '}');
	key_uint(o, "consumer_cpu_ns", r->consumer_cpu_ns);
	key(o, "probe_cpu_ns");
	if (r->measured)
		out_unsigned(o, r->probe_cpu_ns, 0);
	else
		out_str(o, "null");
	key(o, "exit_status");
	out_signed(o, r->exit_status, 0);
	key(o, "probes");
	out_char(o, '[');
	for (uint32_t i = 0; i < r->nprobes; i++) {
		const struct report_probe *p = &r->probes[i];

		out_str(o, i ? ",{\"fired\":" : "{\"fired\":");
		out_unsigned(o, p->fired, 0);
		key_uint(o, "dropped", p->dropped);
		key_uint(o, "left_out", p->left_out);
		key_string(o, "mode", p->mode);
		probe_object(o, p->probe);
		out_char(o, '}');
	}
	out_char(o, ']');
	key(o, "programs");
	out_char(o, '[');
	for (uint32_t i = 0; i < r->nprogs; i++) {
		const struct report_prog *p = &r->progs[i];

		out_str(o, i ? ",{\"instructions\":" : "{\"instructions\":");
		out_unsigned(o, p->ninsns, 0);
		key_string(o, "name", p->name);
		key_string(o, "mode", p->mode);
		key_uint(o, "runs", p->runs);
		key_uint(o, "run_ns", p->run_ns);
		out_char(o, '}');
	}
	out_char(o, ']');
	close_object(o);
}

static struct err *json_begin(struct sink *s)
{
	json_of(s)->out.file = s->out;
	return NULL;
}

static struct err *json_flush(struct sink *s)
{
	return out_flush(out_of(s));
}

static struct err *json_reopen(struct sink *s, const char *path)
{
	return output_reopen(s, &json_of(s)->file, out_of(s), path);
}

static struct err *json_truncate(struct sink *s)
{
	return output_truncate(out_of(s));
}

static void json_free(struct sink *s)
{
	struct json_sink *j = json_of(s);

	output_fini(s, &j->file);
	out_fini(&j->out);
	out_fini(&j->scratch);
	free(j);
}

static const struct sink_ops json_ops = {
	.name = "json",
	.begin = json_begin,
	.end = json_flush,
	.action = json_action,
	.printa = json_printa,
	.fault = json_fault,
	.drop = json_drop,
	.reopen = json_reopen,
	.truncate = json_truncate,
	.flush = json_flush,
	.format = action_text,
	.report = json_report,
	.free = json_free,
};

struct sink *sink_json_new(void)
{
	struct json_sink *j = xcalloc(1, sizeof(*j));

	j->s.ops = &json_ops;
	j->s.out = stdout;
	j->s.progname = "descry";
	out_init(&j->scratch, NULL);
	return &j->s;
}
