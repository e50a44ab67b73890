/* SPDX-License-Identifier: Apache-2.0 */
/* See proxy.h. */
#include "proxy.h"

enum { HTTP_PORT = 80 };

/* Scheme of CONNECT: what the rules of that place speak. */
static enum egress_reason
connect_place(struct conn *c, const struct http_authority *to)
{
	return conn_place(c, view_of(to->host, to->n), to->port, EGRESS_SCHEME_NONE);
}

enum egress_reason
proxy_place(struct conn *c, bool *ret_tunnel, unsigned *ret_status)
{
	const struct http_head *h = &c->x->head;
	const struct http_target *t = &h->target;
	enum egress_reason reason;
	unsigned upgrades;

	*ret_tunnel = false;
	*ret_status = 0;
	if (h->method == HTTP_CONNECT) {
		reason = connect_place(c, &t->authority);
		*ret_tunnel = true;
		(void)http_head_field(h, "upgrade", &upgrades);
		/* Another protocol instead of a tunnel: nothing in a tunnel is asked for. */
		return reason == EGRESS_REASON_NONE && upgrades > 0 ? EGRESS_REASON_UPGRADE
								    : reason;
	}
	if (t->form != HTTP_FORM_ABSOLUTE) {
		*ret_status = 400;
		return EGRESS_REASON_URL_SYNTAX;
	}
	reason = conn_place(c, view_of(t->authority.host, t->authority.n),
		t->authority.port != 0 ? t->authority.port : HTTP_PORT,
		t->https ? EGRESS_SCHEME_HTTPS : EGRESS_SCHEME_HTTP);
	if (t->https) {
		/* We would have to begin TLS for it: what was asked in the clear is not sent as if it had been secret. */
		*ret_status = 400;
		return EGRESS_REASON_SCHEME;
	}
	return reason;
}
