/* Any bytes as machine code, as data words and as an ELF file: the analysis ends, the bytes of each
 * site are as described, and every site has a stub.
 *
 * Layout: flags and number of symbols (low 3 bits; 8: not PIE), each symbol's offset and size,
 * number of data bytes, these, the code. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "elf_make.h"
#include "program/text/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { STUB = 0x100000, SLOT = 0x200000 };

static void check(int holds)
{
	if (!holds)
		abort();
}

static void check_site(struct object *o, const struct text_site *s)
{
	uint8_t now[TEXT_SITE_MAX], out[TEXT_STUB_MAX], patch[TEXT_SITE_MAX];
	struct text_point p = { s->at, s->kind, 1, SLOT };
	uint16_t moved[TEXT_SITE_MAX];
	uint32_t n, code;
	struct err *e;

	check((s->mode == TEXT_PATCH) == !s->reason);
	if (s->mode == TEXT_NONE)
		return;
	check(s->len && s->len <= TEXT_SITE_MAX && s->moved && s->moved <= s->len &&
	      s->at <= s->moved);
	check(s->mode == TEXT_TRAP || s->len >= TEXT_JUMP);
	check(object_read(o, s->addr, now, s->len) == s->len && !memcmp(now, s->bytes, s->len));
	e = text_stub_points(s, 0, STUB, &p, 1, out, sizeof(out), &n, &code, moved);
	if (e) {
		/* the file's addresses may be anywhere, and moved instructions may point far from
		 * the stub */
		check(strstr(e->text, "2 GB") != NULL);
		err_free(e);
		return;
	}
	check(n <= sizeof(out) && code < n);
	for (uint32_t i = 0; i < TEXT_SITE_MAX; i++)
		check(moved[i] == 0xffff || moved[i] < n);
	check(moved[0] != 0xffff && moved[s->at] != 0xffff);
	text_patch(s, 0, STUB + code, patch);
	check(s->mode == TEXT_TRAP ? patch[0] == 0xcc : patch[0] == 0xe9);
}

static void analyse(struct object *o)
{
	struct text *t;
	struct err *e = text_open(o, &t);
	uint64_t start, end;
	struct text_syscall *calls;
	uint32_t n;

	if (e) {
		err_free(e);
		return;
	}
	for (uint32_t i = 0; i < 64 && text_function_at(t, i, &start, &end); i++) {
		struct text_site s, last, joined, *v;
		const char *reason = NULL;
		uint64_t lo, hi;

		check(start < end && text_function(t, start, &lo, &hi) && lo == start);
		check(!text_entry(t, start, &last));
		check_site(o, &last);
		check(!text_returns(t, start, &v, &n, &reason));
		check((n == 0) == (reason != NULL));
		for (uint32_t k = 0; k < n; k++) {
			check_site(o, &v[k]);
			if (text_join(&last, &v[k], &joined))
				check_site(o, &joined);
		}
		free(v);
		for (uint64_t off = 0; off < end - start && off < 256; off++) {
			check(!text_offset(t, start, off, &s));
			check_site(o, &s);
			if (text_join(&last, &s, &joined)) {
				check_site(o, &joined);
				check(joined.addr + joined.at == last.addr + last.at);
			}
			last = s;
		}
	}
	check(!text_syscalls(t, 0, &calls, &n));
	for (uint32_t i = 0; i < n; i++) {
		check_site(o, &calls[i].site);
		calls[i].site.at += 2;
		if (calls[i].site.mode == TEXT_PATCH)
			check_site(o, &calls[i].site);
	}
	free(calls);
	text_free(t);
}

static void as_code(const uint8_t *data, size_t size)
{
	struct elf_symbol symbols[8];
	struct elf_make m;
	struct object *o;
	struct err *e;
	uint32_t n = data[0] & 7;
	size_t ndata;

	if (size < 2 + n * 2u)
		return;
	for (uint32_t i = 0; i < n; i++)
		symbols[i] = (struct elf_symbol){ i & 1 ? "f.cold" : "f",
						  ELF_TEXT_ADDR + (uint64_t)data[1 + i * 2],
						  data[2 + i * 2],
						  ELF64_ST_INFO(STB_GLOBAL, STT_FUNC) };
	m = elf_make(symbols, n, 0);
	if (data[0] & 8)
		((Elf64_Ehdr *)(void *)m.image)->e_type = ET_EXEC;
	data += 1 + n * 2;
	size -= 1 + n * 2;
	ndata = *data < ELF_DATA_SIZE ? *data : ELF_DATA_SIZE;
	data++;
	size--;
	if (ndata > size)
		ndata = size;
	memcpy(m.image + ELF_DATA_OFF, data, ndata);
	data += ndata;
	size -= ndata;
	memcpy(m.image + ELF_TEXT_OFF, data, size < ELF_TEXT_SIZE ? size : ELF_TEXT_SIZE);
	e = object_open_memory("fuzz", m.image, m.size, &o);
	check(!e);
	analyse(o);
	object_free(o);
	free(m.image);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct object *o;
	struct err *e;

	if (!size)
		return 0;
	as_code(data, size);
	e = object_open_memory("fuzz", data, size, &o);
	if (!e) {
		analyse(o);
		object_free(o);
	}
	err_free(e);
	return 0;
}
