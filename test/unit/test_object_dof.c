/* DOF in an ELF file: read whole, and with every byte of it broken. The fuzz corpus has the file,
 * made from test/tracee/dof.c. */
#include <elf.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "base/mem.h"
#include "probe/usdt.h"
#include "program/object/object.h"
#include "unit.h"

/* .SUNW_dof in the file */
enum { DOF_AT = 0x1000, DOF_SIZE = 0x1e8, RELA_AT = 0x1e0 };

static char *file;
static size_t size;

static int setup(void **state)
{
	struct err *e = io_read_file("test/fuzz/corpus/elf/dof", &file, &size);

	assert_null(e);
	assert_memory_equal(file + DOF_AT,
			    "\x7f"
			    "DOF",
			    4);
	return 0;
}

static int teardown(void **state)
{
	free(file);
	return 0;
}

static struct object *open_bytes(const char *bytes, size_t n)
{
	struct object *o = NULL;

	err_free(object_open_memory("dof", bytes, n, &o));
	return o;
}

static void test_probes(void **state)
{
	struct object *o = open_bytes(file, size);
	const struct object_usdt *u;
	uint32_t n;

	assert_non_null(o);
	u = object_usdts(o, &n);
	assert_int_equal(n, 3);
	for (int i = 0; i < 2; i++) {
		assert_string_equal(u[i].provider, "shop");
		assert_string_equal(u[i].name, "sale");
		assert_string_equal(u[i].func, "sell");
		/* the probe's arguments are the native ones in reverse */
		assert_string_equal(u[i].args, "8@%rsi -4@%edi");
		assert_memory_equal(u[i].types, "char *\0int\0", 12);
		assert_int_equal(u[i].semaphore, 0);
	}
	assert_int_equal(u[1].addr - u[0].addr, 8);
	assert_int_equal(u[1].offset - u[0].offset, 8);
	assert_string_equal(u[2].name, "closed-shop");
	assert_string_equal(u[2].args, "");
	assert_null(u[2].types);
	object_free(o);
}

/* Two of them one after the other, as a linker that joins sections leaves them: here the second is
 * cut off, or no DOF at all. */
static void test_several(void **state)
{
	char *copy = xmemdup(file, size);
	struct object *o;
	uint32_t n;

	/* The first DOF's length is that of its header, so the rest of the section is padding. */
	memset(copy + DOF_AT + 48, 0, 8);
	copy[DOF_AT + 48] = 64;
	o = open_bytes(copy, size);
	assert_non_null(o);
	(void)object_usdts(o, &n);
	assert_int_equal(n, 0);
	object_free(o);
	free(copy);
}

/* No value of any byte does harm, or gives more probes than are possible. */
static void test_broken(void **state)
{
	static const uint8_t with[] = { 0xff, 0x80, 0x01 };

	for (size_t i = RELA_AT; i < RELA_AT + 48; i++)
		for (size_t k = 0; k < ARRAY_SIZE(with); k++) {
			struct object *o;
			uint32_t n;

			file[i] = (char)(file[i] ^ with[k]);
			o = open_bytes(file, size);
			if (o)
				(void)object_usdts(o, &n);
			object_free(o);
			file[i] = (char)(file[i] ^ with[k]);
		}
	for (size_t i = DOF_AT; i < DOF_AT + DOF_SIZE; i++)
		for (size_t k = 0; k < ARRAY_SIZE(with); k++) {
			const struct object_usdt *u;
			struct object *o;
			uint32_t n;

			file[i] = (char)(file[i] ^ with[k]);
			o = open_bytes(file, size);
			assert_non_null(o);
			u = object_usdts(o, &n);
			assert_true(n < 100000);
			for (uint32_t j = 0; j < n; j++)
				assert_true(object_is_text(o, u[j].addr) && *u[j].name &&
					    u[j].args);
			object_free(o);
			file[i] = (char)(file[i] ^ with[k]);
		}
}

