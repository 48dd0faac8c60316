/* The kernel's helpers, for programs that run in this process. "Kernel" memory is this process's
 * memory. "User" memory is so too, unless an event of the process connector belongs to another
 * process. */
#define _GNU_SOURCE
#include <errno.h>
#include <sys/prctl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>

#include "base/clock.h"
#include "base/procmem.h"
#include "load/interp/interp_private.h"

enum { LOOP_MAX = 1 << 23, PAGE = 4096 };

/* Returns the map that a register points to; LD_IMM64 has loaded its address. */
static struct interp_map *map_arg(struct interp *in, uint64_t r)
{
	struct interp_engine *e = in->arg;
	uint64_t off = r - (uintptr_t)e->maps;

	if (off % sizeof(*e->maps) || off / sizeof(*e->maps) >= e->base.image->nmaps) {
		interp_fail(in, "0x%llx is not a map", (unsigned long long)r);
		return NULL;
	}
	return &e->maps[off / sizeof(*e->maps)];
}

static const void *key_arg(struct interp *in, const struct interp_map *m, uint64_t r)
{
	if (m && m->def->type == BPF_MAP_TYPE_TASK_STORAGE) {
		interp_fail(in, "map %s has tasks for keys", m->def->name);
		return NULL;
	}
	return m ? interp_bytes(in, r, m->def->key_size, false) : NULL;
}

/* Returns the process whose "user" memory the program reads. "Kernel" memory is always this
 * process's, because the stand-ins are in it. */
static pid_t user_pid(const struct interp *in)
{
	const struct interp_engine *e = in->arg;

	return e->event ? e->event->thread->facts.tgid : getpid();
}

/* Reads n bytes at any address. Returns false when some are not mapped. A bad address never causes
 * a signal. */
static bool read_any(pid_t pid, uint64_t addr, void *dst, uint64_t n)
{
	return !n || procmem_read(pid, dst, n, addr) == (ssize_t)n;
}

static uint64_t probe_read(struct interp *in, pid_t pid, uint64_t dst, uint64_t n, uint64_t src)
{
	void *p = interp_bytes(in, dst, (uint32_t)n, true);

	if (!p)
		return 0;
	if (read_any(pid, src, p, (uint32_t)n))
		return 0;
	memset(p, 0, (uint32_t)n);
	return (uint64_t)-EFAULT;
}

static uint64_t write_user(struct interp *in, uint64_t dst, uint64_t src, uint64_t n)
{
	const void *p = interp_bytes(in, src, (uint32_t)n, false);
	struct iovec from = { (void *)p, (uint32_t)n },
		     to = { (void *)(uintptr_t)dst, (uint32_t)n };

	if (!p || !n)
		return 0;
	return process_vm_writev(user_pid(in), &from, 1, &to, 1, 0) == (ssize_t)n
		       ? 0
		       : (uint64_t)-EFAULT;
}

/* Reads text up to its NUL, page by page, because the page behind the text may be unmapped. Returns
 * the length with the NUL. Keeps the bytes behind the NUL in dst as the kernel does, because keys
 * are compared whole. */
static uint64_t probe_read_str(struct interp *in, pid_t pid, uint64_t dst, uint64_t n, uint64_t src)
{
	uint8_t *p, *nul, page[PAGE];
	uint64_t done = 0, step;

	n = (uint32_t)n;
	p = interp_bytes(in, dst, n, true);
	if (!p || !n)
		return 0;
	while (done < n) {
		step = PAGE - (src + done) % PAGE;
		if (step > n - done)
			step = n - done;
		if (!read_any(pid, src + done, page, step)) {
			memset(p, 0, n);
			return (uint64_t)-EFAULT;
		}
		nul = memchr(page, 0, step);
		memcpy(p + done, page, nul ? (size_t)(nul - page) + 1 : step);
		if (nul)
			return done + (uint64_t)(nul - page) + 1;
		done += step;
	}
	p[n - 1] = '\0';
	return n;
}

static uint64_t loop(struct interp *in, const uint64_t a[5])
{
	uint64_t args[5] = { 0, a[2] }, r0, n = (uint32_t)a[0];

	if (a[3])
		return (uint64_t)-EINVAL;
	if (n > LOOP_MAX)
		return (uint64_t)-E2BIG;
	for (uint64_t i = 0; i < n; i++) {
		args[0] = i;
		if (!interp_call(in, a[1], args, &r0))
			return 0;
		if (r0)
			return i + 1;
	}
	return n;
}

static uint64_t map_update(struct interp *in, const uint64_t a[5])
{
	struct interp_engine *e = in->arg;
	struct interp_map *m = map_arg(in, a[0]);
	const void *key = key_arg(in, m, a[1]), *value;

	if (!key)
		return 0;
	value = interp_bytes(in, a[2], m->def->value_size, false);
	return value ? (uint64_t)interp_map_update(m, &e->mem, key, value, a[3]) : 0;
}

