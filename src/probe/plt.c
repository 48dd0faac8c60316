/* plt: calls from one object into another, at the caller: `plt123:CALLER:FUNCTION:entry|return`.
 *
 *	plt123:a.out:malloc:entry     the main program calls malloc; calls by libraries do not count
 *	plt123:libfoo:*:entry         every call of libfoo into other objects
 *
 * A probe lies in the caller's slot of its procedure linkage table (PLT). Therefore probemod is the
 * caller, and the provider needs to know nothing of the callee. Code compiled with -fno-plt calls
 * through the global offset table (GOT) and has no slots.
 */
#define _GNU_SOURCE
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "base/glob.h"
#include "base/sorted.h"
#include "probe/plt.h"
#include "probe/process.h"

enum {
	SLOT = 16,
	SLOT_GOT = 8,
	NREGS = 6,
	MAX_SLOTS = 1 << 20,
	MAX_NAMES = 256 << 20, /* bytes of all names: a name may be the end of another */
	MAX_KEPT = 16 << 20,   /* bytes of the names that are kept of an object */
	MAX_READ = 1 << 30,    /* bytes of the tables of all objects, which may be holes of files */
};

struct table {
	uint8_t *p;
	uint64_t addr;
	size_t n;
};

/* A place from which the object calls a function of another one. */
struct slot {
	const char *func; /* in .dynstr while that is read, then in imports.names */
	uint64_t addr;
	uint32_t jmp;  /* its jmp's offset */
	bool got_only; /* there is no slot: the object has the address in its GOT alone */
};

/* The functions that an object imports. */
struct imports {
	struct arena names;
	VEC(struct slot) slots; /* in the order of the tables, then those in the GOT alone */
	uint32_t *by_name;      /* indexes, sorted by name, then by order */
	size_t name_bytes;      /* of those looked at */
	uint64_t left;          /* bytes of tables that may still be read */
	bool spent;             /* a table was larger than that */
	uint64_t left_out;      /* relocations and slots beyond the limits */
};

/* Of all objects so far: a program of many descriptions reads each once. */
struct plt {
	struct hash by_object; /* object, inode, path -> struct imports */
	uint64_t left;         /* bytes of tables that may still be read */
	uint32_t objects_left_out;
};

struct match {
	struct process_match in;
	bool unwinds; /* process_unwinds() */
	bool func_exact, wants_entry, wants_return;
};

static bool plt_claims(const struct provider *pv, const char *pattern)
{
	const char *s = pattern + 3;

	return !strncmp(pattern, "plt", 3) &&
	       ((*s && !s[strspn(s, "0123456789")]) || glob_is_pattern(pattern));
}

static struct table section(struct imports *im, const struct object *o, const char *name)
{
	struct table b = { 0 };

	if (!im->spent)
		b.p = object_section(o, name, &b.addr, &b.n);
	if (!b.p)
		b.n = 0;
	im->spent |= b.n > im->left;
	im->left -= b.n > im->left ? im->left : b.n;
	return b;
}

/* Returns a symbol's name; NULL where the file's numbers point outside its tables, or when it has
 * too many names. */
static const char *symbol_name(struct imports *im, const struct table *symbols,
			       const struct table *names, uint64_t number)
{
	const char *name, *end;
	Elf64_Sym s;
	size_t left;

	if (number >= symbols->n / sizeof(s))
		return NULL;
	memcpy(&s, symbols->p + number * sizeof(s), sizeof(s));
	if (s.st_name >= names->n)
		return NULL;
	name = (const char *)names->p + s.st_name;
	left = names->n - s.st_name;
	if (left > MAX_NAMES - im->name_bytes)
		left = MAX_NAMES - im->name_bytes;
	end = memchr(name, 0, left);
	im->name_bytes += end ? (size_t)(end - name) : left;
	im->left_out += !end && im->name_bytes == MAX_NAMES;
	return end ? name : NULL;
}

