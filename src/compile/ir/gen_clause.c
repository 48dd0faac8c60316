/* A clause: predicate, straight runs of statements with one record each (segments), branches,
 * faults. */
#include <assert.h>

#include "compile/ir/gen.h"

#include "wire/record.h"
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

/* --- schema --- */

static bool is_subr(const struct node *n)
{
	return n->kind == N_CALL && n->id && n->id->kind == IDENT_SUBR;
}

/* The action of a statement, NULL when it is an expression or an aggregation. */
static const struct subr_info *action_of(const struct node *stmt)
{
	const struct node *e = stmt->block.body;

	return is_subr(e) && subr_table[e->id->subr].kind == SUBR_KIND_ACTION
		       ? &subr_table[e->id->subr]
		       : NULL;
}

struct schema {
	struct gen *g;
	VEC(struct field) fields;
	VEC(struct action) actions;
	VEC(const struct node *)
	values; /* what each field is made from; NULL: by the action itself */
	uint32_t size;
	bool too_large;
	bool control, prints;
};

/* Bytes of a record: the largest buffer there is holds one of them. */
enum { RECORD_MAX = 1 << 29 };

static uint32_t add_field(struct schema *s, enum field_kind kind, uint64_t size, uint32_t align,
			  type_id type, const struct node *value)
{
	s->size = (s->size + align - 1) / align * align;
	if (size > RECORD_MAX || s->size > RECORD_MAX - size) {
		s->too_large = true;
		size = 8;
	}
	vec_push(&s->fields,
		 (struct field){
			 .kind = kind, .offset = s->size, .size = (uint32_t)size, .type = type });
	vec_push(&s->values, value);
	s->size += (uint32_t)size;
	return s->fields.n - 1;
}

static uint32_t value_field(struct schema *s, const struct node *n)
{
	struct gen *g = s->g;
	enum field_kind k;
	struct str_info info;
	uint64_t size;

	if (gen_is_string(g, n)) {
		info = gen_str_info(g, n);
		if (info.cls == STR_ID)
			return add_field(s, FIELD_STRID, 4, 4, T_STRING, n);
		return add_field(s, FIELD_STRING, info.bound, 8, T_STRING, n);
	}
	if (type_kind(g->types, n->type) == TYPE_DYN) {
		k = gen_dyn_kind(n, false);
		if (k == FIELD_KSTACK)
			return add_field(s, k, 8 + 8 * gen_frames(g, n), 8, T_DYN, n);
		if (k == FIELD_USTACK)
			return add_field(s, k, 16 + 8 * gen_frames(g, n), 8, T_DYN, n);
		return add_field(s, k, k == FIELD_SYM || k == FIELD_MOD ? 8 : 16, 8, T_DYN, n);
	}
	size = type_size(g->types, n->type);
	if (type_is_scalar(g->types, n->type)) {
		if (size != 1 && size != 2 && size != 4)
			size = 8;
		return add_field(s, FIELD_INT, size, size, n->type, n);
	}
	return add_field(s, FIELD_BYTES, size, 8, n->type, n);
}

static struct action *add_action(struct schema *s, enum action_kind kind, const struct node *call)
{
	struct action *a = vec_add(&s->actions);
	uint32_t n = 1;

	for (const struct node *k = call ? call->call.args : NULL; k; k = k->next)
		n++;
	a->kind = kind;
	a->loc = call ? call->loc : 0;
	a->fields = arena_array(s->g->arena, uint32_t, n);
	a->aggs = arena_array(s->g->arena, uint32_t, n);
	return a;
}

static void take_values(struct schema *s, struct action *a, const struct node *args)
{
	for (; args; args = args->next)
		a->fields[a->nfields++] = value_field(s, args);
}

static const struct node *take_agg(struct action *a, const struct node *args)
{
	if (args && args->kind == N_AGG)
		a->aggs[a->naggs++] = args->id->agg;
	return args ? args->next : NULL;
}

/* print(): a pointer to a struct, and the address of anything, shows what it points to; anything
 * else itself. */
static void print_fields(struct schema *s, struct action *a, const struct node *arg)
{
	struct gen *g = s->g;
	type_id to = type_is_pointer(g->types, arg->type)
			     ? type_ref(g->types, type_strip(g->types, arg->type))
			     : T_VOID;
	uint64_t size = type_size(g->types, to);

	a->fields[a->nfields++] = value_field(s, arg);
	if (size && ((arg->kind == N_UNARY && arg->op == OP_ADDROF) ||
		     (!type_is_char_pointer(g->types, arg->type) && type_is_sou(g->types, to)))) {
		uint64_t most = (uint64_t)opt_num(g->options, OPT_PRINTSIZE);

		if (size > most)
			size = most;
		a->fields[a->nfields++] = add_field(s, FIELD_BYTES, size, 8, to, NULL);
	}
}

