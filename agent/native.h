/* BPF's helpers, for routines of bpf/ that are compiled into the agent. The routines pass a map as
 * a struct native_map. */
#ifndef DESCRY_AGENT_NATIVE_H
#define DESCRY_AGENT_NATIVE_H

#include "agent/agent.h"
#include "agent/map.h"
#include "wire/late.h"
#include "wire/offsets.h"

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t s32;
typedef int64_t s64;

#define ROUTINE static __attribute__((unused))
#define CALLBACK static inline __attribute__((always_inline)) long
#define SUBROUTINE static NOINLINE __attribute__((cold)) long
#define INLINE static inline __attribute__((always_inline, unused))

struct native_map {
	const struct wire_map *map;
	struct wire_thread *thread;
	u64 stack_lo, stack_room; /* range of the thread's stack that plain loads may read */
	/* the last two of the other ranges: frames in one, code in another; room 0: none */
	u64 range_lo, range_room;
	u64 other_lo, other_room;
	bool plain; /* those may be read by plain loads: reads_are_plain() */
};
#define NATIVE(map) ((struct native_map *)(map))

enum { BPF_NOEXIST = MAP_NOEXIST, BPF_RB_NO_WAKEUP = 1, BPF_RB_FORCE_WAKEUP = 2 };

int64_t agent_map_update(u64 map, u64 key, u64 value, u64 flags, u64 r5, struct wire_thread *t);
int64_t agent_ring_output(u64 map, u64 data, u64 n, u64 flags, u64 r5, struct wire_thread *t);
int64_t agent_probe_read(u64 dst, u64 size, u64 src, u64 r4, u64 r5, struct wire_thread *t);

#define bpf_map_lookup_elem(m, key) map_value(NATIVE(m)->map, NATIVE(m)->thread, key)
#define bpf_map_update_elem(m, key, value, flags) \
	agent_map_update((uintptr_t)NATIVE(m)->map, (uintptr_t)(key), (uintptr_t)(value), flags, \
			 0, NATIVE(m)->thread)
#define bpf_ringbuf_output(m, data, n, flags) \
	agent_ring_output((uintptr_t)NATIVE(m)->map, (uintptr_t)(data), n, flags, 0, \
			  NATIVE(m)->thread)
/* for memory that is known to exist; address 0 has none */
#define bpf_probe_read_kernel(dst, n, src) native_copy(dst, n, (uintptr_t)(src))
#define bpf_loop(n, fn, arg, flags) \
	({ \
		u32 n_ = (u32)(n), i_ = 0; \
\
		while (i_ < n_ && !fn(i_++, arg)) \
			; \
		(long)i_; \
	})

INLINE long native_copy(void *dst, u64 n, u64 src)
{
	if (src)
		mem_copy(dst, (const void *)src, n);
	else
		mem_zero(dst, n);
	return src ? 0 : E_FAULT;
}

INLINE u64 hidden(u64 v)
{
	return v;
}

#endif
