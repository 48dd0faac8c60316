#include "btf_make.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"

void btf_make_init(struct btf_make *b, const struct btf_make *base)
{
	memset(b, 0, sizeof(*b));
	b->first = base ? base->first + base->n : 1;
	b->strs_first = base ? base->strs_len : 0;
	if (!base)
		b->strs_len = 1;
}

uint32_t btf_make_str(struct btf_make *b, const char *s)
{
	uint32_t at = b->strs_len;

	if (!s || !*s)
		return 0;
	assert(b->strs_len + strlen(s) + 1 <= sizeof(b->strs));
	strcpy(b->strs + at, s);
	b->strs_len += (uint32_t)strlen(s) + 1;
	return b->strs_first + at;
}

void btf_make_u32(struct btf_make *b, uint32_t v)
{
	assert(b->types_len + 4 <= sizeof(b->types));
	memcpy(b->types + b->types_len, &v, 4);
	b->types_len += 4;
}

uint32_t btf_make_type(struct btf_make *b, uint32_t kind, const char *name, uint32_t vlen,
		       bool kflag, uint32_t size_or_type)
{
	btf_make_u32(b, btf_make_str(b, name));
	btf_make_u32(b, (uint32_t)kflag << 31 | kind << 24 | vlen);
	btf_make_u32(b, size_or_type);
	return b->first + b->n++;
}

void btf_make_member(struct btf_make *b, const char *name, uint32_t type, uint32_t offset)
{
	btf_make_u32(b, btf_make_str(b, name));
	btf_make_u32(b, type);
	btf_make_u32(b, offset);
}

void btf_make_param(struct btf_make *b, const char *name, uint32_t type)
{
	btf_make_u32(b, btf_make_str(b, name));
	btf_make_u32(b, type);
}

uint32_t btf_make_int(struct btf_make *b, const char *name, uint32_t size, uint32_t encoding)
{
	uint32_t id = btf_make_type(b, BTF_KIND_INT, name, 0, false, size);

	btf_make_u32(b, encoding << 24 | size * 8);
	return id;
}

uint32_t btf_make_array(struct btf_make *b, uint32_t elem, uint32_t index, uint32_t n)
{
	uint32_t id = btf_make_type(b, BTF_KIND_ARRAY, NULL, 0, false, 0);

	btf_make_u32(b, elem);
	btf_make_u32(b, index);
	btf_make_u32(b, n);
	return id;
}

void *btf_make_file(const struct btf_make *b, size_t *ret_len)
{
	struct btf_header h = {
		.magic = BTF_MAGIC,
		.version = BTF_VERSION,
		.hdr_len = sizeof(h),
		.type_off = 0,
		.type_len = b->types_len,
		.str_off = b->types_len,
		.str_len = b->strs_len,
	};
	uint8_t *p = xmalloc(sizeof(h) + b->types_len + b->strs_len);

	memcpy(p, &h, sizeof(h));
	memcpy(p + sizeof(h), b->types, b->types_len);
	memcpy(p + sizeof(h) + b->types_len, b->strs, b->strs_len);
	*ret_len = sizeof(h) + b->types_len + b->strs_len;
	return p;
}

void btf_make_write(const struct btf_make *b, const char *path)
{
	size_t n;
	cleanup_free void *p = btf_make_file(b, &n);
	FILE *f = fopen(path, "w");

	assert(f && fwrite(p, 1, n, f) == n);
	fclose(f);
}
