/* Reads /proc/meminfo, which counts in units of 1,024 bytes. */
#include "base/meminfo.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/memgroup.h"

bool meminfo_read(const char *const *words, uint32_t n, uint64_t *ret)
{
	char text[4096];
	cleanup_close int fd = open("/proc/meminfo", O_RDONLY | O_CLOEXEC);
	ssize_t got = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;

	if (got <= 0)
		return false;
	text[got] = '\0';
	for (uint32_t i = 0; i < n; i++) {
		const char *at = strstr(text, words[i]);

		ret[i] = at ? strtoull(at + strlen(words[i]), NULL, 10) * 1024 : 0;
	}
	return true;
}

uint64_t meminfo_available(void)
{
	const char *const word = "MemAvailable:";
	uint64_t bytes, room;

	if (!meminfo_read(&word, 1, &bytes))
		return 0;
	room = memgroup_room(getpid());
	bytes = bytes < room ? bytes : room;
	return bytes ? bytes : 1;
}
