/* SPDX-License-Identifier: GPL-2.0-only */
/* Strings of system call arguments whose page was not resident. Reads them when the call returns,
 * because the kernel has read them by then and faulted the page in. */

ROUTINE u64 d_late_number(struct wire_state *state)
{
	u32 n = __sync_fetch_and_add(&state->late_next, 1) + 1;

	return n ? n : 1;
}

ROUTINE long d_late_add(void *late, void *counters, struct wire_state *state, u64 address,
			const struct wire_late_item *item)
{
	u32 tid = (u32)bpf_get_current_pid_tgid(), n;
	struct wire_late_wait *w = bpf_map_lookup_elem(late, &tid);

	if (!w) {
		/* The new element's bytes do not matter. Uses the state page, because the stack is
		 * short. */
		bpf_map_update_elem(late, &tid, state, BPF_ANY);
		w = bpf_map_lookup_elem(late, &tid);
		if (w)
			w->n = 0;
	}
	if (!w || w->n >= WIRE_LATE_ITEMS) {
		count(counters, WIRE_DROP_LATE);
		return 0;
	}
	n = w->n;
	w->item[n].address = address;
	w->item[n].number = item->number;
	w->item[n].offset = item->offset;
	w->item[n].probe = item->probe;
	w->item[n].size = item->size;
	w->n = n + 1;
	__sync_fetch_and_add(&state->late_pending, 1);
	return 1;
}

struct late_return {
	struct wire_late_wait *wait;
	void *ring, *counters;
	u64 tid;
	bool gone; /* execve succeeded, so the address space of the arguments is gone */
};

CALLBACK late_item(u32 index, struct late_return *l)
{
	struct wire_late_wait *w = l->wait;
	struct wire_late *r;
	u64 i = index;
	u32 size;
	long error;

	if (i >= WIRE_LATE_ITEMS || i >= w->n)
		return 1;
	r = bpf_ringbuf_reserve(l->ring, sizeof(*r), 0);
	if (!r) {
		count(l->counters, WIRE_DROP_CONTROL);
		return 0;
	}
	r->head.time = bpf_ktime_get_ns();
	r->head.segment = WIRE_SEG_LATE;
	r->head.probe = w->item[i].probe;
	r->head.cpu = bpf_get_smp_processor_id();
	r->head.spec = 0;
	r->head.tid = (u32)l->tid;
	r->head.late = w->item[i].number;
	r->offset = w->item[i].offset;
	size = w->item[i].size;
	if (size > sizeof(r->text) || !size)
		size = sizeof(r->text);
	OPAQUE(size);
	zero(r->text, sizeof(r->text));
	error = E_FAULT;
	if (!l->gone && size <= sizeof(r->text) && size > 0)
		error = bpf_probe_read_user_str(r->text, size, KERNEL(w->item[i].address));
	r->error = error < 0 ? (int32_t)error : 0;
	bpf_ringbuf_submit(r, BPF_RB_FORCE_WAKEUP);
	return 0;
}

/* Returns true when execve or execveat has succeeded. orig_ax has the number, and the call returns
 * 0 in another address space. */
INLINE bool was_exec(u64 regs)
{
	u64 number = 0, result = 1;

	bpf_probe_read_kernel(&number, 8, KERNEL(regs + 120));
	bpf_probe_read_kernel(&result, 8, KERNEL(regs + 80));
	return (number == 59 || number == 322) && !result;
}

ROUTINE long d_late_sys_exit(void *late, void *ring, void *counters, struct wire_state *state,
			     u64 regs)
{
	u32 tid = (u32)bpf_get_current_pid_tgid();
	struct late_return l = { .ring = ring, .counters = counters, .tid = tid };

	if (!state->late_pending)
		return 0;
	l.wait = bpf_map_lookup_elem(late, &tid);
	if (!l.wait)
		return 0;
	l.gone = was_exec(regs);
	bpf_loop(WIRE_LATE_ITEMS, late_item, &l, 0);
	__sync_fetch_and_add(&state->late_pending, -l.wait->n);
	l.wait->n = 0;
	bpf_map_delete_elem(late, &tid);
	return 0;
}
