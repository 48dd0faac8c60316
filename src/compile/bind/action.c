/* Binds statements: actions, and the order in which they may stand. */
#include "compile/bind/bind_private.h"

static void flow_error(struct bind_cx *cx, struct node *n, const char *tag, const char *what,
		       const char *after)
{
	bind_error(cx, n, tag, "%s may not follow %s", what, after);
}

bool check_flow(struct bind_cx *cx, struct node *n, enum subr_id id)
{
	struct flow *f = &cx->state->flow;
	const struct subr_info *s = &subr_table[id];
	const char *call = arena_printf(cx->arena, "%s( )", s->name);

	if (id == SUBR_COMMIT) {
		if (f->record)
			flow_error(cx, n, "D_COMM_DREC", call, "data-recording action(s)");
		f->commit = true;
	} else if (id == SUBR_SPECULATE) {
		if (f->speculate)
			flow_error(cx, n, "D_SPEC_SPEC", call, "speculate( )");
		else if (f->commit)
			flow_error(cx, n, "D_SPEC_COMM", call, "commit( )");
		else if (f->record)
			flow_error(cx, n, "D_SPEC_DREC", call, "data-recording action(s)");
		f->speculate = true;
	} else if (s->kind == SUBR_KIND_AGG) {
		if (f->speculate)
			flow_error(cx, n, "D_AGG_SPEC", "aggregating actions", "speculate( )");
		else if (f->commit)
			flow_error(cx, n, "D_AGG_COMM", "aggregating actions", "commit( )");
		f->record = true;
	} else if (f->speculate && id == SUBR_EXIT) {
		flow_error(cx, n, "D_EXIT_SPEC", call, "speculate( )");
	} else if (id == SUBR_EXIT && f->commit) {
		flow_error(cx, n, "D_DREC_COMM", call, "commit( )");
	} else if (f->speculate && s->flags & SUBR_DESTRUCTIVE) {
		flow_error(cx, n, "D_ACT_SPEC", "destructive actions", "speculate( )");
	} else if ((s->flags & (SUBR_RECORDS | SUBR_CONTROL)) && id != SUBR_DISCARD &&
		   id != SUBR_EXIT && !(s->flags & SUBR_DESTRUCTIVE)) {
		if (f->commit)
			flow_error(cx, n, "D_DREC_COMM", "data-recording actions", "commit( )");
		if (!f->speculate)
			f->record = true;
	}
	return !is_poison(n);
}

static void bind_trace(struct bind_cx *cx, struct node *n)
{
	struct node *a = n->call.args;

	bind_expr(cx, a);
	a = n->call.args = untranslated(cx, a);
	if (is_poison(a))
		poison(n);
	else if (is_xlated(a))
		bind_error(cx, n, "D_OP_DYN",
			   "trace( ) may not be applied to a translated value: trace its members");
	else if (a->type == T_VOID)
		bind_error(cx, n, "D_TRACE_VOID",
			   "trace( ) may not be applied to a void expression");
	else if (a->type == T_DYN)
		bind_error(cx, n, "D_TRACE_DYN",
			   "trace( ) may not be applied to a dynamic expression");
}

static void bind_tracemem(struct bind_cx *cx, struct node *n)
{
	struct node *addr = n->call.args, *size = addr->next;

	if (!bind_call_args(cx, n, SUBR_TRACEMEM))
		return;
	decay(cx, addr);
	if (!is_scalar(cx, addr))
		bind_error(
			cx, n, "D_TRACEMEM_ADDR",
			"tracemem( ) argument #1 is incompatible with prototype: prototype: pointer "
			"or integer, argument: %s",
			value_text(cx, addr));
	else if (!positive_const(cx, size))
		bind_error(cx, n, "D_TRACEMEM_SIZE",
			   "tracemem( ) argument #2 must be a non-zero positive integral constant "
			   "expression");
}

static void bind_print(struct bind_cx *cx, struct node *n)
{
	struct node *a = n->call.args;
	type_id to;

	cx->state->showing = a->kind == N_UNARY && a->op == OP_ADDROF;
	bind_expr(cx, a);
	cx->state->showing = false;
	if (is_poison(a)) {
		poison(n);
		return;
	}
	if (is_xlated(a))
		bind_error(cx, n, "D_OP_DYN",
			   "print( ) may not be applied to a translated value: print its members");
	else if (a->type == T_VOID)
		bind_error(cx, n, "D_PRINT_VOID",
			   "print( ) may not be applied to a void expression");
	else if (a->type == T_DYN)
		bind_error(cx, n, "D_PRINT_DYN",
			   "print( ) may not be applied to a dynamic expression");
	if (is_poison(n) || !is_pointer(cx, a))
		return;
	to = pointee(cx, a->type);
	if (type_is_sou(cx->types, to) && type_is_complete(cx->types, to) &&
	    !type_size(cx->types, to))
		bind_error(cx, n, "D_PRINT_SIZE",
			   "print( ) argument #1 refers to type \"%s\", which has size 0",
			   type_text(cx, to));
}

