/* Reads the process's memory: by a plain load where the memory is known to be mapped and a fault
 * would be survived, otherwise by a system call that cannot fault. */
#include "agent/agent.h"
#include "agent/words.h"

enum {
	ADDRESS_BITS = 56, /* no x86-64 has user addresses beyond */
	/* plain reads outside the stack until the next check that faults are survived */
	CHECK_EVERY = 512,
	WALK_READS = 16,   /* as many of them as a walk of a language's frames counts */
	CHECK_UNSAFE = 16, /* the same after a check that failed */
	ALT_MIN = 8192, /* a smaller signal stack may not hold the frame of the agent's handler */
	BOUNCE = 128,
	/* time for the tracer to list a mapping, where a system call is not possible */
	LIST_WAIT_NS = 30000000,
	/* age of the list at which the agent waits for a new one; doubled after each wait in
	 * vain */
	LIST_AGE_NS = 5000000,
	LIST_DOUBLINGS = 8,
	STACK_USER = 1 << 8, /* BPF_F_USER_STACK */
	STACK_SKIP = 0xff,
	REG_BP = 4, /* words of struct pt_regs */
	REG_IP = 16,
	REG_SP = 19,
};

/* Makes a system call that reads addr[8] and then fails for another reason: EINVAL when the memory
 * could be read. For addr 0 it reads address 8, because 0 would mean "nothing to read". */
bool probe_word(uint64_t addr)
{
	if (quiet())
		return false;
	return sys4(SYS_RT_SIGPROCMASK, ~0ull, addr ? addr : 8, 0, 8) != E_FAULT;
}

bool find_range(const struct wire_process *p, uint64_t addr, struct wire_range *ret)
{
	uint32_t version = __atomic_load_n(&p->version, __ATOMIC_ACQUIRE), lo = 0, hi = p->nranges;
	const struct wire_range *r = (const struct wire_range *)p->ranges;

	if (version & 1 || !r || hi > WIRE_RANGES_MAX)
		return false;
	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (addr < r[mid].lo) {
			hi = mid;
		} else if (addr >= r[mid].hi) {
			lo = mid + 1;
		} else {
			*ret = r[mid];
			__atomic_thread_fence(__ATOMIC_ACQUIRE);
			return __atomic_load_n(&p->version, __ATOMIC_RELAXED) == version;
		}
	}
	return false;
}

/* Returns true for addresses without memory. Page 0 is never mapped (vm.mmap_min_addr). Programs
 * clear memory by a read at 0, so this check must be quick. */
static inline bool is_nowhere(uint64_t addr)
{
	return addr - PAGE >= (1ull << ADDRESS_BITS) - PAGE;
}

/* Searches the list again while the tracer is writing it. */
static bool find_listed(const struct wire_process *p, uint64_t addr, struct wire_range *ret)
{
	uint64_t end = now_ns() + LIST_WAIT_NS;
	uint32_t version;

	do {
		version = __atomic_load_n(&p->version, __ATOMIC_ACQUIRE);
		if (find_range(p, addr, ret))
			return true;
		if (!(version & 1) && __atomic_load_n(&p->version, __ATOMIC_ACQUIRE) == version)
			return false;
		__asm__ volatile("pause");
	} while (now_ns() < end);
	return false;
}

/* Waits until the tracer has read the mappings again. A mapping that it does not list then does not
 * exist. */
static bool wait_for_list(uint64_t addr, struct wire_range *ret)
{
	const struct wire_process *p = process(self());
	uint64_t listed = __atomic_load_n(&p->ranges_time, __ATOMIC_ACQUIRE), begun = now_ns();
	uint32_t vain =
		__atomic_load_n(&kept()->list_vain, __ATOMIC_RELAXED) % (LIST_DOUBLINGS + 1);
	bool found = find_listed(p, addr, ret);

	if (found || (int64_t)(begun - listed) < (int64_t)LIST_AGE_NS << vain)
		return found;
	__atomic_store_n(&said(self())->ranges_wanted, 1, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(&p->ranges_time, __ATOMIC_ACQUIRE) == listed &&
	       now_ns() - begun < LIST_WAIT_NS)
		__asm__ volatile("pause");
	found = find_listed(p, addr, ret);
	vain += vain < LIST_DOUBLINGS;
	__atomic_store_n(&kept()->list_vain, found ? 0 : vain, __ATOMIC_RELAXED);
	return found;
}

/* Finds the range among those that the thread has used. Forgets them when the mappings have
 * changed. */
