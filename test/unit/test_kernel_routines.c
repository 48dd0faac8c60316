/* The routines of bpf/, run by the real kernel and compared with plain C over many inputs. One
 * program per routine: the arguments lie in an array map, as constants in the program where the
 * routine wants them known to the verifier. Text lies in the same map. */
#include "kernel_test.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <libgen.h>
#include <sys/mman.h>

#include "data/agg.h"

enum { SIZE = 64, MAP_SIZE = 4096 };

/* The only map, for the routines' input and output. */
struct area {
	uint64_t result;
	uint64_t number[7];
	char dst[256];
	char a[256], b[256];
	char strtok[8 + 256];
	uint64_t words[4];
};

static struct area *area;
static int area_fd;

static int32_t hook_map(void *arg, uint32_t index)
{
	return area_fd;
}

static void area_open(void)
{
	union bpf_attr a = { .map_type = BPF_MAP_TYPE_ARRAY,
			     .key_size = 4,
			     .value_size = MAP_SIZE,
			     .max_entries = 1,
			     .map_flags = BPF_F_MMAPABLE };

	area_fd = sys_bpf(BPF_MAP_CREATE, &a, sizeof(a));
	assert_true(area_fd >= 0);
	area = mmap(NULL, MAP_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, area_fd, 0);
	assert_ptr_not_equal(area, MAP_FAILED);
}

/* How a routine's argument is made. */
enum arg_how {
	END,
	DST, /* address of area->dst */
	WORDS,
	STRTOK,
	CONST_SIZE, /* the constant `size` */
	TEXT_A,
	TEXT_B, /* addresses of area->a, b, as the verifier knows them */
	HIDDEN_A,
	HIDDEN_B, /* the same as plain numbers: read from area->number[5], [6] */
	NUM0,
	NUM1,
	NUM2,
	NUM3,
	NUM4, /* area->number[i] */
};

static uint32_t last_insns; /* what the verifier said of the last program: instructions walked */

/* Loads a program that calls the routine with those arguments and stores the result. */
static int load(const char *routine, uint32_t size, const enum arg_how *how)
{
	struct bpf_insn ins[64];
	struct reloc relocs[12];
	uint32_t n = 0, nr = 0;

	/* r9 = area */
	relocs[nr++] = (struct reloc){ .insn = n, .kind = RELOC_MAP_VALUE };
	ins[n++] = I(BPF_LD | BPF_IMM | BPF_DW, R9, 0, 0, 0);
	ins[n++] = I(0, 0, 0, 0, 0);
	for (int i = 0; how[i] != END; i++) {
		int r = R1 + i;

		switch (how[i]) {
		case DST:
		case WORDS:
		case STRTOK:
		case TEXT_A:
		case TEXT_B:
			ins[n++] = MOV(r, R9);
			ins[n++] = ADDI(r, how[i] == DST      ? offsetof(struct area, dst)
					   : how[i] == WORDS  ? offsetof(struct area, words)
					   : how[i] == STRTOK ? offsetof(struct area, strtok)
					   : how[i] == TEXT_A ? offsetof(struct area, a)
							      : offsetof(struct area, b));
			break;
		case CONST_SIZE: ins[n++] = MOVI(r, (int)size); break;
		case HIDDEN_A:
		case HIDDEN_B:
			ins[n++] = LDX(r, R9,
				       offsetof(struct area, number) +
					       8 * (how[i] == HIDDEN_A ? 5 : 6));
			break;
		default: ins[n++] = LDX(r, R9, offsetof(struct area, number) + 8 * (how[i] - NUM0));
		}
	}
	relocs[nr++] = (struct reloc){ .insn = n, .kind = RELOC_ROUTINE, .name = routine };
	ins[n++] = ROUTINE_CALL;
	ins[n++] = STX(R9, R0, 0);
	ins[n++] = MOVI(R0, 0);
	ins[n++] = EXIT;

	struct image_prog p = {
		.name = routine, .insns = ins, .ninsns = n, .relocs = relocs, .nrelocs = nr
	};
	struct link_hooks hooks = { .map = hook_map };
	struct linked l;
	static char log[1 << 20];

	assert_ok(link_prog(&p, &hooks, &l));
	linked_types(&l);
	cleanup_close int btf = sys_btf_load(l.btf, l.btf_size);
	assert_true(btf >= 0);
	union bpf_attr a = { .prog_type = BPF_PROG_TYPE_RAW_TRACEPOINT,
			     .license = (uintptr_t) "GPL",
			     .insns = (uintptr_t)l.insns,
			     .insn_cnt = l.ninsns,
			     .prog_btf_fd = (uint32_t)btf,
			     .func_info = (uintptr_t)l.func_info,
			     .func_info_cnt = l.nfuncs,
			     .func_info_rec_size = sizeof(struct bpf_func_info),
			     .log_buf = (uintptr_t)log,
			     .log_size = sizeof(log),
			     .log_level = 4 };
	int fd = sys_prog_load(&a);

	if (fd < 0) {
		a.log_level = 1;
		sys_prog_load(&a);
		size_t len = strlen(log);

		fail_msg("%s: %s\n...%s", routine, strerror(errno),
			 log + (len > 900 ? len - 900 : 0));
	}
	const char *depth = strstr(log, "stack depth ");
	const char *walked = strstr(log, "processed ");

	last_insns = walked ? (uint32_t)atoi(walked + 10) : 0;
	/* Frames of the call chain, the program's own 0 first; they are not added up by the log. */
	print_message("%-20s size %4u: %5u instructions walked, %.*s\n", routine, size, last_insns,
		      depth ? (int)strcspn(depth, "\n") : 0, depth ? depth : "");
	assert_true(last_insns < 20000);
	linked_free(&l);
	return fd;
}

