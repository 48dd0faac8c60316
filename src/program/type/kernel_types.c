/* Kernel BTF as part of the graph. Finds and opens files when first needed, and turns records into
 * nodes one by one. */
#define _GNU_SOURCE
#include <dirent.h>
#include <string.h>

#include "type_private.h"

#define VMLINUX_BTF "/sys/kernel/btf/vmlinux"
#define TRACEPOINT_PREFIX "btf_trace_"

enum { VMLINUX = 0 };

static struct kernel_file *file_add(struct type_graph *g, const char *module, char *path)
{
	struct kernel_file *k = xcalloc(1, sizeof(*k));

	k->module = xstrdup(module);
	k->path = path;
	vec_push(&g->files, k);
	return k;
}

void type_use_kernel(struct type_graph *g, const char *btf_path)
{
	if (g->kernel_tried)
		return;
	free(g->kernel_path);
	g->kernel_path = xstrdup(btf_path ? btf_path : VMLINUX_BTF);
}

const char *type_kernel_err(struct type_graph *g)
{
	return g->kernel_err;
}

void kernel_fini(struct type_graph *g)
{
	for (uint32_t i = 0; i < g->files.n; i++) {
		struct kernel_file *k = g->files.v[i];

		if (k->open)
			btf_close(&k->btf);
		free(k->node);
		free(k->module);
		free(k->path);
		free(k);
	}
	vec_fini(&g->files);
	hash_fini(&g->tracepoints);
	free(g->kernel_path);
	free(g->kernel_err);
}

static void set_err(struct type_graph *g, struct err *e)
{
	if (e && !g->kernel_err)
		g->kernel_err = xstrdup(e->text);
	err_free(e);
}

static bool file_open(struct type_graph *g, struct kernel_file *k)
{
	struct err *e, *note = NULL;

	if (k->tried)
		return k->open;
	k->tried = true;
	e = btf_open(&k->btf, k->path, k == g->files.v[VMLINUX] ? NULL : &g->files.v[VMLINUX]->btf,
		     &note);
	set_err(g, e ? e : note);
	if (e)
		return false;
	k->node = xcalloc(k->btf.n ? k->btf.n : 1, sizeof(*k->node));
	k->open = true;
	return true;
}

