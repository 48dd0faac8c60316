/* Reads USDT probes written by systemtap's <sys/sdt.h>: notes of type 3, owner "stapsdt", in
 * .note.stapsdt.
 *
 *	u64 pc | u64 base | u64 semaphore | provider\0 name\0 arguments\0
 *
 * base is the address of .stapsdt.base when the note was written. Prelinking a file moves
 * everything by the difference. */
#include <elf.h>

#include "program/object/object_private.h"

enum {
	NOTE_STAPSDT = 3,
	/* In a hostile file, sections may share bytes. */
	SECTIONS_MAX = 16,
	BYTES_MAX = 64 << 20, /* of them all */
	USDTS_MAX = 1 << 18,
};

static void add_usdt(struct object *o, struct bytes *b, uint64_t now_base, bool has_base)
{
	struct object_usdt u = { .func = "" };
	uint64_t pc, base, semaphore;

	pc = o->is64 ? bytes_u64(b) : bytes_u32(b);
	base = o->is64 ? bytes_u64(b) : bytes_u32(b);
	semaphore = o->is64 ? bytes_u64(b) : bytes_u32(b);
	u.provider = bytes_cstr(b);
	u.name = bytes_cstr(b);
	u.args = bytes_cstr(b);
	if (!bytes_ok(b) || !u.provider || !u.name || !u.provider[0] || !u.name[0])
		return;
	if (!u.args)
		u.args = "";
	if (has_base && base) {
		pc += now_base - base;
		if (semaphore)
			semaphore += now_base - base;
	}
	u.addr = pc;
	if (!object_is_text(o, pc) || !object_addr_to_offset(o, pc, &u.offset))
		return;
	if (semaphore && !object_addr_to_offset(o, semaphore, &u.semaphore))
		return; /* it could never be enabled: do not list it */
	vec_push(&o->usdts, u);
}

/* Notes are 4-byte aligned here, whatever the section's header. */
static void read_notes(struct object *o, const uint8_t *notes, size_t n)
{
	const struct section *base = image_find(o, ".stapsdt.base");
	struct bytes b = bytes_of(notes, n, o->path);

	while (bytes_left(&b) >= 12 && o->usdts.n < USDTS_MAX) {
		uint32_t namesz = bytes_u32(&b), descsz = bytes_u32(&b), type = bytes_u32(&b);
		const char *name = bytes_take(&b, namesz);

		if (!name || bytes_left(&b) < (-namesz & 3))
			return;
		bytes_skip(&b, -namesz & 3);
		const uint8_t *desc = bytes_take(&b, descsz);

		if (!desc)
			return;
		if (type == NOTE_STAPSDT && namesz == 8 && !memcmp(name, "stapsdt", 8)) {
			struct bytes d = bytes_of(desc, descsz, o->path);

			add_usdt(o, &d, base ? base->addr : 0, base);
		}
		if (bytes_left(&b) < (-descsz & 3))
			return;
		bytes_skip(&b, -descsz & 3);
	}
}

static bool is_dof(const struct section *s)
{
	return !strcmp(s->name, ".SUNW_dof") || !strcmp(s->name, ".dof");
}

static bool is_notes(const struct section *s)
{
	return s->type == SHT_NOTE && !strcmp(s->name, ".note.stapsdt");
}

struct reading {
	uint32_t sections;
	size_t bytes;
};

static void read_section(struct object *o, const struct section *s, struct reading *r)
{
	uint8_t *data;
	size_t n;

	if (r->sections == SECTIONS_MAX || s->size > BYTES_MAX - r->bytes)
		return;
	data = image_section(o, s, &n);
	if (!data)
		return;
	r->sections++;
	r->bytes += n;
	vec_push(&o->notes, (char *)data); /* the probes' texts point into it */
	if (is_dof(s))
		image_read_dof(o, s, data, n);
	else
		read_notes(o, data, n);
}

struct object_usdt *image_find_note(struct object *o, const struct object_usdt *like)
{
	const uint64_t *i = hash_get(&o->note_places, &like->addr, sizeof(like->addr));
	struct object_usdt *u = i ? &o->usdts.v[*i] : NULL;

	return u && !strcmp(u->provider, like->provider) && !strcmp(u->name, like->name) ? u : NULL;
}

/* Reads the notes before DOF, because DOF adds to the notes of the same places. */
static void read_usdts(struct object *o)
{
	struct reading r = { 0 };
	bool dof = false;

	for (uint32_t i = 0; i < o->sections.n; i++) {
		dof |= is_dof(&o->sections.v[i]);
		if (is_notes(&o->sections.v[i]))
			read_section(o, &o->sections.v[i], &r);
	}
	o->nnotes = o->usdts.n;
	for (uint32_t i = 0; i < o->usdts.n && dof; i++) {
		const uint64_t *addr = &o->usdts.v[i].addr;

		*hash_put(&o->note_places, addr, sizeof(*addr), NULL) = i;
	}
	for (uint32_t i = 0; i < o->sections.n && dof; i++)
		if (is_dof(&o->sections.v[i]))
			read_section(o, &o->sections.v[i], &r);
	hash_fini(&o->note_places);
}

/* Sets the functions. For a probe of a note, the symbol's name counts, else that of DOF. For a
 * probe that only DOF has, the name of DOF counts. */
static void find_functions(struct object *o)
{
	for (uint32_t i = 0; i < o->usdts.n; i++) {
		struct object_usdt *u = &o->usdts.v[i];
		const struct object_symbol *func =
			i < o->nnotes || !*u->func ? object_find_addr(o, u->addr) : NULL;

		if (func)
			u->func = func->name;
	}
}

const struct object_usdt *object_usdt_names(struct object *o, uint32_t *ret_n)
{
	if (!o->usdts_read) {
		o->usdts_read = true;
		read_usdts(o);
	}
	*ret_n = o->usdts.n;
	return o->usdts.v;
}

const struct object_usdt *object_usdts(struct object *o, uint32_t *ret_n)
{
	const struct object_usdt *u = object_usdt_names(o, ret_n);

	if (!o->usdts_placed) {
		o->usdts_placed = true;
		find_functions(o);
	}
	return u;
}

const struct object_question *object_questions(struct object *o, uint32_t *ret_n)
{
	uint32_t n;

	(void)object_usdt_names(o, &n);
	*ret_n = o->questions.n;
	return o->questions.v;
}

void image_usdts_fini(struct object *o)
{
	for (uint32_t i = 0; i < o->notes.n; i++)
		free(o->notes.v[i]);
	vec_fini(&o->notes);
	vec_fini(&o->usdts);
	vec_fini(&o->questions);
}