/* Rewrites FreeBSD's printm(most, memref(addr, n)) as tracemem(addr, most, n). A variable may hold
 * the memref() too. */
static bool bind_printm(struct bind_cx *cx, struct node *n)
{
	struct node *most = n->call.args, *ref = most->next, *addr, *len, *type;

	type = node_clone(cx->arena, most);
	bind_value(cx, type);
	if (is_poison(type) || !positive_const(cx, type)) {
		if (!is_poison(type))
			bind_error(cx, n, "D_TRACEMEM_SIZE",
				   "printm( ) argument #1 must be a non-zero positive integral "
				   "constant expression");
		poison(n);
		return false;
	}
	if (ref->kind == N_CALL && !strcmp(ref->call.func, "memref")) {
		if (!check_count(cx, ref, SUBR_MEMREF)) {
			poison(n);
			return false;
		}
		addr = ref->call.args;
		len = addr->next;
	} else {
		type = node_clone(cx->arena, ref);
		bind_value(cx, type);
		if (!is_poison(type) && !is_pointer(cx, type))
			bind_error(cx, n, "D_PROTO_ARG",
				   "printm( ) argument #2 is incompatible with prototype: "
				   "prototype: memref( ), argument: %s",
				   type_text(cx, type->type));
		if (is_poison(type) || is_poison(n)) {
			poison(n);
			return false;
		}
		addr = make_node(cx, N_INDEX, ref);
		addr->e.a = ref;
		addr->e.b = int_node(cx, ref, 0, T_INT);
		len = make_node(cx, N_INDEX, ref);
		len->e.a = node_clone(cx->arena, ref);
		len->e.b = int_node(cx, ref, 1, T_INT);
		len->e.a->next = ref->next = NULL;
	}
	n->call.args = addr;
	addr->next = most;
	most->next = len;
	len->next = NULL;
	bind_tracemem(cx, n);
	return !is_poison(n);
}

/* Rewrites FreeBSD's printt(most, typeref(addr, count, "T", sizeof (T))) as print(*(T *)addr,
 * most). When count is above 1, the type is an array of T. */
static bool bind_printt(struct bind_cx *cx, struct node *n)
{
	struct node *most = n->call.args, *ref = most->next, *addr, *count, *name, *value;
	type_id t;

	if (ref->kind != N_CALL || strcmp(ref->call.func, "typeref")) {
		bind_error(cx, n, "D_PROTO_ARG", "printt( ) argument #2 must be typeref( )");
		return false;
	}
	if (!check_count(cx, ref, SUBR_TYPEREF)) {
		poison(n);
		return false;
	}
	addr = ref->call.args;
	count = addr->next;
	name = count->next;
	bind_value(cx, most);
	bind_value(cx, addr);
	bind_value(cx, count);
	if (is_poison(most) || is_poison(addr) || is_poison(count)) {
		poison(n);
		return false;
	}
	decay(cx, addr);
	if (name->kind != N_STR || !positive_const(cx, most) || !positive_const(cx, count) ||
	    count->i.value > INT32_MAX || !is_scalar(cx, addr)) {
		bind_error(cx, n, "D_PROTO_ARG",
			   "printt( ) takes a constant size and typeref(address, constant count, "
			   "\"name of a type\", size)");
		return false;
	}
	if (!type_parse_name(cx->types, name->s.text, &t) || !type_size(cx->types, t)) {
		bind_error(cx, n, "D_TYPE_ERR", "typeref( ): there is no type \"%s\"",
			   name->s.text);
		return false;
	}
	if (count->i.value > 1)
		t = type_new_array(cx->types, t, (uint32_t)count->i.value);
	value = make_node(cx, N_UNARY, ref);
	value->op = OP_DEREF;
	value->e.a = addr;
	value->type = t;
	value->next = most;
	addr->next = most->next = NULL;
	cast_to(cx, addr, type_new_pointer(cx->types, t));
	n->call.args = value;
	return true;
}

/* Binds pcap(struct sk_buff *, link type). */
static void bind_pcap(struct bind_cx *cx, struct node *n)
{
	struct node *skb = n->call.args, *proto = skb->next;

	if (!bind_call_args(cx, n, SUBR_PCAP))
		return;
	if (!is_const(proto))
		bind_error(
			cx, n, "D_PCAP_PROTO",
			"pcap( ) argument #2 must be an integral constant: PCAP_ETHERNET, PCAP_IP...");
	else if (opt_num(cx->options, OPT_PCAPSIZE) < 16)
		bind_error(cx, n, "D_PCAP_SIZE", "pcapsize is %lld: at least 16 bytes are needed",
			   (long long)opt_num(cx->options, OPT_PCAPSIZE));
	else {
		cast_to(cx, skb, T_UINT64);
		cast_to(cx, proto, T_INT);
	}
}

