/* SPDX-License-Identifier: Apache-2.0 */
/* See gateway.h. */
#include "gateway.h"

#include "lib/base/clock.h"
#include "lib/base/id.h"
#include "lib/base/log.h"
#include "lib/egress/held.h"
#include "lib/loop/loop.h"
#include "limits.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>

enum { NAME_KEY = 16, NAMES_KNOWN = 64 };

/*
 * Names of a pattern ("*.example.test") are made by programs of the sandbox and asked of name servers of others: labels are a way out for
 * data. So new ones come at a rate; those that were asked for lately cost nothing.
 */
struct names {
	uint8_t known[NAMES_KNOWN][NAME_KEY]; /* a ring of digests */
	size_t n, next;
	uint64_t spent_ms, at_ms; /* of the bucket: each new name spends LIMIT_NAME_MS */
};

struct gateway {
	struct link link;
	struct asker asker;
	struct held_policy *policy; /* owned: a reference */
	struct names names;
	char sandbox[ID_TEXT];
};

/* ---- names of patterns ---- */

static bool
name_known(const struct names *n, const uint8_t key[static NAME_KEY])
{
	for (size_t i = 0; i < n->n; i++)
		if (memcmp(n->known[i], key, NAME_KEY) == 0)
			return true;
	return false;
}

/* False: too many new ones. */
static bool
name_take(struct names *n, struct view name, uint64_t now_ms)
{
	uint8_t digest[SHA256_BYTES];
	uint64_t passed = now_ms - n->at_ms;

	sha256_of(name, digest);
	if (name_known(n, digest))
		return true;
	n->spent_ms -= n->spent_ms < passed ? n->spent_ms : passed;
	n->at_ms = now_ms;
	if (n->spent_ms + LIMIT_NAME_MS > LIMIT_NAME_BURST * LIMIT_NAME_MS)
		return false;
	n->spent_ms += LIMIT_NAME_MS;
	memcpy(n->known[n->next], digest, NAME_KEY);
	n->next = (n->next + 1) % NAMES_KNOWN;
	if (n->n < NAMES_KNOWN)
		n->n++;
	return true;
}

/* ---- its table ---- */

/* A rule and a name that it has, as a row of the table of origins. */
static void
origin_of(const struct rule *r, struct view name, struct origin *ret)
{
	*ret = (struct origin){.port = r->port,
		.literal = r->literal || r->exact,
		.exact = r->exact,
		.address = r->address};
	must(name.n < sizeof(ret->host));
	memcpy(ret->host, name.p, name.n);
}

/* NULL: the policy has no such rule, or it does not name this place. */
static const struct rule *
rule_find(const struct policy *p, unsigned index, struct view host, uint16_t port)
{
	struct address literal;

	if (index >= p->nrules || (!host_name_ok(host) && address_parse(host, &literal) < 0) ||
		!rule_names(&p->rule[index], host, port))
		return NULL;
	return &p->rule[index];
}

bool
gateways_origin(struct dialer *d, const struct msg_dial *m, struct origin *ret)
{
	struct held_policy *held = held_policy_find(&d->policies, m->policy);
	struct view host = view_str(m->host);
	const struct rule *r = held == NULL ? NULL
					    : rule_find(&held->policy, m->rule, host, m->port);

	if (r == NULL || r->kind != RULE_KIND_BROKERED)
		return false;
	origin_of(r, host, ret);
	return true;
}

/* ---- its messages ---- */

static void
reach_connected(struct asker *a, uint64_t tag, const char *address, int fd)
{
	struct msg_reached m = {0};

	(void)snprintf(m.address, sizeof(m.address), "%s", address);
	IPC_SEND_FD(a->peer, tag, REACHED, reached, fd, m);
}

static void
reach_failed(struct asker *a, uint64_t tag, enum dial reason, const char *text)
{
	struct msg_reach_failed m = {.reason = reason};

	(void)snprintf(m.text, sizeof(m.text), "%s", text);
	IPC_SEND(a->peer, tag, REACH_FAILED, reach_failed, m);
}