static int64_t run(int fd)
{
	uint64_t ctx[12] = { 0 };
	union bpf_attr a = { .test = { .prog_fd = (uint32_t)fd,
				       .ctx_in = (uintptr_t)ctx,
				       .ctx_size_in = sizeof(ctx) } };

	if (sys_bpf(BPF_PROG_TEST_RUN, &a, sizeof(a)))
		fail_msg("test run: %s", strerror(errno));
	return (int64_t)area->result;
}

#define LOAD(routine, size, ...) load(routine, size, (enum arg_how[]){ __VA_ARGS__, END })

/* The kernel's address of the map's memory is a number that programs can store: `result =
 * &area->a` by d_strcpy of nothing would be a detour, so a program of its own stores it. */
static void hide_addresses(void)
{
	struct bpf_insn ins[] = {
		I(BPF_LD | BPF_IMM | BPF_DW, R9, BPF_PSEUDO_MAP_VALUE, 0, area_fd),
		I(0, 0, 0, 0, 0),
		MOV(R1, R9),
		ADDI(R1, offsetof(struct area, a)),
		STX(R9, R1, offsetof(struct area, number[5])),
		MOV(R1, R9),
		ADDI(R1, offsetof(struct area, b)),
		STX(R9, R1, offsetof(struct area, number[6])),
		MOVI(R0, 0),
		EXIT,
	};
	union bpf_attr a = { .prog_type = BPF_PROG_TYPE_RAW_TRACEPOINT,
			     .license = (uintptr_t) "GPL",
			     .insns = (uintptr_t)ins,
			     .insn_cnt = ARRAY_SIZE(ins) };
	cleanup_close int fd = sys_prog_load(&a);

	assert_true(fd >= 0);
	run(fd);
	if (area->number[5] < 1ull << 63)
		fail_msg("the map is at %#lx", area->number[5]);
}

static uint32_t seed = 12345;

static uint32_t rnd(uint32_t n)
{
	seed = seed * 1664525 + 1013904223;
	return (seed >> 8) % n;
}

/* Text of up to max characters out of an alphabet, NUL at the end, noise behind it. */
static void make_text(char *s, uint32_t max, const char *alphabet)
{
	uint32_t n = rnd(max + 1);

	for (uint32_t i = 0; i < 256; i++)
		s[i] = (char)(rnd(255) + 1);
	for (uint32_t i = 0; i < n; i++)
		s[i] = alphabet[rnd((uint32_t)strlen(alphabet))];
	s[n] = '\0';
	s[255] = '\0';
}

