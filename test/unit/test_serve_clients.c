/* The clients of the live page's server: origins of requests, and the limits on connections, on
 * sockets of this process. */
#include "unit.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "serve/origin.h"
#include "serve/peers.h"

static void test_host(void **state)
{
	static const char *const ours[] = {
		"127.0.0.1:4242", "127.0.0.1", "192.0.2.7:80", "localhost", "LocalHost:8000",
		"[::1]:4242",     "[fe80::1]", "box",          "BOX:1",
	};
	static const char *const others[] = {
		"",
		":80",
		"evil.example",
		"evil.example:4242",
		"127.0.0.1.nip.example",
		"127.0.0.1:",
		"127.0.0.1:x",
		"localhost.:1",
		"[::1",
		"[evil.example]:1",
		"[]",
		"::1",
		"localhost:1:2",
		"box.example",
		"127.0.0.1:80@evil.example",
		"0x7f000001",
		"127.1",
		"user@127.0.0.1:",
		"localhost ",
		"[::1]4242",
	};
	char large[1000];

	for (size_t i = 0; i < ARRAY_SIZE(ours); i++)
		if (!origin_host_is_ours(ours[i], "box"))
			fail_msg("%s is refused", ours[i]);
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		if (origin_host_is_ours(others[i], "box"))
			fail_msg("%s is taken", others[i]);
	memset(large, '1', sizeof(large) - 1);
	large[sizeof(large) - 1] = '\0';
	assert_false(origin_host_is_ours(large, "box"));
	assert_false(origin_host_is_ours(NULL, "box"));
	assert_false(origin_host_is_ours("", ""));
	assert_false(origin_host_is_ours("box", NULL));
}

static void test_page(void **state)
{
	static const char host[] = "127.0.0.1:4242";

	assert_true(origin_is_page(host, NULL, NULL));
	assert_true(origin_is_page(host, "http://127.0.0.1:4242", "same-origin"));
	assert_true(origin_is_page("LOCALHOST:1", "http://localhost:1", NULL));
	assert_false(origin_is_page(host, "http://127.0.0.1:4243", NULL));
	assert_false(origin_is_page(host, "http://127.0.0.1", NULL));
	assert_false(origin_is_page(host, "https://127.0.0.1:4242", NULL));
	assert_false(origin_is_page(host, "null", NULL));
	assert_false(origin_is_page(host, "", NULL));
	assert_false(origin_is_page(host, NULL, "cross-site"));
	assert_false(origin_is_page(host, NULL, "same-site"));
	assert_false(origin_is_page(
		host, NULL, "none")); /* typed by hand: it is the page that asks for these */
	assert_false(origin_is_page(NULL, "http://", NULL));
}

/* Both ends of a connection, and the server's record of it. */
struct end {
	int fds[2];
	struct peer *peer;
};

static struct end open_from(struct peers *p, uint32_t address)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(address) };
	struct end e;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, e.fds), 0);
	e.peer = peers_open(p, (struct sockaddr *)&a, e.fds[0]);
	return e;
}

static void close_end(struct peers *p, struct end *e)
{
	peers_close(p, e->peer);
	close(e->fds[0]);
	close(e->fds[1]);
}

static bool is_ended(const struct end *e)
{
	return peers_is_gone(e->fds[1]);
}

static void test_strangers(void **state)
{
	enum { N = PEERS_STRANGERS_OF_ADDRESS, ALL = PEERS_STRANGERS };
	struct peers *p = peers_new();
	struct end first = open_from(p, 1), many[N + 4], others[ALL];

	assert_true(peers_admit(p, first.peer)); /* a guest makes no room */
	for (int i = 0; i < N + 4; i++)
		many[i] = open_from(p, 1);
	for (int i = 0; i < N + 4; i++)
		assert_int_equal(is_ended(&many[i]), i < 4);
	assert_false(is_ended(&first));
	for (uint32_t i = 0; i < ALL; i++)
		others[i] = open_from(p, 100 + i);
	for (int i = 0; i < N + 4; i++)
		assert_true(is_ended(&many[i])); /* the oldest of all */
	for (int i = 0; i < ALL; i++)
		assert_false(is_ended(&others[i]));
	peers_expire(p, now_ns());
	assert_false(is_ended(&others[0]));
	peers_expire(p, now_ns() + (PEERS_STRANGER_SECONDS + 1) * 1000000000ull);
	assert_true(is_ended(&others[ALL - 1]));
	assert_false(is_ended(&first));
	peers_expire(p, now_ns() + (PEERS_GUEST_SECONDS + 1) * 1000000000ull);
	assert_true(is_ended(&first));
	close_end(p, &first);
	for (int i = 0; i < N + 4; i++)
		close_end(p, &many[i]);
	for (int i = 0; i < ALL; i++)
		close_end(p, &others[i]);
	peers_free(p);
}

static void test_streams(void **state)
{
	enum { N = PEERS_STREAMS_OF_ADDRESS, ALL = PEERS_STREAMS };
	struct peers *p = peers_new();
	struct end e[ALL], more = open_from(p, 1), other = open_from(p, 99);

	assert_true(peers_admit(p, more.peer) && peers_admit(p, other.peer));
	for (uint32_t i = 0; i < ALL; i++) {
		e[i] = open_from(p, 1 + i / N);
		assert_true(peers_admit(p, e[i].peer));
		if (i == N) {
			assert_non_null(strstr(peers_stream(p, more.peer), "at your address"));
			assert_null(peers_stream(p, other.peer));
			close_end(p, &other);
			other = open_from(p, 99);
			assert_true(peers_admit(p, other.peer));
		}
		assert_null(peers_stream(p, e[i].peer));
	}
	assert_null(strstr(peers_stream(p, other.peer), "at your address"));
	peers_expire(p, UINT64_MAX); /* a stream lasts as long as the page */
	assert_false(is_ended(&e[0]));
	close(e[0].fds[1]); /* a page was closed, which the server has not seen yet */
	e[0].fds[1] = -1;
	close_end(p, &more);
	more = open_from(p, 1);
	assert_true(peers_admit(p, more.peer));
	assert_null(peers_stream(p, more.peer));
	close_end(p, &more);
	close_end(p, &other);
	for (int i = 0; i < ALL; i++)
		close_end(p, &e[i]);
	peers_free(p);
}

static void test_guests(void **state)
{
	enum { N = PEERS_GUESTS_OF_ADDRESS };
	struct peers *p = peers_new();
	struct end e[N + 1], other = open_from(p, 2);

	for (int i = 0; i < N + 1; i++) {
		e[i] = open_from(p, 1);
		assert_int_equal(peers_admit(p, e[i].peer), i < N);
	}
	assert_true(peers_admit(p, other.peer));
	for (int i = 0; i < N + 1; i++)
		close_end(p, &e[i]);
	close_end(p, &other);
	peers_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_host),      cmocka_unit_test(test_page),
		cmocka_unit_test(test_strangers), cmocka_unit_test(test_streams),
		cmocka_unit_test(test_guests),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
