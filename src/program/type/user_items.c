/* Lists the structs of a process, and its variables that have a fixed address. */
#include <dwarf.h>
#include <gelf.h>
#include <string.h>

#include "user_private.h"

enum {
	NAME_ROOM = 512,      /* of a name with its namespaces; a longer one is left out */
	DIES_MAX = 20000000,  /* that are looked at */
	SCOPES = 24,          /* functions, blocks and namespaces within each other */
	ADDRESS_BYTES = 1 + 8 /* DW_OP_addr and its operand */
};

struct item_walk {
	struct type_graph *g;
	void (*fn)(void *arg, const struct type_user_item *item);
	void *arg;
	struct hash seen; /* name and size of structs */
	uint64_t dies;
	uint64_t bias; /* between the addresses of this DWARF and the process's */
	bool qualify;  /* the language has namespaces */
	bool system;   /* this file is the C library or the dynamic linker */
	char name[NAME_ROOM];
};

/* Returns the address of a variable that does not move, in the file. */
static bool fixed_address(Dwarf_Die *die, uint64_t *ret)
{
	Dwarf_Attribute a, index;
	Dwarf_Block b;
	Dwarf_Op *ops;
	size_t n;

	if (!dwarf_attr(die, DW_AT_location, &a) || dwarf_formblock(&a, &b) || !b.length)
		return false;
	if (b.data[0] == DW_OP_addr && b.length == ADDRESS_BYTES) {
		memcpy(ret, b.data + 1, sizeof(*ret));
		return true;
	}
	if (b.data[0] != DW_OP_addrx || dwarf_getlocation(&a, &ops, &n) || n != 1)
		return false;
	return !dwarf_getlocation_attr(&a, ops, &index) && !dwarf_formaddr(&index, ret);
}

static void offer_variable(struct item_walk *w, Dwarf_Die *die)
{
	struct type_user_item item = { .name = "" };

	if (!fixed_address(die, &item.addr) || !item.addr)
		return;
	item.name = dwarf_diename(die) ?: "";
	item.addr += w->bias;
	item.type = user_type_of(w->g, die);
	w->fn(w->arg, &item);
}

/* Adds a name behind its namespaces. Returns the length with it, 0 when there is no room. */
static size_t add_part(struct item_walk *w, size_t len, const char *name)
{
	int n;

	if (!w->qualify)
		len = 0;
	n = snprintf(w->name + len, sizeof(w->name) - len, "%s%s", len ? "::" : "", name);
	return n > 0 && (size_t)n < sizeof(w->name) - len ? len + (size_t)n : 0;
}

/* Every unit has its own copy of a type; the first is as good as the others. */
static void offer_type(struct item_walk *w, Dwarf_Die *die, int size, size_t len, const char *name)
{
	struct type_user_item item = {
		.name = w->name,
		.is_tag = !w->qualify && dwarf_tag(die) != DW_TAG_typedef,
		.is_system = w->system,
	};
	struct {
		uint64_t size;
		char name[NAME_ROOM];
	} key;
	size_t n = add_part(w, len, name);
	bool is_new;

	if (!n || size <= 0 || !user_afford(w->g->user, n + sizeof(key.size) + ENTRY_BYTES))
		return;
	key.size = (uint64_t)size;
	memcpy(key.name, w->name, n);
	(void)hash_put(&w->seen, &key, sizeof(key.size) + n, &is_new);
	if (!is_new)
		return;
	item.type = user_node(w->g, die);
	w->fn(w->arg, &item);
}

/* In C a struct often has no other name than a typedef's. */
static void offer_typedef(struct item_walk *w, Dwarf_Die *die, size_t len)
{
	const char *name = dwarf_diename(die);
	Dwarf_Attribute a;
	Dwarf_Die of;
	int tag;

	if (!name || !dwarf_attr(die, DW_AT_type, &a) || !dwarf_formref_die(&a, &of))
		return;
	tag = dwarf_tag(&of);
	if ((tag == DW_TAG_structure_type || tag == DW_TAG_union_type) && !dwarf_diename(&of))
		offer_type(w, die, dwarf_bytesize(&of), len, name);
}

