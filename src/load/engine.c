#include "load/engine.h"

/* Each state page there is: the engine's, and that of the one beside it. */
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

bool engine_exiting(const struct engine *e)
{
	const struct wire_state *s;

	for (int i = 0; i < STATES && (s = state_of(e, i)); i++)
		if (__atomic_load_n(&s->exiting, __ATOMIC_SEQ_CST))
			return true;
	return false;
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
