/* Generates the code of a segment: it reserves a record, fills it as its schema says, and submits
 * it. */
#include "compile/gen/gen_private.h"

#include "wire/wire_record.h"
#include "wire/routines.h"

static void memory_dump(struct gen *g, const struct node *call, const struct field *fl)
{
	struct ir_fn *f = g->f;
	const struct node *size = call->call.args->next, *dyn = size->next;
	struct ir_val addr = gen_expr(g, call->call.args), n = IR_I(size->i.value), r;
	uint32_t ok;

	if (dyn) {
		n = ir_mov(f, gen_expr(g, dyn));
		ok = ir_new_label(f);
		ir_if(f, n, IF_ULE, IR_I(size->i.value), ok);
		ir_set(f, n, IR_I(size->i.value));
		ir_place(f, ok);
	}
	ir_store(f, g->rec, (int32_t)fl->offset, 8, n);
	r = gen_pointed_copy(g, ir_bin(f, ALU_ADD, g->rec, IR_I(fl->offset + 8)),
			     IR_I(size->i.value), addr, false);
	gen_fault_if(g, r, IF_NE, IR_I(0), WIRE_FAULT_BADADDR, addr, call->loc);
}

/* Writes the packet's length and the bytes in the linear part of its buffer. */
static void packet(struct gen *g, const struct node *call, const struct field *length,
		   const struct field *mem)
{
	struct ir_fn *f = g->f;
	int64_t most = mem->size - 8;
	struct ir_val skb = gen_expr(g, call->call.args), len, paged, n = ir_new_reg(f), data, r;
	uint32_t size, fits = ir_new_label(f), offset;

	offset = gen_kernel_offset(g, "sk_buff", "len", &size, call->loc);
	len = gen_kernel_read(g, skb, offset, 4, false, call->loc);
	offset = gen_kernel_offset(g, "sk_buff", "data_len", &size, call->loc);
	paged = gen_kernel_read(g, skb, offset, 4, false, call->loc);
	offset = gen_kernel_offset(g, "sk_buff", "data", &size, call->loc);
	data = gen_kernel_read(g, skb, offset, 8, false, call->loc);
	ir_store(f, g->rec, (int32_t)length->offset, 4, len);
	ir_set(f, n, ir_bin(f, ALU_SUB, len, paged));
	ir_if(f, n, IF_ULE, IR_I(most), fits);
	ir_set(f, n, IR_I(most));
	ir_place(f, fits);
	ir_store(f, g->rec, (int32_t)mem->offset, 8, n);
	r = ir_call(f, HELPER_READ_KERNEL, 3,
		    ir_bin(f, ALU_ADD, g->rec, IR_I((int64_t)mem->offset + 8)), n, data);
	gen_fault_if(g, r, IF_NE, IR_I(0), WIRE_FAULT_BADADDR, data, call->loc);
}

static void printed_target(struct gen *g, const struct node *call, const struct field *pointer,
			   const struct field *target)
{
	struct ir_fn *f = g->f;
	struct ir_val addr = ir_load(f, g->rec, (int32_t)pointer->offset, 8, false), r;

	r = gen_pointed_copy(g, ir_bin(f, ALU_ADD, g->rec, IR_I(target->offset)),
			     IR_I(target->size), addr, false);
	gen_fault_if(g, r, IF_NE, IR_I(0), WIRE_FAULT_BADADDR, addr, call->loc);
}

static void stop_tracing(struct gen *g, const struct field *fl)
{
	struct ir_fn *f = g->f;
	struct ir_val state = ir_map_value(f, gen_fixed_map(g, MAP_STATE), 0);

	ir_store(f, state, offsetof(struct wire_state, exit_status), 4,
		 ir_load(f, g->rec, (int32_t)fl->offset, 4, false));
	ir_store(f, state, offsetof(struct wire_state, exiting), 4, IR_I(1));
	ir_store(f, state, offsetof(struct wire_state, active), 4, IR_I(WIRE_OFF));
}

/* exit() takes effect even when the ring has no room for its record. The status is known when it is
 * a constant: other statements of the clause do not run. */
static void stop_without_room(struct gen *g, const struct node *status)
{
	struct ir_fn *f = g->f;
	struct ir_val state = ir_map_value(f, gen_fixed_map(g, MAP_STATE), 0);

	if (status->kind == N_INT && status->constant)
		ir_store(f, state, offsetof(struct wire_state, exit_status), 4,
			 gen_expr(g, status));
	ir_store(f, state, offsetof(struct wire_state, exiting), 4, IR_I(1));
	ir_store(f, state, offsetof(struct wire_state, active), 4, IR_I(WIRE_OFF));
}

