/* A traced process that attacks its tracer (test/sh/inproc_hostile.py): `hostile ATTACK`. It prints
 * "ready", and "attached" when it finds the tracer's memory in itself. Then it reads a line,
 * "WITNESS VICTIM": an address of the tracer's (hexadecimal), and a process of another user. It
 * attacks until its standard input ends, prints "rounds N" when N is 10, 100, 1000... and at last
 * its results, as "word number". "execs" waits for a line before it is attached, and then executes
 * its FILE.
 *
 * Its first thread fires the probe on request. Another thread attacks, and never fires. Damage to
 * its own process does not end it, because a fault returns into the loop.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "own_memory.h"
#include "wire/inproc.h"

#define CALLED __attribute__((noipa))

enum {
	FIRINGS = 100, /* calls of `work` by the first thread, before the attack */
	PAGE = 4096,
};

CALLED uint64_t work(uint64_t a)
{
	__asm__ volatile("");
	return a * 31 + (a >> 3);
}

static const struct wire_area *area; /* in the facts, which only the tracer writes */
static struct wire_common *common;   /* the shared memory */
static uint64_t shared_end;
static uint64_t witness, rounds;
static pid_t victim;

static uint64_t next_random(void)
{
	static __thread uint64_t x = 88172645463325252ull;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return x;
}

/* Returns an address that an attacker would try. */
static uint64_t bad_address(void)
{
	switch (next_random() % 8) {
	case 0: return witness;
	case 1: return witness & ~4095ull;
	case 2: return 0x10000;
	case 3: return 0xdead0000dead0000ull;
	case 4: return area->base;
	case 5: return area->threads;
	case 6: return (uintptr_t)common - 8;
	default: return next_random();
	}
}

/* --- attacks: one round each, with counts of their results --- */

static uint64_t facts_written, bells, seen[4096], nseen;

/* Counters that another process adds to, in memory that it shares. */
static struct {
	uint64_t opened, written;
} * code;

/* Machine code for the tracer to run: it makes a file named OWNED. A page of nops is in front of
 * it. */
static const char *owned;
static size_t payload(uint8_t *page)
{
	static const uint8_t head[] = {
		0x48, 0x8d, 0x3d, 0x1a, 0, 0, 0, /* lea 26(%rip),%rdi: behind the code */
		0xbe, 0x41, 0,    0,    0,       /* mov $O_CREAT|O_WRONLY,%esi */
		0xba, 0xa4, 1,    0,    0,       /* mov $0644,%edx */
		0xb8, 2,    0,    0,    0,       /* mov $SYS_open,%eax */
		0x0f, 0x05,                      /* syscall */
		0x31, 0xff,                      /* xor %edi,%edi */
		0xb8, 0xe7, 0,    0,    0,       /* mov $SYS_exit_group,%eax */
		0x0f, 0x05,                      /* syscall */
	};
	size_t n = sizeof(head) + strlen(owned) + 1;

	memset(page, 0x90, 4096);
	memcpy(page + 4096 - n, head, sizeof(head));
	memcpy(page + 4096 - n + sizeof(head), owned, strlen(owned) + 1);
	return n;
}

static void rewrite_code(int fd)
{
	static uint8_t page[4096];
	struct stat st;

	payload(page);
	if (fstat(fd, &st))
		return;
	for (off_t at = 0; at < st.st_size && at < 1 << 22; at += (off_t)sizeof(page))
		__atomic_add_fetch(&code->written,
				   pwrite(fd, page, sizeof(page), at) == sizeof(page),
				   __ATOMIC_SEQ_CST);
}

/* Attacks the descriptors of the tracer's files, which are open here for a moment while it
 * attaches. This process shares the table of descriptors with the traced one, and is not stopped
 * with it. */
