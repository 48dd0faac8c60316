/* Links a program with the routines of bpf/ that it calls, and makes BTF for the result. */
#define _GNU_SOURCE
#include "load/link.h"

#include <assert.h>
#include <ctype.h>
#include <elf.h>
#include <errno.h>
#include <linux/btf.h>

#include "base/mem.h"

/* The object of bpf/, embedded at build time. It has code in .text and BTF, but no data sections
 * and therefore no maps. */
extern const uint8_t descry_bpf_lib[], descry_bpf_lib_end[];

enum { NO_FUNC = 0xffffffffu };

struct lib_func {
	const char *name;
	uint32_t start, n; /* instructions */
	uint32_t btf_id;
};

struct lib {
	const struct bpf_insn *insns;
	uint32_t ninsns;
	uint32_t *target; /* [ninsns]: the function of a call or callback address, else NO_FUNC */
	struct lib_func *funcs;
	uint32_t nfuncs;
	const uint8_t *btf; /* linkage of functions already static */
	uint32_t btf_size;
	uint32_t btf_ntypes; /* ids 1 .. btf_ntypes */
	uint32_t btf_int;    /* id of an integer type, the result of own functions */
};

static struct lib lib;
static const char *lib_error; /* why the library cannot be used; set once */

static bool is_ld_imm64(const struct bpf_insn *i)
{
	return i->code == (BPF_LD | BPF_IMM | BPF_DW);
}

static bool is_call(const struct bpf_insn *i)
{
	return i->code == (BPF_JMP | BPF_CALL);
}

static uint32_t lib_func_at(uint32_t insn)
{
	for (uint32_t i = 0; i < lib.nfuncs; i++)
		if (lib.funcs[i].start == insn)
			return i;
	return NO_FUNC;
}

static uint32_t lib_func_named(const char *name)
{
	for (uint32_t i = 0; i < lib.nfuncs; i++)
		if (!strcmp(lib.funcs[i].name, name))
			return i;
	return NO_FUNC;
}

static int link_by_start(const void *a, const void *b)
{
	const struct lib_func *x = a, *y = b;

	return COMPARE(x->start, y->start);
}

/* Bytes of trailing data after a struct btf_type. */
static uint32_t btf_extra(const struct btf_type *t)
{
	uint32_t vlen = BTF_INFO_VLEN(t->info);

	switch (BTF_INFO_KIND(t->info)) {
	case BTF_KIND_INT: return 4;
	case BTF_KIND_ARRAY: return sizeof(struct btf_array);
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION: return vlen * sizeof(struct btf_member);
	case BTF_KIND_ENUM: return vlen * sizeof(struct btf_enum);
	case BTF_KIND_ENUM64: return vlen * 12;
	case BTF_KIND_FUNC_PROTO: return vlen * sizeof(struct btf_param);
	case BTF_KIND_VAR: return sizeof(struct btf_var);
	case BTF_KIND_DATASEC: return vlen * sizeof(struct btf_var_secinfo);
	case BTF_KIND_DECL_TAG: return sizeof(struct btf_decl_tag);
	default: return 0;
	}
}

/* Gives every function its BTF id and makes it static. */
static const char *read_btf(const uint8_t *data, uint32_t size)
{
	const struct btf_header *h = (const void *)data;

	if (size < sizeof(*h) || h->magic != BTF_MAGIC ||
	    (uint64_t)h->hdr_len + h->str_off + h->str_len > size ||
	    (uint64_t)h->hdr_len + h->type_off + h->type_len > size)
		return "bad BTF";
	uint8_t *copy = xmemdup(data, size);
	const char *str = (const char *)copy + h->hdr_len + h->str_off;
	uint8_t *p = copy + h->hdr_len + h->type_off, *end = p + h->type_len;
	uint32_t id = 1;

	for (; p + sizeof(struct btf_type) <= end; id++) {
		struct btf_type *t = (struct btf_type *)p;
		uint32_t kind = BTF_INFO_KIND(t->info);

		if (kind == BTF_KIND_FUNC) {
			uint32_t f = lib_func_named(str + t->name_off);

			t->info = BTF_KIND_FUNC << 24 | BTF_FUNC_STATIC;
			if (f != NO_FUNC)
				lib.funcs[f].btf_id = id;
		} else if (kind == BTF_KIND_INT && !lib.btf_int) {
			lib.btf_int = id;
		}
		p += sizeof(*t) + btf_extra(t);
	}
	lib.btf = copy;
	lib.btf_size = size;
	lib.btf_ntypes = id - 1;
	if (!lib.btf_int)
		return "BTF without integer type";
	for (uint32_t i = 0; i < lib.nfuncs; i++)
		if (!lib.funcs[i].btf_id)
			return "function without BTF";
	return NULL;
}

