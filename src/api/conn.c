/* SPDX-License-Identifier: Apache-2.0 */
/* One connection; see conn.h. */
#include "conn.h"

#include "lib/base/log.h"
#include "lib/loop/loop.h"
#include "listen.h"
#include "local.h"
#include "route.h"

#include <errno.h>
#include <sys/socket.h>

static const int8_t steps[CONN_STATES][CONN_EVENTS] = {
#define STATE(name, prose)
#define EVENT(name, prose)
#define STEP(from, event, to) [CONN_##from][CONN_ON_##event] = CONN_##to + 1,
#include "conn.fsm"
#undef STATE
#undef EVENT
#undef STEP
};

enum conn_state
conn_next(enum conn_state state, enum conn_event event)
{
	must(steps[state][event] != 0);
	return (enum conn_state)(steps[state][event] - 1);
}

static void
deadline_set(struct conn *c, double ms)
{
	ev_timer_stop(c->api->loop, &c->deadline);
	ev_timer_set(&c->deadline, ms / 1e3, 0);
	ev_timer_start(c->api->loop, &c->deadline);
}

/* How long this state may last without progress; a wait for the engine has its own deadline. */
static void
deadline_arm(struct conn *c)
{
	bool unsent = c->out_at < c->out.n;

	switch (c->state) {
	case CONN_HEAD:
		deadline_set(c, unsent        ? LIMIT_STALL_MS
				: c->in.n > 0 ? LIMIT_HEAD_MS
					      : LIMIT_IDLE_MS);
		return;
	case CONN_BODY:
	case CONN_FEED:
		if (!c->held)
			deadline_set(c, LIMIT_BODY_MS);
		else
			ev_timer_stop(c->api->loop, &c->deadline);
		return;
	case CONN_WAIT:
	case CONN_STREAM:
	case CONN_SOCKET:
		if (unsent)
			deadline_set(c, LIMIT_STALL_MS);
		else
			ev_timer_stop(c->api->loop, &c->deadline);
		return;
	case CONN_LINGER:
		deadline_set(c, unsent ? LIMIT_STALL_MS : LIMIT_LINGER_MS);
		return;
	case CONN_STATES:
		return;
	}
}

static void
linger_begin(struct conn *c)
{
	if (c->out_at < c->out.n || c->shut)
		return;
	c->shut = true;
	if (shutdown(c->fd, SHUT_WR) < 0 || c->ended)
		conn_close(c);
	else
		deadline_arm(c);
}

void
conn_step(struct conn *c, enum conn_event event)
{
	c->state = conn_next(c->state, event);
	if (c->state == CONN_HEAD)
		http_scan_request(&c->scan, &c->limits);
	deadline_arm(c);
}

static bool
same_caller(const struct conn *a, const struct conn *b)
{
	const struct caller *x = &a->caller, *y = &b->caller;

	return local_same(a->api, x, y);
}

static void
charge(struct conn *c)
{
	size_t now = c->out.cap;

	if (c->request != NULL)
		now += c->request->text.cap + c->request->body.cap + c->request->held;
	c->api->held_bytes += now - c->charged; /* unsigned: also when it shrinks */
	c->charged = now;
}

bool
conn_fits(struct conn *c)
{
	size_t sum = 0;

	charge(c);
	if (c->api->held_bytes > LIMIT_HELD_BYTES)
		return false;
	if (c->api->held_bytes <= LIMIT_HELD_CALLER_BYTES)
		return true;
	list_each (other, &c->api->conns, struct conn, link)
		sum += same_caller(c, other) ? other->charged : 0;
	return sum <= LIMIT_HELD_CALLER_BYTES;
}

unsigned
conn_of_caller(const struct conn *c)
{
	unsigned n = 0;

	list_each (other, &c->api->conns, struct conn, link)
		n += other->request != NULL && same_caller(c, other) ? 1 : 0;
	return n;
}

void
conn_close(struct conn *c)
{
	if (c->fd < 0)
		return;
	ev_io_stop(c->api->loop, &c->readable);
	ev_io_stop(c->api->loop, &c->writable);
	ev_timer_stop(c->api->loop, &c->deadline);
	(void)close(take_fd(&c->fd)); /* nothing is owed to the peer any more */
	list_remove(&c->link);
	list_remove(&c->held_link);
	request_free(take_ptr(c->request));
	local_leave(c);
	buf_done(&c->in);
	buf_done(&c->out);
	charge(c);
	listen_closed(c->api, c->local);
	loop_free_later(c->api->loop, c);
}

