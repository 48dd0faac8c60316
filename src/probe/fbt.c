/* Provider fbt: entry and return of the kernel's functions.
 *
 * A function has probes when the kernel's symbols name it and ftrace lists it as traceable. Where
 * ftrace's list cannot be read, BTF must describe the function. Functions of one name in one
 * module, such as static functions of several files, are one probe with several addresses. This
 * file describes every probe as a kprobe; fentry.c decides which of them a BPF trampoline can
 * serve.
 */
#define _GNU_SOURCE
#include "probe/fbt.h"

#include <linux/btf.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/glob.h"
#include "base/io.h"
#include "base/nearest.h"
#include "probe/provider.h"
#include "probe/tracepoint.h"

enum { NREGS = 6 };

struct fbt {
	struct hash traceable; /* lines of available_filter_functions: "name", "name [module]" */
	bool listed;           /* the lines were read; else BTF decides */
};

/* The registers of integer and pointer arguments, in order. Further arguments lie on the stack,
 * above the return address. */
static const uint8_t arg_regs[NREGS] = { UREG_RDI, UREG_RSI, UREG_RDX, UREG_RCX, UREG_R8, UREG_R9 };

/* Reads a whole file of tracefs or debugfs. Returns NULL when it cannot be read. */
static char *read_all(const char *fs, const char *mounted_at, const char *path)
{
	cleanup_close int fd = kernel_fs_open(fs, mounted_at, path);
	char name[32], *text;
	struct err *e;

	if (fd < 0)
		return NULL;
	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	e = io_read_file(name, &text, NULL);
	err_free(e);
	return e ? NULL : text;
}

/* Removes the functions that kprobes must not touch from the traceable ones, because ftrace lists
 * them too. A line of the list is "0xffffffff81000000-0xffffffff81000010\tname". */
static void leave_out_blacklist(struct fbt *f)
{
	cleanup_free char *text = read_all("debugfs", "/sys/kernel/debug", "kprobes/blacklist");

	for (char *line = text, *end; line && *line; line = *end ? end + 1 : end) {
		char *name = strchr(line, '\t');

		end = strchrnul(line, '\n');
		if (name && name < end)
			hash_del(&f->traceable, name + 1, (size_t)(end - name - 1));
	}
}

/* Looks the function up in BTF when the kernel has BTF, because the kernel takes 30 ms to write
 * /proc/kallsyms. */
static bool has_fprobes(struct probe_set *ps)
{
	uint64_t addr;
	type_id t;

	if (type_kernel_func(ps->types, "register_fprobe_ips", &t))
		return true;
	return type_kernel_err(ps->types) &&
	       symbols_kernel_addr(ps->symbols, NULL, "register_fprobe_ips", &addr);
}

/* Returns NULL when functions can be probed, else the reason why not. */
static const char *unavailable(struct probe_set *ps)
{
	const char *why;

	if (!access("/sys/bus/event_source/devices/kprobe/type", R_OK) || has_fprobes(ps))
		return symbols_kernel_err(ps->symbols);
	why = ps->fentry_refusal ? ps->fentry_refusal(ps->types) : "";
	if (!why)
		return symbols_kernel_err(ps->symbols);
	return arena_printf(&ps->arena,
			    "this kernel is built without kprobes and fprobes (CONFIG_KPROBES, "
			    "CONFIG_FPROBE)%s%s",
			    *why ? ", and " : "", why);
}

static struct fbt *get(struct probe_set *ps)
{
	cleanup_free char *text = NULL;
	struct fbt *f = ps->fbt;

	if (f)
		return f;
	f = ps->fbt = xcalloc(1, sizeof(*f));
	text = read_all("tracefs", "/sys/kernel/tracing", "available_filter_functions");
	if (!text)
		return f;
	f->listed = true;
	for (char *line = text, *end; *line; line = *end ? end + 1 : end) {
		end = strchrnul(line, '\n');
		hash_put(&f->traceable, line, (size_t)(end - line), NULL);
	}
	if (!has_fprobes(ps))
		leave_out_blacklist(f);
	return f;
}

void fbt_free(struct fbt *f)
{
	if (!f)
		return;
	hash_fini(&f->traceable);
	free(f);
}

