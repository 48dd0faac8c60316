/* Answers requests with the page and its events, and takes programs. */
#define _GNU_SOURCE
#include "serve/http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"
#include "serve/origin.h"
#include "serve/peers.h"

/* tools/embed-files makes them from the files of these names */
extern const char serve_html[], serve_css[], serve_js[], heat_js[];

enum {
	TOKEN_BYTES = 16,
	PROGRAM_MAX = 1 << 20,
	/* bytes read of a program that is too long, so that an answer can be sent */
	BODY_MAX = 16 << 20,
	BLOCK = 64 * 1024,
	CONNECTION_BYTES = 128 * 1024, /* for a request's head, later for a block of the answer */
	CONNECTIONS_MAX = 256,         /* peers.h ends connections long before */
	CHECK_SECONDS = 1,
	BEAT_SECONDS = 15,  /* period after which a stream without news sends a comment */
	STUCK_SECONDS = 60, /* period after which a stream that accepts no data is ended */
};

/* A page that listens to the events. */
struct client {
	struct http *http;
	struct MHD_Connection *connection;
	int fd; /* owned by the server; open as long as the client is in the list */
	struct live_reader reader;
	struct out text; /* to send */
	size_t sent;
	uint64_t moved; /* now_ns() when it last accepted data */
	bool suspended, beat, gone;
	struct client *next, **link;
};

struct http {
	struct live *live;
	struct http_options options;
	struct MHD_Daemon *daemon;
	char token[TOKEN_BYTES * 2 + 1];
	char *url;
	char machine[256]; /* this machine's name */
	char *page;
	struct peers *peers;
	pthread_mutex_t lock;
	pthread_cond_t stop;
	struct client *clients;
	bool stopping;
	pthread_t keeper; /* watches the streams */
	bool has_keeper;
};

/* The body of a POST. */
struct request {
	struct out body;
	uint64_t length; /* bytes received, kept or not */
};

static bool same_secret(const char *a, const char *b, size_t n)
{
	unsigned char differs = 0;

	for (size_t i = 0; i < n; i++)
		differs |= (unsigned char)(a[i] ^ b[i]);
	return !differs;
}

/* --- answers --- */

static void add_headers(struct MHD_Response *r, const char *type)
{
	MHD_add_response_header(r, "Content-Type", type);
	MHD_add_response_header(r, "Cache-Control", "no-store");
	MHD_add_response_header(r, "X-Content-Type-Options", "nosniff");
	MHD_add_response_header(r, "Cross-Origin-Resource-Policy", "same-origin");
}

static enum MHD_Result answer(struct MHD_Connection *c, unsigned status, const char *type,
			      const char *text, enum MHD_ResponseMemoryMode mode)
{
	struct MHD_Response *r = MHD_create_response_from_buffer(strlen(text), (void *)text, mode);
	enum MHD_Result rc;

	if (!r)
		return MHD_NO;
	add_headers(r, type);
	/* an idle connection would have no use */
	MHD_add_response_header(r, "Connection", "close");
	MHD_add_response_header(r, "Referrer-Policy", "no-referrer");
	MHD_add_response_header(r, "X-Frame-Options", "DENY");
	MHD_add_response_header(r, "Content-Security-Policy",
				"default-src 'none'; script-src 'unsafe-inline'; style-src "
				"'unsafe-inline'; connect-src 'self'; base-uri 'none'; "
				"form-action 'none'; frame-ancestors 'none'");
	rc = MHD_queue_response(c, status, r);
	MHD_destroy_response(r);
	return rc;
}

static enum MHD_Result http_refuse(struct MHD_Connection *c, unsigned status, const char *why)
{
	return answer(c, status, "text/plain; charset=utf-8", why, MHD_RESPMEM_PERSISTENT);
}

/* --- events --- */

static ssize_t send_events(void *cls, uint64_t pos, char *buf, size_t max)
{
	struct client *c = cls;
	ssize_t n = 0;

	pthread_mutex_lock(&c->http->lock);
	c->moved = now_ns();
	if (c->gone) {
		pthread_mutex_unlock(&c->http->lock);
		return MHD_CONTENT_READER_END_WITH_ERROR;
	}
	if (c->sent == c->text.n) {
		if (c->text.cap > 4 * BLOCK) /* it was a large text */
			out_fini(&c->text);
		c->sent = c->text.n = 0;
		out_str(&c->text, "data: ");
		if (live_next(c->http->live, &c->reader, &c->text))
			out_str(&c->text, "\n\n");
		else
			c->text.n = 0;
		if (!c->text.n && c->beat)
			out_str(&c->text, ":\n\n");
		c->beat = false;
	}
	if (c->text.n) {
		size_t left = c->text.n - c->sent;

		n = (ssize_t)(left < max ? left : max);
		memcpy(buf, c->text.v + c->sent, (size_t)n);
		c->sent += (size_t)n;
	} else if (c->http->stopping) {
		n = MHD_CONTENT_READER_END_OF_STREAM;
	} else {
		c->suspended = true;
		MHD_suspend_connection(c->connection);
	}
	pthread_mutex_unlock(&c->http->lock);
	return n;
}

