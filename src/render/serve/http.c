#define _GNU_SOURCE
#include "render/serve/http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/random.h>

/* made from the files of these names */
extern const char serve_html[], serve_css[], serve_js[], heat_js[];

enum { TOKEN_BYTES = 16, PROGRAM_MAX = 1 << 20, BLOCK = 64 * 1024, CLIENTS_MAX = 64 };

/* A page that listens. */
struct client {
	struct http *http;
	struct MHD_Connection *connection;
	struct live_reader reader;
	struct out text; /* to send */
	size_t sent;
	bool suspended;
	struct client *next, **link;
};

struct http {
	struct live *live;
	struct http_options options;
	struct MHD_Daemon *daemon;
	char token[TOKEN_BYTES * 2 + 1];
	char *url;
	char *host; /* "ADDRESS:PORT"; NULL: any is good */
	uint16_t port;
	char *page;
	pthread_mutex_t lock;
	struct client *clients;
	uint32_t nclients;
	bool stopping;
};

/* The body of a POST. */
struct request {
	struct out body;
	bool too_large;
};

static bool same_secret(const char *a, const char *b, size_t n)
{
	unsigned char differs = 0;

	for (size_t i = 0; i < n; i++)
		differs |= (unsigned char)(a[i] ^ b[i]);
	return !differs;
}

/* --- answers --- */

static enum MHD_Result answer(struct MHD_Connection *c, unsigned status, const char *type,
			      const char *text, enum MHD_ResponseMemoryMode mode)
{
	struct MHD_Response *r = MHD_create_response_from_buffer(strlen(text), (void *)text, mode);
	enum MHD_Result rc;

	if (!r)
		return MHD_NO;
	MHD_add_response_header(r, "Content-Type", type);
	MHD_add_response_header(r, "Cache-Control", "no-store");
	MHD_add_response_header(r, "Referrer-Policy", "no-referrer");
	MHD_add_response_header(r, "X-Content-Type-Options", "nosniff");
	MHD_add_response_header(r, "X-Frame-Options", "DENY");
	MHD_add_response_header(r, "Cross-Origin-Resource-Policy", "same-origin");
	MHD_add_response_header(r, "Content-Security-Policy",
				"default-src 'none'; script-src 'unsafe-inline'; style-src "
				"'unsafe-inline'; connect-src 'self'; base-uri 'none'; "
				"form-action 'none'; frame-ancestors 'none'");
	rc = MHD_queue_response(c, status, r);
	MHD_destroy_response(r);
	return rc;
}

static enum MHD_Result refuse(struct MHD_Connection *c, unsigned status, const char *why)
{
	return answer(c, status, "text/plain; charset=utf-8", why, MHD_RESPMEM_PERSISTENT);
}

/* --- events --- */

static ssize_t send_events(void *cls, uint64_t pos, char *buf, size_t max)
{
	struct client *c = cls;
	ssize_t n = 0;

	pthread_mutex_lock(&c->http->lock);
	if (c->sent == c->text.n) {
		c->sent = c->text.n = 0;
		out_str(&c->text, "data: ");
		if (live_next(c->http->live, &c->reader, &c->text))
			out_str(&c->text, "\n\n");
		else
			c->text.n = 0;
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
	c->http->nclients--;
	pthread_mutex_unlock(&c->http->lock);
	out_fini(&c->text);
	free(c);
}

/* Something new: those who wait for it go on. */
static void wake(void *arg)
{
	struct http *h = arg;

	pthread_mutex_lock(&h->lock);
	for (struct client *c = h->clients; c; c = c->next)
		if (c->suspended) {
			c->suspended = false;
			MHD_resume_connection(c->connection);
		}
	pthread_mutex_unlock(&h->lock);
}

static enum MHD_Result events(struct http *h, struct MHD_Connection *connection)
{
	struct MHD_Response *r;
	struct client *c;
	enum MHD_Result rc;

	if (h->nclients >= CLIENTS_MAX)
		return refuse(connection, MHD_HTTP_SERVICE_UNAVAILABLE,
			      "too many pages are open\n");
	c = xcalloc(1, sizeof(*c));
	c->http = h;
	c->connection = connection;
	pthread_mutex_lock(&h->lock);
	c->next = h->clients;
	c->link = &h->clients;
	if (c->next)
		c->next->link = &c->next;
	h->clients = c;
	h->nclients++;
	pthread_mutex_unlock(&h->lock);
	r = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK, send_events, c, end_events);
	if (!r) {
		end_events(c);
		return MHD_NO;
	}
	MHD_add_response_header(r, "Content-Type", "text/event-stream");
	MHD_add_response_header(r, "Cache-Control", "no-store");
	MHD_add_response_header(r, "X-Content-Type-Options", "nosniff");
	rc = MHD_queue_response(connection, MHD_HTTP_OK, r);
	MHD_destroy_response(r);
	return rc;
}

/* --- requests --- */

static bool host_is_ours(struct http *h, struct MHD_Connection *c)
{
	const char *host = MHD_lookup_connection_value(c, MHD_HEADER_KIND, "Host");
	char local[40];

	if (!h->host)
		return true;
	snprintf(local, sizeof(local), "localhost:%u", h->port);
	return host && (!strcmp(host, h->host) || !strcmp(host, local));
}

