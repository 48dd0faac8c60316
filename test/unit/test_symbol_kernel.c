/* Names from the kernel's own answers: their parsing, and that they equal those of kallsyms. */
#include "kernel_test.h"

#include "load/kernel/names.h"
#include "program/symbol/symbol_private.h"

static void test_parse(void **state)
{
	static const struct {
		const char *text, *module, *function;
		uint64_t offset;
	} good[] = {
		{ "vfs_read+0x10/0xd0", "vmlinux", "vfs_read", 0x10 },
		{ "_text+0x0/0x8", "vmlinux", "_text", 0 },
		{ "_etext+0x0/0x0", "vmlinux", "_etext", 0 },
		{ "ext4_iget+0x0/0x5a0 [ext4]", "ext4", "ext4_iget", 0 },
		{ "a+b+0x1/0x2 [m]", "m", "a+b", 1 },
		{ "bpf_prog_6deef7357e7b4530_names+0x2/0x40", "bpf",
		  "bpf_prog_6deef7357e7b4530_names", 2 },
		{ "bpf_prog_6deef7357e7b4530+0x2/0x40", "bpf", "bpf_prog_6deef7357e7b4530", 2 },
		{ "bpf_trampoline_6442536467+0x5/0x1000", "bpf", "bpf_trampoline_6442536467", 5 },
		{ "bpf_trampoline_link_prog+0x5/0x90", "vmlinux", "bpf_trampoline_link_prog", 5 },
		{ "bpf_prog_load+0x5/0x90", "vmlinux", "bpf_prog_load", 5 },
		{ "bpf__tcp_congestion_ops_init+0x5/0x90", "bpf", "bpf__tcp_congestion_ops_init",
		  5 },
	};
	static const char *const bad[] = {
		"",
		"+",
		"+0x1/0x2",
		"f",
		"f+",
		"f+0x",
		"f+0x1",
		"f+0x1/",
		"f+0x1/0x",
		"f+1/2",
		"f+0x1/0x2 ",
		"f+0x1/0x2 [",
		"f+0x1/0x2 []",
		"f+0x1/0x2 [m",
		"f+0x1/0x2[m]",
		"0xffff888003c0ffee",
		"(____ptrval____)",
		"_etext+0x1/0x8",
		"_einittext+0x10/0x8",
		"_end+0x4/0x8",
	};
	struct symbols *s = symbols_new();
	struct place p;

	for (uint32_t i = 0; i < ARRAY_SIZE(good); i++) {
		assert_true(answer_parse(s, good[i].text, &p));
		assert_string_equal(p.module, good[i].module);
		assert_string_equal(p.function, good[i].function);
		assert_true(p.offset == good[i].offset);
	}
	for (uint32_t i = 0; i < ARRAY_SIZE(bad); i++) {
		assert_false(answer_parse(s, bad[i], &p));
		assert_true(!p.module && !p.function && !p.offset);
	}
	symbols_free(s);
}

static void test_shows(void **state)
{
	static const char hidden[] = "0000000000000000 T _text\n0000000000000000 t f\n";
	static const char percpu[] = "0000000000000000 A fixed_percpu_data\n0000000000001000 A x\n";
	static const char cut[] = "0000000000000000 T _text\nffff";

	assert_false(kallsyms_shows("", 0));
	assert_false(kallsyms_shows(hidden, sizeof(hidden) - 1));
	assert_true(kallsyms_shows(percpu, sizeof(percpu) - 1));
	assert_false(kallsyms_shows(cut, sizeof(cut) - 1));
}

struct asked {
	uint32_t n;
	const char *answer;
};

static const char *ask(void *arg, uint64_t addr)
{
	struct asked *a = arg;

	a->n++;
	return a->answer;
}