static int grabber(void *arg)
{
	int have[16], nhave = 0;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;) {
		for (int fd = 3; fd < 32; fd++) {
			char path[64], name[128] = "";
			int again;

			if (fcntl(fd, F_GETFD) < 0)
				continue;
			snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
			if (readlink(path, name, sizeof(name) - 1) < 0 ||
			    (!strstr(name, "descry-code") && !strstr(name, "descry-facts") &&
			     !strstr(name, "descry-island")))
				continue;
			again = open(path, O_RDWR | O_CLOEXEC);
			if (again < 0)
				again = fcntl(fd, F_DUPFD_CLOEXEC, 100); /* perhaps later */
			else
				__atomic_add_fetch(&code->opened, 1, __ATOMIC_SEQ_CST);
			if (again >= 0 && nhave < 16)
				have[nhave++] = again;
		}
		for (int i = 0; i < nhave; i++) {
			char path[64];
			int fd;

			rewrite_code(have[i]);
			snprintf(path, sizeof(path), "/proc/self/fd/%d", have[i]);
			fd = open(path, O_RDWR | O_CLOEXEC);
			if (fd >= 0) {
				rewrite_code(fd);
				close(fd);
			}
		}
	}
	return 0;
}

/* Does the same through the mappings. */
static void attack_code(void)
{
	static uint8_t page[4096];
	struct mapping m;
	char path[96];
	int fd;

	payload(page);
	for (int i = 0; find_mapping("descry-", i, &m); i++) {
		if (strstr(m.name, "descry-shared"))
			continue;
		snprintf(path, sizeof(path), "/proc/self/map_files/%lx-%lx", m.lo, m.hi);
		fd = open(path, O_RDWR | O_CLOEXEC);
		if (fd >= 0) {
			__atomic_add_fetch(&code->opened, 1, __ATOMIC_SEQ_CST);
			rewrite_code(fd);
			close(fd);
		}
		if (!mprotect((void *)m.lo, 4096, PROT_READ | PROT_WRITE | PROT_EXEC))
			__atomic_add_fetch(&code->opened, 1, __ATOMIC_SEQ_CST);
		for (uint64_t at = m.lo; at < m.hi && at < m.lo + (1 << 21); at += sizeof(page))
			__atomic_add_fetch(&code->written,
					   pwrite(own_mem, page, sizeof(page), (off_t)at) ==
						   sizeof(page),
					   __ATOMIC_SEQ_CST);
	}
}

/* Attacks the descriptors of maps. */
static void attack_maps(void)
{
	for (uint32_t i = 0; i < area->nmaps && i < 64; i++) {
		uint64_t at = area->maps + i * sizeof(struct wire_map);
		uint64_t old = read64(at + offsetof(struct wire_map, base));
		bool own = old >= area->base; /* not an offset in the slot */

		facts_written += force64(at + offsetof(struct wire_map, base),
					 own ? bad_address() : bad_address() - area->threads);
		if (next_random() % 4 == 0)
			force64(at + offsetof(struct wire_map, gen_stride), bad_address());
		if (next_random() % 4 == 0)
			force64(at + offsetof(struct wire_map, buckets), ~0ull);
		if (next_random() % 4 == 0)
			force64(at + offsetof(struct wire_map, used), next_random());
		if (next_random() % 4 == 0)
			force32(at + offsetof(struct wire_map, max_entries), ~0u);
		if (next_random() % 4 == 0)
			force32(at + offsetof(struct wire_map, stride), (uint32_t)next_random());
	}
}

/* Attacks words of the tracer's facts, of its own slot and of all others. */
static void attack_words(void)
{
	static const size_t words[] = {
		offsetof(struct wire_thread, cookie), offsetof(struct wire_thread, gen),
		offsetof(struct wire_thread, random), offsetof(struct wire_thread, owner),
		offsetof(struct wire_thread, task),   offsetof(struct wire_thread, number),
		offsetof(struct wire_thread, budget), offsetof(struct wire_thread, tid),
	};

	facts_written +=
		force64((uintptr_t)area + next_random() % sizeof(*area) / 8 * 8, bad_address());
	force64((uintptr_t)&common->no_thread, next_random());
	force32((uintptr_t)&common->child_count, (uint32_t)next_random());
	for (int i = 0; i < 8; i++) {
		uint64_t word = words[next_random() % (sizeof(words) / sizeof(words[0]))];

		force64(area->threads + word, bad_address());
		force64(area->threads + (1 + next_random() % 511) * area->thread_stride + word,
			bad_address());
	}
}

