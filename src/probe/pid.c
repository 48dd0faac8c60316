/* pid: functions and instructions of a process, by kernel uprobes:
 * `pid123:OBJECT:FUNCTION:entry|return|<hex offset>`.
 *
 *	pid123:a.out:main:entry       the main program's main
 *	pid123:libc:malloc:return     by exact name, or the name up to ".so"
 *	pid123:a.out:main:1f          the instruction at main+0x1f
 *	pid123:a.out:-:401136         the instruction at an address: the process's, else the file's
 *	pid123:libc.so.6:--:28123     the instruction at an address of the file. For descry's own
 *	                              programs: a process cannot map another place there
 *
 * The provider never offers a uprobe that would break the process: on an instruction that the
 * kernel refuses, on bytes that may be data, or a return probe of a function that is not called, or
 * that returns by another way than ret.
 */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/glob.h"
#include "probe/pid_args.h"
#include "probe/process.h"
#include "program/text/text.h"

enum {
	MAX_FOUND = 250000,     /* of one description, as DTrace's fasttrap-max-probes */
	MAX_FUNCTION = 1 << 20, /* the most bytes of a function that are decoded for offsets */
	/* Bytes of code that are decoded for a description: these, and those of the files that it
	 * matches. Each takes up to 80 ns. */
	DECODED_SPARE = 32 << 20,
	TEXTS_MAX = 64,
	MAX_INSTRUCTION = 16,
	MAX_NAMED = 4, /* the most functions that a note names before "and N more" */
};

/* The state of matching one description in one process. */
struct match {
	struct process_match in;
	uint32_t nfound;
	bool func_exact, wants_entry, wants_return, wants_offsets, offset_exact;
	uint64_t offset;     /* for offset_exact */
	uint64_t left;       /* bytes of code that may still be decoded, in all objects */
	struct hash counted; /* {device, inode} of files whose bytes were added to left */
	bool spent;          /* the object has functions for which left did not suffice */

	/* the functions of the object that were left out, for the note */
	uint32_t nskipped;
	VEC(char) skipped;
};

static bool all_digits(const char *s)
{
	return *s && s[strspn(s, "0123456789")] == 0;
}

static bool pid_claims(const struct provider *pv, const char *pattern)
{
	const char *digits = pattern + strcspn(pattern, "0123456789");

	if (!strncmp(pattern, "pid", 3) && (all_digits(pattern + 3) || glob_is_pattern(pattern)))
		return true;
	/* "p*d123", "p*123": a pattern that names the process */
	return glob_is_pattern(pattern) && *digits && all_digits(digits) &&
	       digits[-(digits > pattern)] != '[' && digits > pattern && *pattern == 'p';
}

static void skip(struct match *m, const char *func, const char *name, const char *reason)
{
	m->nskipped++;
	if (m->nskipped <= MAX_NAMED) {
		cleanup_free char *text =
			xasprintf("%s%s:%s (%s)", m->nskipped > 1 ? ", " : "", func, name, reason);
		size_t n = strlen(text);

		vec_reserve(&m->skipped, n + 1);
		memcpy(m->skipped.v + m->skipped.n, text, n + 1);
		m->skipped.n += (uint32_t)n;
	}
}

static void note_skipped(struct match *m, const struct process_object *po)
{
	if (m->nskipped)
		process_note(m->in.ps,
			     xasprintf("%s:%s: %u probe%s left out: %s%s", m->in.prov, po->name,
				       m->nskipped, m->nskipped > 1 ? "s" : "", m->skipped.v,
				       m->nskipped > MAX_NAMED ? ", ..." : ""));
	m->nskipped = 0;
	m->skipped.n = 0;
}

static struct probe *pid_add(struct match *m, const struct process_object *po, const char *func,
			     const char *name, enum attach_kind kind, uint64_t addr,
			     uint64_t offset, const char *unavailable, const char *note)
{
	bool is_new;
	struct probe *p = process_add_probe(m->in.ps, m->in.pv, m->in.pid, po, m->in.prov, func,
					    name, kind, offset, &is_new);

	if (is_new) {
		p->addr = addr;
		p->unavailable = unavailable;
		p->note = note;
	}
	m->nfound++;
	m->in.found(m->in.arg, p);
	return p;
}

