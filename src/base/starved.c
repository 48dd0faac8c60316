/* Reads what the scheduler says of a thread. */
#include "base/starved.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { TEXT = 256 };

static void starved_text(pid_t tid, const char *name, char text[TEXT])
{
	char path[64];
	int fd;

	memset(text, 0, TEXT);
	snprintf(path, sizeof(path), "/proc/%d/%s", (int)tid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	(void)!read(fd, text, TEXT - 1);
	close(fd);
}

static uint64_t number(pid_t tid, int which)
{
	unsigned long long n[2];
	char text[TEXT];

	starved_text(tid, "schedstat", text);
	return sscanf(text, "%llu %llu", &n[0], &n[1]) == 2 ? n[which] : 0;
}

uint64_t starved_ns(pid_t tid)
{
	return number(tid, 1);
}

uint64_t starved_ran_ns(pid_t tid)
{
	return number(tid, 0);
}

bool starved_is_ready(pid_t tid)
{
	const char *state;
	char text[TEXT];

	starved_text(tid, "stat", text);
	state = strrchr(text, ')');
	return state && !strncmp(state, ") R", 3);
}
