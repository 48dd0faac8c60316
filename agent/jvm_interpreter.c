/* Makes HotSpot's interpreter pass the probes of methods for which it has no code. */
#include "agent/jvm_interpreter.h"
#include "wire/java_value.h"
#include "wire/jvm_text.h"

/* Java 25 (templateInterpreter.hpp, bytecodes.hpp, globalDefinitions.hpp). */
enum {
	ENTRIES = 2, /* of methods in bytecode: plain, synchronized */
	STATES = 10, /* kinds of value that a bytecode finds in rax or xmm0 */
	CODES = 256,
};
static const uint8_t returns[] = {
	172, 173, 174, 175, 176, 177, 232 /* of the constructor of Object */
};

/* What the code below needs. */
uint64_t descry_java_entry_at, descry_java_const_at, descry_java_parameters_at, descry_java_code_at,
	descry_java_entered, descry_java_left, descry_java_leaves;
uint64_t descry_java_entries[ENTRIES];
uint64_t descry_java_codes[STATES * CODES];

extern const uint8_t descry_java_enter_0[], descry_java_enter_1[], descry_java_leave_0[],
	descry_java_leave_1[], descry_java_leave_by_exception[];

#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)

/* enter: rbx has the Method, r13 the caller's stack pointer, r15 the thread; the arguments are on
 * the stack. Everything else is free. The first frame has the words of frame_x86.hpp.
 *
 * leave: rax or xmm0 may have the result, rbx has the bytecode, rbp is the interpreter's frame. A
 * method that has no probe at its entry has none here.
 *
 * Both make a second frame, whose return address is where they go on in the interpreter, so that
 * stacks show the method. The code has no unwind table: stacks are followed by rbp. */
__asm__(".text\n"
	".macro descry_enter n\n"
	"	.balign 16\n"
	"	.hidden descry_java_enter_\\n\n"
	"	.globl descry_java_enter_\\n\n"
	"descry_java_enter_\\n:\n"
	"	push %rbp\n"
	"	mov %rsp, %rbp\n"
	"	push %r13\n" /* the caller's stack pointer */
	"	push $0\n"   /* our own: none */
	"	push %rbx\n"
	"	push $0\n" /* the class's object, its profile, its constants: none */
	"	push $0\n"
	"	push $0\n"
	"	mov descry_java_const_at(%rip), %rax\n"
	"	mov (%rbx, %rax), %rax\n"
	"	mov descry_java_parameters_at(%rip), %rcx\n"
	"	movzwl (%rax, %rcx), %ecx\n"
	"	inc %ecx\n"
	"	push %rcx\n" /* the first argument, in words from rbp */
	"	add descry_java_code_at(%rip), %rax\n"
	"	push %rax\n" /* the bytecode */
	"	push descry_java_entries + 8 * \\n(%rip)\n"
	"	push %rbp\n"
	"	mov %rsp, %rbp\n"
	"	mov $" TEXT(
		WIRE_JAVA_ENTERING) ", %rax\n"
				    "	push %rax\n"
				    "	mov %r15, %rdi\n"
				    "	mov %rbx, %rsi\n"
				    "	and $-16, %rsp\n"
				    "	call *descry_java_entered(%rip)\n"
				    "	leave\n"
				    "	leave\n"
				    "	jmp *descry_java_entries + 8 * \\n(%rip)\n"
				    ".endm\n"
				    ".macro descry_leave\n" /* where it goes on is on the stack */
				    "	push %rbp\n"
				    "	mov %rsp, %rbp\n"
				    "	push %rbx\n"
				    "	push %rax\n"
				    "	sub $16, %rsp\n"
				    "	movsd %xmm0, (%rsp)\n"
				    "	mov (%rbp), %rcx\n"
				    "	mov -24(%rcx), %rsi\n"
				    "	mov descry_java_entry_at(%rip), %rcx\n"
				    "	mov (%rsi, %rcx), %rcx\n"
				    "	lea descry_java_enter_0(%rip), %rdx\n"
				    "	cmp %rdx, %rcx\n"
				    "	je 1f\n"
				    "	lea descry_java_enter_1(%rip), %rdx\n"
				    "	cmp %rdx, %rcx\n"
				    "	jne 2f\n"
				    "1:	mov %r15, %rdi\n"
				    "	mov %rsp, %rbx\n"
				    "	and $-16, %rsp\n"
				    "	call *descry_java_left(%rip)\n"
				    "	mov %rbx, %rsp\n"
				    "2:	movsd (%rsp), %xmm0\n"
				    "	add $16, %rsp\n"
				    "	pop %rax\n"
				    "	pop %rbx\n"
				    "	pop %rbp\n"
				    "	pop %rcx\n"
				    "	jmp *%rcx\n"
				    ".endm\n"
				    "descry_enter 0\n"
				    "descry_enter 1\n"
				    ".balign 16\n"
				    ".hidden descry_java_leave_by_exception\n"
				    ".globl descry_java_leave_by_exception\n"
				    "descry_java_leave_by_exception:\n"
				    "	push descry_java_leaves(%rip)\n"
				    "	descry_leave\n"
				    ".macro descry_leaves state\n"
				    "	.balign 128\n"
				    "descry_java_leave_\\state:\n"
				    "	lea descry_java_codes + 2048 * \\state(%rip), %rcx\n"
				    "	push (%rcx, %rbx, 8)\n"
				    "	descry_leave\n"
				    ".endm\n"
				    ".irp state, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9\n"
				    "	descry_leaves \\state\n"
				    ".endr\n"
				    ".hidden descry_java_leave_0, descry_java_leave_1\n"
				    ".globl descry_java_leave_0, descry_java_leave_1\n");

