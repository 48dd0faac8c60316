/* Reads code: where functions return, through tail jumps and behind indirect functions. */
#define _GNU_SOURCE
#include "calls/returns.h"

#include <dlfcn.h>
#include <elf.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/procmem.h"
#include "base/sorted.h"
#include "program/space/mapping.h"
#include "program/text/text.h"

enum { MAX_FUNCTIONS = 512, MAX_RETS = 4096 }; /* of one function, through its tail jumps */
/* The work that searches may be, in units of a relocation that is read. A slot of a PLT is some
 * more, by the objects and the length of its name. */
/* Any number of words may have one long name, and sorting compares them. */
enum { NAME_BYTES_MAX = 64 << 20 };
enum {
	WORK_MAX = 1 << 28,
	WORK_SLOT = 128,
	WORK_EXIT = 128,
	WORK_KNOWN_EXIT = 16,
	WORK_LOOK = 16, /* to look for a name in an object */
	WORK_WORD = 64, /* to read a word of the process */
	NAME_AT_ONCE =
		16, /* characters of a name that take as long as a relocation, compared 20 times */
};

/* The places where the code of one function ends: rets and jumps. */
struct exits {
	struct {
		uint64_t addr; /* link-time */
		bool is_ret;
	} * v;
	uint32_t n;
	bool never; /* it never returns */
	bool calls_nothing;
};

/* A word that the dynamic linker has set to a function's address. */
struct word {
	const char *name; /* NULL: an indirect function of the object itself, by its resolver */
	uint64_t resolver;
	uint64_t addr; /* link-time */
};

/* The words of an object, read once. */
struct words {
	const struct process_object *in;
	uint8_t *names;
	VEC(struct word) v;          /* sorted */
	struct hash by_addr;         /* of those with a name, -> struct word * */
	uint64_t plt_addr, plt_size; /* link-time */
};

/* Where an object is loaded. */
struct loaded {
	bool known, mapped;
	uint64_t bias;
};

struct returns {
	pid_t pid;
	const struct process_objects *objects;
	struct mappings maps;
	VEC(struct text *) texts; /* of each object, opened on first use */
	struct hash text_of;      /* object -> index in texts, + 1 */
	struct mappings own;      /* of this process; read when first needed */
	bool own_read;
	VEC(uint32_t) code; /* indices in maps, of code of files, by inode */
	uint64_t work, work_max;
	uint64_t name_bytes;   /* of all words' names */
	struct loaded *loaded; /* of each of `objects` */
	VEC(struct words) words;
	struct hash words_of; /* object -> index in words, + 1 */
	VEC(struct exits) exits;
	struct hash exits_of; /* struct return_place of a function -> index in exits, + 1 */
};

static int by_inode(const void *pa, const void *pb, void *arg)
{
	const struct mapping *v = arg;
	const uint32_t a = *(const uint32_t *)pa, b = *(const uint32_t *)pb;

	return COMPARE(v[a].inode, v[b].inode) ?: COMPARE(a, b);
}

struct err *returns_new(pid_t pid, const struct process_objects *objects, struct returns **ret)
{
	struct returns *r = xcalloc(1, sizeof(*r));
	struct err *e = mappings_read(pid, &r->maps);

	if (e) {
		free(r);
		return e;
	}
	for (uint32_t i = 0; i < r->maps.n; i++)
		if (r->maps.v[i].exec && r->maps.v[i].inode)
			vec_push(&r->code, i);
	if (r->code.n)
		qsort_r(r->code.v, r->code.n, sizeof(*r->code.v), by_inode, r->maps.v);
	r->pid = pid;
	r->objects = objects;
	r->work_max = WORK_MAX;
	r->loaded = xcalloc(objects->n + 1, sizeof(*r->loaded));
	*ret = r;
	return NULL;
}

void returns_free(struct returns *r)
{
	if (!r)
		return;
	for (uint32_t i = 0; i < r->texts.n; i++)
		text_free(r->texts.v[i]);
	vec_fini(&r->texts);
	hash_fini(&r->text_of);
	hash_fini(&r->words_of);
	mappings_free(&r->own);
	vec_fini(&r->code);
	for (uint32_t i = 0; i < r->words.n; i++) {
		vec_fini(&r->words.v[i].v);
		hash_fini(&r->words.v[i].by_addr);
		free(r->words.v[i].names);
	}
	vec_fini(&r->words);
	for (uint32_t i = 0; i < r->exits.n; i++)
		free(r->exits.v[i].v);
	vec_fini(&r->exits);
	hash_fini(&r->exits_of);
	mappings_free(&r->maps);
	free(r->loaded);
	free(r);
}

