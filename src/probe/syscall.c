/* Provider syscall: entry and return of every system call, by the raw tracepoints sys_enter and
 * sys_exit. */
#include <string.h>

#include "base/glob.h"
#include "probe/foreign_probes.h"
#include "probe/provider.h"

static const struct syscall {
	int16_t number;
	const char *name, *kernel_name; /* kernel_name "": the same as name */
	const char *types;              /* separated by commas */
} syscalls[] = {
#define SYSCALL(number, name, kernel_name, types) { number, #name, kernel_name, types },
#include "probe/syscalls.def"
#undef SYSCALL
};

static const char *const sides[] = { "entry", "return" };

/* elsewhere: Linux's name of the call that the description names as another system does, or
 * NULL. */
static bool matches(const struct probe_desc *pd, const char *elsewhere, const struct syscall *sc)
{
	if (glob_match(pd->func, sc->name))
		return true;
	if (elsewhere && !strcmp(elsewhere, sc->name))
		return true;
	/* A pattern matches only name, because else *stat would match both stat and newstat. */
	return *sc->kernel_name && !glob_is_pattern(pd->func) && !strcmp(pd->func, sc->kernel_name);
}

static struct err *syscall_match(const struct provider *pv, struct probe_set *ps,
				 const struct probe_desc *pd, probe_fn *found, void *arg)
{
	bool side[2] = { glob_match(pd->name, sides[0]), glob_match(pd->name, sides[1]) };
	const char *elsewhere = foreign_syscall(pd->func);

	if (!glob_match(pd->mod, "vmlinux") || !(side[0] || side[1]))
		return NULL;
	for (size_t i = 0; i < ARRAY_SIZE(syscalls); i++) {
		const struct syscall *sc = &syscalls[i];

		if (!matches(pd, elsewhere, sc))
			continue;
		for (int ret = 0; ret < 2; ret++) {
			struct probe *p;
			bool is_new;

			if (!side[ret])
				continue;
			p = probe_add(ps, pv, pv->first_id + 2 * sc->number + ret, pv->name,
				      "vmlinux", sc->name, sides[ret], &is_new);
			p->kind = ret ? ATTACH_SYSCALL_RETURN : ATTACH_SYSCALL_ENTRY;
			p->object = ret ? "sys_exit" : "sys_enter";
			p->number = sc->number;
			p->priv = sc;
			if (is_new)
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
		/* sys_exit(struct pt_regs *regs, long ret): arg0 and arg1 are both ret, as in
		 * DTrace */
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