/* Decodes a slot: endbr64? bnd? jmp *disp(%rip). Finds the jmp's offset in the slot, and the word
 * of the GOT that it reads. */
static bool decode_slot(const uint8_t *b, uint32_t n, uint64_t addr, uint32_t *ret_jmp,
			uint64_t *ret_got)
{
	uint32_t at = n >= 4 && !memcmp(b, "\xf3\x0f\x1e\xfa", 4) ? 4 : 0, jmp = at;
	int32_t disp;

	if (at < n && b[at] == 0xf2)
		at++;
	if (at + 6 > n || b[at] != 0xff || b[at + 1] != 0x25)
		return false;
	memcpy(&disp, b + at + 2, 4);
	*ret_jmp = jmp;
	*ret_got = addr + at + 6 + (uint64_t)(int64_t)disp;
	return true;
}

static void read_slots(struct imports *im, const struct object *o, const char *name,
		       const struct hash *by_got, const struct table *symbols,
		       const struct table *names)
{
	struct table s = section(im, o, name);
	uint32_t step = SLOT;

	if (s.n >= SLOT_GOT && s.p[0] == 0xff && s.p[1] == 0x25 && !strcmp(name, ".plt.got"))
		step = SLOT_GOT;
	for (uint64_t at = 0; at + step <= s.n && at / step < MAX_SLOTS; at += step) {
		struct slot slot = { .addr = s.addr + at };
		uint64_t got, *symbol;

		if (!decode_slot(s.p + at, step, slot.addr, &slot.jmp, &got))
			continue;
		symbol = hash_get(by_got, &got, sizeof(got));
		slot.func = symbol ? symbol_name(im, symbols, names, *symbol) : NULL;
		if (slot.func && *slot.func)
			vec_push(&im->slots, slot);
	}
	free(s.p);
}

static int compare_slots(const void *pa, const void *pb, void *arg)
{
	const struct imports *im = arg;
	uint32_t a = *(const uint32_t *)pa, b = *(const uint32_t *)pb;

	return strcmp(im->slots.v[a].func, im->slots.v[b].func) ?: COMPARE(a, b);
}

/* Copies the names of the slots, each once, so that the file's table need not stay. */
static void keep_names(struct imports *im)
{
	struct hash copies = { 0 }; /* address of a name in .dynstr -> its copy */
	size_t bytes = 0;
	uint32_t kept = 0;

	for (uint32_t i = 0; i < im->slots.n; i++) {
		struct slot s = im->slots.v[i];
		uint64_t *copy = hash_put(&copies, &s.func, sizeof(s.func), NULL);

		if (!*copy && strlen(s.func) < MAX_KEPT - bytes) {
			bytes += strlen(s.func) + 1;
			*copy = (uintptr_t)arena_strdup(&im->names, s.func);
		}
		if (!*copy) {
			im->left_out++;
			continue;
		}
		s.func = (const char *)(uintptr_t)*copy;
		im->slots.v[kept++] = s;
	}
	im->slots.n = kept;
	hash_fini(&copies);
}

static struct imports *imports_read(const struct object *o, uint64_t left)
{
	static const char *const tables[] = { ".rela.plt", ".rela.dyn" };
	struct imports *im = xcalloc(1, sizeof(*im));
	struct table symbols, names;
	struct hash by_got = { 0 }; /* address of a GOT word -> symbol number */
	VEC(struct slot) got_only = { 0 };