/* Marks every thread slot as being in a probe, for ever. */
static void attack_stuck(void)
{
	for (uint32_t i = 1; i < area->nthreads; i++) {
		force32(area->threads + i * area->thread_stride +
				offsetof(struct wire_thread, owner),
			2);
		force64(area->threads + i * area->thread_stride + offsetof(struct wire_thread, gen),
			~0ull);
	}
}

/* Writes anything into memory that it may write: rings, tables, hashes, variables. */
static void attack_scribble(void)
{
	for (int i = 0; i < 64; i++) {
		uint64_t span = next_random() % 4 ? 1 << 22 : shared_end - (uintptr_t)common;
		uint64_t at = ((uintptr_t)common + next_random() % span) & ~7ull;
		uint64_t v = next_random() % 2   ? bad_address()
			     : next_random() % 3 ? next_random() % 300
						 : ~0ull;

		if (read64(at) || next_random() % 64 == 0)
			force64(at, v);
	}
}

/* Writes a byte to each page that the process may write: all the memory there is. */
static void attack_fill(void)
{
	for (volatile uint64_t at = (uintptr_t)common; at < shared_end; at += PAGE) {
		sigjmp_buf here, *before = back;

		if (!sigsetjmp(here, 0)) {
			back = &here;
			*(volatile uint8_t *)(at + PAGE - 1) = (uint8_t)rounds;
		}
		back = before;
	}
}

/* Repeats the records in the rings again and again. */
static struct wire_ring *rings[8];
static uint64_t nrings, ring_size;

/* Uses the slot that has records in its rings, after the tracer has taken those. */
static void find_rings(void)
{
	for (uint32_t i = 1; i < area->nthreads; i++)
		for (uint32_t k = 0; k < area->nmaps && nrings < 8; k++) {
			const struct wire_map *m = (const struct wire_map *)area->maps + k;
			struct wire_ring *r =
				(struct wire_ring *)(area->threads + i * area->thread_stride +
						     m->base);

			if (m->kind != WIRE_MAP_RING || !r->head)
				continue;
			while (__atomic_load_n(&r->tail, __ATOMIC_ACQUIRE) != r->head)
				sched_yield();
			rings[nrings++] = r;
			ring_size = m->max_entries;
		}
}

static void attack_tail(void)
{
	for (uint64_t i = 0; i < nrings; i++)
		force64((uintptr_t)&rings[i]->tail, 0);
}

/* Each time the tracer has read the rings, makes all records there new again. */
static void attack_head(void)
{
	for (uint64_t i = 0; i < nrings; i++) {
		uint64_t tail = __atomic_load_n(&rings[i]->tail, __ATOMIC_ACQUIRE);

		if (tail == __atomic_load_n(&rings[i]->head, __ATOMIC_ACQUIRE))
			force64((uintptr_t)&rings[i]->head, tail + ring_size);
	}
}

/* Attacks sizes and marks of records. */
static void attack_records(void)
{
	for (uint64_t i = 0; i < nrings; i++) {
		uint64_t at = (uintptr_t)(rings[i] + 1) + next_random() % 4096 / 8 * 8;
		uint32_t bits[] = { WIRE_RING_BUSY, WIRE_RING_DISCARD, WIRE_RING_PAD, 0, 0, 0 };

		force32(at, (uint32_t)(next_random() % 600) | bits[next_random() % 6]);
		force32(at + 16, (uint32_t)(next_random() % 4 ? next_random() % 8
							      : ~0u - next_random() % 3));
		force64(at + 24 + next_random() % 64 / 8 * 8, bad_address());
		force64((uintptr_t)&rings[i]->head,
			read64((uintptr_t)&rings[i]->head) + next_random() % 8 * 8);
	}
}

