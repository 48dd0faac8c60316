/* The linker: properties of a linked program, without loading it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <linux/btf.h>

#include "base/mem.h"
#include "load/link.h"
#include "wire/routines.h"

#define INS(c, d, s, o, i) \
	((struct bpf_insn){ .code = (c), .dst_reg = (d), .src_reg = (s), .off = (o), .imm = (i) })
#define CALL_SOMETHING INS(BPF_JMP | BPF_CALL, 0, 0, 0, -1)
#define LD64(d) INS(BPF_LD | BPF_IMM | BPF_DW, d, 0, 0, 0), INS(0, 0, 0, 0, 0)
#define RET0 INS(BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, 0), INS(BPF_JMP | BPF_EXIT, 0, 0, 0, 0)

static int32_t hook_map(void *arg, uint32_t index)
{
	return 100 + (int32_t)index;
}

static const struct link_hooks hooks = { .map = hook_map };

#define assert_ok(expr) \
	do { \
		struct err *e_ = (expr); \
		if (e_) \
			fail_msg("%s", e_->text); \
	} while (0)

static bool is_ld64(const struct bpf_insn *i)
{
	return i->code == (BPF_LD | BPF_IMM | BPF_DW);
}

/* Every function ends in exit or a jump, every call and callback names the start of one, every
 * one but the first is named by some, and BTF has a static FUNC for each with its name. */
static void check(struct linked *l)
{
	assert_null(l->btf);
	linked_types(l);

	bool *named = xcalloc(l->nfuncs, sizeof(bool));
	const struct btf_header *h = l->btf;
	const char *str = (const char *)l->btf + h->hdr_len + h->str_off;

	assert_true(l->nfuncs >= 1);
	assert_int_equal(l->funcs[0].start, 0);
	named[0] = true;
	for (uint32_t i = 0; i < l->ninsns; i++) {
		const struct bpf_insn *ins = &l->insns[i];
		bool call = ins->code == (BPF_JMP | BPF_CALL) && ins->src_reg == BPF_PSEUDO_CALL;
		bool address = is_ld64(ins) && ins->src_reg == BPF_PSEUDO_FUNC;
		bool found = false;

		for (uint32_t f = 0; (call || address) && f < l->nfuncs; f++)
			if (l->funcs[f].start == i + (uint32_t)ins->imm + 1)
				found = named[f] = true;
		if (call || address)
			assert_true(found);
		if (is_ld64(ins))
			i++;
	}
	for (uint32_t f = 0; f < l->nfuncs; f++) {
		uint32_t end = f + 1 < l->nfuncs ? l->funcs[f + 1].start : l->ninsns;

		assert_true(named[f]);
		assert_true(l->funcs[f].start < end);
		uint8_t last = l->insns[end - 1].code;
		assert_true(last == (BPF_JMP | BPF_EXIT) || last == (BPF_JMP | BPF_JA));
		assert_int_equal(l->func_info[f].insn_off, l->funcs[f].start);
		assert_int_equal(l->func_info[f].type_id, l->funcs[f].btf_id);
	}
	free(named);

	/* Walk the types up to each function's id. */
	assert_int_equal(h->magic, BTF_MAGIC);
	assert_int_equal(h->hdr_len + h->str_off + h->str_len, l->btf_size);
	uint32_t id = 1, found = 0;
	const uint8_t *p = (const uint8_t *)l->btf + h->hdr_len + h->type_off,
		      *end = p + h->type_len;

	for (; p < end; id++) {
		const struct btf_type *t = (const void *)p;
		uint32_t vlen = BTF_INFO_VLEN(t->info);
		static const uint32_t fixed[] = { [BTF_KIND_INT] = 4,
						  [BTF_KIND_ARRAY] = 12,
						  [BTF_KIND_VAR] = 4,
						  [BTF_KIND_DECL_TAG] = 4 };
		static const uint32_t each[] = {
			[BTF_KIND_STRUCT] = 12,    [BTF_KIND_UNION] = 12,   [BTF_KIND_ENUM] = 8,
			[BTF_KIND_FUNC_PROTO] = 8, [BTF_KIND_DATASEC] = 12, [BTF_KIND_ENUM64] = 12
		};
		uint32_t kind = BTF_INFO_KIND(t->info);

		for (uint32_t f = 0; f < l->nfuncs; f++) {
			if (l->funcs[f].btf_id != id)
				continue;
			assert_int_equal(kind, BTF_KIND_FUNC);
			assert_int_equal(vlen, BTF_FUNC_STATIC);
			assert_string_equal(str + t->name_off, l->funcs[f].name);
			found++;
		}
		if (kind == BTF_KIND_FUNC)
			assert_int_equal(vlen, BTF_FUNC_STATIC);
		p += sizeof(*t) + (kind < ARRAY_SIZE(fixed) ? fixed[kind] : 0);
		if (kind != BTF_KIND_FUNC)
			p += (size_t)vlen * (kind < ARRAY_SIZE(each) ? each[kind] : 0);
	}
	assert_ptr_equal(p, end);
	assert_int_equal(found, l->nfuncs);
}

