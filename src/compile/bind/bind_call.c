/* Binds subroutines, and the actions that are values: stack(), sym()... Any other action in an
 * expression has type void, which each operator refuses with its own message. */
#include "compile/bind/foreign.h"
#include "compile/bind/bind_private.h"

/* The types of the arguments of each subroutine or action, a letter for each. Arguments behind them
 * may have any type:
 *	s string     S string or 0      i integer, as 64 bits   w integer, 32 bits   h integer, 16 bits
 *	p pointer    b pointer or string: bytes    a address: pointer or integer    m struct mutex *
 *	f struct path *    6 struct in6_addr *    @ any, bound by the action itself
 */
static const char *const protos[SUBR_ID_COUNT] = {
	[SUBR_ALLOCA] = "i",
	[SUBR_BASENAME] = "s",
	[SUBR_BCOPY] = "bpi",
	[SUBR_CLEANPATH] = "s",
	[SUBR_COPYIN] = "ai",
	[SUBR_COPYINSTR] = "ai",
	[SUBR_COPYINTO] = "aip",
	[SUBR_COPYOUT] = "bai",
	[SUBR_COPYOUTSTR] = "sai",
	[SUBR_DIRNAME] = "s",
	[SUBR_D_PATH] = "f",
	[SUBR_GETF] = "i",
	[SUBR_GETMAJOR] = "i",
	[SUBR_GETMINOR] = "i",
	[SUBR_HTONL] = "w",
	[SUBR_HTONLL] = "i",
	[SUBR_HTONS] = "h",
	[SUBR_INDEX] = "ssi",
	[SUBR_INET_NTOA] = "p",
	[SUBR_INET_NTOA6] = "6i",
	[SUBR_INET_NTOP] = "ib",
	[SUBR_LINK_NTOP] = "ib",
	[SUBR_JSON] = "ss",
	[SUBR_LLTOSTR] = "ii",
	[SUBR_MEMREF] = "ai",
	[SUBR_MEMSTR] = "awi",
	[SUBR_MUTEX_OWNED] = "m",
	[SUBR_MUTEX_OWNER] = "m",
	[SUBR_MUTEX_TYPE_ADAPTIVE] = "m",
	[SUBR_MUTEX_TYPE_SPIN] = "m",
	[SUBR_NTOHL] = "w",
	[SUBR_NTOHLL] = "i",
	[SUBR_NTOHS] = "h",
	[SUBR_PROGENYOF] = "i",
	[SUBR_RAND] = "",
	[SUBR_RINDEX] = "ssi",
	[SUBR_RW_ISWRITER] = "p",
	[SUBR_RW_READ_HELD] = "p",
	[SUBR_RW_WRITE_HELD] = "p",
	[SUBR_SPECULATION] = "",
	[SUBR_STRCHR] = "sw",
	[SUBR_STRJOIN] = "ss",
	[SUBR_STRLEN] = "s",
	[SUBR_STRRCHR] = "sw",
	[SUBR_STRSTR] = "ss",
	[SUBR_STRTOK] = "Ss",
	[SUBR_STRTOLL] = "si",
	[SUBR_SUBSTR] = "sii",
	[SUBR_TOLOWER] = "s",
	[SUBR_TOUPPER] = "s",
	[SUBR_FS_PATH] = "p",
	[SUBR_FILE_PATH] = "p",
	[SUBR_PSARGS] = "p",
	[SUBR_DENTRY_PATH] = "p",
	[SUBR_MOUNT_POINT] = "p",
	[SUBR_JAVA_ARG] = "iiii",
	[SUBR_JAVA_TEXT] = "iii",
	[SUBR_BY_ID] = "i",
	[SUBR_CPU_CHIP] = "i",
	[SUBR_CPU_NODE] = "i",
	[SUBR_LOAD] = "i",
	[SUBR_MEMORY] = "i",
	[SUBR_CPU_MHZ] = "i",
	[SUBR_FUNC] = "a",
	[SUBR_MOD] = "a",
	[SUBR_SYM] = "a",
	[SUBR_UADDR] = "a",
	[SUBR_UFUNC] = "a",
	[SUBR_UMOD] = "a",
	[SUBR_USYM] = "a",
	[SUBR_EXIT] = "w",
	[SUBR_CHILL] = "i",
	[SUBR_RAISE] = "w",
	[SUBR_SPECULATE] = "w",
	[SUBR_COMMIT] = "w",
	[SUBR_DISCARD] = "w",
	[SUBR_SETOPT] = "ss",
	[SUBR_FTRUNCATE] = "",
	[SUBR_STOP] = "",
	[SUBR_CLEAR] = "@",
	[SUBR_DENORMALIZE] = "@",
	[SUBR_NORMALIZE] = "@i",
	[SUBR_TRUNC] = "@i",
	[SUBR_TRACE] = "@",
	[SUBR_TRACEMEM] = "@ii",
	[SUBR_PRINT] = "@",
	[SUBR_PCAP] = "ai",
	[SUBR_PRINTF] = "s",
	[SUBR_STACK] = "i",
	[SUBR_USTACK] = "ii",
	[SUBR_JSTACK] = "ii",
	[SUBR_LSTACK] = "ii",
};

