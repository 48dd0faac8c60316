/* The type graph: nodes, look-ups, queries, and new types. */
#include "type_private.h"

#include <assert.h>
#include <limits.h>
#include <string.h>

#include "wire/wire_record.h"

static const struct builtin {
	const char *name;
	uint8_t kind, size, flags;
	uint8_t ref; /* kind has ref: typedefs and pointers */
} builtins[T_BUILTIN_COUNT] = {
	[T_VOID] = { "void", TYPE_VOID, 0, 0, 0 },
	[T_CHAR] = { "char", TYPE_INT, 1, TYPE_SIGNED | TYPE_CHAR, 0 },
	[T_SCHAR] = { "signed char", TYPE_INT, 1, TYPE_SIGNED | TYPE_CHAR, 0 },
	[T_UCHAR] = { "unsigned char", TYPE_INT, 1, TYPE_CHAR, 0 },
	[T_SHORT] = { "short", TYPE_INT, 2, TYPE_SIGNED, 0 },
	[T_USHORT] = { "unsigned short", TYPE_INT, 2, 0, 0 },
	[T_INT] = { "int", TYPE_INT, 4, TYPE_SIGNED, 0 },
	[T_UINT] = { "unsigned int", TYPE_INT, 4, 0, 0 },
	[T_LONG] = { "long", TYPE_INT, 8, TYPE_SIGNED, 0 },
	[T_ULONG] = { "unsigned long", TYPE_INT, 8, 0, 0 },
	[T_LLONG] = { "long long", TYPE_INT, 8, TYPE_SIGNED, 0 },
	[T_ULLONG] = { "unsigned long long", TYPE_INT, 8, 0, 0 },
	[T_BOOL] = { "_Bool", TYPE_INT, 1, TYPE_BOOL, 0 },
	[T_FLOAT] = { "float", TYPE_FLOAT, 4, 0, 0 },
	[T_DOUBLE] = { "double", TYPE_FLOAT, 8, 0, 0 },
	[T_LDOUBLE] = { "long double", TYPE_FLOAT, 16, 0, 0 },
	[T_STRING] = { "string", TYPE_STRING, 0, 0, 0 },
	[T_DYN] = { "<DYN>", TYPE_DYN, 0, 0, 0 },
	[T_VOIDPTR] = { "", TYPE_POINTER, 8, 0, T_VOID },
	[T_CHARPTR] = { "", TYPE_POINTER, 8, 0, T_CHAR },
	[T_INT8] = { "int8_t", TYPE_TYPEDEF, 0, 0, T_SCHAR },
	[T_INT16] = { "int16_t", TYPE_TYPEDEF, 0, 0, T_SHORT },
	[T_INT32] = { "int32_t", TYPE_TYPEDEF, 0, 0, T_INT },
	[T_INT64] = { "int64_t", TYPE_TYPEDEF, 0, 0, T_LONG },
	[T_UINT8] = { "uint8_t", TYPE_TYPEDEF, 0, 0, T_UCHAR },
	[T_UINT16] = { "uint16_t", TYPE_TYPEDEF, 0, 0, T_USHORT },
	[T_UINT32] = { "uint32_t", TYPE_TYPEDEF, 0, 0, T_UINT },
	[T_UINT64] = { "uint64_t", TYPE_TYPEDEF, 0, 0, T_ULONG },
	[T_INTPTR] = { "intptr_t", TYPE_TYPEDEF, 0, 0, T_LONG },
	[T_UINTPTR] = { "uintptr_t", TYPE_TYPEDEF, 0, 0, T_ULONG },
	[T_SIZE] = { "size_t", TYPE_TYPEDEF, 0, 0, T_ULONG },
	[T_SSIZE] = { "ssize_t", TYPE_TYPEDEF, 0, 0, T_LONG },
	[T_PTRDIFF] = { "ptrdiff_t", TYPE_TYPEDEF, 0, 0, T_LONG },
	[T_UCHAR_T] = { "uchar_t", TYPE_TYPEDEF, 0, 0, T_UCHAR },
	[T_USHORT_T] = { "ushort_t", TYPE_TYPEDEF, 0, 0, T_USHORT },
	[T_UINT_T] = { "uint_t", TYPE_TYPEDEF, 0, 0, T_UINT },
	[T_ULONG_T] = { "ulong_t", TYPE_TYPEDEF, 0, 0, T_ULONG },
	[T_LONGLONG_T] = { "longlong_t", TYPE_TYPEDEF, 0, 0, T_LLONG },
	[T_U_LONGLONG_T] = { "u_longlong_t", TYPE_TYPEDEF, 0, 0, T_ULLONG },
	[T_PID] = { "pid_t", TYPE_TYPEDEF, 0, 0, T_INT },
	[T_ID] = { "id_t", TYPE_TYPEDEF, 0, 0, T_INT },
	[T_UID] = { "uid_t", TYPE_TYPEDEF, 0, 0, T_UINT },
	[T_GID] = { "gid_t", TYPE_TYPEDEF, 0, 0, T_UINT },
};

