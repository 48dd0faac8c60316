/* SPDX-License-Identifier: GPL-2.0-only */
/* Stacks of keys: stores each stack once, under a 64-bit hash. bpf_get_stackid() has buckets for
 * which two stacks may compete, and one depth for all. Here a collision needs two equal hashes
 * among the stacks of one run. */

struct stack_hash {
	const struct wire_stack *s;
	u64 h;
};

CALLBACK hash_frame(u32 i, struct stack_hash *c)
{
	u64 x;

	/* One round of splitmix64 (Steele, Lea, Flood 2014) for each frame; d_stack_id() adds the
	 * second. */
	if (i >= WIRE_STACK_FRAMES)
		return 1;
	x = (c->h ^ c->s->pc[i]) * 0xbf58476d1ce4e5b9ull;
	c->h = x ^ (x >> 32);
	return 0;
}

/* Stores s, whose pc has `bytes` of frames (or bytes is -errno). Returns the stack's id, or
 * -errno. */
ROUTINE s64 d_stack_id(void *stacks, void *counters, struct wire_stack *s, s64 bytes)
{
	/* Two stacks of the same frames are different when their walks ended differently. */
	struct stack_hash c = { .s = s, .h = hidden(bytes + ((u64)s->end << 32)) };
	s64 id, r;

	if (bytes < 0)
		return bytes;
	s->n = (u32)bytes / 8;
	bpf_loop(s->n, hash_frame, &c, 0);
	c.h = (c.h ^ (c.h >> 27)) * 0x94d049bb133111ebull;
	id = (c.h ^ (c.h >> 31)) & 0x7fffffffffffffffull;
	if (bpf_map_lookup_elem(stacks, &id))
		return id;
	r = bpf_map_update_elem(stacks, &id, s, BPF_NOEXIST);
	if (!r || r == -17 /* EEXIST: another CPU stored it first */)
		return id;
	count(counters, WIRE_DROP_STACK);
	return r;
}

/* Copies the frames of a stored stack to dst. Returns their length in bytes, or -errno. */
ROUTINE s64 d_stack_copy(void *stacks, s64 id, u64 *dst, u64 size)
{
	const struct wire_stack *s;
	u64 bytes;

	if (id < 0)
		return id;
	s = bpf_map_lookup_elem(stacks, &id);
	if (!s)
		return -2 /* ENOENT */;
	bytes = (u64)s->n * 8;
	bpf_probe_read_kernel(dst, size, s->pc);
	return bytes < size ? bytes : size;
}