/* A page of another origin cannot set this header without asking, and nobody answers. */
static bool is_from_page(struct MHD_Connection *c)
{
	const char *mark = MHD_lookup_connection_value(c, MHD_HEADER_KIND, "X-Descry");

	return mark && !strcmp(mark, "1");
}

static enum MHD_Result take_program(struct http *h, struct MHD_Connection *c, struct request *req)
{
	if (!h->options.run)
		return refuse(c, MHD_HTTP_FORBIDDEN,
			      "programs are not taken from the page: start with --allow-d\n");
	if (!is_from_page(c))
		return refuse(c, MHD_HTTP_FORBIDDEN, "not from the page\n");
	if (req->too_large)
		return refuse(c, MHD_HTTP_CONTENT_TOO_LARGE, "a program of more than 1 MB\n");
	if (req->body.n && memchr(req->body.v, '\0', req->body.n))
		return refuse(c, MHD_HTTP_BAD_REQUEST, "not a text\n");
	out_char(&req->body, '\0');
	h->options.run(h->options.arg, req->body.v);
	return refuse(c, MHD_HTTP_OK, "\n");
}

static enum MHD_Result handle(void *cls, struct MHD_Connection *c, const char *url,
			      const char *method, const char *version, const char *upload,
			      size_t *upload_size, void **state)
{
	struct http *h = cls;
	struct request *req = *state;
	size_t n = strlen(h->token);
	bool post = !strcmp(method, "POST");

	if (!req) { /* the head of the request: its body comes next */
		*state = xcalloc(1, sizeof(*req));
		return MHD_YES;
	}
	if (*upload_size) {
		if (post && req->body.n + *upload_size <= PROGRAM_MAX)
			out_mem(&req->body, upload, *upload_size);
		else
			req->too_large = true;
		*upload_size = 0;
		return MHD_YES;
	}
	if (strlen(url) < n + 2 || url[0] != '/' || !same_secret(url + 1, h->token, n) ||
	    url[n + 1] != '/')
		return refuse(c, MHD_HTTP_FORBIDDEN,
			      "the address needs the token that descry serve printed\n");
	if (!host_is_ours(h, c))
		return refuse(c, MHD_HTTP_FORBIDDEN, "this is not that host\n");
	url += n + 2;
	if (!strcmp(url, "run"))
		return post ? take_program(h, c, req)
			    : refuse(c, MHD_HTTP_METHOD_NOT_ALLOWED, "POST\n");
	if (strcmp(method, "GET") != 0)
		return refuse(c, MHD_HTTP_METHOD_NOT_ALLOWED, "GET\n");
	if (!*url)
		return answer(c, MHD_HTTP_OK, "text/html; charset=utf-8", h->page,
			      MHD_RESPMEM_PERSISTENT);
	if (!strcmp(url, "events"))
		return events(h, c);
	return refuse(c, MHD_HTTP_NOT_FOUND, "there is nothing else here\n");
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

/* The page's parts put together: what stands between {{ and }} is a file's name. */
static char *make_page(void)
{
	struct out o = { 0 };
	const char *s = serve_html, *open;
	char *page;

	while ((open = strstr(s, "{{"))) {
		out_mem(&o, s, (size_t)(open - s));
		out_str(&o, !strncmp(open, "{{css}}", 7)    ? serve_css
			    : !strncmp(open, "{{heat}}", 8) ? heat_js
							    : serve_js);
		s = strstr(open, "}}") + 2;
	}
	out_str(&o, s);
	out_char(&o, '\0');
	page = xstrdup(o.v);
	out_fini(&o);
	return page;
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

struct err *http_start(struct live *l, const struct http_options *o, struct http **ret)
{
	const char *address = o->address ? o->address : "127.0.0.1";
	struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons(o->port) };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons(o->port) };
	bool is6 = strchr(address, ':') != NULL;
	const union MHD_DaemonInfo *info;
	struct http *h;
	struct err *e;

	if (inet_pton(is6 ? AF_INET6 : AF_INET, address,
		      is6 ? (void *)&v6.sin6_addr : (void *)&v4.sin_addr) != 1)
		return err_new(0, "%s is no address", address);
	h = xcalloc(1, sizeof(*h));
	h->live = l;
	h->options = *o;
	pthread_mutex_init(&h->lock, NULL);
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
		end_request, NULL, MHD_OPTION_CONNECTION_LIMIT, 2u * CLIENTS_MAX,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)256 * 1024, MHD_OPTION_END);
	info = h->daemon ? MHD_get_daemon_info(h->daemon, MHD_DAEMON_INFO_BIND_PORT) : NULL;
	if (!info) {
		int error = errno;

		http_stop(h);
		return error ? err_errno(error, "%s port %u: cannot listen", address, o->port)
			     : err_new(0, "%s port %u: cannot listen", address, o->port);
	}
	h->port = info->port;
	h->url = xasprintf(is6 ? "http://[%s]:%u/%s/" : "http://%s:%u/%s/", address, h->port,
			   h->token);
	if (strcmp(address, "0.0.0.0") != 0 && strcmp(address, "::") != 0)
		h->host = xasprintf(is6 ? "[%s]:%u" : "%s:%u", address, h->port);
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
	pthread_mutex_unlock(&h->lock);
	wake(h);
	if (h->daemon)
		MHD_stop_daemon(h->daemon);
	pthread_mutex_destroy(&h->lock);
	free(h->url);
	free(h->host);
	free(h->page);
	free(h);
}

const char *http_url(const struct http *h)
{
	return h->url;
}