/* Once for each address; never after a refusal. */
static void test_remembers(void **state)
{
	struct asked a = { .answer = "f+0x1/0x2" };
	struct symbols *s = symbols_new();
	struct place p;

	symbols_ask_kernel(s, ask, &a);
	s->answers.shown = true;
	for (uint32_t i = 0; i < 3; i++) {
		assert_true(symbols_kernel(s, 0x1000, &p));
		assert_string_equal(p.function, "f");
	}
	assert_int_equal(a.n, 1);
	for (uint64_t addr = 0; addr < 70000; addr++) /* more than are kept */
		assert_true(symbols_kernel(s, addr, &p));
	assert_true(s->answers.places.n < 70000);
	a.n = 0;
	a.answer = NULL;
	assert_false(answer_find(s, 1 << 20, &p));
	assert_false(answer_find(s, 2 << 20, &p));
	assert_int_equal(a.n, 1);
	symbols_free(s);
}

struct both {
	struct symbols *by_kernel, *by_kallsyms;
	struct kernel_names *names;
	uint64_t last;
	uint32_t seen, asked, nameless, bpf, padding, differ;
};

static void compare(struct both *b, uint64_t addr)
{
	struct place k, l;
	bool known = answer_find(b->by_kernel, addr, &k);

	b->asked++;
	if (!known) {
		assert_non_null(b->by_kernel->answers.ask);
		b->nameless++; /* kallsyms is read then */
		return;
	}
	b->bpf += !strcmp(k.module, "bpf");
	if (symbols_kernel(b->by_kallsyms, addr, &l) && !strcmp(k.module, l.module) &&
	    !strcmp(k.function, l.function) && k.offset == l.offset)
		return;
	/* Where a mark such as __sched_text_start precedes a function's padding, kallsyms.c uses
	 * the mark. */
	if (!strncmp(k.function, "__pfx_", 6) || !strncmp(k.function, "__cfi_", 6)) {
		b->padding++;
		return;
	}
	if (b->differ++ < 20)
		print_message("[  note  ] 0x%llx: %s`%s+0x%llx, by kallsyms %s`%s+0x%llx\n",
			      (unsigned long long)addr, k.module, k.function,
			      (unsigned long long)k.offset, l.module ? l.module : "",
			      l.function ? l.function : "", (unsigned long long)l.offset);
}

/* The start, the second byte, the middle and the last byte of every 7th function, and of all that
 * are not the kernel image's. */
static void each(void *arg, const char *module, const char *name, uint64_t addr)
{
	struct both *b = arg;
	uint64_t last = b->last;

	b->last = addr;
	if (b->seen++ % 7 && !strcmp(module, "vmlinux"))
		return;
	compare(b, addr);
	compare(b, addr + 1);
	if (last && addr - last < 1 << 20 && addr > last) {
		compare(b, last + (addr - last) / 2);
		compare(b, addr - 1);
	}
}

static void test_as_kallsyms(void **state)
{
	struct both b = { .by_kernel = symbols_new(),
			  .by_kallsyms = symbols_new(),
			  .names = kernel_names_new() };

	/* In this order: kallsyms lists the program that names. */
	const char *why = kernel_names_ask(b.names, 0) ? symbols_kernel_err(b.by_kallsyms)
						       : "this kernel does not say its names";

	if (why) {
		print_message("[  note  ] %s\n", why);
		symbols_free(b.by_kernel);
		symbols_free(b.by_kallsyms);
		kernel_names_free(b.names);
		skip();
	}
	symbols_ask_kernel(b.by_kernel, kernel_names_ask, b.names);
	symbols_kernel_each(b.by_kallsyms, each, &b);
	print_message(
		"[  note  ] %u addresses, %u of BPF programs; %u the kernel does not name, %u of "
		"padding differ, %u others\n",
		b.asked, b.bpf, b.nameless, b.padding, b.differ);
	assert_false(b.by_kernel->kernel.read);
	assert_true(b.asked > 1000);
	assert_true(b.nameless * 100 < b.asked);
	/* Programs and modules come and go meanwhile. */
	assert_true(b.padding * 1000 < b.asked && b.differ * 1000 < b.asked);
	assert_false(symbols_kernel(b.by_kernel, 0x1000, &(struct place){ 0 }));
	assert_true(b.by_kernel->kernel.read);
	symbols_free(b.by_kernel);
	symbols_free(b.by_kallsyms);
	kernel_names_free(b.names);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parse),
		cmocka_unit_test(test_shows),
		cmocka_unit_test(test_remembers),
		cmocka_unit_test(test_as_kallsyms),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
