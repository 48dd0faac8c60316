// SPDX-License-Identifier: GPL-2.0-only
/* The routines of wire/routines.h: code too long to generate. One translation unit has code and
 * BTF only, no data sections and no maps (maps come as arguments). Every loop of unknown length is
 * a bpf_loop(). A call site then costs the verifier hundreds of instructions and not thousands:
 * the linker makes these functions static, and the verifier walks them again for each call. */
#include "base.bpf.h"
#include "memory.bpf.h"
#include "agg.bpf.h"
#include "vector.bpf.h"
#include "text.bpf.h"
#include "find.bpf.h"
#include "json.bpf.h"
#include "path_text.bpf.h"
#include "number.bpf.h"
#include "kernel.bpf.h"
#include "stack.bpf.h"
#include "late.bpf.h"
#include "unwind.bpf.h"
#include "language.bpf.h"
#include "ruby.bpf.h"
#include "function_id.bpf.h"
#include "java_value.bpf.h"
