/* How a traced process finds the tracer's memory in itself, and writes where it is not
 * permitted. */
#ifndef DESCRY_TEST_TRACEE_OWN_MEMORY_H
#define DESCRY_TEST_TRACEE_OWN_MEMORY_H

#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

struct mapping {
	uint64_t lo, hi;
	char name[64];
};

/* Finds the nth mapping of a memory file of the tracer. */
static bool find_mapping(const char *name, int nth, struct mapping *ret)
{
	FILE *f = fopen("/proc/self/maps", "re");
	struct mapping m;
	bool found = false;
	char line[512];

	while (f && !found && fgets(line, sizeof(line), f))
		if (sscanf(line, "%lx-%lx %*s %*s %*s %*s %63s", &m.lo, &m.hi, m.name) == 3 &&
		    !strncmp(m.name, "/memfd:descry-", 14) &&
		    !strncmp(m.name + 7, name, strlen(name)) && !nth--)
			found = true;
	if (f)
		fclose(f);
	if (found)
		*ret = m;
	return found;
}

static int own_mem; /* /proc/self/mem */
static __thread sigjmp_buf *back;

static void fault(int sig)
{
	if (back)
		siglongjmp(*back, 1);
	/* the thread that fires: the attack damages its own memory */
	syscall(SYS_exit, 1);
}

/* Writes by a store, or by the kernel's functions for debuggers. */
static bool force(uint64_t addr, const void *bytes, size_t n)
{
	sigjmp_buf here, *before = back;
	volatile bool done = false;

	if (!sigsetjmp(here, 1)) {
		back = &here;
		memcpy((void *)addr, bytes, n);
		done = true;
	}
	back = before;
	return done || pwrite(own_mem, bytes, n, (off_t)addr) == (ssize_t)n;
}

static bool force64(uint64_t addr, uint64_t v)
{
	return force(addr, &v, sizeof(v));
}

static bool force32(uint64_t addr, uint32_t v)
{
	return force(addr, &v, sizeof(v));
}

static uint64_t read64(uint64_t addr)
{
	uint64_t v = 0;

	if (pread(own_mem, &v, sizeof(v), (off_t)addr) != sizeof(v))
		return 0;
	return v;
}

#endif
