/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The provider leg: libcurl with everything off that could send twice, elsewhere or more (research/actions.md 3.6). It gets a connected
 * descriptor and may not make one (no socket, connect or bind in the filter either); a second request on it is refused by two callbacks.
 */
#include "broker/http.h"

#include "broker/broker.h"
#include "broker/call.h"
#include "broker/limits.h"
#include "broker/roots.h"
#include "broker/secret.h"

#include "lib/base/clock.h"
#include "lib/loop/loop.h"

#include <errno.h>
#include <jansson.h>
#include <malloc.h>
#include <openssl/ssl.h>

struct http {
	struct ev_loop *loop; /* borrowed */
	CURLM *multi;         /* owned */
	ev_timer timer;
};

/* One watched descriptor of libcurl. */
struct watch {
	ev_io io;
	struct http *http;
};

/* ---- memory: what libcurl held may have been a credential ---- */

static void
wiping_free(void *p)
{
	if (p == NULL)
		return;
	explicit_bzero(p, malloc_usable_size(p));
	free(p);
}

static void *
wiping_realloc(void *p, size_t n)
{
	void *to = malloc(n);
	size_t old = p == NULL ? 0 : malloc_usable_size(p);

	if (to == NULL)
		return NULL;
	if (p != NULL) {
		memcpy(to, p, old < n ? old : n);
		wiping_free(p);
	}
	return to;
}

static void *
plain_malloc(size_t n)
{
	return malloc(n);
}

static void *
plain_calloc(size_t n, size_t each)
{
	return calloc(n, each);
}

static char *
plain_strdup(const char *s)
{
	return strdup(s);
}

/* The same with where it was called from, as OpenSSL wants them. */
static void *
tls_malloc(size_t n, const char *file, int line)
{
	(void)file, (void)line;
	return malloc(n);
}

static void *
tls_realloc(void *p, size_t n, const char *file, int line)
{
	(void)file, (void)line;
	return wiping_realloc(p, n);
}

static void
tls_free(void *p, const char *file, int line)
{
	(void)file, (void)line;
	wiping_free(p);
}

int
http_library(struct err *err)
{
	if (CRYPTO_set_mem_functions(tls_malloc, tls_realloc, tls_free) != 1)
		return err_set(err, -EBUSY, "OpenSSL was used before its memory is wiped");
	if (curl_global_init_mem(CURL_GLOBAL_ALL, plain_malloc, wiping_free, wiping_realloc,
		    plain_strdup, plain_calloc) != CURLE_OK)
		return err_set(err, -ENOMEM, "libcurl does not start");
	json_set_alloc_funcs(plain_malloc, wiping_free);
	return 0;
}

/* ---- the multi interface in libev ---- */

static void
measure(struct call *c)
{
	curl_off_t retry = 0, down = 0;
	long out = 0, head = 0;

	(void)curl_easy_getinfo(c->easy, CURLINFO_RESPONSE_CODE, &c->status);
	(void)curl_easy_getinfo(c->easy, CURLINFO_RETRY_AFTER, &retry);
	(void)curl_easy_getinfo(c->easy, CURLINFO_REQUEST_SIZE, &out);
	(void)curl_easy_getinfo(c->easy, CURLINFO_HEADER_SIZE, &head);
	(void)curl_easy_getinfo(c->easy, CURLINFO_SIZE_DOWNLOAD_T, &down);
	if (retry > 0)
		c->retry_after_ms = (retry > 86400 ? 86400 : (uint64_t)retry) * 1000;
	c->bytes = (uint64_t)out + (uint64_t)head + (uint64_t)down;
}

static void
collect(struct http *h)
{
	CURLMsg *m;
	int left;

	while ((m = curl_multi_info_read(h->multi, &left)) != NULL) {
		struct call *c = NULL;
		CURLcode result;

		if (m->msg != CURLMSG_DONE)
			continue;
		result = m->data.result;
		must(curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &c) == CURLE_OK);
		c->result = result;
		measure(c);
		if (!c->sent) {
			if (!c->denied)
				(void)err_set(&c->why, -EIO, "%s",
					c->error[0] != '\0' ? c->error
							    : curl_easy_strerror(result));
			call_ended(c, CALL_NOT_SENT);
		} else if (result == CURLE_OK) {
			call_ended(c, CALL_ANSWERED);
		} else {
			(void)err_set(&c->why, -EIO, "%s",
				c->cut_by_size
					? "the answer is larger than the provider's response_max"
				: c->error[0] != '\0' ? c->error
						      : curl_easy_strerror(result));
			call_ended(c, CALL_CUT);
		}
	}
}