static uint64_t task_storage_get(struct interp *in, const uint64_t a[5])
{
	struct interp_engine *e = in->arg;
	struct interp_map *m = map_arg(in, a[0]);
	uint8_t *p;

	if (!m || !a[1])
		return 0;
	if (m->def->type != BPF_MAP_TYPE_TASK_STORAGE) {
		interp_fail(in, "map %s is no task storage", m->def->name);
		return 0;
	}
	p = interp_map_lookup(m, &a[1]);
	if (!p && (a[3] & BPF_LOCAL_STORAGE_GET_F_CREATE)) {
		interp_map_update(m, &e->mem, &a[1], NULL, BPF_ANY);
		p = interp_map_lookup(m, &a[1]);
	}
	return (uintptr_t)p;
}

static uint64_t ring_output(struct interp *in, const uint64_t a[5])
{
	struct interp_engine *e = in->arg;
	struct interp_map *m = map_arg(in, a[0]);
	const void *data = m ? interp_bytes(in, a[1], a[2], false) : NULL;
	void *p;

	if (!data)
		return 0;
	p = interp_ring_reserve(m, &e->mem, a[2]);
	if (!p)
		return (uint64_t)-EAGAIN;
	memcpy(p, data, a[2]);
	interp_ring_finish(m, &e->mem, p, false);
	return 0;
}

static uint64_t ring_finish(struct interp *in, uint64_t data, bool discard)
{
	struct interp_engine *e = in->arg;

	for (uint32_t i = 0; i < e->base.image->nmaps; i++) {
		if (interp_ring_finish(&e->maps[i], &e->mem, (void *)(uintptr_t)data, discard))
			return 0;
	}
	interp_fail(in, "0x%llx is not a reserved record", (unsigned long long)data);
	return 0;
}

static uint64_t ring_query(struct interp *in, const uint64_t a[5])
{
	struct interp_map *m = map_arg(in, a[0]);

	if (!m)
		return 0;
	return a[1] == BPF_RB_AVAIL_DATA  ? m->ring_used
	       : a[1] == BPF_RB_RING_SIZE ? m->max_entries
					  : 0;
}

static uint64_t current_comm(struct interp *in, const uint64_t a[5])
{
	const struct interp_engine *e = in->arg;
	char name[16] = "", *p = interp_bytes(in, a[0], (uint32_t)a[1], true);

	if (!p || !a[1])
		return 0;
	if (e->event)
		memcpy(name, e->event->thread->facts.comm, sizeof(name));
	else
		prctl(PR_GET_NAME, name);
	memset(p, 0, (uint32_t)a[1]);
	memcpy(p, name, (uint32_t)a[1] < sizeof(name) ? (uint32_t)a[1] : sizeof(name));
	p[(uint32_t)a[1] - 1] = '\0';
	return 0;
}

