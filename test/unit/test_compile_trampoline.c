/* Programs for BPF trampolines (fentry, fexit): that they are made beside those for kprobes and for
 * how many, and that both compute the same from their contexts - a struct pt_regs there, the
 * arguments and the result as words here.
 */
#include "unit.h"

#include "bind_run.h"
#include "compile/gen/gen.h"
#include "isa/interp.h"
#include "wire/wire_record.h"

enum { READ_KERNEL = 113, FUNC_ARG = 183, FUNC_RET = 184, GET_STACK = 67, ATTACH_COOKIE = 174 };
enum { NARGS = 9, NGLOBALS = 8 };

static uint32_t limit;

static uint32_t fentry_max(struct type_graph *types, const struct options *options)
{
	return limit;
}

/* Simulates a kernel without kprobes that allows trampolines. fbt then works on every machine. */
static const char *no_refusal(struct type_graph *types)
{
	return NULL;
}

struct compiled {
	struct bind_run r;
	struct image *img;
};

static void compile(struct compiled *c, const char *text, uint32_t max)
{
	struct compile_target target = { .task_btf = true, .fentry_max = fentry_max };

	if (!have_kernel_types())
		skip();
	limit = max;
	bind_run_open(&c->r, NULL);
	if (symbols_kernel_err(c->r.symbols)) {
		bind_run_fini(&c->r);
		skip();
	}
	c->r.probes.fentry_refusal = no_refusal;
	bind_run_text(&c->r, "trampoline.d", text);
	assert_int_equal(c->r.diags.errors, 0);
	c->img = compile_image(c->r.bound, c->r.types, &c->r.diags, &c->r.options, &target, NULL);
	assert_non_null(c->img);
}

static void compiled_fini(struct compiled *c)
{
	image_free(c->img);
	bind_run_fini(&c->r);
}

static const struct image_prog *prog_of(const struct compiled *c, enum attach_kind attach)
{
	for (uint32_t i = 0; i < c->img->nprogs; i++)
		if (c->img->progs[i].attach == attach)
			return &c->img->progs[i];
	return NULL;
}

static void test_beside_kprobes(void **state)
{
	struct compiled c;
	const struct image_prog *k, *f;

	(void)state;
	compile(&c, "fbt::vfs_read:entry, fbt::vfs_write:entry { @ = count(); }", 2);
	k = prog_of(&c, ATTACH_KPROBE);
	f = prog_of(&c, ATTACH_FENTRY);
	assert_non_null(k);
	assert_non_null(f);
	assert_ptr_equal(&c.img->progs[k->fentry], f);
	assert_int_equal(f->fentry, 0);
	assert_int_equal(k->nprobes, 2);
	assert_int_equal(f->nprobes, 2);
	compiled_fini(&c);

	compile(&c, "fbt::vfs_read:return { @ = count(); }", 2);
	k = prog_of(&c, ATTACH_KRETPROBE);
	assert_ptr_equal(&c.img->progs[k->fentry], prog_of(&c, ATTACH_FEXIT));
	compiled_fini(&c);
}

/* Of the functions of one program, trampolines get those that can have one. */
static void test_some(void **state)
{
	const struct image_prog *k, *f;
	struct compiled c;

	(void)state;
	compile(&c, "fbt::do_exit:return, fbt::vfs_read:return { n = pid; }", 2);
	k = prog_of(&c, ATTACH_KRETPROBE);
	f = prog_of(&c, ATTACH_FEXIT);
	assert_non_null(k);
	assert_non_null(f);
	assert_int_equal(f->nprobes, 1);
	assert_string_equal(c.img->probes[f->probes[0]].func, "vfs_read");
	compiled_fini(&c);

	compile(&c, "fbt::do_exit:return { n = pid; }", 2);
	assert_null(prog_of(&c, ATTACH_FEXIT));
	assert_int_equal(prog_of(&c, ATTACH_KRETPROBE)->fentry, 0);
	compiled_fini(&c);
}

