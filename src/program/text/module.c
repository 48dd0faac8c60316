/* Loads a module: its segments in memory, function ranges, and every byte that may be the target of
 * a branch.
 *
 * Long branches are found without decoding: each byte of the text that could be the opcode of a
 * call, jmp or jcc with a 32-bit displacement counts as one. This takes 1 ns a byte, against 120
 * for decoding, and no stretch of data or hand-written assembly can hide a branch. Short branches
 * only reach 128 bytes, and function.c finds them where needed. */
#include <elf.h>
#include <errno.h>
#include <sys/stat.h>

#include "base/bytes.h"
#include "base/sorted.h"
#include "program/text/text_private.h"
#include "program/unwind/cfi.h"

enum {
	MAX_LOADS = 64,
	READ_STEP = 4 << 20,
	MAX_GAP = 64, /* bytes between two FDEs */
	MAX_LSDA_SITES = 1 << 20,
	HOLLOW = 8, /* a compressing filesystem may show so few of a file's bytes as blocks */
	HOLLOW_MIN = 32 << 20,
	WORK = 16, /* decoded bytes for each byte of a file; a real one takes up to 3 */
	WORK_MIN = 64 << 20,
	TAKEN_FEW = 4096,
	TAKEN_BYTES = 16, /* of text, for each address that lea takes; a real one has 20 or more */
};
static const uint64_t TEXTS_MAX = 2ull << 30; /* bytes that all texts hold */
static uint64_t held;                         /* of TEXTS_MAX */

/* --- segments and marks --- */

const struct text_segment *text_segment_at(const struct text *t, uint64_t addr)
{
	for (uint32_t i = 0; i < t->segments.n; i++)
		if (segment_has(&t->segments.v[i], addr))
			return &t->segments.v[i];
	return NULL;
}

static struct text_segment *exec_at(const struct text *t, uint64_t addr)
{
	if (addr < t->lo || addr >= t->hi)
		return NULL;
	for (uint32_t i = 0; i < t->segments.n; i++)
		if (t->segments.v[i].exec && segment_has(&t->segments.v[i], addr))
			return &t->segments.v[i];
	return NULL;
}

void text_mark(struct text *t, uint64_t addr, enum text_mark m)
{
	struct text_segment *g = exec_at(t, addr);

	if (g)
		g->marks[m][(addr - g->addr) / 64] |= 1ull << (addr - g->addr) % 64;
}

bool text_marked(const struct text *t, uint64_t addr, enum text_mark m)
{
	const struct text_segment *g = exec_at(t, addr);

	return g && g->marks[m][(addr - g->addr) / 64] >> (addr - g->addr) % 64 & 1;
}

bool text_any_mark(const struct text *t, uint64_t lo, uint64_t hi)
{
	for (; lo < hi; lo++)
		if (text_marked(t, lo, MARK_BRANCH) || text_marked(t, lo, MARK_TAKEN))
			return true;
	return false;
}

bool text_bytes(const struct text *t, uint64_t addr, void *buf, uint32_t n)
{
	const struct text_segment *g = text_segment_at(t, addr);

	if (!g || n > g->size - (addr - g->addr))
		return false;
	memcpy(buf, g->bytes + (addr - g->addr), n);
	return true;
}

/* Returns how many bytes the file can have in earnest: a hole of a sparse file is not code. */
static uint64_t size_of_file(const struct text *t)
{
	struct stat st;

	return object_stat(t->object, &st) ? (uint64_t)st.st_blocks * 512 : t->held;
}

static struct err *read_segments(struct text *t)
{
	struct object_segment s;
	struct stat st;
	const uint64_t most = object_stat(t->object, &st) ? size_of_file(t) * HOLLOW + HOLLOW_MIN
							  : UINT64_MAX;