static const char *literal(const struct node *n)
{
	return n && n->kind == N_STR ? n->s.text : NULL;
}

static void describe(struct schema *s, const struct node *call)
{
	const struct node *args = call->call.args;
	struct gen *g = s->g;
	struct action *a;

	switch (call->id->subr) {
	case SUBR_TRACE: take_values(s, add_action(s, ACT_TRACE, call), args); break;
	case SUBR_TRACEMEM:
		a = add_action(s, ACT_TRACEMEM, call);
		a->fields[a->nfields++] =
			add_field(s, FIELD_MEM, 8 + args->next->i.value, 8, T_VOID, NULL);
		break;
	case SUBR_PCAP:
		a = add_action(s, ACT_PCAP, call);
		a->fields[a->nfields++] = add_field(s, FIELD_INT, 4, 4, T_INT, args->next);
		a->fields[a->nfields++] = add_field(s, FIELD_INT, 4, 4, T_UINT32, NULL);
		a->fields[a->nfields++] = add_field(s, FIELD_MEM,
						    8 + (uint64_t)opt_num(g->options, OPT_PCAPSIZE),
						    8, T_VOID, NULL);
		break;
	case SUBR_PRINTF:
	case SUBR_FREOPEN:
	case SUBR_SYSTEM:
		a = add_action(s,
			       call->id->subr == SUBR_PRINTF   ? ACT_PRINTF
			       : call->id->subr == SUBR_SYSTEM ? ACT_SYSTEM
							       : ACT_FREOPEN,
			       call);
		a->format = call->aux;
		take_values(s, a, args->next);
		s->prints |= a->kind == ACT_PRINTF;
		s->prints |= a->kind != ACT_PRINTF;
		break;
	case SUBR_PRINTA:
		a = add_action(s, ACT_PRINTA, call);
		a->format = call->aux;
		if (args && args->kind != N_AGG)
			args = args->next;
		while (args)
			args = take_agg(a, args);
		break;
	case SUBR_PRINT: print_fields(s, add_action(s, ACT_PRINT, call), args); break;
	case SUBR_STACK:
	case SUBR_USTACK:
	case SUBR_JSTACK:
	case SUBR_SYM:
	case SUBR_FUNC:
	case SUBR_MOD:
	case SUBR_USYM:
	case SUBR_UFUNC:
	case SUBR_UMOD:
	case SUBR_UADDR:
		a = add_action(s,
			       call->id->subr == SUBR_STACK ? ACT_STACK
			       : call->id->subr == SUBR_USTACK || call->id->subr == SUBR_JSTACK
				       ? ACT_USTACK
				       : ACT_SYM,
			       call);
		a->fields[a->nfields++] = value_field(s, call);
		break;
	case SUBR_EXIT:
		a = add_action(s, ACT_EXIT, call);
		a->fields[a->nfields++] = add_field(s, FIELD_INT, 4, 4, T_INT, args);
		g->exits = true;
		break;
	case SUBR_CLEAR: take_agg(add_action(s, ACT_CLEAR, call), args); break;
	case SUBR_DENORMALIZE: take_agg(add_action(s, ACT_DENORMALIZE, call), args); break;
	case SUBR_TRUNC:
	case SUBR_NORMALIZE:
		a = add_action(s, call->id->subr == SUBR_TRUNC ? ACT_TRUNC : ACT_NORMALIZE, call);
		args = take_agg(a, args);
		if (args)
			a->fields[a->nfields++] = add_field(s, FIELD_INT, 8, 8, T_INT64, args);
		break;
	case SUBR_COMMIT:
	case SUBR_DISCARD:
		a = add_action(s, call->id->subr == SUBR_COMMIT ? ACT_COMMIT : ACT_DISCARD, call);
		a->fields[a->nfields++] = add_field(s, FIELD_INT, 4, 4, T_UINT32, args);
		break;
	case SUBR_FTRUNCATE: (void)add_action(s, ACT_FTRUNCATE, call); break;
	case SUBR_SETOPT:
		a = add_action(s, ACT_SETOPT, call);
		a->text = arena_strdup(g->arena, literal(args) ? literal(args) : "");
		if (args->next && literal(args->next))
			a->text2 = arena_strdup(g->arena, literal(args->next));
		else if (args->next)
			a->fields[a->nfields++] = value_field(s, args->next);
		break;
	default: return;
	}
	s->control |= (subr_table[call->id->subr].flags & SUBR_CONTROL) != 0;
	s->prints = true;
}

