/* Functions that all engines share: the state page, remarks, the machine's load and memory. */
#define _DEFAULT_SOURCE
#include "load/engine.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/meminfo.h"
#include "program/object/object.h"
#include "program/text/text.h"

/* Returns the i-th state page: the engine's own, then the page of the engine beside it. NULL:
 * none. */
static struct wire_state *state_of(const struct engine *e, int i)
{
	return !i ? e->state : e->beside ? e->beside->state : NULL;
}

enum { STATES = 2 };

void engine_introduce(struct engine *e, const struct wire_state *who)
{
	struct wire_state *s;

	for (int i = 0; i < STATES && (s = state_of(e, i)); i++) {
		s->boot_offset = who->boot_offset;
		s->self_pid = who->self_pid;
		s->target_pid = who->target_pid;
	}
}

static void tell_memory(struct engine *e)
{
	static const char *const words[WIRE_MEMORY_N] = {
		[WIRE_MEMORY_FREE] = "MemFree:",   [WIRE_MEMORY_AVAILABLE] = "MemAvailable:",
		[WIRE_MEMORY_SWAP] = "SwapTotal:", [WIRE_MEMORY_SWAP_FREE] = "SwapFree:",
		[WIRE_MEMORY_LOCKED] = "Mlocked:",
	};
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t bytes[WIRE_MEMORY_N];
	struct wire_state *s;

	if (!meminfo_read(words, WIRE_MEMORY_N, bytes))
		return;
	for (int i = 0; i < STATES && (s = state_of(e, i)); i++)
		for (int k = 0; k < WIRE_MEMORY_N; k++)
			__atomic_store_n(&s->memory[k], bytes[k] / page, __ATOMIC_RELAXED);
}

void engine_tell_machine(struct engine *e)
{
	double load[3];
	struct wire_state *s;

	if (e->machine_told && now_ns() - e->machine_told < 1000000000)
		return;
	e->machine_told = now_ns();
	tell_memory(e);
	if (getloadavg(load, 3) != 3)
		return;
	for (int i = 0; i < STATES && (s = state_of(e, i)); i++)
		for (int k = 0; k < 3; k++)
			__atomic_store_n(&s->load[k], (uint32_t)(load[k] * 65536),
					 __ATOMIC_RELAXED);
}

bool engine_exiting(const struct engine *e)
{
	const struct wire_state *s;

	for (int i = 0; i < STATES && (s = state_of(e, i)); i++)
		if (__atomic_load_n(&s->exiting, __ATOMIC_SEQ_CST))
			return true;
	return false;
}

int engine_exit_status(const struct engine *e)
{
	const struct wire_state *s;

	for (int i = 0; i < STATES && (s = state_of(e, i)); i++)
		if (__atomic_load_n(&s->exiting, __ATOMIC_SEQ_CST))
			return s->exit_status;
	return 0;
}

void engine_remark(struct engine *e, char *text, bool blind)
{
	if (!remarks_take(&e->remarks, text)) { /* many repeat for each exec */
		free(text);
		return;
	}
	e->notes = xrealloc(e->notes, (e->nnotes + 1) * sizeof(*e->notes));
	e->notes[e->nnotes++] = (struct engine_note){ text, blind };
}

void engine_free_remarks(struct engine *e)
{
	for (uint32_t i = 0; i < e->nnotes; i++)
		free(e->notes[i].text);
	free(e->notes);
	e->notes = NULL;
	e->nnotes = 0;
	remarks_fini(&e->remarks);
}

void engine_start(struct engine *e)
{
	struct wire_state *s;

	for (int i = 0; i < STATES && (s = state_of(e, i)) && !engine_exiting(e); i++) {
		uint32_t off = WIRE_OFF;

		__atomic_compare_exchange_n(&s->active, &off, WIRE_ON, false, __ATOMIC_SEQ_CST,
					    __ATOMIC_SEQ_CST);
	}
	if (engine_exiting(e))
		engine_stop(e);
}

void engine_stop(struct engine *e)
{
	struct wire_state *s;

	for (int i = 0; i < STATES && (s = state_of(e, i)); i++)
		__atomic_store_n(&s->active, WIRE_OFF, __ATOMIC_SEQ_CST);
}

void engine_exit(struct engine *e)
{
	struct wire_state *s;

	for (int i = 0; i < STATES && (s = state_of(e, i)); i++)
		__atomic_store_n(&s->exiting, 1, __ATOMIC_SEQ_CST);
	engine_stop(e);
}

void engine_scene_fini(struct engine_scene *s)
{
	text_free(s->text);
	object_free(s->object);
	free(s->path);
	s->text = NULL;
	s->object = NULL;
	s->path = NULL;
}
