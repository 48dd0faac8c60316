/* Joins two sites whose displaced bytes overlap into one, which has the points of both. */
#include <string.h>

#include "program/text/text_private.h"

bool text_join(const struct text_site *a, const struct text_site *b, struct text_site *ret)
{
	const struct text_site *lo = a->addr <= b->addr ? a : b, *hi = lo == a ? b : a;
	uint64_t lo_end = lo->addr + lo->len, hi_end = hi->addr + hi->len;
	uint64_t lo_moved = lo->addr + lo->moved, hi_moved = hi->addr + hi->moved;
	uint64_t end = lo_end > hi_end ? lo_end : hi_end;
	uint64_t moved = lo_moved > hi_moved ? lo_moved : hi_moved;
	struct text_site s = *a;

	s.split.ret = 0; /* its points keep theirs */
	if (a->mode == TEXT_NONE || b->mode == TEXT_NONE || hi->addr >= lo_end)
		return false;
	/* Nothing begins in the padding of the first site, and nothing is moved from behind it. */
	if (hi->addr >= lo_moved || (lo->moved < lo->len && hi_moved > lo_moved))
		return false;
	/* Nothing is moved from behind a call. */
	if ((lo->pushes && lo_moved != moved) || (hi->pushes && hi_moved != moved))
		return false;
	/* A trap fits only in bytes that the other site moves. */
	if (lo->mode == TEXT_TRAP &&
	    (hi->mode != TEXT_TRAP ? hi->addr != lo->addr : hi_end != lo_end))
		return false;
	if (hi->mode == TEXT_TRAP && lo->mode == TEXT_PATCH && hi_moved > lo_moved)
		return false;
	if (end - lo->addr > TEXT_SITE_MAX)
		return false;
	s.addr = lo->addr;
	s.at = (uint8_t)(a->addr + a->at - lo->addr);
	s.len = (uint8_t)(end - lo->addr);
	s.moved = (uint8_t)(moved - lo->addr);
	memcpy(s.bytes, lo->bytes, lo->len);
	memcpy(s.bytes + (hi->addr - lo->addr), hi->bytes, hi->len);
	s.pushes = lo->pushes || hi->pushes;
	s.mode = lo->mode == TEXT_TRAP && hi->mode == TEXT_TRAP ? TEXT_TRAP : TEXT_PATCH;
	s.reason = s.mode == TEXT_TRAP ? lo->reason : NULL;
	*ret = s;
	return true;
}
