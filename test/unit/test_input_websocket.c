/* src/input/inspector/websocket.c: servers that are made up, over a pair of sockets. Nobody reads
 * what the client sends: it is in the sockets' buffers. */
#include "unit.h"

#include <errno.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "input/inspector/websocket.h"

static const char accepted[] = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n";

static uint64_t soon(void)
{
	return now_ns() + 20000000000u;
}

/* Makes a client whose server has sent so many bytes, and has ended or not. *ret_other is the
 * server's side. */
static struct err *begin(struct websocket *w, const char *bytes, size_t n, bool ended,
			 int *ret_other)
{
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	assert_int_equal(write(fds[1], accepted, sizeof(accepted) - 1), sizeof(accepted) - 1);
	assert_int_equal(write(fds[1], bytes, n), n);
	if (ended)
		shutdown(fds[1], SHUT_WR);
	*ret_other = fds[1];
	return websocket_init(w, fds[0], "127.0.0.1:1", "/x", soon(), NULL);
}

/* The error of the first text, 0 when there is one, which must be `want`, -1 when none has come. */
static int first_text(const char *bytes, size_t n, const char *want)
{
	struct websocket w;
	const char *text = NULL;
	size_t size = 0;
	int other, code = 0;
	struct err *e = begin(&w, bytes, n, true, &other);

	assert_null(e);
	e = websocket_receive(&w, soon(), &text, &size);
	if (e)
		code = e->code;
	else if (!text)
		code = -1;
	else if (want)
		assert_string_equal(text, want);
	err_free(e);
	websocket_fini(&w);
	close(other);
	return code;
}

#define TEXT_OF(bytes, want) first_text(bytes, sizeof(bytes) - 1, want)

static void websocket_texts(void **state)
{
	static char large[70014] = "\x81\x7f\0\0\0\0\0\x01\x11\x66";
	char want[70000];

	assert_int_equal(TEXT_OF("\x81\x05hello", "hello"), 0);
	assert_int_equal(TEXT_OF("\x81\x7e\x00\x05hello", "hello"), 0);
	/* in parts, with a ping and a pong between */
	assert_int_equal(TEXT_OF("\x01\x03hel\x89\x02zz\x8a\x00\x00\x01l\x80\x01o", "hello"), 0);
	assert_int_equal(TEXT_OF("\x81\x00", ""), 0);
	memset(large + 10, 'x', sizeof(large) - 10);
	memset(want, 'x', sizeof(want));
	want[0x11166] = '\0';
	assert_int_equal(first_text(large, 10 + 0x11166, want), 0);
}

static void websocket_wrong(void **state)
{
	assert_int_equal(TEXT_OF("", NULL), ECONNRESET);
	assert_int_equal(TEXT_OF("\x81\x05hell", NULL), ECONNRESET);
	assert_int_equal(TEXT_OF("\x88\x00", NULL), ECONNRESET);
	assert_int_equal(TEXT_OF("\x81\x85....hello", NULL), EPROTO); /* masked */
	assert_int_equal(TEXT_OF("\xc1\x05hello", NULL), EPROTO);     /* a reserved bit */
	assert_int_equal(TEXT_OF("\x09\x00", NULL), EPROTO);          /* a part of a ping */
	assert_int_equal(TEXT_OF("\x89\x7e\x01\x00", NULL), EPROTO);  /* a long ping */
	assert_int_equal(TEXT_OF("\x80\x01x", NULL), EPROTO);         /* goes on without a begin */
	assert_int_equal(TEXT_OF("\x01\x01x\x81\x01y", NULL), EPROTO);
	assert_int_equal(TEXT_OF("\x82\x01x", NULL), EPROTO);
	/* larger than anything may be, also in parts */
	assert_int_equal(TEXT_OF("\x81\x7f\x7f\xff\xff\xff\xff\xff\xff\xff", NULL), EMSGSIZE);
	assert_int_equal(TEXT_OF("\x81\x7f\xff\xff\xff\xff\xff\xff\xff\xff", NULL), EMSGSIZE);
	assert_int_equal(TEXT_OF("\x01\x01x\x00\x7f\x00\x00\x00\x00\x04\x00\x00\x00", NULL),
			 EMSGSIZE);
}

/* A server that sends no text does not hold the caller beyond its time. */
static void websocket_late(void **state)
{
	struct websocket w;
	const char *text = "";
	size_t size;
	int other;

	assert_null(begin(&w, "\x8a\x00\x01\x01x", 5, false, &other));
	assert_null(websocket_receive(&w, now_ns() + 1000000, &text, &size));
	assert_null(text);
	assert_null(websocket_receive(&w, 0, &text, &size));
	assert_null(text);
	assert_int_equal(write(other, "\x80\x01y", 3), 3);
	assert_null(websocket_receive(&w, soon(), &text, &size));
	assert_string_equal(text, "xy");
	websocket_fini(&w);
	close(other);
}

static int document_of(const char *answer, size_t size, const char *want)
{
	int fds[2], code = 0;
	char *text = NULL;
	size_t n = 0;
	struct err *e;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	assert_int_equal(write(fds[1], answer, size), size);
	shutdown(fds[1], SHUT_WR);
	e = websocket_get(fds[0], "127.0.0.1:1", "/", soon(), NULL, &text, &n);
	if (e)
		code = e->code;
	else
		assert_string_equal(text, want);
	err_free(e);
	free(text);
	close(fds[0]);
	close(fds[1]);
	return code;
}

static int document(const char *answer, const char *want)
{
	return document_of(answer, strlen(answer), want);
}

static void websocket_documents(void **state)
{
	static const char with_nul[] = "HTTP/1.0 200 OK\r\nContent-Length: 6\r\n\r\nhe\0llo";
	char head[40000];

	assert_int_equal(
		document("HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello more", "hello"), 0);
	assert_int_equal(document("HTTP/1.0 200 OK\r\nContent-Length: 9\r\n\r\nhello", NULL),
			 ECONNRESET);
	assert_int_equal(document("HTTP/1.0 200 OK\r\n\r\nhello", NULL), EINVAL);
	assert_int_equal(
		document("HTTP/1.0 200 OK\r\nContent-Length: 99999999999999999999999\r\n\r\n",
			 NULL),
		EINVAL);
	assert_int_equal(document("HTTP/1.0 404 No\r\nContent-Length: 1\r\n\r\nx", NULL), EPROTO);
	assert_int_equal(document("SSH-2.0-server\r\n", NULL), ECONNRESET);
	assert_int_equal(document_of(with_nul, sizeof(with_nul) - 1, NULL), EINVAL);
	memset(head, 'x', sizeof(head));
	head[sizeof(head) - 1] = '\0';
	assert_int_equal(document(head, NULL), EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(websocket_texts),
		cmocka_unit_test(websocket_wrong),
		cmocka_unit_test(websocket_late),
		cmocka_unit_test(websocket_documents),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
