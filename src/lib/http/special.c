/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fields with a meaning to the codec itself (field.def): framing, Host, Connection, Expect.
 * Called by head.c once a head is complete. Invariants: at most one Content-Length or one
 * Transfer-Encoding, never both; one Host; a Connection list of a request names hop-by-hop fields
 * only.
 */
#include "lib/http/special.h"

#include "lib/base/num.h"
#include "lib/http/chars.h"

/* What the fields said, before it is judged together. */
struct special {
	struct http_head *head;
	const struct http_limits *limits;
	unsigned hosts, lengths, codings, expects, upgrades;
	bool close, keep_alive, upgrade;
};

static enum http_reason
on_host(struct special *s, struct view value)
{
	if (s->head->side == HTTP_RESPONSE)
		return HTTP_FINE;
	if (s->hosts++ > 0 || value.n == 0)
		return HTTP_NO_HOST;
	return http_authority_parse(value, s->limits->host_flags, &s->head->host);
}

static enum http_reason
on_length(struct special *s, struct view value)
{
	if (s->lengths++ > 0 || num_u64(value, UINT64_MAX, &s->head->length) < 0)
		return HTTP_NO_LENGTH;
	return HTTP_FINE;
}

static enum http_reason
on_coding(struct special *s, struct view value)
{
	if (s->codings++ > 0 || s->head->minor == 0 || !view_eq_nocase(value, view_str("chunked")))
		return HTTP_NO_CODING;
	return HTTP_FINE;
}

/* Takes the next element off a comma-separated list of tokens; false at a malformed one. */
static bool
list_next(struct view *rest, struct view *ret_token)
{
	size_t n = 0;

	while (n < rest->n && rest->p[n] != ',')
		n++;
	*ret_token = view_of(rest->p, n);
	*rest = view_skip(*rest, n + 1);
	while (ret_token->n > 0 && (ret_token->p[0] == ' ' || ret_token->p[0] == '\t'))
		*ret_token = view_skip(*ret_token, 1);
	while (ret_token->n > 0 && !char_is(ret_token->p[ret_token->n - 1], CHAR_TOKEN)) {
		uint8_t c = ret_token->p[ret_token->n - 1];

		if (c != ' ' && c != '\t')
			return false;
		ret_token->n--;
	}
	for (size_t i = 0; i < ret_token->n; i++)
		if (!char_is(ret_token->p[i], CHAR_TOKEN))
			return false;
	return ret_token->n > 0;
}

bool
http_list_has(struct view value, const char *token)
{
	struct view rest = value, one;

	while (rest.n > 0)
		if (list_next(&rest, &one) && view_eq_nocase(one, view_str(token)))
			return true;
	return false;
}

/*
 * A request may only name these: an intermediary drops what is named here, so a list with
 * Host, Authorization or X-Forwarded-For in it would take a field away from whoever checks it.
 * Responses name all kinds of fields in the wild; we never forward what they name.
 */
static bool
hop_by_hop(struct view token)
{
	static const char *const harmless[] = {
		"close", "keep-alive", "upgrade", "te", "http2-settings", "proxy-connection"};

	for (size_t i = 0; i < ARRAY_LEN(harmless); i++)
		if (view_eq_nocase(token, view_str(harmless[i])))
			return true;
	return false;
}

static enum http_reason
on_connection(struct special *s, struct view value)
{
	struct view rest = value, token;

	if (value.n == 0 || value.p[value.n - 1] == ',')
		return HTTP_NO_CONNECTION;
	while (rest.n > 0) {
		if (!list_next(&rest, &token))
			return HTTP_NO_CONNECTION;
		if (s->head->side == HTTP_REQUEST && !hop_by_hop(token))
			return HTTP_NO_CONNECTION;
		s->close = s->close || view_eq_nocase(token, view_str("close"));
		s->keep_alive = s->keep_alive || view_eq_nocase(token, view_str("keep-alive"));
		s->upgrade = s->upgrade || view_eq_nocase(token, view_str("upgrade"));
	}
	return HTTP_FINE;
}

static enum http_reason
on_expect(struct special *s, struct view value)
{
	if (s->head->side == HTTP_RESPONSE)
		return HTTP_FINE;
	if (s->expects++ > 0 || !view_eq_nocase(value, view_str("100-continue")))
		return HTTP_NO_EXPECT;
	s->head->expect_continue = s->head->minor == 1;
	return HTTP_FINE;
}

static enum http_reason
on_upgrade(struct special *s, struct view value)
{
	(void)value;
	s->upgrades++;
	return HTTP_FINE;
}

static enum http_reason
on_override(struct special *s, struct view value)
{
	(void)value;
	return s->head->side == HTTP_RESPONSE || s->limits->method_override
		       ? HTTP_FINE
		       : HTTP_NO_METHOD_OVERRIDE;
}

struct row {
	const char *name;
	size_t n;
	enum http_reason (*handler)(struct special *s, struct view value);
};