static void end_events(void *cls)
{
	struct client *c = cls;

	pthread_mutex_lock(&c->http->lock);
	*c->link = c->next;
	if (c->next)
		c->next->link = c->link;
	pthread_mutex_unlock(&c->http->lock);
	out_fini(&c->text);
	free(c);
}

static void resume(struct client *c)
{
	if (c->suspended)
		MHD_resume_connection(c->connection);
	c->suspended = false;
}

/* Wakes the streams that wait for something new. */
static void wake(void *arg)
{
	struct http *h = arg;

	pthread_mutex_lock(&h->lock);
	for (struct client *c = h->clients; c; c = c->next)
		resume(c);
	pthread_mutex_unlock(&h->lock);
}

/* libmicrohttpd does not watch a suspended connection, so this function finds its end: a page that
 * was closed, or a machine that is gone (it does not answer the beat). Ends streams that accept no
 * data. The lock is held.
 */
static void look_after(struct client *c, uint64_t now)
{
	uint64_t idle = now > c->moved ? now - c->moved : 0;

	if (peers_is_gone(c->fd) ||
	    (!c->suspended && idle > (uint64_t)STUCK_SECONDS * 1000000000)) {
		c->gone = true;
		(void)shutdown(c->fd, SHUT_RDWR);
		resume(c);
	} else if (c->suspended && idle > (uint64_t)BEAT_SECONDS * 1000000000) {
		c->beat = true;
		resume(c);
	}
}

static void *http_keep(void *arg)
{
	struct http *h = arg;
	struct timespec t;

	pthread_mutex_lock(&h->lock);
	while (!h->stopping) {
		clock_gettime(CLOCK_MONOTONIC, &t);
		t.tv_sec += CHECK_SECONDS;
		pthread_cond_timedwait(&h->stop, &h->lock, &t);
		for (struct client *c = h->clients; c; c = c->next)
			look_after(c, now_ns());
		peers_expire(h->peers, now_ns());
	}
	pthread_mutex_unlock(&h->lock);
	return NULL;
}

static enum MHD_Result events(struct http *h, struct MHD_Connection *connection, struct peer *peer)
{
	const char *why = peers_stream(h->peers, peer);
	struct MHD_Response *r;
	struct client *c;
	enum MHD_Result rc;

	if (why)
		return http_refuse(connection, MHD_HTTP_SERVICE_UNAVAILABLE, why);
	c = xcalloc(1, sizeof(*c));
	c->http = h;
	c->connection = connection;
	c->fd = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
	c->moved = now_ns();
	pthread_mutex_lock(&h->lock);
	c->next = h->clients;
	c->link = &h->clients;
	if (c->next)
		c->next->link = &c->next;
	h->clients = c;
	pthread_mutex_unlock(&h->lock);
	r = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK, send_events, c, end_events);
	if (!r) {
		end_events(c);
		return MHD_NO;
	}
	add_headers(r, "text/event-stream");
	rc = MHD_queue_response(connection, MHD_HTTP_OK, r);
	MHD_destroy_response(r);
	return rc;
}

/* --- requests --- */

static const char *header(struct MHD_Connection *c, const char *name)
{
	return MHD_lookup_connection_value(c, MHD_HEADER_KIND, name);
}

/* Returns the rest of the path behind the token, NULL: it has no token. */
static const char *behind_token(const struct http *h, const char *url)
{
	size_t n = strlen(h->token);

	if (strlen(url) < n + 2 || url[0] != '/' || !same_secret(url + 1, h->token, n) ||
	    url[n + 1] != '/')
		return NULL;
	return url + n + 2;
}

/* A page of another origin cannot set X-Descry without a preflight request, which this server does
 * not answer. */
static bool is_from_page(struct MHD_Connection *c)
{
	const char *mark = header(c, "X-Descry");

	return mark && !strcmp(mark, "1");
}

static enum MHD_Result take_program(struct http *h, struct MHD_Connection *c, struct request *req)
{
	if (!h->options.run)
		return http_refuse(
			c, MHD_HTTP_FORBIDDEN,
			"the page may not send programs: start descry serve with --allow-d\n");
	if (!is_from_page(c))
		return http_refuse(c, MHD_HTTP_FORBIDDEN, "not from the page\n");
	if (req->length > PROGRAM_MAX)
		return http_refuse(c, MHD_HTTP_CONTENT_TOO_LARGE, "a program of more than 1 MB\n");
	if (req->body.n && memchr(req->body.v, '\0', req->body.n))
		return http_refuse(c, MHD_HTTP_BAD_REQUEST, "not a text\n");
	out_char(&req->body, '\0');
	h->options.run(h->options.arg, req->body.v);
	return http_refuse(c, MHD_HTTP_OK, "\n");
}

