/* SPDX-License-Identifier: GPL-2.0-only */
/* Vector registers, which the kernel does not show to BPF. The in-process engine has native code
 * for these routines. */

#define VECTOR(n) \
	ROUTINE u64 d_vector##n(void) \
	{ \
		u64 v = WIRE_VECTOR_UNKNOWN; \
\
		OPAQUE(v); \
		return v; \
	}

VECTOR(0)
VECTOR(1)
VECTOR(2)
VECTOR(3)
VECTOR(4)
VECTOR(5)
VECTOR(6)
VECTOR(7)
