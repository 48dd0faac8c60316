/* Turns Go's table of functions into rows of rules. The table has the depth of the stack at each
 * instruction, which gives the CFA. The compiler (from Go 1.7 on) saves rbp right below the return
 * address of each function with a frame. Assembly does so only where its code shows it. */
#include "program/object/go.h"
#include "program/unwind/cfi.h"

enum {
	MAX_ROWS = 32 << 20, /* limit for hostile files */
	MAX_MOVER = 256,     /* limit of depths of a function that switches stacks: it is short */
	CODE = 256,          /* bytes of a function that are examined */
	PROLOGUE = 64,       /* bytes within which rbp is saved */
	SET_UP = 10,         /* at most: mov %rbp,n(%rsp); lea n(%rsp),%rbp */
};

/* The beginning of a function's code. */
struct code {
	uint8_t bytes[CODE];
	uint32_t n;
};

static struct code read_code(const struct object *o, const struct go_function *f)
{
	uint64_t size = f->end - f->start;
	struct code c;

	c.n = object_read(o, f->start, c.bytes, (uint32_t)(size < CODE ? size : CODE));
	return c;
}

static bool has_bytes(const struct code *c, uint32_t max, const char *bytes, size_t n)
{
	for (uint32_t i = 0; i + n <= c->n && i + n <= max; i++)
		if (!memcmp(c->bytes + i, bytes, n))
			return true;
	return false;
}

/* Returns true when assembly saves rbp where the compiler would. A function that pushes other
 * registers saves it elsewhere, or not at all. */
static bool saves_rbp(const struct object *o, const struct go_function *f)
{
	struct code c;

	if (!f->is_assembly)
		return true;
	c = read_code(o, f);
	return has_bytes(&c, PROLOGUE, "\x48\x89\x6c\x24", 4) || /* mov %rbp,n(%rsp) */
	       has_bytes(&c, PROLOGUE, "\x48\x89\xac\x24", 4) ||
	       has_bytes(&c, PROLOGUE, "\x55\x48\x89\xe5", 4); /* push %rbp; mov %rsp,%rbp */
}

/* Returns true when morestack loads the scheduler's rbp, mov n(%rbx),%rbp. */
static bool loads_rbp(const struct object *o, const struct go_function *f)
{
	struct code c = read_code(o, f);

	return has_bytes(&c, CODE, "\x48\x8b\x6b", 3);
}

/* Returns the rule for a depth, or 0 when there is none. */
static uint32_t depth_rule(int64_t bytes, bool saves)
{
	int64_t words = bytes / 8 + 1;

	if (bytes < 0 || bytes % 8 || words > INT16_MAX)
		return 0;
	return WIRE_UNWIND_RULE(WIRE_UNWIND_RSP, bytes && saves ? -2 : WIRE_UNWIND_SAME, words);
}

/* Returns the rule of a function that switches to another stack. With a frame, rbp points to its
 * own frame. Without a frame, the walk continues from its caller's rbp, because the other stack
 * does not show where it came from. This omits the caller, but not the goroutine's stack. Functions
 * that leave a goroutine, which may run elsewhere before they return, end the walk. So does
 * morestack when it loads the scheduler's rbp (Go 1.23). */
static uint32_t other_stack_rule(const struct object *o, const struct go_table *t,
				 const struct go_function *f, bool framed)
{
	if (!strcmp(f->name, "runtime.mcall") || !strcmp(f->name, "runtime.gogo") ||
	    (!strcmp(f->name, "runtime.morestack") && loads_rbp(o, f)))
		return WIRE_UNWIND_RULE(WIRE_UNWIND_STOP, 0, 0);
	if (framed && !t->has_flags) /* before Go 1.17 functions keep rsp in rbp, or elsewhere */
		return 0;
	return WIRE_UNWIND_RULE(WIRE_UNWIND_STACK, -2, 2);
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
	c->skipped += !rule;
}

/* Adds the rows of a function that switches stacks. It has not switched at its entry, nor, with a
 * frame, before rbp points to the frame. */
static void add_mover(struct cfi *c, const struct object *o, const struct go_table *t,
		      const struct go_function *f)
{
	bool framed = has_frame(t, f), moved = false;
	uint32_t rule = other_stack_rule(o, t, f, framed);
	struct go_depth d = { 0 };

	for (int i = 0; i < MAX_MOVER && go_depth_next(t, f, &d); i++) {
		uint64_t stay = moved ? 0 : framed ? SET_UP : 1;

		if (framed && d.bytes <= 0) {
			add_row(c, d.addr, depth_rule(d.bytes, true));
			continue;
		}
		if (stay)
			add_row(c, d.addr, depth_rule(d.bytes, true));
		if (d.end > d.addr + stay)
			add_row(c, d.addr + stay, rule);
		moved = true;
	}
}

static void add_depths(struct cfi *c, const struct object *o, const struct go_table *t,
		       const struct go_function *f)
{
	bool saves = saves_rbp(o, f);
	struct go_depth d = { 0 };

	while (c->rows.n < MAX_ROWS && go_depth_next(t, f, &d))
		add_row(c, d.addr, depth_rule(d.bytes, saves));
}

static bool is_signal_return(const struct go_function *f)
{
	return !strcmp(f->name, "runtime.sigreturn") ||
	       !strcmp(f->name, "runtime.sigreturn__sigaction");
}

static void add_function(struct cfi *c, const struct object *o, const struct go_table *t,
			 const struct go_function *f)
{
	struct cfi_func *before = c->funcs.n ? vec_last(&c->funcs) : NULL;
	struct cfi_func made = { .start = f->start, .end = f->end, .first = c->rows.n };

	if (is_signal_return(f)) {
		/* A signal handler returns to its first byte. Callers are looked up by the byte
		 * before, which is padding or is taken from the function there. */
		if (object_is_text(o, f->start - 1))
			made.start--;
		if (before && before->end > made.start && before->start < made.start)
			before->end = made.start;
		add_row(c, made.start, WIRE_UNWIND_RULE(WIRE_UNWIND_SIGRETURN, 0, 0));
	} else if (f->is_top) {
		add_row(c, f->start, WIRE_UNWIND_RULE(WIRE_UNWIND_STOP, 0, 0));
	} else if (f->moves_stack) {
		add_mover(c, o, t, f);
	} else {
		add_depths(c, o, t, f);
	}
	if (c->rows.n == made.first) /* the table has no depths of it */
		add_row(c, f->start, 0);
	made.n = c->rows.n - made.first;
	vec_push(&c->funcs, made);
}

bool cfi_add_go(struct cfi *c, const struct object *o)
{
	struct go_table t;

	if (!go_table_read(o, &t))
		return false;
	for (uint32_t i = 0; i < t.functions.n && c->rows.n < MAX_ROWS; i++)
		add_function(c, o, &t, &t.functions.v[i]);
	go_table_fini(&t);
	return true;
}
