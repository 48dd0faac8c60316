/* The address space of a running process. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>

#include "base/procdir.h"
#include "base/procmem.h"
#include "program/space/space.h"

struct live {
	struct space space; /* first member */
	struct mappings mappings;
	uint64_t *auxv;
	uint32_t nauxv;
	bool auxv_read;
};

static struct live *live_of(struct space *s)
{
	return (struct live *)s;
}

static struct err *live_mappings(struct space *s, uint64_t time, const struct mappings **ret)
{
	struct live *l = live_of(s);

	(void)time; /* always the present */
	mappings_free(&l->mappings);
	*ret = &l->mappings;
	return mappings_read(s->pid, &l->mappings);
}

static uint32_t live_read(struct space *s, uint64_t addr, void *buf, uint32_t n, uint32_t *ret_gap)
{
	ssize_t got = procmem_read(s->pid, buf, n, addr);

	(void)ret_gap;
	/* process_vm_readv() reads an element up to a missing page, or nothing. */
	if (got < 0 && errno == EFAULT && addr % 4096 + n > 4096)
		got = procmem_read(s->pid, buf, 4096 - addr % 4096, addr);
	return got > 0 ? (uint32_t)got : 0;
}

static struct err *live_auxv(struct space *s, const uint64_t **ret, uint32_t *ret_n)
{
	struct live *l = live_of(s);
	char path[64], *text;
	size_t len;
	struct err *e;

	if (!l->auxv_read) {
		snprintf(path, sizeof(path), "/proc/%d/auxv", (int)procdir_living_thread(s->pid));
		e = procmem_file(s->pid, path, &text, &len);
		if (e)
			return e;
		l->auxv = (uint64_t *)(void *)text;
		l->nauxv = (uint32_t)(len / 16);
		l->auxv_read = true;
	}
	*ret = l->auxv;
	*ret_n = l->nauxv;
	return NULL;
}

static struct err *live_resident(struct space *s, struct space_range in, space_range_vec *ret)
{
	return space_resident_of(s, in, ret);
}

static char *live_open_path(struct space *s, const struct mapping *m)
{
	return mapping_open_path(s->pid, m);
}

static void live_free(struct space *s)
{
	struct live *l = live_of(s);

	mappings_free(&l->mappings);
	free(l->auxv);
	free(l);
}

struct err *space_live(pid_t pid, struct space **ret)
{
	static const struct space_ops ops = {
		.mappings = live_mappings,
		.memory = { { "its memory", live_read } },
		.auxv = live_auxv,
		.resident = live_resident,
		.open_path = live_open_path,
		.free = live_free,
	};
	struct live *l = xcalloc(1, sizeof(*l));

	l->space = (struct space){ .ops = &ops,
				   .name = xasprintf("process %d", (int)pid),
				   .pid = pid };
	*ret = &l->space;
	return NULL;
}
