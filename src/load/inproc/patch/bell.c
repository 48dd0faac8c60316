/* Bells: a traced process calls its tracer. A bell is a probe of descry's own, at a place where the
 * tracer has work to do before the thread goes on: libraries come (follow/loads.c), or a program is
 * about to be executed (follow/execs.c). The bell writes the request down and adds one to a word in
 * shared memory, which wakes the tracer (inproc_bells.c). Then it waits for the answer, at most
 * BELL_MS, which a tracer on a busy machine may need. It does not wait when the tracer is not
 * looking: the tracer sets `on` at each look, so threads wait only once for a tracer that is
 * stopped. When the tracer has ended, its watchdog answers.
 */
#define _GNU_SOURCE
#include <assert.h>
#include <limits.h>
#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>

#include "load/inproc/patch/bell.h"
#include "load/inproc/state/area.h"

/* --- in the process --- */

/* Called by a stub of kind ENTRY. Keeps every register. bell_code() fills in the words at its end
 * for each place. System calls do not change vector registers. */
extern const uint8_t bell_blob[], bell_blob_words[], bell_blob_end[];
/* clang-format off */
__asm__(".pushsection .rodata\n"
	".globl bell_blob, bell_blob_words, bell_blob_end\n"
	".hidden bell_blob, bell_blob_words, bell_blob_end\n"
	"bell_blob:\n"
	"	endbr64\n"
	"	pushfq\n"
	"	push %rax\n	push %rcx\n	push %rdx\n	push %rsi\n	push %rdi\n"
	"	push %r8\n	push %r9\n	push %r10\n	push %r11\n"
	"	mov 1f(%rip), %rax\n"           /* armed */
	"	cmpl $0, (%rax)\n"
	"	je 8f\n"
	"	mov 2f(%rip), %rax\n"           /* quiet */
	"	cmpl $0, (%rax)\n"
	"	jne 8f\n"
	"	mov 0f(%rip), %rax\n"           /* wire_kept.quiet */
	"	cmpl $0, (%rax)\n"
	"	jne 8f\n"
	"	mov 3f(%rip), %r8\n"            /* struct inproc_bell */
	"	mov 9f(%rip), %eax\n"           /* what */
	"	test %eax, %eax\n"
	"	jnz 6f\n"
	"	mov $186, %eax\n"               /* gettid, before the number is taken */
	"	syscall\n"
	"6:	mov %eax, %esi\n"
	"	mov $1, %r9d\n"
	"	lock xadd %r9d, (%r8)\n"
	"	mov %r9d, %edx\n"
	"	and $63, %edx\n"
	"	shl $4, %edx\n"
	"	lea 128(%r8,%rdx), %r10\n"      /* its struct inproc_ask */
	"	mov 32(%rsp), %rax\n"           /* the original rdi */
	"	mov %rax, 8(%r10)\n"
	"	mov %esi, (%r10)\n"
	"	inc %r9d\n"                     /* the value of `answered` to wait for */
	"	cmpl $0, 4(%r8)\n"
	"	je 8f\n"
	"	mov %r8, %rdi\n"
	"	mov $1, %esi\n"                 /* FUTEX_WAKE */
	"	mov $1, %edx\n"
	"	mov $202, %eax\n"
	"	syscall\n"
	"	push $75\n"                     /* BELL_MS / 20 */
	"5:	mov 64(%r8), %edx\n"
	"	mov %edx, %eax\n"
	"	sub %r9d, %eax\n"
	"	jns 7f\n"
	"	lea 64(%r8), %rdi\n"
	"	xor %esi, %esi\n"               /* FUTEX_WAIT */
	"	lea 4f(%rip), %r10\n"
	"	mov $202, %eax\n"
	"	syscall\n"
	"	decq (%rsp)\n"
	"	jnz 5b\n"
	"	movl $0, 4(%r8)\n"              /* no tracer is there */
	"7:	pop %rax\n"
	"8:	pop %r11\n	pop %r10\n	pop %r9\n	pop %r8\n"
	"	pop %rdi\n	pop %rsi\n	pop %rdx\n	pop %rcx\n	pop %rax\n"
	"	popfq\n"
	"	ret\n"
	"	.balign 8\n"
	"bell_blob_words:\n"
	"1:	.quad 0\n"
	"2:	.quad 0\n"
	"3:	.quad 0\n"
	"9:	.quad 0\n"
	"0:	.quad 0\n"
	"4:	.quad 0, 20000000\n"            /* 20 ms */
	"bell_blob_end:\n"
	".popsection\n");
/* clang-format on */

void bell_code(const struct inproc_engine *e, uint64_t armed, uint64_t quiet, uint32_t what,
	       uint8_t *mem)
{
	const uint64_t words[] = { armed, quiet, (uintptr_t)e->bells.bell, what,
				   e->addr + WIRE_PRIVATE + WIRE_KEPT +
					   offsetof(struct wire_kept, quiet) };

	_Static_assert(offsetof(struct inproc_bell, on) == 4 &&
			       offsetof(struct inproc_bell, answered) == 64 &&
			       offsetof(struct inproc_bell, asks) == 128 && BELL_ASKS == 64 &&
			       sizeof(struct inproc_ask) == 16,
		       "what the code reads and writes");
	assert(bell_blob_end - bell_blob <= BELL_ROOM);
	memcpy(mem, bell_blob, (size_t)(bell_blob_end - bell_blob));
	memcpy(mem + (bell_blob_words - bell_blob), words, sizeof(words));
}

bool bell_hang(struct inproc_engine *e)
{
	if (!e->bells.bell)
		e->bells.bell = (struct inproc_bell *)area_alloc_shared(e, sizeof(*e->bells.bell));
	if (e->bells.bell) {
		e->area->bell = (uintptr_t)e->bells.bell;
		e->bells.bell->on = 1; /* the tracer looks soon */
	}
	return e->bells.bell;
}

/* --- in the tracer --- */

bool bell_rings(const struct inproc_engine *e)
{
	return e->bells.bell &&
	       __atomic_load_n(&e->bells.bell->asked, __ATOMIC_ACQUIRE) != e->bells.seen;
}

static void answer(struct inproc_bell *b, uint32_t seen)
{
	__atomic_store_n(&b->answered, seen, __ATOMIC_RELEASE);
	syscall(SYS_futex, &b->answered, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void bell_answer(struct inproc_engine *e)
{
	if (e->bells.bell && e->bells.bell->answered != e->bells.seen)
		answer(e->bells.bell, e->bells.seen);
}

void bell_silence(struct inproc_bell *b)
{
	__atomic_store_n(&b->on, 0, __ATOMIC_SEQ_CST);
	answer(b, __atomic_load_n(&b->asked, __ATOMIC_SEQ_CST));
}

void bell_stop(struct inproc_engine *e)
{
	if (!e->bells.bell)
		return;
	bell_silence(e->bells.bell);
	e->bells.seen = e->bells.bell->answered;
}