static void
act(struct http *h, curl_socket_t fd, int what)
{
	int running;

	must(curl_multi_socket_action(h->multi, fd, what, &running) == CURLM_OK);
	collect(h);
}

static void
on_event(struct ev_loop *loop, ev_io *io, int events)
{
	struct watch *w = container_of(io, struct watch, io);

	(void)loop;
	act(w->http, io->fd,
		((events & EV_READ) != 0 ? CURL_CSELECT_IN : 0) |
			((events & EV_WRITE) != 0 ? CURL_CSELECT_OUT : 0));
}

static void
on_timer(struct ev_loop *loop, ev_timer *t, int events)
{
	struct http *h = container_of(t, struct http, timer);

	(void)events;
	ev_timer_stop(loop, t);
	act(h, CURL_SOCKET_TIMEOUT, 0);
}

static int
set_timer(CURLM *multi, long ms, void *arg)
{
	struct http *h = arg;

	(void)multi;
	ev_timer_stop(h->loop, &h->timer);
	if (ms >= 0) {
		ev_timer_set(&h->timer, (double)ms / 1000.0, 0);
		ev_timer_start(h->loop, &h->timer);
	}
	return 0;
}

static int
set_socket(CURL *easy, curl_socket_t fd, int what, void *arg, void *socket_arg)
{
	struct http *h = arg;
	struct watch *w = socket_arg;
	int events = ((what & CURL_POLL_IN) != 0 ? EV_READ : 0) |
		     ((what & CURL_POLL_OUT) != 0 ? EV_WRITE : 0);

	(void)easy;
	if (what == CURL_POLL_REMOVE) {
		if (w != NULL) {
			ev_io_stop(h->loop, &w->io);
			loop_free_later(h->loop, w);
			(void)curl_multi_assign(h->multi, fd, NULL);
		}
		return 0;
	}
	if (w == NULL) {
		w = calloc(1, sizeof(*w));
		if (w == NULL)
			return -1;
		w->http = h;
		ev_init(&w->io, on_event);
		must(curl_multi_assign(h->multi, fd, w) == CURLM_OK);
	}
	ev_io_stop(h->loop, &w->io);
	ev_io_set(&w->io, fd, events);
	ev_io_start(h->loop, &w->io);
	return 0;
}

int
http_new(struct ev_loop *loop, struct http **ret, struct err *err)
{
	struct http *h = calloc(1, sizeof(*h));

	if (h == NULL)
		return err_set(err, -ENOMEM, "no memory for libcurl");
	h->loop = loop;
	h->multi = curl_multi_init();
	ev_init(&h->timer, on_timer);
	if (h->multi == NULL ||
		curl_multi_setopt(h->multi, CURLMOPT_SOCKETFUNCTION, set_socket) != CURLM_OK ||
		curl_multi_setopt(h->multi, CURLMOPT_SOCKETDATA, h) != CURLM_OK ||
		curl_multi_setopt(h->multi, CURLMOPT_TIMERFUNCTION, set_timer) != CURLM_OK ||
		curl_multi_setopt(h->multi, CURLMOPT_TIMERDATA, h) != CURLM_OK ||
		curl_multi_setopt(h->multi, CURLMOPT_PIPELINING, CURLPIPE_NOTHING) != CURLM_OK ||
		curl_multi_setopt(h->multi, CURLMOPT_MAXCONNECTS, 1L) != CURLM_OK) {
		free(h);
		return err_set(err, -ENOMEM, "libcurl does not start");
	}
	*ret = h;
	return 0;
}

void
http_free(struct http *h)
{
	if (h == NULL)
		return;
	ev_timer_stop(h->loop, &h->timer);
	(void)curl_multi_cleanup(h->multi); /* all calls were freed */
	free(h);
}

/* ---- one request ---- */

/*
 * This process connects to nothing, so the C library's connect() is replaced for libcurl by one that does not either. libcurl 7.88.1 calls it
 * on a descriptor of which it was told that it is connected; "in progress" makes it wait until the socket can be written, which it can.
 */
int connect(int fd, const struct sockaddr *to, socklen_t n);

int
connect(int fd, const struct sockaddr *to, socklen_t n)
{
	(void)fd, (void)to, (void)n;
	errno = EINPROGRESS;
	return -1;
}

/* The descriptor of the dialer, once. */
static curl_socket_t
on_open(void *arg, curlsocktype purpose, struct curl_sockaddr *address)
{
	struct call *c = arg;

	(void)address;
	return purpose == CURLSOCKTYPE_IPCXN ? take_fd(&c->fd) : CURL_SOCKET_BAD;
}

static int
on_sockopt(void *arg, curl_socket_t fd, curlsocktype purpose)
{
	(void)arg, (void)fd, (void)purpose;
	return CURL_SOCKOPT_ALREADY_CONNECTED;
}

