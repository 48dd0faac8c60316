/* Shared by the files of the interpreting engine. */
#ifndef DESCRY_LOAD_INTERP_INTERP_PRIVATE_H
#define DESCRY_LOAD_INTERP_INTERP_PRIVATE_H

#include "isa/interp.h"
#include "load/engine.h"
#include "load/interp/connector.h"
#include "load/interp/interp_maps.h"
#include "load/link.h"
#include "load/timers.h"

struct interp_prog {
	struct linked code;
	uint64_t runs, run_ns;
};

/* A probe that the process connector's events fire. */
struct interp_listener {
	uint32_t prog, probe;
	enum connector_kind kind;
	bool by_child; /* the context is sched_switch's, for a child that runs for the first time */
};

struct interp_engine {
	struct engine base;
	bool measure;
	bool named;      /* processes are named, so other engines could run */
	uint64_t budget; /* the most instructions of one firing */
	struct interp_mem mem;
	struct interp_map *maps;   /* as image.maps */
	struct interp_prog *progs; /* as image.progs */
	struct timers timers;
	VEC(struct interp_listener) listeners;
	struct connector *connector; /* NULL without listeners */
	uint64_t lost;               /* events that a closed connector lost */
	int epoll_fd;                /* of the timers and the connector; -1 */
	uint8_t context[512];        /* of the running program */
	uint64_t cookie;             /* of the running program */
	const struct connector_event
		*event;           /* the event of the running program; NULL: the program runs for
				   * this process */
	struct interp_task *self; /* this process (interp_tasks.c) */
	struct interp_task *idle; /* process 0 */
	struct task_layout layout;
	uint64_t events_until; /* time of the last event read if more wait; 0: all were read */
	struct err *failed;    /* by a timer's or listener's program; detach() returns it */
	uint64_t *fixed, *fired, *dropped; /* counters() */
};

/* helpers.c */
extern const struct interp_ops interp_engine_ops;

/* interp_tasks.c: returns bpf_get_current_task()'s result, a readable task_struct with the members
 * that the D libraries read: ids, names, parent, credentials, the place of the arguments. Other
 * members are 0; without BTF every member is 0. */
uint64_t interp_task(struct interp_engine *e);
/* Returns the same for a thread of the connector; its address stays the same for the thread's
 * life. */
uint64_t interp_task_of(struct interp_engine *e, struct connector_thread *t);
/* Frees an interp_task and the thread's self-> variables. */
void interp_task_free(void *engine, void *task);

/* interp_events.c */
bool interp_listens(const struct probe *p, enum connector_kind *ret_kind);
/* engine_ops.ready: returns an error when the image has probes of the process connector, no
 * connector is available, and other engines could run the image. */
struct err *interp_ready(struct engine *e, const struct image *img);
struct err *interp_events_open(struct interp_engine *e);
void interp_events_run(struct interp_engine *e);
void interp_events_close(struct interp_engine *e);

/* interp_engine.c: runs a program with the context in e->context */
struct err *interp_run_prog(struct interp_engine *e, uint32_t prog, uint64_t cookie);

#endif
