/* Kernel functions by BPF trampolines. Each function needs a program of its own, so only few
 * functions are traced this way. The kprobes of kprobe.c serve the rest. */
#define _GNU_SOURCE
#include "load/kernel/kernel_private.h"

#include <errno.h>

#include "probe/fentry.h"
#include "program/type/type.h"

enum { FBT_AUTO, FBT_FENTRY, FBT_KPROBE }; /* words of -x fbt */

/* Detaching is slow: the kernel waits about 0.1 s for each function, one after the other. See
 * doc/decisions/0014-few-trampolines.md. */
enum { MAX_PROBES = 4 };

enum { HELPER_FUNC_ARG_CNT = 185, NOTES_MAX = 5 };

/* Sets the function that a program is loaded for. Returns false when the function's module was
 * unloaded. *ret_btf: the caller closes it after loading the program; -1: none. */
static bool aim(union bpf_attr *a, const struct fentry_target *t, bool ret, int *ret_btf)
{
	a->expected_attach_type = ret ? BPF_TRACE_FEXIT : BPF_TRACE_FENTRY;
	a->attach_btf_id = t->btf_id;
	*ret_btf = t->module ? sys_btf_of_module(t->module) : -1;
	if (t->module && *ret_btf < 0)
		return false;
	if (t->module)
		a->attach_btf_obj_fd = (uint32_t)*ret_btf;
	return true;
}

/* Loads a program that does nothing, for the function. Returns the descriptor, or -1. The program
 * calls bpf_get_func_arg_cnt(), because kernels that lack this helper (before 5.17) also cannot
 * give arguments by number. */
