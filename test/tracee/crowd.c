/* Runs under `descry malloc record -k N`: K processes of another user, each of which has 30,000
 * mappings and forks child after child, each of which asks for tables as often as it is answered,
 * 16 times. Meanwhile children of this process allocate. Prints how many calls these have made. */
#define _GNU_SOURCE
#include <linux/futex.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "wire/alloc.h"

enum { MAPPINGS = 30000, ASKS = 16, CHILDREN = 4, CALLS = 400000, NOBODY = 65534 };

static void use(void)
{
	void *volatile p = malloc(16);

	free(p);
}

static void ask(void)
{
	struct wire_alloc_lobby *lobby = NULL;
	struct wire_alloc *memory = NULL;
	char line[512];
	unsigned long a, b;
	FILE *f = fopen("/proc/self/maps", "r");

	while (f && fgets(line, sizeof(line), f)) {
		if (!strstr(line, "memfd:descry-malloc") || sscanf(line, "%lx-%lx", &a, &b) != 2)
			continue;
		if (strstr(line, "-lobby"))
			lobby = (void *)a;
		else if (b - a > WIRE_ALLOC_BYTES)
			memory = (void *)a;
	}
	for (int i = 0; i < ASKS && memory && lobby; i++) {
		uint32_t n = __atomic_add_fetch(&memory->asked, 1, __ATOMIC_SEQ_CST);

		__atomic_fetch_add(&lobby->bell, 1, __ATOMIC_SEQ_CST);
		syscall(SYS_futex, &lobby->bell, FUTEX_WAKE, 1, NULL, NULL, 0);
		for (int w = 0; w < 4000 && __atomic_load_n(&memory->served, __ATOMIC_SEQ_CST) != n;
		     w++)
			usleep(500);
	}
}

static void crowd(void)
{
	if (setgid(NOBODY) || setuid(NOBODY))
		_exit(1);
	for (int i = 0; i < MAPPINGS; i++)
		if (mmap(NULL, 4096, i & 1 ? PROT_READ : PROT_READ | PROT_EXEC,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED)
			break;
	while (getppid() != 1) {
		if (!fork()) {
			use();
			ask();
			_exit(0);
		}
		wait(NULL);
	}
	_exit(0);
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 0;
	pid_t pids[64];

	use();
	for (int i = 0; i < n && i < 64; i++) {
		pids[i] = fork();
		if (!pids[i])
			crowd();
	}
	sleep(n ? 3 : 0);
	for (int i = 0; i < CHILDREN; i++) {
		pid_t child = fork();

		if (!child) {
			for (int k = 0; k < CALLS; k++)
				use();
			_exit(0);
		}
		waitpid(child, NULL, 0);
		printf("%d %d\n", (int)child, 2 * CALLS);
	}
	for (int i = 0; i < n && i < 64; i++)
		kill(pids[i], SIGKILL);
	return 0;
}
