/* The entry of descry: finds the command, or parses the command line of dtrace(1). */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "cmd/version.h"
#include "cmdline.h"
#include "commands.h"
#include "run.h"
#include "tool.h"

/* Any other command line is one of dtrace(1). */
const struct command commands[] = {
#define COMMAND(name, doc) { #name, doc, cmd_##name, name##_opts },
#include "commands.def"
#undef COMMAND
	{ 0 },
};

const struct command *command_find(const char *name)
{
	for (const struct command *k = commands; k->name; k++)
		if (!strcmp(k->name, name))
			return k;
	return NULL;
}

static void print_help(const struct cmdline *c)
{
	if (!c->dtrace_name) {
		help_overview(stdout);
		return;
	}
	cmdline_help(c->progname, stdout);
	fputc('\n', stdout);
	cmdline_help_settings(stdout);
}

int main(int argc, char **argv)
{
	const struct command *command;
	struct cmdline c;
	int status;

	tool_start();
	command = argc > 1 ? command_find(argv[1]) : NULL;
	if (command) {
		cleanup_free char *name = xasprintf("descry %s", command->name);

		tool_begin(name);
		return tool_end(command->run(argc - 1, argv + 1));
	}
	status = cmdline_parse(&c, argc, argv);
	tool_begin(c.progname);
	if (!status) {
		switch (c.mode) {
		case CMD_HELP: print_help(&c); break;
		case CMD_VERSION:
			if (c.dtrace_name) /* scripts expect the name and version of the dialect */
				printf("dtrace: Oracle D 2.0\n");
			else
				printf("descry: descry %s, D 2.0\n", DESCRY_VERSION);
			break;
		default: status = cmd_run(&c);
		}
	}
	cmdline_fini(&c);
	return tool_end(status);
}