static int load_nothing(const struct fentry_target *t, bool ret)
{
	const struct bpf_insn insns[] = {
		{ .code = BPF_JMP | BPF_CALL, .imm = HELPER_FUNC_ARG_CNT },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	union bpf_attr a = { .prog_type = BPF_PROG_TYPE_TRACING,
			     .insns = (uintptr_t)insns,
			     .insn_cnt = ARRAY_SIZE(insns),
			     .license = (uintptr_t) "GPL" };
	cleanup_close int btf = -1;

	return aim(&a, t, ret, &btf) ? sys_prog_load(&a) : -1;
}

/* Tries a trampoline on a function that every kernel has. */
static char *try_fentry(struct type_graph *types)
{
	struct probe some = { .mod = "vmlinux", .func = "vfs_read", .kind = ATTACH_KPROBE };
	struct fentry_target t;

	if (!types || fentry_refusal(types, &some, &t))
		return xstrdup("the kernel has no BTF, which BPF trampolines (fentry) need");
	cleanup_close int fd = load_nothing(&t, false);

	if (fd >= 0)
		return NULL;
	int error = errno;
	struct err *unprivileged = feature_check_privilege();

	if (err_drop(unprivileged))
		return xstrdup("BPF trampolines (fentry) need privilege");
	if (error == EPERM || error == EACCES)
		return xasprintf("it refuses BPF trampolines (fentry) by policy: %s",
				 strerror(error));
	return xasprintf("its BPF trampolines (fentry) cannot be used: %s", strerror(error));
}

/* Returns why this kernel lets no program trace functions by BPF trampolines (fentry); NULL: it
 * does. Tries it once; the text stays valid. */
static const char *general_refusal(struct type_graph *types)
{
	static char *why;
	static bool tried;

	if (!tried)
		why = try_fentry(types);
	tried = true;
	return why;
}

/* Returns why no trampoline can take the function of the kprobe p; malloc()ed, NULL: one can. */
static char *no_fentry(struct type_graph *types, const struct probe *p, struct fentry_target *ret)
{
	const char *why = general_refusal(types);

	if (!why)
		why = fentry_refusal(types, p, ret);
	if (why)
		return xstrdup(why);
	cleanup_close int fd = load_nothing(ret, p->kind == ATTACH_KRETPROBE);

	if (fd >= 0)
		return NULL;
	return xasprintf("the kernel refuses it: %s", strerror(errno));
}

uint32_t fentry_max(struct type_graph *types, const struct options *options)
{
	switch (opt_num(options, OPT_FBT)) {
	case FBT_KPROBE: return 0;
	case FBT_FENTRY: return UINT32_MAX;
	default: return general_refusal(types) ? 0 : MAX_PROBES;
	}
}

void fentry_advise(struct probe_set *set)
{
	set->fentry_refusal = general_refusal;
}

/* Describes how the probe would fire: by a trampoline when few kernel functions are traced, else by
 * a kprobe. */
char *fentry_how(struct engine_scene *s, const struct probe *p, char **ret_note)
{
	const char *kind = attach_kind_name(p->kind);
	cleanup_free char *limit = NULL, *args = NULL, *why = NULL;
	struct fentry_target t = { 0 };
	uint32_t max;

	*ret_note = NULL;
	if (p->kind != ATTACH_KPROBE && p->kind != ATTACH_KRETPROBE)
		return xasprintf("%s%s%s", kind, p->object && *p->object ? " " : "",
				 p->object ? p->object : "");
	max = fentry_max(s->types, s->options);
	why = no_fentry(s->types, p, &t);
	if (why)
		*ret_note = xasprintf("No BPF trampoline: %s", why);
	if (why || !max)
		return xstrdup(kind);
	if (max != UINT32_MAX)
		limit = xasprintf("; %s of more than %u functions at once", kind, max);
	if (t.nargs > FENTRY_REG_ARGS)
		args = xasprintf("; %s where trampolines pass no %u arguments", kind, t.nargs);
	return xasprintf("%s%s%s", p->kind == ATTACH_KPROBE ? "fentry" : "fexit",
			 limit ? limit : "", args ? args : "");
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

	if (why)
		return err_new(ENOENT, "%s", why);
	return aim(a, &t, ret, ret_btf) ? NULL
					: sys_err(errno, "opening the BTF of a kernel module");
}

static void note(struct kernel_engine *k, uint32_t probe, const char *why)
{
	const struct image_probe *ip = &k->e.image->probes[probe];

	engine_note(k, "%s:%s:%s:%s not enabled: no BPF trampoline: %s", ip->prov, ip->mod,
		    ip->func, ip->name, why);
}

/* Would the kernel accept another program for the function, so that this program is at fault? */
static bool would_take_another(struct kernel_engine *k, uint32_t probe)
{
	struct fentry_target t;
	cleanup_free char *why = no_fentry(k->e.image->types, k->e.image->probes[probe].probe, &t);

	return !why;
}

struct err *fentry_load(struct kernel_engine *k, uint32_t prog)
{
	const struct image_prog *p = &k->e.image->progs[prog];

	for (uint32_t i = 0; i < p->nprobes; i++) {
		struct err *e = prog_load_copy(k, prog, p->probes[i], NULL, false);

		k->trampoline[p->probes[i]] = !e;
		if (!e)
			continue;
		err_free(e);
		if (!would_take_another(k, p->probes[i]))
			continue;
		return fentry_only(k) ? prog_load_copy(k, prog, p->probes[i], NULL, true) : NULL;
	}
	return NULL;
}

struct err *fentry_left(struct kernel_engine *k)
{
	const char *general = general_refusal(k->e.image->types);
	struct fentry_target t;
	uint32_t left = 0, taken = 0;

	for (uint32_t i = 0; i < k->e.image->nprobes; i++) {
		const struct probe *p = k->e.image->probes[i].probe;
		cleanup_free char *why = NULL;

		if (!p || !is_kprobe(p->kind))
			continue;
		if (general)
			return err_new(EPERM, "this kernel cannot do -x fbt=fentry: %s", general);
		taken += k->trampoline[i];
		if (k->trampoline[i] || left++ >= NOTES_MAX)
			continue;
		why = no_fentry(k->e.image->types, p, &t);
		note(k, i, why ? why : "the kernel refuses the program");
	}
	if (left > NOTES_MAX)
		engine_note(k, "%u more functions not enabled", left - NOTES_MAX);
	return taken || !left ? NULL
			      : err_new(ENOENT, "no BPF trampoline can take %s",
					left == 1 ? "this function" : "these functions");
}

static const char *why_not_attached(int error)
{
	enum { KERNEL_ENOTSUPP = 524 };

	return error == KERNEL_ENOTSUPP ? "those of this kernel pass no more than 6 arguments"
					: strerror(error);
}

void fentry_attach(struct kernel_engine *k, struct instance *in)
{
	int fd = sys_raw_tp_open(NULL, in->fd, 0);

	k->trampoline[in->probe] = fd >= 0;
	if (fd >= 0)
		vec_push(&k->links, fd);
	else if (fentry_only(k))
		note(k, in->probe, why_not_attached(errno));
}