uint64_t returns_work(const struct returns *r)
{
	return r->work;
}

void returns_limit(struct returns *r, uint64_t work)
{
	r->work_max = work;
}

static struct err *text_of(struct returns *r, struct object *o, struct text **ret)
{
	const uint64_t *known = hash_get(&r->text_of, &o, sizeof(o));
	struct text *t;
	struct err *e = known ? NULL : text_open(o, &t);

	if (e)
		return e;
	if (!known) {
		vec_push(&r->texts, t);
		*hash_put(&r->text_of, &o, sizeof(o), NULL) = r->texts.n;
	}
	*ret = known ? r->texts.v[*known - 1] : t;
	return NULL;
}

/* Returns the difference between run-time and link-time addresses of an object that is loaded where
 * the mappings say. */
static bool bias_in(const struct mappings *maps, const struct process_object *po, uint64_t *ret)
{
	for (uint32_t i = 0; i < maps->n; i++) {
		const struct mapping *m = &maps->v[i];
		uint64_t addr;

		if (!m->exec || m->inode != po->inode || !po->inode ||
		    !object_text_mapping_addr(po->object, m->offset, &addr))
			continue;
		*ret = m->start - addr;
		return true;
	}
	return false;
}

/* The same for each of the process's objects, of which there may be as many as mappings. */
static bool bias_by_inode(const struct returns *r, const struct process_object *po, uint64_t *ret)
{
	const struct mapping *v = r->maps.v;
	uint64_t addr;

	for (uint32_t i = partition_point(r->code.n, k, v[r->code.v[k]].inode < po->inode);
	     i < r->code.n && v[r->code.v[i]].inode == po->inode; i++)
		if (object_text_mapping_addr(po->object, v[r->code.v[i]].offset, &addr)) {
			*ret = v[r->code.v[i]].start - addr;
			return true;
		}
	return false;
}

/* Returns false for a library that is to be loaded later. */
static bool is_listed(const struct returns *r, const struct process_object *po)
{
	return po >= r->objects->v && po < r->objects->v + r->objects->n;
}

static bool bias_of(struct returns *r, const struct process_object *po, uint64_t *ret)
{
	struct loaded *l;

	if (!is_listed(r, po))
		return bias_in(&r->maps, po, ret);
	l = &r->loaded[po - r->objects->v];
	if (!l->known)
		l->mapped = bias_by_inode(r, po, &l->bias);
	l->known = true;
	if (l->mapped)
		*ret = l->bias;
	return l->mapped;
}

static bool read_word(const struct returns *r, uint64_t addr, uint64_t *ret)
{
	return procmem_read(r->pid, ret, sizeof(*ret), addr) == sizeof(*ret);
}

static int compare_key(const struct word *w, const char *name, uint64_t resolver)
{
	if (!w->name || !name)
		return (w->name != NULL) - (name != NULL) ?: COMPARE(w->resolver, resolver);
	return strcmp(w->name, name);
}

static int compare_word(const void *pa, const void *pb)
{
	const struct word *a = pa, *b = pb;

	return compare_key(a, b->name, b->resolver) ?: COMPARE(a->addr, b->addr);
}

/* Makes the word that a relocation describes. Returns false for one of another kind. */
static bool word_of(struct returns *r, const Elf64_Rela *rela, const uint8_t *symbols,
		    size_t nsymbols, const uint8_t *names, size_t nnames, struct word *ret)
{
	uint32_t type = ELF64_R_TYPE(rela->r_info);
	uint64_t number = ELF64_R_SYM(rela->r_info);
	size_t left, n;
	Elf64_Sym sym;

	*ret = (struct word){ .resolver = (uint64_t)rela->r_addend, .addr = rela->r_offset };
	if (type == R_X86_64_IRELATIVE)
		return true;
	if ((type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT) || !symbols || !names ||
	    number >= nsymbols / sizeof(sym))
		return false;
	memcpy(&sym, symbols + number * sizeof(sym), sizeof(sym));
	if (sym.st_name >= nnames)
		return false;
	left = nnames - sym.st_name;
	if (left > NAME_BYTES_MAX - r->name_bytes)
		left = NAME_BYTES_MAX - r->name_bytes;
	n = strnlen((const char *)names + sym.st_name, left);
	r->name_bytes += n;
	if (n == left)
		return false;
	ret->name = (const char *)names + sym.st_name;
	ret->resolver = 0;
	return true;
}