/* POST begins to read the heap; GET has the result, or 202 while it is read. */
static enum MHD_Result take_heap(struct http *h, struct MHD_Connection *c, bool post)
{
	char *text;

	if (!h->options.heap_read)
		return http_refuse(
			c, MHD_HTTP_FORBIDDEN,
			"the page may not read the heap: start descry serve with --allow-heap\n");
	if (post && !is_from_page(c))
		return http_refuse(c, MHD_HTTP_FORBIDDEN, "not from the page\n");
	if (post) {
		h->options.heap_read(h->options.arg);
		return http_refuse(c, MHD_HTTP_OK, "\n");
	}
	text = h->options.heap_text(h->options.arg);
	return text ? answer(c, MHD_HTTP_OK, "text/plain; charset=utf-8", text,
			     MHD_RESPMEM_MUST_FREE)
		    : http_refuse(c, MHD_HTTP_ACCEPTED, "it is being read\n");
}

/* Checks the head of a request before its body is read. Returns false when it was answered, with
 * *ret. */
static bool may_go_on(struct http *h, struct MHD_Connection *c, struct peer *peer, const char *url,
		      enum MHD_Result *ret)
{
	const char *host = header(c, "Host"), *path = behind_token(h, url), *length;
	bool good = false;

	if (!path)
		*ret = http_refuse(c, MHD_HTTP_FORBIDDEN,
				   "the address needs the token that descry serve printed\n");
	else if (!origin_host_is_ours(host, h->machine))
		*ret = http_refuse(
			c, MHD_HTTP_FORBIDDEN,
			"this is not that host: use the address that descry serve printed\n");
	else if (*path && !origin_is_page(host, header(c, "Origin"), header(c, "Sec-Fetch-Site")))
		*ret = http_refuse(c, MHD_HTTP_FORBIDDEN,
				   "a page of another site sent this request\n");
	else if ((length = header(c, "Content-Length")) && strtoull(length, NULL, 10) > BODY_MAX)
		*ret = http_refuse(c, MHD_HTTP_CONTENT_TOO_LARGE, "a program of more than 1 MB\n");
	else if (!peers_admit(h->peers, peer))
		*ret = http_refuse(c, MHD_HTTP_SERVICE_UNAVAILABLE,
				   "too many connections from your address\n");
	else
		good = true;
	return good;
}

static enum MHD_Result handle(void *cls, struct MHD_Connection *c, const char *url,
			      const char *method, const char *version, const char *upload,
			      size_t *upload_size, void **state)
{
	struct http *h = cls;
	struct request *req = *state;
	struct peer *peer =
		MHD_get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
	bool post = !strcmp(method, "POST");
	enum MHD_Result answered;

	if (!req) { /* the head of the request: its body comes next */
		if (!may_go_on(h, c, peer, url, &answered))
			return answered;
		*state = xcalloc(1, sizeof(*req));
		return MHD_YES;
	}
	if (*upload_size) {
		req->length += *upload_size;
		if (req->length > BODY_MAX)
			return MHD_NO;
		if (post && req->length <= PROGRAM_MAX)
			out_mem(&req->body, upload, *upload_size);
		*upload_size = 0;
		return MHD_YES;
	}
	url = behind_token(h, url);
	if (!strcmp(url, "run"))
		return post ? take_program(h, c, req)
			    : http_refuse(c, MHD_HTTP_METHOD_NOT_ALLOWED, "POST\n");
	if (!strcmp(url, "heap") && (post || !strcmp(method, "GET")))
		return take_heap(h, c, post);
	if (strcmp(method, "GET") != 0)
		return http_refuse(c, MHD_HTTP_METHOD_NOT_ALLOWED, "GET\n");
	if (!*url)
		return answer(c, MHD_HTTP_OK, "text/html; charset=utf-8", h->page,
			      MHD_RESPMEM_PERSISTENT);
	if (!strcmp(url, "events"))
		return events(h, c, peer);
	return http_refuse(c, MHD_HTTP_NOT_FOUND, "there is no such page\n");
}

/* Called when a connection begins or ends; *peer is the connection's own. */
static void on_connection(void *cls, struct MHD_Connection *c, void **peer,
			  enum MHD_ConnectionNotificationCode what)
{
	struct http *h = cls;
	const struct sockaddr *a;
	int fd;

