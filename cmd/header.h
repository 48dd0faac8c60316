/* Shared by -h and -G: header.c and link_object.c. */
#ifndef DESCRY_CMD_HEADER_H
#define DESCRY_CMD_HEADER_H

#include "cmdline.h"

/* Calls fn for every probe that the sources define. Returns the number of probes. */
uint32_t header_each_probe(struct node *const *tops, uint32_t n, FILE *out,
			   void (*fn)(FILE *out, const char *provider,
				      const struct provider_probe *p));
/* Returns "prov.h" for "dir/prov.d", in the working directory, as dtrace(1) does; malloc()ed. */
char *header_output_name(const struct cmdline *c, const char *suffix);
/* Prints an error and returns true when the sources define no provider. */
bool header_no_provider(const struct cmdline *c, struct node *const *tops, uint32_t n);
/* Prints "WHAT NAME: errno's text". Returns 1, the exit status. */
int header_failed(const struct cmdline *c, const char *what, const char *name);
/* Writes n bytes to a file. Returns the exit status. */
int header_write_file(const struct cmdline *c, const char *name, const void *p, size_t n);

#endif
