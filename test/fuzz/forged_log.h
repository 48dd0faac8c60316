/* An undo log that a process has forged for `descry heal`: the bytes of a fuzz target's input
 * determine it, and the reader of src/load/inproc/undo reads it from a real process. */
#ifndef DESCRY_TEST_FUZZ_FORGED_LOG_H
#define DESCRY_TEST_FUZZ_FORGED_LOG_H

#include <assert.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "load/inproc/undo/undo.h"
#include "wire/inproc.h"

/* What is left of an input. */
struct bytes_in {
	const uint8_t *p;
	size_t n;
};

/* Takes a number of n bytes. Behind the end they are 0. */
static uint64_t take(struct bytes_in *in, size_t n)
{
	uint64_t v = 0;

	if (n > in->n)
		n = in->n;
	memcpy(&v, in->p, n);
	in->p += n;
	in->n -= n;
	return v;
}

enum { FORGED_SIZE = 1 << 20, FORGED_UNDO = 8192 };
static const uint64_t FORGED_BASE = WIRE_BASE + (WIRE_BASES - 1) * WIRE_BASE_STEP;

/* A process with memory files of descry's names. The facts are written from here. */
static struct forger {
	pid_t pid;
	uint8_t *facts;
} forger;

static int map_forged(const char *name, uint64_t at)
{
	int fd = memfd_create(name, MFD_CLOEXEC);

	if (fd < 0 || ftruncate(fd, FORGED_SIZE) ||
	    mmap((void *)at, FORGED_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) ==
		    MAP_FAILED)
		_exit(1);
	return fd;
}

/* The facts are this process's, too. */
static void forger_start(void)
{
	int fd = memfd_create(WIRE_MEMFD_FACTS, MFD_CLOEXEC), ready[2];
	char c;

	assert(fd >= 0 && !ftruncate(fd, FORGED_SIZE) && !pipe(ready));
	forger.facts = mmap(NULL, FORGED_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	forger.pid = fork();
	if (!forger.pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)map_forged(WIRE_MEMFD_CODE, FORGED_BASE);
		(void)map_forged(WIRE_MEMFD_SHARED, FORGED_BASE + WIRE_SHARED);
		if (mmap((void *)(FORGED_BASE + WIRE_FACTS), FORGED_SIZE, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED)
			_exit(1);
		close(ready[0]);
		close(ready[1]);
		for (;;)
			pause();
	}
	close(fd);
	close(ready[1]);
	assert(read(ready[0], &c, 1) == 0); /* it has closed it */
	close(ready[0]);
}

static void forger_stop(void)
{
	if (forger.pid > 0) {
		kill(forger.pid, SIGKILL);
		waitpid(forger.pid, NULL, 0);
	}
}

/* The area is sound except where the bytes determine other values; the records are bytes. */
static void read_log(struct bytes_in in)
{
	struct wire_area *a;
	uint64_t bases[WIRE_BASES], room = FORGED_SIZE - FORGED_UNDO;
	struct undo_log log = { 0 };
	struct control *c = NULL;
	uint32_t n = 0, how;
	struct err *err;

	if (!forger.pid) {
		forger_start();
		atexit(forger_stop);
	}
	memset(forger.facts, 0, FORGED_SIZE);
	a = (struct wire_area *)(void *)forger.facts;
	how = (uint32_t)take(&in, 1);
	*a = (struct wire_area){ .magic = WIRE_AREA_MAGIC,
				 .version = WIRE_AREA_VERSION,
				 .base = FORGED_BASE,
				 .private_size = 1 << 20,
				 .tracer_pid = (uint32_t)getpid(),
				 .undo = FORGED_BASE + WIRE_FACTS + FORGED_UNDO };
	if (how & 1)
		a->undo = take(&in, 8);
	if (how & 2)
		a->private_size = take(&in, 8);
	a->nundo = how & 4 ? (uint32_t)take(&in, 4) : (uint32_t)(in.n / 24);
	for (uint32_t i = 0; in.n && i < room / sizeof(struct wire_undo); i++) {
		struct wire_undo *u = (struct wire_undo *)(void *)(forger.facts + FORGED_UNDO) + i;
		uint32_t which = (uint32_t)take(&in, 1);

		u->site = 0x10000 + take(&in, which & 1 ? 8 : 2);
		u->pid = which & 2 ? (uint32_t)take(&in, 4) : (uint32_t)forger.pid;
		u->len = which & 4 ? (uint8_t)take(&in, 1) : 5;
		u->data = which & 8;
		u->stub = which & 16 ? FORGED_BASE + take(&in, 3) : 0;
		u->stub_len = which & 32 ? (uint32_t)take(&in, 4) : 16;
		for (uint32_t k = 0; k < 5; k++) {
			u->before[k] = (uint8_t)take(&in, 1);
			u->after[k] = (uint8_t)take(&in, 1);
			u->moved[k] = which & 64 ? (uint16_t)take(&in, 2) : 0xffff;
		}
	}
	err = control_open(forger.pid, &c) ?: undo_areas(c, bases, &n);
	for (uint32_t i = 0; i < n && !err; i++) {
		err = undo_log_read(c, bases[i], &log);
		for (uint32_t k = 0; !err && k < log.sites.n; k++)
			for (uint32_t off = 0; off < 4; off++) {
				(void)undo_pc_in(&log, log.sites.v[k].site + off, off & 1);
				(void)undo_pc_out(&log, log.sites.v[k].stub + off, off & 1);
			}
		if (!err)
			undo_prepare(&log);
		undo_log_fini(&log);
		log = (struct undo_log){ 0 };
	}
	control_free(c);
	err_free(err);
}

#endif
