/* A leaf function that keeps its argument below the stack pointer while it passes a 5-byte nop;
 * exits 1 when it comes back changed. */
#include <stdint.h>
#include <stdio.h>

uint64_t leaf(uint64_t value);
__asm__(".text\n"
	".globl leaf\n"
	".type leaf, @function\n"
	"leaf:\n"
	"	mov %rdi, -8(%rsp)\n"
	"	.byte 0x0f, 0x1f, 0x44, 0x00, 0x00\n"
	"	mov -8(%rsp), %rax\n"
	"	ret\n"
	".size leaf, . - leaf\n");

int main(void)
{
	uint64_t wrong = 0;

	for (uint64_t i = 1; i <= 100000; i++)
		wrong += leaf(i) != i;
	printf("%llu wrong\n", (unsigned long long)wrong);
	return wrong != 0;
}
