/* Reads USDT probes written by DTrace's own -G: DOF, "DTrace object format", in .SUNW_dof or .dof.
 *
 *	header   0x7f 'D' 'O' 'F' model encoding version ... | flags hdrsize secsize secnum | secoff loadsz filesz pad
 *	section  type align flags entsize | offset size                                       secnum of them at secoff
 *	provider strtab probes prargs proffs name | 5 attributes | prenoffs                   numbers of sections
 *	probe    addr | func name nargv xargv argidx offidx | nargc xargc noffs enoffidx nenoffs
 *
 * A probe has a function's address and places, which are 4-byte distances from that address in
 * section proffs, from offidx on. The call at a place was made a nop, so the arguments are where a
 * call has them. The types of the native arguments follow each other in strtab from nargv on, those
 * of the probe's arguments from xargv on. prargs from argidx on has the native argument of each of
 * the probe's arguments. A linked file may hold several DOFs, one after the other.
 *
 * Where the program asks whether the probe is enabled (prenoffs from enoffidx on), the call was
 * made an instruction that answers no. The place is that of the next instruction:
 *
 *	48 33 c0 | 90 90    xor %rax,%rax; nop; nop      the answer is the call's value
 *	48 33 c0 | c3 90    ...           ret; nop       and also the caller's
 *
 * Since Oracle's DTrace 2 the answer is not a value. The program stores it through the first
 * argument, as 32 bits that were 0. The bytes are the same. */
#include <elf.h>

#include "base/hash.h"
#include "program/object/answer.h"
#include "program/object/object_private.h"

enum {
	DOF_HEADER = 64,
	DOF_SECTION = 32,
	DOF_PROBE = 48,
	DOF_LSB = 1,
	SECT_STRTAB = 8,
	SECT_PROVIDER = 15,
	SECT_PROBES = 16,
	SECT_PRARGS = 17,
	SECT_PROFFS = 18,
	SECT_PRENOFFS = 26,
	PLACES_MAX = 16384, /* limit of one section, with questions */
	PROBES_MAX = 65536, /* limit of an object */
	ARGS_MAX = 16,
	NAME_CHARS = 64 << 10, /* limit of a function's name */
	TYPE_CHARS = 256,      /* limit of a type, of a provider's or probe's name */
	TEXT_MAX = 16 << 20,   /* limit of an object's types and arguments, in bytes */
	RELOCS_MAX = 1 << 20,
};

struct dof {
	struct object *o;
	struct bytes b; /* one whole DOF */
	uint64_t addr;  /* its link-time address */
	uint32_t hdrsize, secsize, secnum;
	uint64_t secoff;
	struct hash relocs; /* address in the section -> value put there by the dynamic linker */
	/* In a hostile file, providers may share probes, and probes places. */
	uint32_t places; /* limit of places still to be read */
};

/* Returns section i if it has this type, else empty and bad bytes. */
static struct bytes section(struct dof *d, uint32_t i, uint32_t type)
{
	struct bytes none = bytes_of("", 0, d->b.name), h = d->b;
	uint64_t offset, size;

	none.bad_at = 1;
	if (i >= d->secnum || !bytes_seek(&h, d->secoff + (uint64_t)i * d->secsize) ||
	    bytes_u32(&h) != type)
		return none;
	bytes_skip(&h, 12);
	offset = bytes_u64(&h);
	size = bytes_u64(&h);
	if (!bytes_ok(&h))
		return none;
	h = d->b;
	return bytes_slice(&h, offset, size);
}

/* Reads relocations, because a position-independent file may hold nothing where the dynamic linker
 * puts an address. */
static void read_relocs(struct dof *d, const struct section *dof)
{
	const struct section *rela = image_find(d->o, ".rela.dyn");
	uint8_t *data;
	struct bytes b;
	size_t n;

	if (d->o->type == ET_EXEC || !rela || !(data = image_section(d->o, rela, &n)))
		return;
	b = bytes_of(data, n, d->o->path);
	while (bytes_left(&b) >= sizeof(Elf64_Rela)) {
		uint64_t offset = bytes_u64(&b), info = bytes_u64(&b), addend = bytes_u64(&b);

		if (offset - dof->addr < dof->size && (uint32_t)info == R_X86_64_RELATIVE &&
		    d->relocs.n < RELOCS_MAX)
			*hash_put(&d->relocs, &offset, sizeof(offset), NULL) = addend;
	}
	free(data);
}

