/* Prototypes of functions, from the DWARF of a file that need not be mapped by a process. */
#include <dwarf.h>
#include <string.h>

#include "user_private.h"

void user_file_free(struct user_file *f)
{
	hash_fini(&f->units);
	hash_fini(&f->funcs);
	if (f->dwfl)
		dwfl_end(f->dwfl);
	dwarf_copies_free(&f->copies);
	free(f->path);
	free(f);
}

static struct user_file *user_file(struct user_types *u, const char *path)
{
	struct user_file *f;
	Dwarf_Addr bias;

	for (uint32_t i = 0; i < u->files.n; i++)
		if (!strcmp(u->files.v[i]->path, path))
			return u->files.v[i];
	f = xcalloc(1, sizeof(*f));
	f->path = xstrdup(path);
	vec_push(&u->files, f);
	f->dwfl = dwfl_begin(&dwarf_callbacks);
	f->mod = f->dwfl ? dwarf_report(f->dwfl, path, path) : NULL;
	if (!f->mod)
		return f;
	dwfl_report_end(f->dwfl, NULL, NULL);
	if (dwfl_module_getelf(f->mod, &f->bias))
		f->dwarf = dwarf_of_module(f->mod, &bias, &f->copies);
	return f;
}

static void index_functions(struct user_types *u, struct user_file *f, Dwarf_Die *parent,
			    uint32_t depth)
{
	Dwarf_Addr bias, addr;
	Dwarf_Die die;

	if (!dwfl_module_getdwarf(f->mod, &bias) || dwarf_child(parent, &die))
		return;
	do {
		int tag = dwarf_tag(&die);

		if (tag == DW_TAG_namespace && depth < NAMESPACES)
			index_functions(u, f, &die, depth + 1);
		if (tag != DW_TAG_subprogram || dwarf_entrypc(&die, &addr))
			continue;
		if (!user_afford(u, sizeof(addr) + ENTRY_BYTES))
			break;
		addr += bias - f->bias;
		*hash_put(&f->funcs, &addr, sizeof(addr), NULL) = dwarf_dieoffset(&die) + 1;
	} while (!dwarf_siblingof(&die, &die));
}

static void index_unit(struct user_types *u, struct user_file *f, Dwarf_Die *unit)
{
	uint64_t at = dwarf_dieoffset(unit);
	bool fresh;

	hash_put(&f->units, &at, sizeof(at), &fresh);
	if (fresh)
		index_functions(u, f, unit, 0);
}

/* Finds a function. .debug_aranges gives its unit. clang leaves .debug_aranges out, and then all
 * units are read. */
static bool find_function(struct user_types *u, struct user_file *f, uint64_t addr, Dwarf_Die *ret)
{
	Dwarf_Addr bias;
	Dwarf_Die *unit = dwfl_module_addrdie(f->mod, addr + f->bias, &bias), die;
	Dwarf_CU *cu = NULL;
	uint64_t *slot;

	if (unit) {
		index_unit(u, f, unit);
	} else if (!f->all) {
		f->all = true;
		while (!dwarf_get_units(f->dwarf, cu, &cu, NULL, NULL, &die, NULL))
			index_unit(u, f, &die);
	}
	slot = hash_get(&f->funcs, &addr, sizeof(addr));
	return slot && dwarf_offdie(f->dwarf, *slot - 1, ret);
}

bool type_user_func(struct type_graph *g, const char *path, uint64_t addr, type_id *ret)
{
	VEC(struct type_param) params = { 0 };
	struct user_file *f;
	Dwarf_Die die, p;
	bool varargs = false;

	if (!g->user)
		type_use_process(g, 0);
	f = user_file(g->user, path);
	if (!f->dwarf || !find_function(g->user, f, addr, &die))
		return false;
	if (!dwarf_child(&die, &p)) {
		do {
			const char *name = dwarf_diename(&p);

			if (dwarf_tag(&p) == DW_TAG_unspecified_parameters)
				varargs = true;
			else if (dwarf_tag(&p) == DW_TAG_formal_parameter &&
				 user_afford(g->user, 4 * sizeof(*params.v)))
				vec_push(&params, (struct type_param){ user_keep_name(g, name),
								       user_type_of(g, &p) });
		} while (!dwarf_siblingof(&p, &p));
	}
	*ret = type_new_func(g, user_type_of(g, &die), params.v, params.n, varargs);
	vec_fini(&params);
	return true;
}