static NOINLINE bool find_kept(struct wire_own *o, uint32_t version, uint64_t addr)
{
	if (UNLIKELY(o->range_version != version)) {
		mem_zero(o->ranges, sizeof(o->ranges));
		return false;
	}
	for (uint32_t i = 0; i < WIRE_OWN_RANGES; i++)
		if (addr - o->ranges[i].lo < o->ranges[i].hi - o->ranges[i].lo) {
			o->range_lo = o->ranges[i].lo;
			o->range_hi = o->ranges[i].hi;
			return true;
		}
	return false;
}

static void keep_range(struct wire_own *o, uint32_t version, const struct wire_range *r)
{
	o->range_lo = r->lo;
	o->range_hi = r->hi;
	o->range_version = version;
	o->ranges[o->ranges_at++ % WIRE_OWN_RANGES] = (struct wire_own_range){ r->lo, r->hi };
}

/* Finds out whether faults of plain loads are survived now. */
static void check_faults(struct wire_thread *t)
{
	struct wire_own *o = own_words(t);

	look_around(t, fired_at(o));
	o->unsafe = (o->alt_hi && o->alt_hi - o->alt_lo < ALT_MIN) || !faults_are_survived(t);
	o->checks = o->unsafe ? CHECK_UNSAFE : CHECK_EVERY;
	o->named = o->unsafe ? 0 : WIRE_OWN_NAMED;
}

/* The slow path: returns the end of the range in which plain loads at addr work, 0: only a system
 * call can read it. */
static NOINLINE uint64_t plain_to(struct wire_thread *t, uint64_t addr)
{
	const struct wire_area *a = area();
	struct wire_own *o = own_words(t);
	const struct wire_process *p = process(self());
	const uint64_t rsp = fired_at(o);
	uint32_t version = __atomic_load_n(&p->version, __ATOMIC_ACQUIRE);
	uint64_t off = addr - (uintptr_t)a;
	struct wire_range r;

	if (off < a->span)
		return (uintptr_t)a + a->span;
	if (UNLIKELY(is_tracer(t)))
		return 0;
	if (addr - ((uintptr_t)o - WIRE_PROBE_STACK) < WIRE_PROBE_STACK)
		return (uintptr_t)o;
	if (addr - (uintptr_t)event_of(t) < a->event)
		return (uintptr_t)event_of(t) + a->event;
	if (rsp - o->stack_lo >= o->stack_hi - o->stack_lo)
		look_around(t, rsp);
	/* The memory above the stack pointer exists, whatever happens to other mappings. */
	if (rsp - o->stack_lo < o->stack_hi - o->stack_lo && addr >= rsp - 128 &&
	    addr < o->stack_hi)
		return o->stack_hi;
	if (!a->reads_guarded)
		return 0;
	if (!o->checks)
		check_faults(t);
	o->checks--;
	if (o->unsafe || on_signal_stack(o))
		return 0;
	if ((addr - o->range_lo < o->range_hi - o->range_lo && o->range_version == version) ||
	    find_kept(o, version, addr))
		return o->range_hi;
	if (!find_range(p, addr, &r) && (!quiet() || !wait_for_list(addr, &r))) {
		said(self())->ranges_wanted = 1;
		return 0;
	}
	keep_range(o, version, &r);
	return r.hi;
}

static inline uint64_t plain_end(struct wire_thread *t, uint64_t addr)
{
	struct wire_own *o = own_words(t);
	const uint64_t rsp = fired_at(o);

	if (LIKELY(addr - o->stack_lo < o->stack_hi - o->stack_lo && addr >= rsp &&
		   rsp > o->stack_lo))
		return o->stack_hi;
	if (LIKELY(addr - o->range_lo < o->range_hi - o->range_lo && o->checks && !o->unsafe &&
		   area()->reads_guarded && !on_signal_stack(o) &&
		   rsp - o->stack_lo < o->stack_hi - o->stack_lo &&
		   __atomic_load_n(&process(self())->version, __ATOMIC_ACQUIRE) ==
			   o->range_version)) {
		o->checks--;
		return o->range_hi;
	}
	return plain_to(t, addr);
}

/* Copies by plain loads. Returns false on a fault. */
static inline bool load_bytes(any8 *d, uint64_t s, uint64_t n)
{
	uint64_t w;
	uint8_t c;

	for (; n >= 8; n -= 8, d += 8, s += 8) {
		LOAD(64, s, w, bad);
		*(any64 *)d = w;
	}
	for (; n; n--, d++, s++) {
		LOAD(8, s, c, bad);
		*d = c;
	}
	return true;
bad:
	return false;
}

