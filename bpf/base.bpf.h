/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef DESCRY_BPF_BASE_H
#define DESCRY_BPF_BASE_H

#ifdef DESCRY_AGENT
#include "agent/native.h" /* some routines are compiled for the in-process engine too */
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
typedef __s32 s32;
typedef __s64 s64;

/* A global symbol, so that clang keeps it and its signature. */
#define ROUTINE __attribute__((noinline))
/* A bpf_loop() callback. */
#define CALLBACK static __attribute__((noinline)) long
/* Marks a long function. Neither the BPF program nor the agent inlines it. */
#define SUBROUTINE CALLBACK
#define INLINE static __attribute__((always_inline)) inline

enum { E_FAULT = -14, NOT_FOUND = 1 };
#endif
enum { MAX_WORDS = WIRE_STRING_MAX / 8 };

#define KERNEL(addr) ((const void *)(addr))
/* Stops clang from merging a bounds check with an earlier check, after which it would use another
 * register. */
#define OPAQUE(x) asm volatile("" : "+r"(x))

/* Returns v as a number that the verifier does not know. Each variable that a bpf_loop() callback
 * changes must start with a call of its own. Since 6.7 the verifier walks a callback again until an
 * earlier state covers its state, and known numbers (0, then 1, ...) never do so. Older verifiers
 * walk the callback once from its first state, and remove the branches that this state does not
 * take. */
#ifndef DESCRY_AGENT
INLINE u64 hidden(u64 v)
{
	u64 x = bpf_get_current_pid_tgid(), y = x;

	OPAQUE(y);
	return v + x - y;
}
#endif

/* Ends a routine with a result that the verifier does not know. Verifiers before 6.4 keep every
 * path through a routine apart by its known numbers. They would walk the code behind a call once
 * for each path, and a clause with several calls would be too large. */
#define RESULT(v) return (long)hidden((u64)(v))

INLINE void count(void *counters, u32 slot)
{
	u64 *v = bpf_map_lookup_elem(counters, &slot);

	if (v)
		++*v;
}

#endif
