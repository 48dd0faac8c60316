/* The heap of the served process, for the page of descry serve. */
#ifndef DESCRY_CMD_SERVE_HEAP_H
#define DESCRY_CMD_SERVE_HEAP_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct serve_heap {
	pid_t pid;      /* whose heap is read */
	uint64_t start; /* procdir_start() of it */
	pthread_mutex_t lock;
	pthread_t thread;
	bool running, joinable;
	pid_t reader; /* 0: none */
	char *text;   /* what the last reading has printed */
};

void serve_heap_init(struct serve_heap *h, pid_t pid, uint64_t start);
/* Ends a reading that goes on. */
void serve_heap_fini(struct serve_heap *h);
/* Begins to read the heap, unless it is being read. */
void serve_heap_read(struct serve_heap *h);
/* Returns a copy of what the last reading has printed, "" before the first; NULL: it goes on. */
char *serve_heap_text(struct serve_heap *h);

#endif
