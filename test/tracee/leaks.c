/* Memory that is lost, and memory that only seems to be: tracee_leaks KIND... plants the kinds,
 * prints the addresses of the roots of what is lost, then "ready", and waits for the end of its
 * input.
 *
 *	single      blocks of different sizes
 *	list        a list of 1,000 of which only the head is lost
 *	circle      a doubly linked list of 10
 *	tree        a block that leads to two lists
 *	big         a block that is a mapping, and one that memalign(3) makes
 *	threads     blocks of other threads' arenas, one thread of which has ended
 *	interior    no leak: reached only by addresses in their middle
 *	tls         no leak: reached by thread-local variables and registers' stacks of threads
 *	freed       no leak: freed, in thread caches, fast bins and bins
 *	many        200,000 blocks of a table, of which each 50th is lost
 */
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct node {
	struct node *next, *before;
	char text[16];
};

static void *volatile sink;
static __thread void *volatile mine;
static void *volatile table[1 << 18];
static void *volatile inner[102];

/* Other allocators than glibc's leave the links of their lists in blocks, which lead to others. */
static void *make(size_t n)
{
	void *p = malloc(n);

	return p ? memset(p, 0, n) : NULL;
}

/* Returns an address as a number that is no pointer. */
static uintptr_t hidden(const void *p)
{
	return ~(uintptr_t)p;
}

static uintptr_t lost[1 << 16];
static int nlost;

static void lose(const void *p)
{
	lost[nlost++] = hidden(p);
}

static __attribute__((noinline)) void single(void)
{
	static const size_t sizes[] = { 1, 24, 25, 100, 1000, 5000, 100000 };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		char *p = make(sizes[i]);

		memset(p, 'x', sizes[i]);
		lose(p);
	}
}

static struct node *chain(int n)
{
	struct node *head = NULL;

	for (int i = 0; i < n; i++) {
		struct node *new = calloc(1, sizeof(*new));

		new->next = head;
		head = new;
	}
	return head;
}

static __attribute__((noinline)) void list(void)
{
	lose(chain(1000));
}

static __attribute__((noinline)) void circle(void)
{
	struct node *head = chain(10), *last = head;

	for (; last->next; last = last->next)
		last->next->before = last;
	last->next = head;
	head->before = last;
	lose(head);
}

static __attribute__((noinline)) void tree(void)
{
	struct node **two = make(40 * sizeof(*two));

	memset(two, 0, 40 * sizeof(*two));
	two[3] = chain(20);
	two[39] = chain(30);
	lose(two);
}

static __attribute__((noinline)) void big(void)
{
	char *p = make(1 << 20), *q = memalign(1 << 14, 3 << 20);

	p[5] = q[5] = 1;
	lose(p);
	lose(q);
}

static int to_main[2], to_thread[2];

/* Far below the frames of the thread, which leave nothing there. */
static __attribute__((noinline)) void lose_in_thread(void)
{
	volatile char deep[16384] __attribute__((unused));

	deep[0] = 0;
	lose(strcpy(make(77), "of a thread"));
	lose(chain(5));
}

static void *thread_main(void *arg)
{
	char c;

	lose_in_thread();
	if (!arg)
		return NULL;
	mine = strcpy(make(111), "kept");
	if (write(to_main[1], "x", 1) != 1 || read(to_thread[0], &c, 1) < 0)
		return NULL;
	sink = mine;
	return NULL;
}

static __attribute__((noinline)) void threads(void)
{
	pthread_t t[2];
	char c;

	if (pipe(to_main) || pipe(to_thread))
		exit(1);
	for (intptr_t i = 0; i < 2; i++) {
		pthread_create(&t[i], NULL, thread_main, (void *)i);
		if (i && read(to_main[0], &c, 1) != 1)
			exit(1);
		if (!i)
			pthread_join(t[i], NULL);
	}
}

static __attribute__((noinline)) void interior(void)
{
	for (int i = 0; i < 100; i++)
		inner[i] = (char *)make(100) + i;
	inner[100] = (char *)make(24) + 23; /* its last word lies in the next chunk's header */
	inner[101] = (char *)make(1 << 20) + 999999;
}

static __attribute__((noinline)) void tls(void)
{
	mine = make(50);
}

static __attribute__((noinline)) void freed(void)
{
	static void *volatile p[3000];

	for (int i = 0; i < 3000; i++)
		p[i] = make((size_t)i % 150 * 8);
	for (int i = 0; i < 3000; i += 2)
		free(p[i]);
	for (int i = 0; i < 300; i++) { /* the pointers to freed blocks stay in the table */
		void *q = make(2000);

		free(q);
	}
}

static __attribute__((noinline)) void many(void)
{
	for (int i = 0; i < 200000; i++) {
		char *p = make(16 + (size_t)i % 7 * 24);

		p[0] = 'm';
		if (i % 50 == 49)
			lose(p);
		else
			table[i] = p;
	}
}

/* Overwrites what the functions before have left on the stack. */
static __attribute__((noinline)) void wipe(void)
{
	volatile char waste[65536];

	for (size_t i = 0; i < sizeof(waste); i++)
		waste[i] = 0;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*plant)(void);
	} kinds[] = {
		{ "single", single },     { "list", list }, { "circle", circle },
		{ "tree", tree },         { "big", big },   { "threads", threads },
		{ "interior", interior }, { "tls", tls },   { "freed", freed },
		{ "many", many },
	};
	char line[8];

	for (int i = 1; i < argc; i++)
		for (size_t k = 0; k < sizeof(kinds) / sizeof(*kinds); k++)
			if (!strcmp(argv[i], kinds[k].name))
				kinds[k].plant();
	wipe();
	for (int i = 0; i < nlost; i++)
		printf("%#lx\n", (unsigned long)~lost[i]);
	wipe();
	printf("ready\n");
	fflush(stdout);
	while (read(0, line, sizeof(line)) > 0)
		;
	return 0;
}