	t->lo = UINT64_MAX;
	for (uint32_t i = 0; object_segment(t->object, i, &s); i++) {
		struct text_segment g = { .addr = s.addr, .exec = s.flags & PF_X };
		uint64_t room = 0;

		if (s.type != PT_LOAD || !s.filesz)
			continue;
		if (t->segments.n == MAX_LOADS || s.addr > UINT64_MAX - s.filesz)
			return err_new(ENOEXEC, "%s: its segments make no sense",
				       object_path(t->object));
		if (s.filesz > TEXTS_MAX - held || t->held + s.filesz > most)
			return err_new(EFBIG,
				       s.filesz > TEXTS_MAX - held
					       ? "%s: more than 2 GB of code and data in all files"
					       : "%s: its code and data lie in a hole of the file",
				       object_path(t->object));
		while (g.size < s.filesz) {
			uint64_t want = s.filesz - g.size < READ_STEP ? s.filesz - g.size
								      : READ_STEP;
			uint32_t got;

			if (g.size + want > room) {
				room = room ? room * 2 : want;
				g.bytes = xrealloc(g.bytes, room);
			}
			got = object_read(t->object, s.addr + g.size, g.bytes + g.size,
					  (uint32_t)want);
			g.size += got;
			if (got < want)
				break;
		}
		t->held += g.size;
		held += g.size;
		if (!g.size) {
			free(g.bytes);
			continue;
		}
		if (g.exec) {
			for (int m = 0; m < MARKS; m++)
				g.marks[m] = xcalloc(g.size / 64 + 1, 8);
			if (g.addr < t->lo)
				t->lo = g.addr;
			if (g.addr + g.size > t->hi)
				t->hi = g.addr + g.size;
			t->text_bytes += g.size;
		}
		vec_push(&t->segments, g);
	}
	if (!t->hi)
		t->lo = 0;
	return NULL;
}

static uint32_t le32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, 4);
	return v;
}

static uint64_t le64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, 8);
	return v;
}

/* Returns true when the four bytes at i are a displacement from the instruction pointer, and so no
 * address. The byte in front shows this (mod 00, r/m 101), unless it is the second byte of an
 * address form, or a displacement in front of a constant. 05 and 2d are also `add` and `sub` of a
 * constant. */
static bool is_relative(const uint8_t *b, uint64_t i)
{
	if (i < 4 || (b[i - 1] & 0xc7) != 0x05 || b[i - 1] == 0x05 || b[i - 1] == 0x2d)
		return false;
	if ((b[i - 2] & 0xc7) == 0x04) /* disp32(,%reg,1) */
		return false;
	/* movl $label, disp8(%reg) */
	return !(b[i - 3] == 0xc7 && b[i - 2] >> 6 == 1) &&
	       !(b[i - 4] == 0xc7 && b[i - 3] >> 6 == 1);
}

/* Marks the target of everything that looks like a long branch or a code address, at any byte. */
static void scan_text(struct text *t, const struct text_segment *g)
{
	const uint64_t most = t->tables.n + TAKEN_FEW + g->size / TAKEN_BYTES;
	const uint8_t *b = g->bytes;

	for (uint64_t i = 0; i + 5 <= g->size; i++) {
		uint64_t next = g->addr + i;

		switch (b[i]) {
		case 0xe8: /* call */
			next += 5 + (uint64_t)(int64_t)(int32_t)le32(b + i + 1);
			text_mark(t, next, MARK_BRANCH);
			text_mark(t, next, MARK_CALLED);
			break;
		case 0xe9: /* jmp */
			text_mark(t, next + 5 + (uint64_t)(int64_t)(int32_t)le32(b + i + 1),
				  MARK_BRANCH);
			break;
		case 0x0f: /* jcc */
			if ((b[i + 1] & 0xf0) == 0x80 && i + 6 <= g->size)
				text_mark(t, next + 6 + (uint64_t)(int64_t)(int32_t)le32(b + i + 2),
					  MARK_BRANCH);
			break;
		case 0xc7: /* xbegin */
			if (b[i + 1] == 0xf8 && i + 6 <= g->size)
				text_mark(t, next + 6 + (uint64_t)(int64_t)(int32_t)le32(b + i + 2),
					  MARK_BRANCH);
			break;
		case 0x8d: /* lea disp(%rip) */
			if ((b[i + 1] & 0xc7) != 0x05 || i + 6 > g->size)
				break;
			next += 6 + (uint64_t)(int64_t)(int32_t)le32(b + i + 2);
			text_mark(t, next, MARK_TAKEN);
			if (!i || (b[i - 1] & 0xfb) != 0x48) /* of 64 bits */
				break;
			if (t->tables.n < most)
				vec_push(&t->tables, next);
			else
				t->too_many_tables = true;
			break;
		}
	}
	if (!t->fixed)
		return;
	/* mov $label, push $label, or a label in a displacement */
	for (uint64_t i = 0; i + 4 <= g->size; i++) {
		uint32_t v = le32(b + i);

		if (v >= t->lo && v < t->hi && !is_relative(b, i))
			text_mark(t, v, MARK_TAKEN);
	}
}

