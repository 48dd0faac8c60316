/* Loads programs into the kernel, and turns the verifier's log into a diagnostic at the D
 * source. */
#define _GNU_SOURCE
#include "load/kernel/kernel_private.h"

#include <errno.h>
#include <linux/btf.h>
#include <sys/mman.h>

#include "base/diag.h"
#include "isa/bpf_insn.h"
#include "program/type/type.h"

enum {
	HELPER_GET_ATTACH_COOKIE = 174,
	ATTACH_TYPE_UPROBE_MULTI = 48,
	LOG_SIZE = 16 << 20,
};

/* --- the kernel's messages --- */

/* Returns the instruction's number of a line "41: (79) r1 = *(u64 *)(r1 +8)", else -1. */
static long log_insn(const char *line, const char *end)
{
	char *p;
	long n = strtol(line, &p, 10);

	return p > line && p + 3 < end && p[0] == ':' && p[1] == ' ' && p[2] == '(' ? n : -1;
}

static bool log_is_noise(const char *line, const char *end)
{
	static const char *const heads[] = {
		"processed ",   "verification time", "stack depth", "from ",           "func#",
		"mark_precise", "last_idx",          "regs=",       "parent ",         "max_states",
		"caller:",      "callee:",           "to caller ",  "returning from ", " "
	};

	for (uint32_t i = 0; i < ARRAY_SIZE(heads); i++)
		if ((size_t)(end - line) >= strlen(heads[i]) &&
		    !strncmp(line, heads[i], strlen(heads[i])))
			return true;
	/* Register states: "41: R0=..." and "; source line". */
	const char *p = line;

	while (p < end && *p >= '0' && *p <= '9')
		p++;
	return p == end || (p > line && *p == ':') || *line == ';';
}

/* Finds the kernel's complaint, the last line of the log that is a message (malloc()ed), and the
 * program's own instruction for it. For a routine, that is the last own instruction before it, the
 * call. */
static char *read_log(const char *log, uint32_t nown, long *ret_insn, long *ret_own)
{
	const char *message = NULL, *message_end = NULL;

	*ret_insn = *ret_own = -1;
	for (const char *line = log, *end; *line; line = *end ? end + 1 : end) {
		end = strchrnul(line, '\n');
		long n = log_insn(line, end);

		if (n >= 0) {
			*ret_insn = n;
			if ((uint32_t)n < nown)
				*ret_own = n;
		} else if (end > line && !log_is_noise(line, end)) {
			message = line;
			message_end = end;
		}
	}
	if (!message)
		return xstrdup("no reason given");
	/* A message may begin with a number of its own: "R3 invalid mem access". */
	return xstrndup(message, (size_t)(message_end - message));
}

static bool has_loop(const struct linked *l)
{
	for (uint32_t i = 0; i < l->nown; i++)
		if (BPF_CLASS(l->insns[i].code) == BPF_JMP && l->insns[i].off < 0 &&
		    BPF_OP(l->insns[i].code) != BPF_CALL)
			return true;
	return false;
}

/* Returns the reason when the kernel does not permit something here, and in *ret_hint what else the
 * user can do. NULL: the program itself is wrong. */
static const char *not_permitted(const char *message, const char **ret_hint)
{
	*ret_hint = "";
	if (strstr(message, "probe_write_user")) {
		*ret_hint = "; -x engine=inproc can, in processes named by -p or -c";
		return "copyout( ) and copyoutstr( ) are not permitted: this kernel does not let "
		       "programs write user memory (lockdown)";
	}
	if (strstr(message, "send_signal"))
		return "raise( ) and stop( ) are not permitted in this probe";
	return NULL;
}

enum {
	INSNS_MAX = 1000000, /* BPF_COMPLEXITY_LIMIT_INSNS */
	/* of instructions * replaced instructions: two seconds or so of an EPYC processor (Zen 4)
	 */
	REPLACED_MAX = 1 << 29,
};

/* Returns true for a helper whose code the kernel may put in the place of the call (Linux 6.18,
 * do_misc_fixups()). */
static bool is_inlined(int32_t helper)
{
	switch (helper) {
	case BPF_FUNC_map_lookup_elem:
	case BPF_FUNC_tail_call:
	case BPF_FUNC_jiffies64:
	case BPF_FUNC_get_smp_processor_id:
	case BPF_FUNC_get_current_task:
	case BPF_FUNC_get_current_task_btf: return true;
	default: return false;
	}
}

/* Returns the number of instructions that the kernel replaces by others when it has verified the
 * program: calls of some helpers, and divisions. */
