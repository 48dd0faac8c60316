/* Finds where a function ends, for return probes that must leave return addresses as they are. */
#include "load/kernel/kernel_private.h"

#include "program/object/object.h"
#include "program/text/text.h"

/* Returns true for jcc, loop and jrcxz, which end the function only when they jump. */
static bool is_conditional(const uint8_t *b, uint32_t n)
{
	uint32_t i = 0;

	while (i < n && (b[i] == 0x2e || b[i] == 0x3e || b[i] == 0xf2)) /* hints, bnd */
		i++;
	if (i + 1 >= n)
		return false;
	return (b[i] & 0xf0) == 0x70 || (b[i] & 0xfc) == 0xe0 ||
	       (b[i] == 0x0f && (b[i + 1] & 0xf0) == 0x80);
}

static const char *add_exits(const struct probe *p, struct text *t, exits_t *ret)
{
	struct text_site *sites = NULL;
	const char *reason = NULL;
	uint64_t last = 0, off;
	uint32_t n = 0;

	if (err_drop(text_returns(t, p->addr, &sites, &n, &reason)))
		return "its code cannot be read";
	for (uint32_t i = 0; i < n && !reason; i++) {
		uint64_t at =
			text_site_point(&sites[i]); /* by address; some stand for one return */
		uint8_t code[16];

		if (i && at == last)
			continue;
		last = at;
		if (is_conditional(code, object_read(p->file, at, code, sizeof(code))))
			reason = "it ends by a conditional jump to another function";
		else if (!object_addr_to_offset(p->file, at, &off))
			reason = "no file offset for its end";
		else
			vec_push(ret, off);
	}
	free(sites);
	return reason;
}

const char *exits_find(const struct probe *p, exits_t *ret)
{
	const char *reason = "its code cannot be read";
	struct text *t = NULL;

	if (!object_reopen(p->file) || err_drop(text_open(p->file, &t)))
		return reason;
	reason = add_exits(p, t, ret);
	if (reason == TEXT_NEVER_RETURNS)
		reason = NULL;
	text_free(t);
	return reason;
}
