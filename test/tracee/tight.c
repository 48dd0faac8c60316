/* Functions whose places can be patched, and some whose cannot: tight_N ends in a ret that is a
 * branch's target, with the next function right behind it. The branch has no
 * room either, because another one leads behind it. usage: tight ROUNDS [PAUSE-ms] */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define TIGHT(name) \
	".globl " name "\n.type " name ",@function\n" name ":\n" \
	"	lea 1(%rdi), %eax\n" \
	"	test $3, %dil\n" \
	"	js 2f\n" \
	"	js 4f\n" \
	"4:	jnz 1f\n" \
	"2:	add $7, %eax\n" \
	"1:	ret\n" \
	".size " name ", . - " name "\n"

__asm__(".text\n.p2align 4\n" TIGHT("tight_a") TIGHT("tight_b") TIGHT("tight_c") ".p2align 4\n");

long tight_a(long n);
long tight_b(long n);
long tight_c(long n);

__attribute__((noinline)) long roomy(long n)
{
	static volatile long sink;

	for (long i = 0; i < n % 5; i++)
		sink += i;
	return tight_a(n) + tight_c(sink & 15);
}

__attribute__((noinline)) long outer(long n)
{
	return roomy(n) + tight_b(n) * 2;
}

int main(int argc, char **argv)
{
	long rounds = argc > 1 ? atol(argv[1]) : 1, ms = argc > 2 ? atol(argv[2]) : 0, sum = 0;

	for (long i = 0; i < rounds; i++) {
		sum += outer(i);
		if (ms)
			nanosleep(&(struct timespec){ 0, ms * 1000000 }, NULL);
	}
	printf("%ld\n", sum);
	return 0;
}