static uint32_t replaced(const struct linked *l)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < l->ninsns; i++) {
		const struct bpf_insn *ins = &l->insns[i];

		if (ebpf_is_ld_imm64(ins))
			i++;
		else if (BPF_CLASS(ins->code) == BPF_JMP)
			n += BPF_OP(ins->code) == BPF_CALL && !ins->src_reg && is_inlined(ins->imm);
		else if (BPF_CLASS(ins->code) == BPF_ALU || BPF_CLASS(ins->code) == BPF_ALU64)
			n += BPF_OP(ins->code) == BPF_DIV || BPF_OP(ins->code) == BPF_MOD;
	}
	return n;
}

/* Refuses a program that would keep a processor for too long. For each instruction that the kernel
 * replaces, it moves all instructions (bpf_patch_insn_data()), without a pause in which the
 * processor could do something else or descry could be killed: with 20,000 clauses for minutes. */
static struct err *check_length(const struct image_prog *p, const struct linked *l)
{
	uint32_t n = replaced(l);

	if (l->ninsns > INSNS_MAX || (uint64_t)n * l->ninsns <= REPLACED_MAX)
		return NULL; /* the kernel refuses the one at once, and takes the other */
	return err_new(
		E2BIG,
		"the clauses of %s make a program of %u instructions with %u calls and divisions, which would keep a processor for too long while the kernel loads it: use fewer clauses, or -x engine=interp or inproc",
		p->name, l->ninsns, n);
}

/* Makes an error for a program that the kernel refused before its verifier ran. */
static struct err *refused(int error, const struct image_prog *p, const struct linked *l)
{
	if (error == E2BIG)
		return err_new(
			error,
			"the clauses of %s make a program of %u instructions, and the kernel takes at most %d: use fewer clauses, or -x engine=interp or inproc",
			p->name, l->ninsns, INSNS_MAX);
	return err_wrap(sys_err(error, "loading a program into the kernel"), "%s (%u instructions)",
			p->name, l->ninsns);
}