/* Resolves every call and callback address to a function. A relocation's symbol is the function
 * or the section. The instruction's imm holds the rest: for a call target - 1 in instructions, for
 * an address bytes. */
static const char *read_calls(const Elf64_Rel *rel, uint32_t nrel, const Elf64_Sym *sym)
{
	for (uint32_t i = 0; i < lib.ninsns; i++) {
		const struct bpf_insn *ins = &lib.insns[i];

		lib.target[i] = NO_FUNC;
		if (is_call(ins) && ins->src_reg == BPF_PSEUDO_CALL)
			lib.target[i] = lib_func_at(i + (uint32_t)ins->imm + 1);
	}
	for (uint32_t r = 0; r < nrel; r++) {
		uint32_t i = (uint32_t)(rel[r].r_offset / 8);
		uint32_t base = (uint32_t)(sym[ELF64_R_SYM(rel[r].r_info)].st_value / 8);

		if (i >= lib.ninsns)
			return "relocation outside .text";
		const struct bpf_insn *ins = &lib.insns[i];

		if (is_call(ins))
			lib.target[i] = lib_func_at(base + (uint32_t)ins->imm + 1);
		else if (is_ld_imm64(ins))
			lib.target[i] = lib_func_at(base + (uint32_t)ins->imm / 8);
		if (lib.target[i] == NO_FUNC)
			return "relocation that names no function";
	}
	return NULL;
}

static const char *read_lib(void)
{
	const uint8_t *base = descry_bpf_lib;
	size_t size = (size_t)(descry_bpf_lib_end - descry_bpf_lib);
	const Elf64_Ehdr *eh = (const void *)base;
	const Elf64_Sym *sym = NULL;
	const Elf64_Rel *rel = NULL;
	const char *str = NULL;
	const uint8_t *btf = NULL;
	uint32_t nsym = 0, nrel = 0, btf_size = 0, text = 0;

	if (size < sizeof(*eh) || memcmp(eh->e_ident, ELFMAG, SELFMAG) || eh->e_machine != EM_BPF)
		return "not a BPF object";
	const Elf64_Shdr *sh = (const void *)(base + eh->e_shoff);
	const char *shstr = (const char *)base + sh[eh->e_shstrndx].sh_offset;

	for (uint32_t i = 1; i < eh->e_shnum; i++) {
		const char *name = shstr + sh[i].sh_name;
		const void *data = base + sh[i].sh_offset;

		if (!strcmp(name, ".text")) {
			lib.insns = data;
			lib.ninsns = (uint32_t)(sh[i].sh_size / 8);
			text = i;
		} else if (!strcmp(name, ".rel.text")) {
			rel = data;
			nrel = (uint32_t)(sh[i].sh_size / sizeof(*rel));
		} else if (sh[i].sh_type == SHT_SYMTAB) {
			sym = data;
			nsym = (uint32_t)(sh[i].sh_size / sizeof(*sym));
			str = (const char *)base + sh[sh[i].sh_link].sh_offset;
		} else if (!strcmp(name, ".BTF")) {
			btf = data;
			btf_size = (uint32_t)sh[i].sh_size;
		} else if (sh[i].sh_type != SHT_STRTAB && (sh[i].sh_flags & SHF_ALLOC) &&
			   sh[i].sh_size) {
			return "it has a data section";
		}
	}
	if (!text || !sym || !btf)
		return "it has no code, symbols or BTF";

	lib.funcs = xcalloc(nsym, sizeof(*lib.funcs));
	for (uint32_t i = 0; i < nsym; i++) {
		if (ELF64_ST_TYPE(sym[i].st_info) != STT_FUNC || sym[i].st_shndx != text)
			continue;
		lib.funcs[lib.nfuncs++] = (struct lib_func){
			.name = str + sym[i].st_name,
			.start = (uint32_t)(sym[i].st_value / 8),
			.n = (uint32_t)(sym[i].st_size / 8),
		};
	}
	qsort(lib.funcs, lib.nfuncs, sizeof(*lib.funcs), link_by_start);
	lib.target = xcalloc(lib.ninsns, sizeof(*lib.target));
	const char *e = read_calls(rel, nrel, sym);

	return e ? e : read_btf(btf, btf_size);
}

