/* Types of a traced process, from the DWARF of its program and libraries. A DIE becomes a node when
 * it is queried, and a struct's members when they are. The first look-up that nothing else can
 * answer indexes the names. */
#include <dwarf.h>
#include <string.h>

#include "base/mapped.h"
#include "user_private.h"

struct die_key {
	uint64_t offset;
	uint32_t file, pad;
};

enum {
	MAPPED_MAX = 512, /* files of a process; libdwfl keeps a descriptor of each */
	BUDGET = TYPE_USER_MB << 20,
	NAME_BYTES = 16384, /* a longer name is kept as "" */
};

bool user_afford(struct user_types *u, size_t n)
{
	if (n > u->budget)
		u->is_cut = true;
	else
		u->budget -= n;
	return !u->is_cut;
}

const char *user_keep_name(struct type_graph *g, const char *name)
{
	size_t n = name ? strnlen(name, NAME_BYTES) : 0;

	return n && n < NAME_BYTES && user_afford(g->user, n + 1) ? arena_strdup(&g->arena, name)
								  : "";
}

void type_use_process(struct type_graph *g, pid_t pid)
{
	user_fini(g);
	g->user = xcalloc(1, sizeof(*g->user));
	g->user->pid = pid;
	g->user->budget = BUDGET;
}

void type_use_space(struct type_graph *g, struct space *s)
{
	type_use_process(g, s->pid);
	g->user->space = s;
}

bool type_user_is_cut(const struct type_graph *g)
{
	return g->user && g->user->is_cut;
}

void user_fini(struct type_graph *g)
{
	struct user_types *u = g->user;

	if (!u)
		return;
	for (uint32_t i = 0; i < u->modules.n; i++)
		free(u->modules.v[i]);
	vec_fini(&u->modules);
	vec_fini(&u->dwarfs);
	vec_fini(&u->named);
	hash_fini(&u->dies);
	hash_fini(&u->names);
	for (uint32_t i = 0; i < u->files.n; i++)
		user_file_free(u->files.v[i]);
	vec_fini(&u->files);
	if (u->dwfl)
		dwfl_end(u->dwfl);
	dwarf_copies_free(&u->copies);
	vec_fini(&u->texts);
	free(u);
	g->user = NULL;
}

/* --- files --- */

static uint32_t file_of(struct user_types *u, Dwarf *dw, const char *module)
{
	for (uint32_t i = 0; i < u->dwarfs.n; i++)
		if (u->dwarfs.v[i] == dw)
			return i;
	vec_push(&u->dwarfs, dw);
	vec_push(&u->modules, xstrdup(module));
	return u->dwarfs.n - 1;
}

/* Writes the name that D can use before a backquote: "/usr/lib/libfoo-1.so.2" -> "libfoo_1". Leaves
 * out the " (deleted)" of a replaced file. */