/* Attacks the words in shared memory that code in the tracer's island uses: the first is that of
 * the bell (bell.c). */
static uint64_t find_bell(void)
{
	struct mapping m;
	uint64_t v;

	for (int i = 0; find_mapping("descry-island", i, &m); i++)
		for (uint64_t at = m.lo; at + sizeof(v) <= m.hi; at++) {
			memcpy(&v, (void *)at, sizeof(v));
			if (v > (uintptr_t)common && v < shared_end && v % 64 == 0 &&
			    *(uint32_t *)(v + 4) == 1)
				return v;
		}
	return 0;
}

/* Names a process of another user by each number that the tracer may use: as a child, as a thread
 * that executes a program or requests a task_struct, as one of the traced processes. */
static void attack_stranger(void)
{
	const struct wire_process *list = (const struct wire_process *)area->processes;
	struct wire_said *said = (struct wire_said *)area->said;
	static uint64_t bell;
	enum { ASKS = 64, ASKS_AT = 128, ASK = 16 };

	facts_written += force64((uintptr_t)&area->follow, 1);
	force32((uintptr_t)&common->child_count, 32);
	for (uint32_t i = 1; i < 32; i++) {
		facts_written += force32((uintptr_t)&list[i].pid, (uint32_t)victim);
		facts_written += force32((uintptr_t)&list[i].state, WIRE_PROCESS_TRACED);
		force32((uintptr_t)&said[WIRE_PROCESSES_MAX - i].own_pid, (uint32_t)victim);
	}
	for (uint32_t i = 1; i < 16 && area->wanted; i++) {
		uint64_t slot = area->threads + i * area->thread_stride;

		force32(slot + offsetof(struct wire_thread, owner), 2);
		force32(slot + area->wanted + offsetof(struct wire_wanted, tid), (uint32_t)victim);
	}
	force32((uintptr_t)&common->ask.asked, (uint32_t)next_random());
	syscall(SYS_futex, &common->ask.asked, 1 /* FUTEX_WAKE */, 1, NULL, NULL, 0);
	bell = bell ?: find_bell();
	for (uint64_t i = 0; i < ASKS && bell; i++) {
		force64(bell + ASKS_AT + ASK * i + 8, witness);
		force32(bell + ASKS_AT + ASK * i, (uint32_t)victim);
	}
	if (bell) {
		bells++;
		force32(bell, *(uint32_t *)bell + 1);
		syscall(SYS_futex, bell, 1 /* FUTEX_WAKE */, 1, NULL, NULL, 0);
	}
}

/* Names the watchdog and the tracer, which have the memory mapped too, as children that make no
 * system calls. */
static void attack_adopt(void)
{
	struct wire_said *last = (struct wire_said *)area->said + WIRE_PROCESSES_MAX - 1;

	force32((uintptr_t)&last[0].quiet, 1);
	force32((uintptr_t)&last[0].own_pid, area->watchdog_pid);
	force32((uintptr_t)&last[-1].own_pid, area->tracer_pid);
	force32((uintptr_t)&common->child_count, 2);
}

/* Writes records like those of the tracer's own clauses: of any segment and probe, in all rings of
 * the slot. */
static void attack_claim(void)
{
	enum { SIZE = 128, RECORD = WIRE_RING_HEAD + SIZE };
	uint64_t slot = nrings ? ((uintptr_t)rings[0] - area->threads) / area->thread_stride : 0;

	for (uint32_t k = 0; k < area->nmaps && slot; k++) {
		const struct wire_map *m = (const struct wire_map *)area->maps + k;
		uint64_t at = area->threads + slot * area->thread_stride + m->base;
		struct wire_ring *r = (struct wire_ring *)at;
		uint64_t head = m->kind == WIRE_MAP_RING ? r->head : 0;

		if (m->kind != WIRE_MAP_RING || head - r->tail > m->max_entries - RECORD)
			continue;
		if (head % m->max_entries + RECORD > m->max_entries) {
			force64(at + sizeof(*r) + head % m->max_entries,
				WIRE_RING_PAD |
					(m->max_entries - head % m->max_entries - WIRE_RING_HEAD));
			force64(at, head + m->max_entries - head % m->max_entries);
			continue;
		}
		at += sizeof(*r) + head % m->max_entries;
		force64(at, SIZE);
		force(at + WIRE_RING_HEAD,
		      &(struct wire_record){
			      .time = 1, .segment = rounds % 8, .probe = rounds / 8 % 8 },
		      sizeof(struct wire_record));
		force64((uintptr_t)r, head + RECORD);
	}
}

