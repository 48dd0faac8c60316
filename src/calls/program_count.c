/* The D program of the table (-c).
 *
 * Every call is counted. Each is also timed, by self->sp3 and self->t3, until the function is
 * called very often: to read the clock twice costs more than most such calls. Then the function is
 * timed in windows: all calls that begin in a half millisecond of each tenth of a second.
 *
 *	timing3   entries time their calls. A thread sets it to 0 when 256 calls came fast.
 *	awake3    returns are looked at. A tick sets it to 0 behind the window, so calls of the
 *	          window have about 4 ms to return. While it is 0, the in-process engine takes the
 *	          probes' way to the program out, so returns inside the libraries cost little, too.
 *
 * A tick sets awake3 to the window's number, the next one timing3. self->in3 is the number of the
 * window in which a call was timed. So when nobody saw its return, its place counts no more in the
 * next window.
 *
 * Returns that belong to no timed call also end a function's timing when they are many: 16,384
 * since it began. */
#include "calls/program_private.h"

enum {
	SAMPLED_FUNCTIONS =
		1000,          /* of more all calls are timed: a thread has few KB for variables */
	TIMED_FIRST = 1 << 12, /* calls of a thread that are all timed */
	TIMED_CHECK = 1 << 8,  /* timed calls between two checks: a power of two */
	OFTEN_NS = 10000, /* a function is called often when so much time passes between calls */
	RETURNS_MAX = 1 << 14,
	WINDOW_NS = 500000,
	TICK_MS = 4,
	TICKS = 25, /* from one window to the next */
};

/* Returns true when not all calls of the function are timed. */
static bool sampled(const struct writer *w)
{
	return !w->c->o->time_all && w->c->functions.n <= SAMPLED_FUNCTIONS;
}

/* Variables that keep data of a call until its return. Those of an outer call are kept, by the
 * place of the inner one, while a call of the same function is within it. */
static const char *const kept_names[] = { "sp", "t", "in" };

static uint32_t nkept(const struct writer *w)
{
	return sampled(w) ? 3 : 2;
}

static void put_count_variables(struct writer *w)
{
	uint32_t k = w->number;

	for (uint32_t i = 0; i < nkept(w); i++)
		out_printf(&w->o, "self uint64_t %s%u;\n", kept_names[i], k);
	if (sampled(w))
		out_printf(&w->o,
			   "self uint64_t timed%u;\nself uint64_t since%u;\nself uint64_t "
			   "returns%u;\nuint64_t timing%u;\nuint64_t awake%u;\n",
			   k, k, k, k, k);
}

/* In the clause at an entry: is the call within a call of the same function? */
static void put_nested(struct writer *w, const char *indent)
{
	uint32_t k = w->number;

	out_printf(&w->o, "%sif (self->sp%u > uregs[R_RSP] + 8", indent, k);
	if (sampled(w))
		out_printf(&w->o, " && self->in%u == timing%u", k, k);
	out_printf(&w->o, ") {\n%s\tself->depth%u++;\n", indent, k);
	for (uint32_t i = 0; i < nkept(w); i++)
		out_printf(&w->o, "%s\tself->outer_%s%u[uregs[R_RSP] + 8] = self->%s%u;\n", indent,
			   kept_names[i], k, kept_names[i], k);
	out_printf(&w->o, "%s}", indent);
	if (sampled(w))
		out_printf(&w->o,
			   " else if (self->in%u != timing%u) {\n%s\tself->depth%u = 0;\n%s}", k, k,
			   indent, k, indent);
	out_char(&w->o, '\n');
}

/* Counts an untimed call behind the test, so that it takes the shortcut of the compiled code. */
static void put_count_entry(struct writer *w)
{
	const struct calls_function *fn = w->fn;
	bool returns = fn->returns.n || fn->rets.n, some = returns && sampled(w);
	const char *indent = some ? "\t\t" : "\t";
	uint32_t k = w->number;

	program_put_probes(&w->o, fn->entries.v, fn->entries.n);
	out_str(&w->o, "{\n");
	if (some)
		out_printf(&w->o,
			   "\tif (!timing%u) {\n\t\t@untimed[\"%s\"] = count();\n\t} else {\n", k,
			   fn->name);
	out_printf(&w->o, "%s@calls[\"%s\"] = count();\n", indent, fn->name);
	if (returns && fn->nests)
		put_nested(w, indent);
	if (returns)
		out_printf(&w->o, "%sself->sp%u = uregs[R_RSP] + 8;\n%sself->t%u = timestamp;\n",
			   indent, k, indent, k);
	if (some)
		out_printf(&w->o, "%sself->in%u = timing%u;\n\t}\n", indent, k, k);
	out_str(&w->o, "}\n\n");
	program_clause(w, CALLS_OTHER, false);
}