struct derived_key {
	uint32_t kind, ref, nelems;
};

/* --- nodes --- */

type_id tnode_new(struct type_graph *g, enum type_kind kind, const char *name)
{
	struct tnode *n;

	if (g->n == g->chunks.n * CHUNK)
		vec_push(&g->chunks, xcalloc(CHUNK, sizeof(struct tnode)));
	n = &g->chunks.v[g->n / CHUNK][g->n % CHUNK];
	n->kind = (uint8_t)kind;
	n->name = name ? name : "";
	return g->n++;
}

char graph_space(enum type_kind kind)
{
	switch (kind) {
	case TYPE_STRUCT: return 'S';
	case TYPE_UNION: return 'U';
	case TYPE_ENUM: return 'E';
	default: return 'T';
	}
}

/* Writes the key of a name: its space, then the name. A name too long for buf gets no key. */
static size_t name_key(char *buf, size_t size, char space, const char *name)
{
	size_t n = strlen(name);

	if (n + 1 > size)
		return 0;
	buf[0] = space;
	memcpy(buf + 1, name, n);
	return n + 1;
}

static void graph_name(struct type_graph *g, char space, const char *name, uint64_t value)
{
	char key[512];
	size_t n = name_key(key, sizeof(key), space, name);

	if (n > 1)
		*hash_put(&g->names, key, n, NULL) = value;
}

static bool graph_named(struct type_graph *g, char space, const char *name, uint64_t *ret)
{
	char key[512];
	size_t n = name_key(key, sizeof(key), space, name);
	uint64_t *v = n > 1 ? hash_get(&g->names, key, n) : NULL;

	if (v)
		*ret = *v;
	return v;
}

static void add_builtins(struct type_graph *g)
{
	for (uint32_t i = 0; i < T_BUILTIN_COUNT; i++) {
		const struct builtin *b = &builtins[i];
		type_id t = tnode_new(g, b->kind, b->name);
		struct tnode *n = tnode(g, t);

		assert(t == i && b->name);
		n->size = n->align = b->size;
		n->flags = b->flags;
		n->ref = b->ref;
		if (b->kind == TYPE_TYPEDEF || b->kind == TYPE_STRING)
			graph_name(g, 'T', b->name, i);
		if (b->kind == TYPE_POINTER) {
			struct derived_key key = { TYPE_POINTER, b->ref, 0 };

			*hash_put(&g->derived, &key, sizeof(key), NULL) = i;
		}
	}
}

struct type_graph *type_graph_new(void)
{
	struct type_graph *g = xcalloc(1, sizeof(*g));

	arena_init(&g->arena);
	g->strsize = 256;
	add_builtins(g);
	return g;
}

void type_graph_free(struct type_graph *g)
{
	if (!g)
		return;
	kernel_fini(g);
	user_fini(g);
	for (uint32_t i = 0; i < g->chunks.n; i++)
		free(g->chunks.v[i]);
	vec_fini(&g->chunks);
	vec_fini(&g->constants);
	hash_fini(&g->names);
	hash_fini(&g->derived);
	arena_fini(&g->arena);
	free(g);
}

/* --- looking up --- */