static uint64_t numbers[JAVA_INTERPRETER_NUMBERS];
static uint32_t holders;

static uint64_t address(const uint8_t *code)
{
	return (uintptr_t)code;
}

static uint64_t *words(enum java_interpreter table)
{
	return (uint64_t *)(uintptr_t)numbers[table];
}

static void exchange(uint64_t *at, uint64_t from, uint64_t to)
{
	__atomic_compare_exchange_n(at, &from, to, 0, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
}

/* The JVM copies the normal table to the active one when a safepoint ends, so what this misses
 * there is done at the next one. At a safepoint, its table calls the JVM and goes on by the normal
 * one. */
static void turn(uint32_t i, uint64_t from, uint64_t to)
{
	__atomic_store_n(words(JAVA_NORMAL_TABLE) + i, to, __ATOMIC_SEQ_CST);
	exchange(words(JAVA_ACTIVE_TABLE) + i, from, to);
}

static void turn_returns(int on)
{
	const uint64_t size = address(descry_java_leave_1) - address(descry_java_leave_0);

	for (uint32_t state = 0; state < STATES; state++)
		for (uint32_t r = 0; r < sizeof(returns); r++) {
			const uint32_t i = state * CODES + returns[r];
			const uint64_t ours = address(descry_java_leave_0) + state * size;

			if (on) {
				descry_java_codes[i] = words(JAVA_NORMAL_TABLE)[i];
				turn(i, descry_java_codes[i], ours);
			} else {
				turn(i, ours, descry_java_codes[i]);
			}
		}
}

static void turn_on(void)
{
	descry_java_entry_at = numbers[JAVA_METHOD_ENTRY];
	descry_java_const_at = numbers[JAVA_METHOD_CONST];
	descry_java_parameters_at = numbers[JAVA_CONST_PARAMETERS];
	descry_java_code_at = numbers[JAVA_CONST_CODE];
	descry_java_entered = numbers[JAVA_ENTERED];
	descry_java_left = numbers[JAVA_LEFT];
	for (uint32_t i = 0; i < ENTRIES; i++)
		descry_java_entries[i] = words(JAVA_ENTRIES)[i];
	descry_java_leaves = *words(JAVA_LEAVES_BY_EXCEPTION);
	turn_returns(1);
	exchange(words(JAVA_LEAVES_BY_EXCEPTION), descry_java_leaves,
		 address(descry_java_leave_by_exception));
}

const char *jvm_interpreter_take(const char *text)
{
	uint32_t n = 0;

	if (*text != '#')
		return 0;
	for (uint64_t v = 0; n < JAVA_INTERPRETER_NUMBERS;) {
		const char c = *++text;

		if (c >= '0' && c <= '9') {
			v = v << 4 | (uint64_t)(c - '0');
		} else if (c >= 'a' && c <= 'f') {
			v = v << 4 | (uint64_t)(c - 'a' + 10);
		} else {
			if (!holders)
				numbers[n] = v;
			n++;
			v = 0;
			if (c != ',')
				break;
		}
	}
	if (n != JAVA_INTERPRETER_NUMBERS)
		return 0;
	if (!holders++)
		turn_on();
	return text;
}

void jvm_interpreter_drop(void)
{
	if (--holders)
		return;
	exchange(words(JAVA_LEAVES_BY_EXCEPTION), address(descry_java_leave_by_exception),
		 descry_java_leaves);
	turn_returns(0);
}

void jvm_interpreter_mark(jvm_ref method, int wanted)
{
	const uint64_t ours[ENTRIES] = { address(descry_java_enter_0),
					 address(descry_java_enter_1) };
	const uint64_t at = *(uint64_t *)method;
	uint64_t *entry = (uint64_t *)(at + numbers[JAVA_METHOD_ENTRY]);
	uint64_t *from = (uint64_t *)(at + numbers[JAVA_METHOD_FROM]);

	for (uint32_t i = 0; at && i < ENTRIES; i++) {
		const uint64_t is = wanted ? descry_java_entries[i] : ours[i];
		const uint64_t becomes = wanted ? ours[i] : descry_java_entries[i];

		if (*entry != is)
			continue;
		/* The JVM copies it to the other one when it gives the method's code up. */
		__atomic_store_n(entry, becomes, __ATOMIC_SEQ_CST);
		exchange(from, is, becomes);
		return;
	}
}
