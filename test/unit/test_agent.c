/* The agent's blob in a process that is laid out as a traced one: its entries, called. */
#define _GNU_SOURCE
#include "unit.h"

#include <dirent.h>
#include <errno.h>
#include <linux/bpf.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "agent/ring.h"
#include "agent_child.h"

enum { PAGE = 4096 };

static volatile sig_atomic_t caught;

static void guarded(void)
{
	CHECK(CALL(guard, 7) == 0);
	CHECK(w.private->signals == 7);
	w.area->reads_guarded = 1;
	world_ranges(&w);
}
static uint8_t *pages(int n)
{
	uint8_t *p = mmap(NULL, (size_t)n * PAGE, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(p != MAP_FAILED);
	return p;
}

/* --- head --- */

TEST(test_head)
{
	CHECK(w.head->magic == WIRE_AREA_MAGIC && w.head->version == WIRE_AREA_VERSION);
	CHECK(w.head->nentries == WIRE_AGENT_ENTRY_COUNT && w.head->size < 40960);
	for (int i = 0; i < WIRE_AGENT_ENTRY_COUNT; i++) {
		const uint8_t *p = (const uint8_t *)w.head + w.head->entry[i];

		CHECK(w.head->entry[i] >= sizeof(*w.head) && w.head->entry[i] < w.head->size);
		/* endbr64; what is returned to needs none, and unwinders know it by its bytes */
		CHECK(!memcmp(p,
			      i == WIRE_AGENT_restorer ? "\x48\xc7\xc0\x0f\0\0\0\x0f\x05"
						       : "\xf3\x0f\x1e\xfa",
			      i == WIRE_AGENT_restorer ? 9 : 4));
	}
}

/* --- threads --- */

TEST(test_thread)
{
	struct wire_thread *t = world_thread(&w, 4711), *u;

	prctl(PR_SET_NAME, "fred");
	CHECK(t && t->owner == 2 && t->tid == (uint32_t)gettid() && t->pid == (uint32_t)getpid());
	CHECK(world_own(&w, t)->key == 4711 && world_own(&w, t)->holder == t->tid &&
	      world_own(&w, t)->pid == t->pid);
	CHECK(t->slot != 0); /* the tracer's */
	CHECK(world_thread(&w, 4711) == t);
	CHECK(w.private->threads[wire_thread_hash(4711, w.area->identity)].key == 4711);
	CHECK(w.private->threads[wire_thread_hash(4711, w.area->identity)].thread == (uintptr_t)t);
	u = world_thread(&w, 4712);
	CHECK(u && u != t);
	CHECK(!world_thread(&w, 0) && w.common->no_thread == 1);
	w.private->off = 1;
	CHECK(!world_thread(&w, 4711));
}

/* Keys with the same place in the table. */
TEST(test_thread_collisions)
{
	uint64_t keys[WORLD_THREADS - 1];
	struct wire_thread *t[WORLD_THREADS - 1];
	int n = 0;

	for (uint64_t k = 1; n < WORLD_THREADS - 1; k++)
		if (wire_thread_hash(k, w.area->identity) == WIRE_THREAD_HASH - 2)
			keys[n++] = k;
	for (int i = 0; i < n; i++) {
		t[i] = world_thread(&w, keys[i]);
		CHECK(t[i]);
	}
	for (int i = 0; i < n; i++)
		CHECK(world_thread(&w, keys[i]) == t[i] && world_own(&w, t[i])->key == keys[i]);
	CHECK(!world_thread(&w, 99999999)); /* all are taken, by this live thread */
	CHECK(w.common->no_thread == 1);
}

static void *claim_slot(void *arg)
{
	struct wire_thread *t = (struct wire_thread *)world_call(&w, WIRE_AGENT_thread,
								 (uint64_t)gettid(), 0, 0, 0);

	if (t)
		memset((uint8_t *)t + w.maps[WORLD_TASK].base, 0xaa, 64);
	return t;
}

/* Slots of threads that are gone are given to new ones, with nothing of theirs left. */
TEST(test_thread_reclaim)
{
	struct wire_thread *t = NULL;
	struct wire_ring *r;

	for (int i = 0; i < 50; i++) {
		pthread_t th;
		void *p = NULL;
		struct wire_thread *mine;

		CHECK(!pthread_create(&th, NULL, claim_slot, NULL));
		CHECK(!pthread_join(th, &p));
		CHECK(p);
		mine = p;
		/* pthread_join() returns when the kernel has cleared the thread's id; it may be
		 * there a bit longer */
		for (int k = 0; k < 1000 && !syscall(SYS_tgkill, getpid(), mine->tid, 0); k++)
			usleep(100);
		*(uint64_t *)((uint8_t *)mine + w.maps[WORLD_SCRATCH].base + 512) = 1;
		r = (struct wire_ring *)((uint8_t *)mine + w.maps[WORLD_RING].base);
		if (r->tail == r->head) {
			*(uint32_t *)((uint8_t *)(r + 1) + r->head % 4096) = WIRE_RING_BUSY | 16;
			r->head += 24;
		}
	}
	t = world_thread(&w, (uint64_t)gettid());
	CHECK(t);
	for (int i = 0; i < 64; i++)
		CHECK(((uint8_t *)t)[w.maps[WORLD_TASK].base + (uint64_t)i] == 0);
	CHECK(*(uint64_t *)((uint8_t *)t + w.maps[WORLD_SCRATCH].base + 512) == 0);
	r = (struct wire_ring *)((uint8_t *)t + w.maps[WORLD_RING].base);
	CHECK(r->head == r->tail ||
	      !(*(uint32_t *)((uint8_t *)(r + 1) + r->tail % 4096) & WIRE_RING_BUSY));
}

/* Threads that come and go do not use up what is there, as long as the tracer takes their
 * records. */
TEST(test_thread_churn)
{
	uint32_t used = 0;

	for (int i = 0; i < 40; i++) {
		struct wire_thread *mine;
		pthread_t th;
		void *p = NULL;

		CHECK(!pthread_create(&th, NULL, claim_slot, NULL) && !pthread_join(th, &p) && p);
		mine = p;
		for (int k = 0; k < 1000 && !syscall(SYS_tgkill, getpid(), mine->tid, 0); k++)
			usleep(100);
		used |= 1u << mine->slot;
	}
	CHECK(__builtin_popcount(used) <= 2);
}

static void *die_in_probe(void *arg)
{
	struct wire_thread *t =
		(struct wire_thread *)world_call(&w, WIRE_AGENT_thread, 4711, 0, 0, 0);

	world_entry(&w, t)->rsp = (uintptr_t)__builtin_frame_address(0);
	memset((uint8_t *)t + w.maps[WORLD_TASK].base, 0xaa, 64);
	return t;
}
/* A thread that ended in the middle of a firing, and one that comes with the same key: it is not
 * silent for ever. */
TEST(test_thread_renewed)
{
	struct wire_thread *t;
	uint32_t *holder;
	pthread_t th;
	void *p;
	int n = 0;

	CHECK(!pthread_create(&th, NULL, die_in_probe, NULL) && !pthread_join(th, &p) && p);
	t = p;
	for (int k = 0; k < 1000 && !syscall(SYS_tgkill, getpid(), t->tid, 0); k++)
		usleep(100);
	while (n < 1000 && !CALL(nested, (uintptr_t)t, 4096))
		n++;
	CHECK(n < 100 && t->tid == (uint32_t)gettid() && !((uint8_t *)t)[w.maps[WORLD_TASK].base]);
	/* without a thread id for a key it is seen when it comes by */
	w.area->identity = WIRE_ID_FS64;
	holder = &world_own(&w, t)->holder;
	(*holder)++;
	while (!syscall(SYS_tgkill, getpid(), *holder, 0))
		(*holder)++;
	CHECK(world_thread(&w, 4711) == t && t->tid == (uint32_t)gettid());
}

/* Slots of a process that the tracer has seen go. */
TEST(test_thread_gone_process)
{
	struct wire_process *other = w.process + 1;

	for (uint32_t i = 1; i < WORLD_THREADS; i++)
		((struct wire_thread *)(w.area->threads + i * w.area->thread_stride))->owner = 3;
	other->state = WIRE_PROCESS_TRACED;
	CHECK(!world_thread(&w, 5));
	usleep(2000); /* it does not look for a while */
	other->state = WIRE_PROCESS_GONE;
	CHECK(world_thread(&w, 5));
}

TEST(test_heartbeat)
{
	struct wire_state *s = (struct wire_state *)w.area->state;

	w.area->heartbeat = CALL(ktime);
	w.area->heartbeat_max = 3600ull * 1000000000;
	CHECK(world_thread(&w, 1) && s->active == WIRE_ON);
	w.area->heartbeat_max = 1;
	CHECK(world_thread(&w, 2) && s->active == WIRE_OFF);
}

TEST(test_nested)
{
	struct wire_thread *t;
	uint64_t *busy;
	void *p;

	guarded();
	t = world_thread(&w, 1);
	busy = (uint64_t *)((uint8_t *)t + w.maps[WORLD_SCRATCH].base);
	world_own(&w, t)->stack_lo = world_entry(&w, t)->rsp - 65536;
	world_own(&w, t)->stack_hi = world_entry(&w, t)->rsp + 65536;
	*busy = 1;
	p = (void *)CALL(ring_reserve, world_map(&w, WORLD_RING), 16, 0);
	CHECK(p);
	CHECK(CALL(nested, (uintptr_t)t, world_entry(&w, t)->rsp - 512) ==
	      0); /* a handler above it */
	CHECK(CALL(nested, (uintptr_t)t, (uintptr_t)world_own(&w, t) - 512) ==
	      0); /* ... on the probe stack */
	CHECK(t->skipped_nested == 2 && world_own(&w, t)->nested == 2 && *busy == 1);
	world_own(&w, t)->alt_lo = world_entry(&w, t)->rsp + 1024;
	world_own(&w, t)->alt_hi = world_entry(&w, t)->rsp + 2048;
	CHECK(CALL(nested, (uintptr_t)t, world_entry(&w, t)->rsp + 1536) ==
	      0); /* ... on a signal stack */
	CHECK(CALL(nested, (uintptr_t)t, world_entry(&w, t)->rsp + 64) ==
	      1); /* longjmp() has gone there */
	CHECK(t->skipped_nested == 3 && world_own(&w, t)->nested == 0 && *busy == 0);
	CHECK(((uint32_t *)p)[-2] & WIRE_RING_DISCARD);
}

/* --- maps, rings and the rest through the blob --- */

TEST(test_map_entries)
{
	uint64_t *key = (uint64_t *)w.room, *value = key + 8, *v;
	struct wire_map *inner = (struct wire_map *)world_facts(&w, sizeof(*inner));
	const uint64_t values = world_facts(&w, 16 * 8);
	struct wire_thread *t = world_thread(&w, 1);

	key[0] = 77;
	value[0] = 5;
	CHECK(!CALL(map_lookup, world_map(&w, WORLD_AGG), key));
	CHECK(!CALL(map_update, world_map(&w, WORLD_AGG), key, value, BPF_NOEXIST));
	v = (uint64_t *)CALL(map_lookup, world_map(&w, WORLD_AGG), key);
	CHECK(v && *v == 5);
	CHECK(!CALL(map_update, world_map(&w, WORLD_HASH), key, value, BPF_ANY));
	CHECK((int64_t)CALL(map_update, world_map(&w, WORLD_HASH), key, value, BPF_NOEXIST) ==
	      -EEXIST);
	CHECK(!CALL(map_delete, world_map(&w, WORLD_HASH), key));
	CHECK((int64_t)CALL(map_delete, world_map(&w, WORLD_HASH), key) == -ENOENT);
	CHECK(CALL(task_storage_get, world_map(&w, WORLD_TASK), 1, 0, 1) ==
	      (uintptr_t)t + w.maps[WORLD_TASK].base);
	CHECK(!CALL(task_storage_delete, world_map(&w, WORLD_TASK), 1));
	CHECK(t->violations == 0);
	/* a map that is none, keys and values elsewhere */
	CHECK(!CALL(map_lookup, world_map(&w, WORLD_AGG) + 8, key));
	CHECK(!CALL(map_lookup, 0, key));
	CHECK(!CALL(map_lookup, world_map(&w, WORLD_AGG), &w));
	CHECK((int64_t)CALL(map_update, world_map(&w, WORLD_AGG), key, 8, 0) == -EFAULT);
	CHECK((int64_t)CALL(map_update, world_map(&w, WORLD_HASH),
			    (uint8_t *)w.area + w.area->span - 8, value) == -EFAULT);
	CHECK(!CALL(task_storage_get, world_map(&w, WORLD_AGG), 1, 0, 1));
	CHECK(t->violations == 6);
	/* what a table of tables leads to */
	*inner = (struct wire_map){ .kind = WIRE_MAP_ARRAY,
				    .key_size = 4,
				    .value_size = 8,
				    .stride = 8,
				    .max_entries = 16,
				    .base = values };
	key[0] = 3;
	CHECK(CALL(map_lookup, inner, key) == values + 24);
	inner->base = (uintptr_t)&w;
	CHECK(!CALL(map_lookup, inner, key) && t->violations == 7);
	inner->base = (uintptr_t)w.common; /* not where the tracer puts such */
	CHECK(!CALL(map_lookup, inner, key) && t->violations == 8);
	t->violations = 6;
	CHECK((int64_t)CALL(violation, 17) < 0 && t->violations == 7 && t->violation == 17);
}

/* A key's home held by a thread of this process that is gone. */
TEST(test_map_dead_holder)
{
	uint64_t *key = (uint64_t *)w.room, *value = key + 8;
	struct wire_thread *dead;
	pthread_t th;
	void *p;

	CHECK(world_thread(&w, 1));
	CHECK(!pthread_create(&th, NULL, claim_slot, NULL) && !pthread_join(th, &p) && p);
	dead = p;
	for (int k = 0; k < 1000 && !syscall(SYS_tgkill, getpid(), dead->tid, 0); k++)
		usleep(100);
	for (uint32_t i = 0; i < w.maps[WORLD_HASH].buckets; i++)
		((struct wire_hash_entry *)(w.maps[WORLD_HASH].base +
					    i * w.maps[WORLD_HASH].stride))
			->owner = dead->slot + 1;
	CHECK(!CALL(map_update, world_map(&w, WORLD_HASH), key, value, BPF_ANY));
	CHECK(!CALL(map_delete, world_map(&w, WORLD_HASH), key));
}

TEST(test_ring_entries)
{
	uint64_t map = world_map(&w, WORLD_RING);
	uint8_t *p;

	CHECK(world_thread(&w, 1));
	CHECK(CALL(ring_query, map, BPF_RB_RING_SIZE) == 4096);
	p = (uint8_t *)CALL(ring_reserve, map, 100, 0);
	CHECK(p && CALL(ring_query, map, BPF_RB_AVAIL_DATA) == 112);
	CHECK(!CALL(ring_submit, p, 0));
	CHECK((int64_t)CALL(ring_submit, p, 0) == -EFAULT && w.t->violations == 1);
	CHECK((int64_t)CALL(ring_discard, &w, 0) == -EFAULT && w.t->violations == 2);
	CHECK(!CALL(ring_output, map, w.room, 40, 0));
	CHECK((int64_t)CALL(ring_output, map, w.room, 4000, 0) == -EAGAIN);
	CHECK(!CALL(ring_reserve, map, 8000, 0));
	CHECK((int64_t)CALL(ring_output, map, 4096, 40, 0) == -EFAULT);
}

TEST(test_small_helpers)
{
	struct wire_thread *t = world_thread(&w, 1);
	struct timespec ts;
	uint64_t now, ns;
	char *s = (char *)w.room;

	for (int i = 0; i < 2; i++) {
		clock_gettime(CLOCK_MONOTONIC, &ts);
		now = (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
		ns = CALL(ktime);
		CHECK((int64_t)(ns - now) > -2000000 && (int64_t)(ns - now) < 200000000);
		w.area->clock.mult = 0; /* by the kernel */
	}
	CHECK(CALL(prandom) != CALL(prandom) || CALL(prandom) != CALL(prandom));
	CHECK(CALL(prandom) >> 32 == 0);
	CHECK(CALL(pid_tgid) == ((uint64_t)getpid() << 32 | (uint32_t)gettid()));
	CHECK(CALL(uid_gid) == ((uint64_t)getgid() << 32 | getuid()));
	CHECK(CALL(cpu) < (uint64_t)sysconf(_SC_NPROCESSORS_CONF));
	for (int i = 0; i < sysconf(_SC_NPROCESSORS_CONF); i++) {
		cpu_set_t set;

		CPU_ZERO(&set);
		CPU_SET(i, &set);
		if (!sched_setaffinity(0, sizeof(set), &set))
			CHECK(CALL(cpu) == (uint64_t)i);
	}
	prctl(PR_SET_NAME, "wilma");
	usleep(2000);
	memset(s, 'x', 32);
	CHECK(!CALL(comm, s, 32) && !memcmp(s, "wilma\0\0\0\0", 9) && !s[31]);
	CHECK(!CALL(comm, s, 4) && !strcmp(s, "wil"));
	CHECK((int64_t)CALL(comm, &w, 16) == -EFAULT);
	t->task = 0x1234;
	world_own(&w, t)->regs = 0x5678;
	CHECK(CALL(current_task) == 0x1234 && CALL(task_pt_regs) == 0x5678);
	strcpy(s, "abc");
	strcpy(s + 16, "abd");
	CHECK((int64_t)CALL(strncmp, s, 16, s + 16) == -1 && CALL(strncmp, s, 2, s + 16) == 0);
	CHECK((int64_t)CALL(strncmp, s + 16, 16, s) == 1);
	CHECK(CALL(strncmp, s, 16, s) == 0);
}

/* --- reads --- */

/* The same in every mode: with faults survived, with system calls, and where those are refused. */
static void read_all(void)
{
	uint8_t *p = pages(3), *dst = w.room;
	const char *text = "a string of 25 characters";

	munmap(p + 2 * PAGE, PAGE);
	for (int i = 0; i < 2 * PAGE; i++)
		p[i] = (uint8_t)(i * 7 + 1);
	for (uint32_t n = 0; n < 70; n++) {
		memset(dst, 0xcc, 80);
		CHECK(!CALL(probe_read, dst, n, p + 2 * PAGE - n)); /* up to the page's end */
		CHECK(!memcmp(dst, p + 2 * PAGE - n, n) && dst[n] == 0xcc);
		CHECK(!CALL(probe_read, dst, n, p + PAGE - n / 2));
		CHECK(!memcmp(dst, p + PAGE - n / 2, n) && dst[n] == 0xcc);
		memset(dst, 0xcc, 80);
		CHECK((int64_t)CALL(probe_read, dst, n + 1, p + 2 * PAGE - n) == -EFAULT);
		for (uint32_t i = 0; i <= n; i++)
			CHECK(!dst[i]);
		CHECK(dst[n + 1] == 0xcc);
	}
	CHECK((int64_t)CALL(probe_read, dst, 8, 0) == -EFAULT);
	CHECK((int64_t)CALL(probe_read, dst, 8, 1) == -EFAULT);
	CHECK((int64_t)CALL(probe_read, dst, 8, -8) == -EFAULT);
	CHECK((int64_t)CALL(probe_read, dst, 8, 0x8000000000000000ull) == -EFAULT);
	CHECK((int64_t)CALL(probe_read, dst, 8, 0xffff888000000000ull) == -EFAULT);
	CHECK((int64_t)CALL(probe_read, dst, 8, 0x7fffffffeffcull) == -EFAULT);
	CHECK((int64_t)CALL(probe_read, dst, 16384, p) == -EFAULT);

	for (uint32_t at = 0; at < 40; at++) { /* strings, also those that end with the page */
		memset(dst, 0xcc, 80);
		memcpy(p + 2 * PAGE - 26 - at, text, 26);
		CHECK(CALL(probe_read_str, dst, 64, p + 2 * PAGE - 26 - at) == 26);
		CHECK(!memcmp(dst, text, 26));
		CHECK(CALL(probe_read_str, dst, 10, p + 2 * PAGE - 26 - at) == 10);
		CHECK(!memcmp(dst, text, 9) && !dst[9]);
		memcpy(p + PAGE - at, text, 26);
		CHECK(CALL(probe_read_str, dst, 64, p + PAGE - at) == 26 && !memcmp(dst, text, 26));
	}
	memset(p, 'x', 2 * PAGE); /* no NUL before the end of what is mapped */
	memset(dst, 0xcc, 80);
	CHECK((int64_t)CALL(probe_read_str, dst, 64, p + 2 * PAGE - 20) == -EFAULT);
	for (int i = 0; i < 64; i++)
		CHECK(!dst[i]);
	CHECK(dst[64] == 0xcc);
	CHECK(CALL(probe_read_str, dst, 20, p + 2 * PAGE - 20) == 20 && dst[18] == 'x' && !dst[19]);
	CHECK(CALL(probe_read_str, dst, 0, p) == 0);
	CHECK((int64_t)CALL(probe_read_str, dst, 64, 0) == -EFAULT);
	CHECK(CALL(probe_read_str, dst, 1, p) == 1 && !dst[0]);
	p[5] = 0;
	CHECK(CALL(probe_read_str, dst, 6, p) == 6 && CALL(probe_read_str, dst, 5, p) == 5);

	/* where a program must not write */
	w.t->violations = 0;
	CHECK((int64_t)CALL(probe_read, p, 8, p) == -EFAULT && w.t->violations == 1 && p[0] == 'x');
	CHECK((int64_t)CALL(probe_read_str, p, 8, p) == -EFAULT && w.t->violations == 2);
	CHECK((int64_t)CALL(probe_read, (uint8_t *)w.area + w.area->span - 4, 8, p) == -EFAULT);
	CHECK((int64_t)CALL(probe_read, world_entry(&w, w.t)->rsp, 8, p) == -EFAULT);
	CHECK(!CALL(probe_read, (uintptr_t)world_own(&w, w.t) - 64, 8, p)); /* the probe stack */
	CHECK(!CALL(probe_write, p, dst, 4));
	CHECK((int64_t)CALL(probe_write, 8, dst, 4) == -EFAULT);
	munmap(p, 2 * PAGE);
}

TEST(test_read_exact)
{
	CHECK(world_thread(&w, 1));
	read_all();
	CHECK(!w.kept->no_vm_read);
}
TEST(test_read_asking) /* process_vm_readv(2) refused */
{
	CHECK(world_thread(&w, 1));
	w.kept->no_vm_read = 1;
	read_all();
}
TEST(test_read_guarded)
{
	guarded();
	CHECK(world_thread(&w, 1));
	read_all(); /* mapped since: not in the list of ranges */
	CHECK(w.said->ranges_wanted);
}

/* Known ranges that are not there any more: our handler brings the read back. */
TEST(test_read_stale)
{
	uint8_t *p = pages(2), *dst = w.room;
	FILE *f = tmpfile();
	uint8_t *m;

	CHECK(f && !ftruncate(fileno(f), 2 * PAGE));
	m = mmap(NULL, 2 * PAGE, PROT_READ, MAP_SHARED, fileno(f), 0);
	CHECK(m != MAP_FAILED);
	strcpy((char *)p + PAGE - 4, "long enough");
	guarded();
	CHECK(world_thread(&w, 1));
	CHECK(!CALL(probe_read, dst, 8, p) && !CALL(probe_read, dst, 8, m));
	CHECK(!w.said->ranges_wanted && world_own(&w, w.t)->range_hi);
	munmap(p + PAGE, PAGE);
	CHECK((int64_t)CALL(probe_read, dst, 8, p + PAGE) == -EFAULT);
	CHECK((int64_t)CALL(probe_read, dst, 16, p + PAGE - 8) == -EFAULT && !dst[0]);
	CHECK((int64_t)CALL(probe_read_str, dst, 16, p + PAGE - 4) == -EFAULT && !dst[0]);
	CHECK(w.said->ranges_wanted);
	CHECK(!ftruncate(fileno(f), PAGE)); /* SIGBUS */
	CHECK((int64_t)CALL(probe_read, dst, 8, m + PAGE) == -EFAULT);
	CHECK(!CALL(probe_read, dst, 8, m));
	mprotect(p, PAGE, PROT_NONE);
	for (int i = 0; i < 300; i++)
		CHECK((int64_t)CALL(probe_read, dst, 8, p) == -EFAULT);
}

/* With the signal blocked, or with somebody else's handler, a fault would be the end. */
TEST(test_read_blocked)
{
	uint8_t *p = pages(1), *dst = w.room;
	sigset_t set;

	guarded();
	CHECK(world_thread(&w, 1));
	sigemptyset(&set);
	sigaddset(&set, SIGSEGV);
	sigprocmask(SIG_BLOCK, &set, NULL);
	munmap(p, PAGE);
	CHECK((int64_t)CALL(probe_read, dst, 8, p) == -EFAULT);
	CHECK(world_own(&w, w.t)->unsafe);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	for (int i = 0; i < 20; i++)
		CHECK((int64_t)CALL(probe_read, dst, 8, p) == -EFAULT);
	CHECK(!world_own(&w, w.t)->unsafe);
	signal(SIGSEGV, SIG_DFL); /* behind our back */
	world_own(&w, w.t)->checks = 0;
	CHECK((int64_t)CALL(probe_read, dst, 8, p) == -EFAULT);
	CHECK(world_own(&w, w.t)->unsafe);
}

static void *stack_of(void *arg)
{
	struct world own = w;
	struct wire_thread *t = world_thread(&own, (uint64_t)gettid());
	uint64_t fs;

	__asm__("mov %%fs:0x10, %0" : "=r"(fs));
	CHECK(t && world_own(&w, t)->stack_lo < world_entry(&w, t)->rsp &&
	      world_own(&w, t)->stack_hi > world_entry(&w, t)->rsp &&
	      world_own(&w, t)->stack_hi <= fs);
	CHECK(!world_call(&own, WIRE_AGENT_probe_read, (uintptr_t)w.room, 8, fs - 64, 0));
	return NULL;
}
/* A thread's stack ends where its block begins, though its mapping goes on. */
TEST(test_stack_range)
{
	uint8_t *p =
		mmap(NULL, 64 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_attr_t attr;
	pthread_t th;

	CHECK(p != MAP_FAILED);
	pthread_attr_init(&attr);
	CHECK(!pthread_attr_setstack(&attr, p, 60 * PAGE));
	guarded();
	CHECK(!pthread_create(&th, &attr, stack_of, NULL) && !pthread_join(th, NULL));
}

/* A firing in a handler on the signal stack: the frame of a fault would be written over that
 * handler. */
static uint8_t *gone;
static void on_alt(int sig)
{
	uint8_t here[4096];

	memset(here, 0x5a, sizeof(here));
	world_entry(&w, w.t)->rsp = (uintptr_t)here - 1024;
	world_own(&w, w.t)->checks = 0;
	world_own(&w, w.t)->unsafe = 0;
	world_own(&w, w.t)->range_lo = world_own(&w, w.t)->range_hi = 0;
	caught = (int64_t)CALL(probe_read, w.room, 8, gone) == -EFAULT &&
				 world_own(&w, w.t)->range_hi == 0
			 ? 1
			 : 2;
	for (unsigned i = 0; i < sizeof(here); i++)
		if (here[i] != 0x5a)
			caught = 3;
}
TEST(test_read_on_signal_stack)
{
	stack_t st = { .ss_sp = pages(32), .ss_size = 32 * PAGE };
	struct sigaction sa = { .sa_handler = on_alt, .sa_flags = SA_ONSTACK };

	gone = pages(1);
	CHECK(!sigaltstack(&st, NULL) && !sigaction(SIGUSR1, &sa, NULL));
	guarded();
	CHECK(world_thread(&w, 1));
	munmap(gone, PAGE);
	raise(SIGUSR1);
	CHECK(caught == 1);
}

/* --- stacks --- */

TEST(test_get_stack)
{
	uint64_t *frames = (uint64_t *)w.room, regs[21] = { 0 }, chain[8] = { 0 };
	int modes;

	guarded();
	CHECK(world_thread(&w, 1));
	chain[0] = (uintptr_t)&chain[2];
	chain[1] = 0x1001;
	chain[2] = (uintptr_t)&chain[4];
	chain[3] = 0x1002;
	chain[4] = 8; /* leads nowhere */
	chain[5] = 0x1003;
	CHECK((int64_t)CALL(get_stack, 0, frames, 64, BPF_F_USER_STACK) ==
	      -EFAULT); /* no registers */
	world_own(&w, w.t)->regs = (uintptr_t)regs;
	regs[16] = 0x1000;
	regs[4] = (uintptr_t)chain;
	for (modes = 0; modes < 2; modes++) {
		memset(frames, 0xff, 128);
		CHECK(CALL(get_stack, 0, frames, 64, BPF_F_USER_STACK) == 32);
		CHECK(frames[0] == 0x1000 && frames[1] == 0x1001 && frames[3] == 0x1003 &&
		      !frames[4] && !frames[7]);
		CHECK(frames[8] == ~0ull);
		CHECK(CALL(get_stack, 0, frames, 16, BPF_F_USER_STACK) == 16);
		CHECK(CALL(get_stack, 0, frames, 16, BPF_F_USER_STACK | 2) == 16);
		CHECK(frames[0] == 0x1002 && frames[1] == 0x1003);
		CHECK((int64_t)CALL(get_stack, 0, frames, 64, 0) == -EFAULT);
		CHECK((int64_t)CALL(get_stack, 0, &w, 64, BPF_F_USER_STACK) == -EFAULT);
		CHECK((int64_t)CALL(get_stack, 0, world_map(&w, WORLD_AGG), BPF_F_USER_STACK,
				    BPF_F_USER_STACK) == -EFAULT);
		chain[4] = (uintptr_t)&chain[4]; /* a loop ends */
		CHECK(CALL(get_stack, 0, frames, 64, BPF_F_USER_STACK) == 32);
		chain[4] = 8;
		w.area->reads_guarded = 0;
		world_own(&w, w.t)->stack_lo = world_own(&w, w.t)->stack_hi = 0;
	}
}

/* --- the program's own handlers --- */

static siginfo_t got;
static ucontext_t got_context;
static int got_signal;
static uint64_t got_blocked, got_stack;
static sigjmp_buf back;

static uint64_t blocked(void)
{
	uint64_t m = 0;

	syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &m, 8);
	return m;
}
static void handler3(int sig, siginfo_t *info, void *uc)
{
	got_signal = sig;
	got = *info;
	got_context = *(ucontext_t *)uc;
	got_blocked = blocked();
	got_stack = (uintptr_t)__builtin_frame_address(0);
	siglongjmp(back, 1);
}
static void handler1(int sig)
{
	got_signal = sig;
}

/* rt_sigaction(2) as the program would see it. */
struct kernel_action {
	uint64_t handler, flags, restorer, mask;
};
static int64_t program_action(int sig, const struct kernel_action *act, struct kernel_action *old)
{
	return (int64_t)CALL(sigaction, sig, act, old, 8);
}
extern void restorer(void);
__asm__(".text\nrestorer:\n\tmov $15, %rax\n\tsyscall\n");
static struct kernel_action action(void *handler, uint64_t flags, uint64_t mask)
{
	return (struct kernel_action){ (uintptr_t)handler, flags | 0x04000000, (uintptr_t)restorer,
				       mask };
}

/* Handlers that were there before, and ones put in later. */
TEST(test_chain_siginfo)
{
	struct sigaction sa = { .sa_sigaction = handler3, .sa_flags = SA_SIGINFO };
	uint8_t *p = pages(1);
	struct kernel_action a, old;

	sigaddset(&sa.sa_mask, SIGUSR2);
	sigaction(SIGSEGV, &sa, NULL);
	guarded();
	CHECK(world_thread(&w, 1));
	munmap(p, PAGE);
	for (int round = 0; round < 2; round++) {
		got_signal = 0;
		if (!sigsetjmp(back, 1))
			*(volatile uint8_t *)(p + 5) = 1;
		CHECK(got_signal == SIGSEGV && got.si_addr == p + 5 && got.si_code == SEGV_MAPERR);
		CHECK(got_context.uc_mcontext.gregs[REG_CR2] == (greg_t)(uintptr_t)(p + 5));
		CHECK(got_blocked & 1 << (SIGSEGV - 1));
		CHECK((got_blocked >> (SIGUSR2 - 1) & 1) == (round ? 0 : 1));
		CHECK(!(blocked() & 1 << (SIGSEGV - 1)));
		CHECK((int64_t)CALL(probe_read, w.room, 8, p) == -EFAULT); /* ours is still there */
		a = action(handler3, SA_SIGINFO | SA_RESTART, 0);
		CHECK(!program_action(SIGSEGV, &a, &old));
		CHECK(old.handler == (uintptr_t)handler3 &&
		      (old.flags & SA_RESTART) == (round ? SA_RESTART : 0));
	}
	CHECK(!program_action(SIGSEGV, NULL, &old) && old.handler == (uintptr_t)handler3 &&
	      old.flags == a.flags && old.restorer == a.restorer);
	/* what is not ours goes to the kernel; what is wrong fails as there */
	a = action(handler1, 0, ~0ull);
	CHECK(!program_action(SIGUSR1, &a, NULL) && !program_action(SIGUSR1, NULL, &old));
	CHECK(old.handler == (uintptr_t)handler1);
	CHECK(!program_action(SIGSEGV, &a, NULL) && !program_action(SIGSEGV, NULL, &old));
	CHECK(old.mask == (~0ull & ~(1ull << (SIGKILL - 1)) & ~(1ull << (SIGSTOP - 1))));
	CHECK(program_action(SIGSEGV, (void *)8, NULL) == -EFAULT);
	CHECK(program_action(SIGSEGV, NULL, (void *)8) == -EFAULT);
	CHECK((int64_t)CALL(sigaction, SIGSEGV, &a, 0, 4) == -EINVAL);
	CHECK(program_action(SIGKILL, &a, NULL) == -EINVAL);
}

TEST(test_chain_altstack)
{
	stack_t st = { .ss_sp = pages(16), .ss_size = 16 * PAGE };
	struct kernel_action a = action(handler3, SA_SIGINFO | SA_ONSTACK | SA_NODEFER, 0);

	CHECK(!sigaltstack(&st, NULL));
	guarded();
	CHECK(!program_action(SIGBUS, &a, NULL));
	if (!sigsetjmp(back, 1))
		raise(SIGBUS);
	CHECK(got_signal == SIGBUS && got.si_code == SI_TKILL && got.si_pid == getpid());
	CHECK(got_stack - (uintptr_t)st.ss_sp < st.ss_size);
	CHECK(!(got_blocked & 1 << (SIGBUS - 1)));
}

TEST(test_chain_sent)
{
	struct kernel_action a = action(handler1, SA_RESETHAND, 0), old;

	guarded();
	CHECK(!program_action(SIGSEGV, &a, NULL));
	raise(SIGSEGV);
	CHECK(got_signal == SIGSEGV);
	CHECK(!program_action(SIGSEGV, NULL, &old) && old.handler == 0 && old.flags == a.flags);
	a = action((void *)1, 0, 0); /* ignored when sent */
	CHECK(!program_action(SIGSEGV, &a, NULL));
	raise(SIGSEGV);
	CHECK(world_thread(&w, 1));
	CHECK((int64_t)CALL(probe_read, w.room, 8, 8) == -EFAULT);
}

/* The end of a process is the same with and without us: signal and core bit. */
static void die_of_fault(void)
{
	*(volatile int *)8 = 1;
}
static void die_of_signal(void)
{
	raise(SIGSEGV);
}
static void die_of_bus(void)
{
	raise(SIGBUS);
}
static void die_of_trap(void)
{
	__asm__ volatile("int3");
}
static void die_of_overflow(void)
{
	volatile uint8_t *p = alloca(64 << 20);

	for (int64_t i = (64 << 20) - 1; i >= 0; i -= PAGE)
		p[i] = 1;
}
static void die_blocked(void)
{
	sigset_t set;

	sigfillset(&set);
	sigprocmask(SIG_BLOCK, &set, NULL);
	die_of_fault();
}
static void die_ignoring(void)
{
	struct kernel_action a = action((void *)1, 0, 0);

	if (w.private->signals)
		program_action(SIGSEGV, &a, NULL);
	else
		signal(SIGSEGV, SIG_IGN);
	die_of_fault();
}
static void die_resethand(void)
{
	struct kernel_action a = action(handler1, SA_RESETHAND, 0);
	struct sigaction sa = { .sa_handler = handler1, .sa_flags = (int)SA_RESETHAND };

	if (w.private->signals)
		program_action(SIGSEGV, &a, NULL);
	else
		sigaction(SIGSEGV, &sa, NULL);
	die_of_fault(); /* the handler returns, it faults again */
}
static void (*die)(void);
static bool with_guard;
static void dying(void)
{
	struct rlimit core;

	prctl(PR_SET_DUMPABLE, 1);
	core = (struct rlimit){ 65536,
				65536 }; /* where that is refused, neither of the two dumps */
	setrlimit(RLIMIT_CORE, &core);
	signal(SIGSEGV, SIG_DFL);
	signal(SIGBUS, SIG_DFL);
	signal(SIGTRAP, SIG_DFL);
	if (with_guard)
		guarded();
	die();
}
/* With what was dumped there. */
static void remove_dir(const char *dir)
{
	DIR *d = opendir(dir);
	struct dirent *e;

	while (d && (e = readdir(d)))
		if (!strncmp(e->d_name, "core", 4))
			unlinkat(dirfd(d), e->d_name, 0);
	if (d)
		closedir(d);
	rmdir(dir);
}
static void test_death(void **state)
{
	char dir[] = "/tmp/test_agent.XXXXXX", *here = getcwd(NULL, 0);
	static void (*const ways[])(void) = { die_of_fault, die_of_signal,   die_of_bus,
					      die_of_trap,  die_of_overflow, die_blocked,
					      die_ignoring, die_resethand };
	static const int signals[] = { SIGSEGV, SIGSEGV, SIGBUS,  SIGTRAP,
				       SIGSEGV, SIGSEGV, SIGSEGV, SIGSEGV };

	assert_non_null(here);
	assert_non_null(mkdtemp(dir));
	assert_int_equal(chdir(dir), 0);
	for (unsigned i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
		int without, with;

		die = ways[i];
		with_guard = false;
		in_child(dying, &without);
		assert_true(WIFSIGNALED(without));
		assert_int_equal(WTERMSIG(without), signals[i]);
		with_guard = true;
		in_child(dying, &with);
		assert_int_equal(with, without);
	}
	assert_int_equal(chdir(here), 0);
	remove_dir(dir);
	free(here);
}

TEST(test_guard_off)
{
	struct sigaction sa = { .sa_sigaction = handler3, .sa_flags = SA_SIGINFO }, now;
	struct kernel_action a = action(handler1, SA_RESTART, 0);

	sigaction(SIGSEGV, &sa, NULL);
	signal(SIGBUS, SIG_DFL);
	guarded();
	sigaction(SIGSEGV, NULL, &now);
	CHECK((uintptr_t)now.sa_sigaction == w.base + w.head->entry[WIRE_AGENT_segv]);
	CHECK(!program_action(SIGBUS, &a, NULL));
	CHECK(!CALL(guard, 0) && !w.private->signals);
	sigaction(SIGSEGV, NULL, &now);
	CHECK(now.sa_sigaction == handler3 && now.sa_flags & SA_SIGINFO);
	sigaction(SIGBUS, NULL, &now);
	CHECK(now.sa_handler == handler1 && now.sa_flags & SA_RESTART);
	sigaction(SIGTRAP, NULL, &now);
	CHECK(now.sa_handler == SIG_DFL);
}

/* A system call's site: a stub whose slot has sigaction_site. rax is the result, what a system call
 * keeps is kept, the red zone too. */
static int64_t through_site(const uint8_t *site, uint64_t nr, uint64_t a, uint64_t b, uint64_t c,
			    uint64_t d, bool *ret_kept)
{
	register uint64_t r10 __asm__("r10") = d;
	register uint64_t r8 __asm__("r8") = 0x8888;
	register uint64_t r9 __asm__("r9") = 0x9999;
	register uint64_t r14 __asm__("r14"); /* what was in the red zone */
	register uint64_t r15 __asm__("r15");
	uint64_t di = a, si = b, dx = c, cx = (uintptr_t)site, rbx = 0xbbbb, r = nr;

	__asm__ volatile("lea -512(%%rsp), %%rsp\n\t"
			 "movq $0x11111111, -8(%%rsp)\n\t"
			 "movq $0x22222222, -128(%%rsp)\n\t"
			 "std\n\t"
			 "lea 1f(%%rip), %%r13\n\t"
			 "jmp *%%rcx\n"
			 "1:\tcld\n\t"
			 "mov -8(%%rsp), %%r14\n\t"
			 "mov -128(%%rsp), %%r15\n\t"
			 "lea 512(%%rsp), %%rsp"
			 : "+a"(r), "+D"(di), "+S"(si), "+d"(dx), "+c"(cx), "+b"(rbx), "+r"(r10),
			   "+r"(r8), "+r"(r9), "=r"(r14), "=r"(r15)
			 :
			 : "r11", "r13", "memory", "cc");
	*ret_kept = di == a && si == b && dx == c && rbx == 0xbbbb && r10 == d && r8 == 0x8888 &&
		    r9 == 0x9999 && r14 == 0x11111111 && r15 == 0x22222222;
	return (int64_t)r;
}
TEST(test_sigaction_site)
{
	/* lea -128(%rsp), %rsp; call *17(%rip); lea 128(%rsp), %rsp; syscall; jmp *%r13; int3;
	 * slot */
	static const uint8_t stub[] = { 0x48, 0x8d, 0x64, 0x24, 0x80, 0xff, 0x15, 0x11, 0, 0,
					0,    0x48, 0x8d, 0xa4, 0x24, 0x80, 0,    0,    0, 0x0f,
					0x05, 0x41, 0xff, 0xe5, 0xcc, 0xcc, 0xcc, 0xcc };
	struct kernel_action a = action(handler1, SA_RESTART, 0), old;
	uint8_t *at = pages(1);
	uint64_t target = w.base + w.head->entry[WIRE_AGENT_sigaction_site];
	struct sigaction now;
	bool kept;

	memcpy(at, stub, sizeof(stub));
	memcpy(at + 28, &target, 8);
	CHECK(!mprotect(at, PAGE, PROT_READ | PROT_EXEC));
	guarded();
	CHECK(through_site(at, SYS_getpid, 1, 2, 3, 4, &kept) == getpid() && kept);
	CHECK(!through_site(at, SYS_rt_sigaction, SIGSEGV, (uintptr_t)&a, 0, 8, &kept) && kept);
	CHECK(!through_site(at, SYS_rt_sigaction, SIGSEGV, 0, (uintptr_t)&old, 8, &kept) && kept);
	CHECK(old.handler == a.handler && old.flags == a.flags);
	CHECK(through_site(at, SYS_rt_sigaction, SIGSEGV, 8, 0, 8, &kept) == -EFAULT && kept);
	sigaction(SIGSEGV, NULL, &now);
	CHECK((uintptr_t)now.sa_sigaction == w.base + w.head->entry[WIRE_AGENT_segv]);
}

/* --- traps --- */

extern void trap_and_back(void);
__asm__(".text\ntrap_and_back:\n\tint3\n\tret\n");
static volatile int in_stub;
static void stub(void)
{
	in_stub++;
}
static void on_trap(int sig, siginfo_t *info, void *uc)
{
	got_signal = sig;
}
TEST(test_int3)
{
	struct wire_trap *traps = (struct wire_trap *)(w.room + 4096);
	struct kernel_action a = action(on_trap, SA_SIGINFO, 0);
	uint8_t *at = pages(1);
	void (*fn)(void) = (void (*)(void))(uintptr_t)at;

	guarded();
	CHECK(!program_action(SIGTRAP, &a, NULL));
	traps[0] = (struct wire_trap){ 0x1000, 0 };
	traps[1] = (struct wire_trap){ (uintptr_t)trap_and_back, (uintptr_t)stub };
	traps[2] = (struct wire_trap){ ~0ull, 0 };
	w.kept->traps = (uintptr_t)traps;
	w.kept->ntraps = 3;
	trap_and_back();
	CHECK(in_stub == 1 && !got_signal);
	w.kept->ntraps = 1;
	trap_and_back(); /* the program's own */
	CHECK(in_stub == 1 && got_signal == SIGTRAP);
	got_signal = 0;
	memcpy(at, "\xcc\xc3", 2);
	mprotect(at, PAGE, PROT_READ | PROT_EXEC);
	fn();
	CHECK(got_signal == SIGTRAP);
}

/* --- forked children --- */

static uint8_t *text;

static void patch(uint32_t n, uint64_t off, const char *before, const char *after, uint32_t len)
{
	struct wire_undo *u = (struct wire_undo *)w.area->undo + n;

	u->site = (uintptr_t)text + off;
	u->pid = (uint32_t)getpid();
	memcpy(u->before, before, len);
	memcpy(u->after, after, len);
	memcpy(text + off, after, len);
	u->len = (uint8_t)len;
}
static bool is_text(uint64_t off, const char *bytes, size_t n)
{
	return !memcmp(text + off, bytes, n);
}
static void patched(void)
{
	text = pages(6);
	for (int i = 0; i < 6 * PAGE; i++)
		text[i] = 0x90;
	patch(0, 100, "12345", "abcde", 5);
	patch(1, PAGE - 2, "12345", "abcde", 5);
	patch(2, PAGE + 50, "1", "\xcc", 1);
	patch(3, 2 * PAGE - 3, "123456", "ABCDEF", 6);
	memcpy(text + 2 * PAGE - 3, "\xeb\xfe",
	       2); /* held; the other side of the boundary is patched */
	text[2 * PAGE - 1] = 'C';
	patch(4, 300, "12345", "abcde", 5);
	memcpy(text + 300, "other", 5); /* not ours any more */
	patch(5, 4 * PAGE, "12345", "abcde", 5);
	((struct wire_undo *)w.area->undo)[5].pid ^= 1; /* another process's */
	patch(6, 5 * PAGE, "12345", "abcde", 5);
	mprotect(text, 5 * PAGE, PROT_READ | PROT_EXEC);
	munmap(text + 5 * PAGE, PAGE);
}
static void check_healed(void)
{
	CHECK(is_text(100, "12345", 5) && is_text(PAGE - 2, "12345", 5) &&
	      is_text(PAGE + 50, "1", 1));
	CHECK(is_text(2 * PAGE, "456", 3));
	CHECK(is_text(300, "other", 5) && is_text(4 * PAGE, "abcde", 5));
	CHECK(is_text(99, "\x90", 1) && is_text(105, "\x90", 1));
}
/* A child's first firing; the parent's text stays as it is. */
TEST(test_fork_heal)
{
	struct sigaction sa = { .sa_sigaction = handler3, .sa_flags = SA_SIGINFO }, now;
	int status;
	pid_t pid;

	sigaction(SIGSEGV, &sa, NULL);
	patched();
	guarded();
	CHECK(world_thread(&w, 1));
	pid = fork();
	if (!pid) {
		CHECK(!w.private->ready);
		if (!sigsetjmp(back, 1)) /* before it is healed */
			die_of_fault();
		CHECK(got_signal == SIGSEGV);
		CHECK(!CALL(thread, 1));
		check_healed();
		CHECK(w.private->off && w.private->ready && w.common->forked == 1);
		sigaction(SIGSEGV, NULL, &now);
		CHECK(now.sa_sigaction == handler3);
		CHECK(!CALL(thread, 1));
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && !status);
	CHECK(is_text(100, "abcde", 5));
	CHECK(world_thread(&w, 1));
}

/* open and process_vm_readv fail with EPERM. */
static void deny_open(void)
{
	struct sock_filter f[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_open, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
	};
	struct sock_fprog p = { 5, f };

	CHECK(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
	      !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p));
}

/* Without /proc: the pages are made writable for a moment. */
TEST(test_fork_heal_sandboxed)
{
	int status;
	pid_t pid;

	patched();
	guarded();
	CHECK(world_thread(&w, 1));
	pid = fork();
	if (!pid) {
		deny_open();
		CHECK(!CALL(thread, 1));
		check_healed();
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && !status);
}
/* The tracer runs D programs too, on slot 0. An address that it is given is a traced process's to
 * choose: its own memory is neither read nor written by it. */
TEST(test_read_in_tracer)
{
	uint8_t *dst = w.room, *p = pages(1);
	struct wire_thread *t = (struct wire_thread *)w.area->threads;
	uint64_t secret = 0x5ec2e7;
	char *text = (char *)w.room + 256;

	guarded();
	CHECK(world_thread(&w, 1));
	memcpy(p, "secret", 7);
	CHECK(!CALL(probe_read, dst, 8, p) && CALL(probe_read_str, dst, 8, p) == 7);
	world_entry(&w, t)->rsp = (uintptr_t)world_own(&w, t);
	w.t = t;
	CHECK((int64_t)CALL(probe_read, dst, 8, p) == -EFAULT && !dst[0]);
	CHECK((int64_t)CALL(probe_read, dst, 8, &secret) == -EFAULT);
	CHECK((int64_t)CALL(probe_read, dst, 8, (uintptr_t)world_own(&w, t) - 64) == -EFAULT);
	CHECK((int64_t)CALL(probe_read, dst, 8, w.private) == -EFAULT);
	CHECK((int64_t)CALL(probe_read, dst, 8, w.head) == -EFAULT);
	CHECK((int64_t)CALL(probe_read_str, dst, 8, p) == -EFAULT);
	CHECK((int64_t)CALL(probe_read, dst, 8, (uint64_t)w.area + w.area->span - 4) == -EFAULT);
	CHECK((int64_t)CALL(probe_write, p, dst, 4) == -EFAULT && !strcmp((char *)p, "secret"));
	CHECK((int64_t)CALL(probe_write, &secret, dst, 4) == -EFAULT && secret == 0x5ec2e7);
	/* facts and D's own memory */
	strcpy(text, "mine");
	CHECK(CALL(probe_read_str, dst, 8, text) == 5 && !strcmp((char *)dst, "mine"));
	CHECK(!CALL(probe_read, dst, 8, w.area) && !memcmp(dst, &w.area->magic, 8));
	CHECK(t->violations == 0);
}

TEST(test_read_sandboxed)
{
	deny_open();
	CHECK(world_thread(&w, 1));
	read_all();
	CHECK(w.kept->no_vm_read);
}

TEST(test_fork_follow)
{
	int status;
	pid_t pid;

	patched();
	guarded();
	w.area->follow = 1;
	CHECK(world_thread(&w, 1));
	pid = fork();
	if (!pid) {
		struct wire_thread *t = (struct wire_thread *)CALL(thread, 1);
		const struct wire_said *p;

		CHECK(t && t != w.t && t->pid == (uint32_t)getpid());
		CHECK(w.private->process == WIRE_PROCESSES_MAX - 1 && w.common->child_count == 1);
		p = (struct wire_said *)w.area->said + w.private->process;
		CHECK(p->own_pid == (uint32_t)getpid() && t->uid == getuid());
		CHECK(p->ppid == (uint32_t)getppid() && t->owner == w.private->process + 1);
		CHECK(is_text(100, "abcde", 5) && w.private->signals == 7);
		w.t = t;
		world_entry(&w, t)->rsp = (uintptr_t)__builtin_frame_address(0);
		CHECK(!CALL(probe_read, w.room, 8, &status));
		CHECK((int64_t)CALL(probe_read, w.room, 8, 8) == -EFAULT);
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && !status);
}

/* In vfork(), the child has its parent's memory: what it asks for must not become the parent's. */
TEST(test_vfork_sigaction)
{
	struct kernel_action a = action(handler1, 0, 0), now;
	volatile int64_t r = 1;
	int status;
	pid_t pid;

	guarded();
	CHECK(!program_action(SIGSEGV, &a, NULL));
	pid = vfork();
	if (!pid) {
		struct kernel_action dfl = { 0 }, old;

		r = program_action(SIGSEGV, &dfl, &old);
		_exit(r || old.handler != (uintptr_t)handler1);
	}
	CHECK(waitpid(pid, &status, 0) == pid && !status);
	CHECK(!program_action(SIGSEGV, NULL, &now) && now.handler == (uintptr_t)handler1);
}

/* --- firings and signals, all at once --- */

static struct {
	struct wire_thread *t;
	uint8_t *flaps; /* a page that comes and goes */
	uint64_t fired, skipped, records, dropped, faults, own_faults, last;
	volatile bool stop, sent; /* no more signals are wanted; have been sent */
	sigjmp_buf here;
} storm;

/* What a thunk and a program do. */
static void fire(void)
{
	struct wire_thread *t = storm.t;
	uint64_t *room, *key, r, n;

	if (world_entry(&w, t)->rsp != WIRE_IDLE &&
	    !CALL(nested, (uintptr_t)t, (uintptr_t)__builtin_frame_address(0))) {
		__atomic_fetch_add(&storm.skipped, 1, __ATOMIC_RELAXED);
		return;
	}
	world_entry(&w, t)->rsp = (uintptr_t)__builtin_frame_address(0);
	n = 8 + CALL(prandom) % 200;
	room = (uint64_t *)CALL(ring_reserve, world_map(&w, WORLD_RING), n, 0);
	key = (uint64_t *)(w.room + 1024);
	key[0] = CALL(prandom) % 100;
	key[1] = key[2] = 0;
	if (!CALL(map_lookup, world_map(&w, WORLD_AGG), key))
		CHECK(!CALL(map_update, world_map(&w, WORLD_AGG), key, w.room + 2048, BPF_ANY));
	(*(uint64_t *)CALL(map_lookup, world_map(&w, WORLD_AGG), key))++;
	CHECK(!CALL(map_update, world_map(&w, WORLD_HASH), key, w.room + 2048, BPF_ANY));
	r = CALL(probe_read, w.room, 64, storm.flaps + 100);
	CHECK(!r || (int64_t)r == -EFAULT);
	storm.faults += r != 0;
	CHECK(!CALL(map_delete, world_map(&w, WORLD_HASH), key));
	if (room) {
		room[0] = ++storm.records;
		((uint8_t *)room)[n - 1] = n > 8 ? (uint8_t)n : ((uint8_t *)room)[n - 1];
		CHECK(!CALL(ring_submit, room, 0));
	} else {
		storm.dropped++;
	}
	storm.fired++;
	world_entry(&w, t)->rsp = WIRE_IDLE;
}
static void storm_signal(int sig)
{
	fire();
}
static void storm_segv(int sig, siginfo_t *info, void *uc)
{
	fire();
	storm.own_faults++;
	siglongjmp(storm.here, 1);
}
static void *storm_sender(void *arg)
{
	pid_t tid = *(pid_t *)arg;

	for (int i = 0; !storm.stop; i++) {
		syscall(SYS_tgkill, getpid(), tid, SIGUSR1);
		mprotect(storm.flaps, PAGE, i % 2 ? PROT_READ : PROT_NONE);
		for (volatile int k = i % 997; k; k--)
			;
	}
	mprotect(storm.flaps, PAGE, PROT_READ);
	return NULL;
}
static void *storm_consumer(void *arg)
{
	struct wire_ring *r = (struct wire_ring *)((uint8_t *)storm.t + w.maps[WORLD_RING].base);
	uint64_t tail = 0;
	const void *data;
	uint32_t n;

	for (;;) {
		bool last = storm.sent;
		enum ring_next next = ring_next(r, 4096, &tail, false, &data, &n);

		CHECK(next != RING_BROKEN);
		if (next == RING_RECORD) {
			CHECK(n >= 8 && *(const uint64_t *)data == storm.last + 1);
			CHECK(n == 8 || ((const uint8_t *)data)[n - 1] == (uint8_t)n);
			storm.last++;
			ring_consume(r, &tail, n);
		} else if (last) {
			return NULL;
		}
	}
}
static uint64_t storm_counted(void)
{
	uint64_t sum = 0, *v;

	for (uint64_t key = 0; key < 100; key++) {
		*(uint64_t *)(w.room + 1024) = key;
		v = (uint64_t *)CALL(map_lookup, world_map(&w, WORLD_AGG), w.room + 1024);
		sum += v ? *v : 0;
	}
	return sum;
}
TEST(test_storm)
{
	struct kernel_action a = action(storm_segv, SA_SIGINFO | SA_NODEFER, 0);
	struct sigaction sa = { .sa_handler = storm_signal, .sa_flags = SA_RESTART };
	pthread_t sender, consumer;
	pid_t tid = gettid();
	struct timespec start, t;
	int64_t ms;

	storm.flaps = pages(1);
	guarded();
	CHECK(!program_action(SIGSEGV, &a, NULL) && !sigaction(SIGUSR1, &sa, NULL));
	storm.t = world_thread(&w, 1);
	world_entry(&w, storm.t)->rsp = WIRE_IDLE;
	CHECK(!pthread_create(&consumer, NULL, storm_consumer, NULL));
	CHECK(!pthread_create(&sender, NULL, storm_sender, &tid));
	clock_gettime(CLOCK_MONOTONIC, &start);
	do {
		for (int i = 0; i < 100; i++)
			fire();
		if (!sigsetjmp(storm.here, 1)) /* a fault of the program's own */
			*(volatile uint8_t *)8 = 1;
		clock_gettime(CLOCK_MONOTONIC, &t);
		ms = (t.tv_sec - start.tv_sec) * 1000 + (t.tv_nsec - start.tv_nsec) / 1000000;
		/* on a busy machine the others get their turn later */
	} while (ms < 700 || (ms < 60000 && (!storm.faults || storm.fired <= 1000)));
	storm.stop = true;
	CHECK(!pthread_join(sender, NULL));
	storm.sent = true;
	CHECK(!pthread_join(consumer, NULL));
	CHECK(storm.last == storm.records && storm.records + storm.dropped == storm.fired);
	CHECK(storm.own_faults && storm.faults && storm.fired > 1000);
	CHECK(storm_counted() == storm.fired && *(uint64_t *)w.maps[WORLD_HASH].used == 0);
}

/* --- many threads --- */

enum { WORKERS = 4 };
static uint8_t *shaky;
static void *worker(void *arg)
{
	struct world own = w;
	uint8_t *dst = w.room + 8192 + (uintptr_t)arg * 256;
	uint64_t bad = 0;

	CHECK(world_thread(&own, (uint64_t)gettid()));
	for (int i = 0; i < 20000; i++) {
		int64_t r;

		world_entry(&own, own.t)->rsp = (uintptr_t)__builtin_frame_address(0);
		r = (int64_t)world_call(&own, WIRE_AGENT_probe_read, (uintptr_t)dst, 64,
					(uintptr_t)shaky + 32, 0);
		CHECK(r == 0 || r == -EFAULT);
		bad += r != 0;
		CHECK(dst[0] == (r ? 0 : 7) && dst[63] == (r ? 0 : 7));
	}
	return (void *)(uintptr_t)bad;
}
/* One mapping comes and goes while others read there, and look at their own actions. */
TEST(test_threads)
{
	pthread_t th[WORKERS];
	struct kernel_action a = action(handler3, SA_SIGINFO, 0), old;

	shaky = pages(1);
	memset(shaky, 7, PAGE);
	guarded();
	for (uintptr_t i = 0; i < WORKERS; i++)
		CHECK(!pthread_create(&th[i], NULL, worker, (void *)i));
	for (int i = 0; i < 300; i++) {
		mprotect(shaky, PAGE, i % 2 ? PROT_READ : PROT_NONE);
		CHECK(!program_action(SIGSEGV, &a, &old));
		CHECK(!i || old.handler == (uintptr_t)handler3);
		usleep(100);
	}
	mprotect(shaky, PAGE, PROT_READ);
	for (int i = 0; i < WORKERS; i++)
		CHECK(!pthread_join(th[i], NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_head),
		cmocka_unit_test(test_thread),
		cmocka_unit_test(test_thread_collisions),
		cmocka_unit_test(test_thread_reclaim),
		cmocka_unit_test(test_thread_churn),
		cmocka_unit_test(test_thread_renewed),
		cmocka_unit_test(test_thread_gone_process),
		cmocka_unit_test(test_heartbeat),
		cmocka_unit_test(test_nested),
		cmocka_unit_test(test_map_entries),
		cmocka_unit_test(test_map_dead_holder),
		cmocka_unit_test(test_ring_entries),
		cmocka_unit_test(test_small_helpers),
		cmocka_unit_test(test_read_exact),
		cmocka_unit_test(test_read_asking),
		cmocka_unit_test(test_read_guarded),
		cmocka_unit_test(test_read_stale),
		cmocka_unit_test(test_read_blocked),
		cmocka_unit_test(test_stack_range),
		cmocka_unit_test(test_read_on_signal_stack),
		cmocka_unit_test(test_read_sandboxed),
		cmocka_unit_test(test_read_in_tracer),
		cmocka_unit_test(test_get_stack),
		cmocka_unit_test(test_chain_siginfo),
		cmocka_unit_test(test_chain_altstack),
		cmocka_unit_test(test_chain_sent),
		cmocka_unit_test(test_death),
		cmocka_unit_test(test_guard_off),
		cmocka_unit_test(test_sigaction_site),
		cmocka_unit_test(test_int3),
		cmocka_unit_test(test_fork_heal),
		cmocka_unit_test(test_fork_heal_sandboxed),
		cmocka_unit_test(test_fork_follow),
		cmocka_unit_test(test_vfork_sigaction),
		cmocka_unit_test(test_storm),
		cmocka_unit_test(test_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
