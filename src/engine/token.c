/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens; see token.h. */
#include "engine/token.h"

#include "engine/limits.h"
#include "engine/template.h"
#include "lib/base/clock.h"

#include <errno.h>

/* A token in memory: what the row and the record say. */
struct token {
	char prefix[17], tenant[TENANT_BYTES], template[64], maker[64];
	struct view label;
	uint64_t created_ms, expires_ms;
};

int
on_whoami(struct engine *e, struct reply to, const struct msg_whoami *m, struct err *err)
{
	struct principal p;
	int r = caller_find(e, &m->caller, &p, err);

	if (r == 0)
		REPLY(e, to, PRINCIPAL, principal,
			{.name = view_str(p.name),
				.tenant = view_str(p.tenant),
				.admin = p.admin,
				.template = view_str(p.template),
				.expires_ms = p.expires_ms});
	return r;
}

static void
put_token(struct canon_writer *w, const void *arg)
{
	const struct token *t = arg;

	put_u64(w, "expires_ms", t->expires_ms);
	put_view(w, "label", t->label);
	put_str(w, "maker", t->maker);
	put_str(w, "prefix", t->prefix);
	put_str(w, "template", t->template);
}

static int
record(struct engine *e, const char *event, const struct token *t, const struct principal *who,
	struct err *err)
{
	const struct audit_event ev = {
		.event = event, .tenant = t->tenant, .who = who, .data = put_token, .arg = t};

	return audit_append(e, &ev, err);
}

static int
check_count(struct engine *e, const char *tenant, struct err *err)
{
	auto_query struct query q = query_of(e->store, Q_TOKEN_COUNT);
	int r;

	arg_text(&q, tenant);
	arg_u64(&q, clock_real_ms());
	r = query_one(&q, err);
	if (r == 0 && col_u64(&q) >= LIMIT_TOKENS_PER_TENANT)
		return REFUSE(err, QUOTA, "the tenant has %u tokens; revoke one first",
			(unsigned)LIMIT_TOKENS_PER_TENANT);
	return r;
}

static bool
prefix_ok(struct view v)
{
	if (v.n < 4 || v.n > 16)
		return false;
	for (size_t i = 0; i < v.n; i++)
		if ((v.p[i] < 'a' || v.p[i] > 'z') && (v.p[i] < '0' || v.p[i] > '9') &&
			v.p[i] != '_')
			return false;
	return true;
}

/* A token never gives more than its maker has: same tenant, same template, no longer life. */
static int
compose(struct engine *e, const struct principal *p, const struct msg_token_create *m,
	struct token *t, struct err *err)
{
	int r = caller_tenant(p, m->tenant, t->tenant, err);

	if (r < 0)
		return r;
	t->label = m->label;
	t->created_ms = clock_real_ms();
	t->expires_ms = m->expires_ms;
	if (!prefix_ok(m->prefix) || digest_is_zero(m->token))
		return REFUSE(err, BAD_REQUEST, "a token without prefix or digest");
	if (t->expires_ms != 0 && (t->expires_ms <= t->created_ms || t->expires_ms > INT64_MAX))
		return REFUSE(err, BAD_REQUEST, "the token would have expired already");
	if (m->template.n != 0)
		r = template_named(e, m->template, t->template, err);
	if (p->template[0] != '\0') {
		if (m->template.n != 0 && (r < 0 || strcmp(t->template, p->template) != 0))
			return REFUSE(err, FORBIDDEN, "the token is for the template %s only",
				p->template);
		memcpy(t->template, p->template, sizeof(t->template));
	}
	if (r < 0)
		return r;
	if (p->expires_ms != 0 && (t->expires_ms == 0 || t->expires_ms > p->expires_ms))
		t->expires_ms = p->expires_ms;
	memcpy(t->prefix, m->prefix.p, m->prefix.n);
	if (p->kind == CALLER_KIND_TOKEN)
		memcpy(t->maker, p->name, sizeof(t->maker));
	return 0;
}

static int
known(struct engine *e, const char *prefix, const uint8_t digest[static 32], struct err *err)
{
	auto_query struct query by_prefix = query_of(e->store, Q_TOKEN_BY_PREFIX);
	auto_query struct query by_digest = query_of(e->store, Q_TOKEN_BY_DIGEST);
	int r;

	arg_text(&by_prefix, prefix);
	arg_digest(&by_digest, digest);
	r = query_next(&by_prefix, err);
	if (r == 0)
		r = query_next(&by_digest, err);
	return r <= 0 ? r
		      : REFUSE(err, CONFLICT, "there is such a token already; make another one");
}

static int
insert(struct engine *e, const struct token *t, const uint8_t digest[static 32], struct err *err)
{
	auto_query struct query q = query_of(e->store, Q_TOKEN_INSERT);

	arg_text(&q, t->prefix);
	arg_digest(&q, digest);
	arg_text(&q, t->tenant);
	arg_view(&q, t->label);
	arg_text(&q, t->template);
	arg_text(&q, t->maker);
	arg_u64(&q, t->created_ms);
	arg_u64(&q, t->expires_ms);
	return query_run(&q, err);
}

