/* Attaches to kernel functions: by one kprobe_multi link where the kernel has it, else by a perf
 * event for each place. */
#define _GNU_SOURCE
#include "load/kernel/kernel_private.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>

#include "base/io.h"

/* The most refusals that get a note each. */
enum { NOTES_MAX = 5 };

bool is_kprobe(enum attach_kind kind)
{
	return kind == ATTACH_KPROBE || kind == ATTACH_KRETPROBE;
}

static bool is_loaded(const struct kernel_engine *k, uint32_t prog, uint32_t probe)
{
	for (uint32_t i = 0; i < k->instances.n; i++)
		if (k->instances.v[i].prog == prog && k->instances.v[i].probe == probe)
			return true;
	return false;
}

struct err *kprobes_load(struct kernel_engine *k, uint32_t prog)
{
	const struct image_prog *p = &k->e.image->progs[prog];
	bool each = prog_is_for_each(p);
	struct err *e = NULL;

	for (uint32_t i = 0; i < p->nprobes && !e && !fentry_only(k); i++) {
		uint32_t probe = each ? p->probes[i] : UINT32_MAX;

		if (!k->trampoline[p->probes[i]] && !is_loaded(k, prog, probe))
			e = prog_load_copy(k, prog, probe, NULL, true);
	}
	return e;
}

struct places {
	struct kernel_engine *k;
	int prog;
	bool ret;
	VEC(uint64_t) addrs;
	VEC(uint64_t) cookies;
	uint32_t attached, refused;
	int error; /* the last refusal's errno */
};

/* Would every other place fail with the same error? */
static bool is_fatal(int error)
{
	return error == EPERM || error == EACCES || error == ENOMEM || error == EMFILE ||
	       error == ENFILE;
}

static const char *why_refused(int error)
{
	switch (error) {
	case EINVAL:
	case EADDRNOTAVAIL:
	case ENOENT:
	case ESRCH: return "the kernel does not let anyone probe it";
	default: return strerror(error);
	}
}

static void kprobe_refuse(struct places *p, uint32_t i, int error)
{
	const struct image_probe *ip = &p->k->e.image->probes[p->cookies.v[i]];

	p->error = error;
	if (p->refused++ < NOTES_MAX && !is_fatal(error))
		engine_note(p->k, "%s:%s:%s:%s not enabled: %s", ip->prov, ip->mod, ip->func,
			    ip->name, why_refused(error));
}

/* Attaches places [from, to) by one link. When the kernel refuses, attaches each half, down to the
 * place that it refuses. */
static void attach_range(struct places *p, uint32_t from, uint32_t to)
{
	struct kprobe_multi m = {
		.addrs = p->addrs.v + from,
		.cookies = p->cookies.v + from,
		.n = to - from,
		.ret = p->ret,
	};
	int fd = sys_link_kprobe_multi(p->prog, &m);

	if (fd >= 0) {
		vec_push(&p->k->links, fd);
		p->attached += to - from;
	} else if (to - from > 1 && !is_fatal(errno)) {
		uint32_t mid = from + (to - from) / 2;

		attach_range(p, from, mid);
		attach_range(p, mid, to);
	} else {
		int error = errno;

		for (uint32_t i = from; i < to; i++)
			kprobe_refuse(p, i, error);
	}
}

static struct err *attach_perf(struct places *p)
{
	cleanup_free char *text = NULL;
	struct err *e = io_read_file("/sys/bus/event_source/devices/kprobe/type", &text, NULL);

	if (e)
		return err_wrap(e, "this kernel has no kprobes");
	for (uint32_t i = 0; i < p->addrs.n; i++) {
		struct perf_event_attr a = {
			.type = (uint32_t)atoi(text),
			.size = sizeof(a),
			.config = p->ret ? 1 : 0,
			.config2 = p->addrs.v[i],
		};
		/* The event belongs to CPU 0; the program runs on all CPUs. */
		cleanup_close int ev =
			(int)syscall(SYS_perf_event_open, &a, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);
		int link = ev < 0 ? -1 : sys_link_perf(p->prog, ev, p->cookies.v[i]);

		if (link >= 0) {
			vec_push(&p->k->links, link);
			p->attached++;
			continue;
		}
		kprobe_refuse(p, i, errno);
		if (is_fatal(p->error))
			break;
	}
	return NULL;
}

struct err *attach_kprobes(struct kernel_engine *k, struct instance *in)
{
	const struct image *img = k->e.image;
	const struct image_prog *prog = &img->progs[in->prog];
	struct places p = { .k = k, .prog = in->fd, .ret = prog->attach == ATTACH_KRETPROBE };
	struct err *e = NULL;

	for (uint32_t i = 0; i < prog->nprobes; i++) {
		const struct probe *q = img->probes[prog->probes[i]].probe;

		if ((in->probe != UINT32_MAX && in->probe != prog->probes[i]) ||
		    k->trampoline[prog->probes[i]])
			continue;
		for (uint32_t j = 0; j < q->naddrs; j++) {
			vec_push(&p.addrs, q->addrs[j]);
			vec_push(&p.cookies, prog->probes[i]);
		}
	}
	if (feature(FEATURE_KPROBE_MULTI))
		attach_range(&p, 0, p.addrs.n);
	else
		e = attach_perf(&p);
	if (!e && p.refused && (is_fatal(p.error) || !p.attached))
		e = is_fatal(p.error)
			    ? sys_err(p.error, "attaching kprobes")
			    : err_new(p.error, "none of %u function%s can be probed: %s", p.refused,
				      p.refused == 1 ? "" : "s", why_refused(p.error));
	else if (p.refused > NOTES_MAX)
		engine_note(k, "%u more functions not enabled", p.refused - NOTES_MAX);
	vec_fini(&p.addrs);
	vec_fini(&p.cookies);
	return e;
}