/* Whether more bytes of the peer are of use now. */
static bool
wants_bytes(const struct conn *c)
{
	if (c->ended || !list_empty(&c->held_link))
		return false;
	switch (c->state) {
	case CONN_HEAD:
	case CONN_BODY:
	case CONN_LINGER:
		return true;
	case CONN_FEED:
	case CONN_SOCKET:
		return !c->held;
	case CONN_WAIT:
	case CONN_STREAM:
		return c->in.n <
		       LIMIT_AHEAD_BYTES; /* pipelined requests; and to see that the peer left */
	case CONN_STATES:
		break;
	}
	return false;
}

static void
watch(struct conn *c)
{
	if (c->fd < 0)
		return;
	if (wants_bytes(c))
		ev_io_start(c->api->loop, &c->readable);
	else
		ev_io_stop(c->api->loop, &c->readable);
	if (c->out_at < c->out.n)
		ev_io_start(c->api->loop, &c->writable);
	else
		ev_io_stop(c->api->loop, &c->writable);
}

void
conn_flush(struct conn *c)
{
	bool sent = false;

	while (c->fd >= 0 && c->out_at < c->out.n) {
		ssize_t n = send(c->fd, c->out.p + c->out_at, c->out.n - c->out_at, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			break;
		if (n < 0) {
			conn_close(c);
			return;
		}
		c->out_at += (size_t)n;
		sent = true;
	}
	if (c->fd < 0)
		return;
	/* Only bytes that the peer took are progress: those that it sends never put a deadline off. */
	if (sent || (c->out_at < c->out.n && !ev_is_active(&c->deadline)))
		deadline_arm(c);
	if (c->out_at == c->out.n) {
		if (c->out.cap > LIMIT_HELD_SMALL_BYTES)
			buf_done(&c->out); /* a connection that idles holds no large answer */
		buf_clear(&c->out);
		c->out_at = 0;
	}
	charge(c);
	watch(c);
}

/* Answers what is wrong with the bytes themselves; the connection ends. */
static void
refuse_bytes(struct conn *c, enum http_reason reason)
{
	struct err err = {0};
	unsigned status = http_reason_status(reason, HTTP_REQUEST);

	c->keep = false; /* where the next request begins is not known */
	if (c->request == NULL)
		c->request = request_new(c->api, c);
	if (c->request == NULL) {
		conn_close(c);
		return;
	}
	(void)refuse(&err, BAD_REQUEST, "%s", http_reason_text(reason));
	request_refuse_status(c->request, status, http_reason_code(reason), &err);
}

static void
call_handler(struct conn *c)
{
	struct err err = {0};

	if (c->request->route->handler(c->request, &err) < 0)
		request_fail(c->request, &err);
}

/* Bytes of body that a route takes. */
static uint64_t
body_max(const struct route *route)
{
	switch (route->kind) {
	case ROUTE_NONE:
		return 0;
	case ROUTE_JSON:
	case ROUTE_TYPED:
	case ROUTE_MAYBE:
	case ROUTE_DROP:
		return LIMIT_JSON_BYTES;
	case ROUTE_FEED:
		return route->handler == on_input_put ? LIMIT_INPUT_BYTES : LIMIT_FILE_BYTES;
	}
	return 0;
}

static void
continue_add(struct conn *c)
{
	if (c->head.expect_continue)
		buf_add_str(&c->out, "HTTP/1.1 100 Continue\r\n\r\n");
}

/* The head is complete and has a route: what about its body. */
static void
head_body(struct conn *c)
{
	uint64_t max = body_max(c->request->route);
	bool feed = c->request->route->kind == ROUTE_FEED;
	struct err err = {0};

	if (c->head.framing != HTTP_BODY_NONE && max == 0) {
		(void)refuse(&err, BAD_REQUEST, "this path takes no body");
		request_fail(c->request, &err);
	} else if (c->head.length > max) {
		(void)refuse(&err, TOO_LARGE, "the body may have at most %llu MiB here",
			(unsigned long long)max >> 20);
		request_fail(c->request, &err);
	} else if (c->head.framing == HTTP_BODY_NONE && !feed) {
		conn_step(c, CONN_ON_WHOLE);
		if (request_body(c->request, &err) < 0)
			request_fail(c->request, &err);
		else
			call_handler(c);
	} else {
		http_body_init(&c->body, &c->head, max);
		continue_add(c);
		conn_step(c, feed ? CONN_ON_PIECES : CONN_ON_JSON);
		c->held = feed;
		if (feed)
			call_handler(c);
	}
}

static bool
work_head(struct conn *c)
{
	struct err err = {0};
	int r;

	if (c->in.n == 0) {
		if (c->ended && c->out_at == c->out.n)
			conn_close(c);
		return false;
	}
	if (c->scan.pos == 0)
		deadline_set(c, LIMIT_HEAD_MS);
	r = http_head_feed(&c->scan, buf_view(&c->in), &c->head);
	if (r < 0) {
		refuse_bytes(c, c->scan.reason);
		return true;
	}
	if (r == 0) {
		if (c->ended)
			conn_close(c);
		return false;
	}
	c->keep = c->head.keep_alive;
	c->request = request_new(c->api, c);
	if (c->request == NULL) {
		conn_close(c);
		return false;
	}
	r = request_begin(c->request, &c->head, &err);
	buf_drop(&c->in, c->scan.pos);
	if (r == 0) {
		head_body(c);
		return true;
	}
	if (c->head.framing == HTTP_BODY_NONE)
		conn_step(c, CONN_ON_WHOLE);
	request_fail(c->request, &err);
	return true;
}

/* The next piece of the body out of c->in; *ret borrows from it. */
static enum http_body_event
body_next(struct conn *c, struct view *ret, size_t *ret_used)
{
	struct view in = buf_view(&c->in);
	enum http_body_event event = http_body_next(&c->body, &in, ret);

	*ret_used = c->in.n - in.n;
	return event;
}

static void
body_end(struct conn *c)
{
	struct request *req = c->request;
	bool feed = c->state == CONN_FEED;
	struct err err = {0};

	conn_step(c, CONN_ON_WHOLE);
	if (feed && req->ops != NULL && req->ops->feed_end != NULL)
		req->ops->feed_end(req);
	else if (!feed && request_body(req, &err) < 0)
		request_fail(c->request, &err);
	else if (!feed)
		call_handler(c);
}

static bool
work_body(struct conn *c)
{
	struct view piece;
	size_t used;

	if (c->state == CONN_FEED && c->held)
		return false;
	switch (body_next(c, &piece, &used)) {
	case HTTP_BODY_MORE:
		buf_drop(&c->in, used);
		if (c->ended)
			refuse_bytes(c, HTTP_NO_TRUNCATED);
		return false;
	case HTTP_BODY_DATA:
		if (c->state == CONN_FEED) {
			deadline_arm(c);
			c->request->ops->feed(c->request, piece);
		}
		if (c->state == CONN_BODY && c->request->route->kind != ROUTE_DROP) {
			buf_add_view(&c->request->body, piece);
			if (buf_check(&c->request->body) < 0 || !conn_fits(c)) {
				request_refuse_full(c->request);
				return true;
			}
		}
		if (c->fd >= 0 && c->state != CONN_LINGER)
			buf_drop(&c->in, used);
		return true;
	case HTTP_BODY_END:
		buf_drop(&c->in, used);
		body_end(c);
		return true;
	case HTTP_BODY_REFUSED:
		refuse_bytes(c, c->body.reason);
		return true;
	}
	return false;
}

static bool
work_socket(struct conn *c)
{
	size_t n = c->in.n;

	if (n == 0 && c->ended) {
		conn_close(c);
		return false;
	}
	if (n == 0 || c->held)
		return false;
	c->request->ops->socket(c->request, c->in.p, n);
	if (c->fd >= 0)
		buf_drop(&c->in, n);
	return true;
}

static bool
work_once(struct conn *c)
{
	switch (c->state) {
	case CONN_HEAD:
		return work_head(c);
	case CONN_BODY:
	case CONN_FEED:
		return work_body(c);
	case CONN_SOCKET:
		return work_socket(c);
	case CONN_LINGER:
		c->lingered += c->in.n;
		buf_clear(&c->in);
		if (c->shut && (c->ended || c->lingered > LIMIT_LINGER_BYTES))
			conn_close(c);
		return false;
	case CONN_WAIT:
	case CONN_STREAM:
	case CONN_STATES:
		break;
	}
	return false;
}

/* Handlers begin out of these two states, and what they ask may be large. */
static bool
held_for_engine(struct conn *c)
{
	if (ask_room(c->api) || c->in.n == 0 || (c->state != CONN_HEAD && c->state != CONN_BODY))
		return false;
	if (list_empty(&c->held_link)) {
		list_append(&c->api->held, &c->held_link);
		deadline_set(c, LIMIT_ENGINE_MS);
	}
	return true;
}

void
conn_resume_held(struct api *api)
{
	while (!list_empty(&api->held) && ask_room(api)) {
		struct conn *c = container_of(api->held.next, struct conn, held_link);

		list_remove(&c->held_link);
		deadline_arm(c);
		conn_work(c);
	}
}

void
conn_work(struct conn *c)
{
	if (c->working)
		return;
	c->working = true;
	while (c->fd >= 0 && !held_for_engine(c) && work_once(c))
		;
	c->working = false;
	conn_flush(c);
}

void
conn_answered(struct conn *c)
{
	request_free(take_ptr(c->request));
	c->held = false;
	/* A body that was not read to its end is not waited for. */
	if (c->state != CONN_WAIT && c->state != CONN_STREAM)
		c->keep = false;
	conn_step(c, c->keep && !buf_check(&c->out) ? CONN_ON_ANSWER : CONN_ON_LAST);
	conn_flush(c);
	if (c->fd >= 0 && c->state == CONN_LINGER)
		linger_begin(c);
	if (c->fd >= 0)
		conn_work(c);
}

static void
on_readable(struct ev_loop *loop, ev_io *w, int events)
{
	struct conn *c = container_of(w, struct conn, readable);
	uint8_t *room = buf_room(&c->in, LIMIT_READ_BYTES);
	ssize_t n;

	(void)loop, (void)events;
	if (room == NULL) {
		conn_close(c);
		return;
	}
	n = read(c->fd, room, LIMIT_READ_BYTES);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n < 0) {
		conn_close(c);
		return;
	}
	if (n == 0)
		c->ended = true;
	buf_grew(&c->in, (size_t)n);
	list_remove(&c->link);
	list_append(&c->api->conns, &c->link);
	conn_work(c);
}

