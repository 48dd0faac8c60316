/* Generates a clause: predicate, straight runs of statements with one record each (segments),
 * branches, faults. */
#include "compile/gen/gen_private.h"

#include <assert.h>

#include "wire/wire_record.h"
#include "wire/routines.h"

void gen_count(struct gen *g, struct ir_val slot)
{
	struct ir_fn *f = g->f;
	uint32_t key = ir_new_object(f, 8, "slot"), none = ir_new_label(f);
	struct ir_val at;

	ir_store_stack(f, key, 0, 4, slot);
	at = ir_call(f, HELPER_MAP_LOOKUP, 2, ir_map(f, gen_fixed_map(g, MAP_COUNTERS)),
		     ir_stack(f, key, 0));
	ir_if(f, at, IF_EQ, IR_I(0), none);
	ir_add_mem(f, at, 0, 8, IR_I(1), true);
	ir_place(f, none);
}

static void look_for_body(void *arg, const struct node *n)
{
	*(bool *)arg |= n->kind == N_BODY;
}

/* Returns true when the expression contains a function's body, which may have its own records. */
static bool has_body(const struct node *n)
{
	bool found = false;

	node_walk(n, look_for_body, &found);
	return found;
}

static void gen_body(struct gen *g, const struct node *list);

static const struct node *inside(const struct node *n)
{
	return n && n->kind == S_BLOCK ? n->block.body : n;
}

/* Limits of rounds when -x looplimit is not set. The verifier walks each round, with all routines
 * called in it, and gives up after a million instructions. */
enum { ROUNDS_PLAIN = 100, ROUNDS_ROUTINES = 32 };

/* Limit of the loops in one program, because functions expanded many times could make thousands. */
enum { LOOPS_MAX = 200 };

/* Writes the limit of the loop whose test is at instruction `check`. */
static void choose_limit(struct ir_fn *f, uint32_t check)
{
	int64_t limit = ROUNDS_PLAIN;

	for (uint32_t i = check; i < f->ins.n; i++)
		if (f->ins.v[i].op == IR_ROUTINE)
			limit = ROUNDS_ROUTINES;
	assert(f->ins.v[check].op == IR_IF && f->ins.v[check + 2].a.imm == 0);
	f->ins.v[check].b.imm = limit;
	f->ins.v[check + 2].a.imm = limit;
}

/* Generates a loop. Inside it, a lazy value counts as known only if it was known before the loop.
 * All others need a test, because the round before may have computed them. Each round is counted,
 * so that the verifier sees an end. An inner loop uses the same counter, because the verifier walks
 * every round. */
static void gen_loop(struct gen *g, const struct node *n)
{
	struct ir_fn *f = g->f;
	uint32_t top = ir_new_label(f), brk = g->brk, cont = g->cont, check;
	int64_t limit = opt_num(g->options, OPT_LOOPLIMIT);
	bool known[LAZY_COUNT];
	struct ir_val outer = g->rounds;

	f->loc = n->loc;
	if (++g->loops > LOOPS_MAX) {
		if (g->loops == LOOPS_MAX + 1)
			diag_error(g->diags, n->loc, n->end, "D_TOO_LARGE",
				   "more than %d loops in the clauses of one probe, those of "
				   "functions included",
				   LOOPS_MAX);
		g->failed = true;
		return;
	}
	if (outer.kind == IR_NONE) {
		g->rounds = ir_new_reg(f);
		ir_set(f, g->rounds, IR_I(0));
	}
	for (int id = 0; id < LAZY_COUNT; id++)
		g->lazy[id].ever = true;
	gen_lazy_save(g, known);
	g->brk = ir_new_label(f);
	g->cont = ir_new_label(f);
	ir_place(f, top);
	if (n->loop.cond && !n->loop.tail)
		gen_cond(g, n->loop.cond, false, g->brk);
	check = f->ins.n;
	gen_fault_if(g, g->rounds, IF_UGE, IR_I(limit), WIRE_FAULT_LOOP, IR_I(limit), n->loc);
	ir_set(f, g->rounds, ir_bin(f, ALU_ADD, g->rounds, IR_I(1)));
	gen_body(g, inside(n->loop.body));
	gen_lazy_restore(g, known);
	ir_place(f, g->cont);
	if (n->loop.step)
		gen_body(g, n->loop.step);
	if (n->loop.cond && n->loop.tail)
		gen_cond(g, n->loop.cond, false, g->brk);
	ir_loop(f, top);
	if (!limit)
		choose_limit(f, check);
	gen_lazy_restore(g, known);
	ir_place(f, g->brk);
	g->brk = brk;
	g->cont = cont;
	g->rounds = outer;
}

