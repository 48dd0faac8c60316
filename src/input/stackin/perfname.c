/* Makes names of functions and commands as stackcollapse-perf.pl does, to the byte. */
#define _GNU_SOURCE
#include "input/stackin/stackin_reader.h"

#include "base/characters.h"

enum {
	TIDY_ROOM = 64,          /* for the marks and brackets added to a name */
	NAME_MAX_BYTES = 1 << 16 /* bytes of a function's or file's name; longer ones are cut */
};

static struct text shortened(struct text t)
{
	return t.n > NAME_MAX_BYTES ? (struct text){ t.s, NAME_MAX_BYTES } : t;
}

void perf_names_fini(struct perf_names *p)
{
	vec_fini(&p->scratch);
	vec_fini(&p->comm_text);
	vec_fini(&p->comm);
}

static struct text after_last(struct text t, char c)
{
	const char *p = memrchr(t.s, c, t.n);

	return p ? (struct text){ p + 1, t.n - (size_t)(p + 1 - t.s) } : t;
}

static bool ends_with(const char *s, size_t n, const char *end)
{
	size_t m = strlen(end);

	return n >= m && !memcmp(s + n - m, end, m);
}

static bool contains(struct text t, const char *what)
{
	return memmem(t.s, t.n, what, strlen(what)) != NULL;
}

/* /tmp/perf-NUMBER.map */
static bool is_jit_map(struct text mod)
{
	static const char front[] = "/tmp/perf-";
	const char *s = mod.s, *end = mod.s + mod.n;

	while ((s = memmem(s, (size_t)(end - s), front, sizeof(front) - 1))) {
		const char *p = s += sizeof(front) - 1;

		while (p < end && is_digit(*p))
			p++;
		if (p > s && end - p >= 4 && !memcmp(p, ".map", 4))
			return true;
	}
	return false;
}

static bool is_kernel(struct text mod)
{
	return (mod.n && mod.s[0] == '[') || ends_with(mod.s, mod.n, "vmlinux")
		       ? !contains(mod, "unknown")
		       : false;
}

/* Returns one function of a line, by its printed name. */
uint32_t perf_function(struct stackin *in, struct perf_names *p, struct text func, struct text pc,
		       struct text mod, bool inlined)
{
	static const char unknown[] = "[unknown]";
	const struct stackin_options *o = &in->options;
	size_t room, n;
	enum frame_kind kind;
	char *raw, *name;

	func = shortened(func);
	mod = shortened(mod);
	room = func.n + mod.n * 2 + pc.n + TIDY_ROOM;
	p->scratch.n = 0;
	vec_reserve(&p->scratch, room * 2);
	raw = p->scratch.v;
	name = raw + room;
	if (func.n == sizeof(unknown) - 1 && !memcmp(func.s, unknown, func.n)) {
		bool known = mod.n != func.n || memcmp(mod.s, unknown, mod.n);
		struct text shown = known ? after_last(mod, '/') : (struct text){ "unknown", 7 };

		func.n = o->addrs ? (size_t)sprintf(raw, "[%.*s <%.*s>]", (int)shown.n, shown.s,
						    (int)pc.n, pc.s)
				  : (size_t)sprintf(raw, "[%.*s]", (int)shown.n, shown.s);
		func.s = raw;
	}
	n = 0;
	if (o->module) {
		struct text shown = after_last(mod, '/');

		for (size_t i = 0; i < shown.n; i++)
			name[n++] = shown.s[i] == ';' ? ':' : shown.s[i];
		name[n++] = '`';
	}
	{
		char *start = name + n;
		size_t m = tidy_function(func.s, func.n, start);

		if (p->java && m && start[0] == 'L' && memchr(start, '/', m))
			memmove(start, start + 1, --m);
		n += m;
	}
	kind = frame_kind_of_text(name, &n); /* perf-PID.map files have marks */
	if (kind == FRAME_NATIVE)
		kind = inlined                       ? FRAME_INLINED
		       : o->kernel && is_kernel(mod) ? FRAME_KERNEL
		       : o->jit && is_jit_map(mod)   ? FRAME_JIT
						     : FRAME_NATIVE;
	characters_show(name, n);
	return stacktree_frame(in->tree, kind, name, n);
}

void perf_comm(struct stackin *in, struct perf_names *p, struct text comm, struct text pid,
	       struct text tid)
{
	char *s, *end, *semi;
	size_t n;

	if (!tid.n || (tid.n == 1 && tid.s[0] == '0')) {
		tid = pid;
		pid = (struct text){ "?", 1 };
	}
	comm = shortened(comm);
	n = comm.n;
	p->comm_text.n = 0;
	vec_reserve(&p->comm_text, comm.n + pid.n + tid.n + 4);
	s = p->comm_text.v;
	for (size_t i = 0; i < n; i++)
		s[i] = comm.s[i] == ' ' ? '_' : comm.s[i];
	if (in->options.tid)
		n += (size_t)sprintf(s + n, "-%.*s/%.*s", (int)pid.n, pid.s, (int)tid.n, tid.s);
	else if (in->options.pid)
		n += (size_t)sprintf(s + n, "-%.*s", (int)pid.n, pid.s);
	characters_show(s, n);
	p->java = n >= 4 && !memcmp(s, "java", 4);
	p->comm.n = 0;
	for (end = s + n;; s = semi + 1) {
		semi = memchr(s, ';', (size_t)(end - s));
		vec_push(&p->comm,
			 stacktree_marked(in->tree, s, (size_t)((semi ? semi : end) - s)));
		if (!semi)
			break;
	}
}