/* Adds the time of a call to aggregations whose names begin with `prefix`. */
static void put_spread(struct writer *w, const char *prefix, const char *indent)
{
	out_printf(&w->o, "%s@%sns[\"%s\"] = sum(this->ns);\n", indent, prefix, w->fn->name);
	out_printf(&w->o, "%s@%sspread[\"%s\"] = llquantize(this->ns, 2, 0, 40, 16);\n", indent,
		   prefix, w->fn->name);
}

static void put_timed(struct writer *w)
{
	uint32_t k = w->number;

	out_printf(&w->o, "\tthis->ns = timestamp - self->t%u;\n", k);
	if (sampled(w)) {
		out_printf(&w->o, "\tif (awake%u > 1 && self->t%u - opened < %d) {\n", k, k,
			   WINDOW_NS);
		put_spread(w, "window_", "\t\t");
		out_str(&w->o, "\t} else {\n");
		put_spread(w, "", "\t\t");
		out_str(&w->o, "\t}\n");
	} else {
		put_spread(w, "", "\t");
	}
	out_printf(&w->o, "\t@most[\"%s\"] = max(this->ns);\n", w->fn->name);
}

/* In the clause at a return: ends the timing of a function that is called often, but not before the
 * window's end. */
static void put_check(struct writer *w)
{
	uint32_t k = w->number;

	out_printf(&w->o,
		   "\tself->timed%u++;\n"
		   "\tif (!(self->timed%u & %d)) {\n"
		   "\t\tif (self->timed%u >= %d && timestamp - self->since%u < %d &&\n"
		   "\t\t    (awake%u == 1 || timestamp - opened >= %d))\n"
		   "\t\t\ttiming%u = 0;\n"
		   "\t\tself->since%u = timestamp;\n"
		   "\t}\n",
		   k, k, TIMED_CHECK - 1, k, TIMED_FIRST, k, TIMED_CHECK * OFTEN_NS, k, WINDOW_NS,
		   k, k);
}

static void put_head(struct writer *w, const char *const *places, uint32_t n)
{
	program_put_probes(&w->o, places, n);
	out_char(&w->o, '/');
	if (sampled(w))
		out_printf(&w->o, "awake%u && ", w->number);
}

/* At a return of a call within a call of the same function. */
static void put_outer_back(struct writer *w, const char *const *places, uint32_t n,
			   const char *behind)
{
	uint32_t k = w->number;

	put_head(w, places, n);
	out_printf(&w->o,
		   "self->depth%u && !self->sp%u && self->outer_sp%u[uregs[R_RSP]%s]/\n{\n"
		   "\tself->depth%u--;\n",
		   k, k, k, behind, k);
	for (uint32_t i = 0; i < nkept(w); i++)
		out_printf(&w->o,
			   "\tself->%s%u = self->outer_%s%u[uregs[R_RSP]%s];\n"
			   "\tself->outer_%s%u[uregs[R_RSP]%s] = 0;\n",
			   kept_names[i], k, kept_names[i], k, behind, kept_names[i], k, behind);
	out_str(&w->o, "}\n\n");
	program_clause(w, CALLS_OTHER, false);
}

/* places: the function's returns. behind: the distance between the stack pointer at the return and
 * the place behind the return address. */
