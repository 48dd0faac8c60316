/* Writes the output of -G for changed objects, as assembler text: notes of <sys/sdt.h> and DOF, and
 * the functions that answer questions.
 *
 * Places are written as anchor + distance. Anchors are weak. If the linker dropped a section
 * because another object had the same function, the place is near 0 and is no probe.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "program/object/call_sites.h"
#include "program/object/object_private.h"

/* The section also holds the markers. A linker that drops unreferenced sections keeps it, because
 * the objects refer to the markers. */
#define DOF_SECTION CALLS_DOF_SECTION

__attribute__((format(printf, 2, 3))) static void put(FILE *out, const char *fmt, ...)
{
	va_list ap;

	fputs("__asm__(\"", out);
	va_start(ap, fmt);
	vfprintf(out, fmt, ap);
	va_end(ap);
	fputs("\\n\");\n", out);
}

static bool is_of(const struct call_site *s, const struct probe_definition *d)
{
	return !strcmp(s->provider, d->provider) && !strcmp(s->name, d->name);
}

static bool any(const struct probe_definition *d, const struct call_site *const *sites, uint32_t n,
		bool asks, bool by_pointer)
{
	for (uint32_t i = 0; i < n; i++)
		if (is_of(sites[i], d) && sites[i]->asks == asks &&
		    sites[i]->by_pointer == by_pointer)
			return true;
	return false;
}

static void put_anchor(FILE *out, const struct call_site *s)
{
	put(out, ".weak %s\\n.hidden %s", s->anchor, s->anchor);
}

/* Writes a symbol that objects refer to and nothing reads. It is not absolute, because linkers
 * refuse absolute symbols in position-independent programs. */
static void put_marker(FILE *out, const char *section, const char *prefix,
		       const struct probe_definition *d)
{
	cleanup_free char *name = xasprintf("%s%s___%s", prefix, d->provider, d->name);

	put(out,
	    ".pushsection %s,\\\"aw\\\",\\\"progbits\\\"\\n.globl %s\\n.hidden %s\\n%s:\\n.popsection",
	    section, name, name, name);
}

static void put_answer(FILE *out, const char *prefix, const struct probe_definition *d,
		       const char *store)
{
	cleanup_free char *name = xasprintf("%s%s___%s", prefix, d->provider, d->name);

	put(out, ".pushsection .text\\n.globl %s\\n.hidden %s\\n.type %s, @function\\n%s:", name,
	    name, name, name);
	put(out,
	    "\\t.cfi_startproc\\n\\tendbr64\\n\\txor %%eax, %%eax\\n"
	    "\\tcmpw $0, .Lflag_%s___%s(%%rip)\\n\\tsetne %%al%s\\n\\tret",
	    d->provider, d->name, store);
	put(out, "\\t.cfi_endproc\\n.size %s, . - %s\\n.popsection", name, name);
}

static void put_questions(FILE *out, const struct probe_definition *d,
			  const struct call_site *const *sites, uint32_t n)
{
	bool value = any(d, sites, n, true, false), pointer = any(d, sites, n, true, true);

	if (value || pointer)
		put(out, ".set .Lflag_%s___%s, %s_%s_semaphore", d->provider, d->name, d->provider,
		    d->name);
	if (value)
		put_answer(out, CALLS_ASKS, d, "");
	if (pointer)
		put_answer(out, CALLS_ASKS_BY_POINTER, d, "\\n\\tmov %eax, (%rdi)");
}

static void operands(const struct probe_definition *d, bool tail, char *text, size_t size)
{
	size_t len = 0;

	*text = 0;
	for (uint32_t i = 0; i < d->nargs && len + 1 < size; i++) {
		char one[24];
		int n;

		image_put_operand(one, sizeof(one), d->args[i].native, d->args[i].size,
				  tail ? 8 : 0);
		n = snprintf(text + len, size - len, "%s%s", len ? " " : "", one);
		if (n > 0)
			len += (size_t)n;
	}
}

