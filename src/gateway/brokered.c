/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See brokered.h. A request that was handed to the broker is never handed over twice: whether it left is not known here. So a broker that goes
 * away is an answer, and so is an engine that goes away before it leased.
 */
#include "brokered.h"

#include "exchange.h"
#include "limits.h"

#include "lib/canon/read.h"
#include "lib/http/write.h"
#include "lib/ipc/reach_bounds.h"

#include <errno.h>

enum { QUERY_MAX = 4096, PATH_MAX_BYTES = 4096 };

static void
refuse(struct conn *c, enum egress_reason reason, const char *text)
{
	exchange_refuse(c, reason, 0, text);
	conn_run(c);
}

static size_t
live(const struct gateway *g)
{
	size_t n = 0;

	list_each (c, &g->conns, struct conn, link)
		n += c->state == CONN_BROKER ? 1 : 0;
	return n;
}

void
brokered_begin(struct conn *c)
{
	struct exchange *x = c->x;

	conn_due(c, LIMIT_WAIT_MS); /* for the lease */
	if (c->g->engine == NULL || c->g->broker == NULL) {
		exchange_refuse(c, EGRESS_REASON_BROKER, 0, "it is not there now");
		return;
	}
	if (live(c->g) > BROKERED_LIVE_MAX) {
		exchange_refuse(c, EGRESS_REASON_BROKER, 0, "too many at the same time");
		return;
	}
	if (x->request.path.n > PATH_MAX_BYTES || x->head.target.query.n > QUERY_MAX) {
		exchange_refuse(c, EGRESS_REASON_PATH, 414, "the path or the query is too long");
		return;
	}
	x->tag = ++c->g->leases;
	x->sent = false;
	struct msg_lease_ask m = {.rule = x->decision.rule};

	memcpy(m.digest, x->digest, sizeof(m.digest));
	IPC_SEND(c->g->engine, x->tag, LEASE_ASK, lease_ask, m);
}

static struct conn *
find(struct gateway *g, uint64_t tag)
{
	list_each (c, &g->conns, struct conn, link)
		if (c->state == CONN_BROKER && c->x->tag == tag)
			return c;
	return NULL;
}

/* Names ascend, as egress_request_digest() has them. */
static void
add_query(struct buf *out, const struct http_params *q)
{
	const struct http_param *last = NULL;

	for (unsigned done = 0; done < q->n; done++) {
		const struct http_param *next = NULL;

		for (unsigned i = 0; i < q->n; i++) {
			const struct http_param *p = &q->param[i];

			if (last != NULL && canon_key_compare(p->name, last->name) <= 0)
				continue;
			if (next == NULL || canon_key_compare(p->name, next->name) < 0)
				next = p;
		}
		must(next != NULL); /* names differ: the codec refuses one that comes twice */
		buf_add_view(out, next->name);
		buf_add_byte(out, '\0');
		buf_add_view(out, next->value);
		buf_add_byte(out, '\0');
		last = next;
	}
}

int
brokered_lease(struct gateway *g, uint64_t tag, enum egress_reason reason, const struct id *lease,
	struct err *err)
{
	struct conn *c = find(g, tag);
	auto_buf struct buf query;

	buf_init(&query, QUERY_MAX + 2 * HTTP_PARAMS_MAX);
	if (tag == 0 || tag > g->leases || (c != NULL && c->x->sent))
		return err_set(err, -EPROTO, "a lease that was not asked for");
	if (c == NULL)
		return 0; /* the program is gone */
	if (reason != EGRESS_REASON_NONE) {
		refuse(c, reason, NULL);
		return 0;
	}
	if (g->broker == NULL) {
		refuse(c, EGRESS_REASON_BROKER, "it is not there now");
		return 0;
	}
	add_query(&query, &c->x->params);
	if (buf_check(&query) < 0 || query.n > QUERY_MAX) {
		refuse(c, EGRESS_REASON_QUERY, "the query is too long");
		return 0;
	}
	c->x->sent = true;
	conn_due(c, LIMIT_BROKERED_MS);
	IPC_SEND(g->broker, tag, BROKERED, brokered,
		{.lease = *lease,
			.rule = c->x->decision.rule,
			.name = c->at.name,
			.path = c->x->request.path,
			.query = buf_view(&query)});
	return 0;
}

/* One canonical object and nothing else. */
static bool
is_object(struct view answer)
{
	struct canon_reader r;
	struct canon_token t;
	struct err err = {0};

	canon_reader_init(&r, answer, true);
	return answer.n > 0 && answer.p[0] == '{' && canon_skip(&r, &err) == 0 &&
	       canon_want(&r, CANON_END, &t, &err) == 0;
}

/* Statuses that say something of the answer as such, not of bodies or connections that are not there. */
static unsigned
status_of(unsigned status)
{
	if (status >= 200 && status < 300)
		return 200;
	return status >= 400 && status < 600 && status != 401 && status != 407 && status != 408
		       ? status
		       : 502;
}

static void
answer(struct conn *c, const struct msg_brokered_done *m)
{
	struct exchange *x = c->x;
	bool keep = x->head.keep_alive;
	struct http_answer a = {.status = status_of(m->status),
		.type = "application/json",
		.body = m->answer,
		.head_only = x->head.method == HTTP_HEAD,
		.close = !keep};

	exchange_bytes(c, 0, m->answer.n);
	if (http_write_answer(outbox_buf(&c->out), &a) < 0) {
		refuse(c, EGRESS_REASON_BROKER, "its answer cannot be written");
		return;
	}
	if (outbox_flush(&c->out, conn_now(c)) < 0)
		return; /* the program's stream tells */
	exchange_next(c, keep);
	conn_run(c);
}

int
brokered_answered(
	struct gateway *g, uint64_t tag, const struct msg_brokered_done *m, struct err *err)
{
	struct conn *c = find(g, tag);

	if (tag == 0 || tag > g->leases || (c != NULL && !c->x->sent))
		return err_set(err, -EPROTO, "an answer to nothing");
	if (c == NULL)
		return 0; /* the program is gone */
	if (m->reason != EGRESS_REASON_NONE)
		refuse(c, m->reason, NULL);
	else if (!is_object(m->answer))
		refuse(c, EGRESS_REASON_BROKER, "its answer is no object");
	else
		answer(c, m);
	return 0;
}

static void
all_refused(struct gateway *g, bool sent)
{
	list_each (c, &g->conns, struct conn, link)
		if (c->state == CONN_BROKER && c->x->sent == sent)
			refuse(c, EGRESS_REASON_BROKER, "it went away");
}

void
brokered_engine(struct gateway *g, bool there)
{
	if (!there)
		all_refused(g, false);
}

void
brokered_broker(struct gateway *g, bool there)
{
	if (!there)
		all_refused(g, true);
}