static bool is_traceable(struct probe_set *ps, const char *module, const char *name)
{
	const struct fbt *f = get(ps);
	char line[512];
	uint32_t id;
	type_id t;
	int n;

	if (!strcmp(module, "vmlinux")) {
		if (f->listed)
			return hash_get(&f->traceable, name, strlen(name));
		return type_kernel_btf_id(ps->types, BTF_KIND_FUNC, name, &id);
	}
	if (!f->listed)
		return type_module_func(ps->types, module, name, &t, &id);
	n = snprintf(line, sizeof(line), "%s [%s]", name, module);
	return n < (int)sizeof(line) && hash_get(&f->traceable, line, (size_t)n);
}

struct matching {
	const struct provider *pv;
	struct probe_set *ps;
	const struct probe_desc *pd;
	bool entry, ret;
	uint32_t index; /* the symbol's index */
	struct hash seen;
	VEC(struct probe *) probes;
};

static void add_place(struct probe_set *ps, struct probe *p, uint64_t addr)
{
	uint64_t *addrs;

	for (uint32_t i = 0; i < p->naddrs; i++) {
		if (p->addrs[i] == addr)
			return;
	}
	addrs = arena_array(&ps->arena, uint64_t, p->naddrs + 1);
	for (uint32_t i = 0; i < p->naddrs; i++)
		addrs[i] = p->addrs[i];
	addrs[p->naddrs++] = addr;
	p->addrs = addrs;
}

static void fbt_add(struct matching *m, const char *module, const char *func, uint64_t addr,
		    bool ret)
{
	struct probe *p = probe_add(m->ps, m->pv, m->pv->first_id + 2 * m->index + ret, m->pv->name,
				    module, func, ret ? "return" : "entry", NULL);
	bool fresh;

	p->kind = ret ? ATTACH_KRETPROBE : ATTACH_KPROBE;
	add_place(m->ps, p, addr);
	hash_put(&m->seen, &p, sizeof(p), &fresh);
	if (fresh)
		vec_push(&m->probes, p);
}

static void consider(void *arg, const char *module, const char *name, uint64_t addr)
{
	struct matching *m = arg;

	m->index++;
	if (!glob_match(m->pd->func, name) || !glob_match(m->pd->mod, module) ||
	    !is_traceable(m->ps, module, name))
		return;
	if (m->entry)
		fbt_add(m, module, name, addr, false);
	if (m->ret)
		fbt_add(m, module, name, addr, true);
}

static struct err *fbt_match(const struct provider *pv, struct probe_set *ps,
			     const struct probe_desc *pd, probe_fn *found, void *arg)
{
	struct matching m = { .pv = pv,
			      .ps = ps,
			      .pd = pd,
			      .entry = glob_match(pd->name, "entry"),
			      .ret = glob_match(pd->name, "return") };

	if ((!m.entry && !m.ret) || unavailable(ps))
		return NULL;
	symbols_kernel_each(ps->symbols, consider, &m);
	for (uint32_t i = 0; i < m.probes.n; i++)
		found(arg, m.probes.v[i]);
	vec_fini(&m.probes);
	hash_fini(&m.seen);
	return NULL;
}

/* --- arguments --- */

/* Returns the operand size that reads the type. A narrow integer fills only the low part of its
 * register or stack word. */
static int8_t operand_size(struct probe_set *ps, type_id type)
{
	uint64_t size = type_size(ps->types, type);

	if (!type_is_integer(ps->types, type) || !size || size >= 8)
		return 8;
	return (int8_t)(type_is_signed(ps->types, type) ? -(int)size : (int)size);
}

static struct probe_arg in_register(struct probe_set *ps, uint8_t reg, type_id type)
{
	struct probe_arg a = { .source = ARG_REG, .value = reg, .type = type };
	int8_t size = operand_size(ps, type);

	if (size == 8)
		return a;
	a.source = ARG_USDT;
	a.usdt = (struct usdt_operand){
		.mode = USDT_REG, .base = (int8_t)reg, .index = -1, .size = size
	};
	return a;
}

static struct probe_arg on_stack(struct probe_set *ps, uint32_t word, type_id type)
{
	return (struct probe_arg){ .source = ARG_USDT,
				   .type = type,
				   .usdt = { .size = operand_size(ps, type),
					     .mode = USDT_MEM,
					     .base = UREG_RSP,
					     .index = -1,
					     .disp = 8 * (word + 1) } };
}

static void return_args(struct probe_set *ps, type_id func, bool known, struct probe_args *ret)
{
	struct probe_arg offset = { .source = ARG_CONST, .type = T_INT64 }, value;
	type_id type = known ? type_ref(ps->types, func) : T_INT64;

	/* The kernel does not report from which place in the function it returned. */
	provider_set_arg(ps, ret, 0, &offset);
	if (type_kind(ps->types, type_strip(ps->types, type)) == TYPE_VOID)
		return;
	value = in_register(ps, UREG_RAX, type_is_scalar(ps->types, type) ? type : T_INT64);
	provider_set_arg(ps, ret, 1, &value);
}

