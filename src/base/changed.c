/* Keeps the list of files that changed while they were read. */
#include "base/changed.h"

#include <string.h>
#include <sys/stat.h>

/* One thread takes an entry and writes its path. Readers see the entry when it is complete. */
static struct changed {
	char path[CHANGED_PATH];
	bool complete, told;
} list[CHANGED_MAX];
static uint32_t taken;
static uint64_t count;

bool file_state_read(int fd, struct file_state *ret)
{
	struct stat st;

	if (fstat(fd, &st))
		return false;
	*ret = (struct file_state){ .dev = st.st_dev,
				    .inode = st.st_ino,
				    .size = (uint64_t)st.st_size,
				    .mtime_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 +
						st.st_mtim.tv_nsec };
	return true;
}

bool file_state_same(const struct file_state *a, const struct file_state *b)
{
	return a->dev == b->dev && a->inode == b->inode && a->size == b->size &&
	       a->mtime_ns == b->mtime_ns;
}

const char *changed_path(uint32_t i)
{
	return i < CHANGED_MAX && __atomic_load_n(&list[i].complete, __ATOMIC_ACQUIRE)
		       ? list[i].path
		       : NULL;
}

bool changed_untold(uint32_t i)
{
	return changed_path(i) && !list[i].told;
}

void changed_told(const char *path)
{
	const char *known;

	for (uint32_t i = 0; (known = changed_path(i)); i++)
		list[i].told |= !strcmp(known, path);
}

uint64_t changed_count(void)
{
	return __atomic_load_n(&count, __ATOMIC_ACQUIRE);
}

void changed_add(const char *path)
{
	size_t n = strnlen(path, CHANGED_PATH - 1);
	const char *known;
	uint32_t i;

	__atomic_add_fetch(&count, 1, __ATOMIC_ACQ_REL);
	for (i = 0; (known = changed_path(i)); i++)
		if (!strncmp(known, path, n) && !known[n])
			return;
	i = __atomic_fetch_add(&taken, 1, __ATOMIC_ACQ_REL);
	if (i >= CHANGED_MAX) {
		__atomic_store_n(&taken, CHANGED_MAX, __ATOMIC_RELEASE);
		return;
	}
	memcpy(list[i].path, path, n);
	__atomic_store_n(&list[i].complete, true, __ATOMIC_RELEASE);
}
