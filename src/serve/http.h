/* The web server of descry serve.
 *
 * In: a live run; requests on a socket. Out: the page (one document and no other), its events, and,
 * where that is permitted, D programs that the page sends. Always true: the server refuses a
 * request before it examines anything else when the path does not begin with the token, or the Host
 * is not this server's (another name may be resolved to this machine by an attacker). The page may
 * load nothing from other servers.
 */
#ifndef DESCRY_SERVE_HTTP_H
#define DESCRY_SERVE_HTTP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "serve/live_page.h"

struct http;

struct http_options {
	const char *address; /* IPv4 or IPv6; NULL: 127.0.0.1 */
	uint16_t port;       /* 0: a free one */
	/* A program that the page sent, or "" to end the run. Called on the server's thread; NULL:
	 * not allowed. */
	void (*run)(void *arg, const char *program);
	/* Begins to read the heap. Called on the server's thread; NULL: not allowed. */
	void (*heap_read)(void *arg);
	/* Returns what the reading has printed, which is freed; NULL while it goes on. */
	char *(*heap_text)(void *arg);
	void *arg;
};
struct err *http_start(struct live *l, const struct http_options *o, struct http **ret);
void http_stop(struct http *h);
/* "http://127.0.0.1:4242/TOKEN/", lives as long as h. */
const char *http_url(const struct http *h);

#endif
