/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One brokered request: a GET of a rule with a credential, asked for by a gateway. The order: room, lease (spent, whatever comes), the rule
 * over this broker's own copy of the policy, the digest made again, the secret; only then a connection, verified TLS, the request, once. What
 * comes back is the rule's fields of bounded JSON, without any secret. A redirect is an answer like others, and none that is passed on.
 */
#include "broker/answer.h"
#include "broker/gateway.h"
#include "broker/lease.h"

#include "lib/base/clock.h"
#include "lib/egress/rules.h"
#include "lib/ipc/reach_bounds.h"
#include "lib/json/parse.h"
#include "lib/loop/loop.h"

#include <errno.h>

struct brokered {
	struct link link; /* of gateway.requests */
	struct gateway *gateway;
	uint64_t tag;
	const struct rule *rule; /* in the gateway's policy, which it outlives */
	char name[HOST_NAME_MAX_BYTES + 1];
	struct provider provider;
	struct call *call; /* owned */
};

/* ---- the end ---- */

struct ending {
	enum egress_reason reason;
	unsigned status;
	const char *text;
	struct view answer;
};

static void
tell(struct gateway *g, uint64_t tag, const struct ending *o)
{
	char room[TEXT_BYTES];
	struct view text = view_str(broker_text(g->b, o->text, room));

	IPC_SEND(g->peer, tag, BROKERED_DONE, brokered_done,
		{.reason = o->reason,
			.text = view_of(text.p, text.n < 224 ? text.n : 224),
			.status = (uint16_t)o->status,
			.answer = o->answer});
}

static void
refuse(struct gateway *g, uint64_t tag, enum egress_reason reason, const char *text)
{
	tell(g, tag, &(struct ending){.reason = reason, .text = text});
}

static void
brokered_free(struct brokered *r)
{
	call_free(r->call);
	list_remove(&r->link);
	r->gateway->nrequests--;
	r->gateway->b->nbrokered--;
	loop_free_later(r->gateway->b->loop, r);
}

void
brokered_forget(struct gateway *g)
{
	list_each (r, &g->requests, struct brokered, link)
		brokered_free(r);
}

/* ---- the answer ---- */

/* Nothing left: no connection, or one on which TLS did not stand. */
static enum egress_reason
reason_not_sent(const struct call *c)
{
	if (c->dial != DIAL_CONNECTED)
		return egress_reason_of_dial(c->dial, EGRESS_REASON_BROKER);
	if (c->result == CURLE_OPERATION_TIMEDOUT)
		return EGRESS_REASON_TIMEOUT;
	return c->result == CURLE_OK ? EGRESS_REASON_BROKER : EGRESS_REASON_TLS_VERIFY;
}

static enum egress_reason
reason_cut(const struct call *c)
{
	if (c->cut_by_size)
		return EGRESS_REASON_RESP_LIMIT;
	return c->result == CURLE_OPERATION_TIMEDOUT ? EGRESS_REASON_TIMEOUT : EGRESS_REASON_ANSWER;
}

/* The fields of the rule. What says that it failed may be no JSON; then its status is all there is. */
static void
fields_keep(const struct brokered *r, const struct call *c, struct buf *out, struct ending *o)
{
	struct answer_judge judge = judge_of(c->b);
	struct answer_field fields[POLICY_FIELDS_MAX];
	auto_json json_t *root = NULL;
	struct err err = {0};
	bool redacted = false;

	for (size_t i = 0; i < r->rule->nfields; i++)
		fields[i] = (struct answer_field){r->rule->field[i], r->rule->field[i]};
	if (answer_parse(buf_view(&c->body), &root, &err) < 0) {
		if (c->status >= 400)
			buf_add_str(out, "{}");
		else
			*o = (struct ending){.reason = EGRESS_REASON_ANSWER,
				.text = "the answer is not JSON within its bounds"};
	} else if (answer_keep(root, fields, r->rule->nfields, &judge, LIMIT_READ_BYTES, out,
			   &redacted, &err) < 0) {
		*o = (struct ending){.reason = EGRESS_REASON_RESP_LIMIT,
			.text = "the fields of the answer are larger than what is passed on"};
	}
	o->answer = buf_view(out);
	if (redacted)
		broker_log(c->b, "%s: the answer to a brokered request had a credential in it",
			r->gateway->text);
}

