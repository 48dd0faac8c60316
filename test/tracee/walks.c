/* Allocations whose stacks are known: tracee_walks random N THREADS, or: tracee_walks load A B.
 *
 *	random  each thread makes N malloc(3) in functions w0 to w7 that call each other at random,
 *	        and frees each at once. A line for each has the numbers of the functions, the
 *	        innermost first
 *	load    loads library A and calls its function "inside" 10 times, unloads it, and does the same
 *	        with B. Then "same", if both had the same address, else "other"
 */
#include <alloca.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))
enum { FUNCTIONS = 8, DEPTH = 60 };

struct walk {
	uint32_t random, left;
	uint32_t depth;
	char path[DEPTH]; /* the outermost first */
};

static long count;
static void (*const functions[FUNCTIONS])(struct walk *);

static uint32_t draw(struct walk *w, uint32_t n)
{
	w->random = w->random * 1664525 + 1013904223;
	return (w->random >> 16) % n;
}

static void say_path(const struct walk *w)
{
	char line[DEPTH + 1];

	for (uint32_t i = 0; i < w->depth; i++)
		line[i] = w->path[w->depth - 1 - i];
	line[w->depth] = '\n';
	if (write(1, line, w->depth + 1) < 0)
		_exit(1);
}

/* Makes and frees blocks, and calls other functions, in the frame of the caller. */
static inline __attribute__((always_inline)) void act(struct walk *w, char name)
{
	w->path[w->depth++] = name;
	for (uint32_t i = draw(w, 3) + 1; i-- && w->left;) {
		void *volatile p = malloc(10 + w->left % 100);

		free(p);
		w->left--;
		say_path(w);
		if (w->depth < DEPTH && draw(w, 100) < 60)
			functions[draw(w, FUNCTIONS)](w);
	}
	w->depth--;
}

/* Frames of many forms: of a fixed and of a changing size, with and without a frame pointer, with
 * a stack that is aligned anew, and with large alignment. */
static NOINLINE void w0(struct walk *w)
{
	act(w, '0');
}

static NOINLINE void w1(struct walk *w)
{
	volatile char room[100];

	room[0] = 1;
	act(w, '1');
	room[1] = room[0];
}

static NOINLINE void w2(struct walk *w)
{
	volatile char *room = alloca(16 + draw(w, 300));

	room[0] = 1;
	act(w, '2');
	room[1] = 1;
}

static NOINLINE __attribute__((optimize("no-omit-frame-pointer"))) void w3(struct walk *w)
{
	act(w, '3');
}

static NOINLINE void w4(struct walk *w)
{
	volatile char room[64] __attribute__((aligned(64)));

	room[0] = 1;
	act(w, '4');
	room[1] = room[0];
}

static NOINLINE void w5(struct walk *w)
{
	volatile char room[5000];

	room[0] = 1;
	act(w, '5');
	room[1] = room[0];
}

static NOINLINE void w6(struct walk *w)
{
	volatile char *room = alloca(16 + draw(w, 3000));
	volatile char wide[64] __attribute__((aligned(128)));

	room[0] = wide[0] = 1;
	act(w, '6');
	room[1] = wide[1] = 1;
}

static NOINLINE void w7(struct walk *w)
{
	volatile uint64_t a = draw(w, 5), b = a + 1, c = a * b;

	act(w, '7');
	a = b + c;
}

static void (*const functions[FUNCTIONS])(struct walk *) = { w0, w1, w2, w3, w4, w5, w6, w7 };

static NOINLINE void *walk_thread(void *arg)
{
	struct walk w = { .random = (uint32_t)(uintptr_t)arg, .left = (uint32_t)count };

	while (w.left)
		functions[draw(&w, FUNCTIONS)](&w);
	return NULL;
}

static int random_walks(long threads)
{
	pthread_t t[16];

	if (threads > 16)
		return 2;
	for (long i = 1; i < threads; i++)
		pthread_create(&t[i], NULL, walk_thread, (void *)(uintptr_t)(i * 77777));
	walk_thread((void *)1);
	for (long i = 1; i < threads; i++)
		pthread_join(t[i], NULL);
	return 0;
}

/* Returns the address of the function. */
static uintptr_t call_in(const char *path)
{
	void *lib = dlopen(path, RTLD_NOW), *f = lib ? dlsym(lib, "inside") : NULL;
	void (*inside)(void);

	if (!f)
		exit(2);
	memcpy(&inside, &f, sizeof(f));
	for (int i = 0; i < 10; i++)
		inside();
	dlclose(lib);
	return (uintptr_t)f;
}

int main(int argc, char **argv)
{
	uintptr_t a;

	if (argc != 4)
		return 2;
	if (!strcmp(argv[1], "random")) {
		count = atol(argv[2]);
		return random_walks(atol(argv[3]));
	}
	a = call_in(argv[2]);
	puts(a == call_in(argv[3]) ? "same" : "other");
	return 0;
}