static void put_base(FILE *out)
{
	put(out, ".ifndef _.stapsdt.base\\n"
		 ".pushsection .stapsdt.base,\\\"aG\\\",\\\"progbits\\\",.stapsdt.base,comdat\\n"
		 ".weak _.stapsdt.base\\n.hidden _.stapsdt.base\\n"
		 "_.stapsdt.base: .space 1\\n.size _.stapsdt.base, 1\\n.popsection\\n.endif");
}

void calls_put_notes(FILE *out, const struct probe_definition *d,
		     const struct call_site *const *sites, uint32_t n)
{
	put_questions(out, d, sites, n);
	if (!any(d, sites, n, false, false))
		return;
	put_marker(out, ".probes", CALLS_PROBE_DONE, d);
	put_base(out);
	for (uint32_t i = 0; i < n; i++) {
		const struct call_site *s = sites[i];
		char args[32 * 24];

		if (!is_of(s, d) || s->asks)
			continue;
		operands(d, s->tail, args, sizeof(args));
		put_anchor(out, s);
		put(out, ".pushsection .note.stapsdt,\\\"\\\",\\\"note\\\"\\n.balign 4\\n"
			 ".4byte 8, 992f-991f, 3\\n.asciz \\\"stapsdt\\\"");
		put(out, "991: .8byte %s+%lld\\n.8byte _.stapsdt.base", s->anchor,
		    (long long)s->place);
		/* The macros of -h read the flag themselves. No call in the object shows whether
		 * they do. */
		put(out, ".8byte %s_%s_semaphore", d->provider, d->name);
		put(out, ".asciz \\\"%s\\\"\\n.asciz \\\"%s\\\"\\n.asciz \\\"%s\\\"", d->provider,
		    d->name, args);
		put(out, "992: .balign 4\\n.popsection");
	}
}

void calls_put_unreached(FILE *out, const char *provider, const char *name)
{
	put_base(out);
	put(out, ".pushsection .text\\n.type __descry_unreached_%s___%s, @function\\n", provider,
	    name);
	put(out, "__descry_unreached_%s___%s: .byte 0x0f, 0x1f, 0x44, 0, 0\\nret", provider, name);
	put(out, ".size __descry_unreached_%s___%s, 6\\n.popsection", provider, name);
	put(out, ".pushsection .note.stapsdt,\\\"\\\",\\\"note\\\"\\n.balign 4\\n"
		 ".4byte 8, 992f-991f, 3\\n.asciz \\\"stapsdt\\\"");
	put(out, "991: .8byte __descry_unreached_%s___%s\\n.8byte _.stapsdt.base", provider, name);
	put(out, ".8byte %s_%s_semaphore", provider, name);
	put(out, ".asciz \\\"%s\\\"\\n.asciz \\\"%s\\\"\\n.asciz \\\"\\\"", provider, name);
	put(out, "992: .balign 4\\n.popsection");
}

/* --- DOF: dof.c draws it --- */

/* Returns true for sites of one probe in one function, which become one probe of DOF. */
static bool same_function(const struct call_site *a, const struct call_site *b)
{
	return a->func_place == b->func_place && a->func_hash == b->func_hash &&
	       !strcmp(a->anchor, b->anchor) && !strcmp(a->func, b->func);
}

/* Returns true for the first site of its probe and function. */
static bool leads(const struct probe_definition *d, const struct call_site *const *sites,
		  uint32_t at)
{
	if (!is_of(sites[at], d))
		return false;
	for (uint32_t i = 0; i < at; i++)
		if (same_function(sites[i], sites[at]) && is_of(sites[i], d))
			return false;
	return true;
}

struct dof_text {
	FILE *out;
	const struct probe_definition *const *defs;
	uint32_t ndefs;
	const struct call_site *const *sites;
	uint32_t n;
	const char *comment; /* NULL: none */
};

/* Calls fn for every probe of DOF: a definition and the first of its sites in a function. */
static void each_probe(const struct dof_text *t,
		       void (*fn)(const struct dof_text *t, uint32_t def, uint32_t lead))
{
	for (uint32_t k = 0; k < t->ndefs; k++)
		for (uint32_t i = 0; i < t->n; i++)
			if (leads(t->defs[k], t->sites, i))
				fn(t, k, i);
}

