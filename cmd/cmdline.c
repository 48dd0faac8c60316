/* Parses the command line of dtrace(1). */
#include "cmdline.h"

#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"
#include "base/number.h"
#include "base/procdir.h"
#include "commands.h"

static const char usage_text[] =
	"usage: %s [-CFGHSVZehlqvw] [-b size] [-c command] [-D name[=def]] [-d stages] [-f function] [-I dir] [-i id]\n"
	"\t[-L dir] [-m module] [-n name] [-o file] [-P provider] [-p pid] [-s script] [-U name]\n"
	"\t[-x option[=value]] [-X a|c|s|t] [--json] [--help] [argument ...]\n";

static const char examples_text[] =
	"Examples\n"
	"  descry -n 'syscall:::entry { @[execname, probefunc] = count(); }'       ^C prints the counts\n"
	"  descry -n 'syscall::openat:entry { printf(\"%s %s\", execname, copyinstr(arg1)); }'\n"
	"  descry -n 'pid$target::malloc:entry { @ = quantize(arg0); }' -c 'ls -l'\n"
	"  descry -n 'profile-997 /arg1/ { @[execname, ufunc(arg1)] = count(); } tick-5s { exit(0); }'\n"
	"  descry -l -n 'sched:::' -v\n";

enum { LONG_JSON = OPT_LONG, LONG_HELP };

// clang-format off
const struct opt trace_opts[] = {
	{ 0, NULL, NULL, NULL,
	  "The program (probe descriptions are provider:module:function:name, globs allowed; more than one may be given)" },
	OPTS_PROGRAM,
	{ 0, NULL, NULL, NULL, "How it runs" },
	{ 'q', NULL, NULL, NULL, "prints only what the program prints" },
	{ 'o', NULL, "FILE", OPT_FILE, "appends what is printed to a file" },
	{ LONG_JSON, "json", NULL, NULL, "one JSON object a line, a report at the end" },
	{ 'F', NULL, NULL, NULL, "indents function entry and return" },
	{ 'v', NULL, NULL, NULL, "says more; with -l: arguments, price of a probe" },
	{ 'H', NULL, NULL, NULL, "prints the names of the files that cpp read" },
	{ 'X', NULL, "a|c|s|t", "a c s t", "the dialect of C for cpp" },
	{ 0, NULL, NULL, NULL, "Instead of tracing" },
	{ 'l', NULL, NULL, NULL, "lists the matching probes; see also descry list" },
	{ 'e', NULL, NULL, NULL, "compiles only" },
	{ 'S', NULL, NULL, NULL, "prints the generated eBPF" },
	{ 'd', NULL, "STAGES", "parse bind ir ebpf jit", "prints stages of compilation: parse,bind,ir,ebpf,jit" },
	{ 'h', NULL, NULL, NULL, "with -s f.d: makes f.h, macros for the providers that f.d defines; alone: help" },
	{ 'G', NULL, NULL, NULL, "with -s f.d: makes f.o to link with (is-enabled flags)" },
	{ 'V', "version", NULL, NULL, "prints the version" },
	{ LONG_HELP, "help", NULL, NULL, "prints the commands" },
	{ '3', NULL, NULL, NULL, NULL }, /* -32 and -64: ignored, the target's counts */
	{ '2', NULL, NULL, NULL, NULL },
	{ '6', NULL, NULL, NULL, NULL },
	{ '4', NULL, NULL, NULL, NULL },
	{ 0 },
};
// clang-format on

struct option_doc {
	const char *name, *doc;
};
static const struct option_doc option_docs[] = {
#define X(id, name, kind, def, when, doc) { name, kind == OPTION_IGNORED ? NULL : doc },
#include "data/options.def"
#undef X
};

void cmdline_help(const char *progname, FILE *out)
{
	fprintf(out, usage_text, progname);
	fputc('\n', out);
	opt_print(trace_opts, out);
	fputc('\n', out);
	fputs(examples_text, out);
}

void cmdline_help_settings(FILE *out)
{
	fputs("Options for -x, and for #pragma D option:\n", out);
	for (size_t i = 0; i < ARRAY_SIZE(option_docs); i++)
		if (option_docs[i].doc)
			fprintf(out, "  %-14s %s\n", option_docs[i].name, option_docs[i].doc);
}

static int usage(const struct cmdline *c)
{
	fprintf(stderr, usage_text, c->progname);
	return 2;
}

static void add_program(struct cmdline *c, enum pdesc_form form, bool file, const char *text)
{
	vec_push(&c->programs, (struct cmd_program){ form, file, text });
}

