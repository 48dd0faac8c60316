#include "input/perf/perfunwind.h"

/* perf's numbers of x86 registers. */
enum { PERF_BP = 6, PERF_SP = 7, PERF_IP = 8, PERF_R8 = 16, PERF_REGS = 24 };
enum { ABI_64 = 2 };

struct copied_memory {
	const uint8_t *p;
	uint64_t start, size;
	bool behind; /* a read behind its end was made */
};

bool perfunwind_read(struct bytes *b, bool has_regs, uint64_t mask, bool has_stack,
		     struct perfunwind_copy *ret)
{
	/* ax bx cx dx si di bp sp by DWARF's numbers */
	static const uint8_t dwarf[] = { 0, 3, 2, 1, 4, 5, 6, 7 };

	*ret = (struct perfunwind_copy){ .mask = mask };
	if (has_regs)
		ret->abi = bytes_u64(b);
	for (uint32_t i = 0; ret->abi && i < 64; i++) {
		uint64_t v;

		if (!(mask >> i & 1))
			continue;
		v = bytes_u64(b);
		if (i < sizeof(dwarf))
			ret->regs.reg[dwarf[i]] = v;
		else if (i >= PERF_R8 && i < PERF_REGS)
			ret->regs.reg[i - PERF_R8 + 8] = v;
		else if (i == PERF_IP)
			ret->regs.pc = v;
	}
	ret->regs.sp = ret->regs.reg[7];
	ret->regs.bp = ret->regs.reg[6];
	if (has_stack) {
		uint64_t n = bytes_u64(b), copied;

		if (n) {
			ret->stack = bytes_take(b, n);
			copied = bytes_u64(b);
			ret->size = copied < n ? copied : n;
		}
	}
	return bytes_ok(b);
}

static bool read_copied(void *arg, uint64_t addr, uint64_t *ret)
{
	struct copied_memory *m = arg;
	uint64_t at = addr - m->start;

	if (addr < m->start)
		return false;
	if (m->size < 8 || at > m->size - 8) {
		m->behind = true;
		return false;
	}
	memcpy(ret, m->p + at, sizeof(*ret));
	*ret = le64toh(*ret);
	return true;
}

uint32_t perfunwind_walk(struct perfunwind *u, const struct perfunwind_copy *c,
			 const struct unwind_process *p)
{
	const uint64_t need = 1 << PERF_BP | 1 << PERF_SP | 1 << PERF_IP;
	struct copied_memory m = { c->stack, c->regs.sp, c->size, false };
	enum wire_unwind_end end;
	uint32_t n;

	if (!c->abi)
		return 0; /* a thread of the kernel */
	if (c->abi != ABI_64 || c->mask >> PERF_REGS || (c->mask & need) != need) {
		u->foreign++;
		return 0;
	}
	n = unwind_walk(p, &c->regs, read_copied, &m, u->pcs, NULL, PERFUNWIND_FRAMES, &end);
	u->walked++;
	if (end == WIRE_UNWIND_END_UNREADABLE && m.behind)
		u->cut++;
	else
		u->ends[end]++;
	return n;
}

void perfunwind_notes(const struct perfunwind *u, struct stackin *in)
{
	if (u->cut)
		stackin_note(in,
			     "%llu of %llu copied user stacks are longer than the bytes that perf "
			     "copied: --call-graph dwarf,65528 copies more",
			     (unsigned long long)u->cut, (unsigned long long)u->walked);
	for (uint32_t i = 0; i < WIRE_UNWIND_END_COUNT; i++)
		if (i != WIRE_UNWIND_END_ROOT && u->ends[i])
			stackin_note(in, "%llu of %llu copied user stacks not complete: %s",
				     (unsigned long long)u->ends[i], (unsigned long long)u->walked,
				     unwind_end_text((enum wire_unwind_end)i));
	if (u->foreign)
		stackin_note(in,
			     "%llu copied user stacks not unwound: no registers of a 64-bit x86 "
			     "program",
			     (unsigned long long)u->foreign);
}
