/* -G: makes the object with which a program with probes of its own is linked.
 *
 * The object has the flags that _ENABLED() macros read (.probes section, semaphores). Programs
 * compiled against DTrace's own <sys/sdt.h> call a function for each probe. -G turns these calls
 * into nops in the object files that the command line names. It puts the places of the probes into
 * the new object, as notes and DOF. Only notes have the flags, and only DOF has the types of
 * args[].
 */
#define _GNU_SOURCE /* memfd_create */
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <sys/mman.h>

#include "base/child.h"
#include "base/io.h"
#include "cmd/version.h"
#include "compile/bind/bind.h"
#include "header.h"
#include "program/object/call_sites.h"

enum { LINKTYPE_ELF, LINKTYPE_DOF, LINKTYPE_ELFDOF }; /* values of the option linktype */

struct text {
	char *bytes;
	size_t len;
};

struct build {
	struct cmdline *c;
	struct bind_cx *bind;
	struct node *const *tops;
	uint32_t ntops;
	VEC(struct calls *) objects;
	VEC(struct text) texts; /* the original objects, for searching names */
	VEC(const struct call_site *) sites;
	VEC(const struct call_site *) fired;        /* the sites of probes */
	VEC(struct probe_definition *) definitions; /* grouped by provider */
};

static int say(const struct build *b, struct err *e)
{
	fprintf(stderr, "%s: %s\n", b->c->progname, e->text);
	err_free(e);
	return 1;
}

static void define_flag(FILE *out, const char *provider, const struct provider_probe *p)
{
	fprintf(out,
		"volatile unsigned short %s_%s_semaphore __attribute__((section(\".probes\")));\n",
		provider, p->name);
}

static bool wants_notes(const struct build *b)
{
	return opt_num(b->bind->options, OPT_LINKTYPE) == LINKTYPE_ELF;
}

/* Returns true when the site is in a copy of a known function. The linker keeps one copy, and the
 * sites of all copies are equal. */
static bool is_known(const struct build *b, const struct call_site *s)
{
	for (uint32_t i = 0; i < b->sites.n && s->anchor; i++) {
		const struct call_site *o = b->sites.v[i];

		if (o->place == s->place && o->probe_hash == s->probe_hash && o->anchor &&
		    !strcmp(o->anchor, s->anchor) && o->asks == s->asks &&
		    !strcmp(o->name, s->name) && !strcmp(o->provider, s->provider))
			return true;
	}
	return false;
}

static int open_objects(struct build *b)
{
	for (uint32_t i = 1; i < b->c->args.n; i++) { /* $0 is the source */
		const struct call_site *s;
		struct calls *calls;
		struct text t;
		uint32_t n;
		struct err *e = calls_open(b->c->args.v[i],
					   wants_notes(b) ? CALLS_NOTES : CALLS_DOF, &calls);

		if (e)
			return say(b, e);
		vec_push(&b->objects, calls);
		e = io_read_file(b->c->args.v[i], &t.bytes, &t.len);
		if (e)
			return say(b, e);
		vec_push(&b->texts, t);
		s = calls_sites(calls, &n);
		for (uint32_t k = 0; k < n; k++)
			if (b->sites.n == CALLS_SITES_MOST) {
				return say(b, err_new(E2BIG, "%s: more than %d calls of probes",
						      b->c->args.v[i], CALLS_SITES_MOST));
			} else if (!is_known(b, &s[k])) {
				vec_push(&b->sites, &s[k]);
				if (!s[k].asks)
					vec_push(&b->fired, &s[k]);
			}
	}
	return 0;
}

/* Binds the types of the definitions. This happens only for -G, because definitions for programs
 * with -h's macros may name undeclared types. */
static void bind_definitions(struct build *b)
{
	for (uint32_t i = 0; i < b->ntops; i++)
		if (b->tops[i])
			bind_add(b->bind, b->tops[i]);
	for (uint32_t i = 0; i < b->ntops; i++)
		for (const struct node *t = b->tops[i]; t; t = t->next)
			for (const struct provider_probe *p =
				     t->kind == D_PROVIDER ? t->provider.probes : NULL;
			     p; p = p->next) {
				struct probe_definition *d =
					arena_new(b->bind->arena, struct probe_definition);

				bind_probe_definition(b->bind, t->provider.name, p, d);
				vec_push(&b->definitions, d);
			}
}