int
on_token_create(
	struct engine *e, struct reply to, const struct msg_token_create *m, struct err *err)
{
	struct token t = {0};
	struct principal p;
	auto_tx struct tx tx = {0};
	int r = caller_find(e, &m->caller, &p, err);

	if (r == 0)
		r = compose(e, &p, m, &t, err);
	if (r == 0)
		r = check_count(e, t.tenant, err);
	if (r == 0)
		r = known(e, t.prefix, m->token, err);
	if (r == 0)
		r = tx_begin(&tx, e->store, err);
	if (r == 0)
		r = insert(e, &t, m->token, err);
	if (r == 0)
		r = audit_refuse(record(e, "token.create", &t, &p, err), "a label", err);
	if (r == 0)
		r = tx_commit(&tx, err);
	if (r < 0)
		return r;
	store_sync(e->store);
	REPLY(e, to, TOKEN_ROW, token_row,
		{.prefix = view_str(t.prefix),
			.label = t.label,
			.tenant = view_str(t.tenant),
			.template = view_str(t.template),
			.created_ms = t.created_ms,
			.expires_ms = t.expires_ms});
	return 0;
}

int
on_token_list(struct engine *e, struct reply to, const struct msg_token_list *m, struct err *err)
{
	struct principal p;
	int r = caller_find(e, &m->caller, &p, err);

	if (r < 0)
		return r;
	auto_query struct query q = query_of(e->store, Q_TOKEN_LIST);
	arg_text(&q, p.tenant);
	arg_text(&q, p.template);
	arg_u64(&q, 4096); /* rows; 2 MiB at most */
	for (r = query_next(&q, err); r > 0; r = query_next(&q, err)) {
		struct msg_token_row row = {.prefix = col_view(&q)};

		row.label = col_view(&q);
		row.tenant = col_view(&q);
		row.template = col_view(&q);
		row.created_ms = col_u64(&q);
		row.expires_ms = col_u64(&q);
		row.revoked_ms = col_u64(&q);
		row.used_ms = col_u64(&q);
		REPLY(e, to, TOKEN_ROW, token_row, row);
	}
	if (r == 0)
		REPLY(e, to, END, end, {.more = false});
	return r;
}

/* Is there such a token for this caller? */
static int
find(struct engine *e, const struct principal *p, struct view prefix, struct err *err)
{
	char tenant[TENANT_BYTES] = "", template[64] = "";
	auto_query struct query q = query_of(e->store, Q_TOKEN_BY_PREFIX);
	int r;

	arg_view(&q, prefix);
	r = query_one(&q, err);
	if (r == 0) {
		col_text(&q, tenant, sizeof(tenant));
		col_text(&q, template, sizeof(template));
	}
	if (r == -ENOENT || (r == 0 && !caller_sees(p, tenant, template)))
		return REFUSE(err, NOT_FOUND, "no such token");
	return r;
}

/* A record for each token of the family that is not revoked yet. */
static int
record_family(struct engine *e, struct view prefix, const struct principal *who, struct err *err)
{
	auto_query struct query q = query_of(e->store, Q_TOKEN_FAMILY);
	int r;

	arg_view(&q, prefix);
	for (r = query_next(&q, err); r > 0; r = query_next(&q, err)) {
		struct token t = {0};

		col_text(&q, t.prefix, sizeof(t.prefix));
		col_text(&q, t.tenant, sizeof(t.tenant));
		col_text(&q, t.template, sizeof(t.template));
		t.label = col_view(&q);
		col_text(&q, t.maker, sizeof(t.maker));
		t.expires_ms = col_u64(&q);
		r = record(e, "token.revoke", &t, who, err);
		if (r < 0)
			return r;
	}
	return r;
}

static int
revoke_family(struct engine *e, struct view prefix, struct err *err)
{
	auto_query struct query q = query_of(e->store, Q_TOKEN_REVOKE);

	arg_u64(&q, clock_real_ms());
	arg_view(&q, prefix);
	return query_run(&q, err);
}

/* With it go the tokens that it made: else whoever had it goes on with those. */
int
on_token_revoke(
	struct engine *e, struct reply to, const struct msg_token_revoke *m, struct err *err)
{
	struct principal p;
	auto_tx struct tx tx = {0};
	int r = caller_find(e, &m->caller, &p, err);

	if (r == 0 && !prefix_ok(m->prefix))
		r = REFUSE(err, NOT_FOUND, "no such token");
	if (r == 0)
		r = find(e, &p, m->prefix, err);
	if (r == 0)
		r = tx_begin(&tx, e->store, err);
	if (r == 0)
		r = record_family(e, m->prefix, &p, err);
	if (r == 0)
		r = revoke_family(e, m->prefix, err);
	if (r == 0)
		r = tx_commit(&tx, err);
	if (r < 0)
		return r;
	store_sync(e->store);
	REPLY(e, to, DONE, done, {0});
	return 0;
}