static void scan_data(struct text *t, const struct text_segment *g)
{
	for (uint64_t i = -g->addr & 3; i + 4 <= g->size; i += 4) {
		if (t->fixed && !g->exec) {
			uint32_t v = le32(g->bytes + i);

			if (v >= t->lo && v < t->hi)
				text_mark(t, v, MARK_TAKEN);
		}
		if (i + 8 <= g->size) {
			uint64_t v = le64(g->bytes + i);

			if (v >= t->lo && v < t->hi)
				text_mark(t, v, MARK_TAKEN);
		}
	}
}

/* --- relocations --- */

static void scan_relocations(struct text *t, uint64_t addr, uint64_t size, uint64_t symtab)
{
	const struct text_segment *g = text_segment_at(t, addr);
	uint64_t left;

	if (!g)
		return;
	left = g->size - (addr - g->addr);
	struct bytes b = bytes_of(g->bytes + (addr - g->addr), size < left ? size : left,
				  object_path(t->object));

	while (bytes_left(&b) >= sizeof(Elf64_Rela)) {
		bytes_u64(&b);
		uint64_t info = bytes_u64(&b), addend = bytes_u64(&b);
		Elf64_Sym sym;

		if (ELF64_R_TYPE(info) == R_X86_64_RELATIVE ||
		    ELF64_R_TYPE(info) == R_X86_64_IRELATIVE)
			text_mark(t, addend, MARK_TAKEN);
		else if (ELF64_R_TYPE(info) == R_X86_64_64 && symtab &&
			 text_bytes(t, symtab + ELF64_R_SYM(info) * sizeof(sym), &sym,
				    sizeof(sym)) &&
			 sym.st_shndx != SHN_UNDEF)
			text_mark(t, sym.st_value + addend, MARK_TAKEN);
	}
}

static void scan_dynamic(struct text *t)
{
	uint64_t rela = 0, relasz = 0, jmprel = 0, pltrelsz = 0, symtab = 0;
	struct object_segment s;
	uint64_t entry[2];

	for (uint32_t i = 0; object_segment(t->object, i, &s); i++) {
		if (s.type != PT_DYNAMIC)
			continue;
		for (uint64_t at = 0; at + 16 <= s.filesz && text_may_work(t, 1); at += 16) {
			if (!text_bytes(t, s.addr + at, entry, sizeof(entry)) ||
			    entry[0] == DT_NULL)
				break;
			switch (entry[0]) {
			case DT_RELA: rela = entry[1]; break;
			case DT_RELASZ: relasz = entry[1]; break;
			case DT_JMPREL: jmprel = entry[1]; break;
			case DT_PLTRELSZ: pltrelsz = entry[1]; break;
			case DT_SYMTAB: symtab = entry[1]; break;
			case DT_INIT:
			case DT_FINI: text_mark(t, entry[1], MARK_TAKEN); break;
			}
		}
	}
	if (rela)
		scan_relocations(t, rela, relasz, symtab);
	if (jmprel)
		scan_relocations(t, jmprel, pltrelsz, symtab);
	text_restartable_read(t, rela, relasz);
}

/* --- symbols, FDEs --- */

/* Marks labels that are not functions as targets. */
static void mark_symtab(struct text *t, const char *section)
{
	uint64_t addr;
	size_t n;
	cleanup_free uint8_t *p = object_section(t->object, section, &addr, &n);

	for (size_t i = 0; p && i + sizeof(Elf64_Sym) <= n; i += sizeof(Elf64_Sym)) {
		Elf64_Sym sym;

		memcpy(&sym, p + i, sizeof(sym));
		if (sym.st_shndx != SHN_UNDEF && ELF64_ST_TYPE(sym.st_info) <= STT_FUNC)
			text_mark(t, sym.st_value, MARK_BRANCH);
	}
}

static int module_by_start(const void *a, const void *b)
{
	const struct text_range *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	/* FDEs first, then long symbols. */
	if (x->inner != y->inner)
		return x->inner ? 1 : -1;
	return x->end > y->end ? -1 : x->end < y->end;
}

