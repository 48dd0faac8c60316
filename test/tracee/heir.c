/* A traced process with privileges, and its child, which gives them up and has the threads' slots
 * of its parent in its memory: `heir ATTACK`. It prints "ready", and "attached" when it finds the
 * tracer's memory in itself. Then it reads a line, "WITNESS VICTIM": an address (hexadecimal) and
 * the number of another process. The child attacks its parent's slot, for ever:
 *
 *	steer      an address of the parent's in every word: where does the parent write?
 *	interrupt  0, and all bits set, in every word, while signals interrupt the parent's firings
 *	aim        VICTIM's number wherever the parent's stands; the parent fires with WITNESS
 *
 * The parent fires until its standard input ends, and says what came of it: "word number", and at
 * last "end 0".
 */
#define _GNU_SOURCE
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <unistd.h>

#include "wire/inproc.h"

#define CALLED __attribute__((noipa))

enum { USER = 60001, MINE = 1 << 20, WORDS = sizeof(struct wire_thread) / 4 };

CALLED uint64_t work(uint64_t a)
{
	__asm__ volatile("");
	return a * 31 + (a >> 3);
}

static const struct wire_area *area; /* in the facts, which only the tracer writes */
static volatile uint32_t *slot;      /* of the parent's thread */
static uint64_t witness, shared_end;
static uint32_t victim;
static uint64_t *mine; /* memory that only the parent has */
static volatile uint64_t signals;

/* Where that memory file of the tracer's lies. */
static bool find_mapping(const char *name, uint64_t *ret_lo, uint64_t *ret_hi)
{
	FILE *f = fopen("/proc/self/maps", "re");
	bool found = false;
	char line[512];

	while (f && !found && fgets(line, sizeof(line), f))
		found = strstr(line, name) && sscanf(line, "%lx-%lx", ret_lo, ret_hi) == 2;
	if (f)
		fclose(f);
	return found;
}

/* The slot that has this process's number, which is its thread's, twice. */
static volatile uint32_t *own_slot(void)
{
	const uint32_t pid = (uint32_t)getpid();

	for (uint64_t at = area->threads + area->thread_stride; at < shared_end;
	     at += area->thread_stride) {
		volatile uint32_t *w = (volatile uint32_t *)at;
		uint32_t n = 0;

		for (uint32_t i = 0; i < WORDS; i++)
			n += w[i] == pid;
		if (n >= 2)
			return w;
	}
	fprintf(stderr, "no slot is this thread's\n");
	exit(1);
}

static void steer(void)
{
	const uint64_t addr = (uintptr_t)mine + MINE / 2;

	/* but for what tells whose slot it is, and the word with `vforked` */
	for (uint32_t i = 0; i < WORDS; i += 2)
		if (4 * i != offsetof(struct wire_thread, owner) &&
		    4 * i != offsetof(struct wire_thread, number))
			*(volatile uint64_t *)&slot[i] = addr;
}

static void interrupt(void)
{
	static uint64_t round;
	const uint32_t v = round++ % 64 ? 0 : ~0u;

	for (uint32_t i = 0; i < WORDS; i++)
		slot[i] = v;
}

static void aim(void)
{
	static uint32_t at[WORDS], n;
	static bool looked;

	for (uint32_t i = 0; i < WORDS && !looked; i++)
		if (slot[i] == (uint32_t)getppid())
			at[n++] = i;
	looked = true;
	for (uint32_t i = 0; i < n; i++)
		slot[at[i]] = victim;
}

static const struct attack {
	const char *name;
	void (*round)(void);
} attacks[] = { { "steer", steer }, { "interrupt", interrupt }, { "aim", aim } };

static void be_heir(const struct attack *a)
{
	struct pollfd parent = { .fd = 0, .events = POLLIN };
	const struct sigaction old = { .sa_handler = SIG_DFL };

	sigaction(SIGALRM, &old, NULL);
	if (setresgid(USER, USER, USER) || setresuid(USER, USER, USER))
		_exit(1);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	printf("steering\n");
	fflush(stdout);
	while (!poll(&parent, 1, 0))
		for (int i = 0; i < 100000; i++)
			a->round();
	_exit(0);
}

static void on_signal(int sig)
{
	signals++;
	if (sig == SIGALRM)
		work(signals);
}

int main(int argc, char **argv)
{
	struct sigaction sa = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
	const struct itimerval often = { { 0, 500 }, { 0, 500 } };
	struct pollfd in = { .fd = 0, .events = POLLIN };
	const struct attack *a = NULL;
	uint64_t lo, hi, spoiled = 0, i = 0;
	char line[256];
	pid_t child;

	for (size_t k = 0; k < sizeof(attacks) / sizeof(attacks[0]) && argc > 1; k++)
		if (!strcmp(argv[1], attacks[k].name))
			a = &attacks[k];
	if (!a) {
		fprintf(stderr, "usage: heir ATTACK\n");
		return 2;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	mine = mmap(NULL, MINE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (mine == MAP_FAILED)
		return 1;
	sigaction(SIGUSR1, &sa, NULL);
	sigaction(SIGALRM, &sa, NULL);
	printf("ready\n");
	fflush(stdout);
	while (!find_mapping(WIRE_MEMFD_ISLAND, &lo, &hi) ||
	       !find_mapping(WIRE_MEMFD_FACTS, &lo, &hi))
		;
	area = (const struct wire_area *)lo;
	find_mapping(WIRE_MEMFD_SHARED, &lo, &shared_end);
	printf("attached\n");
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin) || sscanf(line, "%lx %u", &witness, &victim) != 2)
		return 1;
	while (((const struct wire_state *)area->state)->active != WIRE_ON)
		usleep(100);
	work(0);
	slot = own_slot();
	child = fork();
	if (!child)
		be_heir(a);
	if (a->round == interrupt)
		setitimer(ITIMER_REAL, &often, NULL);
	while (i++ % 1024 || poll(&in, 1, 0) <= 0) /* a signal may interrupt it */
		work(a->round == aim ? witness : i);
	setitimer(ITIMER_REAL, &(struct itimerval){ 0 }, NULL);
	kill(child, SIGKILL);
	for (i = 0; i < MINE / sizeof(*mine); i++)
		spoiled += mine[i] != 0;
	printf("spoiled %lu\nsignals %lu\nend 0\n", spoiled, signals);
	return 0;
}
