/* The files of a recording beside the first one. */
#define _GNU_SOURCE
#include "memory/alloc/trace_beside.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/outfile.h"
#include "base/procmem.h"

enum {
	OPENS_MAX = 16,     /* tries to make a new file */
	STRANGERS_MAX = 64, /* names that are passed over because another user has them */
	COMMAND_MAX = 1024, /* bytes that are kept of a command */
};

/* --- what /proc says of a process --- */

char *beside_command(pid_t pid)
{
	cleanup_free char *path = xasprintf("/proc/%d/cmdline", (int)pid);
	cleanup_free char *text = NULL;
	size_t n = 0;

	/* a page of the process may come late, or never */
	if (err_drop(procmem_file(pid, path, &text, &n)) || !text)
		return xstrdup("?");
	n = n < COMMAND_MAX ? n : COMMAND_MAX;
	while (n && !text[n - 1])
		n--;
	for (size_t i = 0; i < n; i++) {
		if (!text[i])
			text[i] = ' ';
		else if ((uint8_t)text[i] < ' ' || text[i] == 127)
			text[i] = '?';
	}
	return n ? xasprintf("%.*s", (int)n, text) : xstrdup("?");
}

pid_t beside_parent(pid_t pid)
{
	cleanup_free char *path = xasprintf("/proc/%d/stat", (int)pid);
	char text[512] = "";
	FILE *f = fopen(path, "re");
	size_t n = f ? fread(text, 1, sizeof(text) - 1, f) : 0;
	const char *end;
	int parent = 0;

	if (f)
		fclose(f);
	text[n] = '\0';
	end = strrchr(text, ')');
	if (!end || sscanf(end + 1, " %*c %d", &parent) != 1)
		return 0;
	return parent;
}

/* --- files --- */

/* Returns true when another user has a file of this name, which root could remove. */
static bool is_strangers(int dir, const char *name)
{
	struct stat st;

	return !fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) && st.st_uid != geteuid();
}

char *beside_path(struct hash *numbers, int dir, const char *first, pid_t pid)
{
	uint64_t *last = hash_put(numbers, &pid, sizeof(pid), NULL);
	const char *slash = strrchr(first, '/'), *dot = strrchr(slash ?: first, '.');
	int n = (int)(dot && dot > (slash ? slash + 1 : first) ? (size_t)(dot - first)
							       : strlen(first));
	char *path = NULL;

	for (int i = 0; i < STRANGERS_MAX && (!path || is_strangers(dir, outfile_name(path)));
	     i++) {
		free(path);
		path = ++*last == 1 ? xasprintf("%.*s.%d%s", n, first, (int)pid, first + n)
				    : xasprintf("%.*s.%d-%llu%s", n, first, (int)pid,
						(unsigned long long)*last, first + n);
	}
	return path;
}

struct err *beside_open(int dir, const char *path, struct alloc_writer **ret)
{
	const char *name = outfile_name(path);
	int fd = -1;

	for (int i = 0; fd < 0 && i < OPENS_MAX && (!i || errno == EEXIST); i++) {
		if (is_strangers(dir, name))
			return err_new(EEXIST, "%s belongs to another user", path);
		unlinkat(dir, name, 0); /* of an earlier recording */
		fd = outfile_new(dir, name, OUTFILE_PRIVATE);
	}
	return fd < 0 ? err_errno(errno, "%s", path) : alloc_writer_new_at(fd, path, ret);
}

void beside_infos(struct alloc_writer *w, pid_t parent, bool forked, const char *first)
{
	char text[32];

	snprintf(text, sizeof(text), "%d", (int)parent);
	alloc_writer_info(w, "parent", text);
	alloc_writer_info(w, "forked", forked ? "yes" : "no");
	alloc_writer_info(w, "first", outfile_name(first));
}

void beside_list(struct alloc_writer *first, const struct beside *b)
{
	cleanup_free char *text = xasprintf("%d\t%d\t%llu\t%llu\t%s\t%s", (int)b->pid,
					    (int)b->parent, (unsigned long long)b->events,
					    (unsigned long long)b->lost, outfile_name(b->path),
					    b->command);

	alloc_writer_info(first, "process", text);
}
