/* Which pages a live process has touched: /proc/PID/pagemap, by its ioctl PAGEMAP_SCAN (Linux 6.7,
 * which passes over an empty part of the page table at once) or entry by entry. */
#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>

#include "base/clock.h"
#include "base/procdir.h"
#include "program/space/space.h"

enum { PAGE = 4096, ENTRIES = 8192, RUNS = 1024, ENTRIES_MS = 2000 };

/* Of an entry of the file. */
static const uint64_t PRESENT = 1ull << 63, SWAPPED = 1ull << 62;

/* linux/fs.h of Linux 6.7. */
struct scan {
	uint64_t size, flags, start, end, walk_end, vec, vec_len, max_pages;
	uint64_t category_inverted, category_mask, category_anyof_mask, return_mask;
};
struct scan_run {
	uint64_t start, end, categories;
};
enum { SCAN_PRESENT = 1 << 3, SCAN_SWAPPED = 1 << 4, SCAN_ZERO = 1 << 5 };
#define PAGEMAP_SCAN_IOCTL _IOWR('f', 16, struct scan)

static void resident_add(space_range_vec *ret, uint64_t start, uint64_t end)
{
	if (ret->n && vec_last(ret)->end == start)
		vec_last(ret)->end = end;
	else
		vec_push(ret, (struct space_range){ start, end });
}

/* Returns false when the kernel does not have the ioctl, or refuses it for this range. */
static bool scan(int fd, struct space_range in, space_range_vec *ret)
{
	struct scan_run runs[RUNS];
	uint32_t before = ret->n;

	for (uint64_t at = in.start; at < in.end;) {
		struct scan s = { .size = sizeof(s),
				  .start = at,
				  .end = in.end,
				  .vec = (uintptr_t)runs,
				  .vec_len = RUNS,
				  .category_inverted = SCAN_ZERO,
				  .category_mask = SCAN_ZERO,
				  .category_anyof_mask = SCAN_PRESENT | SCAN_SWAPPED,
				  .return_mask = SCAN_PRESENT | SCAN_SWAPPED };
		int n = ioctl(fd, PAGEMAP_SCAN_IOCTL, &s);

		if (n < 0 || s.walk_end <= at) {
			ret->n = before;
			return false;
		}
		for (int i = 0; i < n; i++)
			resident_add(ret, runs[i].start, runs[i].end);
		at = s.walk_end;
	}
	return true;
}

/* The process may be stopped meanwhile, and may have any number of mappings, so that the limit is
 * one for all ranges. */
static struct err *read_entries(int fd, pid_t pid, uint64_t *spent, struct space_range in,
				space_range_vec *ret)
{
	cleanup_free uint64_t *v = xmalloc(ENTRIES * sizeof(*v));
	const uint64_t begun = now_ns(), most = ENTRIES_MS * 1000000ull, before = *spent;

	for (uint64_t at = in.start; at < in.end;) {
		uint64_t left = (in.end - at + PAGE - 1) / PAGE;
		size_t want = (left < ENTRIES ? left : ENTRIES) * sizeof(*v);
		ssize_t got = pread(fd, v, want, (off_t)(at / PAGE * sizeof(*v)));

		if (got < 0)
			return err_errno(errno, "/proc/%d/pagemap", (int)pid);
		*spent = before + (now_ns() - begun);
		if (*spent > most)
			return err_new(ETIMEDOUT,
				       "process %d: its page table is too large to be read: "
				       "Linux 6.7 and later need not read it whole",
				       (int)pid);
		if (got < (ssize_t)sizeof(*v))
			break; /* behind the last address of a process */
		for (size_t i = 0; i < (size_t)got / sizeof(*v); i++, at += PAGE)
			if (v[i] & (PRESENT | SWAPPED))
				resident_add(ret, at, at + PAGE < in.end ? at + PAGE : in.end);
	}
	return NULL;
}

struct err *space_resident_of(struct space *s, struct space_range in, space_range_vec *ret)
{
	char path[64];
	cleanup_close int fd = -1;

	snprintf(path, sizeof(path), "/proc/%d/pagemap", (int)procdir_living_thread(s->pid));
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return err_errno(errno, "%s", path);
	return scan(fd, in, ret) ? NULL : read_entries(fd, s->pid, &s->table_ns, in, ret);
}
