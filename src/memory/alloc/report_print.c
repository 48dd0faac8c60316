/* Writes a report as text, as JSON, and its stacks as a tree. */
#include "memory/alloc/alloc_report.h"
#include "render/json.h"

enum { COURSE_ROWS = 16, BAR = 40, FRAMES_SHOWN = 12 };

static const char *const op_names[ALLOC_LOST] = { "malloc",       "calloc",  "aligned",
						  "realloc_from", "realloc", "free" };

static const char *const mapped_names[MAPPED_N] = { [WIRE_ALLOC_ANONYMOUS] = "anonymous",
						    [WIRE_ALLOC_RESERVED] = "reserved",
						    [WIRE_ALLOC_MAPPED_FILE] = "files" };

/* "1.5 MB" */
char *report_bytes_text(char buf[32], uint64_t n)
{
	static const char *const units[] = { "bytes", "kB", "MB", "GB", "TB" };
	double v = (double)n;
	uint32_t i = 0;

	while (v >= 10000 && i + 1 < ARRAY_SIZE(units)) {
		v /= 1000;
		i++;
	}
	snprintf(buf, 32, i ? "%.1f %s" : "%.0f %s", v, units[i]);
	return buf;
}

static char *time_text(char buf[32], uint64_t ns)
{
	if (ns < 10000)
		snprintf(buf, 32, "%llu ns", (unsigned long long)ns);
	else if (ns < 10000000)
		snprintf(buf, 32, "%.1f us", (double)ns / 1e3);
	else if (ns < 10000000000)
		snprintf(buf, 32, "%.1f ms", (double)ns / 1e6);
	else
		snprintf(buf, 32, "%.1f s", (double)ns / 1e9);
	return buf;
}

static unsigned long long ull(uint64_t v)
{
	return v;
}

/* The memory that does not come from the allocator. */
static void put_mapped(const struct alloc_report *r, struct out *o)
{
	char a[32], b[32], c[32];

	if (!r->map_calls)
		return;
	out_printf(o, "mapped     %12llu calls   of mmap(2) and its like, not by the allocator:\n",
		   ull(r->map_calls));
	for (int i = 1; i < MAPPED_N; i++)
		if (r->mapped[i].bytes)
			out_printf(o, "%10s %12s         at most %s, at the end %s\n",
				   mapped_names[i], report_bytes_text(a, r->mapped[i].bytes),
				   report_bytes_text(b, r->mapped[i].peak),
				   report_bytes_text(c, r->mapped[i].live));
	if (r->mapped_left_out)
		out_printf(
			o,
			"           memory of %llu mappings is not counted: more than %d at a time\n",
			ull(r->mapped_left_out), MAPPED_MAX);
}

void report_print_sums(const struct alloc_report *r, struct out *o)
{
	char a[32], b[32];

	out_printf(o, "%llu calls of %u thread%s in %s", ull(r->allocated + r->freed + r->unknown),
		   r->threads, r->threads == 1 ? "" : "s", time_text(a, r->duration));
	if (r->lost)
		out_printf(o,
			   "; %llu RECORDS WERE LOST, so that sums are too small and blocks "
			   "may seem to live",
			   ull(r->lost));
	out_printf(o, "\nallocated  %12llu blocks  %s\n", ull(r->allocated),
		   report_bytes_text(a, r->allocated_bytes));
	out_printf(o, "peak       %12llu blocks  %s, after %s", ull(r->peak_blocks),
		   report_bytes_text(a, r->peak), time_text(b, r->peak_time));
	if (r->peak)
		out_printf(o, "; allocated %.1f times as much in all",
			   (double)r->allocated_bytes / (double)r->peak);
	out_printf(o, "\nat the end %12llu blocks  %s\n", ull(r->live),
		   report_bytes_text(a, r->live_bytes));
	out_printf(o, "temporary  %12llu blocks  freed by the thread's next call\n",
		   ull(r->temporary));
	if (r->elsewhere)
		out_printf(o, "elsewhere  %12llu blocks  freed by another thread\n",
			   ull(r->elsewhere));
	if (r->shared)
		out_printf(
			o,
			"shared     %12llu blocks  in a cache line with another thread's block\n",
			ull(r->shared));
	if (r->failed)
		out_printf(o, "failed     %12llu calls\n", ull(r->failed));
	if (r->unknown)
		out_printf(o, "unknown    %12llu blocks  freed, but allocated %s%s\n",
			   ull(r->unknown),
			   r->forked ? "by its parent, before the fork" : "before the recording",
			   r->lost ? " or lost" : "");
	if (r->sample)
		out_printf(o,
			   "stacks     of one allocation in %llu, at random: for all, take so many "
			   "times the sums of stacks\n",
			   ull(r->sample));
	if (r->replaced)
		out_printf(o, "replaced   %12llu blocks  whose free was not recorded\n",
			   ull(r->replaced));
	put_mapped(r, o);
}