static void set(struct cmdline *c, const char *text)
{
	vec_push(&c->sets, (struct cmd_set){ text });
}

static int set_dialect(struct cmdline *c, const char *letter)
{
	static const char *const settings[] = { "stdc=a", "stdc=c", "stdc=s", "stdc=t" };

	for (size_t i = 0; i < ARRAY_SIZE(settings); i++)
		if (!strcmp(settings[i] + 5, letter)) {
			set(c, settings[i]);
			return 0;
		}
	fprintf(stderr, "%s: -X wants a, c, s or t, not %s\n", c->progname, letter);
	return 2;
}

static void cpp_option(struct cmdline *c, char option, const char *arg)
{
	vec_push(&c->cpp_args, xasprintf("-%c%s", option, arg));
}

/* Adds arguments of the preprocessor, separated by blanks. */
static void add_cpp_args(struct cmdline *c, const char *text)
{
	while (*(text += strspn(text, " \t"))) {
		size_t n = strcspn(text, " \t");

		vec_push(&c->cpp_args, xstrndup(text, n));
		text += n;
	}
}

/* Takes -x name=value. Options that add to a list (other names of -D -U -I -H -L) are stored here;
 * of the others the last value counts. */
static void add_setting(struct cmdline *c, const char *text)
{
	static const struct {
		const char *name;
		char option;
	} lists[] = {
		{ "define=", 'D' },
		{ "undef=", 'U' },
		{ "incdir=", 'I' },
	};

	for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
		if (!strncmp(text, lists[i].name, strlen(lists[i].name)))
			cpp_option(c, lists[i].option, text + strlen(lists[i].name));
	if (!strncmp(text, "libdir=", 7))
		vec_push(&c->libdirs, text + 7);
	if (!strncmp(text, "cppargs=", 8))
		add_cpp_args(c, text + 8);
	if (!strcmp(text, "cpphdrs"))
		vec_push(&c->cpp_args, "-H");
	if (!strcmp(text, "verbose"))
		c->dump = "ebpf";
	set(c, text);
}

static int add_pid(struct cmdline *c, const char *text)
{
	int64_t pid;

	if (!number_parse(text, 1, INT32_MAX, &pid)) {
		fprintf(stderr, "%s: -p wants a process id, not %s\n", c->progname, text);
		return 2;
	}
	vec_push(&c->pids, (pid_t)pid);
	vec_push(&c->starts, procdir_start((pid_t)pid));
	return 0;
}

int cmdline_take(struct cmdline *c, int o, const char *arg)
{
	switch (o) {
	case 1: vec_push(&c->args, (char *)arg); return 0;
	case '3':
	case '2':
	case '6':
	case '4': return 0; /* -32 -64: ignored, because the target determines the data model */
	case 'b': set(c, xasprintf("bufsize=%s", arg)); return 0;
	case 'c': vec_push(&c->commands, arg); return 0;
	case 'C': set(c, "cpp"); return 0;
	case 'd':
		c->dump = arg;
		c->dump_only = true;
		return 0;
	case 'D':
	case 'U':
	case 'I': cpp_option(c, (char)o, arg); return 0;
	case 'e': c->mode = CMD_COMPILE; return 0;
	case 'f': add_program(c, PDESC_FUNC, false, arg); return 0;
	case 'F': set(c, "flowindent"); return 0;
	case 'h': c->mode = CMD_HEADER; return 0;
	case 'G': c->mode = CMD_OBJECT; return 0;
	case 'H': vec_push(&c->cpp_args, "-H"); return 0;
	case 'i': add_program(c, PDESC_ID, false, arg); return 0;
	case 'l': c->mode = CMD_LIST; return 0;
	case 'L': vec_push(&c->libdirs, arg); return 0;
	case 'm': add_program(c, PDESC_MOD, false, arg); return 0;
	case 'n': add_program(c, PDESC_NAME, false, arg); return 0;
	case 'o': c->output = arg; return 0;
	case 'p': return add_pid(c, arg);
	case 'P': add_program(c, PDESC_PROV, false, arg); return 0;
	case 'q': set(c, "quiet"); return 0;
	case 's': add_program(c, PDESC_NAME, true, arg); return 0;
	case 'S': c->dump = "ebpf"; return 0;
	case 'v': c->verbose = true; return 0;
	case 'V': c->mode = CMD_VERSION; return 0;
	case 'w': set(c, "destructive"); return 0;
	case 'x': add_setting(c, arg); return 0;
	case 'X': return set_dialect(c, arg);
	case 'Z': set(c, "zdefs"); return 0;
	case LONG_JSON: c->json = true; return 0;
	case LONG_HELP: c->mode = CMD_HELP; return 0;
	default: return -1;
	}
}

