/* -h: statically defined probes in programs, by <sys/sdt.h> (package systemtap-sdt-dev).
 *
 *	provider p { probe query__start(int, char *); };
 *
 * -h gives P_QUERY_START(arg0, arg1) and P_QUERY_START_ENABLED(). A probe is a nop and 4 bytes
 * more: the in-process engine needs 5, and the kernel of Linux 6.18 makes a call of a nop that has
 * 5 itself, which overwrites what leaf functions keep below the stack. The latter reads a flag
 * (.probes section, a semaphore) that a tracer counts up; -G makes the object that holds it.
 */
#include "header.h"

#include <ctype.h>
#include <errno.h>

/* P_QUERY_START: upper case, "__" is a hyphen and becomes one underscore. */
static void put_macro(FILE *out, const char *provider, const char *probe)
{
	for (const char *s = provider; *s; s++)
		fputc(toupper((unsigned char)*s), out);
	fputc('_', out);
	for (const char *s = probe; *s; s++) {
		if (s[0] == '_' && s[1] == '_')
			s++;
		fputc(toupper((unsigned char)*s), out);
	}
}

static uint32_t count_args(const struct provider_probe *p)
{
	uint32_t n = 0;

	for (const struct decl *d = p->native; d; d = d->next)
		if (!(d->spec && d->spec->base == BASE_VOID && !d->declr))
			n++;
	return n;
}

static void put_args(FILE *out, uint32_t n, bool leading_comma)
{
	for (uint32_t i = 0; i < n; i++)
		fprintf(out, "%sarg%u", i || leading_comma ? ", " : "", i);
}

static void header_probe(FILE *out, const char *provider, const struct provider_probe *p)
{
	uint32_t n = count_args(p);

	fprintf(out, "\n#define ");
	put_macro(out, provider, p->name);
	fputc('(', out);
	put_args(out, n, false);
	if (n)
		fprintf(out, ") DTRACE_PROBE%u(%s, %s", n, provider, p->name);
	else
		fprintf(out, ") DTRACE_PROBE(%s, %s", provider, p->name);
	put_args(out, n, true);
	fprintf(out,
		")\nextern volatile unsigned short %s_%s_semaphore __attribute__((section(\".probes\")));\n#define ",
		provider, p->name);
	put_macro(out, provider, p->name);
	fprintf(out, "_ENABLED() __builtin_expect(%s_%s_semaphore, 0)\n", provider, p->name);
}

uint32_t header_each_probe(struct node *const *tops, uint32_t n, FILE *out,
			   void (*fn)(FILE *out, const char *provider,
				      const struct provider_probe *p))
{
	uint32_t found = 0;

	for (uint32_t i = 0; i < n; i++)
		for (const struct node *t = tops[i]; t; t = t->next)
			for (const struct provider_probe *p =
				     t->kind == D_PROVIDER ? t->provider.probes : NULL;
			     p; p = p->next) {
				fn(out, t->provider.name, p);
				found++;
			}
	return found;
}

/* "dir/prov.d" -> "prov.h", where we are, as dtrace(1) does. */
char *header_output_name(const struct cmdline *c, const char *suffix)
{
	const char *path = "probes", *base, *dot;

	if (c->output)
		return xstrdup(c->output);
	for (uint32_t i = 0; i < c->programs.n; i++)
		if (c->programs.v[i].file)
			path = c->programs.v[i].text;
	base = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
	dot = strrchr(base, '.');
	return xasprintf("%.*s%s", dot ? (int)(dot - base) : (int)strlen(base), base, suffix);
}

int header_failed(const struct cmdline *c, const char *what, const char *name)
{
	fprintf(stderr, "%s: %s %s: %s\n", c->progname, what, name, strerror(errno));
	return 1;
}

bool header_no_provider(const struct cmdline *c, struct node *const *tops, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		for (const struct node *t = tops[i]; t; t = t->next)
			if (t->kind == D_PROVIDER && t->provider.probes)
				return false;
	fprintf(stderr,
		"%s: no provider definition in the sources: -%c makes files for `provider p { probe x(int); };`\n",
		c->progname, c->mode == CMD_HEADER ? 'h' : 'G');
	return true;
}

int header_write_file(const struct cmdline *c, const char *name, const void *p, size_t n)
{
	FILE *out = fopen(name, "we");
	bool bad;

	if (!out)
		return header_failed(c, "cannot write", name);
	bad = fwrite(p, 1, n, out) != n;
	if (!bad)
		return fclose(out) ? header_failed(c, "cannot write", name) : 0;
	header_failed(c, "cannot write", name);
	fclose(out);
	return 1;
}

static int make_header(const struct cmdline *c, struct node *const *tops, uint32_t n)
{
	cleanup_free char *name = header_output_name(c, ".h");
	cleanup_free char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	fprintf(out,
		"/* Made by %s -h. */\n#pragma once\n\n#include <inttypes.h>\n#include <unistd.h>\n\n"
		"#define _SDT_HAS_SEMAPHORES 1\n#include <sys/sdt.h>\n\n"
		"/* Room for a jump, so that a probe can be traced from inside the process wherever it stands. */\n"
		"#ifdef __x86_64__\n#undef _SDT_NOP\n#define _SDT_NOP nop; .nops 4\n#endif\n",
		c->progname);
	header_each_probe(tops, n, out, header_probe);
	fclose(out);
	return header_write_file(c, name, text, len);
}

int cmd_header(struct cmdline *c, struct node *const *tops, uint32_t n)
{
	return header_no_provider(c, tops, n) || make_header(c, tops, n);
}
