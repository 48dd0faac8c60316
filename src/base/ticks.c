/* The rate of the processor's counter of ticks. */
#define _GNU_SOURCE
#include "base/ticks.h"

#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"

enum { PAGE = 4096, MEASURE_NS = 5000000 };

/* Returns the kernel's own factor, as a fraction of 2^64, from the page that perf_event_open(2)
 * describes (cap_user_time). A counter slower than 1 GHz has none. */
static uint64_t kernel_factor(void)
{
	struct perf_event_attr a = { .type = PERF_TYPE_SOFTWARE,
				     .size = sizeof(a),
				     .config = PERF_COUNT_SW_DUMMY,
				     .exclude_kernel = 1 };
	int fd = (int)syscall(SYS_perf_event_open, &a, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	const struct perf_event_mmap_page *p;
	uint64_t mult = 0;

	if (fd < 0)
		return 0;
	p = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0);
	if (p != MAP_FAILED) {
		if (p->cap_user_time && p->time_shift && p->time_shift < 64 &&
		    !((uint64_t)p->time_mult >> p->time_shift))
			mult = (uint64_t)p->time_mult << (64 - p->time_shift);
		munmap((void *)p, PAGE);
	}
	close(fd);
	return mult;
}

/* Reads nanoseconds and ticks at one instant. Of several tries, takes the one with the shortest
 * interruption. */
static void instant(uint64_t *ret_ticks, uint64_t *ret_ns)
{
	uint64_t best = UINT64_MAX;

	*ret_ticks = *ret_ns = 0;
	for (int i = 0; i < 16; i++) {
		uint64_t before = ticks_now(), ns = now_ns(), after = ticks_now();

		if (after - before < best) {
			best = after - before;
			*ret_ticks = before + (after - before) / 2;
			*ret_ns = ns;
		}
	}
}

bool ticks_clock(struct ticks_clock *ret)
{
	static uint64_t factor; /* the machine's, read once */
	FILE *f = fopen("/sys/devices/system/clocksource/clocksource0/current_clocksource", "re");
	char name[32] = "";
	uint64_t t, ns;

	if (f && !fgets(name, sizeof(name), f))
		name[0] = '\0';
	if (f)
		fclose(f);
	/* kvm-clock is the scaled TSC */
	if (strncmp(name, "tsc", 3) && strncmp(name, "kvm-clock", 9))
		return false;
	instant(&ret->ticks, &ret->ns);
	if (!factor)
		factor = kernel_factor();
	if (!factor) {
		do
			instant(&t, &ns);
		while (ns - ret->ns < MEASURE_NS);
		if (ns - ret->ns < t - ret->ticks)
			factor = (uint64_t)(((unsigned __int128)(ns - ret->ns) << 64) /
					    (t - ret->ticks));
	}
	ret->factor = factor;
	return factor != 0;
}
