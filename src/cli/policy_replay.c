/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `demilune policy replay`: what a policy of a file would have decided about the requests that the daemon has on record. What was refused before a
 * rule was looked at, or after one had allowed it (an address, a certificate, a budget), no policy decides. Not on record are bodies,
 * values of parameters and field names; what a rule says of those is not judged again.
 */
#include "cli/answer.h"
#include "cli/policy.h"
#include "cli/safe.h"
#include "lib/base/clock.h"
#include "lib/egress/rules.h"
#include "lib/json/fields.h"

#include <errno.h>
#include <inttypes.h>

enum { EXIT_CHANGES = 1, ROWS_PAGE = 200, ROWS_MAX = 200000, KEY_BYTES = 8192 };

static const int64_t since_default_ms = INT64_C(30) * 24 * 3600 * 1000;

/* Who decided, by the reason that is on record. */
enum decided {
	DECIDED_BEFORE, /* before any rule */
	DECIDED_RULES,
	DECIDED_AFTER, /* a rule had allowed it */
};

/* What is known of one recorded request now. */
enum outcome {
	OUTCOME_SAME,
	OUTCOME_CHANGED,
	OUTCOME_NO_POLICY, /* no policy decides it */
	OUTCOME_UNKNOWN,   /* too little is on record */
};

struct replay {
	const struct policy *p; /* borrowed */
	json_t *requests;       /* owned: by what they ask for */
	json_t *changes;        /* owned */
	uint64_t rows;
	uint64_t count[OUTCOME_UNKNOWN + 1]; /* distinct requests */
	uint64_t opened, closed;             /* of the changed ones: now allowed, now refused */
};

static void
replay_done(struct replay *r)
{
	json_decref(r->requests);
	json_decref(r->changes);
}
#define auto_replay __attribute__((cleanup(replay_done)))

static enum decided
decided_by(enum egress_reason reason)
{
	switch (reason) {
	case EGRESS_REASON_URL_SYNTAX:
	case EGRESS_REASON_HOST_SYNTAX:
	case EGRESS_REASON_HOST_IDN:
	case EGRESS_REASON_FRAMING:
	case EGRESS_REASON_HEADER_LIMIT:
	case EGRESS_REASON_NAME_MISMATCH:
	case EGRESS_REASON_NO_SNI:
	case EGRESS_REASON_ECH:
	case EGRESS_REASON_NOT_TLS:
	case EGRESS_REASON_NOT_HTTP:
	case EGRESS_REASON_CLIENT_CA:
	case EGRESS_REASON_RAW_ADDRESS:
		return DECIDED_BEFORE;
	case EGRESS_REASON_IP_LITERAL:
	case EGRESS_REASON_NO_RULE:
	case EGRESS_REASON_SCHEME:
	case EGRESS_REASON_PORT:
	case EGRESS_REASON_METHOD:
	case EGRESS_REASON_PATH:
	case EGRESS_REASON_QUERY:
	case EGRESS_REASON_CRED_SCOPE:
	case EGRESS_REASON_BODY_LIMIT:
	case EGRESS_REASON_UPGRADE:
		return DECIDED_RULES;
	case EGRESS_REASON_NONE:
	case EGRESS_REASON_QUOTA:
	case EGRESS_REASON_TIMEOUT:
	case EGRESS_REASON_AUDIT:
	case EGRESS_REASON_DNS_FAIL:
	case EGRESS_REASON_DNS_PRIVATE:
	case EGRESS_REASON_DNS_MIXED:
	case EGRESS_REASON_UNREACHABLE:
	case EGRESS_REASON_TLS_VERIFY:
	case EGRESS_REASON_ANSWER:
	case EGRESS_REASON_RESP_LIMIT:
	case EGRESS_REASON_BROKER:
	case EGRESS_REASON_CONTAINED:
	case EGRESS_REASON_CLOSED:
		return DECIDED_AFTER;
	case EGRESS_REASON_MAX:
		break;
	}
	must(false);
}

/* ---- the record ---- */

/* What makes two rows the same request: all but task, count and time. */
static void
key_of(const json_t *row, struct buf *key)
{
	static const char *const parts[] = {
		"verdict", "reason", "scheme", "name", "method", "path"};
	const json_t *query = answer_at(row, "query");

	buf_addf(key, "%" PRId64, answer_int(row, "port", 0));
	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		buf_add_byte(key, '\n');
		buf_add_view(key, answer_text(row, parts[i]));
	}
	for (size_t i = 0; i < json_array_size(query); i++) {
		buf_add_byte(key, '\n');
		buf_add_view(key, answer_text(json_array_get(query, i), ""));
	}
	buf_add_byte(key, 0);
}

