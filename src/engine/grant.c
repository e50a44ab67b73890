/* SPDX-License-Identifier: Apache-2.0 */
/* Grants; see grant.h. */
#include "engine/grant.h"

#include "engine/contain.h"
#include "engine/limits.h"
#include "lib/action/condition.h"
#include "lib/base/clock.h"

#include <errno.h>
#include <inttypes.h>

enum { WHERE_BYTES_MAX = 2048 };

void
grant_init(struct grant *g, struct engine *e)
{
	*g = (struct grant){.engine = e};
	buf_init(&g->where, WHERE_BYTES_MAX);
}

void
grant_done(struct grant *g)
{
	buf_done(&g->where);
}

static int
read_row(struct grant *g, struct query *q, struct err *err)
{
	g->seq = col_u64(q);
	col_id(q, &g->id);
	col_id(q, &g->task);
	col_text(q, g->tenant, sizeof(g->tenant));
	col_text(q, g->operation, sizeof(g->operation));
	g->version = (uint32_t)col_u64(q);
	buf_clear(&g->where);
	buf_add_view(&g->where, col_view(q));
	g->uses = (uint32_t)col_u64(q);
	g->used = (uint32_t)col_u64(q);
	g->created_ms = col_u64(q);
	g->expires_ms = col_u64(q);
	g->revoked_ms = col_u64(q);
	col_text(q, g->issuer, sizeof(g->issuer));
	col_digest(q, g->document);
	return buf_check(&g->where) < 0 ? err_set(err, -ENOMEM, "no memory for a grant") : 0;
}

int
grant_load(struct grant *g, const struct id *id, struct err *err)
{
	auto_query struct query q = query_of(g->engine->store, Q_GRANT_GET);
	int r;

	arg_id(&q, id);
	r = query_one(&q, err);
	return r < 0 ? r : read_row(g, &q, err);
}

int
grant_live(struct grant *g, const struct id *task, const struct operation *op, uint64_t now_ms,
	struct err *err)
{
	auto_query struct query q = query_of(g->engine->store, Q_GRANT_LIVE);
	int r;

	arg_id(&q, task);
	arg_view(&q, op->name);
	arg_digest(&q, op->digest);
	arg_u64(&q, now_ms);
	r = query_next(&q, err);
	if (r <= 0)
		return r;
	r = read_row(g, &q, err);
	return r < 0 ? r : 1;
}

int
grant_outdated(struct engine *e, const struct id *task, const struct operation *op, uint64_t now_ms,
	struct err *err)
{
	auto_query struct query q = query_of(e->store, Q_GRANT_OUTDATED);
	int r;

	arg_id(&q, task);
	arg_view(&q, op->name);
	arg_digest(&q, op->digest);
	arg_u64(&q, now_ms);
	r = query_one(&q, err);
	return r < 0 ? r : col_u64(&q) > 0;
}

int
grant_use(struct grant *g, struct err *err)
{
	auto_query struct query q = query_of(g->engine->store, Q_GRANT_USE);
	int r;

	arg_id(&q, &g->id);
	r = query_run(&q, err);
	if (r == 0)
		g->used++;
	return r;
}

static void
grant_answer(struct grant *g, struct reply to)
{
	const struct operation *now = catalogue_find(&g->engine->catalogue, view_str(g->operation));

	REPLY(g->engine, to, GRANT_ROW, grant_row,
		{.grant = g->id,
			.task = g->task,
			.tenant = view_str(g->tenant),
			.operation = view_str(g->operation),
			.version = g->version,
			.where = buf_view(&g->where),
			.uses = g->uses,
			.used = g->used,
			.created_ms = g->created_ms,
			.expires_ms = g->expires_ms,
			.revoked_ms = g->revoked_ms,
			.changed = now == NULL ||
				   memcmp(now->digest, g->document, SHA256_BYTES) != 0,
			.issuer = view_str(g->issuer)});
}

/* ---- issue ---- */

static int
where_check(const struct operation *op, struct view where, struct err *err)
{
	unsigned n = 0;

	while (where.n > 0) {
		const uint8_t *end = memchr(where.p, '\0', where.n);
		struct err why;
		size_t length;

		if (end == NULL || end == where.p || ++n > CONDITIONS_MAX)
			return REFUSE(err, BAD_REQUEST,
				"where: 1 to %d conditions, none of them empty", CONDITIONS_MAX);
		length = (size_t)(end - where.p);
		if (condition_check(op, view_of(where.p, length), &why) < 0)
			return REFUSE(err, BAD_REQUEST, "where: %s", why.text);
		where = view_skip(where, length + 1);
	}
	return 0;
}

static int
check_count(struct grant *g, uint64_t now, struct err *err)
{
	auto_query struct query q = query_of(g->engine->store, Q_GRANT_COUNT);
	int r;

	arg_id(&q, &g->task);
	arg_u64(&q, now);
	r = query_one(&q, err);
	if (r == 0 && col_u64(&q) >= LIMIT_GRANTS_PER_TASK)
		return REFUSE(err, QUOTA,
			"the task has %" PRIu64 " grants that are not used up; "
			"revoke one first",
			LIMIT_GRANTS_PER_TASK);
	return r;
}