static void run_action(struct gen *g, const struct node *call, const struct action *a,
		       const struct gen_schema *s)
{
	struct ir_fn *f = g->f;

	f->loc = call->loc;
	switch (call->id->subr) {
	case SUBR_SPECULATE: gen_speculate(g, call); return;
	case SUBR_RAISE:
		(void)ir_call(f, HELPER_SEND_SIGNAL, 1, gen_expr(g, call->call.args));
		return;
	case SUBR_STOP: (void)ir_call(f, HELPER_SEND_SIGNAL, 1, IR_I(19 /* SIGSTOP */)); return;
	case SUBR_CHILL: (void)ir_routine(f, "d_chill", 1, gen_expr(g, call->call.args)); return;
	default: break;
	}
	for (uint32_t i = 0; a && i < a->nfields; i++) {
		const struct field *fl = &s->fields.v[a->fields[i]];
		const struct node *value = s->values.v[a->fields[i]];

		if (value)
			gen_field(g, fl, value, g->rec, true);
		else if (a->kind == ACT_TRACEMEM)
			memory_dump(g, call, fl);
		else if (a->kind == ACT_PCAP && fl->kind == FIELD_MEM)
			packet(g, call, &s->fields.v[a->fields[1]], fl);
		else if (a->kind == ACT_PCAP)
			continue;
		else
			printed_target(g, call, &s->fields.v[a->fields[0]], fl);
	}
	if (a && a->kind == ACT_EXIT)
		stop_tracing(g, &s->fields.v[a->fields[0]]);
	if (a && (a->kind == ACT_COMMIT || a->kind == ACT_DISCARD))
		gen_check_speculation(
			g, ir_load(f, g->rec, (int32_t)s->fields.v[a->fields[0]].offset, 4, false),
			call->loc);
}

static bool has_action(const struct node *call)
{
	switch (call->id->subr) {
	case SUBR_SPECULATE:
	case SUBR_RAISE:
	case SUBR_STOP:
	case SUBR_CHILL: return false;
	default: return true;
	}
}

static void run_statements(struct gen *g, const struct node *from, const struct node *to,
			   const struct gen_schema *s)
{
	uint32_t action = 0;

	for (const struct node *st = from; st != to; st = st->next) {
		const struct node *e = st->block.body;

		g->f->loc = st->loc;
		if (gen_action_of(st))
			run_action(g, e, has_action(e) ? &s->actions.v[action++] : NULL, s);
		else if (e->kind == N_ASSIGN && e->e.a->kind == N_AGG)
			gen_aggregate(g, e);
		else
			gen_effect(g, e);
	}
}

static void write_header(struct gen *g, uint32_t segment)
{
	struct ir_fn *f = g->f;

	ir_store(f, g->rec, offsetof(struct wire_record, time), 8, gen_lazy(g, LAZY_TIME));
	ir_store(f, g->rec, offsetof(struct wire_record, segment), 4, IR_I(segment));
	ir_store(f, g->rec, offsetof(struct wire_record, probe), 4, g->probe);
	ir_store(f, g->rec, offsetof(struct wire_record, cpu), 4, ir_call(f, HELPER_CPU, 0));
	ir_store(f, g->rec, offsetof(struct wire_record, spec), 4, g->spec);
	ir_store(f, g->rec, offsetof(struct wire_record, tid), 4, gen_tid(g));
	ir_store(f, g->rec, offsetof(struct wire_record, late), 4, IR_I(0));
}

static uint32_t finish_schema(struct gen *g, struct gen_schema *s)
{
	struct segment *seg = vec_add(&g->segments);

	if (s->too_large) {
		diag_error(g->diags, g->f->loc, 0, "D_TOO_LARGE",
			   "what this clause records takes more than %u MB at a time",
			   RECORD_MAX >> 20);
		g->failed = true;
	}
	seg->clause = g->cl->index;
	seg->size = (s->size + 7) & ~7u;
	seg->control = s->control;
	seg->prints = s->prints;
	seg->own = g->attach == ATTACH_SELF || g->attach == ATTACH_TICK;
	seg->nfields = s->fields.n;
	seg->fields = arena_array(g->arena, struct field, s->fields.n + 1);
	if (s->fields.n)
		memcpy(seg->fields, s->fields.v, s->fields.n * sizeof(struct field));
	seg->nactions = s->actions.n;
	seg->actions = arena_array(g->arena, struct action, s->actions.n + 1);
	memcpy(seg->actions, s->actions.v, s->actions.n * sizeof(struct action));
	return g->segments.n - 1;
}

static bool sends_signal(const struct node *st)
{
	const enum subr_id id = st->block.body->id->subr;

	return id == SUBR_RAISE || id == SUBR_STOP;
}

