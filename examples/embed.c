/* Tracing from inside a program: the functions that call malloc in a command, and how often.
 *
 *	cc -o embed embed.c $(pkg-config --cflags --libs descry)
 *	./embed 'ls -l'
 */
#include <descry.h>
#include <inttypes.h>
#include <stdio.h>

static void print_row(void *arg, const struct descry_row *row)
{
	printf("%8" PRId64 "  %s\n", row->value, row->keys[0].text);
}

static void print_message(void *arg, const char *text, size_t size)
{
	fprintf(stderr, "embed: %s\n", text);
}

int main(int argc, char **argv)
{
	const struct descry_callbacks callbacks = { .row = print_row, .message = print_message };
	struct descry *d;
	int status = 1, more = 0;

	if (argc != 2) {
		fprintf(stderr, "usage: embed COMMAND\n");
		return 2;
	}
	d = descry_open(&callbacks);
	/* Inside the command: no privilege is needed. */
	if (!descry_set(d, "engine", "inproc") && !descry_command(d, argv[1]) &&
	    !descry_compile(d, "pid$target::malloc:entry { @[ufunc(ucaller)] = count(); }") &&
	    !descry_start(d)) {
		while ((more = descry_poll(d, -1)) > 0)
			;
		if (!descry_stop(d) && !more)
			status = 0;
	}
	descry_close(d);
	return status;
}