static const struct words *words_of(struct returns *r, const struct process_object *in)
{
	static const char *const tables[] = { ".rela.plt", ".rela.dyn" };
	cleanup_free uint8_t *symbols = NULL;
	size_t nsymbols = 0, nnames = 0, n;
	struct words *w;
	uint64_t addr, *known;

	known = hash_put(&r->words_of, &in, sizeof(in), NULL);
	if (*known)
		return &r->words.v[*known - 1];
	w = vec_add(&r->words);
	*known = r->words.n;
	w->in = in;
	if (r->work >= r->work_max)
		return w;
	free(object_section(in->object, ".plt", &w->plt_addr, &w->plt_size));
	symbols = object_section(in->object, ".dynsym", &addr, &nsymbols);
	w->names = object_section(in->object, ".dynstr", &addr, &nnames);
	for (uint32_t t = 0; t < ARRAY_SIZE(tables); t++) {
		cleanup_free uint8_t *p = object_section(in->object, tables[t], &addr, &n);

		r->work += p ? n / sizeof(Elf64_Rela) : 0;
		for (size_t i = 0; p && i < n / sizeof(Elf64_Rela); i++) {
			Elf64_Rela rela;
			struct word word;

			memcpy(&rela, p + i * sizeof(rela), sizeof(rela));
			if (word_of(r, &rela, symbols, nsymbols, w->names, nnames, &word))
				vec_push(&w->v, word);
		}
	}
	if (w->v.n)
		qsort(w->v.v, w->v.n, sizeof(*w->v.v), compare_word);
	for (uint32_t i = 0; i < w->v.n; i++)
		if (w->v.v[i].name)
			*hash_put(&w->by_addr, &w->v.v[i].addr, sizeof(uint64_t), NULL) =
				(uintptr_t)&w->v.v[i];
	return w;
}

/* Searches one object's words for the function that was chosen for s of po. name: NULL, or that of
 * s. */
static bool chosen_by(struct returns *r, const struct words *w, const struct process_object *po,
		      const char *name, uint64_t resolver, uint64_t *ret)
{
	uint32_t lo = partition_point(w->v.n, i, compare_key(&w->v.v[i], name, resolver) < 0);
	uint64_t bias, own_bias, word;

	if (lo == w->v.n || !bias_of(r, w->in, &bias) || !bias_of(r, po, &own_bias))
		return false;
	for (uint32_t i = lo;
	     i < w->v.n && !compare_key(&w->v.v[i], name, resolver) && r->work < r->work_max; i++) {
		r->work += WORK_WORD;
		/* The word of a call that was never made leads back into the caller. */
		if (read_word(r, bias + w->v.v[i].addr, &word) && word >= own_bias &&
		    object_is_text(po->object, word - own_bias)) {
			*ret = word - own_bias;
			return true;
		}
	}
	return false;
}

/* The object itself may have the word by the resolver, all others by the name. */
static bool chosen_in(struct returns *r, const struct process_object *in,
		      const struct process_object *po, const struct object_symbol *s, uint64_t *ret)
{
	const struct words *w = words_of(r, in);

	return (in == po && chosen_by(r, w, po, NULL, s->addr, ret)) ||
	       chosen_by(r, w, po, s->name, 0, ret);
}

/* This process may have the same library, in which the dynamic linker chooses the same function on
 * the same processor. */
static bool chosen_here(struct returns *r, const struct process_object *po,
			const struct object_symbol *s, uint64_t *ret)
{
	const uint64_t at = (uintptr_t)dlsym(RTLD_DEFAULT, s->name);
	uint64_t bias = 0;

	if (!r->own_read)
		err_free(mappings_read(getpid(), &r->own));
	r->own_read = true;
	r->work += r->own.n;
	if (!at || !bias_in(&r->own, po, &bias) || !object_is_text(po->object, at - bias))
		return false;
	*ret = at - bias;
	return true;
}

/* An indirect function's resolver has run when the dynamic linker has relocated a caller of it.
 * Finds the chosen function. */
static bool chosen(struct returns *r, const struct process_object *po,
		   const struct object_symbol *s, uint64_t *ret)
{
	/* A file may have any number of such functions. Each is looked for in all files. */
	r->work += WORK_SLOT + r->objects->n * (WORK_LOOK + strlen(s->name) / NAME_AT_ONCE);
	if (r->work >= r->work_max)
		return false;
	if (chosen_in(r, po, po, s, ret))
		return true;
	for (uint32_t k = 0; k < r->objects->n; k++)
		if (&r->objects->v[k] != po && chosen_in(r, &r->objects->v[k], po, s, ret))
			return true;
	return chosen_here(r, po, s, ret);
}