/* The bytes that allocators take for the live blocks of the peak, beside those that were wanted. */
static void put_waste(const struct alloc_report *r, struct out *o)
{
	char a[32], b[32];

	if (!r->peak)
		return;
	out_str(o, "\nSIZE CLASSES  TAKEN AT THE PEAK          WASTE\n");
	for (int c = 0; c < CLASSES_N; c++)
		out_printf(o, "%-12s %18s %14s %5.1f %%\n", size_classes_names[c],
			   report_bytes_text(a, r->peak + r->peak_waste[c]),
			   report_bytes_text(b, r->peak_waste[c]),
			   100 * (double)r->peak_waste[c] / (double)(r->peak + r->peak_waste[c]));
}

static void put_bar(struct out *o, uint64_t v, uint64_t most)
{
	uint32_t n = most ? (uint32_t)((double)v / (double)most * BAR + 0.5) : 0;

	out_char(o, ' ');
	out_fill(o, '@', n);
	out_char(o, '\n');
}

static void put_sizes(const struct alloc_report *r, struct out *o)
{
	uint64_t most = 0;

	for (uint32_t i = 0; i < REPORT_SIZES; i++)
		most = r->sizes[i].count > most ? r->sizes[i].count : most;
	out_str(o, "\n      SIZE TO       BLOCKS            BYTES       AT END\n");
	for (uint32_t i = 0; i < REPORT_SIZES; i++) {
		const struct report_size *s = &r->sizes[i];

		if (!s->count)
			continue;
		out_printf(o, "%13llu %12llu %16llu %12llu", i < 64 ? 1ull << i : ~0ull,
			   ull(s->count), ull(s->bytes), ull(s->live));
		put_bar(o, s->count, most);
	}
}

static void put_lives(const struct alloc_report *r, struct out *o)
{
	uint64_t most = 0, ns = 10;
	char buf[32];

	for (uint32_t i = 0; i < REPORT_LIVES; i++)
		most = r->lives[i] > most ? r->lives[i] : most;
	out_str(o, "\n   LIFE BELOW       BLOCKS\n");
	for (uint32_t i = 0; i < REPORT_LIVES; i++, ns *= 10) {
		if (!r->lives[i])
			continue;
		out_printf(o, "%13s %12llu", i + 1 < REPORT_LIVES ? time_text(buf, ns) : "longer",
			   ull(r->lives[i]));
		put_bar(o, r->lives[i], most);
	}
}

static void put_course(const struct alloc_report *r, struct out *o)
{
	uint32_t each = r->npoints / COURSE_ROWS + 1;
	char a[32], b[32];

	out_str(o, "\n   TIME UNTIL   LIVE AT MOST\n");
	for (uint32_t i = 0; i < r->npoints; i += each) {
		uint64_t most = 0, end = (uint64_t)(i + each) * r->step;

		for (uint32_t k = i; k < i + each && k < r->npoints; k++)
			most = r->points[k].most > most ? r->points[k].most : most;
		out_printf(o, "%13s %14s", time_text(a, end < r->duration ? end : r->duration),
			   report_bytes_text(b, most));
		put_bar(o, most, r->peak);
	}
}

void report_print_tables(const struct alloc_report *r, struct out *o)
{
	put_waste(r, o);
	put_sizes(r, o);
	put_lives(r, o);
}

/* --- stacks --- */

struct ranked {
	uint32_t stack;
	uint64_t value;
};

static int by_value(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;

	if (x->value != y->value)
		return x->value > y->value ? -1 : 1;
	return (x->stack > y->stack) - (x->stack < y->stack);
}

/* Sorts the stacks that have a value. The caller frees the result. */
static struct ranked *rank(const struct alloc_report *r, enum report_of of, uint32_t *ret_n)
{
	struct ranked *v = xcalloc(r->sites.n ? r->sites.n : 1, sizeof(*v));
	uint32_t n = 0;

	for (uint32_t i = 1; i < r->sites.n; i++) {
		uint64_t value = report_site_value(&r->sites.v[i], of);

		if (value)
			v[n++] = (struct ranked){ i, value };
	}
	qsort(v, n, sizeof(*v), by_value);
	*ret_n = n;
	return v;
}

uint64_t report_site_blocks(const struct report_site *s, enum report_of of)
{
	switch (of) {
	case REPORT_PEAK: return s->peak_count;
	case REPORT_END: return s->live_count;
	case REPORT_TEMPORARY: return s->temporary;
	case REPORT_MAPPED: return s->mapped;
	default: return s->count;
	}
}

