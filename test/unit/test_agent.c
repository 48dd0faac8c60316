/* The agent's blob in a process that is laid out as a traced one: its entries, called. */
#define _GNU_SOURCE
#include "unit.h"

#include <errno.h>
#include <linux/bpf.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>

#include "agent/ring.h"
#include "agent_child.h"
#include "wire/language.h"

/* --- head --- */

TEST(test_head)
{
	CHECK(w.head->magic == WIRE_AREA_MAGIC && w.head->version == WIRE_AREA_VERSION);
	CHECK(w.head->nentries == WIRE_AGENT_ENTRY_COUNT && w.head->size < 64 * 1024);
	for (int i = 0; i < WIRE_AGENT_ENTRY_COUNT; i++) {
		const uint8_t *p = (const uint8_t *)w.head + w.head->entry[i];

		CHECK(w.head->entry[i] >= sizeof(*w.head) && w.head->entry[i] < w.head->size);
		if (i == WIRE_AGENT_leave_wait || i == WIRE_AGENT_leave_end)
			continue; /* no functions */
		/* endbr64; the restorer is returned to and needs none, and unwinders recognise it
		 * by its bytes */
		CHECK(!memcmp(p,
			      i == WIRE_AGENT_restorer ? "\x48\xc7\xc0\x0f\0\0\0\x0f\x05"
						       : "\xf3\x0f\x1e\xfa",
			      i == WIRE_AGENT_restorer ? 9 : 4));
	}
	CHECK(w.head->entry[WIRE_AGENT_leave_wait] < w.head->entry[WIRE_AGENT_leave_end]);
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

/* Gives slots of ended threads to new threads, without any of the old data. */
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

/* Threads that start and end do not use up the slots, as long as the tracer takes their records. */
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
/* A thread ended in the middle of a firing. A new thread with the same key still gets its records
 * out. */
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

/* Without system calls, the slot of a thread that has ended is not taken from a new thread that has
 * its id. */
TEST(test_thread_id_again)
{
	struct wire_told *told = (struct wire_told *)w.area->told;
	struct wire_thread *t;
	uint32_t i;

	w.area->identity = WIRE_ID_FS32;
	w.kept->quiet = 1;
	for (uint64_t key = 1; key < WORLD_THREADS; key++)
		CHECK(world_thread(&w, 100 + key));
	t = world_thread(&w, 101);
	i = (uint32_t)(((uintptr_t)t - w.area->threads) / w.area->thread_stride);
	told[i] = (struct wire_told){ .process = 2, .tid = 101, .gone = 1 };
	CHECK(world_thread(&w, 101) == t); /* the new one, before the tracer sees it */
	for (uint32_t gone = 1; gone < 3; gone++) {
		told[i].gone = gone;
		CHECK(!world_thread(&w, 200));
		usleep(2000); /* it does not look for a while */
	}
	told[i].gone = 0;
	CHECK(!world_thread(&w, 101)); /* no slot is free for it */
	usleep(2000);
	told[i].gone = 1;
	CHECK(!world_thread(&w, 200));
	usleep(2000);
	told[i].gone = 3;
	CHECK(world_thread(&w, 200) == t);
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

/* The entry of a text is known by its address while the text there is the key. */
TEST(test_text_keys)
{
	struct wire_thread *t = world_thread(&w, 1);
	const uint64_t map = world_map(&w, WORLD_AGG_TEXT);
	char *key = (char *)w.room, *text = key + 64, *other = key + 128;
	uint64_t *value = (uint64_t *)(key + 192), v;

	memset(key, 0, 256);
	strcpy(key, "abcdefgh12");
	strcpy(text, key);
	strcpy(other, key);
	CHECK(!CALL(agg_text, map, text, 0));
	CHECK(!CALL(map_update, map, key, value, BPF_NOEXIST));
	v = CALL(map_lookup, map, key);
	CHECK(v && !CALL(agg_text, map, text, 0));
	CHECK(!CALL(agg_text, map, text, v)); /* notes it */
	CHECK(CALL(agg_text, map, text, 0) == v);
	CHECK(!CALL(agg_text, map, other, 0));
	CHECK(!CALL(agg_text, world_map(&w, WORLD_AGG_LONG), text, 0));
	text[9] = '3';
	CHECK(!CALL(agg_text, map, text, 0));
	text[8] = 0; /* the beginning of the key */
	CHECK(!CALL(agg_text, map, text, 0));
	strcpy(text, "abcdefgh123");
	CHECK(!CALL(agg_text, map, text, 0));
	strcpy(text, key);
	CHECK(CALL(agg_text, map, text, 0) == v);
	t->gen ^= 1; /* the other generation has no entries */
	CHECK(!CALL(agg_text, map, text, 0));
	t->gen ^= 1;
	CHECK(!CALL(agg_text, map, 8, v) && !CALL(agg_text, map, 8, 0));
	CHECK(t->violations == 0);
	CHECK(!CALL(agg_text, world_map(&w, WORLD_HASH), text, 0) && t->violations == 1);
}

/* Memory in the place of an interpreter's. */
struct named_world {
	uint64_t frame[8], scope[4], method[8], definition[8], code[8];
	struct {
		uint64_t head[4], state[2];
		char text[16];
	} name;
};

/* The name that a frame of Python leads to is known by its hash, in the turn in which it was
 * noted. */
TEST(test_python_names)
{
	struct wire_thread *t = world_thread(&w, 1);
	struct wire_own *o = world_own(&w, t);
	const uint64_t map = world_map(&w, WORLD_AGG_TEXT), path = WIRE_PYTHON_PATH(32, 16);
	struct named_world *n = (struct named_world *)(w.room + 1024);
	char *key = (char *)w.room;
	uint64_t *value = (uint64_t *)(key + 192), v;

	memset(key, 0, 256);
	memset(n, 0, sizeof(*n));
	strcpy(key, "save");
	n->name.head[3] = 0x123456789abcdef0;
	n->frame[4] = (uintptr_t)n->code;
	n->code[2] = (uintptr_t)&n->name;
	w.area->reads_guarded = 1;
	o->checks = 100;
	o->named = 100;
	CHECK(!CALL(map_update, map, key, value, BPF_NOEXIST));
	v = CALL(map_lookup, map, key);
	CHECK(v && !CALL(agg_python, map, n->frame, path, 0));
	CHECK(CALL(agg_python, map, n->frame, path, v) == v); /* notes it */
	CHECK(CALL(agg_python, map, n->frame, path, 0) == v && o->named == 97);
	n->name.head[3]++;
	CHECK(!CALL(agg_python, map, n->frame, path, 0));
	n->name.head[3] = ~0ull; /* not computed yet */
	CHECK(!CALL(agg_python, map, n->frame, path, v));
	CHECK(!CALL(agg_python, map, n->frame, path, 0));
	n->name.head[3] = 0x123456789abcdef0;
	t->gen += 2 * WIRE_GEN_TURN; /* the entries may have other keys by now */
	CHECK(!CALL(agg_python, map, n->frame, path, 0));
	t->gen -= 2 * WIRE_GEN_TURN;
	o->unsafe = 1; /* a fault would end the process */
	CHECK(!CALL(agg_python, map, n->frame, path, 0));
	o->unsafe = 0;
	o->checks = 0; /* the other way checks whether it would */
	CHECK(!CALL(agg_python, map, n->frame, path, 0));
	o->checks = 50;
	CHECK(CALL(agg_python, map, n->frame, path, 0) == v && o->checks == 50);
	o->named = 0; /* it is time to check that again */
	CHECK(!CALL(agg_python, map, n->frame, path, 0) && o->checks == 0);
	o->named = o->checks = 9;
	/* no value of the table */
	CHECK(CALL(agg_python, map, n->frame, path, v - (1 << 20)) == v);
	CHECK(t->violations == 0);
	CHECK(!CALL(agg_python, world_map(&w, WORLD_HASH), n->frame, path, 0) &&
	      t->violations == 1);
}

/* A method's name is known by its ID, as long as the entry that had it is still that of the key. */
TEST(test_ruby_names)
{
	struct wire_thread *t = world_thread(&w, 1);
	const uint64_t map = world_map(&w, WORLD_AGG_TEXT);
	struct named_world *n = (struct named_world *)(w.room + 1024);
	char *key = (char *)w.room;
	uint64_t *value = (uint64_t *)(key + 192), v, other;

	memset(key, 0, 256);
	memset(n, 0, sizeof(*n));
	strcpy(key, "save");
	n->frame[4] = (uintptr_t)&n->scope[2]; /* WIRE_RUBY_FRAME_SCOPE */
	n->scope[0] = (uintptr_t)n->method;
	n->method[0] = WIRE_RUBY_METHOD;
	n->method[2] = (uintptr_t)n->definition;
	n->definition[4] = 0xabc1;
	w.area->reads_guarded = 1;
	world_own(&w, t)->checks = world_own(&w, t)->named = 100;
	CHECK(!CALL(map_update, map, key, value, BPF_NOEXIST));
	v = CALL(map_lookup, map, key);
	CHECK(v && !CALL(agg_ruby, map, n->frame, 0, 0));
	CHECK(CALL(agg_ruby, map, n->frame, 0, v) == v); /* notes it */
	CHECK(CALL(agg_ruby, map, n->frame, 0, 0) == v);
	CHECK(CALL(agg_ruby, map, 0, n->method, 0) == v);
	n->definition[4] = 0xabd1; /* another name */
	CHECK(!CALL(agg_ruby, map, n->frame, 0, 0));
	n->definition[4] = 0xabc1;
	n->method[0] = WIRE_RUBY_SVAR;
	CHECK(!CALL(agg_ruby, map, n->frame, 0, 0));
	n->method[0] = WIRE_RUBY_METHOD;
	/* the entry of the same number in the other generation has another key */
	t->gen ^= 1;
	CHECK(!CALL(agg_ruby, map, n->frame, 0, 0));
	strcpy(key, "load");
	CHECK(!CALL(map_update, map, key, value, BPF_NOEXIST));
	CHECK(!CALL(agg_ruby, map, n->frame, 0, 0));
	other = CALL(map_lookup, map, key);
	n->definition[4] = 0xabd1;
	CHECK(other != v && CALL(agg_ruby, map, n->frame, 0, other) == other);
	CHECK(CALL(agg_ruby, map, n->frame, 0, 0) == other);
	t->gen ^= 1;
	CHECK(t->violations == 0);
	CHECK(!CALL(agg_ruby, world_map(&w, WORLD_HASH), n->frame, 0, 0) && t->violations == 1);
}

/* Gives the map of functions' answers memory. */
static uint64_t functions(void)
{
	struct wire_map *m = (struct wire_map *)world_map(&w, WORLD_ARRAY);

	m->base = (uintptr_t)w.room + 65536;
	m->value_size = 8 * WIRE_FUNCTIONS;
	return (uintptr_t)m;
}

static void remember(uint64_t map, uint64_t number, bool answer)
{
	uint64_t *table = (uint64_t *)((const struct wire_map *)map)->base;

	table[number >> WIRE_FUNCTION_SHIFT] = number | answer;
}

/* A function has one number as long as its code object or method entry and three of its words are
 * the same, and as long as the loads are survived. The answer that stands by its number is its
 * own. */
TEST(test_function_ids)
{
	struct wire_thread *t = world_thread(&w, 1);
	struct named_world *n = (struct named_world *)(w.room + 1024);
	const uint64_t path = WIRE_PYTHON_PATH(32, 16), map = functions();
	uint64_t python, ruby;

	memset(n, 0, sizeof(*n));
	n->frame[4] = (uintptr_t)n->code;
	w.area->reads_guarded = 1;
	world_own(&w, t)->checks = 100;
	python = CALL(id_python, map, n->frame, path, 1);
	CHECK(python > WIRE_FUNCTION_UNKNOWN && python % 2 == 0);
	CHECK(CALL(id_python, map, n->frame, path, 1) == python);
	CHECK(CALL(id_python, map, n->frame, path, 2) != python);
	for (int i = 2; i < 5; i++) {
		n->code[i]++;
		CHECK(CALL(id_python, map, n->frame, path, 1) != python);
		n->code[i]--;
	}
	for (int answer = 0; answer < 2; answer++) {
		remember(map, python, answer);
		CHECK(CALL(id_python, map, n->frame, path, 1) == (uint64_t)answer);
		CHECK(CALL(id_python, map, n->frame, path, 2) > 1);
	}
	remember(map, python ^ 4, true); /* another function in its place */
	CHECK(CALL(id_python, map, n->frame, path, 1) == python);
	n->frame[4] = (uintptr_t)&n->scope[2];
	n->scope[0] = (uintptr_t)n->method;
	n->method[0] = WIRE_RUBY_METHOD;
	ruby = CALL(id_ruby, map, n->frame, 0, 1);
	CHECK(ruby > WIRE_FUNCTION_UNKNOWN && CALL(id_ruby, map, 0, n->method, 1) == ruby);
	for (int i = 2; i < 5; i++) {
		n->method[i]++;
		CHECK(CALL(id_ruby, map, n->frame, 0, 1) != ruby);
		n->method[i]--;
	}
	remember(map, ruby, true);
	CHECK(CALL(id_ruby, map, n->frame, 0, 1) == 1);
	n->method[0] = WIRE_RUBY_SVAR;
	CHECK(CALL(id_ruby, map, n->frame, 0, 1) == WIRE_FUNCTION_UNKNOWN);
	n->method[0] = WIRE_RUBY_METHOD;
	world_own(&w, t)->unsafe = 1;
	CHECK(CALL(id_ruby, map, n->frame, 0, 1) == WIRE_FUNCTION_UNKNOWN);
	CHECK(CALL(id_python, map, n->frame, path, 1) == WIRE_FUNCTION_UNKNOWN);
	world_own(&w, t)->unsafe = 0;
	CHECK(CALL(id_ruby, map, n->frame, 0, 1) == 1 && t->violations == 0);
	CHECK(CALL(id_ruby, world_map(&w, WORLD_AGG), n->frame, 0, 1) == WIRE_FUNCTION_UNKNOWN);
	CHECK(t->violations == 1);
}

/* Texts have one number as long as each byte of them is the same; up to a NUL or a length. */
TEST(test_function_texts)
{
	struct wire_thread *t = world_thread(&w, 1);
	const uint64_t map = functions();
	char *one = (char *)w.room, *two = one + 256;
	uint64_t v;

	w.area->reads_guarded = 1;
	world_own(&w, t)->checks = 100000;
	memset(one, 0, 512);
	for (uint64_t n = 1; n < 128; n++) {
		memset(one, 'a', n);
		one[n] = two[n] = 0;
		memset(two, 'b', n);
		v = CALL(id_texts, map, one, two, 0);
		CHECK(v > WIRE_FUNCTION_UNKNOWN);
		one[n + 1] = two[n + 1] = 'x'; /* behind the end */
		CHECK(CALL(id_texts, map, one, two, 0) == v);
		CHECK(CALL(id_texts, map, two, one, 0) != v);
		one[n - 1]++;
		CHECK(CALL(id_texts, map, one, two, 0) != v);
		one[n - 1]--;
		two[n - 1] = 0;
		CHECK(CALL(id_texts, map, one, two, 0) != v);
		two[n - 1] = 'b';
		v = CALL(id_texts, map, one, two, n | n << 32);
		CHECK(v > WIRE_FUNCTION_UNKNOWN);
		one[n] = two[n] = 'x';
		CHECK(CALL(id_texts, map, one, two, n | n << 32) == v);
		two[n - 1]++;
		CHECK(CALL(id_texts, map, one, two, n | n << 32) != v);
		two[n - 1]--;
		CHECK(CALL(id_texts, map, one, two, n | (n + 1) << 32) != v);
		remember(map, v, true);
		CHECK(CALL(id_texts, map, one, two, n | n << 32) == 1);
	}
	memset(one, 'a', 200);
	memset(two, 'b', 200);
	CHECK(CALL(id_texts, map, one, two, 128ull | 128ull << 32) > WIRE_FUNCTION_UNKNOWN);
	CHECK(CALL(id_texts, map, one, two, 0) == WIRE_FUNCTION_UNKNOWN); /* too long */
	CHECK(CALL(id_texts, map, one, two, 129ull | 1ull << 32) == WIRE_FUNCTION_UNKNOWN);
	CHECK(CALL(id_texts, map, one, two, 1ull | 129ull << 32) == WIRE_FUNCTION_UNKNOWN);
	world_own(&w, t)->unsafe = 1;
	CHECK(CALL(id_texts, map, one, two, 1ull | 1ull << 32) == WIRE_FUNCTION_UNKNOWN);
	CHECK(t->violations == 0);
}

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
	t->task = 0x4321; /* others may write there */
	world_own(&w, t)->task = 0x1234;
	world_own(&w, t)->regs = 0x5678;
	CHECK(CALL(current_task) == 0x1234 && CALL(task_pt_regs) == 0x5678);
	strcpy(s, "abc");
	strcpy(s + 16, "abd");
	CHECK((int64_t)CALL(strncmp, s, 16, s + 16) == -1 && CALL(strncmp, s, 2, s + 16) == 0);
	CHECK((int64_t)CALL(strncmp, s + 16, 16, s) == 1);
	CHECK(CALL(strncmp, s, 16, s) == 0);
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
		cmocka_unit_test(test_thread_id_again),
		cmocka_unit_test(test_heartbeat),
		cmocka_unit_test(test_nested),
		cmocka_unit_test(test_map_entries),
		cmocka_unit_test(test_text_keys),
		cmocka_unit_test(test_python_names),
		cmocka_unit_test(test_ruby_names),
		cmocka_unit_test(test_function_ids),
		cmocka_unit_test(test_function_texts),
		cmocka_unit_test(test_map_dead_holder),
		cmocka_unit_test(test_ring_entries),
		cmocka_unit_test(test_small_helpers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