static void
on_writable(struct ev_loop *loop, ev_io *w, int events)
{
	struct conn *c = container_of(w, struct conn, writable);

	(void)loop, (void)events;
	conn_flush(c);
	if (c->fd < 0)
		return;
	if (c->state == CONN_LINGER)
		linger_begin(c);
	else if (c->state == CONN_HEAD && c->ended && c->out_at == c->out.n &&
		 list_empty(&c->held_link))
		conn_close(c);
	else if (c->request != NULL && c->request->ops != NULL &&
		 c->request->ops->drained != NULL &&
		 c->out.n - c->out_at < LIMIT_OUT_HIGH_BYTES / 2)
		c->request->ops->drained(c->request);
}

/* The engine did not take more in time: nothing of this request was begun. */
static void
refuse_held(struct conn *c)
{
	list_remove(&c->held_link);
	c->keep = false;
	if (c->request == NULL)
		c->request = request_new(c->api, c);
	if (c->request == NULL)
		conn_close(c);
	else
		request_refuse(c->request, ERROR_UNAVAILABLE, 1000,
			view_str("the engine has more to do than it takes; nothing was done, try "
				 "again in a moment"));
}

static void
on_deadline(struct ev_loop *loop, ev_timer *w, int events)
{
	struct conn *c = container_of(w, struct conn, deadline);
	struct err err = {0};

	(void)loop, (void)events;
	if (c->out_at == c->out.n && !list_empty(&c->held_link)) {
		refuse_held(c);
		return;
	}
	if (c->out_at == c->out.n && (c->state == CONN_BODY || c->state == CONN_FEED)) {
		(void)refuse(&err, BAD_REQUEST, "the body did not come in time");
		request_refuse_status(c->request, 408, "timeout_request", &err);
		return;
	}
	conn_close(c);
}