/* The connection stands; what comes next is the first byte of the request. */
static int
on_permit(void *arg, char *ip, char *local_ip, int port, int local_port)
{
	struct call *c = arg;

	(void)ip, (void)local_ip, (void)port, (void)local_port;
	if (c->sent || c->denied)
		return CURL_PREREQFUNC_ABORT; /* once, whatever libcurl thinks */
	if (c->permit != NULL && c->permit(c, &c->why) < 0) {
		c->denied = true;
		return CURL_PREREQFUNC_ABORT;
	}
	c->sent = true;
	c->permitted_us = clock_mono_us();
	return CURL_PREREQFUNC_OK;
}

static size_t
on_body(char *p, size_t each, size_t n, void *arg)
{
	struct call *c = arg;

	(void)each; /* 1 */
	if (n > c->provider->response_max - c->body.n) {
		c->cut_by_size = true;
		return 0;
	}
	buf_add(&c->body, p, n);
	return buf_check(&c->body) < 0 ? 0 : n;
}

static size_t
on_head(char *p, size_t each, size_t n, void *arg)
{
	struct call *c = arg;

	(void)each, (void)p;
	c->head_bytes += n;
	return c->head_bytes > LIMIT_HEADER_BYTES ? 0 : n;
}

static CURLcode
on_tls(CURL *easy, void *ctx, void *arg)
{
	struct call *c = arg;
	X509_STORE *store = roots_find(c->b->roots, c->provider->roots);

	(void)easy;
	if (store == NULL)
		return CURLE_SSL_CACERT_BADFILE;
	SSL_CTX_set1_cert_store(ctx, store);
	(void)SSL_CTX_set_options(ctx, SSL_OP_CLEANSE_PLAINTEXT);
	/* One record, and others have their turn: a provider that changes its keys without end does not hold the broker. */
	(void)SSL_CTX_clear_mode(ctx, SSL_MODE_AUTO_RETRY);
	return CURLE_OK;
}

/* libcurl copies it; ours is wiped. */
static bool
add_header(struct call *c, const char *line)
{
	struct curl_slist *more = curl_slist_append(c->headers, line);

	if (more == NULL)
		return false;
	c->headers = more;
	return true;
}

static bool
add_headers(struct call *c)
{
	const struct provider *p = c->provider;
	char line[64];
	bool ok = add_header(c, "Expect:") && add_header(c, "Accept: application/json") &&
		  add_header(c, "User-Agent: demilune");

	if (c->request.content_type[0] != '\0') {
		(void)snprintf(line, sizeof(line), "Content-Type: %s", c->request.content_type);
		ok = ok && add_header(c, line);
	} else {
		ok = ok && add_header(c, "Content-Type:");
	}
	if (c->key[0] != '\0') {
		auto_buf struct buf key = {.max = 512};

		buf_addf(&key, "%.*s: %s", VIEW_ARGS(p->capability.key_header), c->key);
		buf_add_byte(&key, 0);
		ok = ok && buf_check(&key) == 0 && add_header(c, (const char *)key.p);
	}
	if (p->credential_secret.n != 0) {
		const struct secret *s = vault_find(c->b->vault, p->credential_secret);
		char *header = s == NULL ? NULL
					 : secret_header(
						   s, p->credential_header, p->credential_prefix);

		ok = ok && header != NULL && add_header(c, header);
		secret_header_free(header);
	}
	return ok;
}

/* libcurl never asks for an address: this one is not dialled either. */
static bool
add_resolve(struct call *c)
{
	char line[512];

	(void)snprintf(line, sizeof(line), "%.*s:%u:192.0.2.1", VIEW_ARGS(c->provider->host),
		c->provider->port);
	c->resolve = curl_slist_append(NULL, line);
	return c->resolve != NULL;
}

#define SET(option, value) (curl_easy_setopt(c->easy, option, value) == CURLE_OK)

