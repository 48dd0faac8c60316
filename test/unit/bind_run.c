#include "bind_run.h"

void bind_run_open(struct bind_run *r, const char *btf)
{
	memset(r, 0, sizeof(*r));
	arena_init(&r->arena);
	diags_init(&r->diags);
	options_init(&r->options);
	r->types = type_graph_new();
	type_use_kernel(r->types, btf && !*btf ? "/nonexistent/btf" : btf);
	r->symbols = symbols_new();
	probe_set_init(&r->probes, r->types, r->symbols);
	r->macros.target = -1;
	r->parse = (struct parse_cx){ .arena = &r->arena,
				      .diags = &r->diags,
				      .macros = &r->macros,
				      .is_type = bind_is_type,
				      .is_type_arg = &r->bind,
				      .typedefs = &r->typedefs,
				      .empty = true };
	r->bind = (struct bind_cx){ .arena = &r->arena,
				    .diags = &r->diags,
				    .types = r->types,
				    .probes = &r->probes,
				    .options = &r->options,
				    .macros = &r->macros,
				    .parse = &r->parse };
	bind_init(&r->bind);
}

void bind_run_text(struct bind_run *r, const char *name, const char *text)
{
	source_add(&r->diags, SOURCE_FILE, name, text, strlen(text));
	bind_add(&r->bind, parse_source(&r->parse, r->diags.nsources - 1, PDESC_NAME));
	r->bound = bind_finish(&r->bind);
}

void bind_run_init(struct bind_run *r, const char *name, const char *text, const char *btf)
{
	bind_run_open(r, btf);
	bind_run_text(r, name, text);
}

void bind_run_fini(struct bind_run *r)
{
	bind_fini(&r->bind);
	hash_fini(&r->typedefs);
	probe_set_fini(&r->probes);
	symbols_free(r->symbols);
	type_graph_free(r->types);
	options_fini(&r->options);
	diags_fini(&r->diags);
	arena_fini(&r->arena);
}

uint32_t bind_run_count(const struct bind_run *r, const char *tag)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < r->diags.n; i++)
		n += r->diags.list[i].tag && !strcmp(r->diags.list[i].tag, tag);
	return n;
}

struct variable *bind_run_var(const struct bind_run *r, enum var_scope scope, const char *name)
{
	for (uint32_t i = 0; i < r->bound->vars.n; i++) {
		if (r->bound->vars.v[i]->scope == scope && !strcmp(r->bound->vars.v[i]->name, name))
			return r->bound->vars.v[i];
	}
	return NULL;
}

bool have_kernel_types(void)
{
	return access("/sys/kernel/btf/vmlinux", R_OK) == 0;
}
