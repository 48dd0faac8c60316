/* A program that checks whether its probes are enabled, as a dtrace -G makes it: DOF with places of
 * questions, and an instruction that answers no in place of each call.
 *
 *	provider desk { probe hello(int n); probe bye(int n); probe idle(); };
 *
 * The question for hello returns a value. That for bye answers through a pointer, as since Oracle's
 * DTrace 2. That for idle is in a function of its own, which returns the question's value. Prints
 * for each how often the answer was "enabled".
 */
#include <stdio.h>
#include <stdlib.h>

/* 1 when the answer was "enabled"; the probe is behind the question */
int hello(int n);
int bye(int n);
int is_idle(void);
void idle(void);

#define NO ".byte 0x48, 0x33, 0xc0\n" /* xor %rax,%rax */
#define PLACE ".byte 0x90, 0x90, 0x90, 0x90, 0x90\n"

__asm__(".text\n"
	".globl hello\n"
	".type hello, @function\n"
	"hello:	push %rbx\n"
	"	mov %edi, %ebx\n" NO "hello_ask: nop\n"
	"	nop\n"
	"	test %eax, %eax\n"
	"	je 1f\n"
	"	mov %ebx, %edi\n"
	"hello_at: " PLACE "	mov $1, %eax\n"
	"1:	pop %rbx\n"
	"	ret\n"
	".size hello, . - hello\n"
	".globl bye\n"
	".type bye, @function\n"
	"bye:	push %rbx\n"
	"	sub $16, %rsp\n"
	"	mov %edi, %ebx\n"
	"	movl $0, 12(%rsp)\n"
	"	lea 12(%rsp), %rdi\n" NO "bye_ask: nop\n"
	"	nop\n"
	"	mov 12(%rsp), %eax\n"
	"	test %eax, %eax\n"
	"	je 1f\n"
	"	mov %ebx, %edi\n"
	"bye_at: " PLACE "	mov 12(%rsp), %eax\n"
	"1:	add $16, %rsp\n"
	"	pop %rbx\n"
	"	ret\n"
	".size bye, . - bye\n"
	".globl is_idle\n"
	".type is_idle, @function\n"
	"is_idle: " NO "idle_ask: ret\n"
	"	nop\n"
	".size is_idle, . - is_idle\n"
	".globl idle\n"
	".type idle, @function\n"
	"idle:	nop\n"
	"idle_at: " PLACE "	ret\n"
	".size idle, . - idle\n");

/* header, 6 section headers, then what they describe */
__asm__(".section .SUNW_dof, \"aw\"\n"
	".balign 8\n"
	"dof: .byte 0x7f, 'D', 'O', 'F', 2, 1, 2, 2, 8, 8, 0, 0, 0, 0, 0, 0\n"
	"	.long 0, 64, 32, 6\n"
	"	.quad 64, dof_end - dof, dof_end - dof, 0\n"
	"	.long 8, 1, 1, 0\n	.quad dof_strings - dof, dof_provider - dof_strings\n"
	"	.long 15, 4, 1, 0\n	.quad dof_provider - dof, dof_probes - dof_provider\n"
	"	.long 16, 8, 1, 48\n	.quad dof_probes - dof, dof_args - dof_probes\n"
	"	.long 17, 1, 1, 1\n	.quad dof_args - dof, dof_offs - dof_args\n"
	"	.long 18, 4, 1, 4\n	.quad dof_offs - dof, dof_asks - dof_offs\n"
	"	.long 26, 4, 1, 4\n	.quad dof_asks - dof, dof_end - dof_asks\n"
	"dof_strings: .byte 0\n"
	"s_desk: .asciz \"desk\"\n"
	"s_hello: .asciz \"hello\"\n"
	"s_bye: .asciz \"bye\"\n"
	"s_idle: .asciz \"idle\"\n"
	"s_is_idle: .asciz \"is_idle\"\n"
	"s_int: .asciz \"int\"\n"
	"	.balign 8\n"
	"dof_provider: .long 0, 2, 3, 4, s_desk - dof_strings, 0, 0, 0, 0, 0, 5\n"
	"	.balign 8\n"
	/* addr | func name nargv xargv argidx offidx | nargc xargc noffs enoffidx nenoffs */
	"dof_probes: .quad hello\n"
	"	.long s_hello - dof_strings, s_hello - dof_strings, s_int - dof_strings, s_int - dof_strings, 0, 0\n"
	"	.byte 1, 1\n	.short 1\n	.long 0\n	.short 1, 0\n	.long 0\n"
	"	.quad bye\n"
	"	.long s_bye - dof_strings, s_bye - dof_strings, s_int - dof_strings, s_int - dof_strings, 0, 1\n"
	"	.byte 1, 1\n	.short 1\n	.long 1\n	.short 1, 0\n	.long 0\n"
	"	.quad idle\n"
	"	.long s_idle - dof_strings, s_idle - dof_strings, 0, 0, 0, 2\n"
	"	.byte 0, 0\n	.short 1\n	.long 2\n	.short 0, 0\n	.long 0\n"
	"	.quad is_idle\n"
	"	.long s_is_idle - dof_strings, s_idle - dof_strings, 0, 0, 0, 3\n"
	"	.byte 0, 0\n	.short 0\n	.long 2\n	.short 1, 0\n	.long 0\n"
	"dof_args: .byte 0\n"
	"	.balign 8\n"
	"dof_offs: .long hello_at - hello, bye_at - bye, idle_at - idle\n"
	"dof_asks: .long hello_ask - hello, bye_ask - bye, idle_ask - is_idle\n"
	"dof_end:\n"
	".text\n");

/* ROUNDS [TIMES]: makes so many rounds, and again for each line of standard input, TIMES in all */
int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 3, times = argc > 2 ? atoi(argv[2]) : 1;
	char line[8];

	for (int t = 0; t < times; t++) {
		int h = 0, b = 0, i = 0;

		if (t && !fgets(line, sizeof(line), stdin))
			break;
		for (int n = 0; n < rounds; n++) {
			h += hello(10 * n) != 0;
			b += bye(100 * n) == 1;
			if (is_idle()) {
				i++;
				idle();
			}
		}
		printf("told yes: hello %d bye %d idle %d\n", h, b, i);
		fflush(stdout);
	}
	return 0;
}