/* Refuses a probe that would break the process. When the description names the function, adds the
 * probe with the reason. When a pattern matched the function, leaves the probe out and notes it. */
static void pid_refuse(struct match *m, const struct process_object *po, const char *func,
		       const char *name, enum attach_kind kind, uint64_t addr, uint64_t offset,
		       const char *reason)
{
	if (m->func_exact)
		pid_add(m, po, func, name, kind, addr, offset, reason, NULL);
	else
		skip(m, func, name, reason);
}

/* Is f "g.cold" or "g.cold.1" of gcc? It is not a function, but a part of g that gcc moved away. */
static bool is_cold_part(const struct object_symbol *f)
{
	const char *s = strstr(f->name, ".cold");

	return s && (!s[5] || s[5] == '.');
}

/* Returns why a kernel return probe would corrupt or kill the process: no return address is on top
 * of the stack at f's entry, or f keeps this address and returns to it by another way than ret.
 * NULL: there is no hazard. */
static const char *return_hazard(const struct process_object *po, const struct object_symbol *f)
{
	static const char *const keeps[] = {
		"setjmp",     "_setjmp",      "sigsetjmp",     "__sigsetjmp",
		"getcontext", "__getcontext", "swapcontext",   "__swapcontext",
		"vfork",      "__vfork",      "__libc_vfork",  "__clone",
		"__clone3",   "__morestack",  "jump_fcontext", "coroutine_transfer",
	};
	static const char *const unwinds[] = {
		"_Unwind_RaiseException", "_Unwind_Resume",   "_Unwind_Resume_or_Rethrow",
		"_Unwind_ForcedUnwind",   "__cxa_throw",      "__cxa_rethrow",
		"pthread_exit",           "__pthread_unwind", "__pthread_unwind_next",
	};
	static const char *const no_return_address[] = {
		"_start",          "_dl_start_user",      "__restore_rt",
		"__start_context", "_dl_runtime_resolve", "_dl_runtime_profile",
	};
	const char *soname = object_soname(po->object);
	bool libc = soname ? !strncmp(soname, "libc.", 5)
			   : po->is_main && !object_interp(po->object);

	if (is_cold_part(f))
		return "it is the cold part of a function, reached by a jump: there is no return address to probe";
	for (uint32_t i = 0; i < ARRAY_SIZE(unwinds); i++)
		if (!strcmp(f->name, unwinds[i]))
			return "it unwinds its callers, from whom a return probe would hide";
	for (uint32_t i = 0; i < ARRAY_SIZE(keeps); i++)
		if (!strcmp(f->name, keeps[i]) ||
		    (libc && (!strcmp(f->name, "clone") || !strcmp(f->name, "clone3"))))
			return "it returns more than once or on another stack: a return probe would crash the process";
	for (uint32_t i = 0; i < ARRAY_SIZE(no_return_address); i++) {
		const char *name = no_return_address[i];
		size_t n = strlen(name);

		/* _dl_runtime_resolve_xsavec and ..._fxsave match as well */
		if (!strncmp(f->name, name, n) &&
		    (!f->name[n] || (!strncmp(name, "_dl_runtime", 11) && f->name[n] == '_')))
			return "no call leads to it: there is no return address to probe";
	}
	if (object_is_go(po->object))
		return "Go moves its stacks: a return probe would crash the process";
	return NULL;
}

/* Symbols may overlap, so that the code of each function is that of thousands of others. Returns
 * true when n more bytes of the object may be decoded. */
static bool may_decode(struct match *m, uint32_t n)
{
	if (m->left < n)
		return false;
	m->left -= n;
	return true;
}

/* Adds the bytes of the object's text to those that may be decoded, once for each file. Its holes
 * do not count, because they cost nothing. */
