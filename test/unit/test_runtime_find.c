/* Processes that make the search for an interpreter long: files with the names of interpreters that
 * are mapped again and again, and pages that come late. */
#define _GNU_SOURCE
#include "unit.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "elf_make.h"
#include "program/runtime/patience.h"
#include "program/runtime/runtime.h"

enum { MAPPINGS = 5000, PAGE = 4096 };

struct many {
	struct space space; /* first member */
	struct mappings list;
	uint32_t opened;
};

static struct err *many_mappings(struct space *s, uint64_t time, const struct mappings **ret)
{
	*ret = &((struct many *)s)->list;
	return NULL;
}

static char *many_open_path(struct space *s, const struct mapping *m)
{
	((struct many *)s)->opened++;
	return xstrdup("/proc/self/exe"); /* an ELF file, but no interpreter */
}

static const struct space_ops many_ops = {
	.mappings = many_mappings,
	.open_path = many_open_path,
};

/* Returns how often a file was opened. files: how many different ones there are. */
static uint32_t look(uint32_t files, bool met)
{
	struct many m = { .space = { .ops = &many_ops, .name = "many", .pid = getpid() } };
	size_t budget = 1 << 20;
	struct arena names;
	struct runtime *r = NULL;

	arena_init(&names);
	for (uint32_t i = 0; i < MAPPINGS; i++)
		vec_push(&m.list,
			 (struct mapping){
				 .start = (i + 1ull) * PAGE,
				 .end = (i + 2ull) * PAGE,
				 .path = arena_printf(&names, "/d%u/libpython3.9.so", i % files),
				 .inode = 1 + i % files,
				 .read = true,
				 .exec = true });
	err_free(met ? runtime_find_met(&m.space, &budget, &r) : runtime_find(&m.space, &r));
	assert_null(r);
	vec_fini(&m.list);
	arena_fini(&names);
	return m.opened;
}

static void test_opens(void **state)
{
	for (int met = 0; met < 2; met++) {
		uint32_t one = look(1, met), many = look(MAPPINGS, met);

		assert_true(one > 0 && one <= 16);
		assert_true(many >= 16 && many <= 64);
	}
}

/* --- pages that come late --- */

enum { LATE_BASE = 0x401000, LATE_VARIABLES = 1 << 20, WORD = 0x20000 };

struct late {
	struct space space; /* first member */
	struct mappings list;
	char path[64];
	uint32_t reads;
};

static uint64_t late_now;

static uint64_t late_clock(void)
{
	return late_now;
}

/* Each word of the process leads to a page. */
static uint32_t late_read(struct space *s, uint64_t addr, void *buf, uint32_t n, uint32_t *ret_gap)
{
	static const uint64_t version = LATE_BASE - 0x1000 + ELF_DATA_ADDR;
	const uint64_t word = WORD;

	for (uint32_t i = 0; i < n; i++)
		((uint8_t *)buf)[i] = ((const uint8_t *)&word)[(addr + i) % 8];
	if (addr == version && n >= 6)
		memcpy(buf, "3.3.0", 6);
	((struct late *)s)->reads++;
	late_now += 900000000;
	return n;
}

static struct err *late_mappings(struct space *s, uint64_t time, const struct mappings **ret)
{
	*ret = &((struct late *)s)->list;
	return NULL;
}

static char *late_open_path(struct space *s, const struct mapping *m)
{
	return xstrdup(((struct late *)s)->path);
}

/* A process that looks like Ruby serves each page after 0.9 seconds: the search ends, with and
 * without a limit of its caller. */
static void test_late_pages(void **state)
{
	static const struct elf_symbol symbols[] = {
		{ "ruby_version", ELF_DATA_ADDR, 8, STT_OBJECT | STB_GLOBAL << 4 },
		{ "rb_cString", ELF_DATA_ADDR + 8, 8, STT_OBJECT | STB_GLOBAL << 4 },
	};
	static const struct space_ops ops = {
		.mappings = late_mappings,
		.memory = { { "its memory", late_read } },
		.open_path = late_open_path,
	};
	static const struct clock_source source = { .now = late_clock };
	struct elf_make e = elf_make(symbols, ARRAY_SIZE(symbols), 0);
	Elf64_Phdr *segments = (Elf64_Phdr *)(e.image + ((Elf64_Ehdr *)e.image)->e_phoff);
	const int fd = memfd_create("libruby.so.3.3", 0);

	segments[1].p_memsz = LATE_VARIABLES;
	assert_int_equal(write(fd, e.image, e.size), e.size);
	clock_use(&source);
	for (int k = 0; k < 3; k++) {
		struct late l = { .space = { .ops = &ops, .name = "late", .pid = getpid() } };
		struct runtime *r = NULL;
		size_t budget = 1 << 20;
		struct err *err;

		snprintf(l.path, sizeof(l.path), "/proc/self/fd/%d", fd);
		vec_push(&l.list, (struct mapping){ .start = LATE_BASE,
						    .end = LATE_BASE + PAGE,
						    .path = "/usr/lib/libruby.so.3.3",
						    .inode = 7,
						    .read = true,
						    .exec = true });
		late_now = 1000000000;
		if (k == 2)
			space_limit(&l.space, UINT64_MAX, late_now + 1000000000);
		err = k == 1 ? runtime_find_met(&l.space, &budget, &r) : runtime_find(&l.space, &r);
		assert_null(r);
		assert_non_null(err);
		assert_int_equal(err->code, E2BIG);
		err_free(err);
		assert_in_range(l.reads, 1, k == 0 ? 8 : k == 1 ? 4 : 2);
		vec_fini(&l.list);
	}
	clock_use(NULL);
	close(fd);
	free(e.image);
}

/* A run waits for such processes for some seconds and a quarter of its time, in all. */
static void test_patience(void **state)
{
	struct patience p = { .begun = 1000 };
	uint64_t now = 1000, waited = 0;

	while (patience_left(&p, now)) {
		uint64_t one = patience_left(&p, now) < 2000000000 ? patience_left(&p, now)
								   : 2000000000;

		p.used += one;
		waited += one;
		now += one;
	}
	assert_true(waited >= PATIENCE_ROOM && waited < PATIENCE_ROOM * 4 / 3 + 10);
	assert_int_equal(patience_left(&p, now + 40000000000), 10000000000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_opens),
		cmocka_unit_test(test_late_pages),
		cmocka_unit_test(test_patience),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
