/* SPDX-License-Identifier: Apache-2.0 */
/* Rules and budgets as people write them; see policy.h. */
#include "cli/policy.h"

#include "cli/answer.h"
#include "cli/units.h"
#include "lib/egress/weak.h"

#include <inttypes.h>
#include <netinet/in.h>

enum { PORT_HTTP = 80, PORT_HTTPS = 443 };

/* ---- places ---- */

static bool
asks(const struct rule *r)
{
	return r->kind == RULE_KIND_FETCH || r->kind == RULE_KIND_BROKERED;
}

static bool
port_is_usual(const struct rule *r)
{
	return asks(r) && r->port == (r->tls ? PORT_HTTPS : PORT_HTTP);
}

void
policy_add_where(struct buf *b, const struct rule *r)
{
	bool six = r->literal && r->address.family == AF_INET6;

	if (asks(r))
		buf_add_str(b, r->tls ? "https://" : "http://");
	if (r->labels != LABELS_NONE)
		buf_add_str(b, r->labels == LABELS_ONE ? "*." : "**.");
	buf_add_str(b, six ? "[" : "");
	buf_add_view(b, r->host);
	buf_add_str(b, six ? "]" : "");
	if (!port_is_usual(r))
		buf_addf(b, ":%u", r->port);
	if (asks(r))
		buf_add_view(b, r->path);
}

void
policy_add_name(struct buf *b, const struct rule *r)
{
	buf_addf(b, "%s ", rule_kind_text(r->kind));
	policy_add_where(b, r);
}

/* ---- the rest ---- */

void
policy_add_amount(struct buf *b, uint64_t value, bool bytes)
{
	char text[UNITS_TEXT];

	if (bytes && value <= INT64_MAX) {
		units_bytes_text((int64_t)value, text);
		buf_add_str(b, text);
	} else {
		buf_addf(b, "%" PRIu64, value);
	}
}

static void
add_part(struct buf *b, const char *what)
{
	buf_addf(b, "%s%s", b->n == 0 ? "" : "; ", what);
}

static void
add_list(struct buf *b, const char *what, const struct view *v, size_t n)
{
	if (n == 0)
		return;
	add_part(b, what);
	for (size_t i = 0; i < n; i++) {
		buf_add_str(b, i == 0 ? " " : ", ");
		buf_add_view(b, v[i]);
	}
}

static void
add_methods(struct buf *b, unsigned methods)
{
	const char *before = " ";

	add_part(b, "methods");
	for (unsigned m = 0; m < HTTP_METHODS; m++)
		if ((methods >> m & 1) != 0) {
			buf_addf(b, "%s%s", before, http_method_name((enum http_method)m));
			before = ", ";
		}
}

static void
add_credential(struct buf *b, const struct rule *r)
{
	add_part(b, "credential ");
	buf_add_view(b, r->credential_secret);
	buf_add_str(b, " as ");
	buf_add_view(b, r->credential_header);
	if (r->credential_prefix.n > 0)
		buf_addf(b, ": %.*s...", VIEW_ARGS(r->credential_prefix));
}

void
policy_add_rest(struct buf *ret, const struct rule *r)
{
	char address[ADDRESS_TEXT];
	auto_buf struct buf b;

	buf_init(&b, POLICY_LINE_BYTES);
	if (asks(r)) {
		add_methods(&b, r->methods);
		add_list(&b, "query", r->query, r->nquery);
		if (r->request_max > 0) {
			add_part(&b, "bodies up to ");
			policy_add_amount(&b, r->request_max, true);
		}
		add_part(&b, "answers up to ");
		policy_add_amount(&b, r->response_max, true);
	}
	if (r->websocket)
		add_part(&b, "WebSocket");
	if (r->kind == RULE_KIND_BROKERED) {
		add_credential(&b, r);
		add_list(&b, "answered with", r->field, r->nfields);
	}
	if (r->uses > 0) {
		add_part(&b, "");
		buf_addf(&b, "%" PRIu32 " uses of a task", r->uses);
	}
	if (r->exact) {
		address_text(&r->address, address);
		add_part(&b, "at the address ");
		buf_add_str(&b, address);
	}
	if (r->roots.n > 0)
		add_list(&b, "roots of", &r->roots, 1);
	buf_add_view(ret, buf_view(&b));
}

void
egress_add_where(struct buf *b, const json_t *verdict)
{
	struct view name = answer_text(verdict, "name"), scheme = answer_text(verdict, "scheme");
	int64_t port = answer_int(verdict, "port", 0);
	bool six;

	if (name.n == 0)
		name = answer_text(verdict, "address");
	six = view_has(name, ':');
	if (!view_is(scheme, "none"))
		buf_addf(b, "%.*s ", VIEW_ARGS(scheme));
	buf_addf(b, "%s%.*s%s", six ? "[" : "", VIEW_ARGS(name), six ? "]" : "");
	if (name.n == 0 && port == 0)
		buf_add_byte(b, '-'); /* what was asked for could not be read */
	else if (!view_is(scheme, "dns"))
		buf_addf(b, ":%" PRId64, port);
}

bool
policy_add_weak(struct buf *b, const struct rule *r)
{
	unsigned weak = rule_weak(r);
	bool some = false;

	for (unsigned w = 0; w < RULE_WEAKS; w++) {
		if ((weak >> w & 1) == 0)
			continue;
		buf_addf(b, "%s%s", some ? "; " : "", rule_weak_text((enum rule_weak)w));
		some = true;
	}
	return some;
}

void
policy_budgets(const struct egress *e, struct policy_budget ret[static POLICY_BUDGETS])
{
	const struct policy_budget all[POLICY_BUDGETS] = {
		{"names", e->names, false},
		{"connections", e->connections, false},
		{"handshakes", e->handshakes, false},
		{"requests", e->requests, false},
		{"brokered", e->brokered, false},
		{"bytes_out", e->bytes_out, true},
		{"bytes_in", e->bytes_in, true},
	};

	memcpy(ret, all, sizeof(all));
}