static void add_decoded(struct match *m, const struct process_object *po)
{
	uint64_t text = 0, off, n, addr;
	struct stat st;
	bool is_new;

	if (!object_stat(po->object, &st))
		return;
	hash_put(&m->counted, (const uint64_t[]){ st.st_dev, st.st_ino }, 2 * sizeof(uint64_t),
		 &is_new);
	if (!is_new)
		return;
	for (uint32_t i = 0; object_text_segment(po->object, i, &off, &n, &addr) && i < TEXTS_MAX;
	     i++)
		text += n < UINT32_MAX ? n : UINT32_MAX;
	n = (uint64_t)st.st_blocks * 512;
	m->left += text < n ? text : n;
}

/* Returns true when a branch within the function leads to addr, or when a jump through a register
 * or a table may lead there. Then a probe at addr would fire for each turn of a loop. */
static bool may_branch_to(struct match *m, const struct process_object *po,
			  const struct object_symbol *f, uint64_t addr)
{
	uint32_t size = f->size < MAX_FUNCTION ? (uint32_t)f->size : MAX_FUNCTION, n, len;
	cleanup_free uint8_t *code = NULL;

	if (size != f->size || !may_decode(m, size))
		return true;
	code = xmalloc(size);
	n = object_read(po->object, f->addr, code, size);
	if (n != f->size)
		return true;
	for (uint32_t at = 0; at < n; at += len) {
		const uint8_t *c = code + at, *op = c;
		const char *reason;
		uint64_t next;
		int32_t disp = 0;

		uprobe_classify(c, n - at, &len, &reason);
		if (!len)
			return true; /* data in between: branches unknown */
		next = f->addr + at + len;
		while (op < c + len - 1 &&
		       (*op == 0xf2 || *op == 0x3e || *op == 0x66 || *op == 0x2e))
			op++;
		if (op < c + len - 2 && (*op & 0xf0) == 0x40)
			op++;
		if ((op[0] & 0xf0) == 0x70 || op[0] == 0xeb || (op[0] & 0xfc) == 0xe0) {
			disp = (int8_t)c[len - 1];
		} else if (len > 4 &&
			   (op[0] == 0xe9 || (op[0] == 0x0f && (op[1] & 0xf0) == 0x80))) {
			memcpy(&disp, c + len - 4, 4);
		} else if (op[0] == 0xff && (op[1] & 0x38) == 0x20) {
			/* jmp *x(%rip) leaves through the GOT; other indirect jumps may stay
			 * inside */
			if ((op[1] & 0xc7) != 0x05)
				return true;
			continue;
		} else {
			continue;
		}
		if (next + (uint64_t)(int64_t)disp == addr)
			return true;
	}
	return false;
}

/* Returns how many bytes behind f's entry the entry probe goes: 4 for a cheaper instruction behind
 * an endbr64, else 0. The kernel single-steps an endbr64. The stack pointer and all argument
 * registers are the same behind it. The probe stays at the entry when a branch leads to the next
 * instruction, or when another symbol is there. */
static uint32_t entry_skip(struct match *m, const struct process_object *po,
			   const struct object_symbol *f, const uint8_t *code, uint32_t n,
			   enum uprobe_class *ret_class)
{
	static const uint8_t endbr64[4] = { 0xf3, 0x0f, 0x1e, 0xfa };
	const struct object_symbol *other;
	enum uprobe_class class;
	const char *reason;
	uint32_t len;

	if (n < 5 || f->size < 5 || memcmp(code, endbr64, 4))
		return 0;
	class = uprobe_classify(code + 4, n - 4, &len, &reason);
	if (class != UPROBE_EMULATED && class != UPROBE_NOP5)
		return 0;
	other = object_find_addr(po->object, f->addr + 4);
	if (!other || other->addr == f->addr + 4 || may_branch_to(m, po, f, f->addr + 4))
		return 0;
	*ret_class = class;
	return 4;
}