/* The part of a text that D sees: at most SIZE - 1 characters. */
static const char *cut(const char *s)
{
	static char buf[4][256];
	static int i;
	char *b = buf[i++ & 3];

	memcpy(b, s, SIZE);
	b[SIZE - 1] = '\0';
	return b;
}

#define expect_text(want) \
	do { \
		area->dst[SIZE - 1 + 0] = area->dst[SIZE - 1]; \
		if (strcmp(area->dst, (want))) \
			fail_msg("line %d: got \"%s\", want \"%s\" (a \"%s\", b \"%s\")", \
				 __LINE__, area->dst, (want), area->a, area->b); \
	} while (0)
#define expect_number(got, want) \
	do { \
		int64_t g_ = (got), w_ = (want); \
		if (g_ != w_) \
			fail_msg("line %d: got %ld, want %ld (a \"%s\", b \"%s\")", __LINE__, g_, \
				 w_, area->a, area->b); \
	} while (0)

static int sign(int x)
{
	return (x > 0) - (x < 0);
}

static void test_strcmp_strlen(void **state)
{
	int cmp = LOAD("d_strcmp", SIZE, TEXT_A, HIDDEN_B, CONST_SIZE),
	    len = LOAD("d_strlen", SIZE, HIDDEN_A, CONST_SIZE);

	for (int i = 0; i < 3000; i++) {
		make_text(area->a, 80, "ab\xff");
		if (rnd(2)) {
			make_text(area->b, 80, "ab\xff");
		} else {
			memcpy(area->b, area->a, 256);
			if (rnd(2))
				area->b[rnd(70)] = (char)rnd(256);
		}
		expect_number(run(cmp), sign(strcmp(cut(area->a), cut(area->b))));
		expect_number(run(len), (int64_t)strlen(cut(area->a)));
	}
	area->number[5] += 1ull << 45; /* not an address */
	expect_number(run(len), -EFAULT);
	hide_addresses();
	close(cmp);
	close(len);
}

static void test_copies(void **state)
{
	int cpy = LOAD("d_strcpy", SIZE, DST, CONST_SIZE, HIDDEN_A),
	    pad = LOAD("d_strcpy_pad", SIZE, DST, CONST_SIZE, TEXT_A);
	int join = LOAD("d_strjoin", SIZE, DST, CONST_SIZE, HIDDEN_A, TEXT_B),
	    zero = LOAD("d_zero", 40, DST, CONST_SIZE);
	int up = LOAD("d_toupper", SIZE, DST, CONST_SIZE, TEXT_A),
	    low = LOAD("d_tolower", SIZE, DST, CONST_SIZE, HIDDEN_A);

	for (int i = 0; i < 2000; i++) {
		char want[600];

		make_text(area->a, 80, "abcABCzZ@[`{0\xe1\x80");
		make_text(area->b, 80, "xyz");
		memset(area->dst, 'q', 256);
		expect_number(run(cpy), 0);
		expect_text(cut(area->a));
		memset(area->dst, 'q', 256);
		expect_number(run(pad), 0);
		memset(want, 0, SIZE);
		strcpy(want, cut(area->a));
		assert_memory_equal(area->dst, want, SIZE);
		assert_int_equal(area->dst[SIZE], 'q');
		memset(area->dst, 'q', 256);
		expect_number(run(join), 0);
		snprintf(want, sizeof(want), "%s%s", cut(area->a), cut(area->b));
		expect_text(cut(want));
		assert_int_equal(area->dst[SIZE], 'q');
		expect_number(run(up), 0);
		strcpy(want, cut(area->a));
		for (char *c = want; *c; c++)
			*c = *c >= 'a' && *c <= 'z' ? *c - 32 : *c;
		expect_text(want);
		expect_number(run(low), 0);
		strcpy(want, cut(area->a));
		for (char *c = want; *c; c++)
			*c = *c >= 'A' && *c <= 'Z' ? *c + 32 : *c;
		expect_text(want);
	}
	memset(area->dst, 'q', 256);
	run(zero);
	for (int i = 0; i < 48; i++)
		assert_int_equal(area->dst[i], i < 40 ? 0 : 'q');
	int fds[] = { cpy, pad, join, zero, up, low };
	for (int i = 0; i < 6; i++)
		close(fds[i]);
}

