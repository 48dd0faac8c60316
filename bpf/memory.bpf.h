/* SPDX-License-Identifier: GPL-2.0-only */
/* Scratch space, zeroing, fault records. */

/* Clears memory. A failed bpf_probe_read_kernel() zeroes its destination (kernel/trace/bpf_trace.c,
 * since 5.5), and address 0 fails before anything is read. This is a program's fastest memset (256
 * bytes: 12 ns, 80 with stores). */
INLINE void zero(void *dst, u64 size)
{
	bpf_probe_read_kernel(dst, size, (void *)0);
}

ROUTINE long d_zero(void *dst, u64 size)
{
	zero(dst, size);
	return 0;
}

/* Takes a scratch slot. A probe may interrupt a probe on the same CPU, so each nesting takes the
 * next slot. Uses xchg, because an interrupt may come between load and store. */
ROUTINE void *d_scratch_get(void *map)
{
	u32 first = bpf_get_smp_processor_id() * WIRE_SCRATCH_SLOTS;

#pragma clang loop unroll(full)
	for (u32 i = 0; i < WIRE_SCRATCH_SLOTS; i++) {
		u32 key = first + i;
		u64 *slot = bpf_map_lookup_elem(map, &key);

		if (!slot)
			return 0;
		if (!__sync_lock_test_and_set(slot, 1))
			return slot;
	}
	return 0;
}

/* --- chill() --- */

struct chill {
	u64 until, done;
};

CALLBACK chill_on(u32 i, struct chill *c)
{
	c->done = bpf_ktime_get_ns() >= c->until;
	return c->done;
}

enum { CHILL_MAX = 500000000, CHILL_ROUNDS = 4 };

/* Keeps the CPU busy for ns nanoseconds, at most half a second. */
ROUTINE long d_chill(u64 ns)
{
	struct chill c = { .until = bpf_ktime_get_ns() + (ns < CHILL_MAX ? ns : CHILL_MAX) };

	for (int i = 0; i < CHILL_ROUNDS && !c.done; i++) {
		c.done = hidden(0);
		bpf_loop(1 << 23, chill_on, &c, 0);
	}
	return 0;
}

ROUTINE long d_fault(void *ring, void *counters, const struct wire_firing *firing, u64 code_loc,
		     u64 value)
{
	struct wire_fault *f;

	count(counters, WIRE_FAULTS);
	f = bpf_ringbuf_reserve(ring, sizeof(*f), 0);
	if (!f) {
		count(counters, WIRE_DROP_CONTROL);
		return 0;
	}
	f->head.time = firing->time;
	f->head.segment = WIRE_SEG_FAULT;
	f->head.probe = firing->probe;
	f->head.cpu = bpf_get_smp_processor_id();
	f->head.spec = 0;
	f->head.tid = firing->tid;
	f->head.late = 0;
	f->clause = firing->clause;
	f->code = (u32)code_loc;
	f->value = value;
	f->loc = (u32)(code_loc >> 32);
	f->insn = firing->insn;
	bpf_ringbuf_submit(f, BPF_RB_FORCE_WAKEUP);
	return 0;
}
