/* The common part of all address spaces: reads memory in layers, and finds objects and lists in
 * it. */
#include "program/space/space.h"

#include <elf.h>
#include <errno.h>
#include <link.h>

#include "base/clock.h"
#include "base/procmem.h"
#include "program/object/object.h"

enum {
	PAGE = 4096,
	OBJECT_MAX = 1 << 20,
	MODULES_MAX = 4096,
	DYNAMIC_MAX = 1024,
	HEADERS_MAX = 128,
	SETTLE_NS = 1000000,
	PATH_SIZE = 4096
};

void space_free(struct space *s)
{
	char *name;

	if (!s)
		return;
	name = s->name;
	s->ops->free(s);
	free(name);
}

struct err *space_mappings(struct space *s, uint64_t time, const struct mappings **ret)
{
	return s->ops->mappings(s, time, ret);
}

struct err *space_threads(struct space *s, const struct space_thread **ret, uint32_t *ret_n)
{
	if (!s->ops->threads)
		return err_new(ENOTSUP,
			       "%s: it is running, and only stopped threads have known registers",
			       s->name);
	return s->ops->threads(s, ret, ret_n);
}

uint64_t space_auxv(struct space *s, uint64_t type)
{
	const uint64_t *v;
	uint32_t n = 0;
	struct err *e = s->ops->auxv ? s->ops->auxv(s, &v, &n) : NULL;

	err_free(e);
	for (uint32_t i = 0; !e && i < n; i++)
		if (v[2 * i] == type)
			return v[2 * i + 1];
	return 0;
}

char *space_open_path(struct space *s, const struct mapping *m)
{
	return s->ops->open_path ? s->ops->open_path(s, m) : NULL;
}

/* --- memory --- */

void space_limit(struct space *s, uint64_t reads, uint64_t until_ns)
{
	s->limit.is_set = true;
	s->limit.spent = false;
	s->limit.reads = reads;
	s->limit.until_ns = until_ns;
	s->limit.waited_max = 0;
}

/* Takes off the time in which no processor ran the reads. Takes off
 * such time between reads, too. So settle() reads the scheduler's numbers seldom, and not twice for
 * each read. */
static void settle(struct space *s)
{
	const uint64_t since = s->waited.ns - s->waited.settled, now = procmem_starved_ns();
	const uint64_t starved =
		s->waited.starved && now > s->waited.starved ? now - s->waited.starved : 0;

	s->waited.ns -= starved < since ? starved : since;
	s->waited.settled = s->waited.ns;
	s->waited.starved = now ?: 1;
}

uint64_t space_waited(struct space *s)
{
	if (!s->waited.starved || s->waited.ns - s->waited.settled > SETTLE_NS)
		settle(s);
	return s->waited.ns;
}

/* Returns true when the reads have taken the time of an inner limit. */
static bool is_late(struct space *s)
{
	if (!s->limit.waited_max || s->waited.ns < s->limit.waited_max)
		return false;
	settle(s);
	return s->waited.ns >= s->limit.waited_max;
}

struct space_limit space_limit_within(struct space *s, uint64_t reads, uint32_t ms)
{
	const struct space_limit outer = s->limit;
	uint64_t most = space_waited(s) + ms * 1000000ull + 1;

	if (outer.is_set && outer.reads < reads)
		reads = outer.reads;
	if (outer.is_set && outer.waited_max && outer.waited_max < most)
		most = outer.waited_max;
	space_limit(s, reads, outer.is_set ? outer.until_ns : UINT64_MAX);
	s->limit.spent = outer.spent;
	s->limit.most = reads;
	s->limit.waited_max = most;
	return outer;
}

bool space_limit_end(struct space *s, const struct space_limit *outer)
{
	const uint64_t used = s->limit.most - s->limit.reads;
	const bool spent = s->limit.spent;

	s->limit = *outer;
	s->limit.reads -= used < outer->reads ? used : outer->reads;
	return spent;
}

bool space_is_spent(const struct space *s)
{
	return s->limit.spent;
}

/* Takes one read of n bytes from the limit. */
static bool afford(struct space *s, uint32_t n)
{
	uint64_t cost = 1 + n / PAGE;

	if (!s->limit.is_set)
		return true;
	if (s->limit.spent || s->limit.reads < cost || now_ns() > s->limit.until_ns || is_late(s)) {
		s->limit.spent = true;
		return false;
	}
	s->limit.reads -= cost;
	return true;
}

bool space_step(struct space *s)
{
	return afford(s, 0);
}

uint32_t space_read_some(struct space *s, uint64_t addr, void *buf, uint32_t n)
{
	const struct space_memory *layers = s->ops->memory;
	const bool is_timed = s->limit.waited_max;
	uint32_t done = 0;
	uint64_t begun;

	if (!afford(s, n))
		return 0;
	begun = is_timed ? now_ns() : 0;
	while (done < n && addr + done >= addr) {
		uint32_t want = n - done, got = 0;

		for (uint32_t i = 0; i < ARRAY_SIZE(s->ops->memory) && layers[i].read && !got;
		     i++) {
			uint32_t gap = want;

			got = layers[i].read(s, addr + done, (uint8_t *)buf + done, want, &gap);
			/* The next layer may read only up to the gap, because this layer has the
			 * bytes behind it. */
			want = gap;
		}
		if (!got)
			break;
		done += got;
	}
	if (is_timed)
		s->waited.ns += now_ns() - begun;
	return done;
}

