/* Provider fbt: arguments from BTF prototypes anywhere; matching where this kernel lets functions
 * be traced, else the reason. */
#include "unit.h"

#include <string.h>
#include <unistd.h>

#include <linux/btf.h>

#include "probe/fbt.h"
#include "probe/fentry.h"
#include "probe/probe.h"

struct world {
	struct type_graph *types;
	struct symbols *symbols;
	struct probe_set ps;
};

static int setup(void **state)
{
	struct world *w;

	*state = NULL;
	if (access("/sys/kernel/btf/vmlinux", R_OK))
		return 0;
	w = xcalloc(1, sizeof(*w));
	w->types = type_graph_new();
	type_use_kernel(w->types, NULL);
	w->symbols = symbols_new();
	probe_set_init(&w->ps, w->types, w->symbols);
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;

	if (!w)
		return 0;
	probe_set_fini(&w->ps);
	symbols_free(w->symbols);
	type_graph_free(w->types);
	free(w);
	return 0;
}

static struct world *world(void **state)
{
	if (!*state)
		skip();
	return *state;
}

/* A probe as matching would make it, whether or not this kernel can fire it. */
static void get_args(struct world *w, const char *func, bool ret, struct probe_args *args)
{
	struct probe *p = probe_add(&w->ps, &provider_fbt, 1, "fbt", "vmlinux", func,
				    ret ? "return" : "entry", NULL);

	p->kind = ret ? ATTACH_KRETPROBE : ATTACH_KPROBE;
	assert_null(probe_args(&w->ps, p, args));
}

static void assert_type(struct world *w, const struct probe_arg *a, const char *type)
{
	assert_string_equal(type_name(w->types, &w->ps.arena, a->type, NULL), type);
}

static void test_entry_args(void **state)
{
	struct world *w = world(state);
	struct probe_args a;

	get_args(w, "vfs_read", false, &a);
	assert_true(a.known);
	assert_int_equal(a.ntyped, 4);
	assert_type(w, &a.typed[0], "struct file *");
	assert_type(w, &a.typed[2], "size_t");
	assert_type(w, &a.typed[3], "loff_t *");
	assert_int_equal(a.arg[0].source, ARG_REG);
	assert_int_equal(a.arg[0].value, UREG_RDI);
	assert_int_equal(a.arg[3].value, UREG_RCX);
	assert_int_equal(a.arg[4].source, ARG_NONE);
}

static void test_narrow_and_negative(void **state)
{
	struct world *w = world(state);
	struct probe_args a;

	/* int vfs_fstatat(int dfd, const char *, struct kstat *, int flags) */
	get_args(w, "vfs_fstatat", false, &a);
	assert_int_equal(a.arg[0].source, ARG_USDT);
	assert_int_equal(a.arg[0].usdt.mode, USDT_REG);
	assert_int_equal(a.arg[0].usdt.base, UREG_RDI);
	assert_int_equal(a.arg[0].usdt.size, -4);
	get_args(w, "vfs_fstatat", true, &a);
	assert_int_equal(a.ntyped, 2);
	assert_int_equal(a.arg[0].source, ARG_CONST);
	assert_int_equal(a.arg[1].usdt.base, UREG_RAX);
	assert_int_equal(a.arg[1].usdt.size, -4);
	assert_type(w, &a.typed[1], "int");
}

static void test_stack_args(void **state)
{
	struct world *w = world(state);
	struct probe_args a;

	get_args(w, "do_mmap", false, &a);
	assert_true(a.ntyped >= 8);
	assert_int_equal(a.arg[5].source == ARG_REG || a.arg[5].usdt.mode == USDT_REG, true);
	assert_int_equal(a.arg[6].source, ARG_USDT);
	assert_int_equal(a.arg[6].usdt.mode, USDT_MEM);
	assert_int_equal(a.arg[6].usdt.base, UREG_RSP);
	assert_int_equal(a.arg[6].usdt.disp, 8);
	assert_int_equal(a.arg[7].usdt.disp, 16);
}

static void test_without_prototype(void **state)
{
	struct world *w = world(state);
	struct probe_args a;

	get_args(w, "vfs_read.part.0", false, &a);
	assert_false(a.known);
	assert_int_equal(a.ntyped, 0);
	assert_int_equal(a.arg[5].value, UREG_R9);
	assert_int_equal(a.arg[9].usdt.disp, 32);
	get_args(w, "no_such_function", true, &a);
	assert_false(a.known);
	assert_int_equal(a.arg[1].value, UREG_RAX);
}

static const char *refusal(struct world *w, const char *mod, const char *func, bool ret,
			   uint32_t nplaces, struct fentry_target *t)
{
	struct probe p = { .mod = mod,
			   .func = func,
			   .kind = ret ? ATTACH_KRETPROBE : ATTACH_KPROBE,
			   .naddrs = nplaces };

	return fentry_refusal(w->types, &p, t);
}

