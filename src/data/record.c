/* Decodes fields of records and keys. */
#include "data/record.h"

#include <errno.h>
#include <limits.h>

uint32_t field_traits(struct type_graph *g, const struct field *f)
{
	uint32_t traits = 0;

	if (f->kind == FIELD_STRING || f->kind == FIELD_STRID)
		return TRAIT_TEXT;
	if (!g || (f->kind != FIELD_INT && f->kind != FIELD_BYTES))
		return 0;
	if (type_is_string(g, f->type) || type_is_char_array(g, f->type))
		return TRAIT_TEXT;
	if (type_is_signed(g, f->type))
		traits |= TRAIT_SIGNED;
	if (type_is_pointer(g, f->type))
		traits |= TRAIT_POINTER;
	if (type_kind(g, type_strip(g, f->type)) == TYPE_FLOAT)
		traits |= TRAIT_FLOAT;
	if (type_is_integer(g, f->type) && (type_int_flags(g, f->type) & TYPE_BOOL))
		traits |= TRAIT_BOOL;
	return traits;
}

uint64_t field_uint(const struct field *f, const uint8_t *data)
{
	const uint8_t *p = data + f->offset;
	uint64_t v = 0;

	switch (f->size) {
	case 8: return read_u64(p);
	case 4: return read_u32(p);
	default: memcpy(&v, p, f->size < 8 ? f->size : 8); return v;
	}
}

int64_t field_int(const struct field *f, const uint8_t *data, bool is_signed)
{
	uint64_t v = field_uint(f, data);

	if (is_signed && f->size && f->size < 8) {
		uint32_t shift = 64 - f->size * 8;

		return (int64_t)(v << shift) >> shift;
	}
	return (int64_t)v;
}

const char *image_strid(const struct image *img, uint32_t id)
{
	if (id / 4 < img->nprobes) {
		const struct image_probe *p = &img->probes[id / 4];
		const char *names[] = { p->prov, p->mod, p->func, p->name };

		return names[id % 4] ? names[id % 4] : "";
	}
	id -= img->nprobes * 4;
	return id < img->nstrings ? img->strings[id] : "";
}

bool field_text(const struct image *img, const struct field *f, const uint8_t *data,
		const char **ret, uint32_t *ret_n)
{
	switch (f->kind) {
	case FIELD_STRING:
	case FIELD_BYTES:
		*ret = (const char *)data + f->offset;
		*ret_n = (uint32_t)strnlen(*ret, f->size);
		return true;
	case FIELD_STRID:
		*ret = image_strid(img, read_u32(data + f->offset));
		*ret_n = (uint32_t)strlen(*ret);
		return true;
	default: return false;
	}
}

static void set_length(struct field_stack *s, int64_t length, uint32_t room)
{
	if (length < 0)
		s->error = length < -INT_MAX ? EINVAL : (int)-length;
	else
		s->n = (uint32_t)((uint64_t)length < room ? (uint64_t)length : room) / 8;
}

bool field_stack(const struct field *f, const uint8_t *data, struct field_stack *ret)
{
	const uint8_t *p = data + f->offset;
	struct field_stack s = { .id = -1 };

	switch (f->kind) {
	case FIELD_KSTACK:
		if (f->size < 8)
			return false;
		s.pcs = p + 8;
		set_length(&s, (int64_t)read_u64(p), f->size - 8);
		break;
	case FIELD_USTACK:
		if (f->size < 16)
			return false;
		s.user = true;
		s.pid = read_u32(p);
		s.end = read_u32(p + 4);
		s.pcs = p + 16;
		set_length(&s, (int64_t)read_u64(p + 8), f->size - 16);
		break;
	case FIELD_KSTACKID: s.id = (int64_t)read_u64(p); break;
	case FIELD_USTACKID:
		s.user = true;
		s.pid = read_u32(p);
		s.id = (int64_t)read_u64(p + 8);
		break;
	default: return false;
	}
	if ((f->kind == FIELD_KSTACKID || f->kind == FIELD_USTACKID) && s.id < 0)
		s.error = s.id < -INT_MAX ? EINVAL : (int)-s.id;
	*ret = s;
	return true;
}

bool field_address(const struct field *f, const uint8_t *data, uint64_t *ret_addr,
		   uint32_t *ret_pid)
{
	const uint8_t *p = data + f->offset;

	switch (f->kind) {
	case FIELD_SYM:
	case FIELD_MOD:
		*ret_pid = 0;
		*ret_addr = read_u64(p);
		return true;
	case FIELD_USYM:
	case FIELD_UMOD:
	case FIELD_UADDR:
		*ret_pid = read_u32(p);
		*ret_addr = read_u64(p + 8);
		return true;
	default: return false;
	}
}

const uint8_t *field_mem(const struct field *f, const uint8_t *data, uint32_t *ret_n)
{
	uint32_t room = f->size > 8 ? f->size - 8 : 0;
	uint64_t n = f->size >= 8 ? read_u64(data + f->offset) : 0;

	*ret_n = n < room ? (uint32_t)n : room;
	return data + f->offset + 8;
}