static const struct {
	char letter;
	const char *what;
} letters[] = {
	{ 's', "string" },
	{ 'S', "string" },
	{ 'i', "integer" },
	{ 'w', "integer" },
	{ 'h', "integer" },
	{ 'p', "pointer" },
	{ 'b', "pointer" },
	{ 'a', "address" },
	{ 'm', "struct mutex *" },
	{ 'f', "struct path *" },
	{ '6', "struct in6_addr *" },
};

/* Functions of other DTraces that descry refuses, with the reason. */
static const struct {
	const char *name, *reason;
} unsupported[] = {
	{ "breakpoint", "a BPF program cannot enter a debugger" },
	{ "panic", "a BPF program cannot stop the machine" },
	{ "msgsize", "Linux has no STREAMS messages" },
	{ "msgdsize", "Linux has no STREAMS messages" },
	{ "ddi_pathname", "Linux has no DDI" },
};

bool check_count(struct bind_cx *cx, struct node *n, enum subr_id id)
{
	const struct subr_info *s = &subr_table[id];
	int have = (int)list_length(n->call.args);

	if (have >= s->min && (s->max < 0 || have <= s->max))
		return true;
	bind_error(cx, n, "D_PROTO_LEN",
		   "%s( ) prototype mismatch: %d argument%s passed, %s%d expected", s->name, have,
		   have == 1 ? "" : "s",
		   s->min == s->max ? ""
		   : have < s->min  ? "at least "
				    : "at most ",
		   have < s->min ? s->min : s->max);
	return false;
}

/* Returns true when a is a pointer to the type of `letter`. 0 is any pointer. */
static bool is_pointer_to(struct bind_cx *cx, struct node *a, char letter)
{
	const char *tag = letter == 'm'   ? "mutex"
			  : letter == 'f' ? "path"
			  : letter == '6' ? "in6_addr"
					  : NULL;
	type_id to;

	if (is_const(a) && is_integer(cx, a) && !a->i.value) {
		cast_to(cx, a, T_VOIDPTR);
		return true;
	}
	if (!type_is_pointer(cx->types, a->type))
		return false;
	to = pointee(cx, a->type);
	return !tag || to == T_VOID ||
	       (type_is_sou(cx->types, to) && !strcmp(type_tag(cx->types, to), tag));
}

/* Converts a to the type of `letter`. Returns false when this is not possible. */
static bool convert_arg(struct bind_cx *cx, struct node *a, char letter)
{
	struct type_graph *g = cx->types;

	if (is_xlated(a) || a->type == T_DYN || a->type == T_VOID)
		return false;
	if (letter == 's') {
		if (is_const(a) && !a->i.value) /* NULL: a fault at run time */
			cast_to(cx, a, type_new_pointer(g, T_CHAR));
		return to_string(cx, a);
	}
	if (letter == 'S')
		return (is_const(a) && !a->i.value) || to_string(cx, a);
	if (type_is_string(g, a->type) && letter == 'b')
		return true;
	decay(cx, a);
	switch (letter) {
	case 'i':
		if (!is_integer(cx, a))
			return false;
		cast_to(cx, a,
			type_is_signed(g, a->type) || type_size(g, a->type) < 8 ? T_INT64
										: T_UINT64);
		return true;
	case 'w':
	case 'h':
		if (!is_integer(cx, a))
			return false;
		cast_to(cx, a,
			letter == 'h'                ? T_UINT16
			: type_is_signed(g, a->type) ? T_INT
						     : T_UINT);
		return true;
	case 'p':
	case 'b':
	case 'm':
	case 'f':
	case '6': return is_pointer_to(cx, a, letter);
	case 'a':
		if (!is_scalar(cx, a))
			return false;
		cast_to(cx, a, T_UINT64);
		return true;
	default: return false;
	}
}