static void module_name(const char *path, char *buf, size_t size)
{
	const char *slash = path ? strrchr(path, '/') : NULL;
	const char *p = slash ? slash + 1 : path ? path : "", *deleted = strstr(p, " (deleted)");
	size_t n = 0;

	for (; *p && *p != '.' && p != deleted && n + 1 < size; p++)
		buf[n++] = (char)((*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') ||
						  (*p >= '0' && *p <= '9')
					  ? *p
					  : '_');
	buf[n] = '\0';
}

static uint64_t *name_slot(struct user_types *u, char space, const char *name, bool make)
{
	char key[512];
	size_t n = strlen(name);

	if (n + 1 > sizeof(key))
		return NULL;
	key[0] = space;
	memcpy(key + 1, name, n);
	return make ? hash_put(&u->names, key, n + 1, NULL) : hash_get(&u->names, key, n + 1);
}

static char space_of(int tag)
{
	switch (tag) {
	case DW_TAG_structure_type:
	case DW_TAG_class_type: return 'S';
	case DW_TAG_union_type: return 'U';
	case DW_TAG_enumeration_type: return 'E';
	case DW_TAG_typedef:
	case DW_TAG_base_type: return 'T';
	default: return 0;
	}
}

static void add_name(struct user_types *u, uint32_t file, char space, const char *name,
		     uint64_t die)
{
	uint64_t *slot;

	if (!user_afford(u, sizeof(struct named) + ENTRY_BYTES + strnlen(name, NAME_BYTES)))
		return;
	slot = name_slot(u, space, name, true);
	if (!slot)
		return;
	if (*slot && u->named.v[*slot - 1].file == file)
		return; /* every unit has its own copy */
	vec_push(&u->named, (struct named){ .file = file, .next = (uint32_t)*slot, .die = die });
	*slot = u->named.n;
}

static void index_constants(struct user_types *u, uint32_t file, Dwarf_Die *die)
{
	Dwarf_Die e;

	if (dwarf_child(die, &e))
		return;
	do {
		if (dwarf_tag(&e) == DW_TAG_enumerator && dwarf_diename(&e))
			add_name(u, file, 'C', dwarf_diename(&e), dwarf_dieoffset(die));
	} while (!dwarf_siblingof(&e, &e));
}

static void index_children(struct user_types *u, uint32_t file, Dwarf_Die *parent, uint32_t depth)
{
	Dwarf_Die die;
	const char *name;
	int tag;

	if (u->is_cut || dwarf_child(parent, &die))
		return;
	do {
		tag = dwarf_tag(&die);
		if (tag == DW_TAG_namespace && depth < NAMESPACES)
			index_children(u, file, &die, depth + 1);
		if (!space_of(tag) || dwarf_hasattr(&die, DW_AT_declaration))
			continue;
		if (tag == DW_TAG_enumeration_type)
			index_constants(u, file, &die);
		name = dwarf_diename(&die);
		if (!name)
			continue;
		add_name(u, file, space_of(tag), name, dwarf_dieoffset(&die));
		/* In C++ a tag is a type name too. */
		if (space_of(tag) != 'T' && tag == DW_TAG_class_type)
			add_name(u, file, 'T', name, dwarf_dieoffset(&die));
	} while (!dwarf_siblingof(&die, &die));
}

static int index_module(Dwfl_Module *mod, void **user, const char *name, Dwarf_Addr start,
			void *arg)
{
	struct user_types *u = arg;
	Dwarf_Addr bias;
	Dwarf *dw = dwarf_of_module(mod, &bias, &u->copies);
	Dwarf_CU *cu = NULL;
	Dwarf_Die die;
	char module[64];
	uint32_t file;

	(void)user;
	(void)start;
	if (!dw)
		return DWARF_CB_OK;
	module_name(name, module, sizeof(module));
	file = file_of(u, dw, module);
	while (!dwarf_get_units(dw, cu, &cu, NULL, NULL, &die, NULL))
		index_children(u, file, &die, 0);
	return DWARF_CB_OK;
}

/* Reports the files of which the process has text, as its own namespace has them: a path of
 * /proc/PID/maps may lead to another file here. */
static void report_files(struct user_types *u, const struct mappings *maps)
{
	struct hash seen = { 0 };

	for (uint32_t i = 0; i < maps->n && seen.n < MAPPED_MAX; i++) {
		const struct mapping *m = &maps->v[i];
		const uint64_t file[] = { m->dev_major, m->dev_minor, m->inode };
		cleanup_free char *path = NULL;
		Dwfl_Module *mod = NULL;
		bool is_new;

		if (!m->exec || m->path[0] != '/')
			continue;
		if (m->inode)
			(void)hash_put(&seen, file, sizeof(file), &is_new);
		else /* a core file does not say it */
			(void)hash_put(&seen, m->path, strlen(m->path), &is_new);
		if (is_new)
			path = u->space ? space_open_path(u->space, m)
					: mapping_open_path(u->pid, m);
		if (path)
			mod = dwarf_report(u->dwfl, m->path, path);
		if (mod)
			vec_push(&u->texts, (struct user_text){ mod, m->start, m->offset });
	}
	hash_fini(&seen);
}

void user_index(struct user_types *u)
{
	const struct mappings *maps;
	struct mappings own = { 0 };
	struct err *e;

	if (u->indexed)
		return;
	u->indexed = true;
	mapped_guard();
	u->dwfl = dwfl_begin(&dwarf_callbacks);
	if (!u->dwfl)
		return;
	maps = &own;
	e = u->space ? space_mappings(u->space, 0, &maps) : mappings_read(u->pid, &own);
	if (err_drop(e))
		return;
	report_files(u, maps);
	mappings_free(&own);
	dwfl_report_end(u->dwfl, NULL, NULL);
	/* The program comes first: of two types with one name, a look-up means the program's. */
	(void)dwfl_getmodules(u->dwfl, index_module, u, 0);
}

/* --- DIEs to nodes --- */

static bool attr_number(Dwarf_Die *die, unsigned int name, uint64_t *ret)
{
	Dwarf_Attribute a;
	Dwarf_Word w;

	if (!dwarf_attr_integrate(die, name, &a) || dwarf_formudata(&a, &w))
		return false;
	*ret = w;
	return true;
}

type_id user_type_of(struct type_graph *g, Dwarf_Die *die)
{
	Dwarf_Attribute a;
	Dwarf_Die t;

	if (!dwarf_attr_integrate(die, DW_AT_type, &a) || !dwarf_formref_die(&a, &t))
		return T_VOID;
	return user_node(g, &t);
}

static type_id base_type(struct type_graph *g, Dwarf_Die *die, const char *name)
{
	uint64_t size = 0, encoding = 0;
	struct tnode *n;
	type_id t;

	(void)attr_number(die, DW_AT_byte_size, &size);
	(void)attr_number(die, DW_AT_encoding, &encoding);
	if (encoding == DW_ATE_float)
		return size == 4 ? T_FLOAT : size == 8 ? T_DOUBLE : T_LDOUBLE;
	if (name_base_type(name, &t) && type_size(g, t) == size)
		return t;
	if (encoding == DW_ATE_boolean && size == 1)
		return T_BOOL;
	t = tnode_new(g, TYPE_INT, user_keep_name(g, name));
	n = tnode(g, t);
	n->size = n->align = (uint32_t)(size ? size : 1);
	n->flags = encoding == DW_ATE_signed          ? TYPE_SIGNED
		   : encoding == DW_ATE_signed_char   ? TYPE_SIGNED | TYPE_CHAR
		   : encoding == DW_ATE_unsigned_char ? TYPE_CHAR
						      : 0;
	return t;
}

static type_id array_type(struct type_graph *g, Dwarf_Die *die)
{
	uint64_t dim[CHAIN_LIMIT], bound;
	uint32_t n = 0;
	Dwarf_Die sub;
	type_id t = user_type_of(g, die);

	if (!dwarf_child(die, &sub)) {
		do {
			if (dwarf_tag(&sub) != DW_TAG_subrange_type || n == CHAIN_LIMIT)
				continue;
			dim[n] = 0;
			if (attr_number(&sub, DW_AT_count, &bound))
				dim[n] = bound;
			else if (attr_number(&sub, DW_AT_upper_bound, &bound))
				dim[n] = bound + 1;
			if (dim[n] > INT32_MAX)
				dim[n] = 0;
			n++;
		} while (!dwarf_siblingof(&sub, &sub));
	}
	while (n)
		t = type_new_array(g, t, (uint32_t)dim[--n]);
	return t;
}

static void load_enumerators(struct type_graph *g, Dwarf_Die *die, struct tnode *n)
{
	VEC(struct type_enumerator) all = { 0 };
	Dwarf_Attribute a;
	Dwarf_Die e;

	if (!dwarf_child(die, &e)) {
		do {
			Dwarf_Sword v = 0;

			if (dwarf_tag(&e) != DW_TAG_enumerator || !dwarf_diename(&e))
				continue;
			if (dwarf_attr(&e, DW_AT_const_value, &a))
				(void)dwarf_formsdata(&a, &v);
			if (v < 0)
				n->flags |= TYPE_SIGNED;
			if (!user_afford(g->user, 2 * sizeof(*all.v)))
				break;
			vec_push(&all, (struct type_enumerator){
					       user_keep_name(g, dwarf_diename(&e)), v });
		} while (!dwarf_siblingof(&e, &e));
	}
	n->enumerators = arena_array(&g->arena, struct type_enumerator, all.n + 1);
	if (all.n)
		memcpy(n->enumerators, all.v, all.n * sizeof(*all.v));
	n->nparts = all.n;
	vec_fini(&all);
}

/* Finds a member's place, in bits. Returns false for a member without a place in the struct (static
 * members). */
static bool member_place(struct type_graph *g, Dwarf_Die *m, struct type_member *ret, bool in_union)
{
	uint64_t at = 0, bits = 0, v, unit;

	(void)attr_number(m, DW_AT_bit_size, &bits);
	if (attr_number(m, DW_AT_data_bit_offset, &v)) {
		ret->bit_offset = v;
	} else {
		if (!attr_number(m, DW_AT_data_member_location, &at) && !in_union)
			return false;
		ret->bit_offset = at * 8;
		if (bits && attr_number(m, DW_AT_bit_offset, &v)) {
			/* DWARF 3 counts from the most significant bit of the unit that holds
			 * it. */
			if (!attr_number(m, DW_AT_byte_size, &unit))
				unit = type_size(g, ret->type);
			ret->bit_offset += unit * 8 - v - bits;
		}
	}
	ret->bit_size = (uint32_t)bits;
	return true;
}

static void load_members(struct type_graph *g, Dwarf_Die *die, struct tnode *n)
{
	VEC(struct type_member) all = { 0 };
	Dwarf_Die m;

	if (!dwarf_child(die, &m)) {
		do {
			int tag = dwarf_tag(&m);
			struct type_member one = { 0 };

			if (tag != DW_TAG_member && tag != DW_TAG_inheritance)
				continue;
			if (!user_afford(g->user, 2 * sizeof(one)))
				break;
			one.name =
				user_keep_name(g, tag == DW_TAG_member ? dwarf_diename(&m) : NULL);
			one.type = user_type_of(g, &m);
			if (member_place(g, &m, &one, n->kind == TYPE_UNION))
				vec_push(&all, one);
		} while (!dwarf_siblingof(&m, &m));
	}
	n->members = arena_array(&g->arena, struct type_member, all.n + 1);
	if (all.n)
		memcpy(n->members, all.v, all.n * sizeof(*all.v));
	n->nparts = all.n;
	vec_fini(&all);
}

/* Makes a node whose reference or parts are read later. */
static type_id later(struct type_graph *g, enum type_kind kind, const char *name, uint32_t file,
		     Dwarf_Die *die)
{
	type_id t = tnode_new(g, kind, user_keep_name(g, name));
	struct tnode *n = tnode(g, t);

	n->user = true;
	n->file = (uint16_t)file;
	n->die = dwarf_dieoffset(die);
	return t;
}

static type_id sou(struct type_graph *g, int tag, const char *name, uint32_t file, Dwarf_Die *die)
{
	bool is_union = tag == DW_TAG_union_type, declared = dwarf_hasattr(die, DW_AT_declaration);
	type_id t = later(g,
			  declared   ? TYPE_FORWARD
			  : is_union ? TYPE_UNION
				     : TYPE_STRUCT,
			  name, file, die);
	struct tnode *n = tnode(g, t);

	n->is_union = is_union;
	if (declared)
		return t;
	(void)attr_number(die, DW_AT_byte_size, &n->size);
	n->complete = n->parts_pending = true;
	return t;
}

static type_id make_node(struct type_graph *g, Dwarf_Die *die, uint32_t file)
{
	const char *name = dwarf_diename(die);
	int tag = dwarf_tag(die);
	uint64_t size = 4;
	struct tnode *n;
	type_id t;

	name = name ? name : "";
	switch (tag) {
	case DW_TAG_base_type: return base_type(g, die, name);
	case DW_TAG_array_type: return array_type(g, die);
	case DW_TAG_structure_type:
	case DW_TAG_class_type:
	case DW_TAG_union_type: return sou(g, tag, name, file, die);
	case DW_TAG_pointer_type:
	case DW_TAG_reference_type:
	case DW_TAG_rvalue_reference_type:
		t = later(g, TYPE_POINTER, "", file, die);
		tnode(g, t)->size = 8;
		tnode(g, t)->ref_pending = true;
		return t;
	case DW_TAG_typedef:
		t = later(g, TYPE_TYPEDEF, name, file, die);
		tnode(g, t)->ref_pending = true;
		return t;
	case DW_TAG_const_type:
	case DW_TAG_volatile_type:
	case DW_TAG_restrict_type:
	case DW_TAG_atomic_type:
		t = later(g,
			  tag == DW_TAG_const_type      ? TYPE_CONST
			  : tag == DW_TAG_restrict_type ? TYPE_RESTRICT
							: TYPE_VOLATILE,
			  "", file, die);
		tnode(g, t)->ref_pending = true;
		return t;
	case DW_TAG_enumeration_type:
		(void)attr_number(die, DW_AT_byte_size, &size);
		t = tnode_new(g, TYPE_ENUM, user_keep_name(g, name));
		n = tnode(g, t);
		n->size = size;
		n->complete = true;
		load_enumerators(g, die, n);
		return t;
	case DW_TAG_subroutine_type: return type_new_func(g, T_VOID, NULL, 0, true);
	case DW_TAG_ptr_to_member_type: return T_LONG;
	default: return T_VOID;
	}
}

type_id user_node(struct type_graph *g, Dwarf_Die *die)
{
	struct user_types *u = g->user;
	struct die_key key = { .offset = dwarf_dieoffset(die) };
	Dwarf_Half version = 5;
	uint8_t unit = 0;
	uint64_t *slot;
	type_id t;

	(void)dwarf_cu_info(die->cu, &version, &unit, NULL, NULL, NULL, NULL, NULL);
	if (unit == DW_UT_type && version < 5)
		return T_VOID; /* a type in its own section, where offsets mean something else */
	key.file = file_of(u, dwarf_cu_getdwarf(die->cu), "");
	slot = hash_get(&u->dies, &key, sizeof(key));
	if (slot)
		return (type_id)*slot - 1;
	/* Only arrays recurse here, and an array that is its own element would not end. */
	if (u->nest > NEST_LIMIT ||
	    !user_afford(u, sizeof(struct tnode) + sizeof(key) + ENTRY_BYTES))
		return T_VOID;
	u->nest++;
	t = make_node(g, die, key.file);
	u->nest--;
	*hash_put(&u->dies, &key, sizeof(key), NULL) = (uint64_t)t + 1;
	return t;
}

void user_load_ref(struct type_graph *g, struct tnode *n)
{
	Dwarf_Die die;

	n->ref_pending = false;
	if (dwarf_offdie(g->user->dwarfs.v[n->file], n->die, &die))
		n->ref = user_type_of(g, &die);
}

void user_load_parts(struct type_graph *g, struct tnode *n)
{
	Dwarf_Die die;

	n->parts_pending = false;
	if (dwarf_offdie(g->user->dwarfs.v[n->file], n->die, &die))
		load_members(g, &die, n);
}

static type_id named_node(struct type_graph *g, const char *module, char space, const char *name)
{
	struct user_types *u = g->user;
	bool any = !module || !*module || !strcmp(module, "user");
	const struct named *found = NULL;
	uint64_t *slot;
	Dwarf_Die die;

	if (!u)
		return T_VOID;
	user_index(u);
	slot = name_slot(u, space, name, false);
	/* The last entry of the list is found first. */
	for (uint32_t i = slot ? (uint32_t)*slot : 0; i; i = u->named.v[i - 1].next)
		if (any || !strcmp(u->modules.v[u->named.v[i - 1].file], module))
			found = &u->named.v[i - 1];
	if (!found || !dwarf_offdie(u->dwarfs.v[found->file], found->die, &die))
		return T_VOID;
	return user_node(g, &die);
}

bool user_enumerator(struct type_graph *g, const char *name, int64_t *ret_value, type_id *ret_enum)
{
	type_id t = named_node(g, NULL, 'C', name);
	struct tnode *n = tnode(g, t);

	for (uint32_t i = 0; n->kind == TYPE_ENUM && i < n->nparts; i++)
		if (!strcmp(n->enumerators[i].name, name)) {
			*ret_value = n->enumerators[i].value;
			*ret_enum = t;
			return true;
		}
	return false;
}

void user_nearest(struct type_graph *g, enum type_kind kind, struct nearest *n)
{
	struct user_types *u = g->user;

	if (!u)
		return;
	user_index(u);
	for (uint32_t i = 0; i < u->named.n; i++) {
		const char *name;
		Dwarf_Die die;
		int tag;

		if (!dwarf_offdie(u->dwarfs.v[u->named.v[i].file], u->named.v[i].die, &die))
			continue;
		tag = dwarf_tag(&die);
		name = dwarf_diename(&die);
		if (name && tag == (kind == TYPE_STRUCT  ? DW_TAG_structure_type
				    : kind == TYPE_UNION ? DW_TAG_union_type
				    : kind == TYPE_ENUM  ? DW_TAG_enumeration_type
							 : DW_TAG_typedef))
			nearest_offer(n, name);
	}
}

bool user_lookup(struct type_graph *g, const char *module, enum type_kind kind, const char *name,
		 type_id *ret)
{
	type_id t = named_node(g, module, graph_space(kind), name);

	if (t == T_VOID)
		return false;
	*ret = t;
	return true;
}