static void test_plain(void **state)
{
	struct bpf_insn insns[] = { RET0 };
	struct image_prog p = { .name = "syscall:entry 1", .insns = insns, .ninsns = 2 };
	struct linked l;

	assert_ok(link_prog(&p, &hooks, &l));
	check(&l);
	assert_int_equal(l.ninsns, 2);
	assert_int_equal(l.nown, 2);
	assert_int_equal(l.nfuncs, 1);
	assert_string_equal(l.funcs[0].name, "syscall_entry_1");
	linked_free(&l);
}

static void test_relocations(void **state)
{
	struct bpf_insn insns[] = { LD64(1), LD64(2), RET0 };
	struct reloc relocs[] = {
		{ .insn = 0, .kind = RELOC_MAP, .target = 3 },
		{ .insn = 2, .kind = RELOC_MAP_VALUE, .target = 5, .addend = 48 },
	};
	struct image_prog p = { .name = "p",
				.insns = insns,
				.ninsns = ARRAY_SIZE(insns),
				.relocs = relocs,
				.nrelocs = ARRAY_SIZE(relocs) };
	struct linked l;

	assert_ok(link_prog(&p, &hooks, &l));
	check(&l);
	assert_int_equal(l.insns[0].src_reg, BPF_PSEUDO_MAP_FD);
	assert_int_equal(l.insns[0].imm, 103);
	assert_int_equal(l.insns[1].imm, 0);
	assert_int_equal(l.insns[2].src_reg, BPF_PSEUDO_MAP_VALUE);
	assert_int_equal(l.insns[2].imm, 105);
	assert_int_equal(l.insns[3].imm, 48);
	/* The image is as it was. */
	assert_int_equal(insns[0].imm, 0);
	linked_free(&l);
}

enum { BPF_STACK = 512, PROGRAM_STACK = 192 };

/* Returns the bytes of stack of a function and of those that it calls, as the verifier adds them up
 * before Linux 6.13: 32 bytes or a multiple for each. */
static uint32_t stack_size(const struct linked *l, uint32_t f, uint32_t level)
{
	uint32_t end = f + 1 < l->nfuncs ? l->funcs[f + 1].start : l->ninsns;
	int32_t own = 1, below = 0;
	bool is_address[11] = { false };

	assert_true(level < l->nfuncs);
	for (uint32_t i = l->funcs[f].start; i < end; i++) {
		const struct bpf_insn *ins = &l->insns[i];
		uint8_t class = BPF_CLASS(ins->code);
		bool call = ins->code == (BPF_JMP | BPF_CALL) && ins->src_reg == BPF_PSEUDO_CALL;
		bool address = is_ld64(ins) && ins->src_reg == BPF_PSEUDO_FUNC;

		if ((class == BPF_LDX && ins->src_reg == 10) ||
		    ((class == BPF_ST || class == BPF_STX) && ins->dst_reg == 10))
			own = -ins->off > own ? -ins->off : own;
		if (ins->code == (BPF_ALU64 | BPF_ADD | BPF_K) && is_address[ins->dst_reg])
			own = -ins->imm > own ? -ins->imm : own;
		if (class == BPF_ALU64)
			is_address[ins->dst_reg] = ins->src_reg == 10;
		for (uint32_t g = 1; (call || address) && g < l->nfuncs; g++)
			if (l->funcs[g].start == i + (uint32_t)ins->imm + 1) {
				int32_t size = (int32_t)stack_size(l, g, level + 1);

				below = size > below ? size : below;
			}
		if (is_ld64(ins))
			i++;
	}
	return (uint32_t)((own + 31) / 32 * 32 + below);
}

