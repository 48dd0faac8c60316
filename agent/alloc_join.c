/* How a process gets memory from the tracer, and records into it (wire/alloc.h): one that begins,
 * and a forked child. */
#include "agent/alloc_order.h"

#define WEAK __attribute__((weak))

/* pthread_atfork(3) is glibc's only in objects that are linked with it. */
int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void),
		      void *object) WEAK;
int pthread_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void)) WEAK;

enum {
	PAGE = 4096,
	PROT_READ_ = 1,
	PROT_READ_WRITE = 1 | 2,
	MAP_SHARED_ = 1,
	MAP_PRIVATE_ANONYMOUS = 0x22,
	MAP_PRIVATE_NORESERVE = 0x4022,
	MAP_OWN_FIXED = 0x4032, /* private, anonymous, without a reserve */
	MADV_DONTFORK = 10,
	MADV_DONTDUMP = 16,
	MADV_WIPEONFORK = 18,
	AF_UNIX_ = 1,
	SOCK_DGRAM_CLOEXEC = 2 | 02000000,
	SOL_SOCKET_ = 1,
	SO_PASSCRED_ = 16,
	SO_RCVTIMEO_ = 20,
	SO_SNDTIMEO_ = 21,
	MSG_CMSG_CLOEXEC_ = 0x40000000,
	SCM_RIGHTS_ = 1,
	SCM_CREDENTIALS_ = 2,
	F_GET_SEALS_ = 1034,
	F_SEAL_SHRINK_ = 2,
	F_SEAL_FUTURE_WRITE_ = 16,
	SEEK_END_ = 2,
	ANSWER_FDS = 3,                     /* memory, lobby, life */
	ANSWER_BYTES = 16 + ANSWER_FDS * 4, /* of its rights */
	ANSWER_S = 20,                      /* the tracer may be at work for other processes */
	ANSWER_CHILD_S = 2,                 /* a child waits within malloc(3) */
};

struct address {
	uint16_t family;
	char path[30];
};
struct segment {
	void *at;
	uint64_t bytes;
};
struct message {
	void *name;
	uint32_t name_bytes, pad;
	struct segment *parts;
	uint64_t nparts;
	void *control;
	uint64_t control_bytes;
	int32_t flags, pad_too;
};
struct credentials {
	uint64_t bytes;
	int32_t level, type;
	uint32_t pid, uid, gid, pad;
};
struct rights {
	uint64_t bytes;
	int32_t level, type;
	int32_t fds[4]; /* one more than an answer has, as the kernel rounds up */
};

static uint64_t memory_bytes;
static uint32_t has_own; /* 1: this child has have_own_memory()'s in place of the recording's */
static uint64_t missed;  /* calls of a child before it has memory */

/* --- the tracer's answer --- */

/* Writes the socket's abstract address: a zero, the prefix, decimal digits. Returns its length. */
static uint32_t address_of(uint32_t name, struct address *ret)
{
	char digits[10], *p = ret->path;
	uint32_t n = 0;

	ret->family = AF_UNIX_;
	*p++ = 0;
	for (const char *from = WIRE_ALLOC_SOCKET; *from;)
		*p++ = *from++;
	do {
		digits[n++] = (char)('0' + name % 10);
		name /= 10;
	} while (name);
	while (n)
		*p++ = digits[--n];
	return (uint32_t)(p - (char *)ret);
}

/* Closes the descriptors of a message that is no answer: a stranger's, perhaps. */
static void close_rights(const struct rights *r)
{
	uint64_t head = (uintptr_t)r->fds - (uintptr_t)r;

	if (r->level != SOL_SOCKET_ || r->type != SCM_RIGHTS_)
		return;
	for (uint64_t i = 0; i < 4 && head + (i + 1) * sizeof(r->fds[0]) <= r->bytes; i++)
		sys2(SYS_CLOSE, (uint64_t)r->fds[i], 0);
}

/* Returns true for a process with the /proc of another pid namespace than its own. The kernel does
 * not name the tracer there. */