static uint64_t relocated(const struct dof *d, uint64_t at, uint64_t value)
{
	const uint64_t *known = hash_get(&d->relocs, &at, sizeof(at));

	return known ? *known : value;
}

/* Returns the bytes of an argument, negative when it is signed, by the words of its type. */
static int type_size_of(const char *type)
{
	static const struct {
		const char *word;
		int size;
	} words[] = {
		{ "char", -1 },    { "int8_t", -1 },  { "uint8_t", 1 },    { "uchar_t", 1 },
		{ "short", -2 },   { "int16_t", -2 }, { "uint16_t", 2 },   { "ushort_t", 2 },
		{ "int", -4 },     { "int32_t", -4 }, { "uint32_t", 4 },   { "uint_t", 4 },
		{ "unsigned", 4 }, { "pid_t", -4 },   { "id_t", -4 },      { "uid_t", 4 },
		{ "gid_t", 4 },    { "_Bool", 1 },    { "boolean_t", -4 },
	};
	bool is_unsigned = strstr(type, "unsigned");
	const char *last = strrchr(type, ' ');

	if (strchr(type, '*') || strstr(type, "long"))
		return is_unsigned || strchr(type, '*') ? 8 : -8;
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (!strcmp(last ? last + 1 : type, words[i].word))
			return is_unsigned && words[i].size < 0 ? -words[i].size : words[i].size;
	return 8;
}

void image_put_operand(char *out, size_t n, uint32_t arg, int size, uint32_t stack)
{
	static const char regs[6][4][4] = {
		{ "dil", "di", "edi", "rdi" }, { "sil", "si", "esi", "rsi" },
		{ "dl", "dx", "edx", "rdx" },  { "cl", "cx", "ecx", "rcx" },
		{ "r8b", "r8w", "r8d", "r8" }, { "r9b", "r9w", "r9d", "r9" },
	};
	int bytes = size < 0 ? -size : size, w = bytes == 1   ? 0
						 : bytes == 2 ? 1
						 : bytes == 4 ? 2
							      : 3;

	if (arg < 6)
		snprintf(out, n, "%d@%%%s", size, regs[arg][w]);
	else
		snprintf(out, n, "%d@%u(%%rsp)", size, stack + 8 * (arg - 6));
}

/* Returns the i-th of the strings that follow each other from offset `at` on, or NULL when there
 * are fewer. */
static const char *string_at(const struct bytes *strtab, uint64_t at, uint32_t i)
{
	const char *s = bytes_cstr_at(strtab, at, TYPE_CHARS);

	for (; s && i; i--) {
		at += strlen(s) + 1;
		s = bytes_cstr_at(strtab, at, TYPE_CHARS);
	}
	return s;
}

/* Returns true when the section of native indices has those of xargc arguments. When there are
 * none, the definition of the probe hides the native arguments: `probe x(int) : ();`. */
static bool is_mapped(struct bytes prargs, uint32_t argidx, uint32_t xargc)
{
	return bytes_seek(&prargs, argidx) && bytes_left(&prargs) >= xargc;
}

/* Returns "-4@%edi 8@%rsi", owned by the object. */
static const char *arguments(struct dof *d, const struct bytes *strtab, struct bytes prargs,
			     uint32_t nargv, uint32_t nargc, uint32_t xargc, uint32_t argidx)
{
	char text[ARGS_MAX * 16] = "";
	bool mapped = is_mapped(prargs, argidx, xargc);
	uint32_t n = mapped ? xargc : nargc;
	size_t len = 0;

	bytes_seek(&prargs, argidx);
	for (uint32_t i = 0; i < n && i < ARGS_MAX; i++) {
		uint32_t arg = mapped ? bytes_u8(&prargs) : i;
		const char *type = arg < nargc ? string_at(strtab, nargv, arg) : NULL;
		char one[24];

		if (!type || arg >= ARGS_MAX)
			break;
		image_put_operand(one, sizeof(one), arg, type_size_of(type), 0);
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s", len ? " " : "",
					one);
		if (len >= sizeof(text))
			break;
	}
	d->o->dof_text += len + 1;
	vec_push(&d->o->notes, xstrdup(text));
	return *vec_last(&d->o->notes);
}

