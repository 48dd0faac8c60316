/* Reads a BPF ring buffer by its mapping. */
#define _GNU_SOURCE
#include "load/kernel/kernel_private.h"

#include <errno.h>
#include <sys/mman.h>

/* Layout of a BPF ring buffer's mapping: a page with the consumer's position (descry writes it), a
 * page with the producer's position, then the data twice in a row, so that a record never wraps. A
 * record: u32 length and flags, u32 page offset, data. */
enum { RING_BUSY = 1u << 31, RING_DISCARD = 1u << 30, RING_HEADER = 8 };

struct err *ring_open(struct ring *r, int fd, uint32_t size)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	*r = (struct ring){ .fd = fd, .size = size };
	void *c = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (c == MAP_FAILED)
		return err_errno(errno, "mapping a ring buffer");
	r->consumer = c;
	void *p = mmap(NULL, page + 2 * (size_t)size, PROT_READ, MAP_SHARED, fd, (off_t)page);
	if (p == MAP_FAILED)
		return err_errno(errno, "mapping a ring buffer of %u bytes", size);
	r->producer = p;
	r->cons = c;
	r->prod = p;
	r->data = r->producer + page;
	return NULL;
}

void ring_close(struct ring *r)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	if (r->consumer)
		munmap(r->consumer, page);
	if (r->producer)
		munmap(r->producer, page + 2 * r->size);
	*r = (struct ring){ .fd = -1 };
}

void ring_drain(struct ring *r, record_fn *fn, void *arg, bool control)
{
	if (!r->cons)
		return;
	uint64_t end = __atomic_load_n(r->prod, __ATOMIC_ACQUIRE);
	uint64_t pos = *r->cons, given = pos;

	while (pos < end) {
		const uint8_t *rec = r->data + (pos & (r->size - 1));
		uint32_t head = __atomic_load_n((const uint32_t *)rec, __ATOMIC_ACQUIRE);

		if (head & RING_BUSY)
			break;
		uint32_t len = head & ~(uint32_t)(RING_BUSY | RING_DISCARD);

		if (!(head & RING_DISCARD))
			fn(arg, (const struct wire_record *)(rec + RING_HEADER), len, control);
		pos += (len + RING_HEADER + 7) & ~7u;
		/* Gives room back in steps, so that the producer's cache line is not written for
		 * each record. */
		if (pos - given >= r->size / 16) {
			__atomic_store_n(r->cons, pos, __ATOMIC_RELEASE);
			given = pos;
		}
	}
	__atomic_store_n(r->cons, pos, __ATOMIC_RELEASE);
}
