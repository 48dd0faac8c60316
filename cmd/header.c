/* -h and -G: statically defined probes in programs, by <sys/sdt.h> (package systemtap-sdt-dev).
 *
 *	provider p { probe query__start(int, char *); };
 *
 * -h gives P_QUERY_START(arg0, arg1) and P_QUERY_START_ENABLED(). A probe is a nop and 4 bytes more: the in-process engine needs 5, and the
 * kernel of Linux 6.18 makes a call of a nop that has 5 itself, which overwrites what leaf functions keep below the stack. -G gives the object that holds the flags which the latter
 * reads and a tracer counts up (.probes section, semaphores).
 */
#define _GNU_SOURCE /* memfd_create */
#include <ctype.h>
#include <errno.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "base/io.h"
#include "cmdline.h"

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

static void object_probe(FILE *out, const char *provider, const struct provider_probe *p)
{
	fprintf(out,
		"volatile unsigned short %s_%s_semaphore __attribute__((section(\".probes\")));\n",
		provider, p->name);
}

static uint32_t each_probe(struct node *const *tops, uint32_t n, FILE *out,
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
static char *output_name(const struct cmdline *c, const char *suffix)
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

static int fail(const struct cmdline *c, const char *what, const char *name)
{
	fprintf(stderr, "%s: %s %s: %s\n", c->progname, what, name, strerror(errno));
	return 1;
}

static int write_file(const struct cmdline *c, const char *name, const void *p, size_t n)
{
	FILE *out = fopen(name, "we");
	bool bad;

	if (!out)
		return fail(c, "cannot write", name);
	bad = fwrite(p, 1, n, out) != n;
	if (!bad)
		return fclose(out) ? fail(c, "cannot write", name) : 0;
	fail(c, "cannot write", name);
	fclose(out);
	return 1;
}

static int make_header(const struct cmdline *c, struct node *const *tops, uint32_t n)
{
	cleanup_free char *name = output_name(c, ".h");
	cleanup_free char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	fprintf(out,
		"/* Made by %s -h. */\n#pragma once\n\n#define _SDT_HAS_SEMAPHORES 1\n#include <sys/sdt.h>\n\n"
		"/* Room for a jump, so that a probe can be traced from inside the process wherever it stands. */\n"
		"#ifdef __x86_64__\n#undef _SDT_NOP\n#define _SDT_NOP nop; .nops 4\n#endif\n",
		c->progname);
	each_probe(tops, n, out, header_probe);
	fclose(out);
	return write_file(c, name, text, len);
}

/* The compiler writes to memory: what goes wrong with the file is ours to say. */
static int make_object(const struct cmdline *c, struct node *const *tops, uint32_t n)
{
	cleanup_free char *name = output_name(c, ".o");
	cleanup_close int fd = memfd_create("descry-object", MFD_CLOEXEC);
	cleanup_free char *path = xasprintf("/proc/%d/fd/%d", (int)getpid(), fd);
	cleanup_free char *command = NULL;
	cleanup_free char *object = NULL;
	const char *cc = getenv("CC");
	size_t len;
	FILE *out;
	int status;
	struct err *e;

	if (fd < 0)
		return fail(c, "cannot make", "a file in memory");
	command = xasprintf("%s -x c -c -fPIC -o %s -", cc ? cc : "cc", path);
	out = popen(command, "we");
	if (!out)
		return fail(c, "cannot run", cc ? cc : "cc");
	each_probe(tops, n, out, object_probe);
	status = pclose(out);
	if (status) {
		fprintf(stderr, "%s: the C compiler failed on %s\n", c->progname, name);
		return 1;
	}
	e = io_read_file(path, &object, &len);
	if (e) {
		fprintf(stderr, "%s: %s\n", c->progname, e->text);
		err_free(e);
		return 1;
	}
	return write_file(c, name, object, len);
}

int cmd_header(struct cmdline *c, struct node *const *tops, uint32_t n)
{
	cleanup_free char *text = NULL;
	size_t len;
	FILE *none = open_memstream(&text, &len);
	uint32_t found = each_probe(tops, n, none, object_probe);

	fclose(none);
	if (!found) {
		fprintf(stderr,
			"%s: no provider definition in the sources: -%c makes files for `provider p { probe x(int); };`\n",
			c->progname, c->mode == CMD_HEADER ? 'h' : 'G');
		return 1;
	}
	return c->mode == CMD_HEADER ? make_header(c, tops, n) : make_object(c, tops, n);
}
