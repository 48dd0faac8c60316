/* Provider syscall: entry and return of every system call, all through the raw tracepoints
 * sys_enter and sys_exit. */
#include <string.h>

#include "base/glob.h"
#include "probe/foreign.h"
#include "probe/provider.h"

static const struct syscall {
	int16_t number;
	const char *name, *kernel_name; /* kernel_name "": the same */
	const char *types;              /* separated by commas */
} syscalls[] = {
#define SYSCALL(number, name, kernel_name, types) { number, #name, kernel_name, types },
#include "probe/syscalls.def"
#undef SYSCALL
};

static const char *const sides[] = { "entry", "return" };

static bool matches(const struct probe_desc *pd, const struct syscall *sc)
{
	const char *elsewhere = foreign_syscall(pd->func);

	if (glob_match(pd->func, sc->name))
		return true;
	if (elsewhere && !strcmp(elsewhere, sc->name))
		return true;
	/* By pattern only one name, or stat and newstat would both answer to *stat. */
	return *sc->kernel_name && !glob_is_pattern(pd->func) && !strcmp(pd->func, sc->kernel_name);
}

static struct err *syscall_match(const struct provider *pv, struct probe_set *ps,
				 const struct probe_desc *pd,
				 void (*found)(void *arg, struct probe *p), void *arg)
{
	bool side[2] = { glob_match(pd->name, sides[0]), glob_match(pd->name, sides[1]) };

	if (!glob_match(pd->mod, "vmlinux") || !(side[0] || side[1]))
		return NULL;
	for (size_t i = 0; i < ARRAY_SIZE(syscalls); i++) {
		const struct syscall *sc = &syscalls[i];

		if (!matches(pd, sc))
			continue;
		for (int ret = 0; ret < 2; ret++) {
			struct probe *p;

			if (!side[ret])
				continue;
			p = probe_add(ps, pv, pv->first_id + 2 * sc->number + ret, pv->name,
				      "vmlinux", sc->name, sides[ret], NULL);
			p->kind = ret ? ATTACH_SYSCALL_RETURN : ATTACH_SYSCALL_ENTRY;
			p->object = ret ? "sys_exit" : "sys_enter";
			p->number = sc->number;
			p->priv = sc;
			if (!p->note)
				p->note = foreign_names_of(ps, sc->name);
			found(arg, p);
		}
	}
	return NULL;
}

static struct err *syscall_args(struct probe_set *ps, const struct probe *p, struct probe_args *ret)
{
	const struct syscall *sc = p->priv;
	uint32_t n = 0;

	ret->known = true;
	if (p->kind == ATTACH_SYSCALL_RETURN) {
		/* sys_exit(struct pt_regs *regs, long ret): both arg0 and arg1, as DTrace has it */
		ret->arg[0] = ret->arg[1] = ret->typed[0] =
			(struct probe_arg){ .source = ARG_CTX, .value = 8, .type = T_LONG };
		ret->typed[1] = ret->typed[0];
		ret->ntyped = 2;
		return NULL;
	}
	for (const char *at = sc->types; *at; n++) {
		size_t len = strcspn(at, ",");
		cleanup_free char *text = xstrndup(at, len);
		struct probe_arg a = { .source = ARG_SYSCALL,
				       .value = n,
				       .type = provider_type(ps, text) };

		provider_set_arg(ps, ret, n, &a);
		at += len + (at[len] == ',');
	}
	for (; n < 6; n++)
		ret->arg[n] =
			(struct probe_arg){ .source = ARG_SYSCALL, .value = n, .type = T_INT64 };
	return NULL;
}

const struct provider provider_syscall = {
	.name = "syscall",
	.doc = "system calls: entry with their arguments, return with result and errno",
	.first_id = 10000,
	.last_id = 19999,
	.stability = { E_COMMON, P_UNKNOWN, P_ISA, E_COMMON, P_ISA },
	.claims = provider_claims_name,
	.match = syscall_match,
	.args = syscall_args,
};