static void test_find(void **state)
{
	int chr = LOAD("d_strchr", SIZE, DST, CONST_SIZE, TEXT_A, NUM0),
	    rchr = LOAD("d_strrchr", SIZE, DST, CONST_SIZE, HIDDEN_A, NUM0);
	int str = LOAD("d_strstr", SIZE, DST, CONST_SIZE, TEXT_A, HIDDEN_B);
	int idx = LOAD("d_index", SIZE, HIDDEN_A, TEXT_B, NUM0, CONST_SIZE),
	    ridx = LOAD("d_rindex", SIZE, TEXT_A, HIDDEN_B, NUM0, CONST_SIZE);

	for (int i = 0; i < 6000; i++) {
		make_text(area->a, rnd(8) ? 80 : 2, "ab");
		make_text(area->b, rnd(4) ? 3 : rnd(2) ? 12 : 0, "ab");
		if (!rnd(8))
			snprintf(area->b, 40, "%s", area->a + strlen(area->a) / 2);
		const char *a = cut(area->a), *b = cut(area->b), *p;
		int c = rnd(4) ? "abc"[rnd(3)] : 0;
		int64_t len = (int64_t)strlen(a), blen = (int64_t)strlen(b),
			start = (int64_t)rnd(90) - 10, want;

		area->number[0] = (uint64_t)c;
		p = strchr(a, c);
		expect_number(run(chr), !p);
		expect_text(p ? p : "");
		p = strrchr(a, c);
		expect_number(run(rchr), !p);
		expect_text(p ? p : "");
		p = strstr(a, b);
		expect_number(run(str), !p);
		expect_text(p ? p : "");

		area->number[0] = (uint64_t)start;
		if (!blen) {
			want = start < 0 ? 0 : start < len ? start : len;
		} else {
			p = start >= len ? NULL : strstr(a + (start < 0 ? 0 : start), b);
			want = p ? p - a : -1;
		}
		expect_number(run(idx), want);
		if (!blen) {
			want = start < 0 ? 0 : start > len ? len : start;
		} else {
			want = -1;
			for (int64_t at = 0; at <= start && at + blen <= len; at++)
				if (!memcmp(a + at, b, (size_t)blen))
					want = at;
		}
		expect_number(run(ridx), want);
		area->number[0] = 0;
		p = strstr(a, b);
		expect_number(run(idx), p ? p - a : -1);
	}
	int fds[] = { chr, rchr, str, idx, ridx };
	for (int i = 0; i < 5; i++)
		close(fds[i]);
}

static void test_substr(void **state)
{
	int sub = LOAD("d_substr", SIZE, DST, CONST_SIZE, TEXT_A, NUM0, NUM1);

	for (int i = 0; i < 4000; i++) {
		make_text(area->a, 80, "abcdefghij");
		const char *a = cut(area->a);
		int64_t len = (int64_t)strlen(a), at = (int64_t)rnd(180) - 90,
			n = (int64_t)rnd(180) - 90;
		char want[256] = "";

		if (!rnd(5))
			n = WIRE_START_ABSENT;
		area->number[0] = (uint64_t)at;
		area->number[1] = (uint64_t)n;
		if (n > SIZE)
			n = SIZE;
		if (at < 0) {
			at += len;
			if (at < 0 && at + n > 0) {
				n += at;
				at = 0;
			}
		}
		if (at >= 0 && at < len) {
			if (n < 0)
				n += len - at;
			if (n > 0)
				snprintf(want, (size_t)n + 1, "%s", a + at);
		}
		expect_number(run(sub), 0);
		expect_text(want);
	}
	close(sub);
}

static void test_strtok(void **state)
{
	int tok = LOAD("d_strtok", SIZE, DST, CONST_SIZE, NUM0, HIDDEN_B, STRTOK);

	hide_addresses();
	for (int i = 0; i < 600; i++) {
		make_text(area->a, 80, "ab,;\xc0");
		make_text(area->b, 3, ",;\xc0\x41");
		char copy[256], delims[256], *save;

		strcpy(copy, cut(area->a));
		strcpy(delims, cut(area->b));
		area->number[0] = area->number[5];
		for (char *p = strtok_r(copy, delims, &save);; p = strtok_r(NULL, delims, &save)) {
			expect_number(run(tok), !p);
			expect_text(p ? p : "");
			area->number[0] = 0;
			if (!p)
				break;
		}
		expect_number(run(tok), 1);
	}
	close(tok);
}

