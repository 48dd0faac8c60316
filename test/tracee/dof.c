/* Probes as an illumos-like dtrace -G makes them in a program: DOF in .SUNW_dof, and a nop in place
 * of each call of a probe.
 *
 *	provider shop { probe sale(int n, char *what); probe closed(); };
 *
 * sale stands in two places, one of them in a static function; its DOF has (char *what, int n) as
 * the probe's arguments.
 */
#include <stdio.h>
#include <stdlib.h>

void sell(int n, const char *what);
void close_shop(void);

__asm__(".text\n"
	".globl sell\n"
	".type sell, @function\n"
	"sell:\n"
	"	nop\n"
	"sell_1: .byte 0x0f, 0x1f, 0x44, 0, 0\n"
	"	add $1, %edi\n"
	"sell_2: .byte 0x0f, 0x1f, 0x44, 0, 0\n"
	"	ret\n"
	".size sell, . - sell\n"
	".globl close_shop\n"
	".type close_shop, @function\n"
	"close_shop:\n"
	"	xor %eax, %eax\n"
	"close_1: .byte 0x0f, 0x1f, 0x44, 0, 0\n"
	"	ret\n"
	".size close_shop, . - close_shop\n");

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
	"	.long 18, 4, 1, 4\n	.quad dof_offs - dof, dof_enoffs - dof_offs\n"
	"	.long 26, 4, 1, 4\n	.quad dof_enoffs - dof, dof_end - dof_enoffs\n"
	"dof_strings: .byte 0\n"
	"s_shop: .asciz \"shop\"\n"
	"s_sale: .asciz \"sale\"\n"
	"s_sell: .asciz \"sell\"\n"
	"s_native: .asciz \"int\"\n	.asciz \"char *\"\n"
	"s_probe: .asciz \"char *\"\n	.asciz \"int\"\n"
	"s_closed: .asciz \"closed-shop\"\n"
	"s_close: .asciz \"close_shop\"\n"
	"	.balign 8\n"
	"dof_provider: .long 0, 2, 3, 4, s_shop - dof_strings, 0, 0, 0, 0, 0, 5\n"
	"	.balign 8\n"
	"dof_probes: .quad sell\n"
	"	.long s_sell - dof_strings, s_sale - dof_strings, s_native - dof_strings, s_probe - dof_strings, 0, 0\n"
	"	.byte 2, 2\n	.short 2\n	.long 0\n	.short 0, 0\n	.long 0\n"
	"	.quad close_shop\n"
	"	.long s_close - dof_strings, s_closed - dof_strings, 0, 0, 2, 2\n"
	"	.byte 0, 0\n	.short 1\n	.long 0\n	.short 1, 0\n	.long 0\n"
	"dof_args: .byte 1, 0\n"
	"	.balign 8\n"
	"dof_offs: .long sell_1 - sell, sell_2 - sell, close_1 - close_shop\n"
	"dof_enoffs: .long 0\n"
	"dof_end:\n"
	".text\n");

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 3;

	for (int i = 0; i < n; i++)
		sell(i * 10, i % 2 ? "bread" : "milk");
	close_shop();
	return 0;
}
