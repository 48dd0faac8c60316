/* uprobe_classify() against known instructions, and against the running kernel: every instruction
 * form is placed in a file, mapped executable, and a uprobe is opened on it. Skips the kernel part
 * without privilege. */
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "base/io.h"
#include "base/mem.h"
#include "elf_make.h"
#include "program/object/object.h"
#include "unit.h"

struct known {
	const char *bytes;
	uint32_t len;
	enum uprobe_class class;
	uint32_t ins_len;
};

static const struct known known[] = {
	{ "\x90", 1, UPROBE_EMULATED, 1 },
	{ "\x66\x90", 2, UPROBE_EMULATED, 2 },
	{ "\x0f\x1f\x44\x00\x00", 5, UPROBE_NOP5, 5 },
	{ "\x0f\x1f\x40\x00", 4, UPROBE_EMULATED, 4 },
	{ "\x55", 1, UPROBE_EMULATED, 1 },
	{ "\x41\x57", 2, UPROBE_EMULATED, 2 },
	{ "\xeb\x10", 2, UPROBE_EMULATED, 2 },
	{ "\xe9\x10\x00\x00\x00", 5, UPROBE_EMULATED, 5 },
	{ "\xe8\x10\x00\x00\x00", 5, UPROBE_EMULATED, 5 },
	{ "\x74\x10", 2, UPROBE_EMULATED, 2 },
	{ "\x0f\x84\x10\x00\x00\x00", 6, UPROBE_EMULATED, 6 },
	{ "\xf3\x0f\x1e\xfa", 4, UPROBE_STEPPED, 4 }, /* endbr64 */
	{ "\x48\x83\xec\x08", 4, UPROBE_STEPPED, 4 }, /* sub $8,%rsp */
	{ "\x48\x89\xe5", 3, UPROBE_STEPPED, 3 },
	{ "\xc3", 1, UPROBE_STEPPED, 1 },
	{ "\x5d", 1, UPROBE_STEPPED, 1 },                     /* pop: not emulated */
	{ "\xff\x25\x10\x00\x00\x00", 6, UPROBE_STEPPED, 6 }, /* jmp *x(%rip) */
	{ "\xf0\xff\x0f", 3, UPROBE_REFUSED, 3 },             /* lock decl (%rdi) */
	{ "\x66\xe9\x10\x00\x00\x00", 6, UPROBE_REFUSED, 6 },
	{ "\xcc", 1, UPROBE_REFUSED, 1 },
	{ "\xf4", 1, UPROBE_REFUSED, 1 },
	{ "\xcd\x80", 2, UPROBE_REFUSED, 2 },
	/* instructions that the kernel accepts and runs as others: vpbroadcastb as jp, vzeroupper
	 * as ja, vcmpps as ret */
	{ "\x62\xe2\x7d\x28\x7a\xce", 6, UPROBE_REFUSED, 6 },
	{ "\xc5\xf8\x77", 3, UPROBE_REFUSED, 3 },
	{ "\xc5\xf8\xc2\xc1\x00", 5, UPROBE_REFUSED, 5 },
	{ "\xc5\xf8\x57\xc0", 4, UPROBE_STEPPED, 4 }, /* vxorps */
	{ "\x06", 1, UPROBE_REFUSED, 0 },
	{ "\x48\x8b", 2, UPROBE_REFUSED, 0 }, /* cut off */
	{ "", 0, UPROBE_REFUSED, 0 },
};

static void test_known(void **state)
{
	for (uint32_t i = 0; i < ARRAY_SIZE(known); i++) {
		const struct known *k = &known[i];
		const char *reason;
		uint32_t len;
		enum uprobe_class c =
			uprobe_classify((const uint8_t *)k->bytes, k->len, &len, &reason);

		if (c != k->class || len != k->ins_len)
			fail_msg("instruction %u: class %d length %u, expected %d %u", i, c, len,
				 k->class, k->ins_len);
		assert_int_equal(c == UPROBE_REFUSED, reason != NULL);
	}
}