static bool is_defined(const struct build *b, const struct call_site *s)
{
	for (uint32_t i = 0; i < b->definitions.n; i++)
		if (!strcmp(b->definitions.v[i]->provider, s->provider) &&
		    !strcmp(b->definitions.v[i]->name, s->name))
			return true;
	return false;
}

static int check_sites(const struct build *b)
{
	for (uint32_t i = 0; i < b->objects.n; i++) {
		uint32_t n;
		const struct call_site *s = calls_sites(b->objects.v[i], &n);

		for (uint32_t k = 0; k < n; k++)
			if (!is_defined(b, &s[k]))
				return say(
					b,
					err_new(0,
						"%s: %s%sprobe %s of provider %s is not defined in the sources",
						b->c->args.v[i + 1], s[k].func,
						*s[k].func ? ": " : "", s[k].name, s[k].provider));
	}
	return 0;
}

static bool is_in_objects(const struct build *b, const char *name, size_t n)
{
	for (uint32_t i = 0; i < b->texts.n; i++)
		if (memmem(b->texts.v[i].bytes, b->texts.v[i].len, name, n))
			return true;
	return false;
}

/* Writes the flags of probes that no object fires. Programs may read such a flag by _ENABLED() of
 * -h. */
static void put_unreached(const struct build *b, FILE *out)
{
	for (uint32_t i = 0; i < b->ntops; i++)
		for (const struct node *t = b->tops[i]; t; t = t->next)
			for (const struct provider_probe *p =
				     t->kind == D_PROVIDER ? t->provider.probes : NULL;
			     p; p = p->next) {
				const char *prov = t->provider.name;
				cleanup_free char *flag =
					xasprintf("%s_%s_semaphore", prov, p->name);
				cleanup_free char *note = xasprintf("%s%c%s", prov, 0, p->name);
				cleanup_free char *call =
					xasprintf(CALLS_PROBE "%s___%s", prov, p->name);
				cleanup_free char *done =
					xasprintf(CALLS_PROBE_DONE "%s___%s", prov, p->name);

				if (is_in_objects(b, flag, strlen(flag) + 1) &&
				    !is_in_objects(b, note, strlen(prov) + strlen(p->name) + 2) &&
				    !is_in_objects(b, call, strlen(call) + 1) &&
				    !is_in_objects(b, done, strlen(done) + 1))
					calls_put_unreached(out, prov, p->name);
			}
}

/* Writes a provider's notes with the functions that answer questions. DOF beside notes has the
 * probes only. */
static void put_provider(const struct build *b, FILE *out, const struct probe_definition **defs,
			 uint32_t n)
{
	const char *comment = opt_on(b->bind->options, OPT_STRIP) ? NULL : "descry " DESCRY_VERSION;

	for (uint32_t k = 0; k < n; k++)
		if (wants_notes(b))
			calls_put_notes(out, defs[k], b->sites.v, b->sites.n);
		else
			calls_put_markers(out, defs[k], b->sites.v, b->sites.n);
	if (wants_notes(b))
		calls_put_dof(out, defs, n, b->fired.v, b->fired.n, comment);
	else
		calls_put_dof(out, defs, n, b->sites.v, b->sites.n, comment);
}

static void put_places(const struct build *b, FILE *out)
{
	const struct probe_definition **defs = (const struct probe_definition **)b->definitions.v;

	for (uint32_t i = 0, n; i < b->definitions.n; i += n) {
		for (n = 1; i + n < b->definitions.n && defs[i + n]->provider == defs[i]->provider;)
			n++;
		put_provider(b, out, defs + i, n);
	}
}

