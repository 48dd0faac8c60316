#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "check.h"
#include "cmd/version.h"
#include "cmdline.h"
#include "commands.h"
#include "flame.h"
#include "heal.h"
#include "heat.h"
#include "profile.h"
#include "run.h"
#include "serve.h"
#include "stack.h"
#include "tool.h"

/* `descry NAME ...`; everything else is the command line of dtrace(1). In the order of help. */
const struct command commands[] = {
	{ "list", "what can be traced: probes, their arguments and price", cmd_list_command,
	  list_opts },
	{ "profile", "where the CPU time goes: samples of stacks", cmd_profile, profile_opts },
	{ "flame", "flame graphs of stacks, of any tracer", cmd_flame, flame_opts },
	{ "heat", "heat maps: how values spread over time", cmd_heat, heat_opts },
	{ "serve", "a D program's answer on a page that goes on", cmd_serve, serve_opts },
	{ "stack", "the stacks of all threads of a process, or of a core file", cmd_stack,
	  stack_opts },
	{ "check", "what this machine allows, what tracing costs here, what may be tuned",
	  cmd_check, check_opts },
	{ "heal", "take what a killed descry left in a process out of it", cmd_heal, heal_opts },
	{ "help", "a page about a command or a subject", cmd_help, NULL },
	{ "complete", NULL, cmd_complete, NULL }, /* called by the completion of shells */
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
			if (c.dtrace_name) /* scripts look for the name and version of the dialect */
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
