/* Memory for copies of an environment, because threads may have small stacks: PTHREAD_STACK_MIN is
 * 16 KB, and 1,500 variables take 12 KB.
 *
 * execve(2) that succeeds returns to nobody who could free it. A child of vfork(2) executes in its
 * parent's memory, where the room then stays mapped. So each thread has one room that its children
 * use again, and it frees the room of a call that fails. */
#include "agent/alloc_private.h"

enum {
	ROOMS = 256, /* of threads that had children; others leave a mapping for each child */
	PAGE = 4096,
	PRIVATE_ANONYMOUS = 0x22,
	READ_WRITE = 3,
};

static struct room {
	uint64_t thread; /* its pointer, %fs:0; 0: nobody's. A child of vfork(2) has its parent's */
	void *at;
	uint64_t bytes;
	uint32_t pid; /* of the process that is in a call; a child's remains */
} rooms[ROOMS];

static uint64_t this_thread(void)
{
	uint64_t self;

	__asm__("mov %%fs:0, %0" : "=r"(self));
	return self;
}

static void *map(uint64_t bytes)
{
	int64_t at = sys6(SYS_MMAP, 0, bytes, READ_WRITE, PRIVATE_ANONYMOUS, ~0ull, 0);

	return at < 0 && at > -PAGE ? 0 : (void *)at;
}

static struct room *room_of(uint64_t thread)
{
	for (uint32_t i = 0; i < ROOMS; i++) {
		uint64_t none = 0;

		if (__atomic_load_n(&rooms[i].thread, __ATOMIC_RELAXED) == thread ||
		    __atomic_compare_exchange_n(&rooms[i].thread, &none, thread, 0,
						__ATOMIC_RELAXED, __ATOMIC_RELAXED))
			return &rooms[i];
		if (none == thread) /* a signal handler has taken it just now */
			return &rooms[i];
	}
	return 0;
}

/* Returns true while a call that a signal handler has interrupted uses the room: one of this
 * process, or of the parent that waits for this child. */
static int is_in_use(const struct room *r)
{
	return r->pid && (r->pid == (uint32_t)sys2(SYS_GETPID, 0, 0) ||
			  r->pid == (uint32_t)sys2(SYS_GETPPID, 0, 0));
}

void *alloc_take_room(uint64_t bytes, int returns)
{
	struct room *r = returns || alloc_quiet ? 0 : room_of(this_thread());

	if (alloc_quiet)
		return 0;
	if (!r || is_in_use(r))
		return map(bytes);
	r->pid = (uint32_t)sys2(SYS_GETPID, 0, 0);
	if (r->bytes < bytes) {
		if (r->bytes)
			sys2(SYS_MUNMAP, (uintptr_t)r->at, r->bytes);
		r->at = map(bytes);
		r->bytes = r->at ? bytes : 0;
	}
	return r->at;
}

void alloc_leave_room(void *room, uint64_t bytes)
{
	struct room *r = 0;

	for (uint32_t i = 0; i < ROOMS && !r; i++)
		if (rooms[i].at == room)
			r = &rooms[i];
	if (r) {
		bytes = r->bytes;
		r->bytes = 0;
		r->at = 0;
		r->pid = 0;
	}
	sys2(SYS_MUNMAP, (uintptr_t)room, bytes);
}