/* Returns the target of a jump with a fixed distance; 0: it has none. */
static uint64_t jump_target(const struct object *o, uint64_t addr)
{
	uint8_t b[16];
	uint32_t n = object_read(o, addr, b, sizeof(b)), at = 0;
	int32_t disp;

	while (at < n && (b[at] == 0xf2 || b[at] == 0x3e || b[at] == 0x2e))
		at++;
	if (at + 2 <= n && (b[at] == 0xeb || (b[at] & 0xf0) == 0x70))
		return addr + at + 2 + (uint64_t)(int64_t)(int8_t)b[at + 1];
	if (at + 1 < n && b[at] == 0x0f && (b[at + 1] & 0xf0) == 0x80)
		at++;
	else if (at >= n || b[at] != 0xe9)
		return 0;
	if (at + 5 > n)
		return 0;
	memcpy(&disp, b + at + 1, 4);
	return addr + at + 5 + (uint64_t)(int64_t)disp;
}

/* A function in the code of an object. */
struct start {
	const struct process_object *in;
	uint64_t addr;
	bool by_pointer; /* only a pointer leads to it, maybe through others */
};
/* The functions whose returns are those of one function. */
struct closure {
	struct start v[MAX_FUNCTIONS];
	uint32_t n;
	bool by_pointer;   /* what is added next, only a pointer leads to */
	bool pointed;      /* those that pointers lead to were added */
	struct hash slots; /* struct return_place -> whether the functions behind it were added */
	struct hash rets;  /* struct return_place of each */
};

/* Adds the function that an address is in. Returns false when none is known there. */
static bool closure_add(struct returns *r, struct closure *c, const struct process_object *in,
			uint64_t addr)
{
	uint64_t start, end;
	struct text *t;
	struct err *e = text_of(r, in->object, &t);

	if (e || c->n == MAX_FUNCTIONS || !text_function(t, addr, &start, &end)) {
		err_free(e);
		return false;
	}
	for (uint32_t i = 0; i < c->n; i++)
		if (c->v[i].in == in && c->v[i].addr == start)
			return true;
	c->v[c->n++] = (struct start){ in, start, c->by_pointer };
	return true;
}

/* Adds the function of an object. */
static bool closure_add_symbol(struct returns *r, struct closure *c,
			       const struct process_object *in, const struct object_symbol *s)
{
	uint64_t at = s->addr;

	return (!s->is_ifunc || chosen(r, in, s, &at)) && closure_add(r, c, in, at);
}

static const struct object_symbol *symbol_of(const struct process_object *in, const char *name)
{
	const struct object_symbol *s = object_find_name(in->object, name);

	return s && s->is_func && s->is_global ? s : NULL;
}

/* Adds the functions that a word of the object may be for, before the first call through it sets
 * the word, or before the object is loaded: those of its name in all objects. A return belongs to a
 * call by its place on the stack, so it does not matter which of them the dynamic linker will
 * choose. */
static bool closure_add_named(struct returns *r, struct closure *c, const struct process_object *po,
			      uint64_t addr)
{
	const uint64_t *word = hash_get(&words_of(r, po)->by_addr, &addr, sizeof(addr));
	const char *name = word ? ((const struct word *)(uintptr_t)*word)->name : NULL;
	const struct object_symbol *s;
	bool all = false;

	if (name)
		r->work += strlen(name) + r->objects->n * (WORK_LOOK + strlen(name) / NAME_AT_ONCE);
	for (uint32_t k = 0; name && k < r->objects->n; k++) {
		s = symbol_of(&r->objects->v[k], name);
		if (!s)
			continue;
		all = closure_add_symbol(r, c, &r->objects->v[k], s);
		if (!all)
			return false;
	}
	if (name && !is_listed(r, po) && (s = symbol_of(po, name)))
		all = closure_add_symbol(r, c, po, s);
	return all;
}

