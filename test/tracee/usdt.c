/* USDT probes with every form of operand that the compiler makes. `usdt N` fires each N times, N by
 * default 1; 0: until it is killed. */
#include <stdio.h>
#include <stdlib.h>

#if __has_include(<sys/sdt.h>)
#define _SDT_HAS_SEMAPHORES 1
#include <sys/sdt.h>

__extension__ unsigned short tracee_guarded_semaphore
	__attribute__((section(".probes"), visibility("hidden")));
__extension__ unsigned short tracee_plain_semaphore
	__attribute__((section(".probes"), visibility("hidden")));
__extension__ unsigned short tracee_values_semaphore
	__attribute__((section(".probes"), visibility("hidden")));
__extension__ unsigned short tracee_request__start_semaphore
	__attribute__((section(".probes"), visibility("hidden")));

int counter;
static volatile struct {
	char c;
	short s;
	int i;
	long l;
} fields = { 'x', -2, -3, -4 };

__attribute__((noinline)) static void work(int i, const char *text)
{
	volatile int local = i * 2;

	DTRACE_PROBE(tracee, plain);
	DTRACE_PROBE4(tracee, values, i, text, 42, local);
	DTRACE_PROBE4(tracee, values, fields.c, fields.s, fields.i, fields.l);
	DTRACE_PROBE2(tracee, request__start, &counter, (unsigned char)i);
	if (__builtin_expect(tracee_guarded_semaphore, 0)) {
		counter++;
		DTRACE_PROBE1(tracee, guarded, counter);
	}
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 1;

	for (unsigned i = 0; !n || i < (unsigned)n; i++)
		work((int)(i & 0xffffff), "text");
	printf("%d\n", counter);
	return 0;
}
#else
int main(void)
{
	puts("built without <sys/sdt.h>");
	return 77;
}
#endif