void gen_function(struct gen *g, const struct node *n)
{
	struct ir_fn *f = g->f;
	uint32_t ret = g->ret, brk = g->brk, cont = g->cont;
	bool known[LAZY_COUNT], live = g->rec_live;
	struct ir_val rec = g->rec;

	for (const struct node *a = n->fn.args; a; a = a->next)
		gen_effect(g, a);
	gen_lazy_save(g, known);
	g->ret = ir_new_label(f);
	gen_body(g, inside(n->fn.body));
	gen_lazy_restore(g, known);
	ir_place(f, g->ret);
	g->ret = ret;
	g->brk = brk;
	g->cont = cont;
	g->rec = rec;
	g->rec_live = live;
}

static bool is_alone(const struct node *st)
{
	return !gen_action_of(st) && has_body(st->block.body);
}

/* Generates statements that are not a plain run of expressions. */
static void gen_control(struct gen *g, const struct node *n)
{
	struct ir_fn *f = g->f;

	f->loc = n->loc;
	switch (n->kind) {
	case S_EXPR:
		if (n->block.body->kind == N_ASSIGN && n->block.body->e.a->kind == N_AGG)
			gen_aggregate(g, n->block.body);
		else
			gen_effect(g, n->block.body);
		break;
	case S_LOOP: gen_loop(g, n); break;
	case S_BREAK: ir_goto(f, g->brk); break;
	case S_CONTINUE: ir_goto(f, g->cont); break;
	default:
		if (n->block.body)
			gen_effect(g, n->block.body);
		ir_goto(f, g->ret);
	}
}

static void gen_body(struct gen *g, const struct node *list)
{
	struct ir_fn *f = g->f;
	bool known[LAZY_COUNT];

	while (list) {
		const struct node *to = list;
		uint32_t other, done;

		while (to && to->kind == S_EXPR && !is_alone(to))
			to = to->next;
		if (to != list) {
			gen_segment(g, list, to, false);
			list = to;
			continue;
		}
		if (list->kind == S_BLOCK) {
			gen_body(g, list->block.body);
		} else if (list->kind != S_IF) {
			gen_control(g, list);
		} else {
			other = ir_new_label(f);
			done = ir_new_label(f);
			f->loc = list->loc;
			gen_cond(g, list->cond.cond, false, other);
			gen_lazy_save(g, known);
			if (list->cond.then)
				gen_body(g, list->cond.then->kind == S_BLOCK
						    ? list->cond.then->block.body
						    : list->cond.then);
			ir_goto(f, done);
			gen_lazy_restore(g, known);
			ir_place(f, other);
			if (list->cond.els)
				gen_body(g, list->cond.els->kind == S_BLOCK
						    ? list->cond.els->block.body
						    : list->cond.els);
			gen_lazy_restore(g, known);
			ir_place(f, done);
		}
		list = list->next;
	}
}

static void report_fault(struct gen *g)
{
	struct ir_fn *f = g->f;
	uint32_t obj = ir_new_object(f, sizeof(struct wire_firing), "firing");
	struct ir_val code;

	ir_store_stack(f, obj, offsetof(struct wire_firing, time), 8, gen_lazy(g, LAZY_TIME));
	ir_store_stack(f, obj, offsetof(struct wire_firing, probe), 4, g->probe);
	ir_store_stack(f, obj, offsetof(struct wire_firing, clause), 4, IR_I(g->cl->index));
	ir_store_stack(f, obj, offsetof(struct wire_firing, insn), 4, IR_I(0));
	ir_store_stack(f, obj, offsetof(struct wire_firing, tid), 4, IR_I(0));
	code = ir_bin(f, ALU_OR, g->f_code, ir_bin(f, ALU_SHL, g->f_loc, IR_I(32)));
	(void)ir_routine(f, "d_fault", 5, ir_map(f, gen_fixed_map(g, MAP_CONTROL)),
			 ir_map(f, gen_fixed_map(g, MAP_COUNTERS)), ir_stack(f, obj, 0), code,
			 g->f_value);
}

