/* Sets and restores the limits of open files and of memory. */
#include <stdint.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/meminfo.h"
#include "base/procstatus.h"

struct limit {
	int kind; /* RLIMIT_* */
	bool changed;
	struct rlimit given, own;
};

static struct limit files = { .kind = RLIMIT_NOFILE }, memory = { .kind = RLIMIT_DATA };

static void limit_set(struct limit *l, rlim_t cur)
{
	l->own = l->given;
	l->own.rlim_cur = cur;
	l->changed = !setrlimit(l->kind, &l->own);
}

static bool read_given(struct limit *l)
{
	return l->changed || !getrlimit(l->kind, &l->given);
}

void limits_raise_files(void)
{
	if (read_given(&files))
		limit_set(&files, files.given.rlim_max);
}

/* Limits the bytes that the kernel counts: addresses of writable private memory, used or not. A
 * sanitizer has reserved far more than the machine has. */
void limits_hold_memory(void)
{
	const uint64_t available = meminfo_available();
	cleanup_free char *status = procstatus_read(getpid());
	const int64_t has = procstatus_number(status, "VmData", 0);
	const rlim_t most = (rlim_t)has * 1024 + available / 8 * 7;

	if (available && has >= 0 && read_given(&memory) && most < memory.given.rlim_cur)
		limit_set(&memory, most);
}

static int64_t reserved; /* by limits_reserve() */

static void set_memory(void)
{
	const int64_t all = __atomic_load_n(&reserved, __ATOMIC_RELAXED);
	struct rlimit l = memory.own;

	if (!memory.changed)
		return;
	l.rlim_cur = all < 0 && l.rlim_cur < (rlim_t)-all ? 0 : l.rlim_cur + (rlim_t)all;
	if (l.rlim_cur > l.rlim_max)
		l.rlim_cur = l.rlim_max;
	(void)setrlimit(memory.kind, &l);
}

void limits_reserve(int64_t bytes)
{
	__atomic_fetch_add(&reserved, bytes, __ATOMIC_RELAXED);
	set_memory();
}

void limits_restore(void)
{
	if (files.changed)
		(void)setrlimit(files.kind, &files.given);
	if (memory.changed)
		(void)setrlimit(memory.kind, &memory.given);
}
