/* The connections of the web server of descry serve: how many an address may hold, and for how
 * long.
 *
 * In: the begin and end of each connection, and how far its request has come. Out: connections that
 * are over their limit are shut down (shutdown(2)); the server then sees their end and closes them.
 * A connection is a stranger until it has shown the token, then a guest, and a stream if it listens
 * to the events.
 * Always true: a new connection is let in. Strangers make room for it, first the oldest of the same
 * address, so neither half a request nor an idle connection keeps anybody out. An IPv6 address
 * counts by its first 64 bits, which one machine may have. Any function may be called from any
 * thread; none calls back.
 */
#ifndef DESCRY_SERVE_PEERS_H
#define DESCRY_SERVE_PEERS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

enum {
	PEERS_STRANGERS = 64,
	PEERS_STRANGERS_OF_ADDRESS = 16,
	PEERS_GUESTS_OF_ADDRESS = 32,
	PEERS_STREAMS = 64,
	PEERS_STREAMS_OF_ADDRESS = 16,
	PEERS_STRANGER_SECONDS = 10, /* to send the head of a request */
	PEERS_GUEST_SECONDS = 60,    /* to send the rest and to take the answer */
};

struct peers;
struct peer;

struct peers *peers_new(void);
/* All connections have ended by then. */
void peers_free(struct peers *p);

/* `fd` stays the server's, open until peers_close(). `a` is copied. */
struct peer *peers_open(struct peers *p, const struct sockaddr *a, int fd);
void peers_close(struct peers *p, struct peer *peer);
/* Notes that the connection has shown the token. Returns false when its address has too many guests
 * already. */
bool peers_admit(struct peers *p, struct peer *peer);
/* Turns a guest into a stream of events. Returns NULL, or the limit that is reached as a text for
 * the user, never freed. */
const char *peers_stream(struct peers *p, struct peer *peer);
/* Shuts down those whose time is over at `now` (now_ns()). Streams have no such time. */
void peers_expire(struct peers *p, uint64_t now);
/* Returns true when the other side of a connection has ended or vanished. */
bool peers_is_gone(int fd);

#endif