static void put_function_name(const struct dof_text *t, uint32_t def, uint32_t lead)
{
	put(t->out, ".Ldof_f%u_%u: .asciz \\\"%s\\\"", def, lead, t->sites[lead]->func);
}

static void put_strings(const struct dof_text *t)
{
	put(t->out, ".Ldof_strings: .byte 0\\n.Ldof_p: .asciz \\\"%s\\\"", t->defs[0]->provider);
	for (uint32_t k = 0; k < t->ndefs; k++) {
		const struct probe_definition *d = t->defs[k];

		put(t->out, ".Ldof_n%u: .asciz \\\"%s\\\"", k, d->name);
		put(t->out, ".Ldof_v%u:", k);
		for (uint32_t i = 0; i < d->nnative; i++)
			put(t->out, ".asciz \\\"%s\\\"", d->native[i]);
		put(t->out, ".byte 0\\n.Ldof_x%u:", k);
		for (uint32_t i = 0; i < d->nargs; i++)
			put(t->out, ".asciz \\\"%s\\\"", d->args[i].shown);
		put(t->out, ".byte 0");
	}
	each_probe(t, put_function_name);
}

static uint32_t calls_text_count(const struct dof_text *t, uint32_t def, uint32_t lead, bool asks)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < t->n; i++)
		n += t->sites[i]->asks == asks && same_function(t->sites[i], t->sites[lead]) &&
		     is_of(t->sites[i], t->defs[def]);
	return n;
}

static void put_probe(const struct dof_text *t, uint32_t def, uint32_t lead)
{
	const struct probe_definition *d = t->defs[def];
	const struct call_site *s = t->sites[lead];

	put(t->out, ".8byte %s+%lld", s->anchor, (long long)s->func_place);
	put(t->out,
	    ".4byte .Ldof_f%u_%u-.Ldof_strings, .Ldof_n%u-.Ldof_strings, .Ldof_v%u-.Ldof_strings, "
	    ".Ldof_x%u-.Ldof_strings, .Ldof_a%u-.Ldof_args",
	    def, lead, def, def, def, def);
	put(t->out, ".4byte (.Ldof_o%u_%u-.Ldof_offs)/4\\n.byte %u, %u\\n.2byte %u", def, lead,
	    d->nnative, d->nargs, calls_text_count(t, def, lead, false));
	put(t->out, ".4byte (.Ldof_e%u_%u-.Ldof_asks)/4\\n.2byte %u, 0\\n.4byte 0", def, lead,
	    calls_text_count(t, def, lead, true));
}

static void put_distances(const struct dof_text *t, uint32_t def, uint32_t lead, bool asks)
{
	put(t->out, ".Ldof_%c%u_%u:", asks ? 'e' : 'o', def, lead);
	for (uint32_t i = 0; i < t->n; i++)
		if (t->sites[i]->asks == asks && same_function(t->sites[i], t->sites[lead]) &&
		    is_of(t->sites[i], t->defs[def]))
			put(t->out, ".4byte %lld",
			    (long long)(t->sites[i]->place - t->sites[i]->func_place));
}

static void put_places(const struct dof_text *t, uint32_t def, uint32_t lead)
{
	put_distances(t, def, lead, false);
}

static void put_asks(const struct dof_text *t, uint32_t def, uint32_t lead)
{
	put_distances(t, def, lead, true);
}

/* type align flags entsize offset size. The flag means loaded; comments are not. */
static void put_section(FILE *out, uint32_t type, uint32_t align, uint32_t entry, const char *from,
			const char *to)
{
	put(out, ".4byte %u, %u, %u, %u\\n.8byte .Ldof_%s-.Ldof, .Ldof_%s-.Ldof_%s", type, align,
	    type != 1, entry, from, to, from);
}

