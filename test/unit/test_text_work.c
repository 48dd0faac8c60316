/* Files whose parts share others: functions one table of landing pads, jumps one way to them, cold
 * parts one table. Each test takes minutes when the work is a product of the two numbers. */
#include "elf_file.h"
#include "unit.h"

#include "program/text/text_private.h"

enum { CODE = 0x100000, FRAMES = 0x4000000, TABLE = 0x8000000 };

static const char TOO_LONG[] = "to decode the functions of this file takes too long";

struct frames {
	VEC(uint8_t) v;
};

static void put(struct frames *f, const void *p, uint32_t n)
{
	vec_reserve(&f->v, n);
	memcpy(f->v.v + f->v.n, p, n);
	f->v.n += n;
}

static void put_u32(struct frames *f, uint32_t v)
{
	put(f, &v, sizeof(v));
}

/* A CIE "zRL": addresses are distances of 32 bits; the CFA is rsp + cfa. */
static void put_cie(struct frames *f, uint8_t cfa)
{
	const uint8_t body[] = { 1,    'z',  'R',  'L', 0,   1,    0x78, 16, 2,
				 0x1b, 0x1b, 0x0c, 7,   cfa, 0x90, 1,    0,  0 };

	put_u32(f, 4 + sizeof(body));
	put_u32(f, 0);
	put(f, body, sizeof(body));
}

/* The FDE of a function, by the CIE at offset 0. lsda 0: it has none. */
static void put_fde(struct frames *f, uint64_t start, uint32_t size, uint64_t lsda)
{
	put_u32(f, 17);
	put_u32(f, f->v.n);
	put_u32(f, (uint32_t)(start - (FRAMES + f->v.n)));
	put_u32(f, size);
	put(f, (uint8_t[]){ 4 }, 1);
	put_u32(f, lsda ? (uint32_t)(lsda - (FRAMES + f->v.n)) : 0);
}

static const char *reason_at(struct text *t, uint64_t addr)
{
	struct text_site s;

	assert_null(text_entry(t, addr, &s));
	return s.mode == TEXT_NONE ? s.reason : "";
}

/* Functions that share a table of landing pads. */
static void test_landing_pads(void **state)
{
	const uint32_t nfunctions = 20000, nsites = 250000;
	struct frames table = { 0 }, frames = { 0 };
	uint8_t *code = xmalloc(nfunctions * 16);
	struct object *o;
	struct text *t;

	(void)state;
	memset(code, 0x90, nfunctions * 16);
	/* no start of pads, no types; sites of single bytes: start, length, pad, action */
	put(&table, (uint8_t[]){ 0xff, 0xff, 0x01 }, 3);
	put(&table,
	    (uint8_t[]){ 0x80 | (nsites * 4 & 0x7f), 0x80 | (nsites * 4 >> 7 & 0x7f),
			 nsites * 4 >> 14 },
	    3);
	for (uint32_t i = 0; i < nsites; i++)
		put(&table, (uint8_t[]){ 0, 1, 2, 0 }, 4);
	put_cie(&frames, 8);
	for (uint32_t i = 0; i < nfunctions; i++)
		put_fde(&frames, CODE + i * 16, 16, TABLE);
	put_u32(&frames, 0);
	o = elf_file(
		(struct elf_piece[]){
			{ ".text", SHF_ALLOC | SHF_EXECINSTR, CODE, code, nfunctions * 16 },
			{ ".eh_frame", SHF_ALLOC, FRAMES, frames.v.v, frames.v.n },
			{ ".gcc_except_table", SHF_ALLOC, TABLE, table.v.v, table.v.n },
		},
		3, NULL, 0);
	assert_null(text_open(o, &t));
	assert_string_equal(reason_at(t, CODE + 16), TOO_LONG);
	text_free(t);
	/* Also when it is opened again while another has it. */
	assert_null(text_open(o, &t));
	assert_null(text_open(o, &t));
	assert_string_equal(reason_at(t, CODE + 16), TOO_LONG);
	text_free(t);
	text_free(t);
	object_free(o);
	vec_fini(&table.v);
	vec_fini(&frames.v);
	free(code);
}