static const char *entry_note(struct match *m, const struct object_symbol *f,
			      enum uprobe_class class, bool moved, enum attach_kind kind)
{
	const char *price = process_price(class, kind);

	if (f->is_ifunc)
		return arena_printf(
			&m->in.ps->arena,
			"%s; an indirect function: this is its resolver, which runs once", price);
	if (moved)
		return arena_printf(&m->in.ps->arena, "%s; placed behind endbr64", price);
	return price;
}

static void match_entry_return(struct match *m, const struct process_object *po,
			       const struct object_symbol *f)
{
	enum uprobe_class class, entry_class;
	const char *reason = NULL, *hazard;
	uint64_t offset = 0;
	uint8_t code[24];
	uint32_t n, len, moved;

	if (!f->size)
		reason = "its size is unknown";
	else if (!object_addr_to_offset(po->object, f->addr, &offset))
		reason = "its code is not in the file";
	n = object_read(po->object, f->addr, code, sizeof(code));
	class = UPROBE_REFUSED;
	if (!reason)
		class = uprobe_classify(code, n, &len, &reason);
	if (class == UPROBE_REFUSED) {
		if (m->wants_entry)
			pid_refuse(m, po, f->name, "entry", ATTACH_UPROBE, f->addr, offset, reason);
		if (m->wants_return)
			pid_refuse(m, po, f->name, "return", ATTACH_URETPROBE, f->addr, offset,
				   reason);
		return;
	}
	if (m->wants_entry) {
		entry_class = class;
		moved = entry_skip(m, po, f, code, n, &entry_class);
		pid_add(m, po, f->name, "entry", ATTACH_UPROBE, f->addr, offset + moved, NULL,
			entry_note(m, f, entry_class, moved, ATTACH_UPROBE));
	}
	if (m->func_exact && f->is_ifunc)
		process_note(
			m->in.ps,
			xasprintf("%s:%s:%s is an indirect function: its probe is its resolver's, "
				  "which runs once, and not that of the code that is called",
				  m->in.prov, po->name, f->name));
	if (m->wants_return) {
		hazard = return_hazard(po, f);
		if (hazard)
			pid_refuse(m, po, f->name, "return", ATTACH_URETPROBE, f->addr, offset,
				   hazard);
		else
			pid_add(m, po, f->name, "return", ATTACH_URETPROBE, f->addr, offset, NULL,
				entry_note(m, f, class, false, ATTACH_URETPROBE))
				->by_exits = true;
	}
}

/* Adds a probe on every instruction of the function whose hex offset matches. */
static void match_offsets(struct match *m, const struct process_object *po,
			  const struct object_symbol *f)
{
	uint32_t size = f->size < MAX_FUNCTION ? (uint32_t)f->size : MAX_FUNCTION, n, len = 0;
	cleanup_free uint8_t *code = NULL;
	int red_zone = -1; /* not known yet */
	struct text *t;
	uint64_t base;

	if (!f->size || !object_addr_to_offset(po->object, f->addr, &base))
		return;
	if (m->offset_exact && m->offset < size)
		size = (uint32_t)m->offset + MAX_INSTRUCTION < size
			       ? (uint32_t)m->offset + MAX_INSTRUCTION
			       : size;
	if (!may_decode(m, size)) {
		m->spent = true;
		return;
	}
	code = xmalloc(size + 1);
	n = object_read(po->object, f->addr, code, size);
	t = process_text(m->in.ps, po->object);
	for (uint32_t at = 0; at < n && m->nfound <= MAX_FOUND; at += len) {
		const char *reason;
		enum uprobe_class class = uprobe_classify(code + at, n - at, &len, &reason);
		char name[20];

		snprintf(name, sizeof(name), "%x", at);
		if (m->offset_exact ? at == m->offset : glob_match(m->in.pd->name, name)) {
			if (class != UPROBE_REFUSED && t) {
				reason = text_may_be_data(t, f->addr, at);
				class = reason ? UPROBE_REFUSED : class;
			}
			if (red_zone < 0 && at && class == UPROBE_NOP5)
				red_zone = object_uses_red_zone(po->object, f->addr,
								&m->in.ps->red_zone_read);
			if (class == UPROBE_REFUSED)
				pid_refuse(m, po, f->name, name, ATTACH_UPROBE, f->addr, base + at,
					   reason);
			else
				pid_add(m, po, f->name, name, ATTACH_UPROBE, f->addr, base + at,
					NULL, process_price(class, ATTACH_UPROBE))
					->red_zone = at && class == UPROBE_NOP5 && red_zone > 0;
			if (m->offset_exact)
				return;
		}
		if (!len || (m->offset_exact && at > m->offset))
			break;
	}
	if (m->offset_exact && m->func_exact) {
		char name[20];

		snprintf(name, sizeof(name), "%llx", (unsigned long long)m->offset);
		if (m->offset < f->size)
			pid_add(m, po, f->name, name, ATTACH_UPROBE, f->addr, base + m->offset,
				"no instruction begins at this offset", NULL);
		else
			process_note(m->in.ps, xasprintf("%s:%s:%s:%s: the function ends at %llx",
							 m->in.prov, po->name, f->name, name,
							 (unsigned long long)f->size));
	}
}

