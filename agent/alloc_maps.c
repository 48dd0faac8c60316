/* mmap(2) and its like of a recorded program: memory that it maps itself. mlockall(2), which
 * would lock the recording's.
 *
 * Always true: what an allocator maps within a call of malloc(3) does not count. As with free(3),
 * memory is gone before the call that unmaps it. Any of these may be called before the next
 * object's functions are known.
 */
#include "agent/alloc_private.h"

#define EXPORT __attribute__((visibility("default")))

#define X(type, name, arguments) type name arguments;
ALLOC_NEXT(X)
#undef X
void *mmap64(void *at, size_t size, int prot, int flags, int fd, long offset);

enum { PAGE = 4096, PROT_ACCESS = 1 | 2 | 4, MAP_ANONYMOUS_ = 0x20 };

#define FAILED(p) ((uintptr_t)(p) == ~(uintptr_t)0)

static inline uint64_t whole_pages(uint64_t size)
{
	return (size + PAGE - 1) & ~(uint64_t)(PAGE - 1);
}

EXPORT void *mmap(void *at, size_t size, int prot, int flags, int fd, long offset)
{
	enum wire_alloc_map kind = !(flags & MAP_ANONYMOUS_) ? WIRE_ALLOC_MAPPED_FILE
				   : prot & PROT_ACCESS      ? WIRE_ALLOC_ANONYMOUS
							     : WIRE_ALLOC_RESERVED;
	void *p;

	(void)alloc_ready(FRAME);
	if (state.next.mmap)
		p = state.next.mmap(at, size, prot, flags, fd, offset);
	else
		p = (void *)alloc_syscall(SYS_MMAP, (uintptr_t)at, size, (uint32_t)prot,
					  (uint32_t)flags, (uint64_t)fd, (uint64_t)offset);
	if (!FAILED(p))
		alloc_put_map(kind, whole_pages(size), (uintptr_t)p, FRAME);
	return p;
}

EXPORT void *mmap64(void *at, size_t size, int prot, int flags, int fd, long offset)
{
	return mmap(at, size, prot, flags, fd, offset);
}

EXPORT int munmap(void *at, size_t size)
{
	int counts = !((uintptr_t)at % PAGE) && size, r; /* else it fails */

	(void)alloc_ready(FRAME);
	if (counts)
		alloc_put_map(WIRE_ALLOC_UNMAPPED, whole_pages(size), (uintptr_t)at, FRAME);
	r = state.next.munmap ? state.next.munmap(at, size)
			      : (int)alloc_syscall(SYS_MUNMAP, (uintptr_t)at, size, 0, 0, 0, 0);
	/* the kernel allows no more mappings: the memory is still there, of an unknown kind */
	if (r && counts)
		alloc_put_map(WIRE_ALLOC_ANONYMOUS, whole_pages(size), (uintptr_t)at, FRAME);
	return r;
}

/* `to` is an argument with MREMAP_FIXED only. */
EXPORT void *mremap(void *at, size_t old, size_t size, int flags, void *to)
{
	void *p;

	(void)alloc_ready(FRAME);
	alloc_put_map(WIRE_ALLOC_UNMAPPED, whole_pages(old), (uintptr_t)at, FRAME);
	if (state.next.mremap)
		p = state.next.mremap(at, old, size, flags, to);
	else
		p = (void *)alloc_syscall(SYS_MREMAP, (uintptr_t)at, old, size, (uint32_t)flags,
					  (uintptr_t)to, 0);
	if (FAILED(p))
		alloc_put_map(WIRE_ALLOC_ANONYMOUS, whole_pages(old), (uintptr_t)at, FRAME);
	else
		alloc_put_map(WIRE_ALLOC_ANONYMOUS, whole_pages(size), (uintptr_t)p, FRAME);
	return p;
}

static void put_break(uintptr_t from, uintptr_t to, uintptr_t frame)
{
	if (to > from)
		alloc_put_map(WIRE_ALLOC_ANONYMOUS, to - from, from, frame);
	else if (to < from)
		alloc_put_map(WIRE_ALLOC_UNMAPPED, from - to, to, frame);
}

EXPORT void *sbrk(intptr_t more)
{
	void *p;

	if (!alloc_ready(FRAME) || !state.next.sbrk)
		return (void *)~(uintptr_t)0;
	p = state.next.sbrk(more);
	if (!FAILED(p))
		put_break((uintptr_t)p, (uintptr_t)p + (uintptr_t)more, FRAME);
	return p;
}

EXPORT int brk(void *to)
{
	uintptr_t from;
	int r;

	if (!alloc_ready(FRAME) || !state.next.brk || !state.next.sbrk)
		return -1;
	from = (uintptr_t)state.next.sbrk(0);
	r = state.next.brk(to);
	if (!r)
		put_break(from, (uintptr_t)to, FRAME);
	return r;
}

EXPORT int mlockall(int flags)
{
	(void)alloc_ready(FRAME);
	alloc_shrink();
	return state.next.mlockall
		       ? state.next.mlockall(flags)
		       : (int)alloc_syscall(SYS_MLOCKALL, (uint32_t)flags, 0, 0, 0, 0, 0);
}