/* Times of the daemon are UTC in one form, so their order is that of their text. */
static bool
is_later(struct view a, struct view b)
{
	return a.n == b.n && a.n > 0 && memcmp(a.p, b.p, a.n) > 0;
}

/* Adds a row to those that ask for the same. */
static int
take_row(struct replay *r, json_t *row, struct err *err)
{
	auto_buf struct buf key;
	struct view last = answer_text(row, "last_at");
	json_t *known;
	int bad;

	buf_init(&key, KEY_BYTES);
	key_of(row, &key);
	if (buf_check(&key) < 0)
		return err_set(err, -EBADMSG, "the daemon's answer has a request that is too long");
	known = json_object_get(r->requests, (const char *)key.p);
	if (known == NULL)
		return json_object_set(r->requests, (const char *)key.p, row) == 0
			       ? 0
			       : err_set(err, -EBADMSG,
					 "the daemon's answer has a request that is no text");
	bad = json_object_set_new(known, "count",
		json_integer(answer_int(known, "count", 0) + answer_int(row, "count", 0)));
	if (is_later(last, answer_text(known, "last_at")))
		bad |= json_object_set(known, "last_at", json_object_get(row, "last_at"));
	return bad == 0 ? 0 : err_set(err, -ENOMEM, "no memory");
}

/* One page; *after becomes the last row. 1: more follow. */
static int
take_page(struct replay *r, const json_t *page, const char *policy, int64_t *after, struct err *err)
{
	const json_t *items = answer_at(page, "items");
	int64_t last = *after;
	int bad = 0;

	for (size_t i = 0; bad == 0 && i < json_array_size(items); i++) {
		json_t *row = json_array_get(items, i);

		last = answer_int(row, "row", 0);
		if (!view_is(answer_text(row, "policy"), policy))
			continue;
		r->rows++;
		bad = take_row(r, row, err);
	}
	if (bad < 0 || !answer_bool(page, "more"))
		return bad;
	if (last <= *after)
		return err_set(err, -EBADMSG, "the daemon's list does not go on");
	*after = last;
	return 1;
}

static int
fetch(struct cli *cli, struct replay *r, const char *policy, struct err *err)
{
	const struct given *since = args_get(&cli->args, OPT_SINCE);
	int64_t back = since != NULL ? since->number : since_default_ms, after = 0;
	int64_t now = (int64_t)clock_real_ms();
	int more = 1;

	while (more == 1) {
		json_t *page auto_json = NULL;
		char target[160];

		(void)snprintf(target, sizeof(target),
			"/v1/egress?since=%" PRId64 "&after=%" PRId64 "&limit=%d",
			back < now ? now - back : 0, after, ROWS_PAGE);
		more = client_get(&cli->client, view_str(target), &page, err);
		if (more == 0)
			more = take_page(r, page, policy, &after, err);
		if (more == 1 && json_object_size(r->requests) > ROWS_MAX)
			more = err_set(err, -E2BIG,
				"more than %d different requests; look less far back with --since",
				ROWS_MAX);
	}
	return more;
}

/* ---- the decision ---- */

/* The request as far as it is on record; false: too little. */
static bool
read_request(const json_t *row, enum egress_reason reason, struct http_params *params,
	struct egress_request *ret)
{
	const json_t *query = answer_at(row, "query");

	params->n = 0;
	for (size_t i = 0; i < json_array_size(query) && params->n < HTTP_PARAMS_MAX; i++)
		params->param[params->n++].name = answer_text(json_array_get(query, i), "");
	*ret = (struct egress_request){.method = http_method_of(answer_text(row, "method")),
		.path = answer_text(row, "path"),
		.has_query = params->n > 0 || reason == EGRESS_REASON_QUERY,
		.query = params,
		.credential = reason == EGRESS_REASON_CRED_SCOPE,
		.upgrade = reason == EGRESS_REASON_UPGRADE};
	return ret->method < HTTP_METHODS && ret->path.n > 0;
}

/* What the rules say now: 1 they allow it, 0 they do not, -1 too little is on record. */
static int
decide(const struct policy *p, const json_t *row, enum egress_scheme scheme,
	enum egress_reason reason, struct egress_decision *ret)
{
	struct egress_place at = {.scheme = scheme,
		.name = answer_text(row, "name"),
		.port = (uint16_t)answer_int(row, "port", 0)};
	struct http_params params = {0};
	struct egress_request q;
	const struct rule *first;
	rule_set set = 0;