	arena_init(&im->names);
	im->left = left;
	symbols = section(im, o, ".dynsym");
	names = section(im, o, ".dynstr");
	for (uint32_t t = 0; t < ARRAY_SIZE(tables); t++) {
		struct table rela = section(im, o, tables[t]);

		for (size_t i = 0; i < rela.n / sizeof(Elf64_Rela); i++) {
			struct slot slot = { .got_only = true };
			Elf64_Rela r;
			uint32_t type;

			memcpy(&r, rela.p + i * sizeof(r), sizeof(r));
			type = ELF64_R_TYPE(r.r_info);
			if (type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT)
				continue;
			if (by_got.n >= MAX_SLOTS || got_only.n >= MAX_SLOTS) {
				im->left_out++;
				continue;
			}
			slot.func = symbol_name(im, &symbols, &names, ELF64_R_SYM(r.r_info));
			if (ELF64_R_SYM(r.r_info))
				*hash_put(&by_got, &r.r_offset, sizeof(r.r_offset), NULL) =
					ELF64_R_SYM(r.r_info);
			if (t == 1 && type == R_X86_64_GLOB_DAT && slot.func)
				vec_push(&got_only, slot);
		}
		free(rela.p);
	}
	read_slots(im, o, ".plt.sec", &by_got, &symbols, &names);
	read_slots(im, o, ".plt", &by_got, &symbols, &names);
	read_slots(im, o, ".plt.got", &by_got, &symbols, &names);
	for (uint32_t i = 0; i < got_only.n; i++)
		vec_push(&im->slots, got_only.v[i]);
	keep_names(im);
	im->by_name = xcalloc(im->slots.n + 1, sizeof(*im->by_name));
	for (uint32_t i = 0; i < im->slots.n; i++)
		im->by_name[i] = i;
	if (im->slots.n)
		qsort_r(im->by_name, im->slots.n, sizeof(*im->by_name), compare_slots, im);
	vec_fini(&got_only);
	hash_fini(&by_got);
	free(symbols.p);
	free(names.p);
	return im;
}

static const struct imports *imports_of(struct probe_set *ps, const struct process_object *po)
{
	cleanup_free char *key = xasprintf("%p %llx %s", (void *)po->object,
					   (unsigned long long)po->inode, po->path);
	bool is_new;
	uint64_t *v;

	if (!ps->plt) {
		ps->plt = xcalloc(1, sizeof(*ps->plt));
		ps->plt->left = MAX_READ;
	}
	v = hash_put(&ps->plt->by_object, key, strlen(key), &is_new);
	if (is_new) {
		struct imports *im = imports_read(po->object, ps->plt->left);

		*v = (uintptr_t)im;
		ps->plt->left = im->left;
		if (im->spent && !ps->plt->objects_left_out++)
			process_note(ps,
				     xasprintf("%s: its imports are left out, and those of the "
					       "objects behind it: the tables of all objects are "
					       "too large",
					       po->path));
		if (im->left_out)
			process_note(ps,
				     xasprintf("%s: it imports too many functions: %llu are left "
					       "out",
					       po->path, (unsigned long long)im->left_out));
	}
	return (const struct imports *)(uintptr_t)*v;
}

void plt_free(struct plt *p)
{
	uint32_t at = 0;
	const void *key;
	size_t len;
	uint64_t *v;

	if (!p)
		return;
	while (hash_next(&p->by_object, &at, &key, &len, &v)) {
		struct imports *im = (struct imports *)(uintptr_t)*v;

		vec_fini(&im->slots);
		free(im->by_name);
		arena_fini(&im->names);
		free(im);
	}
	hash_fini(&p->by_object);
	free(p);
}

static void plt_add(struct match *m, const struct process_object *po, const char *func,
		    const char *name, enum attach_kind kind, uint64_t addr, uint32_t jmp,
		    const char *unavailable)
{
	uint64_t offset = 0;
	const char *reason = unavailable;
	enum uprobe_class class = UPROBE_REFUSED;
	uint8_t code[16];
	struct probe *p;
	bool is_new;
	uint32_t len;

	if (!reason && !object_addr_to_offset(po->object, addr, &offset))
		reason = "its slot is not in the file";
	if (!reason) {
		/* Puts the probe on the jmp instead of the endbr64, because the kernel would
		 * single-step the endbr64. */
		uint32_t n = object_read(po->object, addr + jmp, code, sizeof(code));

		class = uprobe_classify(code, n, &len, &reason);
	}
	p = process_add_probe(m->in.ps, m->in.pv, m->in.pid, po, m->in.prov, func, name, kind,
			      offset + jmp, &is_new);
	if (is_new) {
		p->addr = addr;
		p->unavailable = reason;
		p->note = reason ? NULL : process_price(class, kind);
	}
	m->in.found(m->in.arg, p);
}

