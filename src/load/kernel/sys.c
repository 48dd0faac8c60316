/* The system calls of the kernel engine, bpf(2) above all, and their errors. */
#define _GNU_SOURCE
#include "load/kernel/kernel_private.h"

#include <ctype.h>
#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/io.h"
#include "base/shield.h"

/* Attribute layouts newer than the headers of Debian 12. The kernel refuses an unknown size only
 * when the bytes beyond its own size are not zero. */
struct attr_raw_tp_open {
	uint64_t name;
	uint32_t prog_fd, pad;
	uint64_t cookie; /* 6.10 */
};

struct attr_link_uprobe_multi {
	uint32_t prog_fd, target_fd, attach_type, flags;
	uint64_t path, offsets, ref_ctr_offsets, cookies;
	uint32_t cnt, multi_flags, pid, pad;
};
enum { ATTACH_TYPE_UPROBE_MULTI = 48, UPROBE_MULTI_RETURN = 1 };

struct attr_link_kprobe_multi {
	uint32_t prog_fd, target_fd, attach_type, flags;
	uint32_t multi_flags, cnt;
	uint64_t syms, addrs, cookies;
};

struct attr_link_perf {
	uint32_t prog_fd, target_fd, attach_type, flags;
	uint64_t cookie;
};

int sys_bpf(int cmd, void *attr, unsigned size)
{
	return (int)syscall(SYS_bpf, cmd, attr, size);
}

int sys_raw_tp_open(const char *name, int prog_fd, uint64_t cookie)
{
	struct attr_raw_tp_open a = { .name = (uintptr_t)name,
				      .prog_fd = (uint32_t)prog_fd,
				      .cookie = cookie };

	/* Without a cookie, passes the size that every kernel knows. */
	return sys_bpf(BPF_RAW_TRACEPOINT_OPEN, &a, cookie ? sizeof(a) : 16);
}

int sys_link_perf(int prog_fd, int perf_fd, uint64_t cookie)
{
	struct attr_link_perf a = { .prog_fd = (uint32_t)prog_fd,
				    .target_fd = (uint32_t)perf_fd,
				    .attach_type = BPF_PERF_EVENT,
				    .cookie = cookie };

	return sys_bpf(BPF_LINK_CREATE, &a, sizeof(a));
}

int sys_link_uprobe_multi(int prog_fd, const struct uprobe_multi *u)
{
	struct attr_link_uprobe_multi a = {
		.prog_fd = (uint32_t)prog_fd,
		.attach_type = ATTACH_TYPE_UPROBE_MULTI,
		.path = (uintptr_t)u->path,
		.offsets = (uintptr_t)u->offsets,
		.ref_ctr_offsets = (uintptr_t)u->semaphores,
		.cookies = (uintptr_t)u->cookies,
		.cnt = u->n,
		.multi_flags = u->ret ? UPROBE_MULTI_RETURN : 0,
		.pid = u->pid,
	};

	return (int)shield_syscall(SYS_bpf, BPF_LINK_CREATE, (intptr_t)&a, sizeof(a), 0, 0);
}

int sys_link_kprobe_multi(int prog_fd, const struct kprobe_multi *m)
{
	struct attr_link_kprobe_multi a = {
		.prog_fd = (uint32_t)prog_fd,
		.attach_type = BPF_TRACE_KPROBE_MULTI,
		.multi_flags = m->ret ? BPF_F_KPROBE_MULTI_RETURN : 0,
		.cnt = m->n,
		.syms = (uintptr_t)m->syms,
		.addrs = (uintptr_t)m->addrs,
		.cookies = (uintptr_t)m->cookies,
	};

	return sys_bpf(BPF_LINK_CREATE, &a, sizeof(a));
}

int sys_prog_load(union bpf_attr *attr)
{
	int fd;

	/* EAGAIN: a signal was pending while the verifier ran. */
	for (int i = 0; i < 5; i++) {
		fd = sys_bpf(BPF_PROG_LOAD, attr, sizeof(*attr));
		if (fd >= 0 || errno != EAGAIN)
			break;
	}
	return fd;
}

int sys_btf_load(const void *btf, uint32_t size)
{
	union bpf_attr a = { .btf = (uintptr_t)btf, .btf_size = size };

	return sys_bpf(BPF_BTF_LOAD, &a, sizeof(a));
}

void sys_object_name(char ret[BPF_OBJ_NAME_LEN], const char *name)
{
	memset(ret, 0, BPF_OBJ_NAME_LEN);
	for (uint32_t i = 0; i < BPF_OBJ_NAME_LEN - 1 && name[i]; i++)
		ret[i] = isalnum((unsigned char)name[i]) || name[i] == '.' ? name[i] : '_';
}

int sys_btf_of_module(const char *module)
{
	union bpf_attr next = { 0 };

	while (!sys_bpf(BPF_BTF_GET_NEXT_ID, &next, sizeof(next))) {
		union bpf_attr a = { .btf_id = next.next_id };
		char name[64] = "";
		struct bpf_btf_info info = { .name = (uintptr_t)name, .name_len = sizeof(name) };
		int fd = sys_bpf(BPF_BTF_GET_FD_BY_ID, &a, sizeof(a));

		next = (union bpf_attr){ .start_id = next.next_id };
		if (fd < 0 && errno == ENOENT)
			continue; /* it was unloaded meanwhile */
		if (fd < 0)
			return -1;
		a = (union bpf_attr){ .info = { .bpf_fd = (uint32_t)fd,
						.info_len = sizeof(info),
						.info = (uintptr_t)&info } };
		if (!sys_bpf(BPF_OBJ_GET_INFO_BY_FD, &a, sizeof(a)) && info.kernel_btf &&
		    !strcmp(name, module))
			return fd;
		close(fd);
	}
	return -1;
}

static bool lockdown_forbids(void)
{
	cleanup_free char *text = NULL;
	struct err *e = io_read_file("/sys/kernel/security/lockdown", &text, NULL);

	err_free(e);
	return !e && strstr(text, "[confidentiality]");
}

/* Returns the meaning of an errno of bpf(2) or perf_event_open(2) where strerror(3) misleads. */
static const char *meaning(int errno_value)
{
	enum { NOT_SUPPORTED = 524 /* ENOTSUPP, the kernel's own */ };

	switch (errno_value) {
	case E2BIG: return "this is larger than the kernel accepts";
	case EINVAL:
		return "the kernel does not know this form of it, or does not allow it (EINVAL)";
	case ENOMEM: return "the kernel has no memory for it";
	case ENOSPC: return "the kernel has no room or no counters left for it";
	case EMFILE: return "too many files are open (ulimit -n)";
	case EOPNOTSUPP:
	case NOT_SUPPORTED: return "this kernel does not support it";
	case EBUSY: return "another program has it";
	default: return NULL;
	}
}

struct err *sys_err(int errno_value, const char *what)
{
	if (errno_value == EPERM || errno_value == EACCES) {
		if (lockdown_forbids())
			return err_new(errno_value,
				       "%s: kernel lockdown (confidentiality) forbids tracing",
				       what);
		if (geteuid())
			return err_new(
				errno_value,
				"%s: permission denied: tracing in the kernel needs CAP_BPF and "
				"CAP_PERFMON, or root",
				what);
	}
	return meaning(errno_value) ? err_new(errno_value, "%s: %s", what, meaning(errno_value))
				    : err_errno(errno_value, "%s", what);
}
