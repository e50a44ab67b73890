/* SPDX-License-Identifier: Apache-2.0 */
/* See gateway.h: edges and their life, and the leases that the engine gives. */
#include "broker/gateway.h"

#include "broker/lease.h"
#include "broker/work.h"

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/loop/loop.h"

#include <errno.h>
#include <unistd.h>

static int
on_brokered(
	struct ipc_peer *peer, struct ipc_msg *in, const struct msg_brokered *m, struct err *err)
{
	(void)err;
	brokered_ask(peer->owner, in->tag, m);
	return 0;
}

IPC_HANDLER(brokered, on_brokered)

static const struct ipc_row gateway_rows[] = {
	IPC_ROW(BROKERED, IN_ANY, on_brokered),
};

static void
gateway_free(struct gateway *g)
{
	brokered_forget(g);
	ipc_peer_close(g->peer);
	held_policy_unref(g->policy);
	list_remove(&g->link);
	g->b->ngateways--;
	loop_free_later(g->b->loop, g);
}

static void
on_gateway_lost(struct ipc_peer *peer, const struct err *why)
{
	struct gateway *g = peer->owner;

	if (why->code != -EPIPE && why->code != -ECONNRESET)
		log_line("gateway of %s: %s", g->text, why->text);
	gateway_free(g);
}

static void
note(const char *text)
{
	log_line("%s; brokered requests that need it are refused", text);
}

/* Roots that no operation names are read now; the trust directory is open to this process. */
static void
roots_of(struct broker *b, const struct policy *p)
{
	for (size_t i = 0; i < p->nrules; i++)
		if (p->rule[i].kind == RULE_KIND_BROKERED)
			roots_want(b->roots, b->trust, p->rule[i].roots, note);
}

static int
gateway_start(struct gateway *g, const uint8_t digest[static SHA256_BYTES], int edge, int policy,
	struct err *err)
{
	struct broker *b = g->b;
	auto_fd int owned = edge;
	int r = b->ngateways > LIMIT_GATEWAYS
			? err_set(err, -E2BIG, "more than %u gateways", (unsigned)LIMIT_GATEWAYS)
			: 0;

	if (r == 0)
		r = held_policy_get(&b->policies, policy, digest, &g->policy, err);
	if (r < 0)
		return r;
	roots_of(b, &g->policy->policy);
	g->peer = ipc_peer_new(b->loop, take_fd(&owned), EDGE_GATEWAY_BROKER, ROOM_BROKER,
		gateway_rows, ARRAY_LEN(gateway_rows), g, on_gateway_lost, err);
	if (g->peer == NULL)
		return err->code;
	g->peer->pause_at_bytes = 0; /* one that does not take its answers is not read */
	return 0;
}

void
gateway_add(struct broker *b, const struct msg_broker_gateway *m, int edge, int policy)
{
	auto_fd int memory = policy;
	struct gateway *g = calloc(1, sizeof(*g));
	char sandbox[ID_TEXT];
	struct err err = {0};

	id_text(&m->sandbox, ID_SANDBOX, sandbox);
	if (g == NULL) {
		log_line("%s has no brokered requests: no memory for its gateway", sandbox);
		(void)close(edge); /* nothing was read of it */
		return;
	}
	g->b = b;
	g->sandbox = m->sandbox;
	memcpy(g->text, sandbox, sizeof(sandbox));
	list_init(&g->requests);
	list_append(&b->gateways, &g->link);
	b->ngateways++;
	if (gateway_start(g, m->policy, edge, memory, &err) < 0) {
		log_line("%s has no brokered requests: %s", sandbox, err.text);
		gateway_free(g);
	}
}

void
gateways_free(struct broker *b)
{
	list_each (g, &b->gateways, struct gateway, link)
		gateway_free(g);
}

/* ---- leases ---- */

void
lease_ask(struct broker *b, struct ask ask, const struct msg_lease *m)
{
	uint64_t now = clock_mono_ms();
	struct lease lease = {.id = m->lease,
		.sandbox = m->sandbox,
		.rule = m->rule,
		.until_ms = now + m->valid_ms};
	struct err err = {0};
	int r;

	if (m->valid_ms == 0 || m->valid_ms > LIMIT_LEASE_MS || id_is_zero(&m->lease)) {
		tell_refused(b, ask, DENIAL_RECORD_MALFORMED,
			"a lease has a name and is good for at most 30 seconds");
		return;
	}
	if (ledger_scope_contained(b->ledger, view_str("host"))) {
		tell_refused(b, ask, DENIAL_CONTAINED, "the host is contained");
		return;
	}
	memcpy(lease.digest, m->digest, SHA256_BYTES);
	r = leases_add(b->leases, &lease, now, &err);
	if (r < 0)
		tell_refused(
			b, ask, r == -EEXIST ? DENIAL_SPENT : DENIAL_BROKER_UNAVAILABLE, err.text);
	else
		TELL(b, ask, BROKER_DONE, broker_done, {0});
}
