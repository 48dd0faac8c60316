/* Loads from a page that cannot be read, as programs do that are stopped by a page (the JVM's
 * safepoints), argv[1] times. The handler ends the program with 7 when the fault is said to be at
 * another instruction. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

extern char load_begins[], load_ends[];
static volatile long faults;

static void handler(int sig, siginfo_t *info, void *context)
{
	greg_t *rip = &((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];

	if (*rip != (greg_t)load_begins) {
		dprintf(2, "fault %ld is at %#llx\n", faults, *rip);
		_exit(7);
	}
	faults++;
	*rip = (greg_t)load_ends;
}

int main(int argc, char **argv)
{
	struct sigaction a = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO };
	long n = argc > 1 ? atol(argv[1]) : 1;
	char *page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	sigaction(SIGSEGV, &a, NULL);
	for (long i = 0; i < n; i++)
		__asm__ volatile(".globl load_begins, load_ends\n"
				 "load_begins: test %%eax, (%0)\n"
				 "load_ends: nop" ::"r"(page)
				 : "memory");
	printf("%ld faults\n", faults);
	return 0;
}