static int is_elsewhere(void)
{
	char text[12];
	int64_t n = sys4(SYS_READLINK, (uintptr_t) "/proc/self", (uintptr_t)text, sizeof(text), 0);
	uint64_t number = 0;

	for (int64_t i = 0; i < n; i++)
		number = number * 10 + (uint64_t)(text[i] - '0');
	return n > 0 && number != (uint64_t)sys2(SYS_GETPID, 0, 0);
}

/* Sends a hello by a socket, and waits for the answer. Returns the bytes of the memory, or 0. */
static uint64_t talk(uint64_t fd, uint32_t kind, int32_t fds[ANSWER_FDS])
{
	const struct recording *r = &state.recording;
	const int64_t timeout[2] = { kind == WIRE_ALLOC_FORKED ? ANSWER_CHILD_S : ANSWER_S, 0 };
	struct wire_alloc_hello hello = { WIRE_ALLOC_MAGIC, kind, r->secret };
	struct wire_alloc_answer answer = { 0 };
	struct address a = { .family = AF_UNIX_ };
	struct {
		struct credentials from;
		struct rights rights;
	} control = { 0 };
	const struct credentials *from = &control.from;
	const struct rights *rights = &control.rights;
	struct segment part = { &answer, sizeof(answer) };
	struct message m = {
		.parts = &part, .nparts = 1, .control = &control, .control_bytes = sizeof(control)
	};
	const int32_t yes = 1;
	uint32_t n;

	sys6(SYS_SETSOCKOPT, fd, SOL_SOCKET_, SO_RCVTIMEO_, (uintptr_t)timeout, sizeof(timeout), 0);
	sys6(SYS_SETSOCKOPT, fd, SOL_SOCKET_, SO_SNDTIMEO_, (uintptr_t)timeout, sizeof(timeout), 0);
	/* The kernel finds an address of its own for the answer, and says who sends that. */
	if (sys6(SYS_SETSOCKOPT, fd, SOL_SOCKET_, SO_PASSCRED_, (uintptr_t)&yes, sizeof(yes), 0) ||
	    sys4(SYS_BIND, fd, (uintptr_t)&a, sizeof(a.family), 0))
		return 0;
	n = address_of(r->name, &a);
	if (sys4(SYS_CONNECT, fd, (uintptr_t)&a, n, 0) ||
	    sys6(SYS_SENDTO, fd, (uintptr_t)&hello, sizeof(hello), 0, 0, 0) != sizeof(hello))
		return 0;
	if (r->lobby)
		alloc_ring_bell();
	if (sys4(SYS_RECVMSG, fd, (uintptr_t)&m, MSG_CMSG_CLOEXEC_, 0) != sizeof(answer) ||
	    answer.magic != WIRE_ALLOC_MAGIC || answer.proof != r->proof ||
	    (answer.bytes != WIRE_ALLOC_BYTES &&
	     answer.bytes != (uint64_t)WIRE_ALLOC_BYTES + WIRE_ALLOC_STACK_BYTES) ||
	    from->level != SOL_SOCKET_ || from->type != SCM_CREDENTIALS_ ||
	    (from->pid != r->tracer && (from->pid || !is_elsewhere())) ||
	    rights->bytes != ANSWER_BYTES || rights->level != SOL_SOCKET_ ||
	    rights->type != SCM_RIGHTS_) {
		close_rights(rights);
		return 0;
	}
	for (int i = 0; i < ANSWER_FDS; i++)
		fds[i] = rights->fds[i];
	return answer.bytes;
}

/* Returns true for a memory file of so many bytes with these seals. */
static int is_sealed(int32_t fd, uint64_t bytes, int64_t seals)
{
	int64_t has = sys4(SYS_FCNTL, (uint64_t)fd, F_GET_SEALS_, 0, 0);

	return has > 0 && (has & seals) == seals &&
	       sys4(SYS_LSEEK, (uint64_t)fd, 0, SEEK_END_, 0) == (int64_t)bytes;
}

