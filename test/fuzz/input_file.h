/* A fuzz target's input as a file, for readers that take a path. */
#ifndef DESCRY_TEST_FUZZ_INPUT_FILE_H
#define DESCRY_TEST_FUZZ_INPUT_FILE_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { INPUT_PATH = 40 };

/* Its descriptor, and the path by which this process opens it; gone when it is closed. */
static inline int input_file(const uint8_t *data, size_t size, char path[INPUT_PATH])
{
	int fd = memfd_create("input", MFD_CLOEXEC);

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	snprintf(path, INPUT_PATH, "/proc/self/fd/%d", fd);
	return fd;
}

#endif
