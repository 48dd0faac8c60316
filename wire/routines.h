/* The routines of bpf/ that generated code calls, and the bytes they share with it.
 *
 * Calling: r1-r5 arguments, r0 result, r1-r5 clobbered (a BPF-to-BPF call). The linker makes them
 * static, so the verifier checks each body with the argument states of the call site. All arguments
 * are 64 bits wide.
 *   dst        address that the verifier knows: map value, ring memory; at least `size` bytes. Must not overlap a source.
 *   size       a constant of the call site: strsize, a multiple of 8, 16..WIRE_STRING_MAX.
 *   other text any kernel address as a number (a map value's address too); read with bpf_probe_read_kernel, so a
 *              bad address gives -EFAULT, never an oops. Text ends at its NUL or after size - 1 bytes.
 * A routine that fills dst leaves NUL-terminated text in it. It returns 0 (or the result named
 * below); 1 for D's NULL, "not found" (dst is "" then); -EFAULT (-14) when a source cannot be read
 * (dst is "" then). Bytes after the NUL are unspecified, except where the table says otherwise;
 * keys need d_strcpy_pad. Stack: WIRE_ROUTINE_STACK bytes at most, with callees and callbacks,
 * because the verifier allows 512 bytes for the whole call chain.
 */
#ifndef DESCRY_WIRE_ROUTINES_H
#define DESCRY_WIRE_ROUTINES_H

#include "wire/wire_record.h"

enum {
	WIRE_SCRATCH_SLOTS =
		4, /* scratch values per CPU: nesting of probes (task, softirq, irq, nmi) */
	WIRE_ROUTINE_STACK = 320,
	WIRE_START_ABSENT = 0x7fffffff, /* d_rindex without a start; d_substr without a length */
};

/* The value of a vector register that is not known: only code inside the process sees them. It is
 * a signalling NaN of a double, and of a float too. */
enum { WIRE_VECTORS = 8 };
#define WIRE_VECTOR_UNKNOWN 0x7ff4d35c7fa4d35cull

/* State of strtok(): 8 + size bytes that the verifier knows. pos 0: strtok() has not begun. */
struct wire_strtok {
	uint64_t pos; /* 1 + offset in text of the rest; 0: no text */
	char text[];
};

/* The facts of a firing that d_fault needs; 24 bytes that the verifier knows (stack, scratch). */
struct wire_firing {
	uint64_t time;
	uint32_t probe;
	uint32_t clause;
	uint32_t insn;
	uint32_t tid;
};

