/* Bytes as a dump file of the kind heapsnapshot. What is read answers every question. */
#define _GNU_SOURCE
#include "dump_ask.h"
#include "memory/heap/heap.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	return dump_ask(&heap_source_heapsnapshot, data, size);
}
