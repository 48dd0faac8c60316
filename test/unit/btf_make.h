/* BTF built by tests: records appended one by one, then the file's bytes. */
#ifndef DESCRY_TEST_BTF_MAKE_H
#define DESCRY_TEST_BTF_MAKE_H

#include <linux/btf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct btf_make {
	uint8_t types[8192];
	char strs[4096];
	uint32_t types_len, strs_len;
	uint32_t first;      /* id of the first record: 1, or the end of the base */
	uint32_t strs_first; /* offset of the first string: 0, or the base's length */
	uint32_t n;
};

/* base NULL: a file of its own. */
void btf_make_init(struct btf_make *b, const struct btf_make *base);
uint32_t btf_make_str(struct btf_make *b, const char *s);
/* A record's header; its id. size_or_type is stored as it is. */
uint32_t btf_make_type(struct btf_make *b, uint32_t kind, const char *name, uint32_t vlen,
		       bool kflag, uint32_t size_or_type);
void btf_make_u32(struct btf_make *b, uint32_t v);
void btf_make_member(struct btf_make *b, const char *name, uint32_t type, uint32_t offset);
void btf_make_param(struct btf_make *b, const char *name, uint32_t type);
uint32_t btf_make_int(struct btf_make *b, const char *name, uint32_t size, uint32_t encoding);
uint32_t btf_make_array(struct btf_make *b, uint32_t elem, uint32_t index, uint32_t n);
/* The file; free() it. */
void *btf_make_file(const struct btf_make *b, size_t *ret_len);
/* ... written to path. */
void btf_make_write(const struct btf_make *b, const char *path);

#endif
