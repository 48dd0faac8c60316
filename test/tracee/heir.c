/* A traced process with privileges, and its child, which gives them up and has its parent's thread
 * slots in its memory: `heir ATTACK`. It prints "ready", and "attached" when it finds the tracer's
 * memory in itself. Then it reads a line, "WITNESS VICTIM": an address (hexadecimal) and the number
 * of another process. The child prints "shares 1" when it has that memory, too, else "shares 0",
 * and attacks for ever. The first three attack its parent's slot:
 *
 *	steer      puts an address of the parent into every word, to find where the parent writes
 *	interrupt  puts 0, and all bits, into every word, while signals interrupt the parent's firings
 *	aim        puts VICTIM's number in place of the parent's; the parent fires with WITNESS
 *	choose     the address of a text that the parent has written since, wherever that of the text
 *	           stands with which the parent fires; and that of an mm_struct of its own making, whose
 *	           arguments are that text, wherever that of the parent's stands
 *
 * The parent fires until its standard input ends, and prints the results: "word number", and at
 * last "end 0".
 *
 * "give" and "take" are for two processes that are named together. "give" is a parent as for
 * "choose", without the child, and prints "at PID HARMLESS SECRET ARGUMENTS". "take" reads that
 * line in place of WITNESS and VICTIM, gives up its privileges and attacks the other one's slot as
 * "choose" does.
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

enum { PAGE = 4096, USER = 60001, MINE = 1 << 20, WORDS = sizeof(struct wire_thread) / 4 };

CALLED uint64_t work(uint64_t a)
{
	__asm__ volatile("");
	return a * 31 + (a >> 3);
}

static const struct wire_area *area; /* in the facts, which only the tracer writes */
static volatile uint32_t *slot;      /* slot of the parent's thread */
static uint64_t witness, shared_lo, shared_end;
static uint32_t victim;
static uint64_t *mine; /* memory that only the parent has */
static volatile uint64_t signals;
static char harmless[16] = "harmless";
/* addresses in the parent: its arguments when it fires, ... */
static uint64_t old, secret, arguments;

/* The places of that memory file of the tracer. */
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