static struct err *rejected(struct kernel_engine *k, const struct image_prog *p,
			    const struct linked *l, union bpf_attr *a)
{
	char *log = mmap(NULL, LOG_SIZE, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	const char *dump = getenv("DESCRY_BPFLOG");
	long insn, own;

	if (log == MAP_FAILED)
		return err_errno(ENOMEM, "loading program %s", p->name);
	a->log_buf = (uintptr_t)log;
	a->log_size = LOG_SIZE;
	a->log_level = dump && *dump == '2' ? 2 : 1;
	int fd = sys_prog_load(a), error = errno;

	if (fd >= 0)
		close(fd); /* accepted at the second attempt, so the first failure was no verdict */
	log[LOG_SIZE - 1] = '\0';
	if (dump)
		fprintf(stderr, "%s: %s\n", p->name, log);
	if (!*log) {
		munmap(log, LOG_SIZE);
		return refused(error, p, l);
	}
	cleanup_free char *message = read_log(log, l->nown, &insn, &own);
	loc_t loc = own >= 0 ? l->locs[own] : 0;
	const char *in = p->name;

	for (uint32_t i = 0; insn >= 0 && i < l->nfuncs; i++)
		if (l->funcs[i].start <= (uint32_t)insn)
			in = l->funcs[i].name;
	munmap(log, LOG_SIZE);
	if (k->e.image->diags) {
		struct diags *d = k->e.image->diags;
		const char *hint, *why = not_permitted(message, &hint);

		if (why) {
			diag_error(d, loc, 0, "D_UNKNOWN", "%s%s", why, hint);
			return err_new(EPERM, "%s", why); /* another engine may be permitted */
		}
		diag_error(d, loc, 0, "D_VERIFIER", "the kernel rejects this clause: %s", message);
		if (has_loop(l) && strstr(message, " too "))
			diag_note(
				d, 0, 0,
				"the kernel walks through every possible round of a loop: use a smaller -x looplimit, or shorter loops");
		if (insn >= 0)
			diag_note(d, 0, 0,
				  "kernel says \"%s\" at instruction %ld of program %s, in %s",
				  message, insn, p->name, in);
	}
	return err_new(error, "the kernel rejects program %s: %s", p->name, message);
}

/* -x bpflog: prints the verifier's log of a program that the verifier accepts. */
static void show_log(const struct image_prog *p, union bpf_attr a)
{
	char *log = mmap(NULL, LOG_SIZE, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	int fd;

	if (log == MAP_FAILED)
		return;
	a.log_buf = (uintptr_t)log;
	a.log_size = LOG_SIZE;
	a.log_level = 1;
	fd = sys_prog_load(&a);
	if (fd >= 0)
		close(fd);
	log[LOG_SIZE - 1] = '\0';
	fprintf(stderr, "BPF: program %s\n", p->name);
	for (char *line = strtok(log, "\n"); line; line = strtok(NULL, "\n"))
		fprintf(stderr, "BPF: %s\n", line);
	munmap(log, LOG_SIZE);
}

/* --- loading --- */

static int32_t hook_map(void *arg, uint32_t index)
{
	struct kernel_engine *k = arg;

	return k->maps[index].fd;
}

static enum bpf_prog_type type_of(enum attach_kind kind)
{
	switch (kind) {
	case ATTACH_TP_BTF:
	case ATTACH_FENTRY:
	case ATTACH_FEXIT: return BPF_PROG_TYPE_TRACING;
	case ATTACH_TRACEPOINT: return BPF_PROG_TYPE_TRACEPOINT;
	case ATTACH_PROFILE:
	case ATTACH_TICK: return BPF_PROG_TYPE_PERF_EVENT;
	case ATTACH_UPROBE:
	case ATTACH_URETPROBE:
	case ATTACH_KPROBE:
	case ATTACH_KRETPROBE: return BPF_PROG_TYPE_KPROBE;
	default: return BPF_PROG_TYPE_RAW_TRACEPOINT;
	}
}

static const char *mode_of(enum attach_kind kind)
{
	switch (kind) {
	case ATTACH_SELF: return "test run";
	case ATTACH_TP_BTF: return "typed raw tracepoint";
	case ATTACH_TRACEPOINT: return "tracepoint";
	case ATTACH_PROFILE:
	case ATTACH_TICK: return "perf event";
	case ATTACH_UPROBE:
	case ATTACH_URETPROBE:
		return feature(FEATURE_UPROBE_MULTI) ? "uprobe_multi" : "perf uprobe";
	case ATTACH_KPROBE:
	case ATTACH_KRETPROBE:
		return feature(FEATURE_KPROBE_MULTI) ? "kprobe_multi" : "perf kprobe";
	case ATTACH_FENTRY: return "fentry";
	case ATTACH_FEXIT: return "fexit";
	default: return "raw tracepoint";
	}
}

/* Fixes the probe `index` in the copy, instead of the cookie of the probe that fired. */
static void fix_probe(struct linked *l, const struct image_prog *p, uint32_t index)
{
	for (uint32_t i = 0; i < l->nown; i++) {
		struct bpf_insn *ins = &l->insns[i];

		if (ins->code == (BPF_JMP | BPF_CALL) && !ins->src_reg &&
		    ins->imm == HELPER_GET_ATTACH_COOKIE)
			*ins = (struct bpf_insn){ .code = BPF_ALU64 | BPF_MOV | BPF_K,
						  .dst_reg = BPF_REG_0,
						  .imm = (int32_t)index };
		else if (ins->code == (BPF_LD | BPF_IMM | BPF_DW))
			i++;
	}
}

static struct err *tracepoint_id(struct kernel_engine *k, const char *tracepoint, uint32_t *ret)
{
	cleanup_free char *name = xasprintf("btf_trace_%s", tracepoint);
	const char *why = k->e.image->types ? type_kernel_err(k->e.image->types) : "no types";

	if (k->e.image->types && type_kernel_btf_id(k->e.image->types, BTF_KIND_TYPEDEF, name, ret))
		return NULL;
	return err_new(ENOENT, "tracepoint %s is not in the kernel's BTF%s%s", tracepoint,
		       why ? ": " : "", why ? why : "");
}

struct err *prog_load_copy(struct kernel_engine *k, uint32_t prog, uint32_t probe,
			   const char *tracepoint, bool tell)
{
	const struct image_prog *p = &k->e.image->progs[prog];
	struct link_hooks hooks = { k, hook_map };
	struct linked l;
	union bpf_attr a = { .prog_type = type_of(p->attach), .license = (uintptr_t) "GPL" };
	cleanup_close int module = -1;
	struct err *e = NULL;

	sys_object_name(a.prog_name, p->name);
	if (p->attach == ATTACH_TP_BTF) {
		e = tracepoint_id(k, tracepoint, &a.attach_btf_id);
		a.expected_attach_type = BPF_TRACE_RAW_TP;
	} else if (is_trampoline(p->attach)) {
		e = fentry_place(k, probe, p->attach == ATTACH_FEXIT, &a, &module);
	} else if (is_kprobe(p->attach)) {
		if (feature(FEATURE_KPROBE_MULTI))
			a.expected_attach_type = BPF_TRACE_KPROBE_MULTI;
	} else if (a.prog_type == BPF_PROG_TYPE_KPROBE && feature(FEATURE_UPROBE_MULTI)) {
		a.expected_attach_type = (enum bpf_attach_type)ATTACH_TYPE_UPROBE_MULTI;
	}
	if (p->sleepable)
		a.prog_flags |= BPF_F_SLEEPABLE;
	e = e ?: link_prog(p, &hooks, &l);
	if (e)
		return err_wrap(e, "program %s", p->name);
	if (probe != UINT32_MAX)
		fix_probe(&l, p, probe);
	e = check_length(p, &l);
	if (e) {
		linked_free(&l);
		return e;
	}
	linked_types(&l);
	cleanup_close int btf = sys_btf_load(l.btf, l.btf_size);
	if (btf < 0) {
		e = sys_err(errno, "loading a program's types into the kernel");
		linked_free(&l);
		return e;
	}
	a.prog_btf_fd = (uint32_t)btf;
	a.func_info_rec_size = sizeof(struct bpf_func_info);
	a.func_info = (uintptr_t)l.func_info;
	a.func_info_cnt = l.nfuncs;
	a.insns = (uintptr_t)l.insns;
	a.insn_cnt = l.ninsns;

	int fd = sys_prog_load(&a);
	if (fd < 0)
		e = tell ? rejected(k, p, &l, &a)
			 : err_wrap(sys_err(errno, "loading a program into the kernel"), "%s",
				    p->name);
	else if (k->e.image->options && opt_on(k->e.image->options, OPT_BPFLOG))
		show_log(p, a);
	if (fd >= 0)
		vec_push(&k->instances, (struct instance){ fd, prog, probe, tracepoint,
							   mode_of(p->attach), l.ninsns });
	linked_free(&l);
	return e;
}

/* Returns true when this kernel gives programs of this kind the cookie of the probe that fired. */
static bool has_cookies(enum attach_kind kind)
{
	switch (kind) {
	case ATTACH_RAW_TP:
	case ATTACH_TP_BTF: return feature(FEATURE_RAW_TP_COOKIE);
	case ATTACH_TRACEPOINT:
	case ATTACH_PROFILE:
	case ATTACH_TICK: return feature(FEATURE_PERF_LINK);
	case ATTACH_UPROBE:
	case ATTACH_URETPROBE: return feature(FEATURE_UPROBE_MULTI) || feature(FEATURE_PERF_LINK);
	case ATTACH_KPROBE:
	case ATTACH_KRETPROBE: return feature(FEATURE_KPROBE_MULTI) || feature(FEATURE_PERF_LINK);
	default: return false;
	}
}

static bool loaded_for(const struct kernel_engine *k, uint32_t prog, const char *tracepoint)
{
	for (uint32_t i = 0; i < k->instances.n; i++)
		if (k->instances.v[i].prog == prog &&
		    !strcmp(k->instances.v[i].tracepoint, tracepoint))
			return true;
	return false;
}

bool prog_is_for_each(const struct image_prog *p)
{
	return p->uses_cookie && !has_cookies(p->attach);
}

static struct err *load_prog(struct kernel_engine *k, uint32_t prog)
{
	const struct image *img = k->e.image;
	const struct image_prog *p = &img->progs[prog];
	struct err *e = NULL;

	if (!p->nprobes)
		return prog_load_copy(k, prog, UINT32_MAX, p->tracepoint, true);
	if (is_trampoline(p->attach))
		return NULL; /* loaded together with the kprobes that it replaces */
	if (is_kprobe(p->attach)) {
		if (p->fentry)
			e = fentry_load(k, p->fentry);
		return e ? e : kprobes_load(k, prog);
	}
	if (prog_is_for_each(p)) {
		for (uint32_t i = 0; i < p->nprobes && !e; i++)
			e = prog_load_copy(k, prog, p->probes[i],
					   img->probes[p->probes[i]].probe->object, true);
		return e;
	}
	if (p->attach != ATTACH_TP_BTF)
		return prog_load_copy(k, prog, UINT32_MAX, NULL, true);
	for (uint32_t i = 0; i < p->nprobes && !e; i++) {
		const char *tp = img->probes[p->probes[i]].probe->object;

		if (!loaded_for(k, prog, tp))
			e = prog_load_copy(k, prog, UINT32_MAX, tp, true);
	}
	return e;
}

struct err *progs_load(struct kernel_engine *k)
{
	struct err *first = NULL;

	/* Loads every program even after a failure, so that one run shows every rejection. */
	for (uint32_t i = 0; i < k->e.image->nprogs; i++) {
		struct err *e = load_prog(k, i);

		if (!e)
			continue;
		if (first)
			err_free(e);
		else
			first = e;
	}
	return !first && fentry_only(k) ? fentry_left(k) : first;
}

void progs_close(struct kernel_engine *k)
{
	for (uint32_t i = 0; i < k->instances.n; i++)
		close(k->instances.v[i].fd);
	vec_fini(&k->instances);
}