/* D's struct of three numbers: it begins with this number, then an address, then the value that D
 * has read there or will write. */
static const uint64_t MARK = 0x4d41524b00007ea1;
static uint64_t variables;

static void find_variables(void)
{
	for (uint64_t at = (uintptr_t)common; at < (uintptr_t)common + (1 << 24) && !variables;
	     at += 8)
		if (*(volatile uint64_t *)at == MARK)
			variables = at;
}

/* Collects the data that a D program of the tracer reads at an address from a variable: the
 * tracer's file, its slot, its probe stack. */
static void attack_peek(void)
{
	const uint64_t private = area->base + WIRE_PRIVATE;
	const uint64_t stack =
		(area->threads >> area->stack_shift) + area->stacks - WIRE_PROBE_STACK;
	static uint64_t off;
	uint64_t at[] = { witness, area->threads + off % WIRE_THREAD_SPACE,
			  stack + WIRE_PROBE_STACK - 8 - off % WIRE_PROBE_STACK,
			  private + off % sizeof(struct wire_private), area->base + off };
	uint64_t v;

	if (!variables)
		find_variables();
	if (!variables)
		return;
	off += rounds % 5 == 0 ? 8 : 0;
	force64(variables + 8, at[rounds % 5]);
	v = read64(variables + 16);
	for (uint64_t i = 0; i < nseen; i++)
		if (seen[i] == v)
			return;
	if (v && nseen < sizeof(seen) / sizeof(seen[0]))
		seen[nseen++] = v;
}

/* Requests the stand-in of `victim` in another thread's name, and notes the tracer's answers. */
static void attack_ask(void)
{
	struct wire_wanted *w =
		(struct wire_wanted *)(area->threads + 300 * area->thread_stride + area->wanted);

	__atomic_store_n(&w->answer, 0, __ATOMIC_SEQ_CST);
	__atomic_store_n(&w->tid, (uint32_t)victim, __ATOMIC_SEQ_CST);
	__atomic_fetch_add(&common->ask.asked, 1, __ATOMIC_SEQ_CST);
	syscall(SYS_futex, &common->ask.asked, FUTEX_WAKE, 1, NULL, NULL, 0);
	for (int i = 0; i < 5000 && __atomic_load_n(&w->tid, __ATOMIC_SEQ_CST); i++)
		usleep(1000);
	if (__atomic_load_n(&w->tid, __ATOMIC_SEQ_CST))
		exit(1);
	if (w->answer) {
		seen[0] = 1;
		nseen = 1;
	}
}

/* Makes memory like that of a tracer, without one, for `descry heal`. Its log has as many different
 * records of one place as there is room for, and names of another user's process. */
enum { FORGED = 600000, FORGED_BEFORE = 5 };

static int forge_file(const char *name, uint64_t addr, uint64_t size)
{
	int fd = memfd_create(name, MFD_CLOEXEC);

	if (fd < 0 || ftruncate(fd, (off_t)size) ||
	    mmap((void *)addr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE,
		 fd, 0) == MAP_FAILED)
		exit(1);
	return fd;
}

