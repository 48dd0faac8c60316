/* Forges what a tracer has in a process that it traces from inside: the memory of every area, with
 * an undo log of as many records as one may have, none of which is a patch.
 *
 * Prints its pid, then works until it is killed. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "wire/inproc.h"

enum { FORGED = 1 << 20, PAGE = 4096, ISLANDS = 32 << 20 };

static void *forged_map(uint64_t at, uint64_t n, int prot, int fd, uint64_t offset)
{
	void *p = mmap((void *)(uintptr_t)at, n, prot,
		       (at ? MAP_FIXED : 0) | MAP_NORESERVE | MAP_SHARED, fd, (off_t)offset);

	if (p == MAP_FAILED) {
		perror("mmap");
		exit(1);
	}
	return p;
}

static int memory_file(const char *name, uint64_t size)
{
	int fd = memfd_create(name, 0);

	if (fd < 0 || ftruncate(fd, (off_t)size)) {
		perror("memfd_create");
		exit(1);
	}
	return fd;
}

__attribute__((noinline)) int forged_work(int a)
{
	int r = a;

	for (volatile int i = 0; i < 3; i++)
		r = r * 31 + 7;
	return r;
}

int main(void)
{
	const uint64_t head = (uint64_t)WIRE_BASES * PAGE,
		       size = head + (uint64_t)FORGED * sizeof(struct wire_undo);
	int code = memory_file(WIRE_MEMFD_CODE, PAGE), facts = memory_file(WIRE_MEMFD_FACTS, size);
	char *all = forged_map(0, size, PROT_READ | PROT_WRITE, facts, 0);
	struct wire_undo *u = (struct wire_undo *)(all + head);

	for (uint32_t i = 0; i < FORGED; i++) {
		u[i].site = 0x10000 + (uint64_t)(i * 2654435761u % FORGED) * 64;
		u[i].pid = (uint32_t)getpid();
		u[i].len = 5;
		memset(u[i].moved, 0xff, sizeof(u[i].moved));
	}
	for (uint64_t k = 0; k < WIRE_BASES; k++) {
		const uint64_t base = WIRE_BASE + k * WIRE_BASE_STEP;
		struct wire_area *a = (struct wire_area *)(all + k * PAGE);
		char name[64];

		a->magic = WIRE_AREA_MAGIC;
		a->version = WIRE_AREA_VERSION;
		a->nundo = FORGED;
		a->base = base;
		a->undo = base + WIRE_FACTS + head - k * PAGE;
		forged_map(base, PAGE, PROT_READ, code, 0);
		forged_map(base + WIRE_FACTS, size - k * PAGE, PROT_READ, facts, k * PAGE);
		snprintf(name, sizeof(name), "descry-island-%llx",
			 (unsigned long long)(base >> 40));
		forged_map(0, ISLANDS, PROT_READ, memory_file(name, ISLANDS), 0);
	}
	printf("%d\n", (int)getpid());
	fflush(stdout);
	for (;;) {
		forged_work(1);
		usleep(20000);
	}
}