/* Returns the slot that has the process's number, which is its thread's, twice. */
static volatile uint32_t *slot_of(uint32_t pid)
{
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
	/* except the words that identify the slot's owner, and the word with `vforked` */
	for (uint32_t i = 0; i < WORDS; i += 2)
		if (4 * i != offsetof(struct wire_thread, owner) &&
		    4 * i != offsetof(struct wire_thread, number))
			*(volatile uint64_t *)&slot[i] = secret;
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

static uint64_t word_at(uint64_t at)
{
	return *(const uint64_t *)at;
}

/* Returns an mm_struct in the last thread's slot, which no thread has: like the one that the tracer
 * has made for the parent, for a process whose arguments are the secret. 0: the tracer has made
 * none. */
static uint64_t forged_mm(uint64_t mm)
{
	const uint64_t at = area->threads + (area->nthreads - 1) * area->thread_stride + PAGE;
	uint64_t *words = (uint64_t *)at, *start = NULL;

	if (!mm)
		return 0;
	memcpy(words, (const void *)mm, area->task.mm_size);
	for (uint32_t i = 0; i + 1 < area->task.mm_size / 8 && !start; i++)
		if (words[i] == arguments && words[i + 1] > arguments)
			start = &words[i];
	if (!start)
		return 0;
	start[0] = secret;
	start[1] = secret + sizeof(harmless);
	return at;
}

/* Returns the stand-in of the parent, which is the first named process. 0: no probe needs it. */
static uint64_t own_mm(void)
{
	const uint64_t task = ((const struct wire_process *)area->processes)[1].task;

	return area->task.task_size && task ? word_at(task + area->task.mm) : 0;
}

/* Replaces every word that is `from` in those pages of [lo, hi) that were written. */
static void replace(uint64_t lo, uint64_t hi, uint64_t from, uint64_t to)
{
	for (uint64_t page = lo & -(uint64_t)PAGE; page < hi && from && to; page += PAGE) {
		unsigned char there = 0;

		if (mincore((void *)page, PAGE, &there) || !(there & 1))
			continue;
		for (uint64_t at = page; at < page + PAGE; at += 8)
			if (*(volatile uint64_t *)at == from)
				*(volatile uint64_t *)at = to;
	}
}

/* Attacks all variables, then all memory of the parent's thread. */
static void choose(void)
{
	static uint64_t mm, forged, round;
	const uint64_t own = (uintptr_t)slot;

	if (!round++) {
		mm = own_mm();
		forged = forged_mm(mm);
	}
	if (round % 64 == 1)
		replace(shared_lo, area->threads, old, secret);
	replace(own, own + area->thread_stride, old, secret);
	replace(own, own + area->thread_stride, mm, forged);
}

static const struct attack {
	const char *name;
	void (*round)(void);
	int rounds; /* rounds between two checks for the end */
} attacks[] = { { "steer", steer, 100000 }, { "interrupt", interrupt, 100000 },
		{ "aim", aim, 100000 },     { "choose", choose, 10 },
		{ "give", NULL, 0 },        { "take", choose, 10 } };

static void be_heir(const struct attack *a)
{
	struct pollfd parent = { .fd = 0, .events = POLLIN };
	const struct sigaction none = { .sa_handler = SIG_DFL };
	const bool shares = find_mapping(WIRE_MEMFD_SHARED, &shared_lo, &shared_end);

	sigaction(SIGALRM, &none, NULL);
	if (setresgid(USER, USER, USER) || setresuid(USER, USER, USER))
		_exit(1);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	printf("shares %d\nsteering\n", shares);
	fflush(stdout);
	while (!poll(&parent, 1, shares ? 0 : -1))
		for (int i = 0; i < a->rounds; i++)
			a->round();
	_exit(0);
}

static void on_signal(int sig)
{
	signals++;
	if (sig == SIGALRM)
		work(signals);
}

/* Another process that is traced together with the one that printed this line. */
static void take(const struct attack *a, const char *line)
{
	uint32_t pid;

	if (sscanf(line, "at %u %lx %lx %lx", &pid, &old, &secret, &arguments) != 4)
		exit(1);
	work(0);
	slot = slot_of(pid);
	be_heir(a);
}

int main(int argc, char **argv)
{
	struct sigaction sa = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
	const struct itimerval often = { { 0, 500 }, { 0, 500 } };
	struct pollfd in = { .fd = 0, .events = POLLIN };
	const struct attack *a = NULL;
	uint64_t lo, hi, spoiled = 0, i = 0, argument;
	bool chosen;
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
	find_mapping(WIRE_MEMFD_SHARED, &shared_lo, &shared_end);
	printf("attached\n");
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		return 1;
	while (((const struct wire_state *)area->state)->active != WIRE_ON)
		usleep(100);
	if (!strcmp(a->name, "take"))
		take(a, line);
	if (sscanf(line, "%lx %u", &witness, &victim) != 2)
		return 1;
	chosen = a->round == choose || !a->round;
	old = (uintptr_t)harmless;
	secret = (uintptr_t)mine + MINE / 2;
	arguments = (uintptr_t)argv[0];
	work(chosen ? old : 0);
	slot = slot_of((uint32_t)getpid());
	child = a->round ? fork() : 0;
	if (!child && a->round)
		be_heir(a);
	if (a->round == interrupt)
		setitimer(ITIMER_REAL, &often, NULL);
	if (chosen)
		strcpy((char *)secret, "secret");
	if (!a->round) {
		printf("at %u %lx %lx %lx\n", (uint32_t)getpid(), old, secret, arguments);
		fflush(stdout);
	}
	while (i++ % 1024 || poll(&in, 1, 0) <= 0) { /* a signal may interrupt it */
		argument = a->round == aim ? witness : chosen ? old : i;
		work(argument);
	}
	setitimer(ITIMER_REAL, &(struct itimerval){ 0 }, NULL);
	if (child > 0)
		kill(child, SIGKILL);
	if (!strcmp((char *)secret, "secret"))
		memset((char *)secret, 0, sizeof(harmless));
	for (i = 0; i < MINE / sizeof(*mine); i++)
		spoiled += mine[i] != 0;
	printf("spoiled %lu\nsignals %lu\nend 0\n", spoiled, signals);
	return 0;
}