static void match_function(struct match *m, const struct process_object *po,
			   const struct object_symbol *f)
{
	if (m->wants_entry || m->wants_return)
		match_entry_return(m, po, f);
	if (m->wants_offsets)
		match_offsets(m, po, f);
}

static int compare_place(const void *pa, const void *pb)
{
	const struct object_symbol *a = *(const struct object_symbol *const *)pa;
	const struct object_symbol *b = *(const struct object_symbol *const *)pb;

	return COMPARE(a->addr, b->addr);
}

/* Matches all functions of the name, in the order of their addresses. */
static void match_named(struct match *m, const struct process_object *po)
{
	uint32_t n;
	const struct object_symbol *const *found =
		object_find_names(po->object, m->in.pd->func, &n);
	cleanup_free const struct object_symbol **s = xmemdup(found, n * sizeof(*found));

	qsort(s, n, sizeof(*s), compare_place);
	for (uint32_t i = 0; i < n && m->nfound <= MAX_FOUND; i++)
		if (s[i]->is_func)
			match_function(m, po, s[i]);
}

static void match_pattern(struct match *m, const struct process_object *po)
{
	uint64_t last = UINT64_MAX;
	uint32_t n;
	const struct object_symbol *s = object_symbols(po->object, &n);

	for (uint32_t i = 0; i < n && m->nfound <= MAX_FOUND; i++) {
		const struct object_symbol *f = &s[i];

		if (!f->is_func || !glob_match(m->in.pd->func, f->name))
			continue;
		/* Takes the first symbol of several at one address, because the table has the best
		 * name first. When the description names the function, every alias will do. */
		if (f->addr == last)
			continue;
		last = f->addr;
		if (!is_cold_part(f))
			match_function(m, po, f);
	}
}

static void match_object(struct match *m, const struct process_object *po)
{
	add_decoded(m, po);
	m->spent = false;
	if (m->func_exact)
		match_named(m, po);
	else
		match_pattern(m, po);
	note_skipped(m, po);
	if (m->spent)
		process_note(m->in.ps,
			     xasprintf("%s:%s: probes are left out: its functions overlap, or have "
				       "too much code",
				       m->in.prov, po->name));
}

/* --- absolute addresses --- */

/* Finds where the function at an address begins: by its symbol, else by the unwind tables of the
 * file. Returns false when neither knows. */
static bool function_begins(struct probe_set *ps, const struct process_object *po, uint64_t addr,
			    uint64_t *ret)
{
	const struct object_symbol *f = object_find_addr(po->object, addr);
	struct text *t;
	uint64_t end;

	if (f && f->is_func) {
		*ret = f->addr;
		return true;
	}
	t = process_text(ps, po->object);
	return t && text_function(t, addr, ret, &end);
}