/* Returns the types of args[], one string each, then an empty string; owned by the object. Returns
 * NULL when they are not known. */
static const char *types(struct dof *d, const struct bytes *strtab, uint32_t at, uint32_t n)
{
	VEC(char) out = { 0 };

	for (uint32_t i = 0; i < n && i < ARGS_MAX; i++) {
		const char *s = string_at(strtab, at, i);

		if (!s || !*s)
			break;
		do
			vec_push(&out, *s);
		while (*s++);
	}
	if (!out.n)
		return NULL;
	vec_push(&out, '\0');
	d->o->dof_text += out.n;
	vec_push(&d->o->notes, out.v);
	return out.v;
}

/* Adds one place of a probe. A note of the same place has the flag and the places of the arguments
 * after a tail call. DOF has the types of args[] and, for a stripped file, the function. */
static void add_place(struct dof *d, const struct object_usdt *like, uint64_t addr)
{
	struct object_usdt u = *like, *note;

	u.addr = addr;
	d->places--;
	note = image_find_note(d->o, &u);
	if (note) {
		note->types = u.types;
		if (!*note->func)
			note->func = u.func;
		return;
	}
	if (!object_is_text(d->o, addr) || !object_addr_to_offset(d->o, addr, &u.offset))
		return;
	vec_push(&d->o->usdts, u);
}

static uint32_t read_code(const void *object, uint64_t addr, uint8_t *buf, uint32_t n)
{
	return object_read(object, addr, buf, n);
}

/* Adds a question. after: address behind the instruction that answers no. */
static void add_question(struct dof *d, const struct object_usdt *u, uint64_t after)
{
	static const uint8_t no[3] = { 0x48, 0x33, 0xc0 };  /* xor %rax,%rax */
	static const uint8_t yes[3] = { 0x83, 0xc8, 0x01 }; /* or $1,%eax */
	static const uint8_t put[3] = { 0x80, 0x0f, 0x01 }; /* orb $1,(%rdi) */
	struct code code = { read_code, d->o };
	struct object_question q = { u->provider, u->name, after - sizeof(no), { 0 }, { 0 } };

	d->places--;
	if (!object_is_text(d->o, q.addr) ||
	    object_read(d->o, q.addr, q.no, sizeof(q.no)) != sizeof(q.no) ||
	    memcmp(q.no, no, sizeof(no)))
		return;
	memcpy(q.yes, code_reads_rax(&code, after) ? yes : put, sizeof(q.yes));
	vec_push(&d->o->questions, q);
}

struct provider_sections {
	struct bytes strtab, probes, prargs, proffs, prenoffs;
	const char *name;
};

static void read_probe(struct dof *d, const struct provider_sections *p, struct bytes probe,
		       uint64_t probe_addr)
{
	struct bytes offs = p->proffs, asks = p->prenoffs;
	uint64_t addr = relocated(d, probe_addr, bytes_u64(&probe));
	uint32_t func = bytes_u32(&probe), name = bytes_u32(&probe), nargv = bytes_u32(&probe),
		 xargv = bytes_u32(&probe), argidx = bytes_u32(&probe), offidx = bytes_u32(&probe);
	uint32_t nargc = bytes_u8(&probe), xargc = bytes_u8(&probe), noffs = bytes_u16(&probe),
		 enoffidx = bytes_u32(&probe), nenoffs = bytes_u16(&probe);
	struct object_usdt u = { .provider = p->name,
				 .func = bytes_cstr_at(&p->strtab, func, NAME_CHARS) };

	u.name = bytes_cstr_at(&p->strtab, name, TYPE_CHARS);
	if (!bytes_ok(&probe) || !u.name || !u.name[0])
		return;
	if (!u.func)
		u.func = "";
	u.args = arguments(d, &p->strtab, p->prargs, nargv, nargc, xargc, argidx);
	if (is_mapped(p->prargs, argidx, xargc))
		u.types = types(d, &p->strtab, xargv, xargc);
	else
		u.types = types(d, &p->strtab, nargv, nargc);
	if (!bytes_seek(&offs, (uint64_t)offidx * 4))
		return;
	for (uint32_t i = 0; i < noffs && d->places && bytes_left(&offs) >= 4; i++)
		add_place(d, &u, addr + bytes_u32(&offs));
	if (!nenoffs || !bytes_seek(&asks, (uint64_t)enoffidx * 4))
		return;
	for (uint32_t i = 0; i < nenoffs && d->places && bytes_left(&asks) >= 4; i++)
		add_question(d, &u, addr + bytes_u32(&asks));
}