/* Reads a DW_EH_PE value of an exception table. */
static bool lsda_value(struct bytes *b, uint8_t enc, uint64_t here, uint64_t *ret)
{
	switch (enc & 0x0f) {
	case 0x00:
	case 0x04:
	case 0x0c: *ret = bytes_u64(b); break;
	case 0x01: *ret = bytes_uleb(b); break;
	case 0x02: *ret = bytes_u16(b); break;
	case 0x03: *ret = bytes_u32(b); break;
	case 0x09: *ret = (uint64_t)bytes_sleb(b); break;
	case 0x0a: *ret = (uint64_t)(int16_t)bytes_u16(b); break;
	case 0x0b: *ret = (uint64_t)(int32_t)bytes_u32(b); break;
	default: return false;
	}
	if ((enc & 0x70) == 0x10)
		*ret += here;
	return bytes_ok(b);
}

/* Marks landing pads, because the unwinder jumps there. */
static void mark_landing_pads(struct text *t, uint64_t start, uint64_t lsda)
{
	const struct text_segment *g = text_segment_at(t, lsda);
	uint64_t base = start, v;
	uint32_t sites = 0;

	if (!g)
		return;
	struct bytes b = bytes_of(g->bytes + (lsda - g->addr), g->size - (lsda - g->addr), "lsda");
	uint8_t enc = bytes_u8(&b);

	if (enc != 0xff && !lsda_value(&b, enc, lsda + (uint64_t)(b.pos - b.start), &base))
		return;
	if (bytes_u8(&b) != 0xff)
		bytes_uleb(&b);
	enc = bytes_u8(&b);
	uint64_t len = bytes_uleb(&b);

	if (!bytes_ok(&b) || len > bytes_left(&b))
		return;
	struct bytes table = bytes_of(b.pos, len, "call sites");

	/* Functions may share one table. */
	while (bytes_left(&table) && sites++ < MAX_LSDA_SITES && text_may_work(t, 1)) {
		uint64_t pad;

		if (!lsda_value(&table, enc, 0, &v) || !lsda_value(&table, enc, 0, &v) ||
		    !lsda_value(&table, enc, 0, &pad))
			return;
		bytes_uleb(&table);
		if (pad)
			text_mark(t, base + pad, MARK_BRANCH);
	}
}

bool text_is_sigreturn(const struct text *t, uint64_t addr)
{
	uint8_t b[9];

	/* mov $15,%rax; syscall */
	return text_bytes(t, addr, b, sizeof(b)) &&
	       !memcmp(b, "\x48\xc7\xc0\x0f\x00\x00\x00\x0f\x05", sizeof(b));
}

static void collect_fdes(struct text *t, struct cfi *c)
{
	for (uint32_t i = 0; i < c->funcs.n; i++) {
		const struct cfi_func *f = &c->funcs.v[i];
		uint32_t rule = f->n ? c->rows.v[f->first].rule : 0;

		if (!exec_at(t, f->start))
			continue;
		vec_push(&t->ranges,
			 (struct text_range){ .start = f->start,
					      .end = f->end,
					      .lsda = f->lsda,
					      .alone = !text_any_mark(t, f->start, f->start + 1) &&
						       !text_marked(t, f->start, MARK_CALLED),
					      .odd_cfa = WIRE_UNWIND_RULE_KIND(rule) !=
								 WIRE_UNWIND_RSP ||
							 WIRE_UNWIND_RULE_OFF(rule) != 1 });
		text_mark(t, f->start, MARK_BRANCH);
		if (f->lsda)
			mark_landing_pads(t, f->start, f->lsda);
	}
}

static void read_fdes(struct text *t)
{
	uint64_t addr;
	size_t n;
	cleanup_free uint8_t *p = object_eh_frame(t->object, &addr, &n);
	struct cfi c;

	if (!p) {
		p = object_section(t->object, ".debug_frame", &addr, &n);
		if (!p)
			return;
		cfi_read_ranges(&c, object_path(t->object), p, n, addr, false);
	} else {
		cfi_read_ranges(&c, object_path(t->object), p, n, addr, true);
	}
	collect_fdes(t, &c);
	cfi_fini(&c);
}

/* Adds a range for each PLT slot, because the linker gives a whole section of slots one FDE. */
static void add_plt(struct text *t, const char *section)
{
	uint64_t addr, step = 16;
	size_t n;
	cleanup_free uint8_t *p = object_section(t->object, section, &addr, &n);

	if (!p)
		return;
	if (n >= 8 && p[0] == 0xff && p[1] == 0x25 && !strcmp(section, ".plt.got"))
		step = 8;
	for (uint64_t at = 0; at + step <= n; at += step) {
		if (!exec_at(t, addr + at))
			return;
		vec_push(&t->ranges, (struct text_range){ .start = addr + at,
							  .end = addr + at + step,
							  .inner = true });
		text_mark(t, addr + at, MARK_CALLED);
		text_mark(t, addr + at, MARK_BRANCH);
	}
}

