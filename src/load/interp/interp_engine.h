/* The interpreting engine's parts, between its files. */
#ifndef DESCRY_LOAD_INTERP_ENGINE_H
#define DESCRY_LOAD_INTERP_ENGINE_H

#include "isa/interp.h"
#include "load/engine.h"
#include "load/interp/maps.h"
#include "load/link.h"

struct interp_prog {
	struct linked code;
	uint64_t runs, run_ns;
};

/* A tick- or profile- probe. */
struct interp_timer {
	uint32_t prog, probe;
	uint64_t next, period; /* CLOCK_MONOTONIC ns */
};

struct interp_engine {
	struct engine base;
	bool measure;
	uint64_t budget; /* instructions of one firing */
	struct interp_mem mem;
	struct interp_map *maps;   /* as image.maps */
	struct interp_prog *progs; /* as image.progs */
	VEC(struct interp_timer) timers;
	int timer_fd;         /* readable when a timer is due; -1 without timers or when detached */
	uint8_t context[512]; /* of the running program; all zero */
	uint64_t cookie;      /* of the running program */
	VEC(uint8_t *) objects; /* this process as a task_struct and what hangs on it (task.c) */
	uint64_t task;
	struct err *failed;                /* of a timer's program: detach() gives it */
	uint64_t *fixed, *fired, *dropped; /* counters() */
};

/* helpers.c */
extern const struct interp_ops interp_engine_ops;

/* task.c: what bpf_get_current_task() gives: a readable task_struct with what the D libraries ask of one: ids, names, parent,
 * credentials, where the arguments are; all else is 0, and all of it where there is no BTF. */
uint64_t interp_task(struct interp_engine *e);
void interp_task_fini(struct interp_engine *e);

#endif
