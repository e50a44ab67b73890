/* SPDX-License-Identifier: Apache-2.0 */
/* See call.h: the connection from the dialer, then http.c. */
#include "broker/call.h"

#include "broker/broker.h"

#include "lib/base/fd.h"
#include "lib/loop/loop.h"

#include <errno.h>
#include <sys/socket.h>

/* Tells the end from the loop, so that no call ends inside the function that began it. */
static void
on_end(struct ev_loop *loop, ev_timer *t, int events)
{
	struct call *c = container_of(t, struct call, end_soon);

	(void)loop, (void)events;
	c->done(c);
}

void
call_ended(struct call *c, enum call_end end)
{
	c->end = end;
	c->dialling = false;
	ev_timer_stop(c->b->loop, &c->late);
	broker_clean(c->b, &c->why);
	ev_timer_start(c->b->loop, &c->end_soon);
}

static void
dial_failed(struct call *c, enum dial reason, const char *why)
{
	c->dial = reason;
	(void)err_set(
		&c->why, -EIO, "no connection to %.*s: %.150s", VIEW_ARGS(c->provider->host), why);
	call_ended(c, CALL_NOT_SENT);
}

static void
on_late(struct ev_loop *loop, ev_timer *t, int events)
{
	(void)loop, (void)events;
	dial_failed(container_of(t, struct call, late), DIAL_TIMEOUT,
		"the dialer did not answer in time");
}

struct call *
call_new(
	struct broker *b, const struct provider *provider, struct request *request, struct err *err)
{
	struct call *c;

	if (provider->credential_secret.n != 0 &&
		vault_find(b->vault, provider->credential_secret) == NULL) {
		(void)err_set(err, -ENOENT,
			"the secret %.*s is not in actions.secrets, or not usable, which the "
			"daemon's log says",
			VIEW_ARGS(provider->credential_secret));
		return NULL;
	}
	c = calloc(1, sizeof(*c));
	if (c == NULL) {
		(void)err_set(err, -ENOMEM, "no memory for a request");
		return NULL;
	}
	c->b = b;
	c->provider = provider;
	c->fd = -1;
	buf_init(&c->body, provider->response_max);
	if (buf_room(&c->body, provider->response_max) == NULL) {
		free(c);
		(void)err_set(err, -ENOMEM, "no memory for an answer");
		return NULL;
	}
	c->request = *request;
	*request = (struct request){0};
	ev_init(&c->late, on_late);
	ev_timer_init(&c->end_soon, on_end, 0, 0);
	list_append(&b->calls, &c->link);
	return c;
}

void
call_start(struct call *c)
{
	struct msg_dial m = {
		.port = c->provider->port, .timeout_ms = c->provider->timeout_ms, .rule = c->rule};

	if (m.timeout_ms > LIMIT_DIAL_MS)
		m.timeout_ms = (uint32_t)LIMIT_DIAL_MS;
	if (c->b->dialer == NULL || c->provider->host.n >= sizeof(m.host)) {
		dial_failed(c, DIAL_BUSY, "the dialer is away");
		return;
	}
	memcpy(m.host, c->provider->host.p, c->provider->host.n);
	memcpy(m.policy, c->policy, SHA256_BYTES);
	c->number = ++c->b->last_call;
	c->dialling = true;
	ev_timer_set(&c->late, (double)(m.timeout_ms + LIMIT_DIAL_GRACE_MS) / 1000.0, 0);
	ev_timer_start(c->b->loop, &c->late);
	IPC_SEND(c->b->dialer, c->number, DIAL, dial, m);
}

void
call_free(struct call *c)
{
	if (c == NULL)
		return;
	ev_timer_stop(c->b->loop, &c->late);
	ev_timer_stop(c->b->loop, &c->end_soon);
	http_stop(c);
	list_remove(&c->link);
	fd_cleanup(&c->fd);
	/* The provider may have sent the credential back; the buffer never moved. */
	explicit_bzero(c->body.p, c->body.n);
	buf_done(&c->body);
	request_done(&c->request);
	loop_free_later(c->b->loop, c);
}

static struct call *
find(struct broker *b, uint64_t number)
{
	list_each (c, &b->calls, struct call, link)
		if (c->dialling && c->number == number)
			return c;
	return NULL;
}

void
call_dialed(struct broker *b, uint64_t tag, int fd)
{
	auto_fd int owned = fd;
	struct call *c = find(b, tag);
	struct err err = {0};

	if (c == NULL)
		return; /* it was given up */
	c->dialling = false;
	ev_timer_stop(b->loop, &c->late);
	if (fd_set_nonblock(owned, &err) < 0 || fd_set_cloexec(owned, true, &err) < 0) {
		dial_failed(c, DIAL_UNREACHABLE, err.text);
		return;
	}
	c->fd = take_fd(&owned);
	http_start(c);
}

void
call_dial_failed(struct broker *b, uint64_t tag, enum dial reason, const char *why)
{
	struct call *c = find(b, tag);

	if (c != NULL)
		dial_failed(c, reason, why);
}

void
call_dialer_lost(struct broker *b)
{
	list_each (c, &b->calls, struct call, link)
		if (c->dialling)
			dial_failed(c, DIAL_BUSY, "the dialer was lost");
}