static struct err *lib_load(void)
{
	static bool done;

	if (!done) {
		done = true;
		lib_error = read_lib();
	}
	return lib_error ? err_new(0, "embedded BPF routines: %s", lib_error) : NULL;
}

bool link_has_routine(const char *name)
{
	struct err *e = lib_load();

	err_free(e);
	return !e && lib_func_named(name) != NO_FUNC;
}

/* --- one link --- */

struct linking {
	VEC(struct bpf_insn) insns;
	VEC(uint32_t) added;     /* library functions in order of address in the result */
	uint32_t *at;            /* [lib.nfuncs]: start in the result, NO_FUNC */
	VEC(uint32_t) todo_insn; /* instructions of the result whose imm must become relative ... */
	VEC(uint32_t) todo_func; /* ... to this library function */
};

/* Appends library function f and the functions that it calls; k->at[f] is its start. */
static void add_func(struct linking *k, uint32_t f)
{
	if (k->at[f] != NO_FUNC)
		return;
	const struct lib_func *lf = &lib.funcs[f];
	uint32_t start = k->insns.n;

	k->at[f] = start;
	vec_push(&k->added, f);
	vec_reserve(&k->insns, lf->n);
	memcpy(k->insns.v + start, lib.insns + lf->start, lf->n * sizeof(struct bpf_insn));
	k->insns.n += lf->n;
	for (uint32_t i = 0; i < lf->n; i++) {
		uint32_t target = lib.target[lf->start + i];

		if (target == NO_FUNC)
			continue;
		struct bpf_insn *ins = &k->insns.v[start + i];

		ins->src_reg = is_call(ins) ? BPF_PSEUDO_CALL : BPF_PSEUDO_FUNC;
		vec_push(&k->todo_insn, start + i);
		vec_push(&k->todo_func, target);
		add_func(k, target);
	}
}

static void set_imm64(struct bpf_insn *ins, uint64_t v)
{
	ins[0].imm = (int32_t)(uint32_t)v;
	ins[1].imm = (int32_t)(uint32_t)(v >> 32);
}

static struct err *apply(struct linking *k, const struct image_prog *p, const struct reloc *r,
			 const struct link_hooks *h)
{
	assert(r->insn < p->ninsns);
	struct bpf_insn *ins = &k->insns.v[r->insn];
	uint32_t f;

	switch (r->kind) {
	case RELOC_MAP:
		assert(is_ld_imm64(ins));
		ins->src_reg = BPF_PSEUDO_MAP_FD;
		set_imm64(ins, (uint32_t)h->map(h->arg, r->target));
		return NULL;
	case RELOC_MAP_VALUE:
		assert(is_ld_imm64(ins));
		ins->src_reg = BPF_PSEUDO_MAP_VALUE;
		set_imm64(ins, (uint32_t)h->map(h->arg, r->target) | (uint64_t)(uint32_t)r->addend
									     << 32);
		return NULL;
	case RELOC_ROUTINE:
		f = lib_func_named(r->name);
		if (f == NO_FUNC)
			return err_new(ENOENT, "bpf/ has no routine %s", r->name);
		ins->src_reg = is_call(ins) ? BPF_PSEUDO_CALL : BPF_PSEUDO_FUNC;
		vec_push(&k->todo_insn, r->insn);
		vec_push(&k->todo_func, f);
		add_func(k, f);
		return NULL;
	}
	return err_new(0, "unknown relocation %d", r->kind);
}

