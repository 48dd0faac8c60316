/* A process for compiled programs to run in, inside the test: the engine's memory at addresses that
 * the kernel picks, an agent whose entries jump to C functions, one thread, maps, hand-made
 * stubs. */
#ifndef DESCRY_TEST_JIT_MOCK_H
#define DESCRY_TEST_JIT_MOCK_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <asm/prctl.h>
#include <errno.h>
#include <linux/membarrier.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/mem.h"
#include "compile/jit/jit.h"
#include "data/image.h"

enum { MOCK_CODE = 1 << 20, MOCK_AREA = 1 << 20, MOCK_MAPS = 12, MOCK_PROGRAM = 64 << 10 };

struct mock {
	uint8_t *code, *area;
	uint32_t call; /* of mock_stub()'s struct wire_stub */
	struct wire_private *private;
	uint8_t *stack; /* the probe stack's lowest byte */
	struct wire_area *head;
	struct wire_thread *thread;
	struct wire_own *own;            /* above the stack */
	struct wire_thread_entry *entry; /* what leads to the thread */
	struct wire_map *maps;
	uint64_t addrs[MOCK_MAPS];
	struct jit_env env;
	struct jit_code out;
	uint32_t used; /* bytes of the area given out */
	/* the agent's record */
	uint32_t calls[WIRE_AGENT_ENTRY_COUNT];
	uint64_t args[6];                                           /* of the last helper */
	uint32_t insn;                                              /* of the last violation */
	uint64_t result;                                            /* helpers give this */
	uint64_t nested;                                            /* nested() gives this */
	struct wire_thread *give;                                   /* thread() gives this */
	uint64_t (*helper)(uint32_t entry, const uint64_t args[6]); /* or this runs */
};
static struct mock mock;
static bool mock_far
	__attribute__((unused)); /* the area is not within reach of RIP-relative operands */

static uint64_t mock_entry(uint32_t entry, const uint64_t args[6])
{
	mock.calls[entry]++;
	memcpy(mock.args, args, sizeof(mock.args));
	switch (entry) {
	case WIRE_AGENT_violation: mock.insn = (uint32_t)args[0]; return 0;
	case WIRE_AGENT_nested: return mock.nested;
	case WIRE_AGENT_thread: return (uintptr_t)mock.give;
	}
	return mock.helper ? mock.helper(entry, args) : mock.result;
}

/* An entry in the C ABI. It clobbers all registers that it may, so that no code relies on them. */
__asm__(".text\n"
	"mock_common:\n" /* eax: entry */
	"	push %rbp\n"
	"	mov %rsp, %rbp\n"
	"	and $-16, %rsp\n"
	"	cmp %rsp, %rbp\n" /* the caller's stack was aligned as the ABI has it */
	"	je 1f\n"
	"	ud2\n"
	"1:	sub $48, %rsp\n"
	"	mov %rdi, 0(%rsp)\n"
	"	mov %rsi, 8(%rsp)\n"
	"	mov %rdx, 16(%rsp)\n"
	"	mov %rcx, 24(%rsp)\n"
	"	mov %r8, 32(%rsp)\n"
	"	mov %r9, 40(%rsp)\n"
	"	mov %eax, %edi\n"
	"	mov %rsp, %rsi\n"
	"	call *mock_target(%rip)\n"
	"	leave\n"
	"	mov $0x5a5a5a5a5a5a5a5a, %r11\n"
	"	mov %r11, %r10\n"
	"	mov %r11, %r9\n"
	"	mov %r11, %r8\n"
	"	mov %r11, %rdi\n"
	"	mov %r11, %rsi\n"
	"	mov %r11, %rdx\n"
	"	mov %r11, %rcx\n"
	"	ret\n"
	".data\n"
	"mock_target: .quad 0\n"
	".text\n");
extern uint64_t (*mock_target)(uint32_t, const uint64_t *);
extern const char mock_common[];