static void test_too_many(void **state)
{
	struct compiled c;

	(void)state;
	compile(&c, "fbt::vfs_read: { } fbt::vfs_write:entry { }", 2);
	assert_null(prog_of(&c, ATTACH_FENTRY));
	assert_null(prog_of(&c, ATTACH_FEXIT));
	assert_int_equal(prog_of(&c, ATTACH_KPROBE)->fentry, 0);
	compiled_fini(&c);
	compile(&c, "fbt::vfs_read: { } fbt::vfs_write:entry { }", 3);
	assert_non_null(prog_of(&c, ATTACH_FENTRY));
	assert_non_null(prog_of(&c, ATTACH_FEXIT));
	compiled_fini(&c);
	compile(&c, "fbt::vfs_read:entry { }", 0);
	assert_null(prog_of(&c, ATTACH_FENTRY));
	compiled_fini(&c);
}

/* --- contexts --- */

struct machine {
	const struct compiled *c;
	const struct image_prog *prog;
	const uint64_t *args;
	uint64_t result;
	uint64_t globals[NGLOBALS];
	struct wire_state state;
};

static uint64_t helper(struct interp *in, uint32_t id, const uint64_t a[5])
{
	struct machine *m = in->arg;
	uint64_t *to;

	switch (id) {
	case READ_KERNEL:
		memcpy(interp_bytes(in, a[0], a[1], true), interp_bytes(in, a[2], a[1], false),
		       a[1]);
		return 0;
	case FUNC_ARG:
		to = interp_bytes(in, a[2], 8, true);
		*to = m->args[a[1]];
		return 0;
	case FUNC_RET:
		to = interp_bytes(in, a[1], 8, true);
		*to = m->result;
		return 0;
	}
	interp_fail(in, "helper %u", id);
	return 0;
}

static bool resolve(struct interp *in, const struct bpf_insn *insn, uint64_t *ret)
{
	struct machine *m = in->arg;

	for (uint32_t i = 0; i < m->prog->nrelocs; i++) {
		const struct reloc *r = &m->prog->relocs[i];

		if (r->insn != (uint32_t)(insn - in->insns) || r->kind != RELOC_MAP_VALUE)
			continue;
		*ret = (m->c->img->maps[r->target].role == MAP_STATE ? (uintptr_t)&m->state
								     : (uintptr_t)m->globals) +
		       (uint64_t)r->addend;
		return true;
	}
	return false;
}

static bool no_load(struct interp *in, uint64_t addr, uint32_t size, uint64_t *ret)
{
	return false;
}

/* Fires it once for a function that is called with args, on the stack from the seventh on, and
 * gives result. */
static void fire(const struct compiled *c, const struct image_prog *prog, const uint64_t *args,
		 uint64_t result, uint64_t globals[NGLOBALS])
{
	static const uint8_t regs_of[] = {
		UREG_RDI, UREG_RSI, UREG_RDX, UREG_RCX, UREG_R8, UREG_R9
	};
	static const struct interp_ops ops = { helper, resolve, no_load };
	struct machine m = { .c = c, .prog = prog, .args = args, .result = result };
	uint64_t regs[UREG_COUNT], stack[1 + NARGS] = { 0 }, words[NARGS + 1] = { 0 }, r0;
	bool by_kprobe = prog->attach == ATTACH_KPROBE || prog->attach == ATTACH_KRETPROBE;
	struct interp_mem mem = { 0 };
	struct interp in;
	struct err *e;

	memset(regs, 0xee, sizeof(regs));
	for (uint32_t i = 0; i < ARRAY_SIZE(regs_of); i++)
		regs[regs_of[i]] = args[i];
	memcpy(stack + 1, args + ARRAY_SIZE(regs_of), (NARGS - 6) * sizeof(*stack));
	regs[UREG_RSP] = (uintptr_t)stack;
	regs[UREG_RAX] = result;
	m.state.active = WIRE_ON;
	/* The words must be read by helpers: their own contents must not be in the result. */
	interp_mem_add(&mem, by_kprobe ? (void *)regs : (void *)words,
		       by_kprobe ? sizeof(regs) : sizeof(words), false);
	interp_mem_add(&mem, stack, sizeof(stack), false);
	interp_mem_add(&mem, m.globals, sizeof(m.globals), true);
	interp_mem_add(&mem, &m.state, sizeof(m.state), true);
	interp_init(&in, &ops, &m, prog->insns, prog->ninsns, &mem);
	in.budget = 10000;
	e = interp_run(&in, 0, by_kprobe ? (uintptr_t)regs : (uintptr_t)words, &r0);
	if (e)
		fail_msg("%s: %s", prog->name, e->text);
	interp_fini(&in);
	interp_mem_fini(&mem);
	memcpy(globals, m.globals, sizeof(m.globals));
}