/* --- code of a segment --- */

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

/* The packet's length, and what of it lies in the buffer's linear part. */
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

static void run_action(struct gen *g, const struct node *call, const struct action *a,
		       const struct schema *s)
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
			   const struct schema *s)
{
	uint32_t action = 0;

	for (const struct node *st = from; st != to; st = st->next) {
		const struct node *e = st->block.body;

		g->f->loc = st->loc;
		if (action_of(st))
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

static uint32_t finish_schema(struct gen *g, struct schema *s)
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

/* Statements [from, to) with the record that their actions need. */
static void gen_segment(struct gen *g, const struct node *from, const struct node *to,
			bool default_action)
{
	struct ir_fn *f = g->f;
	struct schema s = { .g = g, .size = sizeof(struct wire_record) };
	uint32_t outer_fault = g->fault, outer_bail = g->bail, done, reserved, segment;
	bool outer_fault_used = g->fault_used, outer_bail_used = g->bail_used, speculative = false;
	bool signals = false;
	struct ir_val size;

	for (const struct node *st = from; st != to; st = st->next)
		if (action_of(st)) {
			describe(&s, st->block.body);
			speculative |= st->block.body->id->subr == SUBR_SPECULATE;
			signals |= sends_signal(st);
		}
	/* a speculation that nothing is put into shows when it is committed that its probe fired */
	if (default_action || (speculative && !s.actions.n)) {
		(void)add_action(&s, ACT_DEFAULT, NULL);
		s.prints = true;
	}
	if (!s.actions.n) {
		run_statements(g, from, to, &s);
		/* A signal that nothing is recorded with shows by its probe's name. It is sent
		 * first: a full ring does not keep it back. */
		if (signals)
			gen_segment(g, to, to, true);
		goto out;
	}
	segment = finish_schema(g, &s);
	g->segments.v[segment].speculative = speculative;
	size = IR_I(g->segments.v[segment].size);
	/* What can be made before the reservation is: a firing that bails out then has nothing to
	 * discard. */
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
	/* exit() takes effect even when its record does not fit. */
	for (uint32_t i = 0; i < s.actions.n; i++)
		if (s.actions.v[i].kind == ACT_EXIT) {
			struct ir_val state = ir_map_value(f, gen_fixed_map(g, MAP_STATE), 0);

			ir_store(f, state, offsetof(struct wire_state, exiting), 4, IR_I(1));
			ir_store(f, state, offsetof(struct wire_state, active), 4, IR_I(WIRE_OFF));
		}
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

static void look_for_body(void *arg, const struct node *n)
{
	*(bool *)arg |= n->kind == N_BODY;
}

/* Does the expression put in a function, which may have records of its own? */
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

/* Rounds, when -x looplimit does not say: the verifier walks each, with all routines called in it,
 * and gives up after a million instructions. */
enum { ROUNDS_PLAIN = 100, ROUNDS_ROUTINES = 32 };

/* Loops in one program: functions put in again and again could make thousands. */
enum { LOOPS_MAX = 200 };

/* Writes the limit of the loop that begins with the test at instruction `check`. */
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

/* What is known to be made before a loop is what is known anywhere in it, and a test is needed for
 * all else: it may have been made the time before. Each round is counted, so that the verifier sees
 * an end; a loop in a loop counts on, since the verifier walks every round. */
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
	return !action_of(st) && has_body(st->block.body);
}

/* Statements that are no plain run of expressions. */
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

/* --- faults --- */

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

/* The ERROR clauses, in place: their own firing within this one. */
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

/* What the clause may or may not have made is forgotten, so that all its paths meet in one state:
 * the verifier would follow each on through the clauses behind. The time stays, it is one for a
 * firing; scratch memory is given back. */
static void forget(struct gen *g, const bool *known)
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
		forget(g, known);
	g->cl = outer;
	g->fault = outer_fault;
	g->bail = outer_bail;
	g->fault_used = outer_fault_used;
	g->bail_used = outer_bail_used;
}