/* Describes the arguments. A structure passed by value takes as many registers or stack words as
 * its size needs, and args[] has its first word. */
static struct err *fbt_args(struct probe_set *ps, const struct probe *p, struct probe_args *ret)
{
	uint32_t nparams = 0, reg = 0, word = 0;
	const struct type_param *params;
	bool varargs, known;
	type_id func = T_VOID;
	uint32_t id;

	/* The compiler gave foo.isra.0 other parameters than foo has. */
	known = !strchr(p->func, '.') && type_module_func(ps->types, p->mod, p->func, &func, &id);
	ret->known = known;
	if (p->kind == ATTACH_KRETPROBE) {
		return_args(ps, func, known, ret);
		return NULL;
	}
	params = known ? type_params(ps->types, func, &nparams, &varargs) : NULL;
	for (uint32_t i = 0; i < nparams; i++) {
		bool scalar = type_is_scalar(ps->types, params[i].type);
		uint64_t size = type_size(ps->types, params[i].type);
		uint32_t n = scalar || size <= 8 ? 1 : (uint32_t)((size + 7) / 8);
		type_id type = scalar ? params[i].type : T_INT64;
		struct probe_arg a;

		if (n <= 2 && reg + n <= NREGS) {
			a = in_register(ps, arg_regs[reg], type);
			reg += n;
		} else {
			a = on_stack(ps, word, type);
			word += n;
		}
		provider_set_arg(ps, ret, i, &a);
	}
	/* Without a prototype the arguments are plain words. */
	for (uint32_t i = known ? ARRAY_SIZE(ret->arg) : 0; i < ARRAY_SIZE(ret->arg); i++)
		ret->arg[i] = i < NREGS ? in_register(ps, arg_regs[i], T_INT64)
					: on_stack(ps, i - NREGS, T_INT64);
	return NULL;
}

/* --- explanations --- */

struct search {
	struct probe_set *ps;
	const struct probe_desc *pd;
	struct nearest nearest;
	const char *module; /* the module whose function exists but cannot be traced */
};

static void search(void *arg, const char *module, const char *name, uint64_t addr)
{
	struct search *s = arg;
	struct nearest before = s->nearest;

	if (!glob_match(s->pd->mod, module))
		return;
	if (!strcmp(name, s->pd->func)) {
		s->module = module;
		return;
	}
	nearest_offer(&s->nearest, name);
	if (s->nearest.name != before.name && !is_traceable(s->ps, module, name))
		s->nearest = before;
}

char *fbt_explain(struct probe_set *ps, const struct probe_desc *pd)
{
	struct search s = { .ps = ps, .pd = pd, .nearest.word = pd->func };
	const char *why;

	if (strcmp(pd->prov, "fbt"))
		return NULL;
	why = unavailable(ps);
	if (why)
		return xasprintf("fbt cannot be used here: %s; sdt::: are the kernel's tracepoints",
				 why);
	if (!glob_match(pd->name, "entry") && !glob_match(pd->name, "return"))
		return xasprintf("a probe of fbt is called entry or return, not %s", pd->name);
	if (glob_is_pattern(pd->func))
		return xasprintf("no function of %s that can be traced matches %s",
				 *pd->mod ? pd->mod : "the kernel", pd->func);
	symbols_kernel_each(ps->symbols, search, &s);
	if (s.module)
		return xasprintf(
			"the kernel does not let anyone trace %s: ftrace does not list it among "
			"available_filter_functions, or kprobes must not touch it",
			pd->func);
	if (s.nearest.name)
		return xasprintf("no function of %s is called %s; did you mean fbt::%s:%s?",
				 *pd->mod ? pd->mod : "the kernel", pd->func, s.nearest.name,
				 *pd->name ? pd->name : "entry");
	return xasprintf("no function of %s is called %s: it may be inlined everywhere",
			 *pd->mod ? pd->mod : "the kernel", pd->func);
}

const struct provider provider_fbt = {
	.name = "fbt",
	.doc = "entry and return of the kernel's functions, args[] as the function declares them",
	.first_id = 1000000,
	.last_id = 2000000,
	.stability = { E_COMMON, P_UNKNOWN, P_ISA, E_COMMON, P_ISA },
	.claims = provider_claims_name,
	.match = fbt_match,
	.args = fbt_args,
};