/* Returns true for functions of C++ and Rust, and those of the C library that call functions which
 * they are given. */
static bool may_throw(const char *func)
{
	static const char *const calls[] = {
		"qsort",    "qsort_r",     "bsearch",   "lfind", "lsearch",
		"tsearch",  "tfind",       "tdelete",   "twalk", "twalk_r",
		"tdestroy", "ftw",         "ftw64",     "nftw",  "nftw64",
		"scandir",  "scandir64",   "call_once", "glob",  "dl_iterate_phdr",
		"glob64",   "pthread_once"
	};

	if (!strncmp(func, "_Z", 2) || !strncmp(func, "_R", 2) || !strncmp(func, "__cxa_", 6))
		return true;
	for (uint32_t i = 0; i < ARRAY_SIZE(calls); i++)
		if (!strcmp(func, calls[i]))
			return true;
	return false;
}

/* Returns why a return probe would break the caller: the callee returns more than once, or keeps
 * the return address that the probe replaces. NULL: there is no hazard. */
static const char *return_hazard(const struct match *m, const struct process_object *po,
				 const char *func)
{
	static const char *const keeps[] = {
		"setjmp",
		"_setjmp",
		"sigsetjmp",
		"__sigsetjmp",
		"getcontext",
		"swapcontext",
		"vfork",
		"__vfork",
		"clone",
		"__clone",
		"_Unwind_RaiseException",
		"_Unwind_Resume",
		"_Unwind_Resume_or_Rethrow",
		"_Unwind_ForcedUnwind",
		"__cxa_throw",
		"__cxa_rethrow",
		"pthread_exit",
		"__pthread_unwind_next",
		"longjmp",
		"siglongjmp",
		"__longjmp_chk",
		"__tls_get_addr",
		"makecontext",
		"setcontext",
	};

	for (uint32_t i = 0; i < ARRAY_SIZE(keeps); i++)
		if (!strcmp(func, keeps[i]))
			return "it keeps its return address, or does not return by it: a return probe would crash the process";
	if (object_is_go(po->object))
		return "Go moves its stacks: a return probe would crash the process";
	if (m->unwinds && may_throw(func))
		return "an exception may pass it, and the kernel's return probe would hide its handler";
	return NULL;
}

static void match_slot(struct match *m, const struct process_object *po, const struct slot *s)
{
	const char *hazard = return_hazard(m, po, s->func);

	if (m->wants_entry)
		plt_add(m, po, s->func, "entry", ATTACH_UPROBE, s->addr, s->jmp, NULL);
	if (m->wants_return && (m->func_exact || !hazard))
		plt_add(m, po, s->func, "return", ATTACH_URETPROBE, s->addr, 0, hazard);
}

/* Lists a named function that the object imports without a slot, with the reason. */
static void say_no_slot(struct match *m, const struct process_object *po, const char *name)
{
	const char *why =
		"its caller goes by the GOT (-fno-plt, or only its address is taken): there is no slot to probe";

	if (m->wants_entry)
		plt_add(m, po, name, "entry", ATTACH_UPROBE, 0, 0, why);
	if (m->wants_return)
		plt_add(m, po, name, "return", ATTACH_URETPROBE, 0, 0, why);
}