static void test_trampolines(void **state)
{
	struct world *w = world(state);
	struct fentry_target t = { 0 }, other = { 0 };
	struct probe sdt = { .mod = "vmlinux", .func = "vfs_read", .kind = ATTACH_RAW_TP };
	uint32_t id;

	assert_null(refusal(w, "vmlinux", "vfs_read", false, 1, &t));
	assert_true(type_kernel_btf_id(w->types, BTF_KIND_FUNC, "vfs_read", &id));
	assert_int_equal(t.btf_id, id);
	assert_null(t.module);
	assert_int_equal(t.nargs, 4);
	assert_null(refusal(w, "vmlinux", "vfs_read", true, 1, &other));
	assert_int_equal(other.btf_id, id);
	/* More than six arguments: newer kernels take them. */
	assert_null(refusal(w, "vmlinux", "do_mmap", false, 1, &t));
	assert_true(t.nargs > FENTRY_REG_ARGS);

	assert_string_equal(refusal(w, "vmlinux", "vfs_read", false, 2, &t),
			    "several functions have this name");
	assert_string_equal(refusal(w, "vmlinux", "vfs_read.part.0", false, 1, &t),
			    "the compiler has changed its parameters");
	assert_string_equal(refusal(w, "vmlinux", "no_such_function", false, 1, &t),
			    "the kernel's BTF does not describe it");
	/* vmlinux's function is not the module's of that name. */
	assert_string_equal(refusal(w, "no_such_module", "vfs_read", false, 1, &t),
			    "the kernel's BTF does not describe it");
	assert_null(refusal(w, "vmlinux", "do_exit", false, 1, &t));
	assert_string_equal(refusal(w, "vmlinux", "do_exit", true, 1, &t), "it does not return");
	assert_string_equal(refusal(w, "vmlinux", "from_kuid", false, 1, &t),
			    "a parameter is a structure");
	assert_string_equal(refusal(w, "vmlinux", "make_kuid", false, 1, &t),
			    "it returns a structure");
	assert_string_equal(refusal(w, "vmlinux", "_printk", false, 1, &t),
			    "it has any number of parameters");
	assert_string_equal(refusal(w, "vmlinux", "copy_from_kernel_nofault", false, 1, &t),
			    "programs call it themselves");
	assert_string_equal(fentry_refusal(w->types, &sdt, &t),
			    "it is not a function of the kernel");
}

struct seen {
	uint32_t entries, returns;
	struct probe *last;
};

static void see(void *arg, struct probe *p)
{
	struct seen *s = arg;

	s->entries += !strcmp(p->name, "entry");
	s->returns += !strcmp(p->name, "return");
	s->last = p;
	assert_true(p->naddrs >= 1);
	assert_true(p->addrs[0] != 0);
	assert_true(p->id >= 1000000);
}

static char *explain(struct world *w, const char *func, const char *name)
{
	struct probe_desc pd = { "fbt", "", func, name };

	return fbt_explain(&w->ps, &pd);
}

static void assert_explains(struct world *w, const char *func, const char *name, const char *part)
{
	cleanup_free char *why = explain(w, func, name);

	assert_non_null(why);
	if (!strstr(why, part))
		fail_msg("\"%s\" does not say \"%s\"", why, part);
}

static void test_match_or_reason(void **state)
{
	struct world *w = world(state);
	struct probe_desc pd = { "fbt", "", "vfs_rea*", "" }, sdt = { "sdt", "", "vfs_read", "" };
	struct seen seen = { 0 };
	uint32_t n;

	assert_null(probe_match(&w->ps, &pd, see, &seen, &n));
	assert_int_equal(n, seen.entries + seen.returns);
	assert_null(fbt_explain(&w->ps, &sdt));
	if (!n) {
		assert_explains(w, "vfs_read", "entry", "fbt cannot be used here: ");
		return;
	}
	assert_true(seen.entries >= 1);
	assert_int_equal(seen.entries, seen.returns);

	/* The same probe by its number and by its name, with the same places. */
	struct probe *again, *first = seen.last;
	uint32_t naddrs = first->naddrs;

	assert_null(probe_by_id(&w->ps, first->id, &again));
	assert_ptr_equal(again, first);
	assert_int_equal(first->naddrs, naddrs);
	assert_explains(w, "vfs_raed", "entry", "did you mean fbt::vfs_read:entry?");
	assert_explains(w, "vfs_read", "exit", "entry or return, not exit");
	assert_explains(w, "asm_exc_page_fault", "", "does not let anyone trace");
	assert_explains(w, "zz_*", "", "matches zz_*");
}

static const char *refuse(struct type_graph *types)
{
	return "it refuses BPF trampolines (fentry) by policy: Operation not permitted";
}

static const char *allow(struct type_graph *types)
{
	return NULL;
}

/* A kernel without kprobes has fbt when it allows trampolines, else their refusal is part of the
 * reason. */
static void test_without_kprobes(void **state)
{
	struct world *w = world(state);
	struct probe_desc pd = { "fbt", "vmlinux", "vfs_read", "entry" };
	struct seen seen = { 0 };
	uint32_t n;

	assert_null(probe_match(&w->ps, &pd, see, &seen, &n));
	if (n || symbols_kernel_err(w->symbols))
		skip();
	w->ps.fentry_refusal = refuse;
	assert_null(probe_match(&w->ps, &pd, see, &seen, &n));
	assert_int_equal(n, 0);
	assert_explains(w, "vfs_read", "entry", "(CONFIG_KPROBES, CONFIG_FPROBE), and it refuses");
	w->ps.fentry_refusal = allow;
	assert_null(probe_match(&w->ps, &pd, see, &seen, &n));
	assert_int_equal(n, 1);
	assert_int_equal(seen.entries, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_entry_args, setup, teardown),
		cmocka_unit_test_setup_teardown(test_narrow_and_negative, setup, teardown),
		cmocka_unit_test_setup_teardown(test_stack_args, setup, teardown),
		cmocka_unit_test_setup_teardown(test_without_prototype, setup, teardown),
		cmocka_unit_test_setup_teardown(test_trampolines, setup, teardown),
		cmocka_unit_test_setup_teardown(test_match_or_reason, setup, teardown),
		cmocka_unit_test_setup_teardown(test_without_kprobes, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
