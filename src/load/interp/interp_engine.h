/* The interpreting engine's parts, between its files. */
#ifndef DESCRY_LOAD_INTERP_ENGINE_H
#define DESCRY_LOAD_INTERP_ENGINE_H

#include "isa/interp.h"
#include "load/engine.h"
#include "load/interp/connector.h"
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

/* A probe that the process connector's events fire. */
struct interp_listener {
	uint32_t prog, probe;
	enum connector_kind kind;
	bool by_child; /* the context is sched_switch's, of a child that runs for the first time */
};

struct interp_engine {
	struct engine base;
	bool measure;
	bool named;      /* processes are named: other engines could do */
	uint64_t budget; /* instructions of one firing */
	struct interp_mem mem;
	struct interp_map *maps;   /* as image.maps */
	struct interp_prog *progs; /* as image.progs */
	VEC(struct interp_timer) timers;
	int timer_fd; /* readable when a timer is due; -1 without timers or when detached */
	VEC(struct interp_listener) listeners;
	struct connector *connector; /* NULL without listeners */
	uint64_t lost;               /* of a connector that is closed */
	int epoll_fd;                /* of timer_fd and the connector; -1 */
	uint8_t context[512];        /* of the running program */
	uint64_t cookie;             /* of the running program */
	const struct connector_event
		*event;           /* the running program's; NULL: it runs for this process */
	struct interp_task *self; /* this process (task.c) */
	struct interp_task *idle; /* process 0 */
	struct task_layout layout;
	uint64_t events_until; /* more events are waiting, those up to this time were seen; 0: all were */
	struct err *failed; /* of a timer's or listener's program: detach() gives it */
	uint64_t *fixed, *fired, *dropped; /* counters() */
};

/* helpers.c */
extern const struct interp_ops interp_engine_ops;

/* task.c: what bpf_get_current_task() gives: a readable task_struct with what the D libraries ask
 * of one: ids, names, parent, credentials, where the arguments are; all else is 0, and all of it
 * where there is no BTF. */
uint64_t interp_task(struct interp_engine *e);
/* The same of a thread the connector knows; at one address as long as it lives. */
uint64_t interp_task_of(struct interp_engine *e, struct connector_thread *t);
/* Frees an interp_task, and what self-> variables the thread had. */
void interp_task_free(void *engine, void *task);

/* events.c */
bool interp_listens(const struct probe *p, enum connector_kind *ret_kind);
/* engine_ops.ready: an error when it has probes that the process connector tells of, there is none
 * to be listened to, and other engines could do. */
struct err *interp_ready(struct engine *e, const struct image *img);
struct err *interp_events_open(struct interp_engine *e);
void interp_events_run(struct interp_engine *e);
void interp_events_close(struct interp_engine *e);

/* engine.c: runs a program with what stands in e->context */
struct err *interp_run_prog(struct interp_engine *e, uint32_t prog, uint64_t cookie);

#endif
