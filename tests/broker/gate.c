/* SPDX-License-Identifier: Apache-2.0 */
/* See gate.h. */
#include "gate.h"

#include "tests/actions/sample.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

struct play play;
struct gate gate;
char document[4096];
uint8_t policy[SHA256_BYTES];
uint64_t gate_tag;

static uint8_t room[IPC_MAX];

/* ---- a policy and its gateways ---- */

/* %1$u: the provider's port; ' for ". */
#define HEAD(secret) \
	"{'credential':{'header':'Authorization','prefix':'Bearer ','secret':'" secret "'},"
static const char text[] =
	"{'budgets':{'brokered':200,'bytes_in':1000000,'bytes_out':1000000,'connections':1000,"
	"'handshakes':1000,'names':100,'requests':1000},'name':'test','rules':[" HEAD(
		"shop-key") "'fields':['customer','paid_cents','status'],'host':'provider.test',"
			    "'kind':'brokered','methods':['GET'],'path':'/v1/orders/*','port':%1$u,"
			    "'query':['lang','number'],'response_max':65536,'roots':'shop'},"

			    "{'host':'docs.test','kind':'fetch','methods':['GET'],'path':'/"
			    "**','port':443,"
			    "'response_max':1000,'tls':true},"

	HEAD("nothing") "'fields':['status'],'host':'provider.test','kind':'brokered',"
			"'methods':['GET'],'path':'/v1/missing/"
			"*','port':%1$u,'response_max':65536,'roots':'shop'},"

	HEAD("shop-key") "'fields':['status'],'host':'provider.test','kind':'brokered',"
			 "'methods':['GET'],'path':'/v1/small/"
			 "*','port':%1$u,'response_max':60,'roots':'shop'},"

	HEAD("shop-key") "'fields':['status'],'host':'test','kind':'brokered','labels':'one',"
			 "'methods':['GET'],'path':'/v1/wild/*','port':%1$u,'response_max':65536,"
			 "'roots':'carrier'}],'v':1}";

void
policy_make(void)
{
	static const char domain[] = "demilune-egress-v1";
	auto_buf struct buf b = {.max = 8192};

	(void)snprintf(document, sizeof(document), text, (unsigned)play.port);
	for (char *c = document; *c != '\0'; c++)
		if (*c == '\'')
			*c = '"';
	buf_add(&b, domain, sizeof(domain));
	buf_add_str(&b, document);
	assert_int_equal(buf_check(&b), 0);
	sha256_of(buf_view(&b), policy);
}

struct gate
gate_with(const char *bytes, int seals, const uint8_t digest[static SHA256_BYTES])
{
	struct msg_broker_gateway m = {0};
	auto_buf struct buf body, packed;
	struct gate g;
	int both[2], fds[2];
	struct err err;

	id_new(&g.sandbox);
	m.sandbox = g.sandbox;
	memcpy(m.policy, digest, SHA256_BYTES);
	assert_int_equal(ipc_pair(both, &err), 0);
	g.fd = both[0];
	fds[0] = both[1];
	fds[1] = sample_fd(view_str(bytes), seals);
	buf_init(&body, IPC_MAX);
	buf_init(&packed, IPC_MAX);
	msg_broker_gateway_put(&body, &m);
	ipc_pack(&packed, MSG_BROKER_GATEWAY, 0, buf_view(&body));
	assert_int_equal(ipc_write(play.supervisor, buf_view(&packed), fds, 2, &err), 0);
	(void)close(fds[0]);
	(void)close(fds[1]);
	return g;
}

struct gate
gate_new(void)
{
	return gate_with(document, SEALS, policy);
}

void
gate_end(struct gate *g)
{
	if (g->fd >= 0)
		(void)close(take_fd(&g->fd));
}

/* ---- one request ---- */

/* "a=b&c=d" to a NUL b NUL c NUL d NUL. */
static void
query_put(const char *words, struct buf *out)
{
	for (; *words != '\0'; words++)
		buf_add_byte(out, *words == '=' || *words == '&' ? 0 : (uint8_t)*words);
	if (out->n > 0)
		buf_add_byte(out, 0);
	assert_int_equal(buf_check(out), 0);
}

static void
digest_of(const struct wish *w, uint8_t ret[static SHA256_BYTES])
{
	const struct egress_place at = {
		.scheme = EGRESS_SCHEME_HTTPS, .name = view_str(w->name), .port = play.port};
	struct egress_request q = {.method = HTTP_GET, .path = view_str(w->path)};
	auto_buf struct buf query = {.max = 8192};
	struct http_params params = {.n = 0};
	struct err err;

	query_put(w->query, &query);
	assert_int_equal(egress_query_read(buf_view(&query), &params, &err), 0);
	q.has_query = params.n > 0;
	q.query = params.n > 0 ? &params : NULL;
	egress_request_digest(&at, &q, ret);
}

