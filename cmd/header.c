/* -h: statically defined probes in programs, by <sys/sdt.h> (package systemtap-sdt-dev).
 *
 *	provider p { probe query__start(int, char *); };
 *
 * -h gives P_QUERY_START(arg0, arg1) and P_QUERY_START_ENABLED(). A probe is a nop and 4 more
 * bytes. The in-process engine needs 5 bytes in all. A single nop of 5 bytes would not do, because
 * Linux 6.18 turns such a nop into a call, which overwrites the data that leaf functions keep below
 * the stack. P_QUERY_START_ENABLED() reads a flag (.probes section, a semaphore) that a tracer
 * counts up; -G makes the object with this flag.
 */
#include "header.h"

#include <ctype.h>
#include <errno.h>

#include "base/outfile.h"

/* Writes P_QUERY_START: upper case, and one underscore for "__" (a hyphen in D). */
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

static bool is_void(const struct decl *d)
{
	return d->spec && d->spec->base == BASE_VOID && !d->declr;
}

static uint32_t count_args(const struct decl *d)
{
	uint32_t n = 0;

	for (; d; d = d->next)
		if (!is_void(d))
			n++;
	return n;
}

/* Writes the probe itself, with the arguments that a tracer sees, in their order. */
static void put_probe(FILE *out, const char *provider, const struct provider_probe *p,
		      const char *arg)
{
	uint32_t n = count_args(provider_args(p)), place = 0;

	if (n)
		fprintf(out, "DTRACE_PROBE%u(%s, %s", n, provider, p->name);
	else
		fprintf(out, "DTRACE_PROBE(%s, %s", provider, p->name);
	for (const struct decl *d = provider_args(p); d; d = d->next, place++)
		if (!is_void(d))
			fprintf(out, ", %s%u", arg, provider_native(p, d, place));
	fputc(')', out);
}

static void header_probe(FILE *out, const char *provider, const struct provider_probe *p)
{
	uint32_t n = count_args(p->native);

	fprintf(out, "\n#define ");
	put_macro(out, provider, p->name);
	fputc('(', out);
	for (uint32_t i = 0; i < n; i++)
		fprintf(out, "%sarg%u", i ? ", " : "", i);
	fprintf(out, ") ");
	if (p->is_translated) { /* an argument may come twice or not at all: it is evaluated once */
		fprintf(out, "do { ");
		for (uint32_t i = 0; i < n; i++)
			fprintf(out, "DESCRY_AUTO descry_arg%u = (arg%u); (void)descry_arg%u; ", i,
				i, i);
		put_probe(out, provider, p, "descry_arg");
		fprintf(out, "; } while (0)");
	} else {
		put_probe(out, provider, p, "arg");
	}
	fprintf(out,
		"\nextern volatile unsigned short %s_%s_semaphore __attribute__((section(\".probes\")));\n#define ",
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

/* Returns "prov.h" for "dir/prov.d", in the working directory, as dtrace(1) does. */
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
	const int fd = outfile_open(name, OUTFILE_SHARED);
	FILE *out = fd < 0 ? NULL : fdopen(fd, "w");
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
		"#ifdef __x86_64__\n#undef _SDT_NOP\n#define _SDT_NOP nop; .nops 4\n#endif\n\n"
		"#ifndef DESCRY_AUTO\n#ifdef __cplusplus\n#define DESCRY_AUTO auto\n#else\n"
		"#define DESCRY_AUTO __auto_type\n#endif\n#endif\n",
		c->progname);
	header_each_probe(tops, n, out, header_probe);
	fclose(out);
	return header_write_file(c, name, text, len);
}

int cmd_header(struct cmdline *c, struct node *const *tops, uint32_t n)
{
	return header_no_provider(c, tops, n) || make_header(c, tops, n);
}