struct err *space_read(struct space *s, uint64_t addr, void *buf, uint32_t n)
{
	uint32_t got = space_read_some(s, addr, buf, n);
	const struct space_memory *layers = s->ops->memory;

	if (got == n)
		return NULL;
	return err_new(EFAULT, "%s: %u bytes at 0x%llx are not in %s%s%s", s->name, n - got,
		       (unsigned long long)addr + got, layers[0].name ? layers[0].name : "memory",
		       layers[1].name ? " and not in " : "", layers[1].name ? layers[1].name : "");
}

bool space_word(struct space *s, uint64_t addr, uint64_t *ret)
{
	return space_read_some(s, addr, ret, sizeof(*ret)) == sizeof(*ret);
}

struct err *space_resident(struct space *s, struct space_range in, space_range_vec *ret)
{
	if (s->ops->resident)
		return s->ops->resident(s, in, ret);
	if (in.start < in.end)
		vec_push(ret, in);
	return NULL;
}

char *space_string(struct space *s, uint64_t addr, uint32_t max)
{
	VEC(char) text = { 0 };

	while (text.n < max) {
		/* Do not cross a page, because the next may not be mapped. */
		uint32_t n = PAGE - (addr + text.n) % PAGE, got;

		if (n > max - text.n)
			n = max - text.n;
		vec_reserve(&text, n);
		got = space_read_some(s, addr + text.n, text.v + text.n, n);
		if (memchr(text.v + text.n, '\0', got))
			return text.v;
		text.n += got;
		if (got < n)
			break;
	}
	vec_fini(&text);
	return NULL;
}

/* --- objects and lists in memory --- */

struct err *space_object(struct space *s, uint64_t base, uint32_t n, struct object **ret)
{
	const uint32_t size = !n ? PAGE : n < OBJECT_MAX ? n : OBJECT_MAX;
	cleanup_free uint8_t *image = xmalloc(size);
	uint32_t got = space_read_some(s, base, image, size);
	cleanup_free char *name =
		xasprintf("%s: object at 0x%llx", s->name, (unsigned long long)base);

	/* Section headers are at the end of the file, which no segment holds. */
	if (got >= sizeof(Elf64_Ehdr) && !n) {
		memset(image + offsetof(Elf64_Ehdr, e_shoff), 0, sizeof(Elf64_Off));
		memset(image + offsetof(Elf64_Ehdr, e_shnum), 0, sizeof(Elf64_Half));
	}
	return object_open_memory(name, image, got, ret);
}

/* Finds the program's own dynamic section, by the program headers in the auxiliary vector. */
static uint64_t find_dynamic(struct space *s)
{
	uint64_t at = space_auxv(s, AT_PHDR), n = space_auxv(s, AT_PHNUM), bias = 0, found = 0;

	for (uint64_t i = 0; at && i < n && i < HEADERS_MAX; i++) {
		Elf64_Phdr ph;

		if (space_read_some(s, at + i * sizeof(ph), &ph, sizeof(ph)) != sizeof(ph))
			return 0;
		if (ph.p_type == PT_PHDR)
			bias = at - ph.p_vaddr;
		else if (ph.p_type == PT_DYNAMIC)
			found = ph.p_vaddr;
	}
	return found ? bias + found : 0;
}

static uint64_t dynamic_value(struct space *s, uint64_t dynamic, int64_t tag)
{
	Elf64_Dyn d;

	for (uint32_t i = 0; i < DYNAMIC_MAX; i++)
		if (space_read_some(s, dynamic + i * sizeof(d), &d, sizeof(d)) != sizeof(d) ||
		    d.d_tag == DT_NULL)
			break;
		else if (d.d_tag == tag)
			return d.d_un.d_val;
	return 0;
}

struct err *space_modules(struct space *s, space_module_vec *ret)
{
	uint64_t dynamic = find_dynamic(s);
	uint64_t debug = dynamic ? dynamic_value(s, dynamic, DT_DEBUG) : 0, at = 0;
	struct link_map l;

	if (!debug || !space_word(s, debug + offsetof(struct r_debug, r_map), &at) || !at)
		return err_new(ENOENT,
			       "%s: the dynamic linker's list of loaded libraries is missing",
			       s->name);
	/* The list is limited, because the process may have overwritten it and made a circle. */
	for (uint32_t i = 0; at && i < MODULES_MAX; i++, at = (uintptr_t)l.l_next) {
		char *path;

		if (space_read_some(s, at, &l, sizeof(l)) != sizeof(l))
			return err_new(EFAULT, "%s: the dynamic linker's list ends at 0x%llx",
				       s->name, (unsigned long long)at);
		path = space_string(s, (uintptr_t)l.l_name, PATH_SIZE);
		vec_push(ret, (struct space_module){ l.l_addr, (uintptr_t)l.l_ld,
						     path ? path : xstrdup("") });
	}
	return NULL;
}

void space_modules_free(space_module_vec *v)
{
	for (uint32_t i = 0; i < v->n; i++)
		free(v->v[i].path);
	vec_fini(v);
}