bool type_lookup(struct type_graph *g, const char *module, enum type_kind kind, const char *name,
		 type_id *ret)
{
	bool any = !module || !*module,
	     own = !any && (!strcmp(module, "D") || !strcmp(module, "C"));
	uint64_t v;

	if (!name || !*name)
		return false;
	if (any || own) {
		if (graph_named(g, graph_space(kind), name, &v)) {
			*ret = (type_id)v;
			return true;
		}
		if (kind == TYPE_TYPEDEF && name_base_type(name, ret))
			return true;
	}
	return !own && (kernel_lookup(g, module, kind, name, ret) ||
			user_lookup(g, module, kind, name, ret));
}

bool type_enumerator(struct type_graph *g, const char *name, int64_t *ret_value, type_id *ret_enum)
{
	uint64_t v;

	if (!graph_named(g, 'C', name, &v))
		return kernel_enumerator(g, name, ret_value, ret_enum) ||
		       user_enumerator(g, name, ret_value, ret_enum);
	*ret_value = g->constants.v[v].value;
	*ret_enum = g->constants.v[v].type;
	return true;
}

/* --- queries --- */

enum type_kind type_kind(struct type_graph *g, type_id t)
{
	return tnode(g, t)->kind;
}

const char *type_tag(struct type_graph *g, type_id t)
{
	return tnode(g, t)->name;
}

type_id type_ref(struct type_graph *g, type_id t)
{
	struct tnode *n = tnode(g, t);

	if (n->ref_pending && n->user)
		user_load_ref(g, n);
	else if (n->ref_pending)
		kernel_load_ref(g, n);
	return n->ref;
}

/* Returns the complete struct or union for a forward declaration with the same tag, or t when there
 * is none. */
static type_id completed(struct type_graph *g, type_id t)
{
	struct tnode *n = tnode(g, t);
	enum type_kind kind = n->is_union ? TYPE_UNION : TYPE_STRUCT;
	uint64_t v;
	type_id full;

	if (!*n->name)
		return t;
	if (n->user && user_lookup(g, NULL, kind, n->name, &full) && tnode(g, full)->complete)
		return full;
	if (graph_named(g, graph_space(kind), n->name, &v) && v != t &&
	    tnode(g, (type_id)v)->complete)
		return (type_id)v;
	/* The kernel's struct of the same tag is another one than a program's. */
	if (!n->user && kernel_lookup(g, NULL, kind, n->name, &full) && tnode(g, full)->complete)
		return full;
	return t;
}

type_id type_strip(struct type_graph *g, type_id t)
{
	for (uint32_t i = 0; i < CHAIN_LIMIT; i++) {
		struct tnode *n = tnode(g, t);

		switch (n->kind) {
		case TYPE_TYPEDEF:
		case TYPE_CONST:
		case TYPE_VOLATILE:
		case TYPE_RESTRICT: t = type_ref(g, t); break;
		case TYPE_STRUCT:
		case TYPE_UNION: return n->complete || n->nparts ? t : completed(g, t);
		case TYPE_FORWARD: return completed(g, t);
		default: return t < g->n ? t : T_VOID;
		}
	}
	return T_VOID;
}

uint64_t type_size(struct type_graph *g, type_id t)
{
	uint64_t size = 1;

	for (uint32_t i = 0; i < CHAIN_LIMIT; i++) {
		struct tnode *n;

		t = type_strip(g, t);
		n = tnode(g, t);
		if (n->kind == TYPE_STRING)
			return size * g->strsize;
		if (n->kind != TYPE_ARRAY)
			return __builtin_mul_overflow(size, n->size, &size) ? 0 : size;
		if (__builtin_mul_overflow(size, n->nelems, &size))
			return 0;
		t = type_ref(g, t);
	}
	return 0;
}

uint32_t type_align(struct type_graph *g, type_id t)
{
	for (uint32_t i = 0; i < CHAIN_LIMIT; i++) {
		struct tnode *n;

		t = type_strip(g, t);
		n = tnode(g, t);
		switch (n->kind) {
		case TYPE_ARRAY: t = type_ref(g, t); break;
		case TYPE_STRUCT:
		case TYPE_UNION: return layout_align(g, t);
		case TYPE_INT:
		case TYPE_FLOAT:
		case TYPE_ENUM:
		case TYPE_POINTER: return n->size && n->size <= 16 ? (uint32_t)n->size : 1;
		default: return 1;
		}
	}
	return 1;
}