/* cleanpath with a list of components: the judge shares no idea with the routine. */
static void clean(const char *path, char *ret)
{
	char copy[600], *names[300], *save;
	bool rooted = *path == '/';
	size_t n = 0;

	strcpy(copy, path);
	for (char *s = strtok_r(copy, "/", &save); s; s = strtok_r(NULL, "/", &save)) {
		bool parent = !strcmp(s, "..");

		if (!strcmp(s, "."))
			continue;
		if (parent && n && strcmp(names[n - 1], ".."))
			n--;
		else if (!parent || !rooted)
			names[n++] = s;
	}
	strcpy(ret, rooted ? "/" : n || !*path ? "" : ".");
	for (size_t i = 0; i < n; i++)
		sprintf(ret + strlen(ret), "%s%s", i ? "/" : "", names[i]);
}

static void test_paths(void **state)
{
	int base = LOAD("d_basename", SIZE, DST, CONST_SIZE, TEXT_A),
	    dir = LOAD("d_dirname", SIZE, DST, CONST_SIZE, HIDDEN_A);
	int cln = LOAD("d_cleanpath", SIZE, DST, CONST_SIZE, TEXT_A);
	static const char *const given[][2] = {
		{ "/foo/bar/.././../wow/.", "/wow" },
		{ "/foo/./bar//baz", "/foo/bar/baz" },
		{ "/..", "/" },
		{ "/../a", "/a" },
		{ "a/b", "a/b" },
		{ "/a/..b", "/a/..b" },
		{ "/a/.b", "/a/.b" },
		{ "/a/b/..", "/a" },
		{ "//", "/" },
		{ "", "" },
		{ "/a/...", "/a/..." },
		{ "/a/../../b", "/b" },
		{ "../a/../../b/", "../../b" },
		{ "./a", "a" },
	};

	for (uint32_t i = 0; i < ARRAY_SIZE(given); i++) {
		strcpy(area->a, given[i][0]);
		expect_number(run(cln), 0);
		expect_text(given[i][1]);
	}
	for (int i = 0; i < 4000; i++) {
		char copy[256], want[600];

		make_text(area->a, rnd(4) ? 20 : 80, "a/./");
		strcpy(copy, cut(area->a));
		const char *want_name = basename(copy);

		/* glibc keeps "//", which POSIX leaves open. */
		expect_number(run(base), 0);
		expect_text(!strcmp(want_name, "//") ? "/" : want_name);
		strcpy(copy, cut(area->a));
		want_name = dirname(copy);
		expect_number(run(dir), 0);
		expect_text(!strcmp(want_name, "//") ? "/" : want_name);
		clean(cut(area->a), want);
		expect_number(run(cln), 0);
		expect_text(want);
	}
	close(base);
	close(dir);
	close(cln);
}

