/* Go's table of functions to rows of rules. It says how deep the stack is at each instruction, so the CFA is known; the compiler
 * saves rbp right below the return address of each function that has a frame. */
#include "program/object/go.h"
#include "program/unwind/cfi.h"

enum {
	MAX_ROWS = 32 << 20, /* a hostile file must end, too */
	MAX_MOVER =
		256, /* depths of a function that goes to another stack: a few lines of assembly */
};

static uint32_t depth_rule(int64_t bytes)
{
	int64_t words = bytes / 8 + 1;

	if (bytes < 0 || bytes % 8 || words > INT16_MAX)
		return 0;
	return WIRE_UNWIND_RULE(WIRE_UNWIND_RSP, bytes ? -2 : WIRE_UNWIND_SAME, words);
}

/* Of a function that goes to another stack. rbp is its own frame's when it has one. The few without go on with their caller's: that
 * one is left out, but the goroutine's stack is not lost (the other stack does not say where it came from). Those that leave a
 * goroutine, which may run elsewhere before they return, have nobody above them. */
static uint32_t other_stack_rule(const struct go_function *f, bool framed)
{
	static const char *const stay[] = { "runtime.systemstack", "runtime.morestack",
					    "runtime.asmcgocall" };
	bool stays = framed && strcmp(f->name, "runtime.mcall") != 0;

	for (size_t i = 0; i < ARRAY_SIZE(stay); i++)
		stays |= !strcmp(f->name, stay[i]);
	return stays ? WIRE_UNWIND_RULE(WIRE_UNWIND_STACK, -2, 2)
		     : WIRE_UNWIND_RULE(WIRE_UNWIND_STOP, 0, 0);
}

static bool has_frame(const struct go_table *t, const struct go_function *f)
{
	struct go_depth d = { 0 };

	for (int i = 0; i < MAX_MOVER && go_depth_next(t, f, &d); i++)
		if (d.bytes > 0)
			return true;
	return false;
}

static void add_row(struct cfi *c, uint64_t addr, uint32_t rule)
{
	vec_push(&c->rows, (struct cfi_row){ addr, rule });
}

static void add_depths(struct cfi *c, const struct go_table *t, const struct go_function *f)
{
	bool framed = f->moves_stack && has_frame(t, f);
	struct go_depth d = { 0 };

	while (c->rows.n < MAX_ROWS && go_depth_next(t, f, &d)) {
		if (f->moves_stack && d.bytes)
			add_row(c, d.addr, other_stack_rule(f, framed));
		else
			add_row(c, d.addr, depth_rule(d.bytes));
		/* without a frame it has moved at any time after its entry */
		if (f->moves_stack && !framed && d.end > d.addr + 1)
			add_row(c, d.addr + 1, other_stack_rule(f, false));
	}
	if (d.end < f->end) /* padding; or there are none */
		add_row(c, d.end ? d.end : f->start, 0);
	c->skipped += !d.end;
}

static bool is_signal_return(const struct go_function *f)
{
	return !strcmp(f->name, "runtime.sigreturn") ||
	       !strcmp(f->name, "runtime.sigreturn__sigaction");
}

static void add_function(struct cfi *c, const struct go_table *t, const struct go_function *f)
{
	struct cfi_func *before = c->funcs.n ? vec_last(&c->funcs) : NULL;
	struct cfi_func made = { .start = f->start, .end = f->end, .first = c->rows.n };

	if (is_signal_return(f)) {
		/* A signal handler returns to its first byte, and callers are looked up by the byte before. */
		if (before && before->end == made.start && before->end - before->start > 1) {
			before->end--;
			made.start--;
		}
		add_row(c, made.start, WIRE_UNWIND_RULE(WIRE_UNWIND_SIGRETURN, 0, 0));
	} else if (f->is_top) {
		add_row(c, f->start, WIRE_UNWIND_RULE(WIRE_UNWIND_STOP, 0, 0));
	} else {
		add_depths(c, t, f);
	}
	made.n = c->rows.n - made.first;
	vec_push(&c->funcs, made);
}

void cfi_add_go(struct cfi *c, const struct object *o)
{
	struct go_table t;

	if (!go_table_read(o, &t))
		return;
	for (uint32_t i = 0; i < t.functions.n && c->rows.n < MAX_ROWS; i++)
		add_function(c, &t, &t.functions.v[i]);
	go_table_fini(&t);
}