uint32_t type_int_flags(struct type_graph *g, type_id t)
{
	struct tnode *n = tnode(g, type_strip(g, t));

	return n->kind == TYPE_INT || n->kind == TYPE_ENUM ? n->flags : 0;
}

uint32_t type_nelems(struct type_graph *g, type_id t)
{
	return tnode(g, type_strip(g, t))->nelems;
}

/* Returns the node of t with its members loaded when it has one of two kinds, else NULL. */
static struct tnode *with_parts(struct type_graph *g, type_id t, enum type_kind a, enum type_kind b)
{
	struct tnode *n = tnode(g, type_strip(g, t));

	if (n->kind != a && n->kind != b)
		return NULL;
	if (n->parts_pending && n->user)
		user_load_parts(g, n);
	else if (n->parts_pending)
		kernel_load_parts(g, n);
	return n;
}

const struct type_member *type_members(struct type_graph *g, type_id t, uint32_t *ret_n)
{
	struct tnode *n = with_parts(g, t, TYPE_STRUCT, TYPE_UNION);

	*ret_n = n ? n->nparts : 0;
	return n ? n->members : NULL;
}

const struct type_enumerator *type_enumerators(struct type_graph *g, type_id t, uint32_t *ret_n)
{
	struct tnode *n = with_parts(g, t, TYPE_ENUM, TYPE_ENUM);

	*ret_n = n ? n->nparts : 0;
	return n ? n->enumerators : NULL;
}

const struct type_param *type_params(struct type_graph *g, type_id t, uint32_t *ret_n,
				     bool *ret_varargs)
{
	struct tnode *n = with_parts(g, t, TYPE_FUNC, TYPE_FUNC);

	*ret_n = n ? n->nparts : 0;
	if (ret_varargs)
		*ret_varargs = n && n->varargs;
	return n ? n->params : NULL;
}

static bool find_member(struct type_graph *g, type_id t, const char *name, uint32_t depth,
			uint32_t *work, struct type_member *ret)
{
	uint32_t n;
	const struct type_member *m = type_members(g, t, &n);

	if (depth == NEST_LIMIT)
		return false;
	for (uint32_t i = 0; i < n; i++) {
		if (++*work > WORK_LIMIT)
			return false;
		if (!strcmp(m[i].name, name)) {
			*ret = m[i];
			return true;
		}
		if (!*m[i].name && find_member(g, m[i].type, name, depth + 1, work, ret)) {
			ret->bit_offset += m[i].bit_offset;
			return true;
		}
	}
	return false;
}

bool type_find_member(struct type_graph *g, type_id t, const char *name, struct type_member *ret)
{
	uint32_t work = 0;

	return *name && find_member(g, t, name, 0, &work, ret);
}

static bool is_kind(struct type_graph *g, type_id t, enum type_kind kind)
{
	return tnode(g, type_strip(g, t))->kind == kind;
}

bool type_is_integer(struct type_graph *g, type_id t)
{
	return is_kind(g, t, TYPE_INT) || is_kind(g, t, TYPE_ENUM);
}

bool type_is_signed(struct type_graph *g, type_id t)
{
	return type_int_flags(g, t) & TYPE_SIGNED;
}

bool type_is_pointer(struct type_graph *g, type_id t)
{
	return is_kind(g, t, TYPE_POINTER);
}

bool type_is_string(struct type_graph *g, type_id t)
{
	return is_kind(g, t, TYPE_STRING);
}

bool type_is_scalar(struct type_graph *g, type_id t)
{
	return type_is_integer(g, t) || type_is_pointer(g, t);
}

bool type_is_sou(struct type_graph *g, type_id t)
{
	return is_kind(g, t, TYPE_STRUCT) || is_kind(g, t, TYPE_UNION) ||
	       is_kind(g, t, TYPE_FORWARD);
}