static void *mock_map_at(uintptr_t hint, size_t size, int prot)
{
	void *p = mmap((void *)hint, size, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		abort();
	return p;
}

static void *mock_map(size_t size, int prot)
{
	return mock_map_at(0, size, prot);
}

static void mock_init(void)
{
	struct wire_agent_head *h;
	uint8_t *p;

	memset(&mock, 0, sizeof(mock));
	mock_target = mock_entry;
	mock.code = mock_map(MOCK_CODE, PROT_READ | PROT_WRITE | PROT_EXEC);
	mock.area = mock_map_at(mock_far ? 0x200000000000 : 0, MOCK_AREA, PROT_READ | PROT_WRITE);
	mock.private = mock_map(WIRE_KEPT + 4096, PROT_READ | PROT_WRITE);
	mock.stack = mock_map(WIRE_PROBE_STACK + 8192, PROT_READ | PROT_WRITE);
	h = (void *)mock.code;
	h->magic = WIRE_AREA_MAGIC;
	h->nentries = WIRE_AGENT_ENTRY_COUNT;
	p = mock.code + sizeof(*h);
	for (uint32_t i = 0; i < WIRE_AGENT_ENTRY_COUNT; i++) {
		uint64_t to = (uintptr_t)mock_common;

		h->entry[i] = (uint32_t)(p - mock.code);
		*p++ = 0xb8; /* mov $i, %eax */
		memcpy(p, &i, 4);
		p += 4;
		*p++ = 0x49; /* mov $to, %r11; jmp *%r11 */
		*p++ = 0xbb;
		memcpy(p, &to, 8);
		p += 8;
		*p++ = 0x41;
		*p++ = 0xff;
		*p++ = 0xe3;
	}
	mock.head = (void *)mock.area;
	mock.head->entries = (uintptr_t)mock.private->threads;
	mock.thread = (void *)(mock.area + 8192);
	mock.maps = (void *)(mock.area + 4096);
	mock.used = 32768;
	mock.own = (void *)(mock.stack + WIRE_PROBE_STACK);
	mock.entry = &mock.private->self;
	*mock.entry =
		(struct wire_thread_entry){ .thread = (uintptr_t)mock.thread, .rsp = WIRE_IDLE };
	mock.own->entry = (uintptr_t)mock.entry;
	mock.give = mock.thread;
	mock.env = (struct jit_env){
		.maps = mock.maps,
		.map_addrs = mock.addrs,
		.area = (uintptr_t)mock.area,
		.area_size = MOCK_AREA,
		.shared = (uintptr_t)mock.area,
		.agent = (uintptr_t)mock.code,
		.head = h,
		.private = (uintptr_t)mock.private,
		.stacks = (uintptr_t)mock.own - ((uintptr_t)mock.thread >> 2),
		.stack_shift = 2,
		.identity = WIRE_ID_FS64,
		.code = (uintptr_t)mock.code + MOCK_PROGRAM,
	};
}

__attribute__((unused)) static void mock_fini(void)
{
	jit_code_fini(&mock.out);
	munmap(mock.code, MOCK_CODE);
	munmap(mock.area, MOCK_AREA);
	munmap(mock.private, WIRE_KEPT + 4096);
	munmap(mock.stack, WIRE_PROBE_STACK + 8192);
}

/* The thread is not known: the agent finds it. */
__attribute__((unused)) static void mock_forget_thread(void)
{
	memset(mock.private, 0, sizeof(*mock.private));
	mock.entry = &mock.private->self;
	*mock.entry =
		(struct wire_thread_entry){ .thread = (uintptr_t)mock.thread, .rsp = WIRE_IDLE };
	mock.own->entry = (uintptr_t)mock.entry;
}

/* This thread is found by its identity word. */
__attribute__((unused)) static void mock_know_thread(void)
{
	uint64_t key;

	__asm__("mov %%fs:0, %0" : "=r"(key));
	if (mock.env.identity == WIRE_ID_FS32)
		key = (uint32_t)key;
	mock.entry = &mock.private->threads[wire_thread_hash(key, mock.env.identity)];
	*mock.entry = (struct wire_thread_entry){ key, (uintptr_t)mock.thread, WIRE_IDLE, 0 };
	mock.own->entry = (uintptr_t)mock.entry;
}

/* Index of a new map; arrays get their memory, per thread in the slot at 1024 + 4096 * index. */
static uint32_t mock_add_map(enum wire_map_kind kind, uint32_t value_size, uint32_t entries)
{
	uint32_t i = mock.env.nmaps++;
	struct wire_map *m = &mock.maps[i];

	*m = (struct wire_map){ .kind = kind,
				.role = MAP_OTHER,
				.key_size = 4,
				.value_size = value_size,
				.stride = (value_size + 7) & ~7u,
				.max_entries = entries,
				.index = i };
	mock.addrs[i] = (uintptr_t)m;
	if (kind == WIRE_MAP_ARRAY) {
		m->base = (uintptr_t)mock.area + mock.used;
		mock.used += m->stride * entries;
	} else {
		m->base = 1024 + 2048 * i;
		m->gen_stride = 1024;
	}
	return i;
}

static void *mock_value(uint32_t map, uint32_t key)
{
	const struct wire_map *m = &mock.maps[map];
	uint64_t at = m->base + (uint64_t)key * m->stride;

	return (void *)(uintptr_t)(m->kind == WIRE_MAP_ARRAY ? at : (uintptr_t)mock.thread + at);
}

/* Code replaces other code, which another CPU may have run a moment ago. Without this, a processor
 * may continue with its decoded old code (seen: a fault at an instruction that touches no
 * memory). */
static void mock_sync(void)
{
	static int registered;
	uint32_t a = 0, b, c = 0, d;

	if (!registered)
		registered = syscall(SYS_membarrier,
				     MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE, 0, 0)
				     ? -1
				     : 1;
	if (registered > 0)
		syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE, 0, 0);
	__asm__ volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d) : : "memory");
}