void
conn_new(struct api *api, int fd, bool local, uint32_t uid)
{
	struct conn *c = calloc(1, sizeof(*c));

	if (c == NULL) {
		(void)close(fd); /* no memory: the peer sees that it is closed */
		listen_closed(api, local);
		return;
	}
	c->api = api;
	c->fd = fd;
	c->local = local;
	c->uid = uid;
	c->caller_at = -1;
	http_limits_init(&c->limits);
	c->limits.head_bytes = LIMIT_HEAD_BYTES;
	c->limits.target_bytes = LIMIT_TARGET_BYTES;
	c->limits.body_bytes = UINT64_MAX; /* the route decides */
	c->limits.body_methods |= 1U << HTTP_DELETE;
	c->limits.host_flags = HTTP_AUTHORITY_IP | HTTP_AUTHORITY_UNDERSCORE;
	buf_init(&c->in, LIMIT_HEAD_BYTES + LIMIT_AHEAD_BYTES + LIMIT_READ_BYTES);
	buf_init(&c->out, LIMIT_ANSWER_BYTES);
	http_scan_request(&c->scan, &c->limits);
	list_append(&api->conns, &c->link);
	list_init(&c->held_link);
	ev_io_init(&c->readable, on_readable, fd, EV_READ);
	ev_io_init(&c->writable, on_writable, fd, EV_WRITE);
	ev_timer_init(&c->deadline, on_deadline, 0, 0);
	ev_io_start(api->loop, &c->readable);
	deadline_arm(c);
}
