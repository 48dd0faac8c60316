/* A traced process that holds back pages of its memory by userfaultfd(2) without a server, so that
 * every reader of them waits. `stall UID`: it becomes that user, and prints "ready", and "attached"
 * when it finds descry's private mapping in itself. After a line it removes the pages of that
 * mapping and prints "held". It does not fire any more then, and runs until its standard input
 * ends.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "wire/inproc.h"

static int uffd;

__attribute__((noipa)) uint64_t work(uint64_t a)
{
	__asm__ volatile("");
	return a * 31 + (a >> 3);
}

static void fail(const char *text)
{
	perror(text);
	exit(1);
}

static bool find_mapping(const char *name, uint64_t *ret_lo)
{
	FILE *f = fopen("/proc/self/maps", "re");
	bool found = false;
	char line[512];

	while (f && !found && fgets(line, sizeof(line), f))
		found = strstr(line, name) && sscanf(line, "%lx-", ret_lo) == 1;
	if (f)
		fclose(f);
	return found;
}

static void hold_back(uint64_t lo, uint64_t n)
{
	struct uffdio_register r = { { lo, n }, UFFDIO_REGISTER_MODE_MISSING, 0 };

	if (ioctl(uffd, UFFDIO_REGISTER, &r) || madvise((void *)lo, n, MADV_DONTNEED))
		fail("UFFDIO_REGISTER");
}

int main(int argc, char **argv)
{
	struct uffdio_api api = { .api = UFFD_API };
	const uid_t uid = argc == 2 ? (uid_t)atoi(argv[1]) : 0;
	uint64_t facts, island;
	char line[16];

	if (argc != 2) {
		fprintf(stderr, "usage: stall UID\n");
		return 2;
	}
	uffd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	if (uffd < 0 || ioctl(uffd, UFFDIO_API, &api))
		fail("userfaultfd");
	if (setresgid(uid, uid, uid) || setresuid(uid, uid, uid))
		fail("setresuid");
	prctl(PR_SET_DUMPABLE, 1);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	work(1);
	dprintf(1, "ready\n");
	while (!find_mapping(WIRE_MEMFD_ISLAND, &island) || !find_mapping(WIRE_MEMFD_FACTS, &facts))
		;
	dprintf(1, "attached\n");
	if (!fgets(line, sizeof(line), stdin))
		return 1;
	hold_back(((const struct wire_area *)facts)->base + WIRE_PRIVATE,
		  sizeof(struct wire_private) & -4096ul);
	dprintf(1, "held\n");
	while (fgets(line, sizeof(line), stdin))
		;
	return 0;
}