static void test_numbers(void **state)
{
	int str = LOAD("d_lltostr", 72, DST, CONST_SIZE, NUM0, NUM1),
	    num = LOAD("d_strtoll", SIZE, TEXT_A, NUM0, CONST_SIZE);
	static const int64_t edge[] = { 0,  1,   -1,        9,         10,         35,
					36, 255, INT64_MAX, INT64_MIN, 0x7fffffff, -2147483648ll };

	for (int i = 0; i < 3000; i++) {
		int64_t v = i < 12 ? edge[i]
				   : (int64_t)(((uint64_t)rnd(1 << 24) << 40 |
						(uint64_t)rnd(1 << 24) << 16) >>
					       rnd(60));
		int base = i < 12 ? 10 : 2 + (int)rnd(35);
		char want[100], *end = want + 99;
		uint64_t u = base == 10 && v < 0 ? -(uint64_t)v : (uint64_t)v;

		if (rnd(2))
			v = (int64_t) - (uint64_t)v;
		u = base == 10 && v < 0 ? -(uint64_t)v : (uint64_t)v;
		area->number[0] = (uint64_t)v;
		area->number[1] = (uint64_t)base;
		*end = '\0';
		do {
			*--end = "0123456789abcdefghijklmnopqrstuvwxyz"[u % (uint64_t)base];
			u /= (uint64_t)base;
		} while (u);
		if (base == 16) {
			*--end = 'x';
			*--end = '0';
		} else if (base == 8 && v) {
			*--end = '0';
		} else if (base == 10 && v < 0) {
			*--end = '-';
		}
		expect_number(run(str), 0);
		if (strcmp(area->dst, end))
			fail_msg("%ld base %d: got %s, want %s", v, base, area->dst, end);
		/* ... and back */
		snprintf(area->a, 256, "%s%s%c", rnd(2) ? " \t " : "",
			 base == 8 && *end == '0' ? end + 1 : end, rnd(2) ? '.' : 0);
		if (strlen(area->a) < SIZE) {
			area->number[0] = (uint64_t)base;
			expect_number(run(num), v);
		}
	}
	area->number[1] = 37;
	expect_number(run(str), 1);
	expect_text("");
	static const struct {
		const char *s;
		int base;
		int64_t want;
	} odd[] = {
		{ "", 10, 0 },    { "x", 10, 0 },       { "+5", 10, 5 },   { "0x", 16, 0 },
		{ "0xg", 16, 0 }, { "-0x1F", 16, -31 }, { "0x10", 10, 0 }, { "9", 8, 0 },
		{ "z", 36, 35 },  { "- 5", 10, 0 },     { "00x5", 16, 0 },
	};
	for (uint32_t i = 0; i < ARRAY_SIZE(odd); i++) {
		strcpy(area->a, odd[i].s);
		area->number[0] = (uint64_t)odd[i].base;
		expect_number(run(num), odd[i].want);
	}
	close(str);
	close(num);
}

static void test_addresses(void **state)
{
	int v4 = LOAD("d_inet_ntoa", SIZE, DST, CONST_SIZE, TEXT_A),
	    v6 = LOAD("d_inet_ntoa6", SIZE, DST, CONST_SIZE, HIDDEN_A, NUM0);
	int any = LOAD("d_inet_ntop", SIZE, DST, CONST_SIZE, NUM0, TEXT_A),
	    link = LOAD("d_link_ntop", SIZE, DST, CONST_SIZE, NUM0, TEXT_A);

	for (int i = 0; i < 4000; i++) {
		char want[64];

		memset(area->a, 0, 16);
		for (int b = 0; b < 16; b += 2)
			if (rnd(2)) {
				area->a[b] = (char)(rnd(2) ? rnd(256) : 0);
				area->a[b + 1] = (char)rnd(256);
			}
		if (!rnd(8)) {
			memset(area->a, 0, 10);
			memset(area->a + 10, rnd(2) ? 0xff : 0, 2);
		}
		inet_ntop(AF_INET, area->a, want, sizeof(want));
		expect_number(run(v4), 0);
		expect_text(want);
		area->number[0] = AF_INET;
		expect_number(run(any), 0);
		expect_text(want);
		inet_ntop(AF_INET6, area->a, want, sizeof(want));
		area->number[0] = AF_INET6;
		expect_number(run(any), 0);
		expect_text(want);
		expect_number(run(v6), 0);
		expect_text(want);
		/* not strict: an IPv4 address in it stands alone */
		area->number[0] = 0;
		expect_number(run(v6), 0);
		expect_text(strchr(want, '.') ? strrchr(want, ':') + 1 : want);
	}
	area->number[0] = 77;
	expect_number(run(any), 1);
	memcpy(area->a, "\x02\x00\xab\xcd\x0f\xf0", 6);
	area->number[0] = 1;
	expect_number(run(link), 0);
	expect_text("02:00:ab:cd:0f:f0");
	close(v4);
	close(v6);
	close(any);
	close(link);
}