/* Opens vmlinux. Returns false when there is none. */
static bool kernel_open(struct type_graph *g)
{
	if (!g->kernel_path)
		return false;
	if (!g->kernel_tried) {
		g->kernel_tried = true;
		file_add(g, "", xstrdup(g->kernel_path));
	}
	return file_open(g, g->files.v[VMLINUX]);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Lists the modules: their files are beside vmlinux. */
static void list_modules(struct type_graph *g)
{
	const char *slash = strrchr(g->kernel_path, '/');
	cleanup_free char *dir = NULL;
	VEC(char *) names = { 0 };
	struct dirent *d;
	DIR *dp;

	if (g->modules_listed)
		return;
	g->modules_listed = true;
	if (!slash || strcmp(slash, "/vmlinux"))
		return;
	dir = xstrndup(g->kernel_path, (size_t)(slash - g->kernel_path));
	dp = opendir(dir);
	if (!dp)
		return;
	while ((d = readdir(dp))) {
		if (*d->d_name != '.' && strcmp(d->d_name, "vmlinux"))
			vec_push(&names, xstrdup(d->d_name));
	}
	closedir(dp);
	if (names.n)
		qsort(names.v, names.n, sizeof(*names.v), by_name);
	for (uint32_t i = 0; i < names.n; i++) {
		if (g->files.n < UINT16_MAX)
			file_add(g, names.v[i], xasprintf("%s/%s", dir, names.v[i]));
		free(names.v[i]);
	}
	vec_fini(&names);
}

/* --- records to nodes --- */

/* Finds the builtin of an integer. char is char, whatever -funsigned-char (kernels from 6.2) made
 * of it. __int128 and the like are no builtins. */
static bool builtin_int(const char *name, const struct btf_type *t, uint32_t enc, type_id *ret)
{
	static const uint8_t size[] = {
		[T_CHAR] = 1,   [T_SCHAR] = 1, [T_UCHAR] = 1,  [T_SHORT] = 2,
		[T_USHORT] = 2, [T_INT] = 4,   [T_UINT] = 4,   [T_LONG] = 8,
		[T_ULONG] = 8,  [T_LLONG] = 8, [T_ULLONG] = 8, [T_BOOL] = 1,
	};
	type_id b;

	if (!name_base_type(name, &b) || b >= ARRAY_SIZE(size) || !size[b] || t->size != size[b] ||
	    BTF_INT_OFFSET(enc) || BTF_INT_BITS(enc) != t->size * 8)
		return false;
	*ret = b;
	return true;
}

static type_id make_node(struct type_graph *g, uint32_t file, uint32_t id, const struct btf_type *t)
{
	const struct btf_file *f = &g->files.v[file]->btf;
	const char *name = btf_str(f, t->name_off);
	bool kflag = BTF_INFO_KFLAG(t->info), has_ref = false, has_parts = false;
	enum type_kind kind;
	struct tnode *n;
	type_id made;

	switch (BTF_INFO_KIND(t->info)) {
	case BTF_KIND_INT:
		if (builtin_int(name, t, *(const uint32_t *)(t + 1), &made))
			return made;
		kind = TYPE_INT;
		break;
	case BTF_KIND_FLOAT:
		if (name_base_type(name, &made) && type_size(g, made) == t->size)
			return made;
		kind = TYPE_FLOAT;
		break;
	case BTF_KIND_PTR:
		kind = TYPE_POINTER;
		has_ref = true;
		name = "";
		break;
	case BTF_KIND_ARRAY:
		kind = TYPE_ARRAY;
		has_ref = true;
		name = "";
		break;
	case BTF_KIND_STRUCT:
		kind = TYPE_STRUCT;
		has_parts = true;
		break;
	case BTF_KIND_UNION:
		kind = TYPE_UNION;
		has_parts = true;
		break;
	case BTF_KIND_ENUM:
	case BTF_KIND_ENUM64:
		kind = TYPE_ENUM;
		has_parts = true;
		break;
	case BTF_KIND_FWD: kind = TYPE_FORWARD; break;
	case BTF_KIND_TYPEDEF:
		kind = TYPE_TYPEDEF;
		has_ref = true;
		break;
	case BTF_KIND_VOLATILE:
		kind = TYPE_VOLATILE;
		has_ref = true;
		name = "";
		break;
	case BTF_KIND_CONST:
		kind = TYPE_CONST;
		has_ref = true;
		name = "";
		break;
	case BTF_KIND_RESTRICT:
		kind = TYPE_RESTRICT;
		has_ref = true;
		name = "";
		break;
	case BTF_KIND_FUNC_PROTO:
		kind = TYPE_FUNC;
		has_ref = true;
		has_parts = true;
		name = "";
		break;
	default: return T_VOID;
	}
	made = tnode_new(g, kind, name);
	n = tnode(g, made);
	n->file = (uint16_t)file;
	n->btf_id = id;
	n->ref_pending = has_ref;
	n->parts_pending = has_parts;
	n->ref = has_ref ? t->type : 0;
	switch (kind) {
	case TYPE_INT:
		n->flags = BTF_INT_ENCODING(*(const uint32_t *)(t + 1)) &
			   (TYPE_SIGNED | TYPE_CHAR | TYPE_BOOL);
		n->size = t->size;
		break;
	case TYPE_POINTER: n->size = n->align = 8; break;
	case TYPE_ARRAY:
		n->ref = ((const struct btf_array *)(t + 1))->type;
		n->nelems = ((const struct btf_array *)(t + 1))->nelems;
		break;
	case TYPE_ENUM:
		n->flags = kflag ? TYPE_SIGNED : 0;
		n->size = t->size;
		n->complete = true;
		break;
	case TYPE_STRUCT:
	case TYPE_UNION:
		n->size = t->size;
		n->is_union = kind == TYPE_UNION;
		n->complete = true;
		break;
	case TYPE_FORWARD: n->is_union = kflag; break;
	case TYPE_FLOAT: n->size = t->size; break;
	default: break;
	}
	return made;
}
_Static_assert((int)TYPE_SIGNED == BTF_INT_SIGNED && (int)TYPE_CHAR == BTF_INT_CHAR &&
		       (int)TYPE_BOOL == BTF_INT_BOOL,
	       "the flags of an integer are BTF's");

/* Returns the node of a BTF id as seen from a file, or void for an id that names no type. Never
 * recursive: ids in a record stay BTF ids until a query needs them. */
static type_id node_of(struct type_graph *g, uint32_t file, uint32_t id)
{
	for (uint32_t i = 0; i < CHAIN_LIMIT; i++) {
		struct kernel_file *k = g->files.v[file];
		const struct btf_type *t;
		type_id *known;

		if (id < k->btf.first && file != VMLINUX) {
			file = VMLINUX;
			k = g->files.v[VMLINUX];
		}
		t = btf_type(&k->btf, id);
		if (!t)
			return T_VOID;
		switch (BTF_INFO_KIND(t->info)) {
		case BTF_KIND_FUNC:
		case BTF_KIND_VAR:
		case BTF_KIND_TYPE_TAG:
		case BTF_KIND_DECL_TAG: id = t->type; continue;
		}
		known = &k->node[id - k->btf.first];
		if (!*known)
			*known = make_node(g, file, id, t);
		return *known;
	}
	return T_VOID;
}

void kernel_load_ref(struct type_graph *g, struct tnode *n)
{
	n->ref_pending = false;
	n->ref = node_of(g, n->file, n->ref);
}

/* Handles BTF without kind_flag, where a bit-field is a member whose integer type is narrower than
 * its bytes. */
static void old_bit_field(const struct btf_file *f, uint32_t id, struct type_member *m)
{
	for (uint32_t i = 0; i < CHAIN_LIMIT; i++) {
		const struct btf_type *t = btf_type(f, id);
		uint32_t enc;

		if (!t)
			return;
		switch (BTF_INFO_KIND(t->info)) {
		case BTF_KIND_TYPEDEF:
		case BTF_KIND_CONST:
		case BTF_KIND_VOLATILE:
		case BTF_KIND_RESTRICT:
		case BTF_KIND_TYPE_TAG: id = t->type; continue;
		case BTF_KIND_INT:
			enc = *(const uint32_t *)(t + 1);
			if (BTF_INT_BITS(enc) == t->size * 8ull && m->bit_offset % 8 == 0)
				return;
			m->bit_size = BTF_INT_BITS(enc);
			m->bit_offset += BTF_INT_OFFSET(enc);
			return;
		default: return;
		}
	}
}

static void load_members(struct type_graph *g, struct tnode *n, const struct btf_file *f,
			 const struct btf_type *t)
{
	const struct btf_member *bm = (const struct btf_member *)(t + 1);
	uint32_t count = BTF_INFO_VLEN(t->info);
	bool kflag = BTF_INFO_KFLAG(t->info);
	struct type_member *m = arena_array(&g->arena, struct type_member, count);

	for (uint32_t i = 0; i < count; i++) {
		m[i].name = btf_str(f, bm[i].name_off);
		m[i].type = node_of(g, n->file, bm[i].type);
		m[i].bit_offset = kflag ? BTF_MEMBER_BIT_OFFSET(bm[i].offset) : bm[i].offset;
		m[i].bit_size = kflag ? BTF_MEMBER_BITFIELD_SIZE(bm[i].offset) : 0;
		if (!kflag)
			old_bit_field(f, bm[i].type, &m[i]);
	}
	n->members = m;
	n->nparts = count;
}

static int64_t enum_value(const struct btf_type *t, uint32_t i, uint32_t *ret_name)
{
	bool is_signed = BTF_INFO_KFLAG(t->info);

	if (BTF_INFO_KIND(t->info) == BTF_KIND_ENUM64) {
		const struct btf_enum64 *e = (const struct btf_enum64 *)(t + 1) + i;

		*ret_name = e->name_off;
		return (int64_t)((uint64_t)e->val_hi32 << 32 | e->val_lo32);
	} else {
		const struct btf_enum *e = (const struct btf_enum *)(t + 1) + i;

		*ret_name = e->name_off;
		return is_signed ? (int64_t)e->val : (int64_t)(uint32_t)e->val;
	}
}

static void load_enumerators(struct type_graph *g, struct tnode *n, const struct btf_file *f,
			     const struct btf_type *t)
{
	uint32_t count = BTF_INFO_VLEN(t->info), name;
	struct type_enumerator *e = arena_array(&g->arena, struct type_enumerator, count);

	for (uint32_t i = 0; i < count; i++) {
		e[i].value = enum_value(t, i, &name);
		e[i].name = btf_str(f, name);
	}
	n->enumerators = e;
	n->nparts = count;
}

/* Loads parameters. A last one without name and type means "...". */
static void load_params(struct type_graph *g, struct tnode *n, const struct btf_file *f,
			const struct btf_type *t)
{
	const struct btf_param *bp = (const struct btf_param *)(t + 1);
	uint32_t count = BTF_INFO_VLEN(t->info), skip = n->skip;
	struct type_param *p;

	if (count && !bp[count - 1].name_off && !bp[count - 1].type) {
		n->varargs = true;
		count--;
	}
	if (skip > count)
		skip = count;
	count -= skip;
	p = arena_array(&g->arena, struct type_param, count);
	for (uint32_t i = 0; i < count; i++) {
		p[i].name = btf_str(f, bp[skip + i].name_off);
		p[i].type = node_of(g, n->file, bp[skip + i].type);
	}
	n->params = p;
	n->nparts = count;
}

void kernel_load_parts(struct type_graph *g, struct tnode *n)
{
	const struct btf_file *f = &g->files.v[n->file]->btf;
	const struct btf_type *t = btf_type(f, n->btf_id);

	n->parts_pending = false;
	if (n->kind == TYPE_ENUM)
		load_enumerators(g, n, f, t);
	else if (n->kind == TYPE_FUNC)
		load_params(g, n, f, t);
	else
		load_members(g, n, f, t);
}

/* --- looking up --- */

/* Finds a name in one file or, with module "", in all. Returns its id and file. */
static bool kernel_types_find(struct type_graph *g, const char *module, uint32_t kinds,
			      const char *name, uint32_t *ret_file, uint32_t *ret_id)
{
	bool any = !module || !*module;

	if (!kernel_open(g))
		return false;
	/* A module's own type is preferred when the module is named. vmlinux has the types of
	 * built-in code. */
	if (!any && strcmp(module, "vmlinux") && strcmp(module, "kernel")) {
		list_modules(g);
		for (uint32_t i = VMLINUX + 1; i < g->files.n; i++) {
			if (strcmp(g->files.v[i]->module, module) || !file_open(g, g->files.v[i]))
				continue;
			*ret_id = btf_find(&g->files.v[i]->btf, kinds, name);
			if (*ret_id) {
				*ret_file = i;
				return true;
			}
		}
	}
	*ret_file = VMLINUX;
	*ret_id = btf_find(&g->files.v[VMLINUX]->btf, kinds, name);
	if (*ret_id || !any)
		return *ret_id;
	list_modules(g);
	for (uint32_t i = VMLINUX + 1; i < g->files.n; i++) {
		if (!file_open(g, g->files.v[i]))
			continue;
		*ret_id = btf_find(&g->files.v[i]->btf, kinds, name);
		if (*ret_id) {
			*ret_file = i;
			return true;
		}
	}
	return false;
}

bool kernel_lookup(struct type_graph *g, const char *module, enum type_kind kind, const char *name,
		   type_id *ret)
{
	uint32_t kinds, second, file, id;

	switch (kind) {
	case TYPE_STRUCT:
		kinds = BTF_BIT(BTF_KIND_STRUCT);
		second = BTF_BIT(BTF_KIND_FWD);
		break;
	case TYPE_UNION:
		kinds = BTF_BIT(BTF_KIND_UNION);
		second = BTF_BIT(BTF_KIND_FWD);
		break;
	case TYPE_ENUM:
		kinds = BTF_BIT(BTF_KIND_ENUM) | BTF_BIT(BTF_KIND_ENUM64);
		second = 0;
		break;
	case TYPE_TYPEDEF:
		kinds = BTF_BIT(BTF_KIND_TYPEDEF);
		second = BTF_BIT(BTF_KIND_INT) | BTF_BIT(BTF_KIND_FLOAT);
		break;
	default: return false;
	}
	if (!kernel_types_find(g, module, kinds, name, &file, &id) &&
	    (!second || !kernel_types_find(g, module, second, name, &file, &id)))
		return false;
	if (second == BTF_BIT(BTF_KIND_FWD)) {
		const struct btf_type *t = btf_type(&g->files.v[file]->btf, id);

		if (BTF_INFO_KIND(t->info) == BTF_KIND_FWD &&
		    BTF_INFO_KFLAG(t->info) != (kind == TYPE_UNION))
			return false;
	}
	*ret = node_of(g, file, id);
	return true;
}

bool kernel_enumerator(struct type_graph *g, const char *name, int64_t *ret_value,
		       type_id *ret_enum)
{
	if (!kernel_open(g))
		return false;
	list_modules(g);
	for (uint32_t i = VMLINUX; i < g->files.n; i++) {
		struct btf_file *f = &g->files.v[i]->btf;
		uint32_t id, nth, unused;

		if (!file_open(g, g->files.v[i]) || !btf_find_enumerator(f, name, &id, &nth))
			continue;
		*ret_value = enum_value(btf_type(f, id), nth, &unused);
		*ret_enum = node_of(g, i, id);
		return true;
	}
	return false;
}

static bool func_node(struct type_graph *g, uint32_t file, uint32_t id, type_id *ret)
{
	type_id t = node_of(g, file, id);

	if (tnode(g, t)->kind != TYPE_FUNC)
		return false;
	*ret = t;
	return true;
}

bool type_kernel_func(struct type_graph *g, const char *name, type_id *ret)
{
	uint32_t file, id;

	return kernel_types_find(g, NULL, BTF_BIT(BTF_KIND_FUNC), name, &file, &id) &&
	       func_node(g, file, id, ret);
}

bool type_module_func(struct type_graph *g, const char *module, const char *name, type_id *ret,
		      uint32_t *ret_btf_id)
{
	uint32_t file, id;

	if (!kernel_types_find(g, module, BTF_BIT(BTF_KIND_FUNC), name, &file, &id))
		return false;
	/* For a module, find() also returns names of vmlinux. */
	if ((file == VMLINUX) != !strcmp(module, "vmlinux") || !func_node(g, file, id, ret))
		return false;
	*ret_btf_id = id;
	return true;
}

bool type_kernel_var(struct type_graph *g, const char *name, type_id *ret)
{
	uint32_t file, id;

	if (!kernel_types_find(g, NULL, BTF_BIT(BTF_KIND_VAR), name, &file, &id))
		return false;
	*ret = node_of(g, file, id);
	return true;
}

bool type_kernel_btf_id(struct type_graph *g, uint32_t btf_kind, const char *name, uint32_t *ret)
{
	uint32_t id;

	if (btf_kind > BTF_KIND_MAX || !kernel_open(g))
		return false;
	id = btf_find(&g->files.v[VMLINUX]->btf, BTF_BIT(btf_kind), name);
	if (!id)
		return false;
	*ret = id;
	return true;
}

/* --- tracepoints --- */

/* Finds the function of typedef void (*btf_trace_NAME)(void *__data, ...), without its first
 * parameter. */
static bool tracepoint_func(struct type_graph *g, uint32_t id, type_id *ret)
{
	const struct btf_file *f = &g->files.v[VMLINUX]->btf;
	const struct btf_type *t = btf_type(f, id);
	bool fresh;
	uint64_t *known;
	struct tnode *n;
	type_id made;

	t = btf_type(f, t->type);
	if (!t || BTF_INFO_KIND(t->info) != BTF_KIND_PTR)
		return false;
	id = t->type;
	t = btf_type(f, id);
	if (!t || BTF_INFO_KIND(t->info) != BTF_KIND_FUNC_PROTO)
		return false;
	known = hash_put(&g->tracepoints, &id, sizeof(id), &fresh);
	if (fresh) {
		made = make_node(g, VMLINUX, id, t);
		n = tnode(g, made);
		n->skip = 1;
		*known = made;
	}
	*ret = (type_id)*known;
	return true;
}

void type_kernel_tracepoints(struct type_graph *g,
			     void (*fn)(void *arg, const char *name, type_id func), void *arg)
{
	const size_t prefix = strlen(TRACEPOINT_PREFIX);
	const struct btf_file *f;
	type_id func;

	if (!kernel_open(g))
		return;
	f = &g->files.v[VMLINUX]->btf;
	for (uint32_t id = f->first; id < btf_end(f); id++) {
		const struct btf_type *t = btf_type(f, id);
		const char *name;

		if (BTF_INFO_KIND(t->info) != BTF_KIND_TYPEDEF)
			continue;
		name = btf_str(f, t->name_off);
		if (!strncmp(name, TRACEPOINT_PREFIX, prefix) && name[prefix] &&
		    tracepoint_func(g, id, &func))
			fn(arg, name + prefix, func);
	}
}

bool type_kernel_tracepoint(struct type_graph *g, const char *name, type_id *ret_func)
{
	cleanup_free char *full = NULL;
	uint32_t id;

	if (!kernel_open(g))
		return false;
	full = xasprintf(TRACEPOINT_PREFIX "%s", name);
	id = btf_find(&g->files.v[VMLINUX]->btf, BTF_BIT(BTF_KIND_TYPEDEF), full);
	return id && tracepoint_func(g, id, ret_func);
}

void type_nearest(struct type_graph *g, enum type_kind kind, struct nearest *n)
{
	static const uint32_t kinds[] = {
		[TYPE_STRUCT] = BTF_BIT(BTF_KIND_STRUCT),
		[TYPE_UNION] = BTF_BIT(BTF_KIND_UNION),
		[TYPE_ENUM] = BTF_BIT(BTF_KIND_ENUM) | BTF_BIT(BTF_KIND_ENUM64),
		[TYPE_TYPEDEF] = BTF_BIT(BTF_KIND_TYPEDEF),
	};

	user_nearest(g, kind, n);
	if ((size_t)kind >= ARRAY_SIZE(kinds) || !kernel_open(g))
		return;

	const struct btf_file *b = &g->files.v[VMLINUX]->btf;

	for (uint32_t id = b->first; id < btf_end(b); id++) {
		const struct btf_type *t = btf_type(b, id);

		if (t && t->name_off && kinds[kind] & BTF_BIT(BTF_INFO_KIND(t->info)))
			nearest_offer(n, btf_str(b, t->name_off));
	}
}