/* Returns true for a text char. As in DTrace, unsigned char is a byte, not text. */
static bool is_text_char(struct type_graph *g, type_id t)
{
	struct tnode *n = tnode(g, type_strip(g, t));

	return n->kind == TYPE_INT && n->size == 1 &&
	       (n->flags & (TYPE_CHAR | TYPE_SIGNED)) == (TYPE_CHAR | TYPE_SIGNED);
}

bool type_is_char_array(struct type_graph *g, type_id t)
{
	return is_kind(g, t, TYPE_ARRAY) && is_text_char(g, type_ref(g, type_strip(g, t)));
}

bool type_is_char_pointer(struct type_graph *g, type_id t)
{
	return is_kind(g, t, TYPE_POINTER) && is_text_char(g, type_ref(g, type_strip(g, t)));
}

static bool same(struct type_graph *g, type_id a, type_id b, uint32_t depth, uint32_t *work)
{
	struct tnode *x, *y;
	uint32_t nx, ny;
	bool vx, vy;
	const struct type_param *px, *py;

	a = type_strip(g, a);
	b = type_strip(g, b);
	x = tnode(g, a);
	y = tnode(g, b);
	if (a == b)
		return true;
	if (x->kind != y->kind || depth == CHAIN_LIMIT || ++*work > WORK_LIMIT)
		return false;
	switch (x->kind) {
	case TYPE_INT:
	case TYPE_FLOAT: return x->size == y->size && x->flags == y->flags;
	case TYPE_ARRAY:
		if (x->nelems != y->nelems)
			return false;
		/* fallthrough */
	case TYPE_POINTER: return same(g, type_ref(g, a), type_ref(g, b), depth + 1, work);
	case TYPE_STRUCT:
	case TYPE_UNION:
	case TYPE_ENUM:
	case TYPE_FORWARD:
		return *x->name && !strcmp(x->name, y->name) && x->is_union == y->is_union;
	case TYPE_FUNC:
		px = type_params(g, a, &nx, &vx);
		py = type_params(g, b, &ny, &vy);
		if (nx != ny || vx != vy ||
		    !same(g, type_ref(g, a), type_ref(g, b), depth + 1, work))
			return false;
		for (uint32_t i = 0; i < nx; i++) {
			if (!same(g, px[i].type, py[i].type, depth + 1, work))
				return false;
		}
		return true;
	default: return true;
	}
}

bool type_same(struct type_graph *g, type_id a, type_id b)
{
	uint32_t work = 0;

	return same(g, a, b, 0, &work);
}

bool type_is_complete(struct type_graph *g, type_id t)
{
	for (uint32_t i = 0; i < CHAIN_LIMIT; i++) {
		struct tnode *n;

		t = type_strip(g, t);
		n = tnode(g, t);
		switch (n->kind) {
		case TYPE_ARRAY: t = type_ref(g, t); break;
		case TYPE_STRUCT:
		case TYPE_UNION:
		case TYPE_ENUM: return n->complete;
		default:
			return n->kind != TYPE_VOID && n->kind != TYPE_FUNC &&
			       n->kind != TYPE_FORWARD;
		}
	}
	return false;
}

/* --- new types --- */

static type_id derived(struct type_graph *g, enum type_kind kind, type_id ref, uint32_t nelems)
{
	struct derived_key key = { kind, ref, nelems };
	bool fresh;
	uint64_t *v = hash_put(&g->derived, &key, sizeof(key), &fresh);
	struct tnode *n;
	type_id t;

	if (!fresh)
		return (type_id)*v;
	t = tnode_new(g, kind, NULL);
	*v = t;
	n = tnode(g, t);
	n->ref = ref;
	n->nelems = nelems;
	if (kind == TYPE_POINTER)
		n->size = n->align = 8;
	return t;
}

type_id type_new_pointer(struct type_graph *g, type_id ref)
{
	return derived(g, TYPE_POINTER, ref, 0);
}

type_id type_new_array(struct type_graph *g, type_id ref, uint32_t nelems)
{
	return derived(g, TYPE_ARRAY, ref, nelems);
}

