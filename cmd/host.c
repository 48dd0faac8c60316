#include "host.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/io.h"

/* A small number out of sysfs, -1 when it is not there. */
static int32_t read_number(const char *path)
{
	char *text;
	size_t len;
	struct err *e = io_read_file(path, &text, &len);
	int32_t n;

	if (e) {
		err_free(e);
		return -1;
	}
	n = (int32_t)strtol(text, NULL, 10);
	free(text);
	return n;
}

void host_find_cpus(struct compile_target *t)
{
	enum { MAX_NODES = 64 };
	static int32_t *chips, *nodes;
	long n = sysconf(_SC_NPROCESSORS_CONF);

	t->ncpus = n > 0 ? (uint32_t)n : 1;
	if (!chips) {
		chips = xcalloc(t->ncpus, sizeof(*chips));
		nodes = xcalloc(t->ncpus, sizeof(*nodes));
		for (uint32_t cpu = 0; cpu < t->ncpus; cpu++) {
			cleanup_free char *chip = xasprintf(
				"/sys/devices/system/cpu/cpu%u/topology/physical_package_id", cpu);

			chips[cpu] = read_number(chip);
			for (int32_t node = 0; node < MAX_NODES; node++) {
				cleanup_free char *link = xasprintf(
					"/sys/devices/system/cpu/cpu%u/node%d", cpu, node);

				if (access(link, F_OK) == 0) {
					nodes[cpu] = node;
					break;
				}
			}
		}
	}
	t->cpu_chip = chips;
	t->cpu_node = nodes;
}
