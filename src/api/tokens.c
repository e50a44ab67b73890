/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The caller and its tokens. A token is made here; the engine stores its digest and its first characters. The
 * text is in the answer and nowhere else; it is wiped afterwards.
 */
#include "body.h"
#include "lib/base/clock.h"
#include "lib/loop/loop.h"
#include "route.h"
#include "rows.h"

#include <errno.h>
#include <sys/random.h>

enum { TOKEN_HEAD = 4, TOKEN_DIGITS = 40, TOKEN_RANDOM = 25, TOKEN_PREFIX = 12 };

struct token {
	char text[TOKEN_HEAD + TOKEN_DIGITS + 1];
};

static void
token_make(struct token *t)
{
	static const char digits[] = "0123456789abcdefghjkmnpqrstvwxyz";
	uint8_t b[TOKEN_RANDOM];

	must(getrandom(b, sizeof(b), 0) == (ssize_t)sizeof(b));
	memcpy(t->text, "dml_", TOKEN_HEAD);
	for (size_t i = 0; i < TOKEN_DIGITS; i++) {
		size_t bit = i * 5;
		uint32_t w = (uint32_t)b[bit / 8] << 8 |
			     (bit / 8 + 1 < sizeof(b) ? b[bit / 8 + 1] : 0U);

		t->text[TOKEN_HEAD + i] = digits[w >> (11 - bit % 8) & 31];
	}
	t->text[TOKEN_HEAD + TOKEN_DIGITS] = 0;
	explicit_bzero(b, sizeof(b));
}

static void
token_gone(struct request *req)
{
	explicit_bzero(req->own, sizeof(struct token));
	if (req->text.p != NULL)
		explicit_bzero(req->text.p, req->text.cap);
	loop_free_later(req->api->loop, req->own);
}

static const struct request_ops token_ops = {.gone = token_gone};

static void
token_members(struct json_out *o, const struct msg_token_row *m)
{
	json_out_key_str(o, "prefix", m->prefix);
	json_out_key_str(o, "label", m->label);
	json_out_key_str(o, "name", m->label);
	json_out_key_str(o, "tenant", m->tenant);
	if (m->template.n > 0)
		json_out_key_str(o, "template", m->template);
	row_time(o, "created_at", m->created_ms);
	row_time(o, "expires_at", m->expires_ms);
	row_time(o, "revoked_at", m->revoked_ms);
	row_time(o, "used_at", m->used_ms);
}

static void
on_created(void *owner, const struct answer *answer)
{
	struct request *req = owner;
	const struct token *t = req->own;
	struct json_out *o;

	if (request_refused(req, answer))
		return;
	o = request_out(req);
	json_out_object_begin(o);
	json_out_key_str(o, "token", view_str(t->text));
	token_members(o, answer->m);
	json_out_object_end(o);
	request_json(req, 201);
}

static int
expiry(const struct body_token_create *b, uint64_t *ret_ms, struct err *err)
{
	uint64_t days = (uint64_t)b->expires_in_days.v, ms = (uint64_t)b->expires_in_seconds_ms.v;

	if (days > 0 && ms > 0)
		return refuse(
			err, BAD_REQUEST, "give expires_in_days or expires_in_seconds, not both");
	ms += days * 86400000;
	*ret_ms = ms == 0 ? 0 : clock_real_ms() + ms;
	return 0;
}

int
on_token_create(struct request *req, struct err *err)
{
	const struct body_token_create *b = req->fields;
	struct msg_token_create m = {.caller = req->caller,
		.tenant = b->tenant.v,
		.label = b->label.v,
		.template = b->template.v};
	struct token *t;

	if (request_unkeyed(req,
		    "the text of a token is answered once and not kept, so it cannot be answered "
		    "again; list the tokens",
		    err) < 0 ||
		expiry(b, &m.expires_ms, err) < 0)
		return err->code;
	t = calloc(1, sizeof(*t));
	if (t == NULL)
		return refuse(err, INTERNAL, "no memory for a token");
	token_make(t);
	req->own = t;
	req->ops = &token_ops;
	m.prefix = view_of(t->text, TOKEN_PREFIX);
	sha256_of(view_str(t->text), m.token);
	return REQUEST_ASK(req, on_created, err, TOKEN_CREATE, token_create, m);
}

static void
on_list(void *owner, const struct answer *answer)
{
	struct request *req = owner;

	if (answer->type == MSG_TOKEN_ROW) {
		json_out_object_begin(&req->out);
		token_members(&req->out, answer->m);
		json_out_object_end(&req->out);
	} else if (!request_refused(req, answer)) {
		row_page_end(req, ((const struct msg_end *)answer->m)->more);
	}
}

int
on_token_list(struct request *req, struct err *err)
{
	row_page_begin(req);
	return REQUEST_ASK(req, on_list, err, TOKEN_LIST, token_list, {.caller = req->caller});
}

static void
on_revoked(void *owner, const struct answer *answer)
{
	struct request *req = owner;

	if (!request_refused(req, answer))
		request_nothing(req);
}

int
on_token_revoke(struct request *req, struct err *err)
{
	if (req->arg[0].n != TOKEN_PREFIX)
		return refuse(err, NOT_FOUND,
			"no such token: the first %d characters of its text are needed",
			TOKEN_PREFIX);
	return REQUEST_ASK(req, on_revoked, err, TOKEN_REVOKE, token_revoke,
		{.caller = req->caller, .prefix = req->arg[0]});
}

static void
on_principal(void *owner, const struct answer *answer)
{
	struct request *req = owner;
	const struct msg_principal *m = answer->m;
	struct json_out *o;

	if (request_refused(req, answer))
		return;
	o = request_out(req);
	json_out_object_begin(o);
	json_out_key_str(o, "user_id", m->name);
	json_out_key_str(o, "name", m->name);
	json_out_key_str(o, "tenant", m->tenant);
	json_out_key_str(o, "current_org", m->tenant);
	json_out_key_bool(o, "admin", m->admin);
	json_out_key_str(o, "auth_method", view_str(caller_kind_text(req->caller.kind)));
	if (m->template.n > 0)
		json_out_key_str(o, "template", m->template);
	row_time(o, "expires_at", m->expires_ms);
	json_out_object_end(o);
	request_json(req, 200);
}

int
on_me(struct request *req, struct err *err)
{
	return REQUEST_ASK(req, on_principal, err, WHOAMI, whoami, {.caller = req->caller});
}