static const struct row rows[] = {
#define HTTP_FIELD(id, name, handler) {name, sizeof(name) - 1, handler},
#include "lib/http/field.def"
#undef HTTP_FIELD
};

/*
 * http-parser 2.9 and what embeds it take a longer name that begins with transfer-encoding for the
 * real one in part, and then read another body than we do. No honest sender has such a field.
 */
static bool
like_coding(struct view name)
{
	static const char coding[] = "transfer-encoding";

	return name.n > sizeof(coding) - 1 &&
	       view_eq_nocase(view_of(name.p, sizeof(coding) - 1), view_str(coding));
}

static enum http_reason
field_judge(struct special *s, const struct http_field *f)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (rows[i].n == f->name.n &&
			view_eq_nocase(f->name, view_of(rows[i].name, rows[i].n)))
			return rows[i].handler(s, f->value);
	return like_coding(f->name) ? HTTP_NO_CODING : HTTP_FINE;
}

static enum http_reason
request_framing(struct special *s)
{
	struct http_head *h = s->head;

	if (s->lengths == 0 && s->codings == 0)
		return HTTP_FINE;
	h->framing = s->codings > 0 ? HTTP_BODY_CHUNKED : HTTP_BODY_LENGTH;
	if (h->framing == HTTP_BODY_LENGTH && h->length == 0)
		h->framing = HTTP_BODY_NONE;
	if (h->framing != HTTP_BODY_NONE && (s->limits->body_methods & 1u << h->method) == 0)
		return HTTP_NO_METHOD_BODY;
	return h->length > s->limits->body_bytes ? HTTP_NO_BODY_LONG : HTTP_FINE;
}

static enum http_reason
response_framing(struct special *s, enum http_method asked, bool switch_asked)
{
	struct http_head *h = s->head;
	bool interim = h->status < 200, tunnel = asked == HTTP_CONNECT && h->status / 100 == 2;

	/* A 304 may repeat the length of what it does not send; readers disagree about a coding there. */
	if ((interim || tunnel || h->status == 204) && (s->codings > 0 || h->length > 0))
		return HTTP_NO_NO_CONTENT;
	if (h->status == 304 && s->codings > 0)
		return HTTP_NO_NO_CONTENT;
	if (h->status == 101 && (!switch_asked || !s->head->upgrade))
		return HTTP_NO_SWITCH;
	if (h->status == 101 || tunnel)
		h->framing = HTTP_BODY_TUNNEL;
	else if (interim || h->status == 204 || h->status == 304 || asked == HTTP_HEAD)
		h->framing = HTTP_BODY_NONE;
	else if (s->codings > 0)
		h->framing = HTTP_BODY_CHUNKED;
	else if (s->lengths > 0)
		h->framing = h->length > 0 ? HTTP_BODY_LENGTH : HTTP_BODY_NONE;
	else
		h->framing = HTTP_BODY_UNTIL_CLOSE;
	return h->framing == HTTP_BODY_LENGTH && h->length > s->limits->body_bytes
		       ? HTTP_NO_BODY_LONG
		       : HTTP_FINE;
}

/* The place that the target names and the one that Host names must be one and the same. */
static enum http_reason
host_agrees(const struct special *s)
{
	const struct http_head *h = s->head;
	const struct http_target *t = &h->target;

	if (s->hosts == 0)
		return h->minor == 1 ? HTTP_NO_HOST : HTTP_FINE;
	if (t->form != HTTP_FORM_ABSOLUTE && t->form != HTTP_FORM_AUTHORITY)
		return HTTP_FINE;
	uint16_t port = t->form == HTTP_FORM_AUTHORITY ? t->authority.port : t->https ? 443 : 80;
	return http_authority_eq(&t->authority, &h->host, port) ? HTTP_FINE : HTTP_NO_MISMATCH;
}

enum http_reason
http_special_judge(struct http_head *head, const struct http_limits *limits, enum http_method asked,
	bool switch_asked)
{
	struct special s = {.head = head, .limits = limits};

	for (unsigned i = 0; i < head->fields; i++) {
		enum http_reason no = field_judge(&s, &head->field[i]);

		if (no != HTTP_FINE)
			return no;
	}
	if (s.lengths > 0 && s.codings > 0)
		return HTTP_NO_LENGTH_AND_CODING;
	head->upgrade = s.upgrade && s.upgrades == 1;
	if (head->side == HTTP_REQUEST) {
		enum http_reason no = host_agrees(&s);

		if (no == HTTP_FINE)
			no = request_framing(&s);
		if (no != HTTP_FINE)
			return no;
	} else {
		enum http_reason no = response_framing(&s, asked, switch_asked);

		if (no != HTTP_FINE)
			return no;
	}
	head->keep_alive = !s.close && (head->minor == 1 || s.keep_alive) &&
			   head->framing != HTTP_BODY_UNTIL_CLOSE &&
			   head->framing != HTTP_BODY_TUNNEL;
	return HTTP_FINE;
}