static void forge(void)
{
	const uint64_t facts = WIRE_BASE + WIRE_FACTS,
		       size = sizeof(struct wire_undo) * FORGED + (1 << 20);
	const uint8_t *text = (const uint8_t *)(uintptr_t)work;
	struct wire_area *a = (struct wire_area *)facts;
	struct wire_undo *u = (struct wire_undo *)(facts + (1 << 20));

	forge_file(WIRE_MEMFD_CODE, WIRE_BASE, 1 << 20);
	forge_file(WIRE_MEMFD_FACTS, facts, size);
	forge_file(WIRE_MEMFD_SHARED, WIRE_BASE + WIRE_SHARED, 1 << 20);
	*a = (struct wire_area){ .magic = WIRE_AREA_MAGIC,
				 .version = WIRE_AREA_VERSION,
				 .base = WIRE_BASE,
				 .shared_size = 1 << 20,
				 .span = 1 << 20,
				 .private_size = 1 << 30,
				 .tracer_pid = (uint32_t)victim,
				 .watchdog_pid = (uint32_t)victim,
				 .undo = (uintptr_t)u,
				 .nundo = FORGED };
	for (uint32_t i = 0; i < FORGED; i++) {
		u[i].site = (uintptr_t)text + FORGED_BEFORE;
		u[i].pid = i % 2 ? (uint32_t)victim : (uint32_t)getpid();
		u[i].len = 16;
		memset(u[i].before, 0xcc, 16);
		memcpy(u[i].after, &i, sizeof(i));
		memset(u[i].moved, 0xff, sizeof(u[i].moved));
	}
	/* a process that may write there counts as a tracer */
	if (mprotect((void *)WIRE_BASE, 1 << 20, PROT_READ | PROT_EXEC) ||
	    mprotect((void *)facts, size, PROT_READ))
		exit(1);
}

static const struct attack {
	const char *name;
	void (*begin)(void);
	void (*round)(void);
} attacks[] = {
	{ "code", NULL, attack_code },
	{ "maps", NULL, attack_maps },
	{ "words", NULL, attack_words },
	{ "scribble", NULL, attack_scribble },
	{ "stuck", NULL, attack_stuck },
	{ "fill", NULL, attack_fill },
	{ "tail", find_rings, attack_tail },
	{ "head", find_rings, attack_head },
	{ "records", find_rings, attack_records },
	{ "claim", find_rings, attack_claim },
	{ "stranger", NULL, attack_stranger },
	{ "adopt", NULL, attack_adopt },
	{ "peek", NULL, attack_peek },
	{ "ask", NULL, attack_ask },
	{ "forge", NULL, NULL },
	{ "none", NULL, NULL },
	{ "caps", NULL, NULL },
	{ "limit", NULL, NULL },
	{ "unmap", NULL, NULL },
	{ "execs", NULL, NULL },
};

/* --- changes of privileges; after each line of the standard input the next step --- */

static void next_line(void)
{
	char line[256];

	if (!fgets(line, sizeof(line), stdin))
		exit(1);
}

static void execute_owned(void)
{
	execl(owned, owned, "none", NULL);
	perror(owned);
	exit(1);
}

/* A child keeps the shared memory. This process executes FILE, which has capabilities of its
 * own. */
static void change_caps(void)
{
	pid_t parent = getpid();

	if (!fork()) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		while (getppid() == parent)
			pause();
		_exit(0);
	}
	execute_owned();
}

/* Gives up its rights, so that later firings do not belong to descry's own user. */
static void give_up(void)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) {
		perror("PR_SET_NO_NEW_PRIVS");
		exit(1);
	}
}

/* It looks detached to the tracer, but still writes to the shared memory. */
static void give_back(void)
{
	munmap((void *)(area->base + WIRE_PRIVATE), area->private_size);
}

/* Fires, waits for a line, changes its rights, and prints that. After another line it fires again,
 * and it ends at the end of its input. */
static void change(void (*fn)(void), bool fires)
{
	work(1);
	next_line();
	fn();
	printf("changed\n");
	fflush(stdout);
	next_line();
	if (fires)
		work(2);
	printf("fired\n");
	fflush(stdout);
	next_line();
}

/* --- */

