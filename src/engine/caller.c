/* SPDX-License-Identifier: Apache-2.0 */
/* Authentication and tenants; see caller.h. */
#include "engine/caller.h"

#include "engine/limits.h"
#include "engine/local.h"
#include "lib/base/clock.h"
#include "lib/base/name.h"

#include <errno.h>

const struct principal principal_engine = {
	.kind = CALLER_KIND_NONE, .name = "engine", .admin = true};

static int
find_local(const struct engine *e, uint16_t local, struct principal *ret, struct err *err)
{
	uint32_t uid;

	if (!local_find(e, local, &uid))
		return REFUSE(err, FORBIDDEN,
			"who is at this connection of the local socket is not known: connect "
			"again, with "
			"a socket that has no name of its own");
	if (uid != 0 && (e->settings.admin_uid == 0 || uid != e->settings.admin_uid))
		return REFUSE(err, FORBIDDEN,
			"uid %u may not use the local socket; use a token over TCP, or make it "
			"uids.admin",
			uid);
	*ret = (struct principal){.kind = CALLER_KIND_LOCAL, .admin = true};
	(void)snprintf(ret->name, sizeof(ret->name), "uid:%u", uid);
	return 0;
}

/* A note for people, at most once a minute; not worth failing a request for. */
static void
note_use(struct engine *e, const char *prefix, uint64_t now, uint64_t used)
{
	struct err err;
	auto_tx struct tx tx = {0};

	if (now < used + LIMIT_USED_MS || tx_begin(&tx, e->store, &err) < 0)
		return;
	auto_query struct query q = query_of(e->store, Q_TOKEN_USED);
	arg_u64(&q, now);
	arg_text(&q, prefix);
	if (query_run(&q, &err) < 0)
		return;
	query_cleanup(&q);
	if (tx_commit(&tx, &err) < 0)
		return;
}

bool
token_over(uint64_t expires_ms, uint64_t now_ms)
{
	return expires_ms != 0 && now_ms >= expires_ms;
}

/* With `ended` a token that was revoked or expired, else one that holds. */
static int
find_token(struct engine *e, const uint8_t digest[static 32], bool ended, struct principal *ret,
	struct err *err)
{
	struct principal p = {.kind = CALLER_KIND_TOKEN};
	uint64_t now = clock_real_ms(), revoked, used;
	int r;

	{
		auto_query struct query q = query_of(e->store, Q_TOKEN_BY_DIGEST);

		arg_digest(&q, digest);
		r = query_one(&q, err);
		if (r == -ENOENT)
			return REFUSE(err, UNAUTHORIZED, "no such token");
		if (r < 0)
			return r;
		col_text(&q, p.name, sizeof(p.name));
		col_text(&q, p.tenant, sizeof(p.tenant));
		col_text(&q, p.template, sizeof(p.template));
		p.expires_ms = col_u64(&q);
		revoked = col_u64(&q);
		used = col_u64(&q);
	}
	if (ended) {
		*ret = p;
		return revoked != 0 || token_over(p.expires_ms, now)
			       ? 0
			       : REFUSE(err, FORBIDDEN, "the token is valid");
	}
	if (revoked != 0)
		return REFUSE(err, UNAUTHORIZED, "the token was revoked");
	if (token_over(p.expires_ms, now))
		return REFUSE(err, UNAUTHORIZED, "the token expired");
	note_use(e, p.name, now, used);
	*ret = p;
	return 0;
}

void
principal_text(const struct principal *p, char *ret)
{
	(void)snprintf(
		ret, PRINCIPAL_TEXT, "%s%s", p->kind == CALLER_KIND_TOKEN ? "token:" : "", p->name);
}

int
principal_first(
	struct engine *e, const char *text, char ret[static PRINCIPAL_TEXT], struct err *err)
{
	static const char kind[] = "token:";
	char first[64];
	int r;

	if (strncmp(text, kind, strlen(kind)) != 0) {
		if (ret != text)
			(void)snprintf(ret, PRINCIPAL_TEXT, "%s", text);
		return 0;
	}
	auto_query struct query q = query_of(e->store, Q_TOKEN_FIRST);
	arg_text(&q, text + strlen(kind));
	r = query_one(&q, err);
	if (r < 0)
		return r;
	col_text(&q, first, sizeof(first));
	(void)snprintf(ret, PRINCIPAL_TEXT, "%s%s", kind, first);
	return 0;
}

int
caller_find(struct engine *e, const struct caller *c, struct principal *ret, struct err *err)
{
	switch (c->kind) {
	case CALLER_KIND_LOCAL:
		return find_local(e, c->local, ret, err);
	case CALLER_KIND_TOKEN:
		return find_token(e, c->token, false, ret, err);
	case CALLER_KIND_NONE:
	case CALLER_KIND_MAX:
		break;
	}
	return REFUSE(err, UNAUTHORIZED, "a token is needed: Authorization: Bearer ...");
}

int
caller_find_ended(struct engine *e, const struct caller *c, struct principal *ret, struct err *err)
{
	if (c->kind != CALLER_KIND_TOKEN)
		return REFUSE(err, UNAUTHORIZED, "only a token can be revoked");
	return find_token(e, c->token, true, ret, err);
}

int
caller_tenant(const struct principal *p, struct view asked, char ret[TENANT_BYTES], struct err *err)
{
	if (asked.n == 0)
		asked = view_str(p->admin ? "default" : p->tenant);
	if (!name_ok(asked))
		return REFUSE(err, BAD_REQUEST,
			"a tenant has 1 to 63 of a-z 0-9 . _ - and starts with a letter or digit");
	if (!p->admin && !view_is(asked, p->tenant))
		return REFUSE(err, FORBIDDEN,
			"the token belongs to the tenant %s and may name no other", p->tenant);
	memcpy(ret, asked.p, asked.n);
	ret[asked.n] = '\0';
	return 0;
}

bool
caller_sees(const struct principal *p, const char *tenant, const char *template)
{
	if (p->admin)
		return true;
	return strcmp(p->tenant, tenant) == 0 &&
	       (p->template[0] == '\0' || strcmp(p->template, template) == 0);
}