/* The program's globals are want[], however it is fired. */
static void assert_computes(const char *text, const uint64_t *args, uint64_t result,
			    const int64_t *want, uint32_t n)
{
	uint64_t globals[NGLOBALS];
	struct compiled c;
	uint32_t fired = 0;

	compile(&c, text, 1);
	for (uint32_t p = 0; p < c.img->nprogs; p++) {
		fire(&c, &c.img->progs[p], args, result, globals);
		for (uint32_t i = 0; i < n; i++)
			if ((int64_t)globals[i] != want[i])
				fail_msg("%s: global %u is %lld, not %lld", c.img->progs[p].name, i,
					 (long long)globals[i], (long long)want[i]);
		fired++;
	}
	assert_int_equal(fired, 2);
	compiled_fini(&c);
}

static void test_arguments(void **state)
{
	const uint64_t args[NARGS] = { 0xffff888000001000, 2, 7, 0xffff888000002000, 5, 6 };
	const int64_t want[] = { (int64_t)args[0], 7, 7, (int64_t)args[3] + 1, 0 };

	(void)state;
	assert_computes("int64_t a, b, c, d, e;"
			"fbt::vfs_read:entry { a = arg0; b = arg2; c = args[2];"
			" d = (int64_t)args[3] + 1; e = arg5; }",
			args, 0, want, ARRAY_SIZE(want));
}

/* A narrow integer fills the low part of its word. */
static void test_narrow(void **state)
{
	const uint64_t args[NARGS] = { 0xdeadbeefffffff9c, 0, 0, 0x1234567800000100 };
	const int64_t want[] = { -100, -100, 256 };

	(void)state;
	assert_computes("int64_t a, b, c;"
			"fbt::vfs_fstatat:entry { a = arg0; b = args[0]; c = args[3]; }",
			args, 0, want, ARRAY_SIZE(want));
}

static void test_result(void **state)
{
	const uint64_t args[NARGS] = { 1, 2, 3, 4 };
	const int64_t want[] = { 0, -2, -2 };

	(void)state;
	assert_computes(
		"int64_t a, b, c; fbt::vfs_fstatat:return { a = arg0; b = arg1; c = args[1]; }",
		args, 0x77777777fffffffe, want, ARRAY_SIZE(want));
}

static void test_on_the_stack(void **state)
{
	const uint64_t args[NARGS] = { 1, 2, 3, 4, 5, 6, 70, 80, 90 };
	const int64_t want[] = { 6, 70, 80, 80 };

	(void)state;
	assert_computes("int64_t a, b, c, d; fbt::do_mmap:entry { a = arg5; b = arg6; c = arg7;"
			" d = (int64_t)args[7]; }",
			args, 0, want, ARRAY_SIZE(want));
}

/* The flags of the program's first bpf_get_stack(): how many frames are left out. */
static int32_t skipped(const struct image_prog *p)
{
	int32_t flags = -1;

	for (uint32_t i = 0; i < p->ninsns; i++) {
		const struct bpf_insn *in = &p->insns[i];

		if (in->code == (BPF_ALU64 | BPF_MOV | BPF_K) && in->dst_reg == BPF_REG_4)
			flags = in->imm;
		if (in->code == (BPF_JMP | BPF_CALL) && !in->src_reg && in->imm == GET_STACK)
			return flags;
	}
	return -1;
}

static void test_stack_frames(void **state)
{
	struct compiled c;

	(void)state;
	compile(&c, "fbt::vfs_read: { stack(); }", 2);
	assert_int_equal(skipped(prog_of(&c, ATTACH_KPROBE)), 0);
	assert_int_equal(skipped(prog_of(&c, ATTACH_KRETPROBE)), 0);
	assert_int_equal(skipped(prog_of(&c, ATTACH_FENTRY)), 2);
	assert_int_equal(skipped(prog_of(&c, ATTACH_FEXIT)), 3);
	compiled_fini(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_beside_kprobes), cmocka_unit_test(test_some),
		cmocka_unit_test(test_too_many),       cmocka_unit_test(test_arguments),
		cmocka_unit_test(test_narrow),         cmocka_unit_test(test_result),
		cmocka_unit_test(test_on_the_stack),   cmocka_unit_test(test_stack_frames),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
