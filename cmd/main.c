#include <stdio.h>

#include "cmdline.h"

int main(int argc, char **argv)
{
	struct cmdline c;
	int status = cmdline_parse(&c, argc, argv);

	if (!status) {
		switch (c.mode) {
		case CMD_HELP:
			cmdline_help(&c, stdout);
			break;
		case CMD_VERSION:
			printf("%s: D 2.0, descry 0.1.0\n", c.progname);
			break;
		default:
			status = cmd_run(&c);
		}
	}
	cmdline_fini(&c);
	return status;
}
