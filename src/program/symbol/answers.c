/* Queries the kernel for its symbols, an address at a time:
 *
 *	vfs_read+0x10/0x2c0
 *	ext4_iget+0x0/0x5a0 [ext4]
 *	0xffff888003c0ffee
 */
#include <fcntl.h>

#include "base/number.h"
#include "program/symbol/symbol_private.h"

enum {
	ANSWERS_MAX = 1 << 16, /* then all are dropped, because sym() may be given any value */
	HEAD = 4096,
};

void symbols_ask_kernel(struct symbols *s, const char *(*ask)(void *arg, uint64_t addr), void *arg)
{
	s->answers.ask = ask;
	s->answers.arg = arg;
}

/* Returns true when any symbol has an address other than 0. The first symbols may be a processor's
 * own data, whose addresses are offsets from 0. */
bool kallsyms_shows(const char *text, size_t len)
{
	const char *end = text + len, *nl;
	uint64_t addr;

	for (const char *p = text; (nl = memchr(p, '\n', (size_t)(end - p))); p = nl + 1)
		if (number_take_hex(&p, nl, &addr) && addr)
			return true;
	return false;
}

/* Returns true when kallsyms shows addresses to this process. The kernel answers queries even when
 * it hides kallsyms, but addresses that an administrator hides must stay hidden. */
static bool is_shown(void)
{
	cleanup_close int fd = open("/proc/kallsyms", O_RDONLY | O_CLOEXEC);
	char head[HEAD];
	ssize_t n = fd >= 0 ? read(fd, head, sizeof(head)) : -1;

	return n > 0 && kallsyms_shows(head, (size_t)n);
}

/* Returns true for a name that kallsyms lists under [bpf]: programs, trampolines and struct_ops.
 * The kernel's answer has no module for them. */
static bool is_bpf(const char *name, size_t len)
{
	static const char prog[] = "bpf_prog_", trampoline[] = "bpf_trampoline_", ops[] = "bpf__";
	size_t n = sizeof(prog) - 1;

	if (len >= n + 16 && !memcmp(name, prog, n))
		return strspn(name + n, "0123456789abcdef") == 16;
	n = sizeof(trampoline) - 1;
	if (len > n && !memcmp(name, trampoline, n))
		return name[n] >= '0' && name[n] <= '9';
	return len > sizeof(ops) - 1 && !memcmp(name, ops, sizeof(ops) - 1);
}

/* Parses NAME "+0x" OFFSET "/0x" SIZE [" [" MODULE "]"]. */
bool answer_parse(struct symbols *s, const char *text, struct place *ret)
{
	const char *end = text + strlen(text), *plus = strrchr(text, '+'), *p, *module;
	uint64_t size, offset;
	size_t len;

	memset(ret, 0, sizeof(*ret));
	if (!plus || plus == text || strncmp(plus, "+0x", 3))
		return false;
	p = plus + 3;
	if (!number_take_hex(&p, end, &offset) || strncmp(p, "/0x", 3))
		return false;
	p += 3;
	if (!number_take_hex(&p, end, &size))
		return false;
	len = (size_t)(plus - text);
	if (!*p && is_bpf(text, len)) {
		module = "bpf";
	} else if (!*p) {
		module = "vmlinux";
	} else {
		if (strncmp(p, " [", 2) || end - p < 4 || end[-1] != ']')
			return false;
		module = intern_text(&s->names,
				     intern_strn(&s->names, p + 2, (size_t)(end - p) - 3));
	}
	ret->function = intern_text(&s->names, intern_strn(&s->names, text, len));
	if (offset && is_end_mark(ret->function)) {
		memset(ret, 0, sizeof(*ret));
		return false;
	}
	ret->module = module;
	ret->offset = offset;
	return true;
}

/* Returns false when the kernel cannot be queried. */
static bool may_ask(struct kernel_answers *a)
{
	if (a->ask && !a->shown) {
		a->shown = is_shown();
		if (!a->shown)
			a->ask = NULL;
	}
	return a->ask != NULL;
}

bool answer_find(struct symbols *s, uint64_t addr, struct place *ret)
{
	struct kernel_answers *a = &s->answers;
	uint64_t *known = hash_get(&a->addr, &addr, sizeof(addr));
	const char *text;

	if (known) {
		*ret = a->places.v[*known];
		return true;
	}
	if (!may_ask(a))
		return false;
	text = a->ask(a->arg, addr);
	if (!text) {
		a->ask = NULL;
		return false;
	}
	if (!answer_parse(s, text, ret))
		return false;
	if (a->places.n == ANSWERS_MAX)
		answers_fini(a);
	*hash_put(&a->addr, &addr, sizeof(addr), NULL) = a->places.n;
	vec_push(&a->places, *ret);
	return true;
}

void answers_fini(struct kernel_answers *a)
{
	hash_fini(&a->addr);
	vec_fini(&a->places);
}
