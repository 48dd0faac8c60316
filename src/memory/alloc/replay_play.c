/* Plays operations with the malloc(3) of this process. Its own memory comes from mmap(2). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "memory/alloc/replay.h"

enum { PAGE = 4096, LOOKS = 2000 };

struct player {
	const struct replay_op *ops;
	uint64_t nops, nslots;
	void **slots;
	uint64_t *sizes; /* SPACE */
	int statm;
	struct replay_result *ret;
	uint64_t base;
};

static uint64_t resident(const struct player *p)
{
	char text[128];
	ssize_t n = pread(p->statm, text, sizeof(text) - 1, 0);
	char *second;

	if (n <= 0)
		return 0;
	text[n] = '\0';
	second = strchr(text, ' ');
	return second ? strtoull(second, NULL, 10) * PAGE : 0;
}

/* regular: it counts for the average. */
static void replay_play_look(struct player *p, bool regular)
{
	uint64_t now = resident(p);

	now = now > p->base ? now - p->base : 0;
	if (now > p->ret->peak)
		p->ret->peak = now;
	p->ret->sum += regular ? now : 0;
	p->ret->looks += regular;
}

static inline void *call(const struct replay_op *op, void *old)
{
	void *p = NULL;

	switch (op->kind) {
	case REPLAY_MALLOC: return malloc(op->size);
	case REPLAY_CALLOC: return calloc(1, op->size);
	case REPLAY_ALIGNED:
		return posix_memalign(&p, op->align > 3 ? 1ul << op->align : sizeof(p), op->size)
			       ? NULL
			       : p;
	case REPLAY_REALLOC: return realloc(old, op->size);
	default: free(old); return NULL;
	}
}

static void play_time(struct player *p)
{
	uint64_t failed = 0;

	for (uint64_t i = 0; i < p->nops; i++) {
		const struct replay_op *op = &p->ops[i];
		void *b = call(op, p->slots[op->slot]);

		if (b || op->kind == REPLAY_FREE)
			p->slots[op->slot] = b;
		else
			failed += op->size != 0;
		if (b && op->size >= sizeof(uint64_t))
			*(volatile uint64_t *)b = i;
	}
	p->ret->failed = failed;
}

static void play_empty(struct player *p)
{
	static uint64_t line[8];
	void *volatile const block = line;

	for (uint64_t i = 0; i < p->nops; i++) {
		const struct replay_op *op = &p->ops[i];
		void *b = op->kind == REPLAY_FREE ? NULL : block;

		*(void *volatile *)&p->slots[op->slot] = b;
		if (b && op->size >= sizeof(uint64_t))
			*(volatile uint64_t *)b = i;
	}
}

static void play_space(struct player *p)
{
	uint64_t each = p->nops / LOOKS + 1, live = 0, most = 0;

	for (uint64_t i = 0; i < p->nops; i++) {
		const struct replay_op *op = &p->ops[i];
		uint64_t from = op->kind == REPLAY_REALLOC ? p->sizes[op->slot] : 0;
		char *b = call(op, p->slots[op->slot]);

		if (b || op->kind == REPLAY_FREE) {
			p->slots[op->slot] = b;
			live += op->size - p->sizes[op->slot];
			p->sizes[op->slot] = op->kind == REPLAY_FREE ? 0 : op->size;
			for (uint64_t at = from; b && at < op->size; at += PAGE)
				*(volatile char *)(b + at) = 1;
			if (b && op->size > from)
				*(volatile char *)(b + op->size - 1) = 1;
		} else {
			p->ret->failed += op->size != 0;
		}
		/* now and then, and where the live bytes rise over what they were */
		if (i % each == 0 || live > most + most / 64)
			replay_play_look(p, i % each == 0);
		if (live > most + most / 64)
			most = live;
	}
	replay_play_look(p, true);
}

static void *map(uint64_t n, uint64_t size)
{
	void *p = mmap(NULL, (n ? n : 1) * size, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

struct err *replay_play(int fd, enum replay_mode mode, struct replay_result *ret)
{
	struct player p = { .ret = ret, .statm = open("/proc/self/statm", O_RDONLY | O_CLOEXEC) };
	off_t size = lseek(fd, 0, SEEK_END);
	const struct replay_head *h = MAP_FAILED;
	void *(*volatile own)(size_t) = malloc;
	uint64_t began;
	Dl_info info;

	memset(ret, 0, sizeof(*ret));
	if (size >= (off_t)sizeof(*h))
		h = mmap(NULL, (size_t)size, PROT_READ, MAP_SHARED | MAP_POPULATE, fd, 0);
	if (h == MAP_FAILED || p.statm < 0 ||
	    (uint64_t)size != sizeof(*h) + h->nops * sizeof(struct replay_op))
		return err_new(EINVAL, "the operations are not there");
	p.ops = (const struct replay_op *)(h + 1);
	p.nops = h->nops;
	p.nslots = h->nslots;
	p.slots = map(p.nslots, sizeof(*p.slots));
	p.sizes = map(mode == REPLAY_SPACE ? p.nslots : 0, sizeof(*p.sizes));
	if (!p.slots || !p.sizes)
		return err_errno(errno, "no memory for %llu slots", (unsigned long long)p.nslots);
	if (dladdr((void *)(uintptr_t)own, &info) && info.dli_fname)
		snprintf(ret->allocator, sizeof(ret->allocator), "%s", info.dli_fname);
	p.base = resident(&p);
	began = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	switch (mode) {
	case REPLAY_TIME: play_time(&p); break;
	case REPLAY_EMPTY: play_empty(&p); break;
	case REPLAY_SPACE: play_space(&p); break;
	}
	ret->ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - began;
	close(p.statm);
	return NULL;
}
