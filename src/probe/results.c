/* Results of functions: return probes that do not know them. */
#include "base/mem.h"
#include "probe/process.h"
#include "program/text/text.h"

enum { NAMED = 4, LOOKED_AT = 4096 /* functions of a clause that are analysed */ };

/* Returns true when the function may end by a jump. Its result is then that of another function,
 * which has not begun. */
static bool ends_by_jump(struct text *t, uint64_t func)
{
	struct text_site *sites = NULL;
	const char *reason = NULL;
	bool jumps = false;
	uint32_t n = 0;

	if (err_drop(text_returns(t, func, &sites, &n, &reason)))
		return false;
	for (uint32_t i = 0; i < n && !reason; i++)
		jumps |= sites[i].kind == WIRE_STUB_TAIL;
	free(sites);
	return jumps;
}

void probe_note_results(struct probe_set *ps, struct probe *const *probes, uint32_t n)
{
	cleanup_free char *names = NULL;
	uint32_t found = 0, looked = 0;

	for (uint32_t i = 0; i < n && looked < LOOKED_AT; i++) {
		const struct probe *p = probes[i];
		struct text *t;

		if (!p->by_exits || !p->file || p->unavailable)
			continue;
		looked++;
		t = process_text(ps, p->file);
		if (!t || !ends_by_jump(t, p->addr) || found++ >= NAMED)
			continue;
		char *more = names ? xasprintf("%s, %s", names, p->func) : xstrdup(p->func);

		free(names);
		names = more;
	}
	if (found)
		process_note(
			ps,
			xasprintf(
				"%s%s: arg1 is not the result where the function ends by a jump to another one, which returns in its place",
				names, found > NAMED ? ", ..." : ""));
}
