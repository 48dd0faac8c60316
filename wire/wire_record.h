/* The records that programs write into the ring buffers. Shared by generated code, bpf/ routines,
 * agent and consumer. */
#ifndef DESCRY_WIRE_WIRE_RECORD_H
#define DESCRY_WIRE_WIRE_RECORD_H

#ifndef DESCRY_BPF
#include <stdint.h>
#include <stddef.h>
#else
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;
typedef int int32_t;
typedef long long int64_t;
#endif

/* Begins every record. The segment's fields follow at the offsets of its schema. */
struct wire_record {
	uint64_t time;    /* CLOCK_MONOTONIC ns, same for all records of one firing */
	uint32_t segment; /* index of struct segment in the image, or WIRE_SEG_* */
	uint32_t probe;   /* index of struct image_probe in the image */
	uint32_t cpu;
	uint32_t spec; /* speculation id, 0: none */
	uint32_t tid;
	uint32_t late; /* != 0: strings of this record arrive later under this number (struct wire_late) */
};

enum {
	WIRE_SEG_FAULT = 0xffffffffu,
	WIRE_SEG_LATE = 0xfffffffeu,
};

/* D faults. */
enum wire_fault_code {
	WIRE_FAULT_BADADDR = 1,
	WIRE_FAULT_BADALIGN,
	WIRE_FAULT_ILLOP,
	WIRE_FAULT_DIVZERO,
	WIRE_FAULT_NOSCRATCH,
	WIRE_FAULT_KPRIV,
	WIRE_FAULT_UPRIV,
	WIRE_FAULT_TUPOFLOW,
	WIRE_FAULT_BADSTACK,
	WIRE_FAULT_BADSIZE,
	WIRE_FAULT_BADINDEX,
	WIRE_FAULT_LOOP, /* value: the limit */
};

struct wire_fault {
	struct wire_record head; /* segment WIRE_SEG_FAULT */
	uint32_t clause;         /* index in program order, 0-based */
	uint32_t code;           /* enum wire_fault_code */
	uint64_t value;          /* faulting address, 0: none */
	uint32_t loc;            /* loc_t of the expression */
	uint32_t insn;           /* instruction index, as DTrace's "BPF pc" */
};

enum { WIRE_STRING_MAX = 4096 };

/* A string that could not be read when the probe fired, because its page was not resident. It was
 * read at the system call's return. */
struct wire_late {
	struct wire_record head; /* segment WIRE_SEG_LATE, late = number of the waiting record */
	uint32_t offset;         /* of the string field in that record */
	int32_t error;           /* 0, or -errno when it could not be read at all */
	char text[256];
};

/* Value of MAP_STACKS (BPF_MAP_TYPE_HASH, key: uint64_t id, a hash of the frames). */
enum { WIRE_STACK_FRAMES = 127 };
struct wire_stack {
	uint32_t n;   /* frames in pc[]; the words behind them are undefined */
	uint32_t end; /* 1 + enum wire_unwind_end; 0: not walked by unwind tables */
	uint64_t pc[WIRE_STACK_FRAMES];
};

/* The beginning of a thread's storage (MAP_TLS), in front of the variables. */
struct wire_tls {
	uint64_t since;     /* vtimestamp: on CPU since this time, 0: not known or off CPU */
	uint64_t on_cpu;    /* ... and the nanoseconds before that */
	int64_t user_stack; /* stack ids of its last switch off a CPU, 0: none */
	int64_t kernel_stack;
	uint64_t error; /* errno of the last system call, 0: none; only if probes read it */
};

/* The state page. The consumer maps it, and every program reads it before anything else. */
struct wire_state {
	uint32_t active;  /* WIRE_OFF: programs return at once */
	uint32_t exiting; /* exit() was called: set together with active = WIRE_OFF */
	int32_t exit_status;
	uint32_t self_pid; /* descry's own tgid, for filters */
	uint32_t target_pid;
	uint32_t late_pending; /* strings waiting for a return */
	uint32_t late_next;    /* next number */
	uint32_t speculations; /* bits: see spec[] */
	uint32_t spec[64];     /* 1: in use; index = speculation id - 1 */
	uint64_t boot_offset;  /* CLOCK_REALTIME - CLOCK_MONOTONIC in ns, set at start */
	uint32_t load[4];      /* load averages of 1, 5, 15 minutes in 1/65536; once a second */
	uint64_t memory[8];    /* by enum wire_memory, in pages, written once a second */
};
/* Kinds of memory; words of /proc/meminfo. */
enum wire_memory {
	WIRE_MEMORY_FREE,      /* MemFree */
	WIRE_MEMORY_AVAILABLE, /* MemAvailable */
	WIRE_MEMORY_SWAP,      /* SwapTotal */
	WIRE_MEMORY_SWAP_FREE, /* SwapFree */
	WIRE_MEMORY_LOCKED,    /* Mlocked */
	WIRE_MEMORY_N
};
enum { WIRE_OFF = 0, WIRE_SELF = 1 /* only BEGIN/END/ERROR */, WIRE_ON = 2 };

/* Counters: a per-CPU array of uint64_t. The fixed counters come first, then a block of
 * WIRE_PROBE_SLOTS for each probe. */
enum wire_counter {
	WIRE_DROP_DATA,    /* record did not fit into the data ring */
	WIRE_DROP_CONTROL, /* ... into the control ring */
	WIRE_DROP_AGG,     /* aggregation map full */
	WIRE_DROP_DYN,     /* associative array or self-> map full */
	WIRE_DROP_SPEC,    /* (counted by the consumer: specsize exceeded) */
	WIRE_FAIL_SPEC,    /* speculation() found no free buffer */
	WIRE_DROP_SCRATCH, /* no scratch slot free: firing skipped */
	WIRE_DROP_STACK,   /* stack id collision */
	WIRE_DROP_ERROR,   /* fault inside an ERROR clause */
	WIRE_DROP_LATE,    /* late string table full */
	WIRE_FAULTS,
	WIRE_USTACKS, /* walked user stacks: one slot for each way to end (enum wire_unwind_end) */
	WIRE_FIXED_COUNTERS = WIRE_USTACKS + 12,
};
enum { WIRE_PROBE_FIRED, WIRE_PROBE_DROPPED, WIRE_PROBE_SLOTS };

#ifndef DESCRY_BPF
_Static_assert(sizeof(struct wire_stack) == 1024, "stack");
_Static_assert(sizeof(struct wire_tls) == 40, "thread storage");
_Static_assert(sizeof(struct wire_record) == 32, "record header");
_Static_assert(offsetof(struct wire_fault, value) == 40, "fault record");
_Static_assert(offsetof(struct wire_late, text) == 40, "late record");
_Static_assert(offsetof(struct wire_state, spec) == 32, "state page");
_Static_assert(offsetof(struct wire_state, boot_offset) == 288, "state page");
_Static_assert(offsetof(struct wire_state, load) == 296, "state page");
_Static_assert(offsetof(struct wire_state, memory) == 312, "state page");
#endif

#endif
