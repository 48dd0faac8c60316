#include <stdio.h>
#include <string.h>

#include "check.h"
#include "cmd/version.h"
#include "cmdline.h"
#include "flame.h"
#include "heal.h"
#include "heat.h"
#include "profile.h"
#include "serve.h"
#include "tool.h"

/* `descry NAME ...`; everything else is the command line of dtrace(1). */
static const struct {
	const char *name; /* in messages */
	int (*run)(int argc, char **argv);
} commands[] = {
	{ "descry check", cmd_check },     { "descry flame", cmd_flame },
	{ "descry heal", cmd_heal },       { "descry heat", cmd_heat },
	{ "descry profile", cmd_profile }, { "descry serve", cmd_serve },
};

int main(int argc, char **argv)
{
	struct cmdline c;
	int status;

	tool_start();
	for (size_t i = 0; argc > 1 && i < sizeof(commands) / sizeof(*commands); i++)
		if (!strcmp(argv[1], strchr(commands[i].name, ' ') + 1)) {
			tool_begin(commands[i].name);
			return tool_end(commands[i].run(argc - 1, argv + 1));
		}
	status = cmdline_parse(&c, argc, argv);
	tool_begin(c.progname);
	if (!status) {
		switch (c.mode) {
		case CMD_HELP: cmdline_help(&c, stdout); break;
		case CMD_VERSION:
			printf("%s: descry %s, D 2.0\n", c.progname, DESCRY_VERSION);
			break;
		default: status = cmd_run(&c);
		}
	}
	cmdline_fini(&c);
	return tool_end(status);
}