static void
on_done(struct call *c)
{
	struct brokered *r = c->owner;
	auto_buf struct buf answer = {.max = LIMIT_READ_BYTES + 8};
	struct ending o = {.reason = EGRESS_REASON_NONE, .status = (unsigned)c->status, .text = ""};

	if (c->end == CALL_NOT_SENT)
		o = (struct ending){.reason = reason_not_sent(c), .text = c->why.text};
	else if (c->end == CALL_CUT)
		o = (struct ending){.reason = reason_cut(c), .text = c->why.text};
	else if (c->status / 100 == 3)
		o = (struct ending){.reason = EGRESS_REASON_ANSWER,
			.text = "the provider answers with a redirect, which is not followed"};
	else
		fields_keep(r, c, &answer, &o);
	tell(r->gateway, r->tag, &o);
	brokered_free(r);
}

/* ---- the request ---- */

static void
percent_put(struct buf *out, struct view text)
{
	static const char plain[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";

	for (size_t i = 0; i < text.n; i++)
		if (memchr(plain, text.p[i], sizeof(plain) - 1) != NULL)
			buf_add_byte(out, text.p[i]);
		else
			buf_addf(out, "%%%02X", text.p[i]);
}

/* False: longer than a request may be. */
static bool
url_write(const struct brokered *r, struct view path, const struct http_params *query,
	struct buf *out)
{
	bool six = strchr(r->name, ':') != NULL;

	buf_init(out, REQUEST_URL_MAX);
	buf_addf(out, six ? "https://[%s]" : "https://%s", r->name);
	if (r->rule->port != 443)
		buf_addf(out, ":%u", r->rule->port);
	buf_add_view(out, path);
	for (unsigned i = 0; i < query->n; i++) {
		buf_add_byte(out, i == 0 ? '?' : '&');
		percent_put(out, query->param[i].name);
		buf_add_byte(out, '=');
		percent_put(out, query->param[i].value);
	}
	return buf_check(out) == 0;
}

/* May this rule be asked this, and is it what the engine leased. The sentence of what is wrong. */
static enum egress_reason
judge_request(const struct gateway *g, const struct msg_brokered *m,
	const struct http_params *query, const uint8_t leased[static SHA256_BYTES],
	const char **ret_text)
{
	const struct policy *p = &g->policy->policy;
	const struct egress_place at = {
		.scheme = EGRESS_SCHEME_HTTPS, .name = m->name, .port = p->rule[m->rule].port};
	struct egress_request q = {.method = HTTP_GET,
		.path = m->path,
		.has_query = query->n > 0,
		.query = query->n > 0 ? query : NULL};
	struct egress_decision d;
	uint8_t digest[SHA256_BYTES];

	rules_request(p, UINT64_C(1) << m->rule, &q, NULL, &d);
	*ret_text = egress_reason_says(d.reason);
	if (d.reason != EGRESS_REASON_NONE)
		return d.reason;
	egress_request_digest(&at, &q, digest);
	*ret_text = "this is not the request that was leased";
	return memcmp(digest, leased, SHA256_BYTES) != 0 ? EGRESS_REASON_BROKER
							 : EGRESS_REASON_NONE;
}

static void
provider_make(struct brokered *r)
{
	const struct rule *rule = r->rule;
	uint64_t most = rule->response_max < LIMIT_BROKERED_BYTES ? rule->response_max
								  : LIMIT_BROKERED_BYTES;

	r->provider = (struct provider){.name = rule->credential_secret,
		.host = view_str(r->name),
		.port = rule->port,
		.tls = true,
		.roots = rule->roots,
		.credential_header = rule->credential_header,
		.credential_prefix = rule->credential_prefix,
		.credential_secret = rule->credential_secret,
		.response_max = (uint32_t)most,
		.timeout_ms = (uint32_t)LIMIT_BROKERED_MS};
}

static struct brokered *
brokered_new(struct gateway *g, uint64_t tag, const struct msg_brokered *m)
{
	struct brokered *r = calloc(1, sizeof(*r));

	if (r == NULL)
		return NULL;
	r->gateway = g;
	r->tag = tag;
	r->rule = &g->policy->policy.rule[m->rule];
	must(m->name.n < sizeof(r->name)); /* the rule names it */
	memcpy(r->name, m->name.p, m->name.n);
	provider_make(r);
	list_append(&g->requests, &r->link);
	g->nrequests++;
	g->b->nbrokered++;
	return r;
}

static void
send_it(struct gateway *g, uint64_t tag, const struct msg_brokered *m,
	const struct http_params *query)
{
	struct brokered *r = brokered_new(g, tag, m);
	struct request request = {.method = "GET"};
	struct err err = {0};

	if (r == NULL) {
		refuse(g, tag, EGRESS_REASON_BROKER, "the broker has no memory for this");
		return;
	}
	if (!url_write(r, m->path, query, &request.url)) {
		request_done(&request);
		refuse(g, tag, EGRESS_REASON_HEADER_LIMIT, "path and parameters are too long");
		brokered_free(r);
		return;
	}
	r->call = call_new(g->b, &r->provider, &request, &err);
	request_done(&request);
	if (r->call == NULL) {
		broker_log(g->b, "%s: a brokered request is refused: %s", g->text, err.text);
		refuse(g, tag, EGRESS_REASON_BROKER, "the credential of the rule is not there");
		brokered_free(r);
		return;
	}
	memcpy(r->call->policy, g->policy->policy.digest, SHA256_BYTES);
	r->call->rule = m->rule;
	r->call->owner = r;
	r->call->done = on_done;
	call_start(r->call);
}

/* Executions have their own room. Beyond half of that of brokered requests only sandboxes begin more that have few. */
static bool
has_room(const struct gateway *g)
{
	const struct broker *b = g->b;

	if (g->nrequests >= BROKERED_LIVE_MAX || b->nbrokered >= LIMIT_BROKERED)
		return false;
	return b->nbrokered < LIMIT_BROKERED / 2 || g->nrequests < LIMIT_BROKERED_SHARE;
}

/* Nothing is sent at all, whatever is asked. */
static bool
is_closed(struct gateway *g, uint64_t tag)
{
	struct broker *b = g->b;

	if (ending(b))
		refuse(g, tag, EGRESS_REASON_BROKER, "the broker ends");
	else if (ledger_scope_contained(b->ledger, view_str("host")))
		refuse(g, tag, EGRESS_REASON_CONTAINED, "the host is contained");
	else if (b->audit.refused)
		refuse(g, tag, EGRESS_REASON_AUDIT,
			"the last head of the audit could not be signed; nothing is sent until "
			"one is");
	else if (!has_room(g))
		refuse(g, tag, EGRESS_REASON_BROKER, "too many brokered requests at a time");
	else
		return false;
	return true;
}

void
brokered_ask(struct gateway *g, uint64_t tag, const struct msg_brokered *m)
{
	const struct policy *p = &g->policy->policy;
	uint8_t leased[SHA256_BYTES];
	struct http_params query;
	enum egress_reason reason;
	const char *text;
	struct err err = {0};

	if (is_closed(g, tag))
		return;
	if (leases_spend(g->b->leases, &m->lease, &g->sandbox, m->rule, clock_mono_ms(), leased,
		    &err) < 0) {
		refuse(g, tag, EGRESS_REASON_BROKER, err.text);
		return;
	}
	if (m->rule >= p->nrules || p->rule[m->rule].kind != RULE_KIND_BROKERED ||
		!rule_names(&p->rule[m->rule], m->name, p->rule[m->rule].port)) {
		refuse(g, tag, EGRESS_REASON_NO_RULE, "it is no brokered rule of this name");
		return;
	}
	if (egress_query_read(m->query, &query, &err) < 0) {
		refuse(g, tag, EGRESS_REASON_QUERY, err.text);
		return;
	}
	reason = judge_request(g, m, &query, leased, &text);
	if (reason != EGRESS_REASON_NONE)
		refuse(g, tag, reason, text);
	else
		send_it(g, tag, m, &query);
}
