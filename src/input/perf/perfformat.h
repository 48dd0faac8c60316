/* The numbers of perf.data: types of records, bits of events and samples, features (perf_event.h of
 * the kernel, and tools/perf/Documentation/perf.data-file-format.txt). */
#ifndef DESCRY_INPUT_PERF_PERFFORMAT_H
#define DESCRY_INPUT_PERF_PERFFORMAT_H

#include <stdint.h>

enum record_type {
	RECORD_MMAP = 1,
	RECORD_LOST = 2,
	RECORD_COMM = 3,
	RECORD_FORK = 7,
	RECORD_SAMPLE = 9,
	RECORD_MMAP2 = 10,
	RECORD_LOST_SAMPLES = 13,
	RECORD_KSYMBOL = 17,
	RECORD_KERNEL_END = 64, /* records with a type below have a sample id at their end */
	RECORD_ATTR = 64,
	RECORD_TRACING_DATA = 66,
	RECORD_FINISHED_ROUND = 68,
	RECORD_AUXTRACE = 71,
	RECORD_FEATURE = 80,
	RECORD_COMPRESSED = 81,
};

enum {
	MISC_CPUMODE = 7,
	MISC_KERNEL = 1,
	MISC_MMAP_DATA = 1 << 13,
	MISC_MMAP_BUILD_ID = 1 << 14,
	MISC_BUILD_ID_SIZE = 1 << 15,
};

enum sample_field {
	SAMPLE_IP = 1 << 0,
	SAMPLE_TID = 1 << 1,
	SAMPLE_TIME = 1 << 2,
	SAMPLE_ADDR = 1 << 3,
	SAMPLE_READ = 1 << 4,
	SAMPLE_CALLCHAIN = 1 << 5,
	SAMPLE_ID = 1 << 6,
	SAMPLE_CPU = 1 << 7,
	SAMPLE_PERIOD = 1 << 8,
	SAMPLE_STREAM_ID = 1 << 9,
	SAMPLE_RAW = 1 << 10,
	SAMPLE_BRANCH_STACK = 1 << 11,
	SAMPLE_REGS_USER = 1 << 12,
	SAMPLE_STACK_USER = 1 << 13,
	SAMPLE_IDENTIFIER = 1 << 16,
};

enum { FEATURE_BUILD_ID = 2, FEATURE_EVENT_DESC = 12, FEATURES = 256 };
enum {
	TYPE_TRACEPOINT = 2,
	ATTR_FREQUENCY = 1 << 10,
	ATTR_ID_ALL = 1 << 18,
	ATTR_MIN = 48,
	ATTR_BRANCHES = 72, /* positions of the fields of branches and of registers */
	BRANCH_HW_INDEX = 1 << 17,
	BRANCH_COUNTERS = 1 << 19,
	PIPE_HEADER = 16
};

/* Values in a call chain that mark the memory of the addresses behind them, from (u64)-4095 on. */
static const uint64_t CONTEXT_FIRST = (uint64_t)-4095, CONTEXT_KERNEL = (uint64_t)-128,
		      CONTEXT_USER = (uint64_t)-512;

#endif
