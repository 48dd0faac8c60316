/* Counts the connections of each address, and chooses those to close. */
#define _GNU_SOURCE
#include "serve/peers.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>

#include "base/clock.h"
#include "base/mem.h"

enum peer_state { PEER_STRANGER, PEER_GUEST, PEER_STREAM, PEER_ENDED, PEER_STATES };
enum { VANISHED_MS = 60000 };

/* The part of an address that identifies its owner: the family and the significant bytes. */
struct address {
	sa_family_t family;
	uint8_t bytes[8];
};

struct peer {
	struct address address;
	enum peer_state state;
	int fd;
	uint64_t since; /* now_ns() when it came */
	struct peer *older, *newer;
};

struct peers {
	pthread_mutex_t lock;
	struct peer *oldest, *newest;
};

struct peers *peers_new(void)
{
	struct peers *p = xcalloc(1, sizeof(*p));

	pthread_mutex_init(&p->lock, NULL);
	return p;
}

void peers_free(struct peers *p)
{
	if (!p)
		return;
	pthread_mutex_destroy(&p->lock);
	free(p);
}

static struct address address_of(const struct sockaddr *a)
{
	struct address r = { .family = a ? a->sa_family : AF_UNSPEC };

	if (r.family == AF_INET)
		memcpy(r.bytes, &((const struct sockaddr_in *)a)->sin_addr, 4);
	else if (r.family == AF_INET6)
		memcpy(r.bytes, &((const struct sockaddr_in6 *)a)->sin6_addr, sizeof(r.bytes));
	return r;
}

static bool same_address(const struct address *a, const struct address *b)
{
	return a->family == b->family && !memcmp(a->bytes, b->bytes, sizeof(a->bytes));
}

/* How many are in that state; `of` NULL: of all addresses. *ret_oldest may be NULL. */
static uint32_t peers_count(const struct peers *p, enum peer_state state, const struct address *of,
			    struct peer **ret_oldest)
{
	struct peer *oldest = NULL;
	uint32_t n = 0;

	for (struct peer *e = p->oldest; e; e = e->newer) {
		if (e->state != state || (of && !same_address(&e->address, of)))
			continue;
		oldest = oldest ? oldest : e;
		n++;
	}
	if (ret_oldest)
		*ret_oldest = oldest;
	return n;
}

static void peers_end(struct peer *peer)
{
	peer->state = PEER_ENDED;
	(void)shutdown(peer->fd, SHUT_RDWR); /* it may have ended by itself */
}

struct peer *peers_open(struct peers *p, const struct sockaddr *a, int fd)
{
	struct peer *peer = xcalloc(1, sizeof(*peer)), *oldest;
	unsigned vanished = VANISHED_MS;

	peer->address = address_of(a);
	peer->fd = fd;
	peer->since = now_ns();
	/* A machine that is switched off sends no end: unanswered bytes do. Without the option TCP
	 * needs a quarter of an hour. */
	(void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &vanished, sizeof(vanished));
	pthread_mutex_lock(&p->lock);
	if (peers_count(p, PEER_STRANGER, &peer->address, &oldest) >= PEERS_STRANGERS_OF_ADDRESS ||
	    peers_count(p, PEER_STRANGER, NULL, &oldest) >= PEERS_STRANGERS)
		peers_end(oldest);
	peer->older = p->newest;
	*(p->newest ? &p->newest->newer : &p->oldest) = peer;
	p->newest = peer;
	pthread_mutex_unlock(&p->lock);
	return peer;
}

void peers_close(struct peers *p, struct peer *peer)
{
	pthread_mutex_lock(&p->lock);
	*(peer->older ? &peer->older->newer : &p->oldest) = peer->newer;
	*(peer->newer ? &peer->newer->older : &p->newest) = peer->older;
	pthread_mutex_unlock(&p->lock);
	free(peer);
}

bool peers_admit(struct peers *p, struct peer *peer)
{
	bool good;

	pthread_mutex_lock(&p->lock);
	good = peer->state != PEER_STRANGER ||
	       peers_count(p, PEER_GUEST, &peer->address, NULL) < PEERS_GUESTS_OF_ADDRESS;
	if (good && peer->state == PEER_STRANGER)
		peer->state = PEER_GUEST;
	pthread_mutex_unlock(&p->lock);
	return good;
}

/* Which limit is reached; NULL: none. */
static const char *too_many_streams(const struct peers *p, const struct address *a)
{
	if (peers_count(p, PEER_STREAM, a, NULL) >= PEERS_STREAMS_OF_ADDRESS)
		return "too many pages are open at your address: close one\n";
	if (peers_count(p, PEER_STREAM, NULL, NULL) >= PEERS_STREAMS)
		return "too many pages are open: close one\n";
	return NULL;
}

const char *peers_stream(struct peers *p, struct peer *peer)
{
	const char *why;

	pthread_mutex_lock(&p->lock);
	why = too_many_streams(p, &peer->address);
	for (struct peer *e = p->oldest; e && why; e = e->newer)
		if (e->state == PEER_STREAM && peers_is_gone(e->fd))
			peers_end(e);
	if (why) /* the server has not seen yet that some have ended */
		why = too_many_streams(p, &peer->address);
	if (!why && peer->state == PEER_GUEST)
		peer->state = PEER_STREAM;
	pthread_mutex_unlock(&p->lock);
	return why;
}

void peers_expire(struct peers *p, uint64_t now)
{
	static const uint64_t seconds[PEER_STATES] = {
		[PEER_STRANGER] = PEERS_STRANGER_SECONDS,
		[PEER_GUEST] = PEERS_GUEST_SECONDS,
	};

	pthread_mutex_lock(&p->lock);
	for (struct peer *e = p->oldest; e; e = e->newer)
		if (seconds[e->state] && now > e->since + seconds[e->state] * 1000000000)
			peers_end(e);
	pthread_mutex_unlock(&p->lock);
}

bool peers_is_gone(int fd)
{
	struct pollfd f = { .fd = fd, .events = POLLRDHUP };

	return poll(&f, 1, 0) > 0 && f.revents & (POLLRDHUP | POLLHUP | POLLERR | POLLNVAL);
}