static const struct alloc_text *frame_of(const struct alloc_trace *t, uint32_t stack, uint32_t i)
{
	return &t->frames.v[t->stack_frames.v[t->stacks.v[stack].at + i]];
}

static void put_stacks(const struct alloc_report *r, const struct alloc_trace *t, enum report_of of,
		       const char *title, uint32_t most, struct out *o)
{
	uint32_t n;
	struct ranked *v = rank(r, of, &n);
	char buf[32];

	for (uint32_t i = 0; i < n && i < most; i++) {
		const struct alloc_stack *s = &t->stacks.v[v[i].stack];
		const struct report_site *at = &r->sites.v[v[i].stack];

		if (!i)
			out_printf(o, "\n%s\n", title);
		if (report_of_blocks(of))
			out_printf(o, "  %llu of %llu blocks\n", ull(v[i].value), ull(at->count));
		else
			out_printf(o, "  %s in %llu blocks\n", report_bytes_text(buf, v[i].value),
				   ull(report_site_blocks(at, of)));
		for (uint32_t k = 0; k < s->n && k < FRAMES_SHOWN; k++)
			out_printf(o, "      %s\n", frame_of(t, v[i].stack, k)->text);
		if (s->n > FRAMES_SHOWN)
			out_printf(o, "      ... %u more\n", s->n - FRAMES_SHOWN);
	}
	if (n > most)
		out_printf(o, "  ... and %u more stacks (-n)\n", n - most);
	free(v);
}

void alloc_report_print(const struct alloc_report *r, const struct alloc_trace *t, const char *name,
			uint32_t most, struct out *o)
{
	const char *command = alloc_info(t, "command"), *pid = alloc_info(t, "pid");

	out_printf(o, "%s: %s%s\n", name, command ? command : "process ",
		   command ? ""
		   : pid   ? pid
			   : "not known");
	if (!t->ended && !t->cut)
		out_str(o, "the recording was cut off: what follows is up to there\n");
	report_print_sums(r, o);
	report_print_processes(t, o);
	report_print_tables(r, o);
	put_course(r, o);
	put_stacks(r, t, REPORT_BYTES, "most bytes allocated:", most, o);
	put_stacks(r, t, REPORT_PEAK, "at the peak:", most, o);
	put_stacks(r, t, REPORT_TEMPORARY, "most temporary blocks:", most, o);
	put_stacks(r, t, REPORT_END, "at the end:", most, o);
	put_stacks(r, t, REPORT_MAPPED, "most memory mapped without the allocator:", most, o);
}

static uint32_t tree_frame(struct stacktree *tree, const struct alloc_text *f)
{
	cleanup_free char *text = xstrdup(f->text);

	for (char *c = text; *c; c++)
		if (*c == ';')
			*c = ':';
	return stacktree_frame(tree, FRAME_NATIVE, text, strlen(text));
}

/* A recording may have many stacks of the same frames, whose texts are long: looks at each text
 * once. */
void alloc_report_tree(const struct alloc_report *r, const struct alloc_trace *t, enum report_of of,
		       struct stacktree *ret)
{
	cleanup_free uint32_t *known = xcalloc(t->frames.n + 1, sizeof(*known)); /* their ids + 1 */
	VEC(uint32_t) ids = { 0 };

	for (uint32_t i = 0; i < r->sites.n; i++) {
		uint64_t value = report_site_value(&r->sites.v[i], of);

		if (!value)
			continue;
		ids.n = 0;
		for (uint32_t k = 0; i < t->stacks.n && k < t->stacks.v[i].n; k++) {
			const uint32_t frame = t->stack_frames.v[t->stacks.v[i].at + k];

			if (!known[frame])
				known[frame] = tree_frame(ret, &t->frames.v[frame]) + 1;
			vec_push(&ids, known[frame] - 1);
		}
		if (!ids.n)
			vec_push(&ids, stacktree_frame(ret, FRAME_NATIVE, "no stack", 8));
		stacktree_add(ret, ids.v, ids.n, value);
	}
	vec_fini(&ids);
	stacktree_finish(ret);
}

/* --- JSON --- */

static void put_number(struct out *o, const char *name, uint64_t v)
{
	out_printf(o, ",\"%s\":%llu", name, ull(v));
}

static void put_text(struct out *o, const char *name, const char *text)
{
	out_printf(o, ",\"%s\":", name);
	if (text)
		json_string(o, text, strlen(text));
	else
		out_str(o, "null");
}

static void json_stacks(const struct alloc_report *r, const struct alloc_trace *t,
			enum report_of of, uint32_t most, struct out *o)
{
	uint32_t n;
	struct ranked *v = rank(r, of, &n);