static bool
set_profile(struct call *c)
{
	const struct provider *p = c->provider;
	long timeout_ms = (long)p->timeout_ms;

	return SET(CURLOPT_PRIVATE, c) && SET(CURLOPT_ERRORBUFFER, c->error) &&
	       /* One connection, one request, one answer. */
	       SET(CURLOPT_FRESH_CONNECT, 1L) && SET(CURLOPT_FORBID_REUSE, 1L) &&
	       SET(CURLOPT_FOLLOWLOCATION, 0L) && SET(CURLOPT_MAXREDIRS, 0L) &&
	       SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1) &&
	       SET(CURLOPT_HTTP09_ALLOWED, 0L) && SET(CURLOPT_PATH_AS_IS, 1L) &&
	       SET(CURLOPT_PROTOCOLS_STR, p->tls ? "https" : "http") &&
	       SET(CURLOPT_REDIR_PROTOCOLS_STR, p->tls ? "https" : "http") &&
	       SET(CURLOPT_DISALLOW_USERNAME_IN_URL, 1L) &&
	       /* Nothing of the environment, nothing remembered. */
	       SET(CURLOPT_PROXY, "") && SET(CURLOPT_NOPROXY, "*") &&
	       SET(CURLOPT_NETRC, (long)CURL_NETRC_IGNORED) &&
	       SET(CURLOPT_HTTPAUTH, (long)CURLAUTH_NONE) && SET(CURLOPT_NOSIGNAL, 1L) &&
	       SET(CURLOPT_SSL_SESSIONID_CACHE, 0L) && SET(CURLOPT_HTTP_CONTENT_DECODING, 0L) &&
	       SET(CURLOPT_TCP_KEEPALIVE, 0L) && SET(CURLOPT_TCP_NODELAY, 0L) &&
	       /* The descriptor is given, and so are the roots. */
	       SET(CURLOPT_OPENSOCKETFUNCTION, on_open) && SET(CURLOPT_OPENSOCKETDATA, c) &&
	       SET(CURLOPT_SOCKOPTFUNCTION, on_sockopt) && SET(CURLOPT_SOCKOPTDATA, c) &&
	       SET(CURLOPT_PREREQFUNCTION, on_permit) && SET(CURLOPT_PREREQDATA, c) &&
	       SET(CURLOPT_RESOLVE, c->resolve) && SET(CURLOPT_SSL_VERIFYPEER, 1L) &&
	       SET(CURLOPT_SSL_VERIFYHOST, 2L) && SET(CURLOPT_CAINFO, NULL) &&
	       SET(CURLOPT_CAPATH, NULL) && SET(CURLOPT_SSL_CTX_FUNCTION, on_tls) &&
	       SET(CURLOPT_SSL_CTX_DATA, c) &&
	       SET(CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2) &&
	       /* Bounds. */
	       /* libcurl looks at a socket that was connected already only when this is over; its 200 ms are more than all the rest. */
	       SET(CURLOPT_HAPPY_EYEBALLS_TIMEOUT_MS, 0L) && SET(CURLOPT_TIMEOUT_MS, timeout_ms) &&
	       SET(CURLOPT_CONNECTTIMEOUT_MS, timeout_ms) && SET(CURLOPT_WRITEFUNCTION, on_body) &&
	       SET(CURLOPT_WRITEDATA, c) && SET(CURLOPT_HEADERFUNCTION, on_head) &&
	       SET(CURLOPT_HEADERDATA, c);
}

static bool
set_request(struct call *c)
{
	const struct request *q = &c->request;
	bool body = q->content_type[0] != '\0';
	char url[REQUEST_URL_MAX + 1];

	if (q->url.n >= sizeof(url))
		return false;
	memcpy(url, q->url.p, q->url.n);
	url[q->url.n] = '\0';
	if (!SET(CURLOPT_URL, url) || !SET(CURLOPT_HTTPHEADER, c->headers))
		return false;
	if (strcmp(q->method, "GET") == 0)
		return SET(CURLOPT_HTTPGET, 1L);
	if (!body && strcmp(q->method, "POST") != 0)
		return SET(CURLOPT_HTTPGET, 1L) && SET(CURLOPT_CUSTOMREQUEST, q->method);
	return SET(CURLOPT_POST, 1L) && SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)q->body.n) &&
	       SET(CURLOPT_POSTFIELDS, q->body.n == 0 ? "" : (const char *)q->body.p) &&
	       SET(CURLOPT_CUSTOMREQUEST, q->method);
}

void
http_start(struct call *c)
{
	struct http *h = c->b->http;

	c->easy = curl_easy_init();
	if (c->easy == NULL || !add_headers(c) || !add_resolve(c) || !set_profile(c) ||
		!set_request(c) || curl_multi_add_handle(h->multi, c->easy) != CURLM_OK) {
		(void)err_set(&c->why, -ENOMEM, "the request could not be made");
		call_ended(c, CALL_NOT_SENT);
		return;
	}
	c->started = true;
}

void
http_stop(struct call *c)
{
	struct http *h = c->b->http;

	if (c->easy == NULL)
		return;
	if (c->started)
		must(curl_multi_remove_handle(h->multi, c->easy) == CURLM_OK);
	curl_easy_cleanup(c->easy);
	c->easy = NULL;
	/* libcurl's allocator made and wipes them. */
	curl_slist_free_all(c->headers);
	curl_slist_free_all(c->resolve);
	c->headers = c->resolve = NULL;
}