static struct err *mock_compile(const struct bpf_insn *p, uint32_t n)
{
	struct err *e;

	jit_code_fini(&mock.out);
	e = jit_compile(p, n, &mock.env, &mock.out);
	if (!e) {
		if (mock.out.size > MOCK_CODE - MOCK_PROGRAM - 4096)
			abort();
		memcpy(mock.code + MOCK_PROGRAM, mock.out.bytes, mock.out.size);
		mock_sync();
	}
	return e;
}

/* From the tracer's side. */
__attribute__((unused)) static uint64_t mock_host(void *ctx, uint64_t cookie)
{
	uint64_t (*run)(struct wire_thread *, void *, uint64_t);

	run = (void *)(mock.code + MOCK_PROGRAM + mock.out.host);
	return run(mock.thread, ctx, cookie);
}

/* Instructions: r0 = the value of key 0 in map number `map`, 0 none. */
#define MOCK_LOOKUP(map) \
	ST(DW, 10, -8, 0), LD64(1, BPF_PSEUDO_MAP_FD, map), ALU64_REG(MOV, 2, 10), \
		ALU64_IMM(ADD, 2, -8), CALL(BPF_FUNC_map_lookup_elem)

/* Writes the code between struct wire_stub and the moved instructions of a stub: a call of the
 * thunk of this kind. Sets *slot, which must be within reach, to the thunk's address. Returns the
 * end. */
__attribute__((unused)) static uint8_t *mock_put_call(uint8_t *p, enum wire_stub_kind kind,
						      uint64_t *slot)
{
	int32_t rel;

	*slot = (uintptr_t)mock.code + MOCK_PROGRAM + mock.out.thunk[kind];
	if (kind >= WIRE_STUB_MID) {
		memcpy(p, "\x48\x8d\x64\x24\x80", 5);
		p += 5;
	}
	rel = (int32_t)((uint8_t *)slot - (p + 6));
	memcpy(p, "\xff\x15", 2);
	memcpy(p + 2, &rel, 4);
	p += 6;
	if (kind >= WIRE_STUB_MID) {
		memcpy(p, "\x48\x8d\xa4\x24\x80\x00\x00\x00", 8);
		p += 8;
	}
	return p;
}

/* A stub that calls the thunk of its kind and returns: `site` shows as its place. */
__attribute__((unused)) static void *mock_stub(enum wire_stub_kind kind, uint64_t site,
					       uint32_t probe)
{
	struct wire_stub *s = (void *)(mock.code + MOCK_CODE - 256 + 64 * (kind & 3));
	uint8_t *entry = (uint8_t *)(s + 1);

	*s = (struct wire_stub){ site, probe, kind | mock.call << WIRE_STUB_CALL_SHIFT };
	*mock_put_call(entry, kind, (uint64_t *)(entry + 40)) = 0xc3;
	return entry;
}

#endif
