/* Frames of RFC 6455, from a server that may send anything. The server's key is not checked: the
 * caller has made sure by other means that the right process answers. */
#define _GNU_SOURCE
#include "input/inspector/websocket.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "base/characters.h"
#include "base/clock.h"

enum {
	LINE_MOST = 40, /* characters of a line that a message shows */
	HEAD_MOST = 1 << 14,
	DOCUMENT_MOST = 1 << 20,
	PIECE = 1 << 16,
	MILLISECOND = 1000000,
	LOOK = 200000000, /* ns between two looks for the wish to end */
	/* a frame */
	FINAL = 0x80,
	RESERVED = 0x70,
	MASKED = 0x80,
	CONTROL = 0x8, /* opcodes from here on */
	LENGTH_16 = 126,
	LENGTH_64 = 127,
	MASK_SIZE = 4,
	FRAME_HEAD_MOST = 14,
};
enum opcode { GOES_ON, TEXT, BINARY, CLOSE = 8, PING, PONG };

/* Returns 1 when the socket is ready, 0 when the time is over or a signal has come. */
static int wait_ready(int fd, short events, uint64_t until)
{
	struct pollfd p = { fd, events, 0 };
	const uint64_t now = now_ns();
	const uint64_t ms = until > now ? (until - now + MILLISECOND - 1) / MILLISECOND : 0;

	return poll(&p, 1, ms > INT32_MAX ? INT32_MAX : (int)ms) > 0;
}

static struct err *is_late(void)
{
	return err_new(ETIMEDOUT, "it does not answer");
}