/* Runs the ERROR clauses in place, as a firing within this firing. */
static void run_errors(struct gen *g)
{
	struct ir_fn *f = g->f;
	struct ir_val probe = g->probe;
	enum attach_kind attach = g->attach;
	uint64_t *at;

	g->in_error = true;
	g->err_code = ir_mov(f, g->f_code);
	g->err_value = ir_mov(f, g->f_value);
	g->err_loc = ir_mov(f, g->f_loc);
	g->err_clause = IR_I(g->cl->index);
	g->err_probe = probe;
	for (uint32_t i = 0; i < g->nerrors; i++) {
		at = hash_get(&g->probe_index, &g->errors[i]->probes[0], sizeof(struct probe *));
		g->probe = IR_I(*at - 1);
		gen_clause(g, g->errors[i]);
	}
	g->in_error = false;
	g->probe = probe;
	g->attach = attach;
}

/* Forgets the values that the clause may have computed, so that all its paths meet in one state.
 * Otherwise the verifier would follow each path through the clauses behind. Keeps the time, which
 * is the same for the whole firing. Gives scratch memory back. */
static void gen_clause_forget(struct gen *g, const bool *known)
{
	struct ir_fn *f = g->f;

	for (int id = 0; id < LAZY_COUNT; id++) {
		struct lazy *l = &g->lazy[id];
		uint32_t none;

		if (id == LAZY_TIME || known[id] || !l->ever)
			continue;
		if (id == LAZY_SCRATCH) {
			none = ir_new_label(f);
			ir_if(f, l->v, IF_EQ, IR_I(0), none);
			ir_store(f, l->v, SCRATCH_BUSY, 8, IR_I(0));
			ir_place(f, none);
		}
		ir_set(f, l->v, IR_I(0));
		l->ever = false;
	}
}

void gen_clause(struct gen *g, const struct bound_clause *cl)
{
	struct ir_fn *f = g->f;
	const struct bound_clause *outer = g->cl;
	uint32_t outer_fault = g->fault, outer_bail = g->bail;
	bool outer_fault_used = g->fault_used, outer_bail_used = g->bail_used, known[LAZY_COUNT];
	struct lazy before[LAZY_COUNT];
	uint32_t body;

	g->cl = cl;
	g->fault = ir_new_label(f);
	g->bail = ir_new_label(f);
	g->fault_used = g->bail_used = false;
	if (!g->in_error) {
		g->scratch_next = g->this_size;
		g->lazy_made.n = 0;
	}
	ir_set(f, g->spec, IR_I(0));
	if (!g->keeps_memory)
		ir_set(f, g->top, IR_I(0));
	gen_lazy_save(g, known);
	if (cl->pred)
		gen_cond(g, cl->pred, false, g->bail);
	body = f->ins.n;
	memcpy(before, g->lazy, sizeof(before));
	if (cl->default_action)
		gen_segment(g, NULL, NULL, true);
	else
		gen_body(g, cl->body);
	if (g->fault_used) {
		gen_lazy_restore(g, known);
		ir_goto(f, g->bail);
		ir_place(f, g->fault);
		f->loc = cl->loc;
		if (g->in_error) {
			gen_count(g, IR_I(WIRE_DROP_ERROR));
		} else {
			report_fault(g);
			if (g->nerrors)
				run_errors(g);
		}
	}
	if (!g->in_error)
		gen_lazy_settle(g, body, before);
	gen_lazy_restore(g, known);
	ir_place(f, g->bail);
	if (!g->in_error)
		gen_clause_forget(g, known);
	g->cl = outer;
	g->fault = outer_fault;
	g->bail = outer_bail;
	g->fault_used = outer_fault_used;
	g->bail_used = outer_bail_used;
}