	*ret = (struct egress_decision){.rule = EGRESS_NO_RULE};
	if (scheme == EGRESS_SCHEME_DNS) {
		ret->reason = rules_know(p, at.name) ? EGRESS_REASON_NONE : EGRESS_REASON_NO_RULE;
		return ret->reason == EGRESS_REASON_NONE;
	}
	if (scheme == EGRESS_SCHEME_TCP || scheme == EGRESS_SCHEME_PASSTHROUGH)
		at.scheme = EGRESS_SCHEME_NONE;
	ret->reason = rules_place(p, &at, &set, NULL);
	if (ret->reason != EGRESS_REASON_NONE)
		return 0;
	ret->rule = (uint16_t)__builtin_ctzll(set);
	first = &p->rule[ret->rule];
	if (first->kind == RULE_KIND_TCP || first->kind == RULE_KIND_PASSTHROUGH)
		return 1;
	if (!read_request(row, reason, &params, &q) || reason == EGRESS_REASON_BODY_LIMIT)
		return -1;
	rules_request(p, set, &q, NULL, ret);
	return ret->reason == EGRESS_REASON_NONE;
}

/* ---- what changed ---- */

static void
add_request(struct buf *b, const json_t *row)
{
	const json_t *query = answer_at(row, "query");
	struct view method = answer_text(row, "method"), scheme = answer_text(row, "scheme");

	if (view_is(scheme, "http") || view_is(scheme, "https"))
		buf_addf(b, "%.*s%s%.*s://", VIEW_ARGS(method), method.n > 0 ? " " : "",
			VIEW_ARGS(scheme));
	else
		buf_addf(b, "%.*s ", VIEW_ARGS(scheme));
	buf_add_view(b, answer_text(row, "name"));
	buf_addf(b, ":%" PRId64, answer_int(row, "port", 0));
	buf_add_view(b, answer_text(row, "path"));
	for (size_t i = 0; i < json_array_size(query); i++)
		buf_addf(b, "%s%.*s=", i == 0 ? "?" : "&",
			VIEW_ARGS(answer_text(json_array_get(query, i), "")));
}

static int
add_change(struct replay *r, const json_t *row, const struct egress_decision *now, bool allowed,
	struct err *err)
{
	json_t *one = json_object();
	auto_buf struct buf request;
	int bad = one == NULL ? -1 : 0;

	buf_init(&request, POLICY_LINE_BYTES);
	add_request(&request, row);
	bad |= json_object_set_new(
		one, "request", json_stringn((const char *)request.p, request.n));
	bad |= json_object_set(one, "was", json_object_get(row, "verdict"));
	bad |= json_object_set(one, "was_reason", json_object_get(row, "reason"));
	bad |= json_object_set_new(one, "would_be",
		json_string(verdict_text(allowed ? VERDICT_ALLOWED : VERDICT_REFUSED)));
	bad |= json_object_set_new(one, "reason", json_string(egress_reason_text(now->reason)));
	if (now->rule != EGRESS_NO_RULE)
		bad |= json_object_set_new(one, "rule", json_integer(now->rule + 1));
	bad |= json_object_set_new(one, "count", json_integer(answer_int(row, "count", 0)));
	bad |= json_object_set_new(one, "last_at",
		json_stringn((const char *)answer_text(row, "last_at").p,
			answer_text(row, "last_at").n));
	if (bad != 0) {
		json_decref(one);
		return err_set(err, -EBADMSG, "the daemon's answer has a request that is no text");
	}
	return json_array_append_new(r->changes, one) == 0 ? 0 : err_set(err, -ENOMEM, "no memory");
}

static int
judge(struct replay *r, const json_t *row, struct err *err)
{
	enum egress_reason reason = EGRESS_REASON_NONE;
	enum egress_scheme scheme = EGRESS_SCHEME_NONE;
	enum verdict verdict = VERDICT_ALLOWED;
	struct egress_decision now;
	enum decided by;
	int allowed;

	if (egress_reason_parse(answer_text(row, "reason"), &reason) < 0 ||
		egress_scheme_parse(answer_text(row, "scheme"), &scheme) < 0 ||
		verdict_parse(answer_text(row, "verdict"), &verdict) < 0)
		return err_set(err, -EBADMSG,
			"the daemon's answer has a verdict that this demilune does not know");
	by = decided_by(reason);
	if (by == DECIDED_BEFORE) {
		r->count[OUTCOME_NO_POLICY]++;
		return 0;
	}
	allowed = decide(r->p, row, scheme, reason, &now);
	if (allowed < 0) {
		r->count[OUTCOME_UNKNOWN]++;
		return 0;
	}
	/* What a rule allowed and something else refused stays refused, whatever the rules say. */
	if (by == DECIDED_AFTER && verdict == VERDICT_REFUSED) {
		r->count[OUTCOME_NO_POLICY]++;
		return 0;
	}
	if ((by == DECIDED_AFTER) == (allowed == 1)) {
		r->count[OUTCOME_SAME]++;
		return 0;
	}
	r->count[OUTCOME_CHANGED]++;
	r->opened += allowed == 1 ? 1U : 0U;
	r->closed += allowed == 1 ? 0U : 1U;
	return add_change(r, row, &now, allowed == 1, err);
}

