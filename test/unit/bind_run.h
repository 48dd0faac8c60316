/* Binds a D program for a test: optionally with the kernel's types, without privileges. */
#ifndef DESCRY_TEST_BIND_RUN_H
#define DESCRY_TEST_BIND_RUN_H

#include <stdbool.h>

#include "base/hash.h"
#include "compile/bind/bind.h"

struct bind_run {
	struct arena arena;
	struct diags diags;
	struct options options;
	struct type_graph *types;
	struct symbols *symbols;
	struct probe_set probes;
	struct hash typedefs;
	struct macro_args macros;
	struct parse_cx parse;
	struct bind_cx bind;
	struct bound *bound;
};

/* The result is in r->bound, errors in r->diags. `name` is the source's; btf: NULL the kernel's, ""
 * none. */
void bind_run_init(struct bind_run *r, const char *name, const char *text, const char *btf);
/* The same in two steps, to change something between them. */
void bind_run_open(struct bind_run *r, const char *btf);
void bind_run_text(struct bind_run *r, const char *name, const char *text);
void bind_run_fini(struct bind_run *r);
/* How many errors have that tag. */
uint32_t bind_run_count(const struct bind_run *r, const char *tag);
struct variable *bind_run_var(const struct bind_run *r, enum var_scope scope, const char *name);
bool have_kernel_types(void);

#endif
