/* Room in the memory that the tracer and the traced processes share (area_room.c). */
#ifndef DESCRY_LOAD_INPROC_AREA_H
#define DESCRY_LOAD_INPROC_AREA_H

#include "load/inproc/state/inproc_state.h"

/* Returns the address of a free range of the facts, or of the shared mapping: zeroed, 64-byte
 * aligned, the same in every process. 0: there is no room. */
uint64_t area_alloc(struct inproc_engine *e, uint64_t size);
uint64_t area_alloc_shared(struct inproc_engine *e, uint64_t size);
/* Reserves a part of each thread's slot, and returns its offset. Call it while the area is laid
 * out. */
uint64_t area_in_slot(struct inproc_engine *e, uint64_t size);
struct wire_thread *area_thread(const struct inproc_engine *e, uint32_t slot);
uint64_t area_private_size(void);
/* Moves the threads' variables (WIRE_MAP_TASK) to private memory, before anything is compiled for
 * good. Returns false when there are none, or no room. */
bool area_own_variables(struct inproc_engine *e);
/* Returns the number of words of inproc_engine.own_shared. */
uint64_t area_own_words(const struct inproc_engine *e);
/* Returns the value of WIRE_MAP_OWN_TASK in the tracer's slot. */
uint8_t *area_own_value(const struct inproc_engine *e, const struct wire_map *m);

/* inproc_tasks.c: returns a stand-in for the process's struct task_struct, 0 when there is no room
 * for one. */
uint64_t area_task(struct inproc_engine *e, pid_t pid);
/* Returns the stand-in of a parent, which leads to its own parents. For a traced process, this is
 * the process's own stand-in. 0: there is no room. */
uint64_t area_parent(struct inproc_engine *e, pid_t pid);

#endif