static void test_aggregations(void **state)
{
	int q = LOAD("d_quantize_bucket", 0, NUM0),
	    ll = LOAD("d_llquantize_rank", 0, NUM0, NUM1, NUM2, NUM3, NUM4);
	int sd = LOAD("d_stddev_add", 0, WORDS, NUM0);
	static const uint32_t ll_args[][4] = { { 10, 0, 6, 20 }, { 10, 3, 9, 10 },
					       { 2, 0, 20, 2 },  { 2, 4, 40, 16 },
					       { 5, 1, 4, 25 },  { 10, 0, 18, 100 },
					       { 3, 0, 5, 27 } };
	unsigned __int128 squares = 0;
	int64_t sum = 0;

	memset(area->words, 0, sizeof(area->words));
	for (int i = 0; i < 20000; i++) {
		int64_t v = i < 130 ? (int64_t)((1ull << (i / 2 % 64)) - (uint64_t)(i & 1))
				    : (int64_t)(((uint64_t)rnd(1 << 24) << 40 |
						 (uint64_t)rnd(1 << 24) << 16 | rnd(1 << 16)) >>
						rnd(64));
		const uint32_t *p = ll_args[rnd(ARRAY_SIZE(ll_args))];

		if (rnd(2))
			v = -(uint64_t)v;
		area->number[0] = (uint64_t)v;
		expect_number(run(q), agg_quantize_bucket(v));
		run(sd);
		sum = (int64_t)((uint64_t)sum + (uint64_t)v);
		uint64_t m = v < 0 ? -(uint64_t)v : (uint64_t)v;
		squares += (unsigned __int128)m * m;
		for (int k = 0; k < 4; k++)
			area->number[1 + k] = p[k];
		area->number[0] = m;
		int64_t middle = agg_ll_middle(p[0], p[1], p[2], p[3]), rank = run(ll);
		int64_t got = v < 0 ? middle - rank : middle + rank;
		uint32_t want = agg_ll_bucket(p[0], p[1], p[2], p[3], v);

		if (got != want)
			fail_msg("llquantize(%ld, %u, %u, %u, %u): got %ld, want %u", v, p[0], p[1],
				 p[2], p[3], got, want);
	}
	assert_int_equal(area->words[0], 20000);
	assert_int_equal((int64_t)area->words[1], sum);
	assert_true(area->words[2] == (uint64_t)squares);
	assert_true(area->words[3] == (uint64_t)(squares >> 64));
	close(q);
	close(ll);
	close(sd);
}

/* Every routine of the table is in the object, for the largest and the smallest size. */
static void test_sizes(void **state)
{
	static const char *const missing_none[] = {
#define X(name, n, what) #name,
		WIRE_ROUTINES(X)
#undef X
	};

	for (uint32_t i = 0; i < ARRAY_SIZE(missing_none); i++)
		if (!link_has_routine(missing_none[i]))
			fail_msg("bpf/ has no %s", missing_none[i]);
	assert_false(link_has_routine("d_no_such"));
	/* The area is 256 bytes a text: D uses 256, and 16 is the least. */
	static const uint32_t sizes[] = { 16, 256 };
	for (int s = 0; s < 2; s++) {
		close(LOAD("d_strcmp", sizes[s], TEXT_A, TEXT_B, CONST_SIZE));
		close(LOAD("d_strjoin", sizes[s], DST, CONST_SIZE, TEXT_A, TEXT_B));
		close(LOAD("d_strstr", sizes[s], DST, CONST_SIZE, TEXT_A, TEXT_B));
		close(LOAD("d_substr", sizes[s], DST, CONST_SIZE, TEXT_A, NUM0, NUM1));
		close(LOAD("d_strtok", sizes[s], DST, CONST_SIZE, TEXT_A, TEXT_B, STRTOK));
		close(LOAD("d_cleanpath", sizes[s], DST, CONST_SIZE, TEXT_A));
		close(LOAD("d_dirname", sizes[s], DST, CONST_SIZE, TEXT_A));
		close(LOAD("d_strcpy_pad", sizes[s], DST, CONST_SIZE, TEXT_A));
	}
}

static int setup(void **state)
{
	area_open();
	hide_addresses();
	return 0;
}

int main(void)
{
	need_kernel();
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_strcmp_strlen), cmocka_unit_test(test_copies),
		cmocka_unit_test(test_find),          cmocka_unit_test(test_substr),
		cmocka_unit_test(test_strtok),        cmocka_unit_test(test_paths),
		cmocka_unit_test(test_numbers),       cmocka_unit_test(test_addresses),
		cmocka_unit_test(test_aggregations),  cmocka_unit_test(test_sizes),
	};
	return cmocka_run_group_tests(tests, setup, NULL);
}
