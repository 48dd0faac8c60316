/* A client of a WebSocket (RFC 6455) over a connected socket.
 *
 * In: texts. Out: texts, as the server has sent them, whole.
 * Always true: nothing waits beyond its time. A text is at most WEBSOCKET_MOST long, and memory is
 * taken as its bytes come, not as the server announces them.
 */
#ifndef DESCRY_INPUT_INSPECTOR_WEBSOCKET_H
#define DESCRY_INPUT_INSPECTOR_WEBSOCKET_H

#include <signal.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"

enum { WEBSOCKET_MOST = 64 << 20 };

struct websocket {
	int fd;         /* owned; -1: none */
	VEC(char) come; /* bytes that were read, from `at` on not taken yet */
	uint32_t at;
	VEC(char) text; /* the begin of a text whose end has not come */
	bool begun;     /* there is such a begin */
	/* NULL: none. When it is set, the wait for what must come ends with EINTR. */
	const volatile sig_atomic_t *ends;
};

/* Asks an HTTP server for a document, whose text is malloc()ed. until: CLOCK_MONOTONIC. ends: as
 * above. */
struct err *websocket_get(int fd, const char *host, const char *path, uint64_t until,
			  const volatile sig_atomic_t *ends, char **ret, size_t *ret_n);
/* Begins. Takes the descriptor, also when it fails. */
struct err *websocket_init(struct websocket *w, int fd, const char *host, const char *path,
			   uint64_t until, const volatile sig_atomic_t *ends);
void websocket_fini(struct websocket *w);
struct err *websocket_send(struct websocket *w, const char *text, uint64_t until);
/* Waits for a text until a moment or a signal. *ret: the text, which the next call replaces, or
 * NULL when none has come. ECONNRESET: the server has ended the connection. */
struct err *websocket_receive(struct websocket *w, uint64_t until, const char **ret, size_t *ret_n);

#endif