/* Begins at the address before, if that was in the same function. Programs of descry's own name
 * thousands of addresses in one function, one after another. */
static bool is_instruction(struct probe_set *ps, const struct process_object *po, uint64_t addr)
{
	uint64_t at, begin, from = 0;
	uint32_t len, have = 0;
	uint8_t code[4096];

	if (!function_begins(ps, po, addr, &begin))
		return true; /* nothing contradicts it */
	at = begin;
	if (ps->decoded.dev == po->dev && ps->decoded.inode == po->inode &&
	    ps->decoded.func == begin && ps->decoded.at <= addr)
		at = ps->decoded.at;
	for (; at < addr; at += len) {
		const char *reason;

		if (at - from + MAX_INSTRUCTION > have) {
			have = object_read(po->object, at, code, sizeof(code));
			from = at;
		}
		uprobe_classify(code + (at - from), have - (uint32_t)(at - from), &len, &reason);
		if (!len)
			return true;
	}
	ps->decoded.dev = po->dev;
	ps->decoded.inode = po->inode;
	ps->decoded.func = begin;
	ps->decoded.at = at;
	return at == addr;
}

static void add_address(struct match *m, const struct process_object *po, uint64_t addr,
			uint64_t shown)
{
	const char *reason = NULL;
	enum uprobe_class class;
	uint8_t code[16];
	char name[20];
	uint64_t offset;
	uint32_t n, len;

	if (!object_is_text(po->object, addr) || !object_addr_to_offset(po->object, addr, &offset))
		return;
	n = object_read(po->object, addr, code, sizeof(code));
	class = uprobe_classify(code, n, &len, &reason);
	if (class != UPROBE_REFUSED && !is_instruction(m->in.ps, po, addr))
		reason = "no instruction begins at this address";
	snprintf(name, sizeof(name), "%llx", (unsigned long long)shown);
	pid_add(m, po, m->in.pd->func, name, ATTACH_UPROBE, addr, offset, reason,
		reason ? NULL : process_price(class, ATTACH_UPROBE));
}

static void match_later_address(void *arg, const struct process_object *later)
{
	struct match *m = arg;

	if (object_is_x86_64(later->object))
		add_address(m, later, m->offset, m->offset);
}

/* Adds a probe at an address of the process when text of the named object is mapped there. */
static struct err *match_mapped(struct match *m, const struct process_objects *objects)
{
	const struct mapping *at;
	struct mappings maps;
	struct object *o;
	uint64_t addr;
	struct err *e = mappings_read(m->in.pid, &maps);

	if (e)
		return e;
	at = mappings_find(&maps, m->offset);
	o = at && at->exec ? symbols_object(m->in.ps->symbols, m->in.pid, at) : NULL;
	if (o && object_offset_to_addr(o, m->offset - at->start + at->offset, &addr))
		for (uint32_t k = 0; k < objects->n; k++)
			if (objects->v[k].object == o &&
			    process_object_matches(&objects->v[k], m->in.pd->mod))
				add_address(m, &objects->v[k], addr, m->offset);
	mappings_free(&maps);
	return NULL;
}

/* Adds a probe at an address of the process, or where it maps nothing there, at this address of the
 * file: of the named object, which may not be loaded yet, or of the main program when no object is
 * named. of_file: only the latter. */
static struct err *match_address(struct match *m, const struct process_objects *objects,
				 bool of_file)
{
	uint32_t before = m->nfound;
	struct err *e;

	if (!m->offset_exact)
		return NULL;
	e = of_file ? NULL : match_mapped(m, objects);
	if (e)
		return e;
	for (uint32_t k = 0; k < objects->n && m->nfound == before; k++)
		if (m->in.pd->mod[0] ? process_object_matches(&objects->v[k], m->in.pd->mod)
				     : objects->v[k].is_main)
			add_address(m, &objects->v[k], m->offset, m->offset);
	for (uint32_t k = 0; k < objects->n; k++)
		if (process_object_matches(&objects->v[k], m->in.pd->mod))
			return NULL;
	if (m->in.pd->mod[0])
		process_libraries(m->in.ps, m->in.pid, objects, m->in.pd->mod, match_later_address,
				  m);
	return NULL;
}