/* Writes the DOF of one object. Its addresses are those of an object that is not linked yet. */
static int write_dof(const struct build *b, const char *name, char *object, size_t len)
{
	Elf *elf = elf_version(EV_CURRENT) == EV_NONE ? NULL : elf_memory(object, len);
	Elf_Data *data = NULL;
	Elf_Scn *scn = NULL;
	size_t names;
	int status;

	while (elf && !data && !elf_getshdrstrndx(elf, &names) && (scn = elf_nextscn(elf, scn))) {
		GElf_Shdr h;
		const char *section = gelf_getshdr(scn, &h) ? elf_strptr(elf, names, h.sh_name)
							    : NULL;

		if (section && !strcmp(section, CALLS_DOF_SECTION))
			data = elf_rawdata(scn, NULL);
	}
	if (data)
		status = header_write_file(b->c, name, data->d_buf, data->d_size);
	else
		status = say(b,
			     err_new(0, "no object file calls a probe: there is no DOF to write"));
	elf_end(elf);
	return status;
}

/* Runs the compiler by the shell, because $CC may have options. Returns its standard input. */
static FILE *compiler_start(const char *command, pid_t *ret_pid)
{
	char *const argv[] = { "sh", "-c", (char *)command, NULL };
	struct child c = { .file = "/bin/sh", .argv = argv };
	int fds[2];

	if (pipe2(fds, O_CLOEXEC))
		return NULL;
	c.in = fds[0];
	*ret_pid = child_start(&c);
	close(fds[0]);
	if (*ret_pid > 0)
		return fdopen(fds[1], "w");
	close(fds[1]);
	return NULL;
}

/* Writes the object to a file. The compiler writes to memory, so that this function reports all
 * errors of the file. */
static int make_object(const struct build *b)
{
	cleanup_free char *name = header_output_name(b->c, ".o");
	cleanup_close int fd = memfd_create("descry-object", MFD_CLOEXEC);
	cleanup_free char *path = xasprintf("/proc/%d/fd/%d", (int)getpid(), fd);
	cleanup_free char *command = NULL;
	cleanup_free char *object = NULL;
	const char *cc = getenv("CC");
	size_t len;
	pid_t pid;
	FILE *out;
	struct err *e;

	if (fd < 0)
		return header_failed(b->c, "cannot make", "a file in memory");
	command = xasprintf("%s -x c -c -fPIC -fno-lto -o %s -", cc ? cc : "cc", path);
	out = compiler_start(command, &pid);
	if (!out)
		return header_failed(b->c, "cannot run", cc ? cc : "cc");
	header_each_probe(b->tops, b->ntops, out, define_flag);
	put_places(b, out);
	if (wants_notes(b))
		put_unreached(b, out);
	fclose(out);
	if (child_wait(pid)) {
		fprintf(stderr, "%s: the C compiler failed on %s\n", b->c->progname, name);
		return 1;
	}
	e = io_read_file(path, &object, &len);
	if (e)
		return say(b, e);
	if (opt_num(b->bind->options, OPT_LINKTYPE) == LINKTYPE_DOF)
		return write_dof(b, name, object, len);
	return header_write_file(b->c, name, object, len);
}

/* Builds the object. Changes the object files last, so that a failed run leaves them unchanged. */
static int build(struct build *b)
{
	int status = open_objects(b);

	if (!status && b->sites.n) {
		bind_definitions(b);
		if (b->bind->diags->errors)
			return 1;
		status = check_sites(b);
	}
	status = status ?: make_object(b);
	for (uint32_t i = 0; i < b->objects.n && !status; i++) {
		struct err *e = calls_write(b->objects.v[i]);

		if (e)
			status = say(b, e);
	}
	return status;
}

int cmd_object(struct cmdline *c, struct bind_cx *bind, struct node *const *tops, uint32_t n)
{
	struct build b = { .c = c, .bind = bind, .tops = tops, .ntops = n };
	int status = header_no_provider(c, tops, n) || build(&b);

	for (uint32_t i = 0; i < b.objects.n; i++)
		calls_free(b.objects.v[i]);
	for (uint32_t i = 0; i < b.texts.n; i++)
		free(b.texts.v[i].bytes);
	vec_fini(&b.texts);
	vec_fini(&b.objects);
	vec_fini(&b.sites);
	vec_fini(&b.fired);
	vec_fini(&b.definitions);
	return status;
}
