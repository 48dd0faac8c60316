/* Measures the time to get the unwind tables of a process: unwind PID CACHE-FOLDER (empty folder:
 * it makes all tables). */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "program/unwind/unwind.h"

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

int main(int argc, char **argv)
{
	struct unwind_images *images = unwind_images_new();
	struct unwind_process *p = NULL;
	struct space *space = NULL;
	uint64_t rows = 0;
	uint32_t files = 0;
	double before;

	if (argc != 3)
		return 2;
	setenv("XDG_CACHE_HOME", argv[2], 1);
	before = now_ms();

	struct err *e = space_live(atoi(argv[1]), &space);

	e = e ?: unwind_process_read(images, space, 0, &p);

	if (e) {
		fprintf(stderr, "%s\n", e->text);
		return 1;
	}
	before = now_ms() - before;
	for (uint32_t i = 0; unwind_images_file(images, i); i++, files++)
		if (unwind_images_file(images, i)->image)
			rows += unwind_images_file(images, i)->image->head->nrows;
	printf("%.2f ms, %u files, %lu rows\n", before, files, (unsigned long)rows);
	unwind_process_free(p);
	unwind_images_free(images);
	space_free(space);
	return 0;
}