/* Maps a memory file that nobody can make smaller. */
static void *map_shared(int32_t fd, uint64_t bytes, int64_t seals, uint64_t protection)
{
	int64_t at = -1;

	if (is_sealed(fd, bytes, F_SEAL_SHRINK_ | seals))
		at = sys6(SYS_MMAP, 0, bytes, protection, MAP_SHARED_, (uint64_t)fd, 0);
	if (at < 0 && at > -PAGE)
		return 0;
	/* a core would have all of it, though it is hardly used */
	sys4(SYS_MADVISE, (uint64_t)at, bytes, MADV_DONTDUMP, 0);
	return (void *)at;
}

/* Asks the tracer for memory, and maps it. Returns its bytes, or 0. */
static uint64_t join(uint32_t kind, struct wire_alloc **ret)
{
	struct recording *r = &state.recording;
	int64_t fd = sys4(SYS_SOCKET, AF_UNIX_, SOCK_DGRAM_CLOEXEC, 0, 0);
	uint64_t bytes = 0;
	int32_t fds[ANSWER_FDS];

	if (fd < 0)
		return 0;
	bytes = talk((uint64_t)fd, kind, fds);
	sys2(SYS_CLOSE, (uint64_t)fd, 0);
	if (!bytes)
		return 0;
	*ret = map_shared(fds[0], bytes, 0, PROT_READ_WRITE);
	if (!r->lobby)
		r->lobby = map_shared(fds[1], sizeof(*r->lobby), 0, PROT_READ_WRITE);
	if (!r->life)
		r->life = map_shared(fds[2], sizeof(*r->life), F_SEAL_FUTURE_WRITE_, PROT_READ_);
	for (int i = 0; i < ANSWER_FDS; i++)
		sys2(SYS_CLOSE, (uint64_t)fds[i], 0);
	if (!*ret || !r->lobby || !r->life || (*ret)->magic != WIRE_ALLOC_MAGIC ||
	    (*ret)->version != WIRE_ALLOC_VERSION)
		return 0;
	return bytes;
}

/* --- forks --- */

/* Runs in a forked child: gives it memory in place of the recording's, because the fork may have
 * been in a signal handler that returns to code which writes an event. */
static void have_own_memory(void)
{
	int64_t at;

	alloc_restore_environ();
	/* Another handler of the child may have called malloc(3) already. */
	if (alloc_quiet || !state.memory || state.page[PAGE_ASKED])
		return;
	at = sys6(SYS_MMAP, (uintptr_t)state.memory, memory_bytes, PROT_READ_WRITE, MAP_OWN_FIXED,
		  ~0ull, 0);
	if (at == (int64_t)(uintptr_t)state.memory) {
		sys4(SYS_MADVISE, (uint64_t)at, memory_bytes, MADV_DONTDUMP, 0);
		state.memory->done = 1; /* nobody serves it */
		has_own = 1;
	}
}

/* Runs in the parent after a fork. */
static void count_fork(void)
{
	if (*state.on)
		__atomic_fetch_add(&state.recording.lobby->forks, 1, __ATOMIC_RELAXED);
}

/* Keeps the recording's memory from forked children. A child that has given up its rights could
 * change the parent's recording and delay the parent. The child of a child has the handlers. */
static void keep_from_children(struct wire_alloc *m, uint64_t bytes)
{
	static uint32_t registered;

	memory_bytes = bytes;
	if (!registered && __register_atfork)
		registered = !__register_atfork(0, count_fork, have_own_memory, 0);
	else if (!registered && pthread_atfork)
		registered = !pthread_atfork(0, count_fork, have_own_memory);
	if (registered)
		sys4(SYS_MADVISE, (uintptr_t)m, bytes, MADV_DONTFORK, 0);
}

/* --- the beginning --- */

static int have_page(void)
{
	int64_t page = sys6(SYS_MMAP, 0, PAGE, PROT_READ_WRITE, MAP_PRIVATE_ANONYMOUS, ~0ull, 0);

	if (page < 0 && page > -PAGE)
		return 0;
	if (sys4(SYS_MADVISE, (uint64_t)page, PAGE, MADV_WIPEONFORK, 0))
		return 0;
	state.page = (uint32_t *)page;
	return 1;
}