/* Makes one round; none when the tracer has ended and removed its memory. */
static void do_round(const struct attack *a)
{
	sigjmp_buf here;

	if (!sigsetjmp(here, 1)) {
		back = &here;
		a->round();
	}
	back = NULL;
}

static void *attack(void *arg)
{
	const struct attack *a = arg;
	struct pollfd in = { .fd = 0, .events = POLLIN };
	uint64_t next = 10;

	if (a->begin)
		a->begin();
	for (rounds = 1; !poll(&in, 1, a->round ? 0 : 1); rounds++) {
		if (a->round)
			do_round(a);
		if (rounds == next) {
			printf("rounds %lu\n", rounds);
			fflush(stdout);
			next *= 10;
		}
	}
	printf("opened %lu\nwritten %lu\nfacts %lu\nrings %lu\nbells %lu\n",
	       __atomic_load_n(&code->opened, __ATOMIC_SEQ_CST),
	       __atomic_load_n(&code->written, __ATOMIC_SEQ_CST), facts_written, nrings, bells);
	for (uint64_t i = 0; i < nseen; i++)
		printf("seen %lx\n", seen[i]);
	printf("end 0\n");
	fflush(stdout);
	_exit(0);
}

int main(int argc, char **argv)
{
	const struct attack *a = NULL;
	struct sigaction sa = { .sa_handler = fault };
	struct mapping m;
	char line[256];
	uint64_t sum = 0;
	pthread_t t;

	for (size_t i = 0; i < sizeof(attacks) / sizeof(attacks[0]) && argc > 1; i++)
		if (!strcmp(argv[1], attacks[i].name))
			a = &attacks[i];
	if (!a) {
		fprintf(stderr, "usage: hostile ATTACK [FILE]\n");
		return 2;
	}
	owned = argc > 2 ? argv[2] : "/nonexistent/file";
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sigaction(SIGSEGV, &sa, NULL);
	sigaction(SIGBUS, &sa, NULL);
	own_mem = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	code = mmap(NULL, sizeof(*code), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (code == MAP_FAILED)
		return 2;
	if (!strcmp(a->name, "code")) {
		static uint8_t stack[65536] __attribute__((aligned(16)));

		clone(grabber, stack + sizeof(stack), CLONE_FILES | SIGCHLD, NULL);
	}
	printf("ready\n");
	fflush(stdout);
	if (!strcmp(a->name, "forge")) {
		if (!fgets(line, sizeof(line), stdin) ||
		    sscanf(line, "%lx %d", &witness, &victim) != 2)
			return 1;
		forge();
		printf("forged\n");
		fflush(stdout);
		while (read(0, line, sizeof(line)) > 0)
			;
		return 0;
	}
	if (!strcmp(a->name, "execs")) {
		forge_file(WIRE_MEMFD_CODE, WIRE_BASE,
			   1 << 20); /* like another tracer's, which the attach waits for */
		printf("forged\n");
		fflush(stdout);
		next_line();
		execute_owned();
	}
	while (!find_mapping(WIRE_MEMFD_ISLAND, 0, &m) || !find_mapping(WIRE_MEMFD_FACTS, 0, &m))
		;
	area = (const struct wire_area *)m.lo;
	find_mapping(WIRE_MEMFD_SHARED, 0, &m);
	common = (struct wire_common *)m.lo;
	shared_end = m.hi;
	printf("attached\n");
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin) || sscanf(line, "%lx %d", &witness, &victim) != 2)
		return 1;
	while (((const struct wire_state *)area->state)->active != WIRE_ON)
		sched_yield();
	if (!strcmp(a->name, "caps"))
		change_caps();
	if (!strcmp(a->name, "limit"))
		change(give_up, true);
	if (!strcmp(a->name, "unmap"))
		change(give_back, false);
	for (int i = 0; i < FIRINGS && a->round != attack_code; i++) /* which it would run itself */
		sum += work((uint64_t)i);
	pthread_create(&t, NULL, attack, (void *)a);
	for (;;)
		pause();
	return (int)sum;
}