/* Copies by system calls, which cannot fault. */
static NOINLINE bool read_exact(struct wire_thread *t, any8 *d, uint64_t s, uint64_t n)
{
	struct {
		uint64_t at, n;
	} to = { (uintptr_t)d, n }, from = { s, n };
	int64_t r;

	if (!n)
		return true;
	if (UNLIKELY(is_tracer(t)) || quiet())
		return false;
	if (!kept()->no_vm_read) {
		r = sys6(SYS_PROCESS_VM_READV, own_words(t)->pid, (uintptr_t)&to, 1,
			 (uintptr_t)&from, 1, 0);
		if (r >= 0 || r == E_FAULT)
			return r == (int64_t)n;
		if (r != E_PERM && r != E_NOSYS && r != E_SRCH)
			return false;
		if (r != E_SRCH)
			kept()->no_vm_read = 1;
	}
	/* Copies page by page. Another thread may unmap a page between the check and the load; the
	 * handler survives this where it is installed. */
	while (n) {
		uint64_t step = PAGE - s % PAGE;

		if (step > n)
			step = n;
		if (!probe_word(s - s % PAGE) || !load_bytes(d, s, step))
			return false;
		d += step;
		s += step;
		n -= step;
	}
	return true;
}

static inline bool read_any(struct wire_thread *t, any8 *d, uint64_t s, uint64_t n)
{
	while (n) {
		uint64_t end, step = n;

		if (UNLIKELY(is_nowhere(s)))
			return false;
		end = plain_end(t, s);
		if (end) {
			if (step > end - s)
				step = end - s;
			if (!load_bytes(d, s, step)) {
				said(self())->ranges_wanted = 1;
				return false;
			}
		} else if (!read_exact(t, d, s, step)) {
			return false;
		}
		d += step;
		s += step;
		n -= step;
	}
	return true;
}

bool reads_are_plain(struct wire_thread *t)
{
	struct wire_own *o = own_words(t);

	if (UNLIKELY(o->checks < WALK_READS && !o->unsafe) && area()->reads_guarded &&
	    !is_tracer(t))
		check_faults(t); /* else a whole walk would make slow reads */
	return fired_at(o) - o->stack_lo < o->stack_hi - o->stack_lo &&
	       __atomic_load_n(&process(self())->version, __ATOMIC_ACQUIRE) == o->range_version &&
	       loads_are_survived(t, WALK_READS);
}

int64_t read_inside(struct wire_thread *t, void *dst, uint64_t size, uint64_t src)
{
	return read_any(t, dst, src, size) ? 0 : E_FAULT;
}

ENTRY int64_t agent_probe_read(uint64_t dst, uint64_t size, uint64_t src, uint64_t r4, uint64_t r5,
			       struct wire_thread *t)
{
	size = (uint32_t)size;
	if (UNLIKELY(!is_own(t, dst, size)))
		return refuse(t);
	if (LIKELY(read_any(t, (any8 *)dst, src, size)))
		return 0;
	mem_zero((void *)dst, size);
	return E_FAULT;
}

/* --- strings --- */

enum { TEXT_FAULT = -1 };

/* Copies up to n bytes by plain loads, until a NUL. Returns the number of stored bytes, including
 * the NUL. Sets *ret_nul when there was one. */
static inline int64_t load_text(any8 *d, uint64_t s, uint64_t n, bool *ret_nul)
{
	uint64_t done = 0, w, z;
	uint8_t c;

	for (; n - done >= 8; done += 8) {
		LOAD(64, s + done, w, bad);
		z = zero_bytes(w);
		if (z) {
			/* writes zeros behind the NUL up to the end of the word, as the kernel
			 * does */
			*(any64 *)(d + done) = w & (z ^ (z - 1));
			*ret_nul = true;
			return (int64_t)done + __builtin_ctzll(z) / 8 + 1;
		}
		*(any64 *)(d + done) = w;
	}
	for (; done < n; done++) {
		LOAD(8, s + done, c, bad);
		d[done] = c;
		if (!c) {
			*ret_nul = true;
			return (int64_t)done + 1;
		}
	}
	return (int64_t)done;
bad:
	return TEXT_FAULT;
}

/* Does the same by system calls. */
static NOINLINE int64_t text_exact(struct wire_thread *t, any8 *d, uint64_t s, uint64_t n,
				   bool *ret_nul)
{
	uint8_t bounce[BOUNCE];
	uint64_t step = PAGE - s % PAGE;

	step = step < BOUNCE ? step : BOUNCE;
	step = step < n ? step : n;
	if (!read_exact(t, bounce, s, step))
		return TEXT_FAULT;
	for (uint64_t i = 0; i < step; i++) {
		d[i] = bounce[i];
		if (!bounce[i]) {
			*ret_nul = true;
			return (int64_t)i + 1;
		}
	}
	return (int64_t)step;
}

