/* Counts firings that the kernel left out. The kernel does not run a program while it (or, for some
 * kinds, any program) runs on the same CPU, and takes no kprobe inside another. */
#include "load/kernel/kernel_private.h"

/* struct bpf_link_info. The parts used came with 6.7; older kernels leave 0. */
struct link_info {
	uint32_t type, id, prog_id, pad;
	union {
		struct {
			uint64_t addrs;
			uint32_t count, flags;
			uint64_t missed, cookies;
		} kprobe_multi;
		struct {
			uint32_t type, pad;
			uint64_t func_name;
			uint32_t name_len, offset;
			uint64_t addr, missed, cookie;
		} perf_event;
		uint8_t room[64];
	};
};
enum {
	LINK_PERF_EVENT = 7,
	LINK_KPROBE_MULTI = 8,
	PERF_EVENT_KPROBE = 3,
	PERF_EVENT_KRETPROBE = 4
};

_Static_assert(offsetof(struct link_info, kprobe_multi.missed) == 32, "bpf_link_info");
_Static_assert(offsetof(struct link_info, perf_event.missed) == 48, "bpf_link_info");

static uint64_t of_link(int fd)
{
	struct link_info info = { 0 };
	union bpf_attr a = { .info = { .bpf_fd = (uint32_t)fd,
				       .info_len = sizeof(info),
				       .info = (uintptr_t)&info } };

	if (fd < 0 || sys_bpf(BPF_OBJ_GET_INFO_BY_FD, &a, sizeof(a)))
		return 0;
	if (info.type == LINK_KPROBE_MULTI)
		return info.kprobe_multi.missed;
	if (info.type == LINK_PERF_EVENT && (info.perf_event.type == PERF_EVENT_KPROBE ||
					     info.perf_event.type == PERF_EVENT_KRETPROBE))
		return info.perf_event.missed;
	return 0;
}

static uint64_t of_prog(int fd)
{
	struct bpf_prog_info info = { 0 };
	union bpf_attr a = { .info = { .bpf_fd = (uint32_t)fd,
				       .info_len = sizeof(info),
				       .info = (uintptr_t)&info } };

	return sys_bpf(BPF_OBJ_GET_INFO_BY_FD, &a, sizeof(a)) ? 0 : info.recursion_misses;
}

static bool by_kprobe(const struct kernel_engine *k, const struct instance *in)
{
	return is_kprobe(k->e.image->progs[in->prog].attach);
}

void missed_keep(struct kernel_engine *k, const struct instance *in)
{
	for (uint32_t i = in->first_link; by_kprobe(k, in) && i < in->end_link; i++)
		k->missed += of_link(k->links.v[i]);
}

uint64_t missed_count(struct kernel_engine *k)
{
	uint64_t n = k->missed;

	for (uint32_t i = 0; i < k->instances.n; i++) {
		const struct instance *in = &k->instances.v[i];

		n += of_prog(in->fd);
		for (uint32_t l = in->first_link;
		     by_kprobe(k, in) && l < in->end_link && l < k->links.n; l++)
			n += of_link(k->links.v[l]);
	}
	return n;
}
