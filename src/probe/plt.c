/* plt: calls from one object into another, at the caller: `plt123:CALLER:FUNCTION:entry|return`.
 *
 *	plt123:a.out:malloc:entry     the main program calls malloc; calls by libraries do not count
 *	plt123:libfoo:*:entry         every call of libfoo into other objects
 *
 * A probe lies in the caller's slot of its procedure linkage table (PLT). Therefore probemod is the
 * caller, and the provider needs to know nothing of the callee. Code compiled with -fno-plt calls
 * through the global offset table (GOT) and has no slots.
 */
#include <elf.h>
#include <string.h>

#include "base/glob.h"
#include "probe/process.h"

enum { SLOT = 16, SLOT_GOT = 8, NREGS = 6, MAX_SLOTS = 1 << 20 };

struct table {
	uint8_t *p;
	uint64_t addr;
	size_t n;
};

/* The functions that an object imports. */
struct imports {
	const struct process_object *po;
	struct table rela[2]; /* .rela.plt, .rela.dyn */
	struct table symbols, names;
	struct hash by_got; /* address of a GOT word -> symbol number */
};

struct match {
	struct process_match in;
	bool func_exact, wants_entry, wants_return, any_slot;
};

static bool plt_claims(const struct provider *pv, const char *pattern)
{
	const char *s = pattern + 3;

	return !strncmp(pattern, "plt", 3) &&
	       ((*s && !s[strspn(s, "0123456789")]) || glob_is_pattern(pattern));
}

static struct table section(const struct object *o, const char *name)
{
	struct table b = { 0 };

	b.p = object_section(o, name, &b.addr, &b.n);
	if (!b.p)
		b.n = 0;
	return b;
}

/* Returns a symbol's name; NULL where the file's numbers point outside its tables. */
static const char *symbol_name(const struct imports *im, uint64_t number)
{
	Elf64_Sym s;

	if (number >= im->symbols.n / sizeof(s))
		return NULL;
	memcpy(&s, im->symbols.p + number * sizeof(s), sizeof(s));
	if (s.st_name >= im->names.n ||
	    !memchr(im->names.p + s.st_name, 0, im->names.n - s.st_name))
		return NULL;
	return (const char *)im->names.p + s.st_name;
}

static void imports_open(struct imports *im, const struct process_object *po)
{
	static const char *const tables[] = { ".rela.plt", ".rela.dyn" };

	memset(im, 0, sizeof(*im));
	im->po = po;
	im->symbols = section(po->object, ".dynsym");
	im->names = section(po->object, ".dynstr");
	for (uint32_t t = 0; t < 2; t++) {
		im->rela[t] = section(po->object, tables[t]);
		for (size_t i = 0; i < im->rela[t].n / sizeof(Elf64_Rela); i++) {
			Elf64_Rela r;
			uint32_t type;

			memcpy(&r, im->rela[t].p + i * sizeof(r), sizeof(r));
			type = ELF64_R_TYPE(r.r_info);
			if ((type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT) &&
			    ELF64_R_SYM(r.r_info))
				*hash_put(&im->by_got, &r.r_offset, sizeof(r.r_offset), NULL) =
					ELF64_R_SYM(r.r_info);
		}
	}
}

static void imports_close(struct imports *im)
{
	hash_fini(&im->by_got);
	free(im->rela[0].p);
	free(im->rela[1].p);
	free(im->symbols.p);
	free(im->names.p);
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

static void add(struct match *m, const struct imports *im, const char *func, const char *name,
		enum attach_kind kind, uint64_t addr, uint32_t jmp, const char *unavailable)
{
	uint64_t offset = 0;
	const char *reason = unavailable;
	enum uprobe_class class = UPROBE_REFUSED;
	uint8_t code[16];
	struct probe *p;
	bool is_new;
	uint32_t len;

	if (!reason && !object_addr_to_offset(im->po->object, addr, &offset))
		reason = "its slot is not in the file";
	if (!reason) {
		/* Puts the probe on the jmp instead of the endbr64, because the kernel would
		 * single-step the endbr64. */
		uint32_t n = object_read(im->po->object, addr + jmp, code, sizeof(code));

		class = uprobe_classify(code, n, &len, &reason);
	}
	p = process_add_probe(m->in.ps, m->in.pv, m->in.pid, im->po, m->in.prov, func, name, kind,
			      offset + jmp, &is_new);
	if (is_new) {
		p->addr = addr;
		p->unavailable = reason;
		p->note = reason ? NULL : process_price(class, kind);
	}
	m->in.found(m->in.arg, p);
}

/* Returns why a return probe would break the caller: the callee returns more than once, or keeps
 * the return address that the probe replaces. NULL: there is no hazard. */
static const char *return_hazard(const struct process_object *po, const char *func)
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
	return NULL;
}