static int
on_reach(struct ipc_peer *peer, struct ipc_msg *in, const struct msg_reach *m, struct err *err)
{
	struct gateway *g = peer->owner;
	struct view host = view_str(m->host);
	const struct rule *r = rule_find(&g->policy->policy, m->rule, host, m->port);
	struct origin to;

	if (m->timeout_ms == 0)
		return err_set(err, -EPROTO, "REACH without a time");
	if (r == NULL || r->kind == RULE_KIND_BROKERED) {
		reach_failed(&g->asker, in->tag, DIAL_NOT_LISTED,
			"the rule does not lead to this name and port");
		return 0;
	}
	if (r->labels != LABELS_NONE && !name_take(&g->names, host, clock_mono_ms())) {
		reach_failed(&g->asker, in->tag, DIAL_BUSY,
			"names of a pattern are looked up at a rate, and these are too many new "
			"ones");
		return 0;
	}
	origin_of(r, host, &to);
	dial_begin(&g->asker, in->tag, &to, m->timeout_ms);
	return 0;
}

IPC_HANDLER(reach, on_reach)

static const struct ipc_row gateway_rows[] = {
	IPC_ROW(REACH, IN_ANY, on_reach),
};

/* ---- its life ---- */

static void
gateway_free(struct gateway *g)
{
	dials_forget(&g->asker);
	ipc_peer_close(g->asker.peer);
	held_policy_unref(g->policy);
	list_remove(&g->link);
	g->asker.dialer->ngateways--;
	loop_free_later(g->asker.dialer->loop, g);
}

static void
on_gateway_lost(struct ipc_peer *peer, const struct err *why)
{
	struct gateway *g = peer->owner;

	if (why->code != -EPIPE && why->code != -ECONNRESET)
		log_line("gateway of %s: %s", g->sandbox, why->text);
	gateway_free(g);
}

static int
ports_check(const struct dialer *d, const struct policy *p, struct err *err)
{
	for (size_t i = 0; i < p->nports; i++)
		if (!port_told(d->told, p->ports[i]))
			return err_set(err, -EPERM,
				"port %u of its policy was not told at the start", p->ports[i]);
	return 0;
}

/*
 * Descriptors that a gateway does not take stay with the kernel, on this process's account: the edge has room for few, and while more
 * answers wait nothing is read of it.
 */
static int
edge_serve(struct gateway *g, int edge, struct err *err)
{
	struct dialer *d = g->asker.dialer;
	const int least = 0; /* the kernel makes it its least */

	if (setsockopt(edge, SOL_SOCKET, SO_SNDBUF, &least, sizeof(least)) < 0) {
		(void)close(edge); /* nothing was read of it */
		return err_errno(err, "the room of an edge");
	}
	g->asker.peer = ipc_peer_new(d->loop, edge, EDGE_GATEWAY_DIALER, ROOM_DIALER, gateway_rows,
		ARRAY_LEN(gateway_rows), g, on_gateway_lost, err);
	if (g->asker.peer == NULL)
		return err->code;
	g->asker.peer->pause_at_bytes = 0;
	return 0;
}

static int
gateway_start(struct gateway *g, const struct msg_dialer_gateway *m, int edge, int policy,
	struct err *err)
{
	struct dialer *d = g->asker.dialer;
	auto_fd int owned = edge;
	int r = d->ngateways > LIMIT_GATEWAYS
			? err_set(err, -E2BIG, "more than %u gateways", (unsigned)LIMIT_GATEWAYS)
			: 0;

	if (r == 0)
		r = held_policy_get(&d->policies, policy, m->policy, &g->policy, err);
	if (r == 0)
		r = ports_check(d, &g->policy->policy, err);
	return r < 0 ? r : edge_serve(g, take_fd(&owned), err);
}

void
gateway_add(struct dialer *d, const struct msg_dialer_gateway *m, int edge, int policy)
{
	auto_fd int memory = policy;
	struct gateway *g = calloc(1, sizeof(*g));
	char sandbox[ID_TEXT];
	struct err err = {0};

	id_text(&m->sandbox, ID_SANDBOX, sandbox);
	if (g == NULL) {
		log_line("%s reaches nothing: no memory for its gateway", sandbox);
		(void)close(edge); /* nothing was read of it */
		return;
	}
	asker_init(&g->asker, d, true);
	g->asker.connected = reach_connected;
	g->asker.failed = reach_failed;
	memcpy(g->sandbox, sandbox, sizeof(sandbox));
	list_append(&d->gateways, &g->link);
	d->ngateways++;
	if (gateway_start(g, m, edge, memory, &err) < 0) {
		log_line("%s reaches nothing: %s", sandbox, err.text);
		gateway_free(g);
	}
}

void
gateways_free(struct dialer *d)
{
	list_each (g, &d->gateways, struct gateway, link)
		gateway_free(g);
}