enum { SLOT = 32, MAX_SLOTS = 4096 };

struct text {
	uint8_t *p;
	uint32_t n;
};

static void put(struct text *t, const char *prefix, uint32_t prefix_len, uint8_t op, uint8_t modrm)
{
	uint8_t *slot = t->p + t->n * SLOT;

	if (t->n == MAX_SLOTS)
		return;
	memset(slot, 0, SLOT);
	if (prefix_len)
		memcpy(slot, prefix, prefix_len);
	slot[prefix_len] = op;
	slot[prefix_len + 1] = modrm;
	t->n++;
}

static int uprobe_type(void)
{
	char *text;
	size_t n;
	struct err *e = io_read_file("/sys/bus/event_source/devices/uprobe/type", &text, &n);
	int type;

	if (e) {
		err_free(e);
		return -1;
	}
	type = atoi(text);
	free(text);
	return type;
}

/* 0 taken, else the errno. */
static int kernel_says(int type, const char *path, uint64_t offset)
{
	struct perf_event_attr a = { .size = sizeof(a), .type = (uint32_t)type };
	int fd;

	a.config1 = (uint64_t)(uintptr_t)path;
	a.config2 = offset;
	fd = (int)syscall(SYS_perf_event_open, &a, getpid(), -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0)
		return errno;
	close(fd);
	return 0;
}

enum { PROG_LOAD = 5, LINK_CREATE = 28, TYPE_KPROBE = 2, ATTACH_MULTI = 48 };

static int load_program(void)
{
	static const uint64_t insns[] = { 0xb7 /* r0 = 0 */, 0x95 /* exit */ };
	struct {
		uint32_t type, insn_cnt;
		uint64_t insns, license;
		uint32_t log_level, log_size;
		uint64_t log_buf;
		uint32_t kern_version, flags;
		char name[16];
		uint32_t ifindex, expected_attach_type;
	} a = {
		.type = TYPE_KPROBE,
		.insn_cnt = 2,
		.insns = (uintptr_t)insns,
		.license = (uintptr_t) "GPL",
		.expected_attach_type = ATTACH_MULTI,
	};

	return (int)syscall(SYS_bpf, PROG_LOAD, &a, sizeof(a));
}

/* One multi link over n offsets: 0, or the errno. */
static int multi_says(int prog, const char *path, const uint64_t *offsets, uint32_t n)
{
	struct {
		uint32_t prog, target, type, flags;
		uint64_t path, offsets, ref_ctr, cookies;
		uint32_t n, multi_flags, pid, pad;
	} a = {
		.prog = (uint32_t)prog,
		.type = ATTACH_MULTI,
		.path = (uintptr_t)path,
		.offsets = (uintptr_t)offsets,
		.n = n,
		.pid = (uint32_t)getpid(),
	};
	int fd = (int)syscall(SYS_bpf, LINK_CREATE, &a, sizeof(a));

	if (fd < 0)
		return errno;
	close(fd);
	return 0;
}

/* Finds and prints the offsets the kernel refuses. */
static void bisect(int prog, const char *path, const uint8_t *text, const uint64_t *offsets,
		   uint32_t n)
{
	const uint8_t *c = text + offsets[0];

	if (!n || !multi_says(prog, path, offsets, n))
		return;
	if (n == 1) {
		print_message("%02x %02x %02x %02x %02x: taken by descry, refused by the kernel\n",
			      c[0], c[1], c[2], c[3], c[4]);
		return;
	}
	bisect(prog, path, text, offsets, n / 2);
	bisect(prog, path, text, offsets + n / 2, n - n / 2);
}

