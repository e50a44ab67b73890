/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of what was reached; see net.h. The requests about them: net_serve.c. */
#include "engine/net.h"

#include "engine/limits.h"
#include "engine/redact.h"
#include "lib/base/clock.h"

/* What a row is about. */
struct row {
	uint16_t rule, port;
	struct view name, address, method, path, query;
};

struct counts {
	uint64_t kinds, asked;
};

static int
counts_get(const struct said *d, struct counts *ret, struct err *err)
{
	auto_query struct query q = query_of(d->gate->sandbox->engine->store, Q_EGRESS_ROWS);
	int r;

	arg_id(&q, &d->gate->sandbox->task);
	r = query_one(&q, err);
	if (r < 0)
		return r;
	ret->kinds = col_u64(&q);
	ret->asked = col_u64(&q);
	return 0;
}

static int
counts_set(const struct said *d, const struct counts *c, struct err *err)
{
	auto_query struct query q = query_of(d->gate->sandbox->engine->store, Q_EGRESS_ROWS_SET);

	arg_u64(&q, c->kinds);
	arg_u64(&q, c->asked);
	arg_id(&q, &d->gate->sandbox->task);
	return query_run(&q, err);
}

/* Of all that tells two rows of a task apart. */
static void
key_of(const struct said *d, const struct row *w, uint8_t ret[static 32])
{
	const uint8_t numbers[] = {(uint8_t)d->verdict, (uint8_t)d->reason, (uint8_t)d->scheme,
		(uint8_t)(w->rule >> 8), (uint8_t)w->rule, (uint8_t)(w->port >> 8),
		(uint8_t)w->port};
	struct sha256 h;

	sha256_init(&h);
	sha256_add(&h, d->gate->policy->digest, 32);
	sha256_add(&h, numbers, sizeof(numbers));
	sha256_add_part(&h, w->name);
	/* Where it was meant to go is all that is known of it. */
	if (d->reason == EGRESS_REASON_RAW_ADDRESS)
		sha256_add_part(&h, w->address);
	sha256_add_part(&h, w->method);
	sha256_add_part(&h, w->path);
	sha256_add_part(&h, w->query);
	sha256_end(&h, ret);
}

/* ---- net ---- */

/* 1: there was such a row. */
static int
net_again(const struct said *d, const struct row *w, const uint8_t key[static 32], struct err *err)
{
	auto_query struct query q = query_of(d->gate->sandbox->engine->store, Q_NET_ADD);

	arg_u64(&q, d->count);
	arg_u64(&q, d->bytes_out);
	arg_u64(&q, d->bytes_in);
	arg_u64(&q, clock_real_ms());
	arg_view(&q, w->address);
	arg_id(&q, &d->gate->sandbox->task);
	arg_digest(&q, key);
	return query_next(&q, err);
}

static int
net_insert(const struct said *d, const struct row *w, const uint8_t key[static 32], struct err *err)
{
	uint64_t now = clock_real_ms();
	auto_query struct query q = query_of(d->gate->sandbox->engine->store, Q_NET_PUT);

	arg_id(&q, &d->gate->sandbox->task);
	arg_digest(&q, key);
	arg_digest(&q, d->gate->policy->digest);
	arg_text(&q, verdict_text(d->verdict));
	arg_text(&q, egress_reason_text(d->reason));
	arg_text(&q, egress_scheme_text(d->scheme));
	arg_u64(&q, w->rule);
	arg_view(&q, w->name);
	arg_u64(&q, w->port);
	arg_view(&q, w->address);
	arg_u64(&q, d->count);
	arg_u64(&q, d->bytes_out);
	arg_u64(&q, d->bytes_in);
	arg_u64(&q, now);
	arg_u64(&q, now);
	return query_run(&q, err);
}

static int
net_put(const struct said *d, const struct row *w, struct err *err)
{
	uint8_t key[32];
	int r;

	key_of(d, w, key);
	r = net_again(d, w, key, err);
	return r == 0 ? net_insert(d, w, key, err) : r < 0 ? r : 0;
}

int
net_add(const struct said *d, struct err *err)
{
	struct row w = {.rule = d->rule, .port = d->port, .name = d->name, .address = d->address};
	struct counts c;
	uint8_t key[32];
	int r;

	key_of(d, &w, key);
	r = net_again(d, &w, key, err);
	if (r == 0)
		r = counts_get(d, &c, err);
	else
		return r < 0 ? r : 0;
	if (r < 0)
		return r;
	if (c.kinds >= LIMIT_EGRESS_ROWS) {
		const struct row least = {.rule = EGRESS_NO_RULE};

		return net_put(d, &least, err);
	}
	c.kinds++;
	r = net_insert(d, &w, key, err);
	return r == 0 ? counts_set(d, &c, err) : r;
}

/* ---- requests ---- */

static int
request_again(const struct said *d, const uint8_t key[static 32], struct err *err)
{
	auto_query struct query q = query_of(d->gate->sandbox->engine->store, Q_EGRESS_ADD);

	arg_u64(&q, d->count);
	arg_u64(&q, clock_real_ms());
	arg_id(&q, &d->gate->sandbox->task);
	arg_digest(&q, key);
	return query_next(&q, err);
}

static int
request_insert(
	const struct said *d, const struct row *w, const uint8_t key[static 32], struct err *err)
{
	auto_query struct query q = query_of(d->gate->sandbox->engine->store, Q_EGRESS_PUT);

	arg_id(&q, &d->gate->sandbox->task);
	arg_text(&q, d->gate->sandbox->tenant);
	arg_digest(&q, key);
	arg_digest(&q, d->gate->policy->digest);
	arg_text(&q, verdict_text(d->verdict));
	arg_text(&q, egress_reason_text(d->reason));
	arg_text(&q, egress_scheme_text(d->scheme));
	arg_view(&q, w->name);
	arg_u64(&q, w->port);
	arg_view(&q, w->method);
	arg_view(&q, w->path);
	arg_blob(&q, w->query);
	arg_u64(&q, d->count);
	arg_u64(&q, clock_real_ms());
	return query_run(&q, err);
}

/* The first row that there is, or room for, of ones that say less and less. */
static int
request_put(const struct said *d, struct row w, struct err *err)
{
	struct counts c;
	uint8_t key[32];

	for (int step = 0;; step++) {
		int r;

		if (step == 1)
			w.method = w.path = w.query = view_of(NULL, 0);
		if (step == 2) {
			w.name = view_of(NULL, 0);
			w.port = 0;
		}
		key_of(d, &w, key);
		r = request_again(d, key, err);
		if (r == 0 && step == 0)
			r = counts_get(d, &c, err);
		if (r != 0)
			return r < 0 ? r : 0;
		if (step < 2 && c.asked >= LIMIT_EGRESS_ROWS * (uint64_t)(step + 1))
			continue;
		c.asked++;
		r = request_insert(d, &w, key, err);
		return r == 0 ? counts_set(d, &c, err) : r;
	}
}

int
request_add(const struct said *d, struct err *err)
{
	/* The rule is not of the request: another policy may have another. */
	struct row w = {.rule = EGRESS_NO_RULE,
		.port = d->port,
		.name = d->name,
		.method = d->method,
		.query = d->query};
	auto_buf struct buf path;

	if (d->scheme == EGRESS_SCHEME_DNS || d->scheme == EGRESS_SCHEME_NONE)
		return 0;
	buf_init(&path, LIMIT_PATH_TEXT);
	redact_text(d->path, LIMIT_PATH_TEXT, &path);
	w.path = buf_view(&path);
	return request_put(d, w, err);
}