/* Makes a range of each FDE, and of each symbol. A symbol inside an FDE becomes an inner range. */
static void make_ranges(struct text *t)
{
	const struct object_symbol *s;
	uint32_t n, out = 0;
	uint64_t covered = 0;

	read_fdes(t);
	add_plt(t, ".plt");
	add_plt(t, ".plt.sec");
	add_plt(t, ".plt.got");
	s = object_symbols(t->object, &n);
	for (uint32_t i = 0; i < n; i++) {
		bool cold = strstr(s[i].name, ".cold");

		if (!exec_at(t, s[i].addr))
			continue;
		text_mark(t, s[i].addr, MARK_BRANCH);
		if (!cold)
			text_mark(t, s[i].addr, MARK_CALLED);
		vec_push(&t->ranges, (struct text_range){ .start = s[i].addr,
							  .end = s[i].size > UINT64_MAX - s[i].addr
									 ? s[i].addr
									 : s[i].addr + s[i].size,
							  .cold = cold,
							  .inner = true });
	}
	if (t->ranges.n)
		qsort(t->ranges.v, t->ranges.n, sizeof(*t->ranges.v), module_by_start);
	for (uint32_t i = 0; i < t->ranges.n; i++) {
		struct text_range r = t->ranges.v[i];
		const struct text_segment *g = exec_at(t, r.start);

		if (r.end > g->addr + g->size)
			r.end = g->addr + g->size;
		if (out && t->ranges.v[out - 1].start == r.start) {
			struct text_range *before = &t->ranges.v[out - 1];

			before->cold |= r.cold;
			/* A symbol without a size. */
			if (before->end <= before->start)
				before->end = r.end;
			if (!before->inner || r.inner)
				continue;
			r.cold = before->cold;
			out--;
		}
		if (r.inner && r.start < covered) {
			/* It stays inner. */
			if (r.end > covered || r.end <= r.start)
				r.end = covered;
		} else {
			/* The last range may overlap this one, because its end was wrong. */
			for (uint32_t j = out; j-- && t->ranges.v[j].end > r.start;) {
				t->ranges.v[j].end = r.start;
				if (!t->ranges.v[j].inner)
					break;
			}
			r.inner = false;
			covered = r.end;
		}
		t->ranges.v[out++] = r;
	}
	t->ranges.n = out;
	/* The C library's FDE of the signal return begins a byte early, in the middle of a nop, for
	 * unwinders, which look up the call before a return address. */
	out = 0;
	for (uint32_t i = 0; i < t->ranges.n; i++) {
		struct text_range *r = &t->ranges.v[i];

		if (!text_is_sigreturn(t, r->start + 1)) {
			t->ranges.v[out++] = *r;
		} else if (i + 1 < t->ranges.n && r[1].start == r->start + 1) {
			r[1].inner &= r->inner;
			if (r[1].end < r->end)
				r[1].end = r->end;
		} else {
			r->start++;
			t->ranges.v[out++] = *r;
		}
	}
	t->ranges.n = out;
	/* The C library's clone ends its FDE in front of the system call, from which the child
	 * returns without a caller. */
	for (uint32_t i = 0; i + 1 < out; i++) {
		struct text_range *r = &t->ranges.v[i];
		uint8_t b[2];

		if (!r->inner && r->end > r->start && r[1].start > r->end &&
		    r[1].start - r->end <= MAX_GAP && text_bytes(t, r->end, b, 2) && b[0] == 0x0f &&
		    b[1] == 0x05)
			r->end = r[1].start;
	}
	/* Symbols without a known end reach to the next range. */
	for (uint32_t i = 0; i < out; i++) {
		struct text_range *r = &t->ranges.v[i];

		if (r->end <= r->start)
			r->end = i + 1 < out && t->ranges.v[i + 1].start - r->start < 4096
					 ? t->ranges.v[i + 1].start
					 : r->start + 1;
		if (!r->inner)
			vec_push(&t->outer, i);
		if (!r->inner && (r->cold || ((r->odd_cfa || r->alone) &&
					      !text_marked(t, r->start, MARK_CALLED) &&
					      !text_marked(t, r->start, MARK_TAKEN))))
			vec_push(&t->odd, i);
	}
}