/* Adds the function at a run-time address. */
static bool closure_add_loaded(struct returns *r, struct closure *c, uint64_t at)
{
	const struct mapping *m = mappings_find(&r->maps, at);
	uint64_t addr;

	for (uint32_t k = 0; m && m->exec && m->inode && k < r->objects->n; k++) {
		const struct process_object *in = &r->objects->v[k];

		if (in->inode == m->inode &&
		    object_text_mapping_addr(in->object, m->offset, &addr) &&
		    object_is_text(in->object, at - m->start + addr))
			return closure_add(r, c, in, at - m->start + addr);
	}
	return false;
}

static bool closure_add_slot_new(struct returns *r, struct closure *c,
				 const struct process_object *po, uint64_t slot)
{
	uint8_t b[16];
	uint32_t n = object_read(po->object, slot, b, sizeof(b));
	uint32_t at = n >= 4 && !memcmp(b, "\xf3\x0f\x1e\xfa", 4) ? 4 : 0;
	const struct words *w;
	uint64_t bias, to, word;
	int32_t disp;

	r->work += WORK_SLOT + r->objects->n;
	at += at < n && b[at] == 0xf2;
	if (at + 6 > n || b[at] != 0xff || b[at + 1] != 0x25)
		return false;
	memcpy(&disp, b + at + 2, 4);
	to = slot + at + 6 + (uint64_t)(int64_t)disp;
	if (!bias_of(r, po, &bias))
		return !is_listed(r, po) && closure_add_named(r, c, po, to);
	if (!read_word(r, bias + to, &word))
		return false;
	/* The word leads back to the PLT until the dynamic linker sets it. */
	w = words_of(r, po);
	if (word - bias - w->plt_addr < w->plt_size)
		return closure_add_named(r, c, po, to);
	return closure_add_loaded(r, c, word);
}

/* Adds the functions to which code leads that only jumps through a word of the object: slots of
 * its PLT. Many jumps may lead to one slot. */
static bool closure_add_slot(struct returns *r, struct closure *c, const struct process_object *po,
			     uint64_t slot)
{
	const struct return_place key = { po, slot };
	bool is_new, all;
	const uint64_t *known = hash_put(&c->slots, &key, sizeof(key), &is_new);

	if (!is_new)
		return *known;
	all = c->n < MAX_FUNCTIONS && r->work < r->work_max && closure_add_slot_new(r, c, po, slot);
	*hash_put(&c->slots, &key, sizeof(key), NULL) = all;
	return all;
}

/* Returns true for code that only jumps through a word. */
static bool is_slot(const struct process_object *po, uint64_t addr)
{
	uint8_t b[16];
	uint32_t n = object_read(po->object, addr, b, sizeof(b));
	uint32_t at = n >= 4 && !memcmp(b, "\xf3\x0f\x1e\xfa", 4) ? 4 : 0;

	at += at < n && b[at] == 0xf2;
	return at + 2 <= n && b[at] == 0xff && b[at + 1] == 0x25;
}

/* Adds the functions whose addresses stand in the object's data, as in tables of methods: one of
 * them is where a jump through a pointer leads, if it stays in the object. */
static void closure_add_pointed(struct returns *r, struct closure *c, struct text *t,
				const struct process_object *po)
{
	size_t size;
	uint64_t addr;
	cleanup_free uint8_t *p = NULL;

	if (r->work >= r->work_max)
		return;
	c->pointed = c->by_pointer = true;
	p = object_section(po->object, ".rela.dyn", &addr, &size);
	r->work += p ? size / sizeof(Elf64_Rela) : 0;
	for (size_t i = 0; p && i < size / sizeof(Elf64_Rela) && c->n < MAX_FUNCTIONS; i++) {
		uint64_t start, end, to;
		Elf64_Rela rela;

		memcpy(&rela, p + i * sizeof(rela), sizeof(rela));
		to = (uint64_t)rela.r_addend;
		if (ELF64_R_TYPE(rela.r_info) == R_X86_64_RELATIVE &&
		    object_is_text(po->object, to) && text_function(t, to, &start, &end) &&
		    start == to)
			closure_add(r, c, po, to);
	}
	c->by_pointer = false;
}

static void add_ret(struct closure *c, struct return_places *places,
		    const struct process_object *in, uint64_t addr)
{
	const struct return_place key = { in, addr };
	bool is_new;

	if (places->rets.n == MAX_RETS)
		return;
	hash_put(&c->rets, &key, sizeof(key), &is_new);
	if (is_new)
		vec_push(&places->rets, (struct return_place){ in, addr });
}

/* Finds the exits of a function, once. Its text may be the end of many others. *ret is valid until
 * the next call; NULL when the work was too much. */
