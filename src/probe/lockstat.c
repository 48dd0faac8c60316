/* Provider lockstat: waits for locks of the kernel.
 *
 * contention_begin(lock, flags) and contention_end(lock, result) surround a wait. A probe fires at
 * the end. A clause that runs at the beginning keeps the lock, the flags and the time in variables
 * of the thread: one set for waits of the thread itself, and one for spin locks, because interrupts
 * take spin locks too. The provider misses a spin that happens in an interrupt during another spin.
 */
#include "probe/event.h"

/* The flags of <trace/events/lock.h>: 1 spin, 2 read, 4 write, 8 RT mutex, 0x10 per CPU, 0x20
 * mutex. A waiter for a mutex spins first, and contention_begin fires again when it goes to
 * sleep. */
static const char before[] =
	"self uint64_t __spin_lock, __spin_flags, __spin_began;\n"
	"self uint64_t __wait_lock, __wait_flags, __wait_began, __wait_blocked;\n"
	"sdt:::contention_begin {\n"
	"	if ((arg1 & 0x21) == 1) {\n"
	"		self->__spin_lock = arg0;\n"
	"		self->__spin_flags = arg1;\n"
	"		self->__spin_began = timestamp;\n"
	"	} else {\n"
	"		if (self->__wait_lock != (uint64_t)arg0) {\n"
	"			self->__wait_lock = arg0;\n"
	"			self->__wait_flags = arg1;\n"
	"			self->__wait_began = timestamp;\n"
	"			self->__wait_blocked = 0;\n"
	"		}\n"
	"		if ((arg1 & 1) == 0 && self->__wait_blocked == 0)\n"
	"			self->__wait_blocked = timestamp;\n"
	"	}\n"
	"}\n";

static const char after[] = "sdt:::contention_end {\n"
			    "	if (self->__wait_lock == (uint64_t)arg0)\n"
			    "		self->__wait_lock = 0;\n"
			    "	if (self->__spin_lock == (uint64_t)arg0)\n"
			    "		self->__spin_lock = 0;\n"
			    "}\n";

#define WAITED "self->__wait_lock == (uint64_t)arg0 && "
#define SPUN "self->__spin_lock == (uint64_t)arg0 && "
// clang-format off
#define LOCK(t) { .type = t " *", .word = 0 }
#define MUTEX LOCK("struct mutex")
#define SPINLOCK LOCK("spinlock_t")
#define RWSEM LOCK("struct rw_semaphore")
#define RWLOCK LOCK("rwlock_t")
#define INTEGER { .type = "int", .word = 0 }
#define SINCE(began) { .type = "uint64_t", .expr = "(uint64_t)timestamp - self->" began }
#define READER(flags) { .type = "int", .expr = "(self->" flags " & 2) != 0 ? 1 : 0" }
// clang-format on
#define NO_WAIT "a lock that is taken or given back without waiting has no tracepoint"

static const struct event events[] = {
	EVENT("adaptive-block", "contention_end",
	      .filter = WAITED "self->__wait_blocked != 0 && (self->__wait_flags & 6) == 0",
	      ARGS(MUTEX, SINCE("__wait_blocked")),
	      .note = "mutexes, RT mutexes and semaphores; those whose wait was broken off by a signal count too"),
	EVENT("adaptive-spin", "contention_end",
	      .filter = WAITED "self->__wait_blocked == 0 && (self->__wait_flags & 6) == 0",
	      ARGS(MUTEX, SINCE("__wait_began")),
	      .note = "mutexes that were got by spinning alone; arg1 is nanoseconds"),
	EVENT("spin-spin", "contention_end", .filter = SPUN "(self->__spin_flags & 6) == 0",
	      ARGS(SPINLOCK, SINCE("__spin_began")),
	      .note = "arg1 is nanoseconds; a spin interrupted by another spin is not seen"),
	EVENT("rw-block", "contention_end", .filter = WAITED "(self->__wait_flags & 6) != 0",
	      ARGS(RWSEM, SINCE("__wait_began"), READER("__wait_flags")),
	      .note = "read-write semaphores; arg2 is 1 for a reader"),
	EVENT("rw-spin", "contention_end", .filter = SPUN "(self->__spin_flags & 6) != 0",
	      ARGS(RWLOCK, SINCE("__spin_began"), READER("__spin_flags")),
	      .note = "spinning read-write locks; arg1 is nanoseconds, arg2 is 1 for a reader"),
	NO_EVENT("adaptive-acquire", NO_WAIT, ARGS(MUTEX)),
	NO_EVENT("adaptive-acquire-error", NO_WAIT, ARGS(MUTEX, INTEGER)),
	NO_EVENT("adaptive-error", NO_WAIT, ARGS(MUTEX, INTEGER)),
	NO_EVENT("adaptive-release", NO_WAIT, ARGS(MUTEX)),
	NO_EVENT("rw-acquire", NO_WAIT, ARGS(RWLOCK, INTEGER)),
	NO_EVENT("rw-release", NO_WAIT, ARGS(RWLOCK, INTEGER)),
	NO_EVENT("rw-upgrade", NO_WAIT),
	NO_EVENT("rw-downgrade", NO_WAIT),
	NO_EVENT("spin-acquire", NO_WAIT, ARGS(SPINLOCK)),
	NO_EVENT("spin-release", NO_WAIT, ARGS(SPINLOCK)),
	NO_EVENT("thread-spin", "Linux has no thread locks"),
};

const struct provider provider_lockstat = {
	.name = "lockstat",
	.doc = "locks of the kernel that had to be waited for",
	.first_id = 20800,
	.last_id = 20899,
	.stability = { E_COMMON, P_UNKNOWN, P_UNKNOWN, E_COMMON, E_ISA },
	.before = before,
	.after = after,
	EVENTS_OF(events),
};