/* Every routine links, alone, with its callbacks, once; and leaves a program its stack. */
static void test_routines(void **state)
{
	static const char *const names[] = {
#define X(name, n, what) #name,
		WIRE_ROUTINES(X)
#undef X
	};
	struct bpf_insn insns[] = { CALL_SOMETHING, CALL_SOMETHING, RET0 };
	struct linked l;

	for (uint32_t i = 0; i < ARRAY_SIZE(names); i++) {
		struct reloc relocs[] = { { .insn = 0, .kind = RELOC_ROUTINE, .name = names[i] },
					  { .insn = 1, .kind = RELOC_ROUTINE, .name = names[i] } };
		struct image_prog p = {
			.name = "p", .insns = insns, .ninsns = 4, .relocs = relocs, .nrelocs = 2
		};

		assert_ok(link_prog(&p, &hooks, &l));
		check(&l);
		assert_int_equal(l.insns[0].imm, l.insns[1].imm + 1);
		assert_int_equal(l.nown, 4);
		uint32_t times = 0;
		for (uint32_t f = 0; f < l.nfuncs; f++)
			times += !strcmp(l.funcs[f].name, names[i]);
		assert_int_equal(times, 1);
		uint32_t size = 0;
		for (uint32_t f = 1; f < l.nfuncs; f++)
			size = stack_size(&l, f, 0) > size ? stack_size(&l, f, 0) : size;
		if (!size || size > BPF_STACK - PROGRAM_STACK)
			fail_msg("%s needs %u bytes of stack", names[i], size);
		linked_free(&l);
	}
	/* All in one program: shared callbacks are there once. */
	struct bpf_insn all[ARRAY_SIZE(names) + 2];
	struct reloc relocs[ARRAY_SIZE(names)];

	for (uint32_t i = 0; i < ARRAY_SIZE(names); i++) {
		all[i] = CALL_SOMETHING;
		relocs[i] = (struct reloc){ .insn = i, .kind = RELOC_ROUTINE, .name = names[i] };
	}
	memcpy(all + ARRAY_SIZE(names), insns + 2, sizeof(*insns) * 2);
	struct image_prog p = { .name = "all",
				.insns = all,
				.ninsns = ARRAY_SIZE(all),
				.relocs = relocs,
				.nrelocs = ARRAY_SIZE(names) };

	assert_ok(link_prog(&p, &hooks, &l));
	check(&l);
	for (uint32_t f = 0; f < l.nfuncs; f++)
		for (uint32_t g = 0; g < f; g++)
			assert_string_not_equal(l.funcs[f].name, l.funcs[g].name);
	linked_free(&l);
}

static void test_errors(void **state)
{
	struct bpf_insn insns[] = { LD64(1), CALL_SOMETHING, RET0 };
	struct reloc unknown_routine = { .insn = 2, .kind = RELOC_ROUTINE, .name = "d_no_such" };
	struct image_prog p = { .name = "p",
				.insns = insns,
				.ninsns = ARRAY_SIZE(insns),
				.relocs = &unknown_routine,
				.nrelocs = 1 };
	struct linked l;
	struct err *e = link_prog(&p, &hooks, &l);

	assert_non_null(e);
	assert_non_null(strstr(e->text, "d_no_such"));
	err_free(e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plain),
		cmocka_unit_test(test_relocations),
		cmocka_unit_test(test_routines),
		cmocka_unit_test(test_errors),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