/* Gets memory for the blocks of threads. A forked child has that of its parent, which it clears. */
static void have_owns(void)
{
	int64_t at;

	if (state.owns)
		return;
	at = sys6(SYS_MMAP, 0, sizeof(*state.owns) * ALLOC_OWN * WIRE_ALLOC_RINGS, PROT_READ_WRITE,
		  MAP_PRIVATE_NORESERVE, ~0ull, 0);
	if (at >= 0 || at <= -PAGE)
		state.owns = (struct alloc_own *)at;
}

static void record_into(struct wire_alloc *m, uint64_t bytes)
{
	state.memory = m;
	have_owns();
	state.rings = WIRE_ALLOC_RINGS;
	keep_from_children(m, bytes);
	state.page[PAGE_ASKED] = 1;
	state.page[PAGE_ON] = 1;
	state.on = &state.page[PAGE_ON];
	m->own = state.hidden;
	__atomic_store_n(&m->hello, 1, __ATOMIC_RELEASE);
	if (bytes > WIRE_ALLOC_BYTES)
		alloc_walks_open(m);
}

/* claim() looks at state.rings again when it has a ring, so that one of them sees the other. */
void alloc_shrink(void)
{
	enum { SPARE = 3 }; /* for threads that begin later */
	static uint32_t busy;
	struct wire_alloc *m = state.memory;
	const uint32_t before = state.rings;
	uint32_t keep = 0;
	uint64_t bytes;

	/* the memory of stacks is behind the rings */
	if (!state.on || !*state.on || alloc_quiet || state.walks ||
	    memory_bytes != WIRE_ALLOC_BYTES || __atomic_exchange_n(&busy, 1, __ATOMIC_SEQ_CST))
		return;
	for (uint32_t i = 0; i < before; i++)
		if ((uint32_t)__atomic_load_n(&m->rings[i].owner, __ATOMIC_SEQ_CST))
			keep = i + 1;
	keep = keep + SPARE < before ? keep + SPARE : before;
	__atomic_store_n(&state.rings, keep, __ATOMIC_SEQ_CST);
	for (uint32_t i = keep; i < before; i++)
		if ((uint32_t)__atomic_load_n(&m->rings[i].owner, __ATOMIC_SEQ_CST))
			keep = i + 1;
	__atomic_store_n(&state.rings, keep, __ATOMIC_SEQ_CST);
	bytes = WIRE_ALLOC_HEAD + (uint64_t)keep * WIRE_ALLOC_RING;
	memory_bytes = bytes;
	sys2(SYS_MUNMAP, (uintptr_t)m + bytes, WIRE_ALLOC_BYTES - bytes);
	__atomic_store_n(&busy, 0, __ATOMIC_SEQ_CST);
}

void alloc_begin(void)
{
	struct wire_alloc *m;
	uint64_t bytes = join(WIRE_ALLOC_BEGINS, &m);

	if (bytes && have_page())
		record_into(m, bytes);
}

void alloc_follow(struct thread *t, uintptr_t frame)
{
	struct wire_alloc_lobby *l = state.recording.lobby;
	struct wire_alloc *m;
	uint64_t bytes = 0;

	if (!alloc_is_open() || (t->in && frame < t->in))
		return;
	/* the fork was in a signal handler: the code below it writes an event of the parent */
	if (t->writing && frame < t->writing) {
		missed++;
		return;
	}
	/* a thread of the child may ask, too */
	if (__atomic_exchange_n(&state.page[PAGE_ASKED], 1, __ATOMIC_SEQ_CST))
		return;
	if (!alloc_quiet) {
		if (has_own)
			sys2(SYS_MUNMAP, (uintptr_t)state.memory, memory_bytes);
		has_own = 0;
		state.memory = 0;
		bytes = join(WIRE_ALLOC_FORKED, &m);
	}
	if (!bytes) {
		__atomic_fetch_add(&l->refused, 1, __ATOMIC_RELAXED);
		return;
	}
	*t = (struct thread){ .in = t->in };
	state.claims = state.several = 0;
	alloc_walks_drop(); /* before any thread records */
	m->unheard += missed;
	missed = 0;
	record_into(m, bytes);
}