/* Binds normalize(@, f) and trunc(@, n). */
static void bind_agg_number(struct bind_cx *cx, struct node *n, enum subr_id id)
{
	if (bind_call_args(cx, n, id))
		bind_agg_ref(cx, n, n->call.args);
}

static void bind_printa(struct bind_cx *cx, struct node *n)
{
	struct node *a = n->call.args;
	int i = 1;

	if (a->kind == N_STR) {
		a->type = T_STRING;
		if (!a->next) {
			bind_error(
				cx, n, "D_PRINTA_PROTO",
				"printa( ) prototype mismatch: 1 argument passed, at least 2 expected");
			return;
		}
		if (!bind_format(cx, n, a))
			return;
		a = a->next;
		i++;
	}
	for (; a; a = a->next, i++) {
		if (!bind_agg_ref(cx, n, a))
			return;
	}
}

static void bind_setopt(struct bind_cx *cx, struct node *n)
{
	if (bind_call_args(cx, n, SUBR_SETOPT) && n->call.args->kind != N_STR)
		bind_error(cx, n, "D_PROTO_ARG", "setopt( ) argument #1 must be a string constant");
}

static void bind_action(struct bind_cx *cx, struct node *n, enum subr_id id)
{
	if (!check_flow(cx, n, id) || !check_count(cx, n, id))
		return;
	switch (id) {
	case SUBR_PRINTF:
	case SUBR_FREOPEN:
	case SUBR_SYSTEM: bind_printf(cx, n, id); break;
	case SUBR_PRINTA: bind_printa(cx, n); break;
	case SUBR_TRACE: bind_trace(cx, n); break;
	case SUBR_TRACEMEM: bind_tracemem(cx, n); break;
	case SUBR_PRINT: bind_print(cx, n); break;
	case SUBR_PCAP: bind_pcap(cx, n); break;
	case SUBR_PRINTM:
		if (bind_printm(cx, n))
			id = SUBR_TRACEMEM;
		break;
	case SUBR_PRINTT:
		if (bind_printt(cx, n))
			id = SUBR_PRINT;
		break;
	case SUBR_SETOPT: bind_setopt(cx, n); break;
	case SUBR_CLEAR:
	case SUBR_DENORMALIZE: bind_agg_ref(cx, n, n->call.args); break;
	case SUBR_NORMALIZE:
	case SUBR_TRUNC: bind_agg_number(cx, n, id); break;
	default: bind_call_args(cx, n, id); break;
	}
	if (!is_poison(n))
		set_call(cx, n, id);
}

void bind_statement(struct bind_cx *cx, struct node *n)
{
	int id;

	if (n->kind == N_AGG) {
		if (n->agg.keys || agg_is_known(cx, n->agg.name))
			bind_error(cx, n, "D_AGG_NULL", "expression has null effect: @%s",
				   n->agg.name);
		else
			bind_error(cx, n, "D_IDENT_UNDEF", "undefined aggregation: @%s",
				   n->agg.name);
		return;
	}
	if (n->kind == N_TERNARY) {
		bind_ternary(cx, n, bind_statement);
		return;
	}
	if (n->kind == N_ASSIGN && n->e.a->kind == N_AGG) {
		id = n->e.b->kind == N_CALL ? subr_find(cx, n->e.b->call.func) : -1;
		if (id < 0 || subr_table[id].kind != SUBR_KIND_AGG ||
		    check_flow(cx, n, (enum subr_id)id))
			bind_agg_assign(cx, n);
		return;
	}
	id = n->kind == N_CALL ? subr_find(cx, n->call.func) : -1;
	if (id < 0 || subr_table[id].kind != SUBR_KIND_ACTION) {
		if (id >= 0 && subr_table[id].flags & SUBR_DESTRUCTIVE &&
		    !check_flow(cx, n, (enum subr_id)id))
			return;
		bind_expr(cx, n);
		if (is_xlated(n))
			replace_node(n, n->t.a); /* the cast has no effect of its own */
		if (is_aggregating(n))
			bind_error(
				cx, n, "D_CG_EXPR",
				"aggregating function %s( ) may only be assigned to an aggregation, as in @ = %s(...)",
				n->call.func, n->call.func);
		return;
	}
	id = call_subr(cx, n);
	if (id < 0)
		return;
	if (strcmp(subr_table[id].type, "dyn"))
		bind_action(cx, n, (enum subr_id)id);
	else if (check_flow(cx, n, (enum subr_id)id))
		bind_dyn(cx, n, (enum subr_id)id);
}