/* --- one process --- */

/* Parses s, which must be a whole hex number: "1f" or "0x1f". */
static bool parse_hex(const char *s, uint64_t *ret)
{
	uint64_t v = 0;

	if (s[0] == '0' && s[1] == 'x')
		s += 2;
	if (!*s || strlen(s) > 16)
		return false;
	for (; *s; s++) {
		const char *digits = "0123456789abcdef", *d = strchr(digits, *s | 0x20);

		if (!d)
			return false;
		v = v << 4 | (uint64_t)(d - digits);
	}
	*ret = v;
	return true;
}

static struct err *too_many(const struct match *m)
{
	return err_new(E2BIG, "%s:%s:%s:%s matches more than %d probes", m->in.prov, m->in.pd->mod,
		       m->in.pd->func, m->in.pd->name, MAX_FOUND);
}

/* Matches a library that is not loaded yet. A uprobe on its file fires when the library is
 * loaded. */
static void match_later(void *arg, const struct process_object *later)
{
	struct match *m = arg;
	uint32_t before = m->nfound;

	if (!object_is_x86_64(later->object) || m->nfound > MAX_FOUND)
		return;
	match_object(m, later);
	if (m->nfound > before)
		process_note(m->in.ps, xasprintf("%s:%s is not loaded: its probes fire when %s is",
						 m->in.prov, m->in.pd->mod, later->path));
}

static struct err *match_process(struct process_match *in)
{
	struct match *m = (struct match *)in; /* its first member */
	const struct process_objects *objects;
	const char *name = m->in.pd->name;
	bool loaded = false;
	struct err *e = process_objects(m->in.ps, m->in.pid, &objects);

	if (e)
		return e;
	m->func_exact = m->in.pd->func[0] && !glob_is_pattern(m->in.pd->func);
	m->wants_entry = glob_match(name, "entry");
	m->wants_return = glob_match(name, "return");
	m->offset_exact = parse_hex(name, &m->offset);
	m->wants_offsets = m->offset_exact || !name[0] || glob_is_pattern(name);
	if (!strcmp(m->in.pd->func, "-") || !strcmp(m->in.pd->func, "--"))
		return match_address(m, objects, m->in.pd->func[1]);
	for (uint32_t i = 0; i < objects->n; i++) {
		if (!process_object_matches(&objects->v[i], m->in.pd->mod))
			continue;
		loaded = true;
		if (!object_is_x86_64(objects->v[i].object)) {
			process_note(m->in.ps, xasprintf("%s:%s: left out: not x86-64 code",
							 m->in.prov, objects->v[i].name));
			continue;
		}
		match_object(m, &objects->v[i]);
		if (m->nfound > MAX_FOUND)
			return too_many(m);
	}
	if (!loaded)
		process_libraries(m->in.ps, m->in.pid, objects, m->in.pd->mod, match_later, m);
	return m->nfound > MAX_FOUND ? too_many(m) : NULL;
}

static struct err *pid_match(const struct provider *pv, struct probe_set *ps,
			     const struct probe_desc *pd, probe_fn *found, void *arg)
{
	struct match m = { .in = { pv, ps, pd, found, arg }, .left = DECODED_SPARE };
	struct err *e = process_match_each(&m.in, match_process);

	vec_fini(&m.skipped);
	hash_fini(&m.counted);
	return e;
}

const struct provider provider_pid = {
	.name = "pid",
	.doc = "functions and instructions of a process: pid123:OBJECT:FUNCTION:entry, return, hex offset",
	.stability = { E_ISA, P_UNKNOWN, P_UNKNOWN, E_ISA, P_UNKNOWN },
	.claims = pid_claims,
	.match = pid_match,
	.args = pid_args,
};