/* Jumps that all come from one long straight way, which ends by the sum that they jump to. */
static void test_straight_way(void **state)
{
	static const uint8_t sum[] = { 0x48, 0x01, 0xd0 };        /* add %rdx,%rax */
	static const uint8_t jump[] = { 0x74, 0x02, 0xff, 0xe0 }; /* je .+2; jmp *%rax */
	const uint32_t nstraight = 400000, njumps = 20000;
	const uint32_t size = nstraight + sizeof(sum) + njumps * sizeof(jump) + 1;
	uint8_t *code = xmalloc(size), *p = code + nstraight;
	struct object *o;
	struct text *t;
	struct text_site *sites = NULL;
	const char *reason;
	uint32_t n;

	(void)state;
	memset(code, 0x90, nstraight);
	memcpy(p, sum, sizeof(sum));
	p += sizeof(sum);
	for (uint32_t i = 0; i < njumps; i++, p += sizeof(jump))
		memcpy(p, jump, sizeof(jump));
	*p = 0xc3;
	o = elf_file(
		(struct elf_piece[]){ { ".text", SHF_ALLOC | SHF_EXECINSTR, CODE, code, size } }, 1,
		&(struct elf_function){ "f", CODE, size }, 1);
	assert_null(text_open(o, &t));
	assert_null(text_returns(t, CODE, &sites, &n, &reason));
	assert_non_null(reason);
	free(sites);
	text_free(t);
	object_free(o);
	free(code);
}

/* One table that leads into many cold parts. */
static void test_cold_parts(void **state)
{
	const uint32_t nparts = 50000, nwords = 1 << 20;
	/* lea TABLE(%rip),%rdx; movslq (%rdx,%rdi,4),%rax; add %rdx,%rax; jmp *%rax */
	uint8_t f[] = { 0x48, 0x8d, 0x15, 0,    0,    0,    0,    0x48,
			0x63, 0x04, 0xba, 0x48, 0x01, 0xd0, 0xff, 0xe0 };
	const uint32_t size = 32 + nparts * 16, distance = TABLE - (CODE + 7);
	int32_t *words = xmalloc(nwords * sizeof(*words));
	uint8_t *code = xmalloc(size);
	struct frames frames = { 0 };
	struct object *o;
	struct text *t;
	struct text_site *sites = NULL;
	const char *reason;
	uint32_t n;

	(void)state;
	memset(code, 0xc3, size);
	memcpy(f + 3, &distance, 4);
	memcpy(code, f, sizeof(f));
	put_cie(&frames, 16);
	for (uint32_t i = 0; i < nparts; i++)
		put_fde(&frames, CODE + 32 + i * 16, 16, 0);
	put_u32(&frames, 0);
	for (uint32_t i = 0; i < nwords; i++)
		words[i] = (int32_t)(CODE + 32 + (nparts - 1 - i % nparts) * 16 + 4) - TABLE;
	o = elf_file(
		(struct elf_piece[]){
			{ ".text", SHF_ALLOC | SHF_EXECINSTR, CODE, code, size },
			{ ".eh_frame", SHF_ALLOC, FRAMES, frames.v.v, frames.v.n },
			{ ".rodata", SHF_ALLOC, TABLE, words, nwords * sizeof(*words) },
		},
		3, &(struct elf_function){ "f", CODE, sizeof(f) }, 1);
	assert_null(text_open(o, &t));
	assert_null(text_returns(t, CODE, &sites, &n, &reason));
	assert_non_null(reason);
	free(sites);
	text_free(t);
	object_free(o);
	vec_fini(&frames.v);
	free(words);
	free(code);
}

/* Functions inside one another that do not decode, in front of many returns. */
static void test_irregular_neighbours(void **state)
{
	static const uint8_t unit[] = { 0x74, 0x02, 0x74, 0x00, 0xc3, 0x06, 0x06, 0x06 };
	const uint32_t nunits = 60000, size = nunits * sizeof(unit);
	struct elf_function *functions = xcalloc(size, sizeof(*functions));
	uint8_t *code = xmalloc(size);
	struct text_site *sites = NULL;
	const char *reason;
	struct object *o;
	struct text *t;
	uint32_t n;

	(void)state;
	for (uint32_t i = 0; i < nunits; i++)
		memcpy(code + i * sizeof(unit), unit, sizeof(unit));
	for (uint32_t i = 0; i < size; i++)
		functions[i] = (struct elf_function){ "f", CODE + i, i ? 128 : size };
	for (uint32_t i = size - 128; i < size; i++)
		functions[i].size = size - i;
	o = elf_file(
		(struct elf_piece[]){ { ".text", SHF_ALLOC | SHF_EXECINSTR, CODE, code, size } }, 1,
		functions, size);
	assert_null(text_open(o, &t));
	assert_null(text_returns(t, CODE, &sites, &n, &reason));
	free(sites);
	text_free(t);
	object_free(o);
	free(functions);
	free(code);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_landing_pads),
		cmocka_unit_test(test_straight_way),
		cmocka_unit_test(test_cold_parts),
		cmocka_unit_test(test_irregular_neighbours),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