static const char *letter_text(char letter)
{
	for (size_t i = 0; i < ARRAY_SIZE(letters); i++) {
		if (letters[i].letter == letter)
			return letters[i].what;
	}
	return "";
}

/* Reports a constant size that exceeds the scratch memory. */
static void check_scratch(struct bind_cx *cx, struct node *n, const struct node *size)
{
	int64_t most = opt_num(cx->options, OPT_SCRATCHSIZE);

	if (size && is_const(size) && size->i.value > (uint64_t)most)
		bind_error(cx, n, "D_ALLOCA_SIZE",
			   "%s( ) of %lld bytes: scratch memory has %lld (-x scratchsize)",
			   n->call.func, (long long)size->i.value, (long long)most);
}

bool bind_call_args(struct bind_cx *cx, struct node *n, enum subr_id id)
{
	const char *p = protos[id];
	int i = 1;

	for (struct node *a = n->call.args; a; a = a->next, i++) {
		char letter = p && *p ? *p++ : '@';

		bind_expr(cx, a);
		if (is_poison(a)) {
			poison(n);
			return false;
		}
		if (letter != '@' && !convert_arg(cx, a, letter)) {
			bind_error(
				cx, n, "D_PROTO_ARG",
				"%s( ) argument #%d is incompatible with prototype: prototype: %s, "
				"argument: %s",
				subr_table[id].name, i, letter_text(letter), value_text(cx, a));
			return false;
		}
	}
	if (id == SUBR_INET_NTOA6 && n->call.args->next && !is_const(n->call.args->next))
		bind_error(cx, n, "D_PROTO_ARG",
			   "inet_ntoa6( ) argument #2 must be an integer constant");
	if (id == SUBR_ALLOCA || id == SUBR_COPYIN)
		check_scratch(cx, n, id == SUBR_ALLOCA ? n->call.args : n->call.args->next);
	return !is_poison(n);
}

void set_call(struct bind_cx *cx, struct node *n, enum subr_id id)
{
	const char *type = subr_table[id].type;

	n->id = arena_new(cx->arena, struct bind_ident);
	n->id->kind = IDENT_SUBR;
	n->id->subr = id;
	n->type = T_VOID;
	if (!strcmp(type, "dyn"))
		n->type = T_DYN;
	else if (strcmp(type, "void") && !type_parse_name(cx->types, type, &n->type))
		bind_error(cx, n, "D_TYPE_ERR", "type %s of %s( ) is not known: %s", type,
			   subr_table[id].name,
			   type_kernel_err(cx->types) ? type_kernel_err(cx->types)
						      : "the kernel has no such type");
	attr_check(cx, n, subr_table[id].name, ATTR_STABLE);
	if (subr_table[id].flags & SUBR_DESTRUCTIVE)
		cx->state->out->destructive = true;
}