/* The engine's answer to a lease with these words; the lease is *ret. */
enum denial
lease_try(const struct gate *g, const struct wish *w, uint32_t valid_ms, struct id *ret)
{
	struct msg_lease m = {
		.sandbox = g->sandbox, .rule = (uint16_t)w->rule, .valid_ms = valid_ms};
	struct msg_broker_refused refused;
	struct err err;

	if (id_is_zero(ret))
		id_new(ret);
	m.lease = *ret;
	digest_of(w, m.digest);
	ASK(&play, LEASE, lease, m);
	play_want_any(&play);
	assert_int_equal(play.in.tag, play.tag);
	if (play.in.type == MSG_BROKER_DONE)
		return DENIAL_NONE;
	assert_int_equal(play.in.type, MSG_BROKER_REFUSED);
	assert_int_equal(msg_broker_refused_get(play.in.body, &refused, &err), 0);
	return refused.denial;
}

struct id
leased(const struct gate *g, const struct wish *w)
{
	struct id lease = {0};

	assert_int_equal(lease_try(g, w, 30000, &lease), DENIAL_NONE);
	return lease;
}

uint64_t
send_wish(const struct gate *g, const struct id *lease, const struct wish *w)
{
	auto_buf struct buf query = {.max = 8192};

	query_put(w->query, &query);
	SAY_TAG(g->fd, ++gate_tag, BROKERED, brokered, -1,
		{.lease = *lease,
			.rule = (uint16_t)w->rule,
			.name = view_str(w->name),
			.path = view_str(w->path),
			.query = buf_view(&query)});
	return gate_tag;
}

struct said
hear(const struct gate *g)
{
	uint64_t until = clock_mono_ms() + 30000;
	struct pollfd p = {.fd = g->fd, .events = POLLIN};
	static char answer[40000];
	struct said s = {.answer = answer};
	struct msg_brokered_done m;
	struct ipc_msg in;
	struct err err = {0};

	while (poll(&p, 1, 0) == 0 && clock_mono_ms() < until)
		play_turn(&play, 10);
	if (ipc_read(g->fd, EDGE_GATEWAY_BROKER, ROOM_BROKER, room, sizeof(room), &in, &err) < 0)
		fail_msg("%s", err.text);
	play_record(&in);
	assert_int_equal(in.type, MSG_BROKERED_DONE);
	assert_int_equal(msg_brokered_done_get(in.body, &m, &err), 0);
	s.reason = m.reason;
	s.status = m.status;
	s.tag = in.tag;
	(void)snprintf(s.text, sizeof(s.text), "%.*s", VIEW_ARGS(m.text));
	(void)snprintf(answer, sizeof(answer), "%.*s", VIEW_ARGS(m.answer));
	return s;
}

struct said
with_lease(const struct gate *g, const struct id *lease, const struct wish *w)
{
	uint64_t of = send_wish(g, lease, w);
	struct said s = hear(g);

	assert_int_equal(s.tag, of);
	return s;
}

struct said
request(const struct gate *g, const struct wish *w)
{
	struct id lease = leased(g, w);

	return with_lease(g, &lease, w);
}

void
is(const struct said *s, enum egress_reason reason, unsigned status)
{
	if (s->reason != reason || s->status != status)
		fail_msg("%s, %u: %s %s", egress_reason_text(s->reason), s->status, s->text,
			s->answer);
}

void
answered(const struct wish *w, unsigned status, const char *answer)
{
	struct said s = request(&gate, w);

	is(&s, EGRESS_REASON_NONE, status);
	assert_string_equal(s.answer, answer);
}

/* Refused, and nothing came to the provider or went to the dialer. */
void
refused(const struct said *s, enum egress_reason reason, unsigned requests, unsigned dialled)
{
	is(s, reason, 0);
	assert_string_equal(s->answer, "");
	assert_int_equal(provider_requests(&play, ""), requests);
	assert_int_equal(play.dialled, dialled);
}

void
refused_wish(struct wish w, enum egress_reason reason)
{
	unsigned requests = provider_requests(&play, ""), dialled = play.dialled;
	struct said s = request(&gate, &w);

	refused(&s, reason, requests, dialled);
}

unsigned
headers_with(const char *words)
{
	auto_buf struct buf b = {.max = 16 << 20};
	unsigned n = 0;
	uint8_t *at;

	play_read(&play, play.provider_dir, "headers", &b);
	at = b.p;
	while (b.n > 0 &&
		(at = memmem(at, b.n - (size_t)(at - b.p), words, strlen(words))) != NULL) {
		n++;
		at++;
	}
	return n;
}
