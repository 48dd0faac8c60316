/* The command's environment, found and changed by a preloaded object without a C library. */
#ifndef DESCRY_AGENT_ENVIRONMENT_H
#define DESCRY_AGENT_ENVIRONMENT_H

#include "agent/sys.h"

enum {
	AT_FDCWD_ = -100,
	START_STACK = 28, /* field of /proc/self/stat, proc(5) */
};

/* Finds the place where the kernel has put argc, argv and the environment, because not every C
 * library passes it to a constructor. */
static inline uint64_t *start_of_stack(void)
{
	char text[384], *p = text, *end = text;
	int64_t fd = sys4(SYS_OPENAT, (uint64_t)AT_FDCWD_, (uintptr_t) "/proc/self/stat", 0, 0), n;
	uint64_t value = 0;

	if (fd < 0)
		return 0;
	n = sys4(SYS_READ, (uint64_t)fd, (uintptr_t)text, sizeof(text), 0);
	sys2(SYS_CLOSE, (uint64_t)fd, 0);
	for (int64_t i = 0; i < n; i++)
		if (text[i] == ')') /* of the process's name, the second field */
			p = text + i;
	end = text + (n > 0 ? n : 0);
	for (int field = 2; p < end && field < START_STACK; p++)
		field += *p == ' ';
	for (; p < end && *p >= '0' && *p <= '9'; p++)
		value = value * 10 + (uint64_t)(*p - '0');
	return (uint64_t *)value;
}

/* Returns the text behind NAME=, 0: it is another variable. */
static inline char *value_of(char *variable, const char *name)
{
	while (*name && *variable == *name) {
		variable++;
		name++;
	}
	return *name ? 0 : variable;
}

static inline uint64_t number(char **text)
{
	uint64_t n = 0;

	for (; **text >= '0' && **text <= '9'; ++*text)
		n = n * 10 + (uint64_t)(**text - '0');
	++*text;
	return n;
}

/* Restores the original LD_PRELOAD: the text behind the first colon. Returns false when the
 * variable did not exist. */
static inline int restore(char *value)
{
	char *from = value;

	while (*from && *from != ':')
		from++;
	if (!*from++)
		return 0;
	while ((*value++ = *from++))
		;
	return 1;
}

#endif