static void test_kernel(void **state)
{
	static const struct {
		const char *bytes;
		uint32_t len;
	} prefixes[] = {
		{ "", 0 },
		{ "\x66", 1 },
		{ "\xf2", 1 },
		{ "\xf3", 1 },
		{ "\xf0", 1 },
		{ "\x2e", 1 },
		{ "\x64", 1 },
		{ "\x48", 1 },
		{ "\x0f", 1 },
		{ "\x66\x0f", 2 },
		{ "\xf3\x0f", 2 },
		{ "\x0f\x38", 2 },
		{ "\xc5\xfe", 2 },
		{ "\xc5\xf8", 2 },
		{ "\xc4\xe2\x79", 3 },
		{ "\x62\xf1\x7c\x48", 4 },
	};
	/* Closing a perf uprobe waits 90 ms for the kernel, so only these refusals are checked one
	 * by one. */
	static const uint32_t lone[] = { 0x006, 0x0cc, 0x0f4, 0x4ff, 0x48f,
					 0x501, 0x0fa, 0xc6f, 0x0cd, 0x1e9 };
	char path[] = "/tmp/test_uprobe_class.XXXXXX";
	struct text t = { .p = xcalloc(MAX_SLOTS, SLOT) };
	uint64_t *taken = xcalloc(MAX_SLOTS, sizeof(*taken));
	int type = uprobe_type(), prog = load_program(), fd, code;
	uint32_t ntaken = 0;
	void *map;

	for (uint32_t p = 0; p < ARRAY_SIZE(prefixes); p++)
		for (uint32_t op = 0; op < 256; op++)
			put(&t, prefixes[p].bytes, prefixes[p].len, (uint8_t)op,
			    (op & 1) ? 0x07 : 0xd1);
	fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_true(write(fd, t.p, (size_t)t.n * SLOT) == (ssize_t)t.n * SLOT);
	close(fd);
	fd = open(path, O_RDONLY);
	map = mmap(NULL, (size_t)t.n * SLOT, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	assert_true(map != MAP_FAILED);
	close(fd);
	for (uint32_t i = 0; i < t.n; i++) {
		const char *reason;
		uint32_t len;

		if (uprobe_classify(t.p + i * SLOT, 16, &len, &reason) != UPROBE_REFUSED)
			taken[ntaken++] = (uint64_t)i * SLOT;
	}
	assert_true(ntaken > 1500);
	code = prog < 0 ? EPERM : multi_says(prog, path, &(uint64_t){ 0x90 * SLOT }, 1);
	if (code) {
		print_message("[  note  ] no uprobe_multi here (%s): kernel comparison skipped\n",
			      strerror(code));
	} else {
		code = multi_says(prog, path, taken, ntaken);
		if (code)
			bisect(prog, path, t.p, taken, ntaken);
		for (uint32_t i = 0; type >= 0 && i < ARRAY_SIZE(lone); i++) {
			const char *reason;
			uint32_t len;

			assert_int_equal(uprobe_classify(t.p + lone[i] * SLOT, 16, &len, &reason),
					 UPROBE_REFUSED);
			if (!kernel_says(type, path, (uint64_t)lone[i] * SLOT))
				fail_msg("the kernel takes slot %x", lone[i]);
		}
	}
	unlink(path);
	munmap(map, (size_t)t.n * SLOT);
	free(t.p);
	free(taken);
	if (prog < 0)
		skip();
	close(prog);
	assert_int_equal(code, 0);
}

/* The bytes that are decoded to find uses of the red zone have a limit for all files. */
static void test_red_zone(void **state)
{
	static const struct elf_symbol symbols[] = {
		{ "nops", ELF_TEXT_ADDR, 0x40, STT_FUNC | STB_GLOBAL << 4 },
	};
	struct elf_make e = elf_make(symbols, 1, 0);
	uint64_t read = 0;
	struct object *o;

	for (uint64_t k = 0; k < 2; k++) {
		assert_null(object_open_memory("nops", e.image, e.size, &o));
		assert_int_equal(object_uses_red_zone(o, ELF_TEXT_ADDR, &read), k);
		assert_int_equal(read, k ? OBJECT_RED_ZONE_READ_MAX + 1 : 0x40);
		object_free(o);
		read = OBJECT_RED_ZONE_READ_MAX + 1;
	}
	free(e.image);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_known),
		cmocka_unit_test(test_kernel),
		cmocka_unit_test(test_red_zone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