NOINLINE bool words_are(const any8 *key, uint64_t n, uint64_t s, uint64_t end)
{
	uint64_t w, z;

	for (uint64_t i = 0; i + 8 <= n && s + i + 8 <= end; i += 8) {
		LOAD(64, s + i, w, bad);
		z = zero_bytes(w);
		if (z)
			w &= z ^ (z - 1);
		if (w != *(const any64 *)(key + i))
			return false;
		if (z)
			return true;
	}
bad:
	return false;
}

bool text_is(struct wire_thread *t, uint64_t addr, const void *key, uint64_t n)
{
	uint64_t end = is_nowhere(addr) ? 0 : plain_end(t, addr);

	return end && words_are(key, n, addr, end);
}

ENTRY int64_t agent_probe_read_str(uint64_t dst, uint64_t size, uint64_t src, uint64_t r4,
				   uint64_t r5, struct wire_thread *t)
{
	any8 *d = (any8 *)dst;
	uint64_t done = 0, end, step;
	bool nul = false;
	int64_t got;

	size = (uint32_t)size;
	if (UNLIKELY(!is_own(t, dst, size)))
		return refuse(t);
	if (!size)
		return 0;
	while (!nul && done < size) {
		if (UNLIKELY(is_nowhere(src)))
			goto bad;
		step = size - done;
		end = plain_end(t, src);
		if (LIKELY(end)) {
			step = step < end - src ? step : end - src;
			got = load_text(d + done, src, step, &nul);
			if (UNLIKELY(got < 0))
				said(self())->ranges_wanted = 1;
		} else {
			got = text_exact(t, d + done, src, step, &nul);
		}
		if (UNLIKELY(got < 0))
			goto bad;
		done += (uint64_t)got;
		src += (uint64_t)got;
	}
	if (!nul)
		d[size - 1] = 0;
	return (int64_t)done;
bad:
	mem_zero(d, size);
	return E_FAULT;
}

/* --- stacks --- */

/* Takes the frames as perf_callchain_user() does: the instruction pointer, then the chain of frame
 * pointers. */
ENTRY int64_t agent_get_stack(uint64_t ctx, uint64_t dst, uint64_t size, uint64_t flags,
			      uint64_t r5, struct wire_thread *t)
{
	const uint64_t *regs = (const uint64_t *)own_words(t)->regs;
	uint64_t fp, frame[2], n = 0, skip = flags & STACK_SKIP, max;
	const struct wire_area *a = area();
	any64 *out = (any64 *)dst;

	size = (uint32_t)size;
	/* The process has no kernel stack, and no bpf_get_stackid(), whose second argument is a
	 * map. */
	if (!(flags & STACK_USER) || !regs || dst - a->maps < a->nmaps * sizeof(struct wire_map))
		return E_FAULT;
	if (size % 8 || flags & ~(uint64_t)(STACK_USER | STACK_SKIP))
		return E_INVAL;
	if (!is_own(t, dst, size))
		return refuse(t);
	max = size / 8;
	fp = regs[REG_BP];
	if (!skip && n < max)
		out[n++] = regs[REG_IP];
	else if (skip)
		skip--;
	while (n < max) {
		if (!read_any(t, (any8 *)frame, fp, sizeof(frame)))
			break;
		if (skip)
			skip--;
		else
			out[n++] = frame[1];
		if (frame[0] == fp)
			break;
		fp = frame[0];
	}
	mem_zero(out + n, size - n * 8);
	return (int64_t)(n * 8);
}

/* bpf_probe_write_user(): dst, src, size. */
ENTRY int64_t agent_probe_write(uint64_t dst, uint64_t src, uint64_t size, uint64_t r4, uint64_t r5,
				struct wire_thread *t)
{
	struct {
		uint64_t at, n;
	} to = { dst, (uint32_t)size }, from = { src, (uint32_t)size };
	int64_t r;

	if (!is_own(t, src, from.n))
		return refuse(t);
	if (!from.n)
		return 0;
	if (dst - base() < WIRE_BASE_STEP || dst + from.n - base() < WIRE_BASE_STEP ||
	    is_tracer(t)) /* the agent's frame, not the program's */
		return E_FAULT;
	r = try6(SYS_PROCESS_VM_WRITEV, own_words(t)->pid, (uintptr_t)&from, 1, (uintptr_t)&to, 1,
		 0);
	return r == (int64_t)from.n ? 0 : r < 0 && r != E_FAULT ? r : E_FAULT;
}