static int
compose(struct grant *g, const struct msg_grant_issue *m, struct err *err)
{
	uint64_t ttl_max = g->engine->settings.actions.grant_max_ttl_ms;
	const struct operation *op = catalogue_find(&g->engine->catalogue, m->operation);

	if (op == NULL)
		return REFUSE(err, NOT_FOUND, "there is no such operation");
	if (m->uses == 0 || m->uses > LIMIT_GRANT_USES)
		return REFUSE(err, BAD_REQUEST, "uses: 1 to %" PRIu64, LIMIT_GRANT_USES);
	if (m->ttl_ms < LIMIT_GRANT_TTL_MIN_MS || m->ttl_ms > ttl_max)
		return REFUSE(err, BAD_REQUEST,
			"ttl: %" PRIu64 " s to %" PRIu64 " s (actions.grant_ttl in the host's "
			"configuration)",
			LIMIT_GRANT_TTL_MIN_MS / 1000, ttl_max / 1000);
	g->version = op->version;
	memcpy(g->document, op->digest, SHA256_BYTES);
	g->uses = m->uses;
	memcpy(g->operation, op->name.p, op->name.n);
	buf_add_view(&g->where, m->where);
	if (buf_check(&g->where) < 0)
		return err_set(err, -ENOMEM, "no memory for a grant");
	return where_check(op, m->where, err);
}

static int
insert(struct grant *g, struct err *err)
{
	auto_query struct query q = query_of(g->engine->store, Q_GRANT_INSERT);

	arg_id(&q, &g->id);
	arg_id(&q, &g->task);
	arg_text(&q, g->tenant);
	arg_text(&q, g->operation);
	arg_u64(&q, g->version);
	arg_digest(&q, g->document);
	arg_blob(&q, buf_view(&g->where));
	arg_u64(&q, g->uses);
	arg_u64(&q, g->created_ms);
	arg_u64(&q, g->expires_ms);
	arg_text(&q, g->issuer);
	return query_run(&q, err);
}

static void
put_grant(struct canon_writer *w, const void *arg)
{
	const struct grant *g = arg;
	char id[ID_TEXT];

	id_text(&g->id, ID_GRANT, id);
	put_u64(w, "expires_ms", g->expires_ms);
	put_str(w, "grant", id);
	put_str(w, "issuer", g->issuer);
	put_str(w, "operation", g->operation);
	put_digest(w, "operation_digest", g->document);
	put_u64(w, "uses", g->uses);
	put_u64(w, "version", g->version);
	put_strings(w, "where", buf_view(&g->where));
}

static int
record(struct grant *g, const struct principal *p, const struct msg_grant_issue *m, struct err *err)
{
	const struct audit_event ev = {.event = "grant.issued",
		.tenant = g->tenant,
		.task = &g->task,
		.who = p,
		.request_id = m->request_id,
		.data = put_grant,
		.arg = g};
	auto_tx struct tx tx = {0};
	int r = tx_begin(&tx, g->engine->store, err);

	id_new(&g->id);
	g->created_ms = clock_real_ms();
	g->expires_ms = g->created_ms + m->ttl_ms;
	principal_text(p, g->issuer);
	if (r == 0)
		r = contain_refuse(g->engine, g->tenant, &g->task, err);
	if (r == 0)
		r = check_count(g, g->created_ms, err);
	if (r == 0)
		r = insert(g, err);
	if (r == 0)
		r = audit_refuse(audit_append(g->engine, &ev, err), "a condition", err);
	return r == 0 ? tx_commit(&tx, err) : r;
}

int
on_grant_issue(struct engine *e, struct reply to, const struct msg_grant_issue *m, struct err *err)
{
	auto_grant struct grant g;
	auto_task struct task t;
	struct principal p;
	int r;

	grant_init(&g, e);
	task_init(&t, e);
	r = caller_find(e, &m->caller, &p, err);
	if (r == 0)
		r = task_find_name(&t, &p, m->task, err);
	if (r == 0)
		r = task_check_open(&t, err);
	if (r < 0)
		return r;
	g.task = t.id;
	(void)snprintf(g.tenant, sizeof(g.tenant), "%s", t.tenant);
	r = compose(&g, m, err);
	if (r == 0)
		r = record(&g, &p, m, err);
	if (r < 0)
		return r;
	store_sync(e->store);
	grant_answer(&g, to);
	return 0;
}

/* A page goes on behind a grant of the same task. */
static int
page_before(struct engine *e, const struct id *task, const struct id *after, uint64_t *ret,
	struct err *err)
{
	auto_grant struct grant g;
	int r;

	if (id_is_zero(after))
		return 0;
	grant_init(&g, e);
	r = grant_load(&g, after, err);
	if (r == -ENOENT || (r == 0 && !id_eq(&g.task, task)))
		return REFUSE(err, NOT_FOUND, "no such grant");
	*ret = g.seq;
	return r;
}

int
on_grant_list(struct engine *e, struct reply to, const struct msg_grant_list *m, struct err *err)
{
	uint64_t limit = m->limit == 0 || m->limit > LIMIT_PAGE_ROWS ? LIMIT_PAGE_ROWS : m->limit,
		 before = INT64_MAX, n = 0;
	auto_grant struct grant g;
	auto_task struct task t;
	struct principal p;
	int r;

	grant_init(&g, e);
	task_init(&t, e);
	r = caller_find(e, &m->caller, &p, err);
	if (r == 0)
		r = task_find_name(&t, &p, m->task, err);
	if (r == 0)
		r = page_before(e, &t.id, &m->after, &before, err);
	if (r < 0)
		return r;
	auto_query struct query q = query_of(e->store, Q_GRANT_PAGE);
	arg_id(&q, &t.id);
	arg_u64(&q, before);
	arg_u64(&q, limit + 1);
	for (r = query_next(&q, err); r > 0 && n < limit; r = query_next(&q, err), n++) {
		r = read_row(&g, &q, err);
		if (r < 0)
			return r;
		grant_answer(&g, to);
	}
	if (r >= 0)
		REPLY(e, to, END, end, {.more = r > 0});
	return r < 0 ? r : 0;
}