struct text_range *text_part_at(const struct text *t, uint64_t addr)
{
	uint32_t i = partition_point(t->odd.n, k, t->ranges.v[t->odd.v[k]].end <= addr);

	return i < t->odd.n && addr >= t->ranges.v[t->odd.v[i]].start ? &t->ranges.v[t->odd.v[i]]
								      : NULL;
}

uint32_t text_range_from(const struct text *t, uint64_t addr)
{
	return partition_point(t->ranges.n, i, t->ranges.v[i].start < addr);
}

struct text_range *text_range_at(struct text *t, uint64_t addr)
{
	uint32_t i = text_range_from(t, addr);

	return i < t->ranges.n && t->ranges.v[i].start == addr ? &t->ranges.v[i] : NULL;
}

struct text_range *text_range_cover(struct text *t, uint64_t addr)
{
	uint32_t i = partition_point(t->outer.n, k, t->ranges.v[t->outer.v[k]].start <= addr);
	struct text_range *r = i ? &t->ranges.v[t->outer.v[i - 1]] : NULL;

	return r && (r->start == addr || addr < r->end) ? r : NULL;
}

/* --- front door --- */

static uint64_t decoding_limit(const struct text *t)
{
	return WORK_MIN + WORK * size_of_file(t);
}

struct err *text_open(struct object *o, struct text **ret)
{
	struct text *t = *object_text(o);
	struct err *e;

	if (t) {
		t->users++;
		t->work_left = t->too_many_tables ? 0 : decoding_limit(t);
		*ret = t;
		return NULL;
	}

	if (!object_is_x86_64(o))
		return err_new(ENOTSUP, "%s: not x86-64 code", object_path(o));
	t = xcalloc(1, sizeof(*t));
	t->object = o;
	t->fixed = object_is_fixed(o);
	t->refused = text_refusal(o);
	ZydisDecoderInit(&t->decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	e = read_segments(t);
	if (e) {
		text_free(t);
		return e;
	}
	for (uint32_t i = 0; i < t->segments.n; i++) {
		if (t->segments.v[i].exec) {
			scan_text(t, &t->segments.v[i]);
			text_reads_find(t, &t->segments.v[i]);
		}
		scan_data(t, &t->segments.v[i]);
	}
	text_reads_sort(t);
	t->work_left = decoding_limit(t);
	scan_dynamic(t);
	make_ranges(t);
	mark_symtab(t, ".symtab");
	mark_symtab(t, ".dynsym");
	text_tables_mark(t);
	t->too_many_tables |= !t->work_left; /* a mark may be missing */
	*object_text(o) = *ret = t;
	return NULL;
}

void text_free(struct text *t)
{
	if (!t || t->users--)
		return;
	if (*object_text(t->object) == t)
		*object_text(t->object) = NULL;
	for (uint32_t i = 0; i < t->segments.n; i++) {
		free(t->segments.v[i].bytes);
		for (int m = 0; m < MARKS; m++)
			free(t->segments.v[i].marks[m]);
	}
	for (uint32_t i = 0; i < CODE_CACHE; i++)
		text_code_put(t->cache[i]);
	vec_fini(&t->segments);
	vec_fini(&t->ranges);
	vec_fini(&t->outer);
	vec_fini(&t->odd);
	vec_fini(&t->restartable);
	vec_fini(&t->tables);
	vec_fini(&t->reads);
	free(t->ways);
	held -= t->held;
	unwind_image_free(t->unwind);
	free(t);
}

bool text_function(struct text *t, uint64_t addr, uint64_t *ret_start, uint64_t *ret_end)
{
	struct text_range *r = text_range_at(t, addr);

	if (!r)
		r = text_range_cover(t, addr);
	if (!r)
		return false;
	*ret_start = r->start;
	*ret_end = r->end;
	return true;
}

const char *text_refused(const struct text *t)
{
	return t->refused;
}

bool text_function_at(struct text *t, uint32_t i, uint64_t *ret_start, uint64_t *ret_end)
{
	if (i >= t->ranges.n)
		return false;
	*ret_start = t->ranges.v[i].start;
	*ret_end = t->ranges.v[i].end;
	return true;
}

void text_stats(const struct text *t, struct text_stats *ret)
{
	*ret = (struct text_stats){ .functions = t->ranges.n,
				    .decoded = t->decoded,
				    .unresolved = t->unresolved,
				    .irregular = t->irregular,
				    .text_bytes = t->text_bytes };
}
