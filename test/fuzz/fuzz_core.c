/* Core files of any bytes: reads all data of every file that opens. */
#define _GNU_SOURCE
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>

#include "input_file.h"
#include "program/object/object.h"
#include "program/space/space.h"
#include "program/unwind/unwind.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { THREADS_MAX = 8, FRAMES_MAX = 64 };

static void walk(struct space *s)
{
	struct unwind_images *images = unwind_images_new();
	const struct space_thread *t;
	struct unwind_process *p;
	enum wire_unwind_end end;
	uint64_t pcs[FRAMES_MAX];
	uint32_t n;

	err_free(space_threads(s, &t, &n));
	assert(!unwind_process_read(images, s, 0, &p));
	for (uint32_t i = 0; i < n && i < THREADS_MAX; i++)
		assert(unwind_thread(p, s, &t[i], pcs, NULL, FRAMES_MAX, &end) <= FRAMES_MAX);
	unwind_process_free(p);
	unwind_images_free(images);
}

static void look(struct space *s)
{
	const struct mappings *maps;
	space_module_vec modules = { 0 };

	assert(!space_mappings(s, 0, &maps));
	for (uint32_t i = 0; i < maps->n; i++) {
		const struct mapping *m = &maps->v[i];
		uint64_t word;

		assert(m->start < m->end && m->path);
		assert(!i || maps->v[i - 1].end <= m->start);
		(void)space_word(s, m->start, &word);
		(void)space_word(s, m->end - 4, &word);
	}
	err_free(space_modules(s, &modules));
	space_modules_free(&modules);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char path[INPUT_PATH];
	int fd = input_file(data, size, path);
	struct space *s;
	struct err *e = space_core(path, &s);

	if (!e) {
		look(s);
		walk(s);
		space_free(s);
	}
	err_free(e);
	close(fd);
	return 0;
}