/* X(name, number of arguments, "arguments -> result") */
#define WIRE_ROUTINES(X) \
	/* text -> number */ \
	X(d_strcmp, 3, "a, b, size -> -1 0 1 (unsigned bytes), -EFAULT") \
	X(d_strlen, 2, "src, size -> length, -EFAULT") \
	X(d_index, 4, "src, needle, start (absent: 0), size -> offset or -1, -EFAULT") \
	X(d_rindex, 4, \
	  "src, needle, start (absent: WIRE_START_ABSENT), size -> offset or -1, -EFAULT") \
	X(d_strtoll, 3, "src, base 2..36, size -> value (0 when unreadable)") \
	/* text -> text */ \
	X(d_strcpy, 3, "dst, size, src -> 0, -EFAULT") \
	X(d_strcpy_pad, 3, "dst, size, src -> 0, -EFAULT; zeroes up to size in every case") \
	X(d_strchr, 4, "dst, size, src, char -> 0, 1, -EFAULT") \
	X(d_strrchr, 4, "dst, size, src, char -> 0, 1, -EFAULT") \
	X(d_strstr, 4, "dst, size, src, needle -> 0, 1, -EFAULT") \
	X(d_substr, 5, "dst, size, src, index, length (absent: WIRE_START_ABSENT) -> 0, -EFAULT") \
	X(d_strjoin, 4, "dst, size, a, b -> 0, -EFAULT") \
	X(d_strtok, 5, "dst, size, src (0: go on), delims, struct wire_strtok * -> 0, 1, -EFAULT") \
	X(d_json, 4, "dst, size, src, path -> 0, 1, -EFAULT") \
	X(d_basename, 3, "dst, size, src -> 0, -EFAULT") \
	X(d_dirname, 3, "dst, size, src -> 0, -EFAULT") \
	X(d_cleanpath, 3, "dst, size, src -> 0, -EFAULT") \
	X(d_toupper, 3, "dst, size, src -> 0, -EFAULT") \
	X(d_tolower, 3, "dst, size, src -> 0, -EFAULT") \
	/* numbers -> text */ \
	X(d_lltostr, 4, \
	  "dst, size, value, base -> 0, 1 when base is not 2..36; size >= 72 always fits") \
	X(d_memstr, 5, \
	  "dst, size, address, char, bytes -> 0, -EFAULT; NULs become char, the last byte NUL") \
	X(d_inet_ntoa, 3, "dst, size, address of ipaddr_t -> 0, -EFAULT") \
	X(d_inet_ntoa6, 4, "dst, size, address of in6_addr, strict -> 0, -EFAULT; size >= 48") \
	X(d_inet_ntop, 4, \
	  "dst, size, AF_INET or AF_INET6, address -> 0, 1 other family, -EFAULT; size >= 48") \
	X(d_link_ntop, 4, \
	  "dst, size, ARPHRD_*, address -> 0, 1 unknown type, -EFAULT; size >= 64") \
	/* aggregations */ \
	X(d_quantize_bucket, 1, "value -> 0..126, known to the verifier") \
	X(d_vector0, 0, \
	  "-> low eight bytes of xmm0; WIRE_VECTOR_UNKNOWN but for the JIT's native code") \
	X(d_vector1, 0, "") \
	X(d_vector2, 0, "") \
	X(d_vector3, 0, "") \
	X(d_vector4, 0, "") \
	X(d_vector5, 0, "") \
	X(d_vector6, 0, "") \
	X(d_vector7, 0, "") \
	X(d_llquantize_rank, 5, \
	  "magnitude, factor, low, high, steps -> rank; the caller bounds it") \
	X(d_agg_text, 3, \
	  "aggregation, address of the text that is the key, 0 or a value to be noted for it -> the value, 0 not known") \
	X(d_agg_python, 4, \
	  "aggregation, frame of Python, WIRE_PYTHON_PATH() to the name that is the key, 0 or a value to be noted -> as d_agg_text") \
	X(d_agg_ruby, 4, \
	  "aggregation, frame of Ruby, method entry or 0, 0 or a value to be noted -> as d_agg_text") \
	X(d_stddev_add, 2, \
	  "u64 words[4] the verifier knows, value: n++, sum, 128-bit sum of squares") \
	/* memory */ \
	X(d_zero, 2, "dst, size (any constant) -> 0") \
	X(d_scratch_get, 1, \
	  "scratch map -> its value, busy word set; NULL: none free. Release: store 0 to the busy word") \
	X(d_chill, 1, "nanoseconds -> 0") \
	/* faults */ \
	X(d_fault, 5, \
	  "control ring, counters map, struct wire_firing *, code | loc << 32, value -> 0") \
	/* kernel objects; offsets: address of struct wire_offsets in the rodata map */ \
	X(d_path, 4, "dst, size, address of struct path, offsets -> 0, 1 no such path, -EFAULT") \
	X(d_psargs, 4, "dst, size, task_struct address, offsets -> 0, -EFAULT") \
	X(d_getfile, 2, "fd, offsets -> struct file address of the current process, 0 none") \
	X(d_progenyof, 2, \
	  "pid, offsets -> 1 when the current process is pid or descends from it, else 0") \
	/* stacks of keys; s: struct wire_stack the verifier knows */ \
	X(d_stack_id, 4, "stack map, counters map, s, bytes of frames or -errno -> id, -errno") \
	X(d_stack_copy, 4, "stack map, id, dst, size (a constant) -> bytes, -errno") \
	X(d_dentry_path, 4, \
	  "dst, size, dentry address, offsets -> 0, 1, -EFAULT; within its file system") \
	X(d_mount_point, 4, "dst, size, vfsmount address, offsets -> 0, 1, -EFAULT") \
	/* whole programs: the generated program loads the arguments, calls, exits */ \
	X(d_sys_error, 3, \
	  "task storage map, regs, value returned (of raw tracepoint sys_exit) -> 0") \
	X(d_sched_switch, 3, \
	  "task storage map, prev, next (trusted pointers of tp_btf/sched_switch) -> 0") \
	/* user stacks by unwind tables (wire/wire_unwind.h) */ \
	X(d_ustack, 5, \
	  "unwind map, processes map, wanted ring, struct wire_walk * the verifier knows, stack.n: max frames; struct wire_unwind_offsets * -> bytes") \
	X(d_language, 5, \
	  "as d_ustack, after it: adds the frames of an interpreted language (wire/language.h) -> bytes") \
	X(d_ustack_end, 2, \
	  "counters map, struct wire_stack *: counts how the walk ended -> 1 + that") \
	/* what Ruby's frames say; texts: addresses in the process */ \
	X(d_ruby, 5, \
	  "frame (or execution context), 0 (or iseq, method entry), WIRE_RUBY_IS_* | WIRE_RUBY_3_3 or 0, address of its symbols, text for none -> text, line") \
	/* what a program remembers of functions: wire_function_id() */ \
	X(d_id_python, 4, \
	  "functions map, frame of Python, WIRE_PYTHON_PATH() to its file's name, salt -> the answer, 0 or 1; else the function's number") \
	X(d_id_ruby, 4, "functions map, frame of Ruby, method entry or 0, salt -> likewise") \
	X(d_id_texts, 5, \
	  "functions map, two texts, their lengths (0: up to a NUL) << 0 and 32, salt -> likewise") \
	/* values of Java (wire/java_value.h); addresses in the process */ \
	X(d_java_arg, 4, \
	  "rbp of the function with the probe, the interpreter's code, its size, places and what is wanted -> address of the word, bit 0: an int; 0: none") \
	X(d_java_text, 5, "dst, size, String, places, base of references -> 0, -EFAULT") \
	/* strings read at the system call's return (wire/late.h) */ \
	X(d_late_number, 1, "struct wire_state * -> a new non-zero number for wire_record.late") \
	X(d_late_add, 5, \
	  "late map, counters map, struct wire_state *, user address, struct wire_late_item * -> 1, 0 dropped") \
	X(d_late_sys_exit, 5, \
	  "late map, control ring, counters map, struct wire_state *, pt_regs address -> 0")

_Static_assert(sizeof(struct wire_firing) == 24, "firing");

#endif
