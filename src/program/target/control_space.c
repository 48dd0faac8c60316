/* The address space of a process under control. It has registers while the process is stopped. */
#include <errno.h>

#include "base/procmem.h"
#include "target_private.h"

enum { MUCH = 64 << 10 };

struct held {
	struct space space; /* first member */
	struct control *control;
	struct space *live;
	VEC(struct space_thread) threads;
};

static struct held *held_of(struct space *s)
{
	return (struct held *)s;
}

static struct err *held_mappings(struct space *s, uint64_t time, const struct mappings **ret)
{
	struct control *c = held_of(s)->control;

	return c->stopped ? control_maps(c, ret) : space_mappings(held_of(s)->live, time, ret);
}

/* process_vm_readv() copies once, reading /proc/PID/mem twice: 0.22 s and 0.36 s for each GB. Only
 * the file has pages that the process itself may not read. */
static uint32_t held_read(struct space *s, uint64_t addr, void *buf, uint32_t n, uint32_t *ret_gap)
{
	const struct control *c = held_of(s)->control;
	const bool direct = n >= MUCH && c->service < 0; /* a service may not be traced */
	ssize_t got = direct ? procmem_read(c->alive, buf, n, addr) : 0, more = 0;

	(void)ret_gap;
	if (got < 0 && errno == ETIMEDOUT)
		return 0; /* it holds a page back */
	if (got < 0)
		got = 0;
	if (got < n)
		more = control_pread(c, (uint8_t *)buf + got, n - (size_t)got,
				     addr + (uint64_t)got);
	return (uint32_t)(got + (more > 0 ? more : 0));
}

static struct err *held_threads(struct space *s, const struct space_thread **ret, uint32_t *ret_n)
{
	struct held *h = held_of(s);

	h->threads.n = 0;
	for (uint32_t i = 0; i < h->control->threads.n; i++) {
		const struct control_thread *t = &h->control->threads.v[i];

		if (!t->guest)
			vec_push(&h->threads,
				 (struct space_thread){ .tid = t->tid, .regs = t->regs });
	}
	*ret = h->threads.v;
	*ret_n = h->threads.n;
	return NULL;
}

static struct err *held_auxv(struct space *s, const uint64_t **ret, uint32_t *ret_n)
{
	struct space *live = held_of(s)->live;

	return live->ops->auxv(live, ret, ret_n);
}

static struct err *held_resident(struct space *s, struct space_range in, space_range_vec *ret)
{
	return space_resident_of(s, in, ret);
}

static char *held_open_path(struct space *s, const struct mapping *m)
{
	return mapping_open_path(s->pid, m);
}

static void held_free(struct space *s)
{
	struct held *h = held_of(s);

	space_free(h->live);
	vec_fini(&h->threads);
	free(h);
}

struct err *control_space(struct control *c, struct space **ret)
{
	static const struct space_ops ops = {
		.mappings = held_mappings,
		.memory = { { "its memory", held_read } },
		.threads = held_threads,
		.auxv = held_auxv,
		.resident = held_resident,
		.open_path = held_open_path,
		.free = held_free,
	};
	struct held *h = xcalloc(1, sizeof(*h));
	struct err *e = space_live(c->pid, &h->live);

	if (e) {
		free(h);
		return e;
	}
	h->control = c;
	h->space = (struct space){ .ops = &ops,
				   .name = xasprintf("process %d (%s)", (int)c->pid, c->name),
				   .pid = c->pid };
	*ret = &h->space;
	return NULL;
}