static void put_headers(FILE *out, bool comment)
{
	put(out, ".Ldof: .byte 0x7f, 'D', 'O', 'F', 2, 1, 2, 2, 8, 8, 0, 0, 0, 0, 0, 0");
	put(out, ".4byte 0, 64, 32, %u\\n.8byte 64, .Ldof_end-.Ldof, .Ldof_file-.Ldof, 0",
	    comment ? 7 : 6);
	put_section(out, 8, 1, 0, "strings", "provider");
	put_section(out, 15, 4, 0, "provider", "probes");
	put_section(out, 16, 8, 48, "probes", "args");
	put_section(out, 17, 1, 1, "args", "offs");
	put_section(out, 18, 4, 4, "offs", "asks");
	put_section(out, 26, 4, 4, "asks", "end");
	if (comment)
		put_section(out, 1, 1, 0, "end", "comment");
}

/* Writes text with the provider's name in its labels, so that a file can hold several DOFs. */
static void put_labelled(FILE *out, const char *text, const char *provider)
{
	static const char label[] = ".Ldof";

	for (const char *next; (next = strstr(text, label)); text = next + strlen(label))
		fprintf(out, "%.*s%s_%s", (int)(next - text), text, label, provider);
	fputs(text, out);
}

static void put_dof(const struct dof_text *t)
{
	/* Five attributes of the provider: unstable, of an unknown class. */
	static const char attributes[] =
		"0x04040000, 0x04040000, 0x04040000, 0x04040000, 0x04040000";

	put(t->out, ".pushsection " DOF_SECTION ",\\\"aw\\\",\\\"progbits\\\"\\n.balign 8");
	put_headers(t->out, t->comment);
	put_strings(t);
	put(t->out, ".balign 4\\n.Ldof_provider: .4byte 0, 2, 3, 4, .Ldof_p-.Ldof_strings, %s, 5",
	    attributes);
	put(t->out, ".balign 8\\n.Ldof_probes:");
	each_probe(t, put_probe);
	put(t->out, ".Ldof_args:");
	for (uint32_t k = 0; k < t->ndefs; k++) {
		put(t->out, ".Ldof_a%u:", k);
		for (uint32_t i = 0; i < t->defs[k]->nargs; i++)
			put(t->out, ".byte %u", t->defs[k]->args[i].native);
	}
	put(t->out, ".balign 4\\n.Ldof_offs:");
	each_probe(t, put_places);
	put(t->out, ".Ldof_asks:");
	each_probe(t, put_asks);
	put(t->out, ".Ldof_end:");
	if (t->comment)
		put(t->out, ".asciz \\\"%s\\\"\\n.Ldof_comment: .balign 8", t->comment);
	put(t->out, ".Ldof_file:\\n.popsection");
}

void calls_put_markers(FILE *out, const struct probe_definition *d,
		       const struct call_site *const *sites, uint32_t n)
{
	if (any(d, sites, n, false, false))
		put_marker(out, DOF_SECTION, CALLS_PROBE_DONE, d);
	if (any(d, sites, n, true, true))
		put_marker(out, DOF_SECTION, CALLS_ASKS_BY_POINTER, d);
	if (any(d, sites, n, true, false))
		put_marker(out, DOF_SECTION, CALLS_ASKS, d);
}

void calls_put_dof(FILE *out, const struct probe_definition *const *defs, uint32_t ndefs,
		   const struct call_site *const *sites, uint32_t n, const char *comment)
{
	struct dof_text t = {
		.defs = defs, .ndefs = ndefs, .sites = sites, .n = n, .comment = comment
	};
	cleanup_free char *text = NULL;
	bool found = false;
	size_t len;

	for (uint32_t k = 0; k < ndefs; k++)
		for (uint32_t i = 0; i < n; i++)
			if (is_of(sites[i], defs[k])) {
				put_anchor(out, sites[i]);
				found = true;
			}
	if (!found)
		return;
	t.out = open_memstream(&text, &len);
	put_dof(&t);
	fclose(t.out);
	put_labelled(out, text, defs[0]->provider);
}