/* ---- the verb ---- */

static void
cells(struct table *t, const json_t *change)
{
	bool allowed = view_is(answer_text(change, "would_be"), "allowed");
	struct view was = answer_text(change, "was"), reason = answer_text(change, "was_reason");
	char last[32];
	char now[96];

	answer_time(change, "last_at", last);
	if (allowed && answer_at(change, "rule") != NULL)
		(void)snprintf(now, sizeof(now), "allowed by rule %" PRId64,
			answer_int(change, "rule", 0));
	else
		(void)snprintf(now, sizeof(now), allowed ? "allowed" : "refused: %.*s",
			VIEW_ARGS(answer_text(change, "reason")));
	table_cellf(t, "%" PRId64, answer_int(change, "count", 0));
	table_cell(t, view_str(last));
	if (view_is(reason, "none"))
		table_cell(t, was);
	else
		table_cellf(t, "%.*s: %.*s", VIEW_ARGS(was), VIEW_ARGS(reason));
	table_tone(t, allowed ? TONE_GOOD : TONE_BAD, view_str(now));
	table_cell(t, answer_text(change, "request"));
}

static int
print(const struct replay *r, struct err *err)
{
	static const struct table_column columns[] = {{"COUNT", true, 0}, {"LAST", false, 0},
		{"WAS", false, 0}, {"WOULD BE", false, 0}, {"REQUEST", false, 0}};
	auto_table struct table t;
	int bad = 0;

	table_init(&t, columns, ARRAY_LEN(columns));
	for (size_t i = 0; i < json_array_size(r->changes); i++)
		cells(&t, json_array_get(r->changes, i));
	if (json_array_size(r->changes) > 0) {
		bad = table_print(&t, stdout, err);
		(void)putchar('\n');
	}
	if (r->rows == 0)
		(void)puts(
			"no request that this policy decided is on record; --policy NAME asks for "
			"those of another");
	(void)printf("different requests: %zu, in rows: %" PRIu64 "\n"
		     "  decided as they were: %" PRIu64 "\n"
		     "  allowed that were refused: %" PRIu64 "\n"
		     "  refused that were allowed: %" PRIu64 "\n",
		json_object_size(r->requests), r->rows, r->count[OUTCOME_SAME], r->opened,
		r->closed);
	if (r->count[OUTCOME_NO_POLICY] > 0)
		(void)printf(
			"  refused for what no rule decides (the form of the request, an address, "
			"a certificate, a budget): %" PRIu64 "\n",
			r->count[OUTCOME_NO_POLICY]);
	if (r->count[OUTCOME_UNKNOWN] > 0)
		(void)printf("  not to be replayed, since method, path or size is not on record: "
			     "%" PRIu64 "\n",
			r->count[OUTCOME_UNKNOWN]);
	return bad;
}

static int
print_json(const struct replay *r, struct err *err)
{
	json_t *all auto_json = json_pack("{s:O, s:I, s:I, s:I, s:I, s:I}", "changes", r->changes,
		"rows", (json_int_t)r->rows, "requests", (json_int_t)json_object_size(r->requests),
		"same", (json_int_t)r->count[OUTCOME_SAME], "no_policy_decides",
		(json_int_t)r->count[OUTCOME_NO_POLICY], "not_on_record",
		(json_int_t)r->count[OUTCOME_UNKNOWN]);

	return all == NULL ? err_set(err, -ENOMEM, "no memory") : answer_print(all, err);
}

int
verb_policy_replay(struct cli *cli, struct err *err)
{
	auto_policy struct policy_held held = {0};
	auto_replay struct replay replay = {.requests = json_object(), .changes = json_array()};
	const char *policy = args_text(&cli->args, OPT_POLICY), *key;
	char own[POLICY_NAME_MAX + 1];
	json_t *row;
	int r = policy_of_file(cli->args.rest[0], &held, err);

	if (r < 0)
		return r;
	replay.p = held.p;
	(void)snprintf(own, sizeof(own), "%.*s", VIEW_ARGS(held.p->name));
	r = fetch(cli, &replay, policy != NULL ? policy : own, err);
	if (r < 0)
		return r;
	json_object_foreach(replay.requests, key, row)
	{
		r = judge(&replay, row, err);
		if (r < 0)
			return r;
	}
	r = args_has(&cli->args, OPT_JSON) ? print_json(&replay, err) : print(&replay, err);
	if (r == 0)
		r = answer_done(err);
	return r != 0 ? r : replay.count[OUTCOME_CHANGED] > 0 ? EXIT_CHANGES : 0;
}