/* The BTF is the library's, and the program as a function `int (void)`. */
void linked_types(struct linked *l)
{
	const struct btf_header *lh = (const void *)lib.btf;
	uint32_t name_len = (uint32_t)strlen(l->name) + 1, proto = lib.btf_ntypes + 1;
	uint32_t type_len = lh->type_len + 2 * (uint32_t)sizeof(struct btf_type);

	l->btf_size = (uint32_t)sizeof(struct btf_header) + type_len + lh->str_len + name_len;
	l->btf = xcalloc(1, l->btf_size);
	struct btf_header *h = l->btf;
	*h = (struct btf_header){
		.magic = BTF_MAGIC,
		.version = BTF_VERSION,
		.hdr_len = sizeof(*h),
		.type_off = 0,
		.type_len = type_len,
		.str_off = type_len,
		.str_len = lh->str_len + name_len,
	};
	uint8_t *types = (uint8_t *)(h + 1), *strings = types + type_len;

	memcpy(types, lib.btf + lh->hdr_len + lh->type_off, lh->type_len);
	memcpy(strings, lib.btf + lh->hdr_len + lh->str_off, lh->str_len);
	memcpy(strings + lh->str_len, l->name, name_len);
	struct btf_type *t = (struct btf_type *)(types + lh->type_len);

	t[0] = (struct btf_type){ .info = BTF_KIND_FUNC_PROTO << 24, .type = lib.btf_int };
	t[1] = (struct btf_type){
		.name_off = lh->str_len,
		.info = BTF_KIND_FUNC << 24 | BTF_FUNC_STATIC,
		.type = proto,
	};
	l->funcs[0].btf_id = proto + 1;
	l->func_info = xcalloc(l->nfuncs, sizeof(*l->func_info));
	for (uint32_t i = 0; i < l->nfuncs; i++)
		l->func_info[i] = (struct bpf_func_info){ l->funcs[i].start, l->funcs[i].btf_id };
}

static char *link_name_of(const struct image_prog *p)
{
	char *s = xstrdup(*p->name ? p->name : "prog");

	for (char *c = s; *c; c++)
		if (!isalnum((unsigned char)*c) && *c != '_')
			*c = '_';
	if (isdigit((unsigned char)*s))
		*s = '_';
	return s;
}

struct err *link_prog(const struct image_prog *p, const struct link_hooks *hooks,
		      struct linked *ret)
{
	struct linking k = { 0 };
	struct linked l = { .nown = p->ninsns, .locs = p->locs };
	struct err *e = lib_load();

	if (e)
		return e;
	k.at = xmalloc(lib.nfuncs * sizeof(*k.at));
	memset(k.at, 0xff, lib.nfuncs * sizeof(*k.at));
	vec_reserve(&k.insns, p->ninsns);
	memcpy(k.insns.v, p->insns, p->ninsns * sizeof(*p->insns));
	k.insns.n = p->ninsns;
	for (uint32_t i = 0; i < p->nrelocs && !e; i++)
		e = apply(&k, p, &p->relocs[i], hooks);
	if (e) {
		vec_fini(&k.insns);
		goto out;
	}
	for (uint32_t i = 0; i < k.todo_insn.n; i++) {
		uint32_t at = k.todo_insn.v[i];

		k.insns.v[at].imm = (int32_t)(k.at[k.todo_func.v[i]] - at - 1);
		if (is_ld_imm64(&k.insns.v[at]))
			k.insns.v[at + 1].imm = 0;
	}
	l.insns = k.insns.v;
	l.ninsns = k.insns.n;

	l.name = link_name_of(p);
	l.funcs = xcalloc(1 + k.added.n, sizeof(*l.funcs));
	l.funcs[l.nfuncs++].name = l.name;
	for (uint32_t i = 0; i < k.added.n; i++) {
		uint32_t f = k.added.v[i];

		l.funcs[l.nfuncs++] =
			(struct linked_func){ k.at[f], lib.funcs[f].btf_id, lib.funcs[f].name };
	}
	*ret = l;
out:
	free(k.at);
	vec_fini(&k.added);
	vec_fini(&k.todo_insn);
	vec_fini(&k.todo_func);
	return e;
}

void linked_free(struct linked *l)
{
	free(l->insns);
	free(l->funcs);
	free(l->func_info);
	free(l->btf);
	free(l->name);
	*l = (struct linked){ 0 };
}