void cmdline_init(struct cmdline *c, char *name)
{
	memset(c, 0, sizeof(*c));
	c->progname = name;
	vec_push(&c->args, name);
	if (getenv("DTRACE_OPT_CPPARGS"))
		add_cpp_args(c, getenv("DTRACE_OPT_CPPARGS"));
	if (getenv("DESCRY_OPT_CPPARGS"))
		add_cpp_args(c, getenv("DESCRY_OPT_CPPARGS"));
}

void cmdline_name_script(struct cmdline *c)
{
	for (uint32_t i = 0; i < c->programs.n; i++)
		if (c->programs.v[i].file)
			c->args.v[0] = (char *)c->programs.v[i].text;
}

/* Reports wrong usage; without any argument, prints the commands. */
static int no_program(const struct cmdline *c, int argc, char **argv)
{
	struct nearest near = { .word = argc > 1 ? argv[1] : "" };

	if (c->dtrace_name || (argc > 1 && argv[1][0] == '-')) {
		if (argc > 1)
			fprintf(stderr,
				"%s: there is no program: -n, -s, -P, -m, -f or -i gives one\n",
				c->progname);
		return usage(c);
	}
	if (argc < 2) {
		help_overview(stderr);
		return 2;
	}
	for (const struct command *k = commands; k->name; k++)
		nearest_offer(&near, k->name);
	fprintf(stderr,
		"%s: there is no command %s%s%s%s; descry help lists the commands, "
		"and -n '%s' would be a program\n",
		c->progname, argv[1], near.name ? " (did you mean " : "",
		near.name ? near.name : "", near.name ? "?)" : "", argv[1]);
	return 2;
}

int cmdline_parse(struct cmdline *c, int argc, char **argv)
{
	struct opt_getopt g;
	const char *base = strrchr(argv[0] ? argv[0] : "descry", '/');
	int o, status;

	cmdline_init(c, argv[0]);
	base = base ? base + 1 : argv[0] ? argv[0] : "descry";
	c->dtrace_name = !strcmp(base, "dtrace");
	c->progname = c->dtrace_name ? "dtrace" : "descry";
	opterr = 0;
	opt_getopt_init(&g, "-:", trace_opts);
	/* "-": words between the options come in their place, as macro arguments. */
	while ((o = getopt_long(argc, argv, g.shorts, g.longs, NULL)) != -1) {
		if (o == ':') {
			fprintf(stderr, "%s: option -%c wants an argument\n", c->progname, optopt);
			return usage(c);
		}
		if (o == '?') {
			if (optopt == 'a' || optopt == 'A')
				fprintf(stderr,
					"%s: option -%c: Linux cannot trace before a tracer runs (anonymous tracing)\n",
					c->progname, optopt);
			else if (optopt)
				fprintf(stderr, "%s: illegal option -- %c\n", c->progname, optopt);
			else
				fprintf(stderr, "%s: unknown option %s\n", c->progname,
					argv[optind - 1]);
			return usage(c);
		}
		if (o == 'p') /* scripts that build a command line pass "-p 123" as one word */
			optarg += strspn(optarg, " ");
		status = cmdline_take(c, o < OPT_LONG ? o : trace_opts[o - OPT_LONG].id, optarg);
		if (status)
			return status;
	}
	while (optind < argc)
		vec_push(&c->args, argv[optind++]);
	cmdline_name_script(c);
	if (!c->dtrace_name && !c->programs.n && c->mode == CMD_HEADER)
		c->mode = CMD_HELP; /* -h alone */
	/* dtrace -e alone checks options and libraries. */
	if (!c->programs.n && c->mode != CMD_LIST && c->mode != CMD_HELP &&
	    c->mode != CMD_VERSION && !(c->dtrace_name && c->mode == CMD_COMPILE))
		return no_program(c, argc, argv);
	return 0;
}

void cmdline_fini(struct cmdline *c)
{
	vec_fini(&c->programs);
	vec_fini(&c->words);
	vec_fini(&c->sets);
	vec_fini(&c->cpp_args);
	vec_fini(&c->libdirs);
	vec_fini(&c->commands);
	vec_fini(&c->pids);
	vec_fini(&c->starts);
	vec_fini(&c->args);
}
