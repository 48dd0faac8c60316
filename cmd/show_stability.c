/* dtrace -v: prints the stability of the names that a program uses. */
#include "show_stability.h"

#include "base/glob.h"

void print_stability(FILE *out, const char *what, struct stability s)
{
	fprintf(out,
		"\n\t%s Attributes\n\t\tIdentifier Names: %s\n\t\tData Semantics:   %s\n"
		"\t\tDependency Class: %s\n",
		what, stability_levels[s.names], stability_levels[s.data],
		stability_classes[s.dependency]);
}

/* Returns the clause's first probe that the description matches; NULL: none, or the description is
 * a number. */
static const struct probe *first_probe(const struct bound_clause *c, const struct pdesc *d)
{
	for (uint32_t i = 0; i < c->nprobes && !d->by_id; i++)
		if (glob_match(d->prov, c->probes[i]->prov))
			return c->probes[i];
	return NULL;
}

void run_say_stability(const struct run *r, const struct bound *b, const struct source *s)
{
	static const struct stability most = { LEVEL_STABLE, LEVEL_STABLE, CLASS_COMMON };
	struct stability descs = most, statements = most;

	for (uint32_t i = 0; i < b->clauses.n; i++) {
		const struct bound_clause *c = b->clauses.v[i];

		if (c->loc < s->base || c->loc > s->base + s->len)
			continue;
		statements = stability_min(statements, bound_clause_stability(c));
		for (const struct pdesc *d = c->descs; d; d = d->next) {
			const struct probe_desc pd = { d->prov, d->mod, d->func, d->name };
			const struct probe *p = first_probe(c, d);

			if (p)
				descs = stability_min(descs, probe_desc_stability(&pd, p));
		}
	}
	fprintf(r->out, "\nStability attributes for %s %.*s:\n", run_source_kind(s),
		(int)run_source_shown(r, s), s->name);
	print_stability(r->out, "Minimum Probe Description", descs);
	print_stability(r->out, "Minimum Statement", statements);
	fputc('\n', r->out);
}
