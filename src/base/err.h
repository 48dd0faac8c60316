/* Errors of the world (a file, a system call, a process that has exited). NULL is success. An error
 * owns its text. Context is added in front: err_wrap(e, "reading symbols of %s", path) makes
 * "reading symbols of /bin/x: open: No such file or directory". */
#ifndef DESCRY_BASE_ERR_H
#define DESCRY_BASE_ERR_H

#include <stdbool.h>

struct err {
	int code;   /* errno value, 0 when there is none */
	char *text; /* one line, no newline: those of names are shown as "\012" */
};

struct err *err_new(int code, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Makes one of several lines: a D expression's diagnostics. */
struct err *err_lines(int code, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Makes an error like err_new(), with ": strerror(errno_value)" at the end. */
struct err *err_errno(int errno_value, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Puts context in front of e's text. Returns e, which must not be NULL. */
struct err *err_wrap(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void err_free(struct err *e);
/* For callers that go on without what failed: frees e. Returns true when there was an error. */
bool err_drop(struct err *e);

static inline void cleanup_err_(struct err **e)
{
	err_free(*e);
}
#define cleanup_err __attribute__((cleanup(cleanup_err_)))

#endif
