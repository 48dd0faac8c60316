/* Decides which kernel functions a BPF trampoline can serve. */
#include "probe/fentry.h"

#include <string.h>

/* Returns true when the function never returns. An exit trampoline would wait for its return for
 * ever. Kernels from 6.16 on have such a list themselves. */
static bool never_returns(const char *func)
{
	static const char *const names[] = {
		"do_exit",
		"do_group_exit",
		"do_task_dead",
		"make_task_dead",
		"kthread_exit",
		"kthread_complete_and_exit",
		"module_put_and_kthread_exit",
		"__module_put_and_kthread_exit",
		"rewind_stack_and_make_dead",
		"__x64_sys_exit",
		"__x64_sys_exit_group",
		"__ia32_sys_exit",
		"__ia32_sys_exit_group",
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (!strcmp(func, names[i]))
			return true;
	return false;
}

/* Returns true when BPF programs call this function themselves, for maps, locks, reading memory or
 * stacks. The kernel skips a kprobe there while any program runs. A trampoline's program would run
 * inside another program. In a function that unlocks, the other program would still hold its lock,
 * and when this is a ring buffer's lock the inner program would wait for it for ever. */
static bool serves_programs(const char *func)
{
	static const char *const heads[] = {
		"_raw_",
		"__raw_",
		"queued_",
		"native_queued",
		"__pv_",
		"bpf_",
		"__bpf_",
		"___bpf_",
		"htab_",
		"__htab_",
		"array_map_",
		"percpu_array_map_",
		"pcpu_freelist",
		"__pcpu_freelist",
		"___pcpu_freelist",
		"irq_work_",
		"copy_from_kernel_",
		"copy_from_user_nofault",
		"strncpy_from_",
		"get_perf_callchain",
		"perf_callchain_",
		"unwind_",
		"__unwind_",
		"ktime_get_",
	};

	for (size_t i = 0; i < ARRAY_SIZE(heads); i++)
		if (!strncmp(func, heads[i], strlen(heads[i])))
			return true;
	return false;
}

/* Returns true when one general register holds a value of the type. */
static bool is_word(struct type_graph *g, type_id t)
{
	return type_is_scalar(g, t) && type_size(g, t) <= 8;
}

const char *fentry_refusal(struct type_graph *g, const struct probe *p, struct fentry_target *ret)
{
	const struct type_param *params;
	bool varargs = false;
	type_id func, result;
	uint32_t n, id;

	if (p->kind != ATTACH_KPROBE && p->kind != ATTACH_KRETPROBE)
		return "it is not a function of the kernel";
	if (p->naddrs > 1)
		return "several functions have this name";
	if (strchr(p->func, '.'))
		return "the compiler has changed its parameters";
	if (!type_module_func(g, p->mod, p->func, &func, &id))
		return "the kernel's BTF does not describe it";
	if (serves_programs(p->func))
		return "programs call it themselves";
	if (p->kind == ATTACH_KRETPROBE && never_returns(p->func))
		return "it does not return";
	result = type_ref(g, func);
	if (type_kind(g, type_strip(g, result)) != TYPE_VOID && !is_word(g, result))
		return "it returns a structure";
	params = type_params(g, func, &n, &varargs);
	if (varargs)
		return "it has any number of parameters";
	if (n > FENTRY_ARGS_MAX)
		return "it has more than 12 parameters";
	for (uint32_t i = 0; i < n; i++)
		if (!is_word(g, params[i].type))
			return "a parameter is a structure";
	*ret = (struct fentry_target){ id, strcmp(p->mod, "vmlinux") ? p->mod : NULL, n };
	return NULL;
}
