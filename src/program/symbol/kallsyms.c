/* Reads kernel symbols from /proc/kallsyms:
 *
 *	ffffffff81a3b2c0 T vfs_read
 *	ffffffffc0123000 t ext4_iget	[ext4]
 */
#include "base/io.h"
#include "base/number.h"
#include "base/sorted.h"
#include "program/symbol/symbol_private.h"

static uint16_t module_index(struct kallsyms *k, const char *name, size_t len)
{
	len = strnlen(name, len);
	/* Lines of a module are adjacent, so it is nearly always the last one. */
	for (uint32_t i = k->modules.n; i--;)
		if (!strncmp(k->modules.v[i], name, len) && !k->modules.v[i][len])
			return (uint16_t)i;
	if (k->modules.n == UINT16_MAX)
		return 0;
	vec_push(&k->modules, xstrndup(name, len));
	vec_push(&k->bases, UINT64_MAX);
	return (uint16_t)(k->modules.n - 1);
}

/* Parses a line and packs its name at the front of the text, NUL-terminated. The text only gets
 * shorter. Returns false for a malformed line. */
static bool parse_line(struct kallsyms *k, const char *line, const char *end, char **out)
{
	struct kernel_symbol *s = &k->symbols[k->n];
	const char *p = line, *name, *name_end;
	uint64_t addr;

	if (!number_take_hex(&p, end, &addr) || end - p < 4 || p[0] != ' ' || p[2] != ' ')
		return false;
	s->addr = addr;
	s->type = p[1];
	name = p + 3;
	name_end = memchr(name, '\t', (size_t)(end - name));
	s->module = 0;
	if (name_end && end - name_end > 3 && name_end[1] == '[' && end[-1] == ']')
		s->module = module_index(k, name_end + 2, (size_t)(end - name_end) - 3);
	if (!name_end)
		name_end = end;
	if (name_end == name)
		return false;
	s->name = (uint32_t)(*out - k->text);
	memmove(*out, name, (size_t)(name_end - name));
	*out += name_end - name;
	*(*out)++ = 0;
	k->n++;
	return true;
}

static int compare_addr(const void *pa, const void *pb)
{
	const struct kernel_symbol *a = pa, *b = pb;

	return COMPARE(a->addr, b->addr) ?: COMPARE(a->name, b->name);
}

static void sort_if_needed(struct kernel_symbol *s, uint32_t n)
{
	for (uint32_t i = 1; i < n; i++) {
		if (s[i - 1].addr > s[i].addr) {
			qsort(s, n, sizeof(*s), compare_addr);
			return;
		}
	}
}

static bool is_text(const struct kernel_symbol *s)
{
	return s->type == 't' || s->type == 'T' || s->type == 'w' || s->type == 'W';
}

void kallsyms_parse(struct kallsyms *k, char *text, size_t len)
{
	bool any_addr = false;
	uint32_t lines = 1;
	char *out = text;

	k->read = true;
	k->text = text;
	vec_push(&k->modules, xstrdup("vmlinux"));
	vec_push(&k->bases, UINT64_MAX);
	for (const char *p = text; (p = memchr(p, '\n', len - (size_t)(p - text))); p++)
		lines++;
	k->symbols = xcalloc(lines, sizeof(*k->symbols));
	for (const char *line = text, *end = text + len; line < end;) {
		const char *nl = memchr(line, '\n', (size_t)(end - line));
		const char *stop = nl ? nl : end;

		if (parse_line(k, line, stop, &out))
			any_addr |= k->symbols[k->n - 1].addr != 0;
		line = stop + 1;
	}
	if (!any_addr) {
		k->err = xstrdup(
			"kernel symbol addresses are hidden: CAP_SYSLOG and kernel.kptr_restrict below 2 "
			"are needed");
		return;
	}
	k->text = xrealloc(k->text, (size_t)(out - k->text) + 1);
	sort_if_needed(k->symbols, k->n);
	k->code = xcalloc(k->n + 1, sizeof(*k->code));
	for (uint32_t i = 0; i < k->n; i++) {
		if (!is_text(&k->symbols[i]))
			continue;
		k->code[k->ncode++] = k->symbols[i];
		if (k->symbols[i].addr < k->bases.v[k->symbols[i].module])
			k->bases.v[k->symbols[i].module] = k->symbols[i].addr;
	}
	k->code = xrealloc(k->code, (k->ncode + 1) * sizeof(*k->code));
}