static uint64_t helper(struct interp *in, uint32_t id, const uint64_t a[5])
{
	struct interp_engine *e = in->arg;
	const struct task_facts *who = e->event ? &e->event->thread->facts : NULL;
	struct interp_map *m;
	const void *key, *p, *q;

	switch (id) {
	case BPF_FUNC_map_lookup_elem:
	case BPF_FUNC_map_lookup_percpu_elem:
		m = map_arg(in, a[0]);
		key = key_arg(in, m, a[1]);
		if (id == BPF_FUNC_map_lookup_percpu_elem && a[2])
			return 0; /* the interpreter has one CPU */
		return key ? (uintptr_t)interp_map_lookup(m, key) : 0;
	case BPF_FUNC_map_update_elem: return map_update(in, a);
	case BPF_FUNC_map_delete_elem:
		m = map_arg(in, a[0]);
		key = key_arg(in, m, a[1]);
		return key ? (uint64_t)interp_map_delete(m, key) : 0;
	case BPF_FUNC_task_storage_get: return task_storage_get(in, a);
	case BPF_FUNC_task_storage_delete:
		m = map_arg(in, a[0]);
		if (!m || m->def->type != BPF_MAP_TYPE_TASK_STORAGE)
			return (uint64_t)-EINVAL;
		return (uint64_t)interp_map_delete(m, &a[1]);

	case BPF_FUNC_ringbuf_reserve:
		m = map_arg(in, a[0]);
		return m ? (uintptr_t)interp_ring_reserve(m, &e->mem, a[1]) : 0;
	case BPF_FUNC_ringbuf_submit: return ring_finish(in, a[0], false);
	case BPF_FUNC_ringbuf_discard: return ring_finish(in, a[0], true);
	case BPF_FUNC_ringbuf_output: return ring_output(in, a);
	case BPF_FUNC_ringbuf_query: return ring_query(in, a);

	case BPF_FUNC_probe_read:
	case BPF_FUNC_probe_read_kernel: return probe_read(in, getpid(), a[0], a[1], a[2]);
	case BPF_FUNC_probe_read_user:
	case BPF_FUNC_copy_from_user: return probe_read(in, user_pid(in), a[0], a[1], a[2]);
	case BPF_FUNC_probe_read_str:
	case BPF_FUNC_probe_read_kernel_str: return probe_read_str(in, getpid(), a[0], a[1], a[2]);
	case BPF_FUNC_probe_read_user_str:
		return probe_read_str(in, user_pid(in), a[0], a[1], a[2]);
	case BPF_FUNC_probe_write_user: return write_user(in, a[0], a[1], a[2]);
	case BPF_FUNC_strncmp:
		/* The second text is constant and at most as long as the first. */
		p = interp_bytes(in, a[0], (uint32_t)a[1], false);
		q = interp_bytes(in, a[2], (uint32_t)a[1], false);
		return p && q ? (uint64_t)(int64_t)strncmp(p, q, (uint32_t)a[1]) : 0;

	case BPF_FUNC_ktime_get_ns: return e->event ? e->event->time : clock_ns(CLOCK_MONOTONIC);
	case BPF_FUNC_ktime_get_boot_ns: return clock_ns(CLOCK_BOOTTIME);
	case BPF_FUNC_ktime_get_coarse_ns: return clock_ns(CLOCK_MONOTONIC_COARSE);
	case BPF_FUNC_ktime_get_tai_ns: return clock_ns(CLOCK_TAI);
	case BPF_FUNC_get_prandom_u32: return (uint32_t)random() ^ (uint32_t)random() << 16;
	case BPF_FUNC_get_smp_processor_id:
	case BPF_FUNC_get_numa_node_id: return 0;
	case BPF_FUNC_get_current_pid_tgid:
		if (who)
			return (uint64_t)who->tgid << 32 | (uint32_t)who->pid;
		return (uint64_t)getpid() << 32 | (uint32_t)gettid();
	case BPF_FUNC_get_current_uid_gid:
		if (who)
			return (uint64_t)(uint32_t)who->gid << 32 | (uint32_t)who->uid;
		return (uint64_t)getgid() << 32 | getuid();
	case BPF_FUNC_get_current_comm: return current_comm(in, a);
	case BPF_FUNC_get_current_task:
	case BPF_FUNC_get_current_task_btf:
		return e->event ? interp_task_of(e, e->event->thread) : interp_task(e);
	case BPF_FUNC_get_attach_cookie: return e->cookie;
	case BPF_FUNC_get_func_ip:
	case BPF_FUNC_task_pt_regs:
	case BPF_FUNC_trace_printk: return 0;

	case BPF_FUNC_loop: return loop(in, a);
	case BPF_FUNC_send_signal: return kill(user_pid(in), (int)a[0]) ? (uint64_t)-errno : 0;
	case BPF_FUNC_send_signal_thread:
		return syscall(SYS_tgkill, user_pid(in), who ? who->pid : gettid(), (int)a[0])
			       ? (uint64_t)-errno
			       : 0;
	/* Refuses stacks: neither the kernel's stack nor this process's own belongs to the
	 * program. */
	case BPF_FUNC_get_stack:
	case BPF_FUNC_get_stackid: return (uint64_t)-EFAULT;
	}
	interp_fail(in, "helper %s is not known to the interpreter",
		    ebpf_helper_name(id) ? ebpf_helper_name(id) : "");
	return 0;
}

static bool resolve(struct interp *in, const struct bpf_insn *insn, uint64_t *ret_value)
{
	struct interp_engine *e = in->arg;
	struct interp_map *m;

	if ((uint32_t)insn->imm >= e->base.image->nmaps)
		return false;
	m = &e->maps[insn->imm];
	switch (insn->src_reg) {
	case BPF_PSEUDO_MAP_FD: *ret_value = (uintptr_t)m; return true;
	case BPF_PSEUDO_MAP_VALUE:
		if (!interp_map_is_array(m))
			return false;
		*ret_value = (uintptr_t)m->blocks.v[0] + (uint32_t)insn[1].imm;
		return true;
	}
	return false;
}

/* Loads through a pointer with a BTF type, where an unmapped address reads as 0. */
static bool helpers_load(struct interp *in, uint64_t addr, uint32_t size, uint64_t *ret_value)
{
	*ret_value = 0;
	return addr < PAGE;
}

const struct interp_ops interp_engine_ops = { .helper = helper,
					      .resolve = resolve,
					      .load = helpers_load };