static void put_count_return(struct writer *w, const char *const *places, uint32_t n,
			     const char *behind)
{
	uint32_t k = w->number;

	if (!n)
		return;
	put_head(w, places, n);
	out_printf(&w->o, "self->sp%u == uregs[R_RSP]%s", k, behind);
	if (sampled(w))
		out_printf(&w->o, " && self->in%u == awake%u", k, k);
	out_str(&w->o, "/\n{\n");
	put_timed(w);
	if (sampled(w))
		put_check(w);
	out_printf(&w->o, "\tself->sp%u = 0;\n}\n\n", k);
	program_clause(w, CALLS_OTHER, false);
	if (w->fn->nests)
		put_outer_back(w, places, n, behind);
	if (!sampled(w))
		return;
	program_put_probes(&w->o, places, n);
	out_printf(&w->o,
		   "/awake%u/\n{\n"
		   "\tif (self->returns%u < %d) {\n\t\tself->returns%u++;\n"
		   "\t} else {\n\t\tself->returns%u = 0;\n\t\ttiming%u = 0;\n"
		   "\t\tawake%u = 0;\n\t}\n}\n\n",
		   k, k, RETURNS_MAX, k, k, k, k);
	program_clause(w, CALLS_OTHER, false);
}

void program_count(struct writer *w)
{
	if (w->fn->returns.n || w->fn->rets.n)
		put_count_variables(w);
	put_count_entry(w);
	put_count_return(w, w->fn->returns.v, w->fn->returns.n, "");
	put_count_return(w, w->fn->rets.v, w->fn->rets.n, " + 8");
}

/* System calls do not nest, and take longer than to time them. */
void program_count_syscall(struct writer *w)
{
	const struct calls_function *fn = w->fn;
	uint32_t k = w->number;

	out_printf(&w->o, "self uint64_t t%u;\n", k);
	program_put_syscall_head(w, fn->entries.v[0], "");
	out_printf(&w->o, "\tself->t%u = timestamp;\n\t@calls[\"%s\"] = count();\n}\n\n", k,
		   fn->name);
	program_clause(w, CALLS_OTHER, false);
	program_put_syscall_head(w, fn->returns.v[0],
				 arena_printf(&w->c->arena, " && self->t%u", k));
	out_printf(&w->o, "\tthis->ns = timestamp - self->t%u;\n", k);
	put_spread(w, "", "\t");
	out_printf(&w->o, "\t@most[\"%s\"] = max(this->ns);\n\tself->t%u = 0;\n}\n\n", fn->name, k);
	program_clause(w, CALLS_OTHER, false);
}

/* Writes a statement for each function that is timed in windows, with its number in place of
 * each '#'. */
static void put_for_each(struct writer *w, const char *statement)
{
	for (uint32_t i = 0; i < w->c->functions.n; i++) {
		const struct calls_function *fn = w->c->functions.v[i];

		if (fn->syscall || (!fn->returns.n && !fn->rets.n))
			continue;
		for (const char *p = statement; *p; p++)
			if (*p == '#')
				out_printf(&w->o, "%u", i + 1);
			else
				out_char(&w->o, *p);
	}
}

static void put_tick(struct writer *w, const char *when, const char *statement)
{
	out_printf(&w->o, "tick-%dms\n/ticks %% %d %s/\n{\n", TICK_MS, TICKS, when);
	put_for_each(w, statement);
	out_str(&w->o, "}\n\n");
	program_clause(w, CALLS_OTHER, false);
}

void program_put_clock(struct writer *w)
{
	if (sampled(w))
		out_str(&w->o, "uint64_t ticks;\nuint64_t opened;\n");
}

void program_put_windows(struct writer *w)
{
	w->fn = NULL;
	if (!sampled(w))
		return;
	out_str(&w->o, "BEGIN\n{\n\tticks = 1;\n");
	put_for_each(w, "\tawake# = 1;\n\ttiming# = 1;\n");
	out_str(&w->o, "}\n\n");
	program_clause(w, CALLS_OTHER, false);
	out_printf(
		&w->o,
		"tick-%dms\n{\n\tticks++;\n\topened = ticks %% %d == 1 ? timestamp : opened;\n}\n\n",
		TICK_MS, TICKS);
	program_clause(w, CALLS_OTHER, false);
	put_tick(w, "== 0", "\tawake# = timing# ? timing# : ticks;\n");
	put_tick(w, "== 1", "\ttiming# = awake#;\n");
	put_tick(w, "> 1", "\tawake# = timing#;\n");
}