/* The program with questions in sh/usdt_tutorial.py: their probes, and how they are answered. */
static void test_questions(void **state)
{
	static const uint8_t by_value[] = { 0x83, 0xc8, 0x01 }, by_pointer[] = { 0x80, 0x0f, 0x01 };
	const struct object_question *q;
	char path[PATH_MAX] = "";
	struct object *o = NULL;
	uint32_t n;

	assert_true(readlink("/proc/self/exe", path, sizeof(path) - 32) > 0);
	strcpy(strrchr(path, '/') + 1, "tracee_dof_asks");
	if (object_open(path, &o))
		fail_msg("no %s", path);
	q = object_questions(o, &n);
	assert_int_equal(n, 3);
	for (uint32_t i = 0; i < n; i++) {
		assert_string_equal(q[i].provider, "desk");
		assert_memory_equal(q[i].no, "\x48\x33\xc0", 3);
		assert_string_equal(q[i].name, i == 0 ? "hello" : i == 1 ? "bye" : "idle");
		assert_memory_equal(q[i].yes, i == 1 ? by_pointer : by_value, 3);
	}
	(void)object_usdts(o, &n);
	assert_int_equal(n, 3);
	object_free(o);
}

/* The probes of a name share one list of its questions: a file can have many of both. */
static void test_questions_shared(void **state)
{
	const struct object_question *const *list[2], *q;
	struct object_usdt u = { .provider = "desk" };
	struct object *o = NULL;
	char path[PATH_MAX] = "";
	struct probe_set ps;
	uint32_t n, count;

	(void)state;
	assert_true(readlink("/proc/self/exe", path, sizeof(path) - 32) > 0);
	strcpy(strrchr(path, '/') + 1, "tracee_dof_asks");
	if (object_open(path, &o))
		fail_msg("no %s", path);
	probe_set_init(&ps, NULL, NULL);
	q = object_questions(o, &n);
	assert_int_equal(n, 3);
	for (uint32_t i = 0; i < n; i++) {
		u.name = q[i].name;
		for (uint32_t k = 0; k < 2; k++) {
			list[k] = usdt_questions(&ps, o, &u, &count);
			assert_int_equal(count, 1);
			assert_ptr_equal(list[k][0], &q[i]);
		}
		assert_ptr_equal(list[0], list[1]);
	}
	u.name = "h";
	(void)usdt_questions(&ps, o, &u, &count);
	assert_int_equal(count, 0);
	u.provider = "other";
	u.name = "hello";
	(void)usdt_questions(&ps, o, &u, &count);
	assert_int_equal(count, 0);
	probe_set_fini(&ps);
	object_free(o);
}

/* 60,000 section headers of the same DOF. */
static void test_many(void **state)
{
	enum { N = 60000 };
	Elf64_Ehdr *h = (Elf64_Ehdr *)file;
	size_t n = size + N * sizeof(Elf64_Shdr);
	char *copy = xmalloc(n);
	struct object *o;
	Elf64_Shdr *dof = NULL, *s;
	uint32_t count;

	memcpy(copy, file, size);
	s = (Elf64_Shdr *)(copy + h->e_shoff);
	for (uint32_t i = 0; i < h->e_shnum; i++)
		if (s[i].sh_offset == DOF_AT)
			dof = &s[i];
	assert_non_null(dof);
	for (uint32_t i = 0; i < N; i++)
		memcpy(copy + size + i * sizeof(*s), i < h->e_shnum ? &s[i] : dof, sizeof(*s));
	h = (Elf64_Ehdr *)copy;
	h->e_shoff = size;
	h->e_shnum = N;
	o = open_bytes(copy, n);
	assert_non_null(o);
	(void)object_usdts(o, &count);
	assert_int_equal(count, 16 * 3);
	object_free(o);
	free(copy);
}

static void test_truncated(void **state)
{
	for (size_t n = DOF_AT; n < DOF_AT + DOF_SIZE; n += 7) {
		struct object *o = open_bytes(file, n);
		uint32_t count;

		if (o)
			(void)object_usdts(o, &count);
		object_free(o);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_probes),
		cmocka_unit_test(test_several),
		cmocka_unit_test(test_broken),
		cmocka_unit_test(test_questions),
		cmocka_unit_test(test_questions_shared),
		cmocka_unit_test(test_truncated),
		cmocka_unit_test(test_many),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