static void read_provider(struct dof *d, uint32_t index)
{
	struct bytes b = section(d, index, SECT_PROVIDER);
	struct provider_sections p;
	uint32_t name, prenoffs = 0, probes;
	uint64_t at;

	p.strtab = section(d, bytes_u32(&b), SECT_STRTAB);
	probes = bytes_u32(&b);
	p.probes = section(d, probes, SECT_PROBES);
	p.prargs = section(d, bytes_u32(&b), SECT_PRARGS);
	p.proffs = section(d, bytes_u32(&b), SECT_PROFFS);
	name = bytes_u32(&b);
	bytes_skip(&b, 20);
	if (!bytes_ok(&b) || !bytes_ok(&p.strtab) || !bytes_ok(&p.probes) || !bytes_ok(&p.proffs))
		return;
	if (bytes_left(&b) >= 4) /* since version 2 */
		prenoffs = bytes_u32(&b);
	p.prenoffs = section(d, prenoffs, SECT_PRENOFFS);
	p.name = bytes_cstr_at(&p.strtab, name, TYPE_CHARS);
	if (!p.name || !p.name[0])
		return;
	at = d->addr + (uint64_t)(p.probes.start - d->b.start);
	for (; d->o->dof_probes < PROBES_MAX && d->o->dof_text < TEXT_MAX &&
	       bytes_left(&p.probes) >= DOF_PROBE;
	     at += DOF_PROBE, d->o->dof_probes++) {
		const void *one = bytes_take(&p.probes, DOF_PROBE);

		read_probe(d, &p, bytes_of(one, DOF_PROBE, d->b.name), at);
	}
}

/* Reads one DOF at b's cursor. Returns its length, 0 when there is none. */
static uint64_t read_one(struct dof *d, struct bytes *all)
{
	static const uint8_t magic[] = { 0x7f, 'D', 'O', 'F' };
	size_t at = (size_t)(all->pos - all->start);
	struct bytes h = *all;
	const uint8_t *ident = bytes_take(&h, 16);
	uint64_t size;

	if (!ident || memcmp(ident, magic, sizeof(magic)) || ident[5] != DOF_LSB)
		return 0;
	bytes_skip(&h, 4);
	d->hdrsize = bytes_u32(&h);
	d->secsize = bytes_u32(&h);
	d->secnum = bytes_u32(&h);
	d->secoff = bytes_u64(&h);
	bytes_skip(&h, 8);
	size = bytes_u64(&h);
	if (!bytes_ok(&h) || d->secsize < DOF_SECTION || size < DOF_HEADER ||
	    size > bytes_left(all))
		return 0;
	h = *all;
	d->b = bytes_slice(&h, at, size);
	if (d->secoff > size || d->secnum > (size - d->secoff) / d->secsize)
		return size;
	for (uint32_t i = 0; i < d->secnum; i++) {
		struct bytes s = section(d, i, SECT_PROVIDER);

		if (bytes_ok(&s))
			read_provider(d, i);
	}
	return size;
}

void image_read_dof(struct object *o, const struct section *s, const uint8_t *data, size_t n)
{
	struct bytes all = bytes_of(data, n, o->path);
	struct dof d = { .o = o, .places = PLACES_MAX };

	read_relocs(&d, s);
	while (bytes_left(&all) >= DOF_HEADER) {
		uint64_t size;

		d.addr = s->addr + (uint64_t)(all.pos - all.start);
		size = read_one(&d, &all);
		/* The bytes between two DOFs are padding. */
		if (!bytes_skip(&all, size ? (size_t)size : 4))
			break;
	}
	hash_fini(&d.relocs);
}