static struct err *send_all(int fd, const char *p, size_t n, uint64_t until)
{
	while (n) {
		ssize_t k = send(fd, p, n, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (k < 0 && errno == EAGAIN) {
			if (!wait_ready(fd, POLLOUT, until) && now_ns() >= until)
				return is_late();
		} else if (k < 0 && errno != EINTR) {
			return err_errno(errno == EPIPE ? ECONNRESET : errno, "send");
		} else if (k > 0) {
			p += k;
			n -= (size_t)k;
		}
	}
	return NULL;
}

/* Reads what has come. Returns false when nothing has until then, or a signal has come. */
static bool read_more(struct websocket *w, uint64_t until, struct err **ret)
{
	ssize_t k;

	if (!wait_ready(w->fd, POLLIN, until))
		return false;
	if (w->at > w->come.n / 2) { /* what was taken makes room */
		memmove(w->come.v, w->come.v + w->at, w->come.n - w->at);
		w->come.n -= w->at;
		w->at = 0;
	}
	vec_reserve(&w->come, PIECE);
	k = recv(w->fd, w->come.v + w->come.n, PIECE, MSG_DONTWAIT);
	if (k < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (k > 0)
		w->come.n += (uint32_t)k;
	else
		*ret = err_new(ECONNRESET, "it has ended the connection");
	return k > 0;
}

/* Reads more of an answer that must come. */
static struct err *need_more(struct websocket *w, uint64_t until)
{
	struct err *e = NULL;
	bool more = false;

	while (!more && !e) {
		const uint64_t now = now_ns(), look = w->ends ? now + LOOK : UINT64_MAX;

		if (w->ends && *w->ends)
			return err_new(EINTR, "interrupted");
		if (now >= until)
			return is_late();
		/* a signal may come just before a wait */
		more = read_more(w, until < look ? until : look, &e);
	}
	return e;
}

/* --- HTTP --- */

/* Reads up to the empty line, which is cut off. *ret lies in w->come, of which nothing was taken
 * before. */
static struct err *read_head(struct websocket *w, uint64_t until, const char **ret)
{
	struct err *e = NULL;
	char *end = NULL;

	while (!e && !end) {
		e = need_more(w, until);
		end = e ? NULL : memmem(w->come.v, w->come.n, "\r\n\r\n", 4);
		if (!e && !end && w->come.n > HEAD_MOST)
			e = err_new(EINVAL, "its answer is not of HTTP");
	}
	if (e)
		return e;
	*end = '\0';
	w->at = (uint32_t)(end + 4 - w->come.v);
	*ret = w->come.v;
	return NULL;
}

static struct err *ask_http(struct websocket *w, const char *host, const char *path,
			    const char *more, const char *status, uint64_t until,
			    const char **ret_head)
{
	cleanup_free char *text =
		xasprintf("GET %s HTTP/1.1\r\nHost: %s\r\n%s\r\n", path, host, more);
	struct err *e = send_all(w->fd, text, strlen(text), until);

	e = e ?: read_head(w, until, ret_head);
	if (!e && strncmp(*ret_head, status, strlen(status)) != 0) {
		cleanup_free char *line = xstrndup(*ret_head, LINE_MOST);

		line[strcspn(line, "\r\n")] = '\0';
		characters_show(line, strlen(line));
		e = err_new(EPROTO, "it answers %s", line);
	}
	return e;
}

struct err *websocket_get(int fd, const char *host, const char *path, uint64_t until,
			  const volatile sig_atomic_t *ends, char **ret, size_t *ret_n)
{
	struct websocket w = { .fd = fd, .ends = ends };
	const char *head, *length;
	struct err *e = ask_http(&w, host, path, "", "HTTP/1.0 200", until, &head);
	uint64_t n = 0;

	/* Node.js says 1.0 */
	if (!e) {
		length = strcasestr(head, "\r\nContent-Length:");
		n = length ? strtoull(length + strlen("\r\nContent-Length:"), NULL, 10) : 0;
		if (!n || n > DOCUMENT_MOST)
			e = err_new(EINVAL, "its document has no fitting length");
	}
	while (!e && w.come.n - w.at < n)
		e = need_more(&w, until);
	if (!e && memchr(w.come.v + w.at, '\0', n))
		e = err_new(EINVAL, "its document has a NUL");
	if (!e) {
		*ret = xstrndup(w.come.v + w.at, n);
		*ret_n = n;
	}
	w.fd = -1;
	websocket_fini(&w);
	return e;
}

struct err *websocket_init(struct websocket *w, int fd, const char *host, const char *path,
			   uint64_t until, const volatile sig_atomic_t *ends)
{
	const char *head;
	struct err *e;

	*w = (struct websocket){ .fd = fd, .ends = ends };
	e = ask_http(w, host, path,
		     "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
		     "Sec-WebSocket-Key: ZGVzY3J5J3Mga2V5IDogMQ==\r\n",
		     "HTTP/1.1 101", until, &head);
	if (e)
		websocket_fini(w);
	return e;
}

void websocket_fini(struct websocket *w)
{
	if (w->fd >= 0)
		close(w->fd);
	w->fd = -1;
	vec_fini(&w->come);
	vec_fini(&w->text);
	w->at = 0;
}

/* --- frames --- */

/*	1 final, 3 reserved, 4 opcode | 1 masked, 7 length | length of 16 or 64 bits | mask | data */
static struct err *send_frame(struct websocket *w, enum opcode op, const char *text, size_t n,
			      uint64_t until)
{
	cleanup_free char *frame = xmalloc(n + FRAME_HEAD_MOST);
	uint8_t mask[MASK_SIZE] = { 0 };
	size_t at = 0, wide = n < LENGTH_16 ? 0 : n <= UINT16_MAX ? 2 : 8;

	(void)!getrandom(mask, sizeof(mask), 0);
	frame[at++] = (char)(FINAL | op);
	frame[at++] = (char)(MASKED | (!wide ? n : wide == 2 ? LENGTH_16 : LENGTH_64));
	for (size_t i = wide; i--;)
		frame[at++] = (char)(n >> (8 * i));
	memcpy(frame + at, mask, sizeof(mask));
	at += sizeof(mask);
	for (size_t i = 0; i < n; i++)
		frame[at++] = (char)(text[i] ^ mask[i % MASK_SIZE]);
	return send_all(w->fd, frame, at, until);
}

struct err *websocket_send(struct websocket *w, const char *text, uint64_t until)
{
	return send_frame(w, TEXT, text, strlen(text), until);
}

struct frame {
	uint8_t first;
	uint64_t n;
	const char *data;
};

/* Takes a frame that has come whole. Returns false when it has not. */
static bool take_frame(struct websocket *w, struct frame *ret, struct err **ret_error)
{
	const uint8_t *p = (const uint8_t *)w->come.v + w->at;
	const uint32_t have = w->come.n - w->at;
	uint32_t head, wide;

	if (have < 2)
		return false;
	*ret = (struct frame){ .first = p[0], .n = p[1] & ~MASKED };
	wide = ret->n == LENGTH_16 ? 2 : ret->n == LENGTH_64 ? 8 : 0;
	head = 2 + wide;
	if (p[0] & RESERVED || p[1] & MASKED || (p[0] & CONTROL && (wide || !(p[0] & FINAL)))) {
		*ret_error = err_new(EPROTO, "it sends a frame of no WebSocket");
		return false;
	}
	if (have < head)
		return false;
	if (wide)
		ret->n = 0;
	for (uint32_t i = 0; i < wide; i++)
		ret->n = ret->n << 8 | p[2 + i];
	if (ret->n > WEBSOCKET_MOST || w->text.n + ret->n > WEBSOCKET_MOST) {
		*ret_error =
			err_new(EMSGSIZE, "it sends more than %d MB at once", WEBSOCKET_MOST >> 20);
		return false;
	}
	if (have - head < ret->n)
		return false;
	ret->data = (const char *)p + head;
	w->at += head + (uint32_t)ret->n;
	return true;
}

/* Adds a part of a text. */
static struct err *take_part(struct websocket *w, const struct frame *f)
{
	const enum opcode op = f->first & 0xf;

	if ((op == GOES_ON) != w->begun || (op != GOES_ON && op != TEXT))
		return err_new(EPROTO, "it sends a frame that does not fit");
	w->begun = !(f->first & FINAL);
	vec_reserve(&w->text, f->n + 1);
	memcpy(w->text.v + w->text.n, f->data, f->n);
	w->text.n += (uint32_t)f->n;
	return NULL;
}

struct err *websocket_receive(struct websocket *w, uint64_t until, const char **ret, size_t *ret_n)
{
	struct err *e = NULL;
	struct frame f;

	*ret = NULL;
	if (!w->begun)
		w->text.n = 0;
	for (;;) {
		if (!take_frame(w, &f, &e)) {
			/* a server may send for ever what is no text */
			if (e || !read_more(w, until, &e) || now_ns() >= until)
				return e;
			continue;
		}
		switch (f.first & 0xf) {
		case CLOSE: return err_new(ECONNRESET, "it has ended the connection");
		case PING: e = send_frame(w, PONG, f.data, f.n, until); break;
		case PONG: break;
		default: e = take_part(w, &f); break;
		}
		if (e)
			return e;
		if (!(f.first & CONTROL) && !w->begun) {
			w->text.v[w->text.n] = '\0';
			*ret = w->text.v;
			*ret_n = w->text.n;
			return NULL;
		}
	}
}