static void walk_scope(struct item_walk *w, Dwarf_Die *parent, size_t len, uint32_t depth)
{
	Dwarf_Die die;
	const char *name;
	size_t n;

	if (depth == SCOPES || dwarf_child(parent, &die))
		return;
	do {
		if (w->dies++ > DIES_MAX) {
			w->g->user->is_cut = true;
			return;
		}
		switch (dwarf_tag(&die)) {
		case DW_TAG_variable: offer_variable(w, &die); break;
		case DW_TAG_typedef: offer_typedef(w, &die, len); break;
		case DW_TAG_structure_type:
		case DW_TAG_class_type:
		case DW_TAG_union_type:
			name = dwarf_diename(&die);
			if (!name || dwarf_hasattr(&die, DW_AT_declaration))
				break;
			offer_type(w, &die, dwarf_bytesize(&die), len, name);
			n = w->qualify ? add_part(w, len, name) : 0;
			if (n)
				walk_scope(w, &die, n, depth + 1);
			break;
		case DW_TAG_namespace:
			name = dwarf_diename(&die);
			n = add_part(w, len, name ? name : "(anonymous namespace)");
			if (n)
				walk_scope(w, &die, n, depth + 1);
			break;
		case DW_TAG_subprogram:
		case DW_TAG_lexical_block: walk_scope(w, &die, len, depth + 1); break;
		default: break;
		}
	} while (!w->g->user->is_cut && !dwarf_siblingof(&die, &die));
}

/* Finds the distance between the addresses of a file's DWARF and those of its mapping. */
static bool text_bias(const struct user_text *t, Dwarf_Addr of_dwarf, uint64_t *ret)
{
	Dwarf_Addr of_elf;
	Elf *elf = dwfl_module_getelf(t->mod, &of_elf);
	GElf_Phdr p;
	size_t n;

	if (!elf || elf_getphdrnum(elf, &n))
		return false;
	for (size_t i = 0; i < n; i++) {
		if (!gelf_getphdr(elf, (int)i, &p) || p.p_type != PT_LOAD || !(p.p_flags & PF_X) ||
		    t->offset < (p.p_offset & ~4095ull) || t->offset >= p.p_offset + p.p_filesz)
			continue;
		*ret = of_dwarf - of_elf + t->start - t->offset + p.p_offset - p.p_vaddr;
		return true;
	}
	return false;
}

/* Returns true when the unit's language is not C. */
static bool has_namespaces(Dwarf_Die *unit)
{
	switch (dwarf_srclang(unit)) {
	case DW_LANG_C:
	case DW_LANG_C89:
	case DW_LANG_C99:
	case DW_LANG_C11:
	case -1: return false;
	default: return true;
	}
}

static bool is_system(Dwfl_Module *mod)
{
	static const char *const front[] = { "libc.so", "libc-", "ld-linux", "ld-" };
	const char *path = dwfl_module_info(mod, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
	const char *name = path ? strrchr(path, '/') : NULL;

	for (size_t i = 0; name && i < ARRAY_SIZE(front); i++)
		if (!strncmp(name + 1, front[i], strlen(front[i])))
			return true;
	return false;
}

void type_user_each(struct type_graph *g, void (*fn)(void *arg, const struct type_user_item *item),
		    void *arg)
{
	struct item_walk w = { .g = g, .fn = fn, .arg = arg };
	struct user_types *u = g->user;

	if (!u)
		return;
	user_index(u);
	for (uint32_t i = 0; i < u->texts.n; i++) {
		Dwarf_Addr bias;
		Dwarf *dw = dwarf_of_module(u->texts.v[i].mod, &bias, &u->copies);
		Dwarf_CU *cu = NULL;
		Dwarf_Die unit;

		if (!dw || !text_bias(&u->texts.v[i], bias, &w.bias))
			continue;
		w.system = is_system(u->texts.v[i].mod);
		while (!u->is_cut && !dwarf_get_units(dw, cu, &cu, NULL, NULL, &unit, NULL)) {
			w.qualify = has_namespaces(&unit);
			walk_scope(&w, &unit, 0, 0);
		}
	}
	hash_fini(&w.seen);
}