/* Generates statements [from, to) with the record that their actions need. */
void gen_segment(struct gen *g, const struct node *from, const struct node *to, bool default_action)
{
	struct ir_fn *f = g->f;
	struct gen_schema s = { .g = g, .size = sizeof(struct wire_record) };
	uint32_t outer_fault = g->fault, outer_bail = g->bail, done, reserved, segment;
	bool outer_fault_used = g->fault_used, outer_bail_used = g->bail_used, speculative = false;
	bool signals = false;
	struct ir_val size;

	for (const struct node *st = from; st != to; st = st->next)
		if (gen_action_of(st)) {
			gen_describe(&s, st->block.body);
			speculative |= st->block.body->id->subr == SUBR_SPECULATE;
			signals |= sends_signal(st);
		}
	/* A speculation without data shows its probe's name when it is committed. */
	if (default_action || (speculative && !s.actions.n)) {
		(void)gen_add_action(&s, ACT_DEFAULT, NULL);
		s.prints = true;
	}
	if (!s.actions.n) {
		run_statements(g, from, to, &s);
		/* A signal without data in its record shows its probe's name. The signal is sent
		 * first, so that a full ring does not prevent it. */
		if (signals)
			gen_segment(g, to, to, true);
		goto out;
	}
	segment = finish_schema(g, &s);
	g->segments.v[segment].speculative = speculative;
	size = IR_I(g->segments.v[segment].size);
	/* Compute values before the reservation when possible. A firing that gives up there has no
	 * record to discard. */
	(void)gen_lazy(g, LAZY_TIME);
	reserved = ir_new_label(f);
	done = ir_new_label(f);
	g->rec = ir_new_reg(f);
	ir_set(f, g->rec,
	       ir_call(f, HELPER_RINGBUF_RESERVE, 3,
		       ir_map(f, gen_fixed_map(g, s.control ? MAP_CONTROL : MAP_DATA)), size,
		       IR_I(0)));
	ir_if(f, g->rec, IF_NE, IR_I(0), reserved);
	gen_count(g, IR_I(s.control ? WIRE_DROP_CONTROL : WIRE_DROP_DATA));
	gen_count(g, ir_bin(f, ALU_ADD, ir_bin(f, ALU_MUL, g->probe, IR_I(WIRE_PROBE_SLOTS)),
			    IR_I(WIRE_FIXED_COUNTERS + WIRE_PROBE_DROPPED)));
	for (uint32_t i = 0; i < s.actions.n; i++)
		if (s.actions.v[i].kind == ACT_EXIT)
			stop_without_room(g, s.values.v[s.actions.v[i].fields[0]]);
	ir_goto(f, outer_bail);
	outer_bail_used = true;
	ir_place(f, reserved);
	g->fault = ir_new_label(f);
	g->bail = ir_new_label(f);
	g->fault_used = g->bail_used = false;
	g->rec_live = true;
	write_header(g, segment);
	run_statements(g, from, to, &s);
	for (uint32_t i = 0; i < s.actions.n; i++)
		if (s.actions.v[i].kind == ACT_COMMIT || s.actions.v[i].kind == ACT_DISCARD)
			gen_free_speculation(
				g, ir_load(f, g->rec,
					   (int32_t)s.fields.v[s.actions.v[i].fields[0]].offset, 4,
					   false));
	g->rec_live = false;
	(void)ir_call(f, HELPER_RINGBUF_SUBMIT, 2, g->rec,
		      IR_I(s.control ? 2 /* BPF_RB_FORCE_WAKEUP */ : 0));
	if (g->fault_used || g->bail_used)
		ir_goto(f, done);
	if (g->fault_used) {
		ir_place(f, g->fault);
		(void)ir_call(f, HELPER_RINGBUF_DISCARD, 2, g->rec, IR_I(1 /* BPF_RB_NO_WAKEUP */));
		ir_goto(f, outer_fault);
		outer_fault_used = true;
	}
	if (g->bail_used) {
		ir_place(f, g->bail);
		(void)ir_call(f, HELPER_RINGBUF_DISCARD, 2, g->rec, IR_I(1 /* BPF_RB_NO_WAKEUP */));
		ir_goto(f, outer_bail);
		outer_bail_used = true;
	}
	if (g->fault_used || g->bail_used)
		ir_place(f, done);
	g->fault = outer_fault;
	g->bail = outer_bail;
	g->fault_used = outer_fault_used;
	g->bail_used = outer_bail_used;
out:
	vec_fini(&s.fields);
	vec_fini(&s.actions);
	vec_fini(&s.values);
}
