/* Finds the kernel's features by trying them. */
#define _GNU_SOURCE
#include "load/kernel/kernel_private.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>

enum { HELPER_GET_ATTACH_COOKIE = 174, ATTACH_TYPE_UPROBE_MULTI = 48 };

static int load_tiny(enum bpf_prog_type type, uint32_t attach_type, const struct bpf_insn *insns,
		     uint32_t n)
{
	union bpf_attr a = { .prog_type = type,
			     .insns = (uintptr_t)insns,
			     .insn_cnt = n,
			     .license = (uintptr_t) "GPL",
			     .expected_attach_type = (enum bpf_attach_type)attach_type };

	return sys_prog_load(&a);
}

/* Loads a program that returns 0. Multi links require their attach type at load; kernels without
 * multi links ignore it. */
static int load_return_0(enum bpf_prog_type type, uint32_t attach_type)
{
	const struct bpf_insn insns[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};

	return load_tiny(type, attach_type, insns, 2);
}

/* The cookie's helper came to raw tracepoints together with the cookie. */
static bool try_raw_tp_cookie(void)
{
	const struct bpf_insn insns[] = {
		{ .code = BPF_JMP | BPF_CALL, .imm = HELPER_GET_ATTACH_COOKIE },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	cleanup_close int fd = load_tiny(BPF_PROG_TYPE_RAW_TRACEPOINT, 0, insns, 2);

	return fd >= 0;
}

/* Kernels with the link type read the path and refuse "/" because it is not a file. Others return
 * EINVAL. */
static bool try_uprobe_multi(void)
{
	uint64_t offset = 0;
	struct uprobe_multi u = { .path = "/", .offsets = &offset, .n = 1 };
	cleanup_close int prog = load_return_0(BPF_PROG_TYPE_KPROBE, ATTACH_TYPE_UPROBE_MULTI);

	if (prog < 0)
		return false;
	cleanup_close int link = sys_link_uprobe_multi(prog, &u);

	return link >= 0 || errno == EBADF;
}

/* Kernels with the links search for the function and return ESRCH. Others, and kernels built
 * without fprobes, return EINVAL or EOPNOTSUPP. */
static bool try_kprobe_multi(void)
{
	const char *sym = "descry:no such function";
	struct kprobe_multi m = { .syms = &sym, .n = 1 };
	cleanup_close int prog = load_return_0(BPF_PROG_TYPE_KPROBE, BPF_TRACE_KPROBE_MULTI);

	if (prog < 0)
		return false;
	cleanup_close int link = sys_link_kprobe_multi(prog, &m);

	return link >= 0 || errno == ESRCH;
}

/* A function that keeps its argument below the stack pointer while it passes a 5-byte nop. */
uint64_t feature_red_zone(uint64_t value);
extern const char feature_red_zone_nop[];
__asm__(".pushsection .text\n"
	".type feature_red_zone, @function\n"
	"feature_red_zone:\n"
	"	mov %rdi, -8(%rsp)\n"
	"feature_red_zone_nop:\n"
	"	.byte 0x0f, 0x1f, 0x44, 0x00, 0x00\n"
	"	mov -8(%rsp), %rax\n"
	"	ret\n"
	".size feature_red_zone, . - feature_red_zone\n"
	".popsection\n");

/* Finds the offset of an address of this program in its own file. */
static bool own_offset(uintptr_t addr, uint64_t *ret)
{
	struct mappings maps = { 0 };
	const struct mapping *m;

	err_free(mappings_read(getpid(), &maps));
	m = mappings_find(&maps, addr);
	if (m)
		*ret = addr - m->start + m->offset;
	mappings_free(&maps);
	return m;
}

/* Returns true when a uprobe on a 5-byte nop keeps data below the stack pointer. Linux 6.18 turns
 * the nop into a call, whose return address overwrites data of a leaf function (linux-trace-kernel,
 * May 2026). Tries it on feature_red_zone(). */
static bool try_nop5(void)
{
	enum { CALLS = 64 };
	uint64_t offset;
	struct uprobe_multi u = {
		.path = "/proc/self/exe", .offsets = &offset, .n = 1, .pid = (uint32_t)getpid()
	};
	cleanup_close int prog = load_return_0(BPF_PROG_TYPE_KPROBE, ATTACH_TYPE_UPROBE_MULTI);

	if (prog < 0 || !own_offset((uintptr_t)feature_red_zone_nop, &offset))
		return false;
	cleanup_close int link = sys_link_uprobe_multi(prog, &u);

	if (link < 0)
		return false;
	for (uint64_t i = 1; i <= CALLS; i++)
		if (feature_red_zone(i) != i)
			return false;
	return true;
}

static bool try_sleeping(void)
{
	const struct bpf_insn insns[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	union bpf_attr a = { .prog_type = BPF_PROG_TYPE_KPROBE,
			     .prog_flags = BPF_F_SLEEPABLE,
			     .insns = (uintptr_t)insns,
			     .insn_cnt = 2,
			     .license = (uintptr_t) "GPL" };
	cleanup_close int fd = sys_prog_load(&a);

	return fd >= 0 || errno == EPERM || errno == ENOSYS;
}

static bool try_perf_link(void)
{
	struct perf_event_attr pa = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(pa),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = 1000000000,
		.disabled = 1,
	};
	cleanup_close int ev =
		(int)syscall(SYS_perf_event_open, &pa, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);
	cleanup_close int prog = load_return_0(BPF_PROG_TYPE_PERF_EVENT, 0);

	if (ev < 0 || prog < 0)
		return false;
	cleanup_close int link = sys_link_perf(prog, ev, 1);

	return link >= 0;
}

bool feature(enum feature f)
{
	static int8_t known[FEATURE_COUNT]; /* 0 not tried, 1 yes, -1 no */
	static bool (*const try[FEATURE_COUNT])(void) = {
		[FEATURE_RAW_TP_COOKIE] = try_raw_tp_cookie,
		[FEATURE_UPROBE_MULTI] = try_uprobe_multi,
		[FEATURE_PERF_LINK] = try_perf_link,
		[FEATURE_KPROBE_MULTI] = try_kprobe_multi,
		[FEATURE_NOP5] = try_nop5,
		[FEATURE_SLEEPING] = try_sleeping,
	};

	if (!known[f])
		known[f] = try[f]() ? 1 : -1;
	return known[f] > 0;
}

bool feature_sleeps(void)
{
	return feature(FEATURE_SLEEPING);
}

struct err *feature_check_privilege(void)
{
	cleanup_close int fd = load_return_0(BPF_PROG_TYPE_RAW_TRACEPOINT, 0);

	if (fd >= 0)
		return NULL;
	if (errno == ENOSYS)
		return err_new(ENOSYS, "this kernel has no bpf(2): the kernel engine cannot run");
	return sys_err(errno, "loading a program into the kernel");
}
