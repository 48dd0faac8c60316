/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef DESCRY_BPF_BASE_H
#define DESCRY_BPF_BASE_H

#ifdef DESCRY_AGENT
#include "agent/native.h" /* some routines are compiled for the in-process engine, too */
#else
#define DESCRY_BPF 1
#include <stdbool.h>
#include <linux/types.h>
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "wire/late.h"
#include "wire/offsets.h"
#include "wire/routines.h"

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s64 s64;

/* A global symbol, so that clang keeps it and its signature. */
#define ROUTINE __attribute__((noinline))
/* A bpf_loop() callback. */
#define CALLBACK static __attribute__((noinline)) long
#define INLINE static __attribute__((always_inline)) inline

enum { E_FAULT = -14, NOT_FOUND = 1 };
#endif
enum { MAX_WORDS = WIRE_STRING_MAX / 8 };

#define KERNEL(addr) ((const void *)(addr))
/* Stops clang from merging a bounds check with an earlier one and using another register after
 * it. */
#define OPAQUE(x) asm volatile("" : "+r"(x))

/* v, but the verifier takes it for any number. What a bpf_loop() callback changes must start
 * like this, each variable with its own call. Since 6.7 the verifier walks a callback again
 * until its state is covered by an earlier one, and numbers it knows (0, then 1, ...) never are.
 * Before, it walks it once, from the first state, and removes as dead the branches that state
 * does not take. */
#ifndef DESCRY_AGENT
INLINE u64 hidden(u64 v)
{
	u64 x = bpf_get_current_pid_tgid(), y = x;

	OPAQUE(y);
	return v + x - y;
}
#endif

/* Ends a routine with a result the verifier takes for any number. Before 6.4 it keeps every way
 * through a routine apart by the numbers it knows, so that what follows a call is looked at once
 * for each of them, and a clause with several calls is too large for it. */
#define RESULT(v) return (long)hidden((u64)(v))

INLINE void count(void *counters, u32 slot)
{
	u64 *v = bpf_map_lookup_elem(counters, &slot);

	if (v)
		++*v;
}

#endif