static void read_kallsyms(struct kallsyms *k)
{
	struct err *e;
	char *text;
	size_t len;

	if (k->read)
		return;
	e = io_read_file("/proc/kallsyms", &text, &len);
	if (!e) {
		kallsyms_parse(k, text, len);
		return;
	}
	k->read = true;
	k->err = xasprintf("no kernel symbols: %s", e->text);
	err_free(e);
}

bool is_end_mark(const char *name)
{
	return !strcmp(name, "_etext") || !strcmp(name, "_einittext") || !strcmp(name, "_end");
}

/* Returns true for a symbol that people know, and false for a padding or alias mark. */
static bool is_plain(const char *name)
{
	return strncmp(name, "__pfx_", 6) && strncmp(name, "__cfi_", 6);
}

bool symbols_kernel(struct symbols *s, uint64_t addr, struct place *ret)
{
	if (!s->kernel.read && answer_find(s, addr, ret))
		return true;
	return symbols_kernel_module(s, addr, ret);
}

bool symbols_kernel_module(struct symbols *s, uint64_t addr, struct place *ret)
{
	struct kallsyms *k = &s->kernel;
	uint32_t lo;
	const struct kernel_symbol *found;
	bool plain = false;

	memset(ret, 0, sizeof(*ret));
	read_kallsyms(k);
	if (k->err)
		s->losses.kernel = k->err;
	lo = partition_point(k->ncode, i, k->code[i].addr <= addr);
	if (!lo)
		return false;
	found = &k->code[lo - 1];
	for (const struct kernel_symbol *c = found; c >= k->code && c->addr == found->addr; c--) {
		if (is_end_mark(k->text + c->name)) {
			if (addr != c->addr)
				return false;
		} else if (!plain || is_plain(k->text + c->name)) {
			found = c; /* the first in the file: sorting keeps the linker's order */
			plain = is_plain(k->text + c->name);
		}
	}
	/* The kernel's text is contiguous per module, so a symbol megabytes away is not the
	 * function's. */
	if (addr - found->addr > 1 << 20)
		return false;
	ret->module = k->modules.v[found->module];
	ret->function = k->text + found->name;
	ret->offset = addr - found->addr;
	ret->module_base = k->bases.v[found->module];
	return true;
}

const char *symbols_kernel_err(struct symbols *s)
{
	read_kallsyms(&s->kernel);
	return s->kernel.err;
}

bool symbols_kernel_addr(struct symbols *s, const char *module, const char *name, uint64_t *ret)
{
	struct kallsyms *k = &s->kernel;

	read_kallsyms(k);
	if (k->err)
		return false;
	for (uint32_t i = 0; i < k->n; i++) {
		const struct kernel_symbol *c = &k->symbols[i];

		if (strcmp(k->text + c->name, name))
			continue;
		if (module && module[0] && strcmp(module, k->modules.v[c->module]))
			continue;
		*ret = c->addr;
		return true;
	}
	return false;
}

void symbols_kernel_each(struct symbols *s,
			 void (*fn)(void *arg, const char *module, const char *name, uint64_t addr),
			 void *arg)
{
	struct kallsyms *k = &s->kernel;

	read_kallsyms(k);
	for (uint32_t i = 0; i < k->ncode; i++)
		fn(arg, k->modules.v[k->code[i].module], k->text + k->code[i].name,
		   k->code[i].addr);
}

void kallsyms_fini(struct kallsyms *k)
{
	for (uint32_t i = 0; i < k->modules.n; i++)
		free(k->modules.v[i]);
	vec_fini(&k->modules);
	vec_fini(&k->bases);
	free(k->err);
	free(k->text);
	free(k->symbols);
	free(k->code);
}
