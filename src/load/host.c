/* Reads facts of this machine for the compiler: each CPU's socket, memory node and clock. */
#include "load/host.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "base/mem.h"

/* Reads a small number from sysfs; -1 when it is missing. */
static int32_t read_number(const char *path)
{
	char *text;
	size_t len;
	struct err *e = io_read_file(path, &text, &len);
	int32_t n;

	if (err_drop(e))
		return -1;
	n = (int32_t)strtol(text, NULL, 10);
	free(text);
	return n;
}

static uint32_t count_cpus(void)
{
	long n = sysconf(_SC_NPROCESSORS_CONF);

	return n > 0 ? (uint32_t)n : 1;
}

void host_find_cpus(struct compile_target *t)
{
	enum { MAX_NODES = 64 };
	static int32_t *chips, *nodes;

	t->ncpus = count_cpus();
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

/* "processor : 3" ... "cpu MHz : 2600.000", a paragraph for each CPU. */
static void read_cpuinfo(int32_t *mhz, uint32_t ncpus)
{
	unsigned long cpu = 0;
	char *text;

	if (err_drop(io_read_file("/proc/cpuinfo", &text, NULL)))
		return;
	for (char *line = text; line; line = strchr(line, '\n')) {
		char *colon;

		line += *line == '\n';
		colon = strchr(line, ':');
		if (!colon)
			break;
		if (!strncmp(line, "processor", strlen("processor")))
			cpu = strtoul(colon + 1, NULL, 10);
		else if (!strncmp(line, "cpu MHz", strlen("cpu MHz")) && cpu < ncpus && !mhz[cpu])
			mhz[cpu] = (int32_t)(strtod(colon + 1, NULL) + 0.5);
	}
	free(text);
}

void host_find_clocks(struct compile_target *t)
{
	static int32_t *mhz;

	t->ncpus = count_cpus();
	if (!mhz) {
		bool all = true;

		mhz = xcalloc(t->ncpus, sizeof(*mhz));
		for (uint32_t cpu = 0; cpu < t->ncpus; cpu++) {
			cleanup_free char *khz = xasprintf(
				"/sys/devices/system/cpu/cpu%u/cpufreq/cpuinfo_max_freq", cpu);
			int32_t n = read_number(khz);

			mhz[cpu] = n > 0 ? n / 1000 : 0;
			all = all && n > 0;
		}
		if (!all)
			read_cpuinfo(mhz, t->ncpus);
	}
	t->cpu_mhz = mhz;
}
