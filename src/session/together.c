/* Several sessions as one run: waits for the records of all, and runs them in one order. */
#include "session/session_private.h"

enum { BESIDE_MS = 2 }; /* a wait for one kind of engine while others are not waited for */

void sessions_wait(struct session *const *s, uint32_t n, int timeout_ms)
{
	const struct engine_ops *ops = s[0]->plan.engine->ops;
	struct engine *like[SESSIONS_MAX];
	uint32_t nlike = 0;

	for (uint32_t i = n; i-- > 0;) {
		struct engine *e = s[i]->plan.engine;

		if (e->ops == ops && nlike < SESSIONS_MAX)
			like[nlike++] = e;
		else
			e->ops->poll(e, 0);
	}
	if (nlike < n && timeout_ms > BESIDE_MS)
		timeout_ms = BESIDE_MS;
	if (nlike > 1 && ops->poll_all) {
		ops->poll_all(like, nlike, timeout_ms);
		return;
	}
	while (nlike-- > 0)
		like[nlike]->ops->poll(like[nlike], nlike ? 0 : timeout_ms);
}

/* The consumer with the oldest record, and the time of the oldest record of the others. */
static struct session *oldest(struct session *const *s, uint32_t n, const bool *waits,
			      uint32_t *ret_i, uint64_t *ret_other)
{
	uint64_t first = UINT64_MAX;
	struct session *found = NULL;

	*ret_other = UINT64_MAX;
	for (uint32_t i = 0; i < n; i++) {
		const uint64_t t = waits[i] ? UINT64_MAX : consumer_next(s[i]->consumer);

		if (t < first) {
			*ret_other = first;
			first = t;
			found = s[i];
			*ret_i = i;
		} else if (t < *ret_other) {
			*ret_other = t;
		}
	}
	return found;
}

/* Runs the records older than `before` of all sessions, in order. */
static struct err *run_in_order(struct session *const *s, uint32_t n, uint64_t before)
{
	bool waits[SESSIONS_MAX] = { false }; /* for the text of its oldest record */
	struct err *e = NULL;
	struct session *next;
	uint64_t other, until;
	uint32_t i = 0;

	while (!e && (next = oldest(s, n, waits, &i, &other)) &&
	       consumer_next(next->consumer) < before) {
		until = other < before ? other + 1 : before;
		e = consumer_run(next->consumer, until);
		waits[i] = consumer_next(next->consumer) < until;
	}
	return e;
}

struct err *sessions_pass(struct session *const *s, uint32_t n)
{
	uint64_t before = UINT64_MAX;
	struct err *e = NULL;

	for (uint32_t i = 0; i < n; i++) {
		const uint64_t one = consumer_take(s[i]->consumer);

		before = one < before ? one : before;
	}
	e = run_in_order(s, n, before);
	for (uint32_t i = 0; i < n && !e; i++)
		e = consumer_end_pass(s[i]->consumer);
	return e;
}
