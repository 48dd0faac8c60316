/* Address spaces of the processes in a perf.data file, and names of their code.
 *
 * In: the kernel's records of commands, mappings and forks, in the order of time. Out: the name (in
 * the tree) of an address. Always true: names come from a file only when it is the file that ran
 * (by its build id, where that is known). Each address of a file is looked up once.
 */
#ifndef DESCRY_INPUT_PERF_PERFSPACE_H
#define DESCRY_INPUT_PERF_PERFSPACE_H

#include "input/stackin/stackin_reader.h"
#include "program/unwind/unwind.h"

struct perfspace;

struct perfspace *perfspace_new(struct stackin *in);
void perfspace_free(struct perfspace *s);

struct perfspace_map {
	uint64_t start, len, pgoff;
	const char *path;
	const uint8_t *build_id; /* NULL not known */
	uint32_t build_id_len;
};
void perfspace_build_id(struct perfspace *s, const char *path, const uint8_t *id, uint32_t len);
void perfspace_kernel_map(struct perfspace *s, const struct perfspace_map *m);
void perfspace_map(struct perfspace *s, uint32_t pid, const struct perfspace_map *m);
void perfspace_comm(struct perfspace *s, uint32_t pid, uint32_t tid, const char *comm);
void perfspace_fork(struct perfspace *s, uint32_t pid, uint32_t ppid, uint32_t tid, uint32_t ptid);
/* Adds code that the kernel made (a BPF program), or removes it (gone). */
void perfspace_ksymbol(struct perfspace *s, uint64_t addr, uint64_t len, const char *name,
		       bool gone);

/* Returns the command of a thread: its names, root first, valid until the next call. */
const uint32_t *perfspace_thread(struct perfspace *s, uint32_t pid, uint32_t tid, uint32_t *ret_n);
/* For the thread that was named last. */
uint32_t perfspace_kernel(struct perfspace *s, uint64_t ip);
uint32_t perfspace_user(struct perfspace *s, uint32_t pid, uint64_t ip);
/* Returns the mappings with the unwind tables of their files. It follows when they change, and is
 * valid until the process is forked anew. */
const struct unwind_process *perfspace_unwind(struct perfspace *s, uint32_t pid);
/* Returns about how many bytes the commands, processes and mappings take. */
uint64_t perfspace_bytes(const struct perfspace *s);
/* Adds remarks about code without names. */
void perfspace_notes(struct perfspace *s);

#endif