static void match_slots(struct match *m, struct imports *im, const char *name)
{
	struct table s = section(im->po->object, name);
	uint32_t step = SLOT;

	if (s.n >= SLOT_GOT && s.p[0] == 0xff && s.p[1] == 0x25 && !strcmp(name, ".plt.got"))
		step = SLOT_GOT;
	for (uint64_t at = 0; at + step <= s.n && at / step < MAX_SLOTS; at += step) {
		const char *func, *hazard;
		uint64_t got, *symbol;
		uint32_t jmp;

		if (!decode_slot(s.p + at, step, s.addr + at, &jmp, &got))
			continue;
		symbol = hash_get(&im->by_got, &got, sizeof(got));
		func = symbol ? symbol_name(im, *symbol) : NULL;
		if (!func || !*func)
			continue;
		if (m->func_exact ? strcmp(m->in.pd->func, func)
				  : !glob_match(m->in.pd->func, func))
			continue;
		m->any_slot = true;
		if (m->wants_entry)
			add(m, im, func, "entry", ATTACH_UPROBE, s.addr + at, jmp, NULL);
		hazard = return_hazard(im->po, func);
		if (m->wants_return && (m->func_exact || !hazard))
			add(m, im, func, "return", ATTACH_URETPROBE, s.addr + at, 0, hazard);
	}
	free(s.p);
}

/* Lists a named function that the object imports without a slot, with the reason. */
static void say_no_slot(struct match *m, const struct imports *im)
{
	for (size_t i = 0; i < im->rela[1].n / sizeof(Elf64_Rela); i++) {
		const char *why =
			"its caller goes by the GOT (-fno-plt, or only its address is taken): there is no slot to probe";
		const char *name;
		Elf64_Rela r;

		memcpy(&r, im->rela[1].p + i * sizeof(r), sizeof(r));
		if (ELF64_R_TYPE(r.r_info) != R_X86_64_GLOB_DAT)
			continue;
		name = symbol_name(im, ELF64_R_SYM(r.r_info));
		if (!name || strcmp(name, m->in.pd->func))
			continue;
		if (m->wants_entry)
			add(m, im, name, "entry", ATTACH_UPROBE, 0, 0, why);
		if (m->wants_return)
			add(m, im, name, "return", ATTACH_URETPROBE, 0, 0, why);
		return;
	}
}

static void match_object(struct match *m, const struct process_object *po)
{
	struct imports im;

	imports_open(&im, po);
	m->any_slot = false;
	match_slots(m, &im, ".plt.sec");
	match_slots(m, &im, ".plt");
	match_slots(m, &im, ".plt.got");
	if (!m->any_slot && m->func_exact)
		say_no_slot(m, &im);
	imports_close(&im);
}

static struct err *match_process(struct process_match *in)
{
	struct match *m = (struct match *)in; /* its first member */
	const struct process_objects *objects;
	struct err *e = process_objects(m->in.ps, m->in.pid, &objects);

	if (e)
		return e;
	m->func_exact = m->in.pd->func[0] && !glob_is_pattern(m->in.pd->func);
	m->wants_entry = glob_match(m->in.pd->name, "entry");
	m->wants_return = glob_match(m->in.pd->name, "return");
	for (uint32_t i = 0; i < objects->n; i++)
		if (process_object_matches(&objects->v[i], m->in.pd->mod) &&
		    object_is_x86_64(objects->v[i].object))
			match_object(m, &objects->v[i]);
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
