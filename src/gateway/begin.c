/* SPDX-License-Identifier: Apache-2.0 */
/* See begin.h. Called by main.c and serve.c. */
#include "begin.h"

#include "accept.h"
#include "allotment.h"
#include "brokered.h"
#include "ca.h"
#include "conn.h"
#include "names.h"
#include "roots.h"
#include "serve.h"
#include "stream.h"
#include "upstream.h"
#include "verdict.h"

#include "lib/loop/loop.h"

#include <errno.h>
#include <sys/random.h>

enum { TRUST_MAX = 24576 }; /* 64 names of the longest kind in the constraints */

int
gateway_init(struct gateway *g, struct err *err)
{
	list_init(&g->listeners);
	list_init(&g->askers);
	list_init(&g->held);
	list_init(&g->conns);
	g->reserve = -1;
	buf_init(&g->certificate, TRUST_MAX);
	buf_init(&g->keystore, TRUST_MAX);
	g->loop = loop_new();
	g->roots = roots_new();
	g->verdicts = verdicts_new(g);
	g->allotment = allotment_new(g);
	g->upstreams = upstreams_new(g);
	g->ca = ca_new(err);
	if (g->ca == NULL)
		return err->code;
	if (g->roots == NULL || g->verdicts == NULL || g->allotment == NULL || g->upstreams == NULL)
		return err_set(err, -ENOMEM, "no memory");
	return 0;
}

void
gateway_done(struct gateway *g)
{
	listeners_end(g);
	conns_end(g);
	upstreams_free(g->upstreams);
	streams_end();
	allotment_free(g->allotment);
	verdicts_free(g->verdicts);
	names_free(g->names);
	roots_free(g->roots);
	ca_free(g->ca);
	ipc_peer_close(g->engine);
	ipc_peer_close(g->dialer);
	ipc_peer_close(g->broker);
	ipc_peer_close(g->supervisor);
	buf_done(&g->certificate);
	buf_done(&g->keystore);
	loop_free(g->loop);
	free(g->document);
}

static bool
any_intercepted(const struct policy *p)
{
	for (size_t i = 0; i < p->nrules; i++)
		if (p->rule[i].kind == RULE_KIND_BROKERED || p->rule[i].tls)
			return true;
	return false;
}

/* Programs that speak TLS past us verify servers themselves, and need the roots that our certificate would stand in place of. */
static bool
any_opaque(const struct policy *p)
{
	for (size_t i = 0; i < p->nrules; i++)
		if (p->rule[i].kind == RULE_KIND_TCP || p->rule[i].kind == RULE_KIND_PASSTHROUGH)
			return true;
	return false;
}

void
gateway_engine_there(struct gateway *g)
{
	IPC_SEND(g->engine, 0, GATEWAY_READY, gateway_ready,
		{.certificate = buf_view(&g->certificate),
			.keystore = buf_view(&g->keystore),
			.system_roots = g->ca != NULL && any_opaque(&g->policy)});
	verdicts_engine(g, true);
	allotment_engine(g, true);
	brokered_engine(g, true);
}

static int
authority(struct gateway *g, struct err *err)
{
	if (any_intercepted(&g->policy))
		return ca_certify(g->ca, &g->policy, &g->certificate, &g->keystore, err);
	ca_free(take_ptr(g->ca));
	return 0;
}

int
gateway_policy(struct gateway *g, int fd, const struct msg_gateway_policy *m, struct err *err)
{
	auto_fd int policy = fd;
	uint8_t key[16];

	g->sandbox = m->sandbox;
	if (policy_load(policy, &g->document, &g->policy, err) < 0)
		return err_context(err, "policy");
	if (memcmp(g->policy.digest, m->policy, SHA256_BYTES) != 0)
		return err_set(err, -EPROTO, "the policy is another one than was told");
	must(getrandom(key, sizeof(key), 0) == (ssize_t)sizeof(key));
	g->names = names_new(g->policy.ipv6, key);
	explicit_bzero(key, sizeof(key));
	if (g->names == NULL)
		return err_set(err, -ENOMEM, "no memory");
	if (authority(g, err) < 0)
		return err_context(err, "authority");
	g->supervisor->state = GATEWAY_NAMED;
	return 0;
}

void
gateway_begin(struct gateway *g)
{
	g->begun = true;
	g->supervisor->state = GATEWAY_BEGUN;
	if (g->engine != NULL)
		gateway_engine_there(g);
	if (g->dialer != NULL)
		upstreams_dialer(g, true);
	if (g->broker != NULL)
		brokered_broker(g, true);
	listeners_begin(g);
}