	out_printf(o, ",\"%s_stacks\":[", report_of_name(of));
	for (uint32_t i = 0; i < n && i < most; i++) {
		const struct report_site *at = &r->sites.v[v[i].stack];

		out_printf(o, "%s{\"value\":%llu,\"blocks\":%llu,\"temporary\":%llu", i ? "," : "",
			   ull(v[i].value), ull(report_site_blocks(at, of)), ull(at->temporary));
		out_printf(o, ",\"freed_elsewhere\":%llu,\"shared_lines\":%llu,\"frames\":[",
			   ull(at->elsewhere), ull(at->shared));
		for (uint32_t k = 0; k < t->stacks.v[v[i].stack].n; k++) {
			const struct alloc_text *f = frame_of(t, v[i].stack, k);

			out_str(o, k ? "," : "");
			json_string(o, f->text, f->len);
		}
		out_str(o, "]}");
	}
	out_char(o, ']');
	free(v);
}

void alloc_report_json(const struct alloc_report *r, const struct alloc_trace *t, const char *name,
		       uint32_t most, struct out *o)
{
	bool comma = false;

	out_str(o, "{\"type\":\"allocations\"");
	put_text(o, "file", name);
	put_text(o, "command", alloc_info(t, "command"));
	put_text(o, "allocator", alloc_info(t, "allocator"));
	put_text(o, "parent", alloc_info(t, "parent"));
	out_printf(o, ",\"forked\":%s", r->forked ? "true" : "false");
	put_text(o, "damage", t->cut);
	out_printf(o, ",\"complete\":%s", t->ended ? "true" : "false");
	put_number(o, "duration_ns", r->duration);
	put_number(o, "threads", r->threads);
	put_number(o, "lost", r->lost);
	put_number(o, "sample", r->sample);
	for (uint32_t i = 0; i < ALLOC_LOST; i++)
		put_number(o, op_names[i], r->calls[i]);
	put_number(o, "allocated", r->allocated);
	put_number(o, "allocated_bytes", r->allocated_bytes);
	put_number(o, "freed", r->freed);
	put_number(o, "live", r->live);
	put_number(o, "live_bytes", r->live_bytes);
	put_number(o, "peak_bytes", r->peak);
	put_number(o, "peak_blocks", r->peak_blocks);
	put_number(o, "peak_ns", r->peak_time);
	put_number(o, "temporary", r->temporary);
	put_number(o, "freed_elsewhere", r->elsewhere);
	put_number(o, "shared_lines", r->shared);
	put_number(o, "failed", r->failed);
	put_number(o, "unknown", r->unknown);
	put_number(o, "replaced", r->replaced);
	put_number(o, "map_calls", r->map_calls);
	out_str(o, ",\"mapped\":[");
	for (int i = 1; i < MAPPED_N; i++)
		out_printf(
			o,
			"%s{\"kind\":\"%s\",\"bytes\":%llu,\"peak_bytes\":%llu,\"live_bytes\":%llu}",
			i > 1 ? "," : "", mapped_names[i], ull(r->mapped[i].bytes),
			ull(r->mapped[i].peak), ull(r->mapped[i].live));
	out_str(o, "]");
	put_number(o, "mapped_left_out", r->mapped_left_out);
	out_str(o, ",\"sizes\":[");
	for (uint32_t i = 0; i < REPORT_SIZES; i++) {
		const struct report_size *s = &r->sizes[i];

		if (!s->count)
			continue;
		out_printf(o, "%s{\"to\":%llu,\"blocks\":%llu,\"bytes\":%llu,\"live\":%llu}",
			   comma ? "," : "", i < 64 ? 1ull << i : ~0ull, ull(s->count),
			   ull(s->bytes), ull(s->live));
		comma = true;
	}
	out_str(o, "],\"lives\":[");
	for (uint32_t i = 0; i < REPORT_LIVES; i++)
		out_printf(o, "%s%llu", i ? "," : "", ull(r->lives[i]));
	out_printf(o, "],\"course\":{\"step_ns\":%llu,\"most_bytes\":[", ull(r->step));
	for (uint32_t i = 0; i < r->npoints; i++)
		out_printf(o, "%s%llu", i ? "," : "", ull(r->points[i].most));
	out_str(o, "]},\"size_classes\":[");
	for (int c = 0; c < CLASSES_N; c++)
		out_printf(o, "%s{\"name\":\"%s\",\"peak_waste_bytes\":%llu}", c ? "," : "",
			   size_classes_names[c], ull(r->peak_waste[c]));
	out_char(o, ']');
	report_json_processes(t, o);
	for (int of = 0; of < REPORT_NOF; of++)
		json_stacks(r, t, of, most, o);
	out_str(o, "}\n");
}