int call_subr(struct bind_cx *cx, struct node *n)
{
	const char *foreign = foreign_word(n->call.func);
	struct nearest near = { .word = n->call.func };
	int id = subr_find(cx, n->call.func);
	const void *key;
	size_t len;
	uint64_t *val;

	for (size_t i = 0;
	     i < ARRAY_SIZE(unsupported) && (id < 0 || subr_table[id].flags & SUBR_UNSUPPORTED);
	     i++) {
		if (!strcmp(unsupported[i].name, n->call.func)) {
			if (id >= 0 && (!check_count(cx, n, (enum subr_id)id) ||
					(subr_table[id].kind == SUBR_KIND_ACTION &&
					 !check_flow(cx, n, (enum subr_id)id))))
				return -1;
			bind_error(cx, n, "D_UNKNOWN", "%s( ) is not available on Linux: %s",
				   n->call.func, unsupported[i].reason);
			return -1;
		}
	}
	if (id >= 0 && !(subr_table[id].flags & SUBR_UNSUPPORTED) &&
	    (!(subr_table[id].flags & SUBR_INTERNAL) || cx->state->in_lib))
		return id;
	if (var_find(cx, SCOPE_NONE, n->call.func) || builtin_find(cx, n->call.func) >= 0) {
		bind_error(cx, n, "D_FUNC_IDKIND", "'%s' is not a function", n->call.func);
		return -1;
	}
	for (int i = 0; i < SUBR_ID_COUNT; i++) {
		if (!(subr_table[i].flags & (SUBR_INTERNAL | SUBR_UNSUPPORTED)))
			nearest_offer(&near, subr_table[i].name);
	}
	for (uint32_t pos = 0;
	     !diags_full(cx->diags) && hash_next(&cx->state->funcs, &pos, &key, &len, &val);)
		nearest_offer(&near, ((struct func_def *)(uintptr_t)*val)->name);
	if (foreign)
		near.name = NULL;
	bind_error(cx, n, "D_FUNC_UNDEF", "undefined function name: %s%s%s%s", near.word,
		   near.name ? " (did you mean " : "", near.name ? near.name : "",
		   near.name ? "?)" : "");
	if (foreign)
		diag_note(cx->diags, n->loc, n->end, "%s", foreign);
	return -1;
}

/* --- stack() and ustack(): the sizes become explicit --- */

bool positive_const(struct bind_cx *cx, const struct node *a)
{
	return is_const(a) && is_integer(cx, a) && a->i.value && (int64_t)a->i.value > 0;
}

static void bind_stack(struct bind_cx *cx, struct node *n, enum subr_id id)
{
	bool user = id != SUBR_STACK;
	const char *name = subr_table[id].name;
	struct node *a = n->call.args, *b;
	int64_t frames, max = opt_num(cx->options, OPT_MAXFRAMES);

	if (a && !positive_const(cx, a)) {
		bind_error(
			cx, n, user ? "D_USTACK_FRAMES" : "D_STACK_SIZE",
			user ? "%s( ) argument #1 must be a non-zero positive integer constant"
			     : "%s( ) size must be a non-zero positive integral constant expression",
			name);
		return;
	}
	b = a ? a->next : NULL;
	if (b && (!is_const(b) || (int64_t)b->i.value < 0)) {
		bind_error(cx, n, "D_USTACK_STRSIZE",
			   "%s( ) argument #2 must be a positive integer constant", name);
		return;
	}
	frames = a ? (int64_t)a->i.value
		   : opt_num(cx->options, user ? OPT_USTACKFRAMES : OPT_STACKFRAMES);
	if (frames > max)
		frames = max;
	n->call.args = int_node(cx, n, (uint64_t)(frames > 0 ? frames : 1), T_INT);
	n->call.args->next = b;
}

void bind_dyn(struct bind_cx *cx, struct node *n, enum subr_id id)
{
	if (!check_count(cx, n, id) || !bind_call_args(cx, n, id))
		return;
	if (id == SUBR_STACK || id == SUBR_USTACK || id == SUBR_JSTACK || id == SUBR_LSTACK)
		bind_stack(cx, n, id);
	if (!is_poison(n))
		set_call(cx, n, id);
}

void bind_call(struct bind_cx *cx, struct node *n)
{
	struct func_def *def = func_find(cx, n->call.func);
	int id;

	if (def) {
		expand_function(cx, n, def);
		return;
	}
	id = call_subr(cx, n);
	if (id < 0)
		return;
	if (subr_table[id].kind == SUBR_KIND_ACTION && !strcmp(subr_table[id].type, "dyn")) {
		bind_dyn(cx, n, (enum subr_id)id);
		return;
	}
	if (id == SUBR_TYPEREF) {
		bind_error(cx, n, "D_PROTO_ARG",
			   "typeref( ) may only be the second argument of printt( )");
		return;
	}
	if (!check_count(cx, n, (enum subr_id)id) || !bind_call_args(cx, n, (enum subr_id)id))
		return;
	set_call(cx, n, (enum subr_id)id);
	if (is_aggregating(n))
		n->type = T_DYN;
}
