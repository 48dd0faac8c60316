/* Kernel functions by BPF trampolines. Each function has a program of its own, which is why this is for few; what the kernel
 * does not take so, the kprobes of fbt.c serve.
 */
#define _GNU_SOURCE
#include "load/kernel/kernel.h"

#include <errno.h>
#include <linux/btf.h>

#include "base/io.h"
#include "probe/fentry.h"
#include "program/type/type.h"

enum { FBT_AUTO, FBT_FENTRY, FBT_KPROBE }; /* words of -x fbt */

/* Probes that are worth a program each: doc/decisions/0014-trampolines.md. */
enum { MAX_PROBES = 32 };

enum { HELPER_FUNC_ARG_CNT = 185, REFUSED_LOG = 256 };

/* A program that does nothing at the function; the descriptor, or -1. It asks how many arguments there are because kernels that
 * cannot tell (before 5.17) cannot give them as numbers either. */
static int load_nothing(const struct fentry_target *t, bool ret)
{
	const struct bpf_insn insns[] = {
		{ .code = BPF_JMP | BPF_CALL, .imm = HELPER_FUNC_ARG_CNT },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	cleanup_close int btf = t->module ? sys_btf_of_module(t->module) : -1;
	union bpf_attr a = { .prog_type = BPF_PROG_TYPE_TRACING,
			     .insns = (uintptr_t)insns,
			     .insn_cnt = ARRAY_SIZE(insns),
			     .license = (uintptr_t) "GPL",
			     .expected_attach_type = ret ? BPF_TRACE_FEXIT : BPF_TRACE_FENTRY,
			     .attach_btf_id = t->btf_id };

	if (t->module && btf < 0)
		return -1;
	if (t->module)
		a.attach_btf_obj_fd = (uint32_t)btf;
	return sys_prog_load(&a);
}

/* Tried on a function that every kernel has. */
static char *try_fentry(struct type_graph *types)
{
	struct probe some = { .mod = "vmlinux", .func = "vfs_read", .kind = ATTACH_KPROBE };
	struct fentry_target t;

	if (!types || fentry_refusal(types, &some, &t))
		return xstrdup("the kernel has no BTF, which BPF trampolines (fentry) need");
	cleanup_close int fd = load_nothing(&t, false);

	if (fd >= 0)
		return NULL;
	if (errno == EPERM || errno == EACCES)
		return xasprintf("it refuses BPF trampolines (fentry) by policy: %s",
				 strerror(errno));
	return xasprintf("its BPF trampolines (fentry) cannot be used: %s", strerror(errno));
}

const char *engine_kernel_fentry_refusal(struct type_graph *types)
{
	static char *why;
	static bool tried;

	if (!tried)
		why = try_fentry(types);
	tried = true;
	return why;
}

char *engine_kernel_no_fentry(struct type_graph *types, const struct probe *p)
{
	const char *why = engine_kernel_fentry_refusal(types);
	struct fentry_target t;

	if (!why)
		why = fentry_refusal(types, p, &t);
	if (why)
		return xstrdup(why);
	cleanup_close int fd = load_nothing(&t, p->kind == ATTACH_KRETPROBE);

	if (fd >= 0)
		return NULL;
	return xasprintf("the kernel refuses it: %s", strerror(errno));
}

uint32_t engine_kernel_fentry_max(struct type_graph *types, const struct options *options)
{
	switch (opt_num(options, OPT_FBT)) {
	case FBT_KPROBE: return 0;
	case FBT_FENTRY: return UINT32_MAX;
	default: return engine_kernel_fentry_refusal(types) ? 0 : MAX_PROBES;
	}
}

bool is_trampoline(enum attach_kind kind)
{
	return kind == ATTACH_FENTRY || kind == ATTACH_FEXIT;
}

bool fentry_only(const struct kernel_engine *k)
{
	return k->e.image->options && opt_num(k->e.image->options, OPT_FBT) == FBT_FENTRY;
}

/* --- loading --- */

struct err *fentry_place(struct kernel_engine *k, uint32_t probe, bool ret, union bpf_attr *a,
			 int *ret_btf)
{
	struct fentry_target t;
	const char *why = fentry_refusal(k->e.image->types, k->e.image->probes[probe].probe, &t);

	*ret_btf = -1;
	if (why)
		return err_new(ENOENT, "%s", why);
	a->expected_attach_type = ret ? BPF_TRACE_FEXIT : BPF_TRACE_FENTRY;
	a->attach_btf_id = t.btf_id;
	if (!t.module)
		return NULL;
	*ret_btf = sys_btf_of_module(t.module);
	if (*ret_btf < 0)
		return sys_err(errno, "opening the module's BTF");
	a->attach_btf_obj_fd = (uint32_t)*ret_btf;
	return NULL;
}

/* What would be no better for another function. */
static bool is_general(int error)
{
	return error == EPERM || error == EACCES || error == E2BIG || error == ENOMEM ||
	       error == EMFILE || error == ENFILE;
}

static void left_out(struct kernel_engine *k, uint32_t probe, const char *why)
{
	const struct image_probe *ip = &k->e.image->probes[probe];

	k->trampoline[probe] = false;
	if (fentry_only(k))
		engine_note(k, "%s:%s:%s:%s not enabled: no BPF trampoline: %s", ip->prov, ip->mod,
			    ip->func, ip->name, why);
}

struct err *fentry_load(struct kernel_engine *k, uint32_t prog)
{
	const struct image_prog *p = &k->e.image->progs[prog];
	struct err *e = NULL;

	for (uint32_t i = 0; i < p->nprobes && !e; i++) {
		e = prog_load_copy(k, prog, p->probes[i], NULL);
		k->trampoline[p->probes[i]] = !e;
		if (!e || (is_general(e->code) && fentry_only(k)))
			continue;
		left_out(k, p->probes[i], e->text);
		if (is_general(e->code))
			break;
		err_free(e);
		e = NULL;
	}
	if (fentry_only(k))
		return e;
	err_free(e);
	return NULL;
}

void fentry_attach(struct kernel_engine *k, struct instance *in)
{
	int fd = sys_raw_tp_open(NULL, in->fd, 0);

	if (fd >= 0)
		vec_push(&k->links, fd);
	else
		left_out(k, in->probe, strerror(errno));
}
