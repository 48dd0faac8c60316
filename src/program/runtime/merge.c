/* Merges a native stack with the frames of an interpreted language. */
#include "program/runtime/runtime.h"

/* Returns the index behind the last frame of the run of the interpreter's loop that begins with
 * frame `first`. */
static uint32_t end_of_run(const struct runtime_stack *st, uint32_t first)
{
	while (first < st->nframes && !st->frames[first].entry)
		first++;
	return first < st->nframes ? first + 1 : first;
}

/* Returns true when native frame i is the interpreter's loop that runs the language's frames up to
 * `entry`. */
static bool is_run(const struct runtime_stack *st, uint32_t i, const struct runtime_frame *entry)
{
	if (entry->anchor && st->sps && i + 1 < st->n)
		return entry->anchor >= st->sps[i] && entry->anchor < st->sps[i + 1];
	return st->is_loop(st->arg, st->pcs[i] - (i > 0));
}

/* Returns true when native frame i stands for a run together with the loop's. */
static bool is_part(const struct runtime_stack *st, uint32_t i)
{
	return st->nframes && st->is_part && st->is_part(st->arg, st->pcs[i] - (i > 0));
}

bool runtime_is_part(const void *runtime, uint64_t addr)
{
	const struct runtime *r = runtime;

	return r->type->is_part && r->type->is_part(r, addr);
}

bool runtime_is_loop(const void *runtime, uint64_t addr)
{
	const struct runtime *r = runtime;

	return r->type->is_loop(r, addr);
}

/* Without anchors, counts the runs. When there are more native frames of the loop than runs, the
 * innermost ones are those that have not made a frame yet. But when the language's frames are cut
 * off, the outermost native frames have none. When no native frame is missing and there are more
 * runs than native frames of the loop, the innermost runs have not begun. Returns the number of
 * native frames without a run, or below 0 that of runs without a native frame. */
static int32_t loops_without_run(const struct runtime_stack *st)
{
	int32_t loops = 0, runs = 0;

	if (!st->nframes || !st->frames[st->nframes - 1].entry)
		return 0;
	for (uint32_t i = 0; i < st->nframes; i++) {
		if (st->frames[i].anchor)
			return 0;
		runs += st->frames[i].entry;
	}
	for (uint32_t i = 0; i < st->n; i++)
		loops += st->is_loop(st->arg, st->pcs[i] - (i > 0));
	return loops > runs || st->whole ? loops - runs : 0;
}

void runtime_merge(const struct runtime_stack *st, bool both, runtime_merged_vec *ret)
{
	uint32_t next = 0, end = end_of_run(st, 0);
	int32_t early = loops_without_run(st);

	for (; early < 0; early++) {
		for (; next < end; next++)
			vec_push(ret, (struct runtime_merged){ true, next });
		end = end_of_run(st, next);
	}
	for (uint32_t i = 0; i < st->n; i++) {
		bool run = next < st->nframes && is_run(st, i, &st->frames[end - 1]);

		if (run && early) {
			early--;
			run = false;
		}
		if (run) {
			for (; next < end; next++)
				vec_push(ret, (struct runtime_merged){ true, next });
			end = end_of_run(st, next);
		}
		if (both || (!run && !is_part(st, i)))
			vec_push(ret, (struct runtime_merged){ false, i });
	}
	for (; next < st->nframes; next++)
		vec_push(ret, (struct runtime_merged){ true, next });
}