static struct err *find_exits_once(struct returns *r, const struct process_object *in,
				   uint64_t func, const struct exits **ret)
{
	const struct return_place key = { in, func };
	cleanup_free struct text_site *sites = NULL;
	const char *reason = NULL;
	struct exits x = { 0 };
	struct text *t;
	struct err *e = text_of(r, in->object, &t);
	uint64_t *known;
	bool is_new;

	*ret = NULL;
	if (e || r->work >= r->work_max)
		return e;
	known = hash_put(&r->exits_of, &key, sizeof(key), &is_new);
	if (!is_new && *known) {
		*ret = &r->exits.v[*known - 1];
		r->work += WORK_KNOWN_EXIT * (uint64_t)(*ret)->n;
		return NULL;
	}
	e = text_returns(t, func, &sites, &x.n, &reason);
	if (e)
		return e;
	r->work += WORK_EXIT * (uint64_t)(x.n + 1);
	x.v = xcalloc(x.n + 1, sizeof(*x.v));
	for (uint32_t k = 0; k < x.n; k++) {
		x.v[k].addr = text_site_point(&sites[k]);
		x.v[k].is_ret = sites[k].kind == WIRE_STUB_RETURN;
	}
	x.never = reason == TEXT_NEVER_RETURNS;
	x.calls_nothing = !reason && text_calls_nothing(t, func);
	vec_push(&r->exits, x);
	*known = r->exits.n;
	*ret = vec_last(&r->exits);
	return NULL;
}

/* Collects the rets of one function of the closure, and adds those that it jumps to. */
static struct err *collect_rets(struct returns *r, struct closure *c, uint32_t i,
				struct return_places *places)
{
	const struct process_object *po = c->v[i].in;
	const struct exits *x = NULL;
	struct text *t;
	struct err *e = text_of(r, po->object, &t);

	e = e ?: find_exits_once(r, po, c->v[i].addr, &x);
	if (e)
		return e;
	if (!x) {
		places->blind = places->too_much = true;
		places->leaf = false;
		return NULL;
	}
	c->by_pointer = c->v[i].by_pointer;
	places->leaf &= x->calls_nothing;
	for (uint32_t k = 0; k < x->n; k++) {
		uint64_t addr = x->v[k].addr, target;

		if (x->v[k].is_ret) {
			add_ret(c, places, po, addr);
			continue;
		}
		/* `jmp *word` of a program built with -fno-plt is a slot itself. */
		target = jump_target(po->object, addr) ?: (is_slot(po, addr) ? addr : 0);
		if (!target) {
			/* Not through the pointers of those that are only pointed to. */
			if (!c->pointed && !c->by_pointer && po == c->v[0].in)
				closure_add_pointed(r, c, t, po);
			places->leaf = false;
		} else if (is_slot(po, target)) {
			places->leaf &= closure_add_slot(r, c, po, target);
		} else { /* maybe into the middle of a function */
			places->leaf &= closure_add(r, c, po, target);
		}
	}
	return NULL;
}

/* Collects the rets of a function and of those that it jumps to. */
static struct err *collect(struct returns *r, const struct process_object *po, uint64_t func,
			   struct return_places *places)
{
	struct closure c = { .v = { { po, func } }, .n = 1 };
	struct err *e = NULL;

	places->leaf = true;
	for (uint32_t i = 0; i < c.n && !e; i++)
		e = collect_rets(r, &c, i, places);
	hash_fini(&c.slots);
	hash_fini(&c.rets);
	return e;
}

struct err *returns_find(struct returns *r, const struct process_object *po,
			 const struct object_symbol *s, bool by_address,
			 struct return_places *places)
{
	const struct exits *x = NULL;
	uint64_t start = s->addr;
	struct text *t;
	struct err *e = text_of(r, po->object, &t);

	if (e)
		return e;
	if (s->is_ifunc) {
		places->blind = !chosen(r, po, s, &start);
		places->too_much = r->work >= r->work_max;
		places->variant = places->blind ? 0 : start;
		return places->blind ? NULL : collect(r, po, start, places);
	}
	e = find_exits_once(r, po, start, &x);
	if (e)
		return e;
	if (!x) {
		places->blind = places->too_much = true;
		return NULL;
	}
	places->symbolic = !x->never && !by_address;
	places->leaf = text_is_leaf(t, start);
	for (uint32_t i = 0; i < x->n; i++)
		places->symbolic &= x->v[i].is_ret;
	return x->n && !places->symbolic ? collect(r, po, start, places) : NULL;
}