type_id type_new_qualified(struct type_graph *g, enum type_kind kind, type_id ref)
{
	assert(kind == TYPE_CONST || kind == TYPE_VOLATILE || kind == TYPE_RESTRICT);
	return tnode(g, ref)->kind == kind ? ref : derived(g, kind, ref, 0);
}

type_id type_new_typedef(struct type_graph *g, const char *name, type_id ref)
{
	type_id t = tnode_new(g, TYPE_TYPEDEF, arena_strdup(&g->arena, name));

	tnode(g, t)->ref = ref;
	graph_name(g, 'T', name, t);
	return t;
}

type_id type_new_func(struct type_graph *g, type_id result, const struct type_param *params,
		      uint32_t n, bool varargs)
{
	type_id t = tnode_new(g, TYPE_FUNC, NULL);
	struct tnode *node = tnode(g, t);

	node->ref = result;
	node->varargs = varargs;
	node->nparts = n;
	node->params = arena_array(&g->arena, struct type_param, n);
	for (uint32_t i = 0; i < n; i++) {
		node->params[i].type = params[i].type;
		node->params[i].name =
			arena_strdup(&g->arena, params[i].name ? params[i].name : "");
	}
	return t;
}

type_id type_new_sou(struct type_graph *g, enum type_kind struct_or_union, const char *tag)
{
	char space = graph_space(struct_or_union);
	uint64_t known;
	type_id t;

	assert(struct_or_union == TYPE_STRUCT || struct_or_union == TYPE_UNION);
	/* `struct x;` and a later `struct x { ... }` are one type. */
	if (graph_named(g, space, tag, &known) && !tnode(g, (type_id)known)->complete &&
	    !tnode(g, (type_id)known)->nparts)
		return (type_id)known;
	t = tnode_new(g, struct_or_union, arena_strdup(&g->arena, tag));
	tnode(g, t)->is_union = struct_or_union == TYPE_UNION;
	graph_name(g, space, tag, t);
	return t;
}

type_id type_new_enum(struct type_graph *g, const char *tag)
{
	type_id t = tnode_new(g, TYPE_ENUM, arena_strdup(&g->arena, tag));

	tnode(g, t)->size = tnode(g, t)->align = 4;
	tnode(g, t)->complete = true;
	graph_name(g, 'E', tag, t);
	return t;
}

/* Adds a constant. The enum's type is the smallest of unsigned int, int, unsigned long and long
 * that holds all constants, as in gcc. */
void type_add_enumerator(struct type_graph *g, type_id en, const char *name, int64_t value)
{
	struct tnode *n = tnode(g, en);
	uint32_t first;

	assert(n->kind == TYPE_ENUM && !n->parts_pending);
	if (n->nparts == n->cap) {
		struct type_enumerator *old = n->enumerators;

		n->cap = n->cap ? n->cap * 2 : 8;
		n->enumerators = arena_array(&g->arena, struct type_enumerator, n->cap);
		if (n->nparts)
			memcpy(n->enumerators, old, n->nparts * sizeof(*old));
	}
	n->enumerators[n->nparts++] =
		(struct type_enumerator){ arena_strdup(&g->arena, name), value };
	graph_name(g, 'C', name, g->constants.n);
	vec_push(&g->constants, (struct constant){ en, value });

	/* The first negative constant changes the range of all others. Otherwise test only the new
	 * constant. */
	first = value < 0 && !(n->flags & TYPE_SIGNED) ? 0 : n->nparts - 1;
	if (value < 0)
		n->flags |= TYPE_SIGNED;
	if (!first)
		n->size = 4;
	for (uint32_t i = first; i < n->nparts; i++) {
		int64_t v = n->enumerators[i].value;

		if (n->flags & TYPE_SIGNED ? v < INT_MIN || v > INT_MAX : v > UINT_MAX)
			n->size = 8;
	}
	n->align = (uint32_t)n->size;
}

void type_set_strsize(struct type_graph *g, int64_t bytes)
{
	g->strsize = bytes > WIRE_STRING_MAX ? WIRE_STRING_MAX : (uint32_t)bytes;
}