static void match_named(struct match *m, const struct process_object *po, const struct imports *im)
{
	const char *name = m->in.pd->func;
	uint32_t lo =
		partition_point(im->slots.n, i, strcmp(im->slots.v[im->by_name[i]].func, name) < 0);

	for (uint32_t i = lo; i < im->slots.n; i++) {
		const struct slot *s = &im->slots.v[im->by_name[i]];

		if (strcmp(s->func, name))
			break;
		if (!s->got_only) {
			match_slot(m, po, s);
			continue;
		}
		if (i == lo)
			say_no_slot(m, po, name);
		break;
	}
}

static void match_object(struct match *m, const struct process_object *po)
{
	const struct imports *im = imports_of(m->in.ps, po);

	if (m->func_exact) {
		match_named(m, po, im);
		return;
	}
	for (uint32_t i = 0; i < im->slots.n && !im->slots.v[i].got_only; i++)
		if (glob_match(m->in.pd->func, im->slots.v[i].func))
			match_slot(m, po, &im->slots.v[i]);
}

/* Matches the slots of a library that is not loaded yet. A uprobe on its file fires when it is. */
static void match_later(void *arg, const struct process_object *later)
{
	if (object_is_x86_64(later->object))
		match_object(arg, later);
}

static struct err *match_process(struct process_match *in)
{
	struct match *m = (struct match *)in; /* its first member */
	const struct process_objects *objects;
	bool loaded = false;
	struct err *e = process_objects(m->in.ps, m->in.pid, &objects);

	if (e)
		return e;
	m->unwinds = process_unwinds(objects);
	m->func_exact = m->in.pd->func[0] && !glob_is_pattern(m->in.pd->func);
	m->wants_entry = glob_match(m->in.pd->name, "entry");
	m->wants_return = glob_match(m->in.pd->name, "return");
	for (uint32_t i = 0; i < objects->n; i++) {
		if (!process_object_matches(&objects->v[i], m->in.pd->mod))
			continue;
		loaded = true;
		if (object_is_x86_64(objects->v[i].object))
			match_object(m, &objects->v[i]);
	}
	if (!loaded)
		process_libraries(m->in.ps, m->in.pid, objects, m->in.pd->mod, match_later, m);
	return NULL;
}

static struct err *plt_match(const struct provider *pv, struct probe_set *ps,
			     const struct probe_desc *pd, probe_fn *found, void *arg)
{
	struct match m = { .in = { pv, ps, pd, found, arg } };

	return process_match_each(&m.in, match_process);
}

/* Describes the arguments as the provider pid does: the psABI's integer arguments at the entry,
 * arg1 the value at the return. */
static struct err *plt_args(struct probe_set *ps, const struct probe *p, struct probe_args *ret)
{
	static const enum user_reg regs[NREGS] = { UREG_RDI, UREG_RSI, UREG_RDX,
						   UREG_RCX, UREG_R8,  UREG_R9 };

	if (p->kind == ATTACH_URETPROBE) {
		ret->arg[0].source = ARG_CONST;
		ret->arg[1].source = ARG_RETURN;
		return NULL;
	}
	for (uint32_t i = 0; i < ARRAY_SIZE(ret->arg); i++) {
		if (i < NREGS)
			ret->arg[i] = (struct probe_arg){ .source = ARG_REG,
							  .value = regs[i],
							  .type = T_INT64 };
		else
			ret->arg[i] =
				(struct probe_arg){ .source = ARG_USDT,
						    .type = T_INT64,
						    .usdt = { .size = 8,
							      .mode = USDT_MEM,
							      .disp = 8 * ((int64_t)i - NREGS + 1),
							      .base = UREG_RSP,
							      .index = -1,
							      .scale = 1 } };
	}
	return NULL;
}

const struct provider provider_plt = {
	.name = "plt",
	.doc = "calls across library boundaries, by caller: plt123:CALLER:FUNCTION:entry, return",
	.stability = { E_ISA, P_UNKNOWN, P_UNKNOWN, E_ISA, P_UNKNOWN },
	.claims = plt_claims,
	.match = plt_match,
	.args = plt_args,
};
