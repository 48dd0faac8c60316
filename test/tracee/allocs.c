/* Allocations of known number: tracee_allocs KIND... Its own output takes no allocation.
 *
 *	plain      1,000 malloc(100), 900 of them freed
 *	calloc     100 calloc(10, 8), freed
 *	realloc    a block that grows 20 times from 10 to 10 << 20 bytes, and is freed; realloc(NULL, 33);
 *	           reallocarray(NULL, 4, 9)
 *	aligned    10 each of posix_memalign, aligned_alloc, memalign; 1 valloc
 *	fails      malloc of half of all memory, 3 times
 *	threads    2 threads: one allocates 10,000 blocks of 48 bytes, the other frees them
 *	kept       7 blocks of 12,345 bytes that are never freed
 *	endless    allocates and frees until it is killed; says "ready" first
 */
#define _GNU_SOURCE
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BLOCKS = 10000 };

static void *volatile kept[16];
static void *_Atomic passed[BLOCKS];

static void plain(void)
{
	static void *volatile p[1000];

	for (int i = 0; i < 1000; i++)
		p[i] = malloc(100);
	for (int i = 0; i < 900; i++)
		free(p[i]);
}

static void callocs(void)
{
	void *volatile p;

	for (int i = 0; i < 100; i++) {
		p = calloc(10, 8);
		free(p);
	}
}

static void reallocs(void)
{
	void *volatile p = malloc(10);

	for (int i = 1; i <= 20; i++)
		p = realloc(p, (size_t)10 << i);
	free(p);
	p = realloc(NULL, 33);
	free(p);
	p = reallocarray(NULL, 4, 9);
	free(p);
}

static void aligned(void)
{
	void *p;

	for (int i = 0; i < 10; i++) {
		if (posix_memalign(&p, 256, 1000))
			exit(1);
		free(p);
		free(kept[14] = aligned_alloc(512, 1024));
		free(kept[14] = memalign(64, 77));
	}
	free(kept[14] = valloc(5));
}

static void fails(void)
{
	for (int i = 0; i < 3; i++)
		kept[15] = malloc(SIZE_MAX / 4);
}

static void *give(void *arg)
{
	for (int i = 0; i < BLOCKS; i++)
		passed[i] = malloc(48);
	return NULL;
}

static void *take(void *arg)
{
	for (int i = 0; i < BLOCKS; i++) {
		void *p;

		while (!(p = passed[i]))
			usleep(10);
		free(p);
	}
	return NULL;
}

static void threads(void)
{
	pthread_t a, b;

	pthread_create(&a, NULL, take, NULL);
	pthread_create(&b, NULL, give, NULL);
	pthread_join(a, NULL);
	pthread_join(b, NULL);
}

static __attribute__((noinline)) void keep(void)
{
	for (int i = 0; i < 7; i++)
		kept[i] = malloc(12345);
}

static void endless(void)
{
	if (write(1, "ready\n", 6) != 6)
		exit(1);
	for (int i = 0;; i++) {
		kept[i % 8] = malloc(64);
		usleep(100);
		free(kept[i % 8]);
	}
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} kinds[] = { { "plain", plain },     { "calloc", callocs }, { "realloc", reallocs },
		      { "aligned", aligned }, { "fails", fails },    { "threads", threads },
		      { "kept", keep },       { "endless", endless } };

	for (int i = 1; i < argc; i++)
		for (size_t k = 0; k < sizeof(kinds) / sizeof(*kinds); k++)
			if (!strcmp(argv[i], kinds[k].name))
				kinds[k].run();
	return 0;
}