	if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
		peers_close(h->peers, *peer);
		return;
	}
	a = MHD_get_connection_info(c, MHD_CONNECTION_INFO_CLIENT_ADDRESS)->client_addr;
	fd = MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
	*peer = peers_open(h->peers, a, fd);
}

static void end_request(void *cls, struct MHD_Connection *c, void **state,
			enum MHD_RequestTerminationCode why)
{
	struct request *req = *state;

	if (!req)
		return;
	out_fini(&req->body);
	free(req);
	*state = NULL;
}

/* --- start and stop --- */

/* Puts the page's parts together: the text between {{ and }} is a file's name. */
static char *make_page(void)
{
	struct out o = { 0 };
	const char *s = serve_html, *open;

	while ((open = strstr(s, "{{"))) {
		out_mem(&o, s, (size_t)(open - s));
		out_str(&o, !strncmp(open, "{{css}}", 7)    ? serve_css
			    : !strncmp(open, "{{heat}}", 8) ? heat_js
							    : serve_js);
		s = strstr(open, "}}") + 2;
	}
	out_str(&o, s);
	return out_take(&o);
}

static struct err *make_token(char *ret)
{
	uint8_t random[TOKEN_BYTES];

	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		return err_errno(errno, "getrandom");
	for (int i = 0; i < TOKEN_BYTES; i++)
		sprintf(ret + i * 2, "%02x", random[i]);
	return NULL;
}

static void init_clock(pthread_cond_t *c)
{
	pthread_condattr_t a;

	pthread_condattr_init(&a);
	pthread_condattr_setclock(&a, CLOCK_MONOTONIC);
	pthread_cond_init(c, &a);
	pthread_condattr_destroy(&a);
}

struct err *http_start(struct live *l, const struct http_options *o, struct http **ret)
{
	const char *address = o->address ? o->address : "127.0.0.1";
	struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons(o->port) };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons(o->port) };
	bool is6 = strchr(address, ':') != NULL;
	const union MHD_DaemonInfo *info;
	struct http *h;
	struct err *e;
	int error;

	if (inet_pton(is6 ? AF_INET6 : AF_INET, address,
		      is6 ? (void *)&v6.sin6_addr : (void *)&v4.sin_addr) != 1)
		return err_new(0, "%s is not an address", address);
	h = xcalloc(1, sizeof(*h));
	h->live = l;
	h->options = *o;
	h->peers = peers_new();
	(void)gethostname(h->machine, sizeof(h->machine) - 1);
	pthread_mutex_init(&h->lock, NULL);
	init_clock(&h->stop);
	h->page = make_page();
	e = make_token(h->token);
	if (e) {
		http_stop(h);
		return e;
	}
	errno = 0;
	h->daemon = MHD_start_daemon(
		MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | (is6 ? MHD_USE_IPv6 : 0),
		o->port, NULL, NULL, handle, h, MHD_OPTION_SOCK_ADDR,
		is6 ? (struct sockaddr *)&v6 : (struct sockaddr *)&v4, MHD_OPTION_NOTIFY_COMPLETED,
		end_request, NULL, MHD_OPTION_NOTIFY_CONNECTION, on_connection, h,
		MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS_MAX,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_BYTES, MHD_OPTION_END);
	info = h->daemon ? MHD_get_daemon_info(h->daemon, MHD_DAEMON_INFO_BIND_PORT) : NULL;
	if (!info) {
		error = errno;
		http_stop(h);
		return error ? err_errno(error, "%s port %u: cannot listen", address, o->port)
			     : err_new(0, "%s port %u: cannot listen", address, o->port);
	}
	h->url = xasprintf(is6 ? "http://[%s]:%u/%s/" : "http://%s:%u/%s/", address, info->port,
			   h->token);
	error = pthread_create(&h->keeper, NULL, http_keep, h);
	h->has_keeper = !error;
	if (error) {
		http_stop(h);
		return err_errno(error, "pthread_create");
	}
	live_on_tick(l, wake, h);
	*ret = h;
	return NULL;
}

void http_stop(struct http *h)
{
	if (!h)
		return;
	live_on_tick(h->live, NULL, NULL);
	pthread_mutex_lock(&h->lock);
	h->stopping = true;
	pthread_cond_signal(&h->stop);
	pthread_mutex_unlock(&h->lock);
	if (h->has_keeper)
		pthread_join(h->keeper, NULL);
	wake(h);
	if (h->daemon)
		MHD_stop_daemon(h->daemon);
	peers_free(h->peers);
	pthread_cond_destroy(&h->stop);
	pthread_mutex_destroy(&h->lock);
	free(h->url);
	free(h->page);
	free(h);
}

const char *http_url(const struct http *h)
{
	return h->url;
}
