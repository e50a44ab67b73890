/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The records of an action; see record.h. One table per record is both its form and its layout, so that writing and reading cannot differ, and
 * what a record must be is asked on both ways.
 */
#include "lib/action/record.h"

#include "lib/canon/form.h"
#include "lib/action/schema.h"
#include "lib/base/hex.h"
#include "lib/base/name.h"
#include "lib/canon/write.h"

#include <errno.h>

enum kind {
	LINE,    /* text in one line, at most `max` bytes, may be empty */
	LINES,   /* text with any control character */
	WORD,    /* text without blanks and escapes, 1 to `max` bytes */
	NUMBER,  /* u64 below 2^53 */
	COUNT,   /* u32, at most `max` */
	ONE,     /* the number 1; no member */
	DIGEST,  /* 32 bytes, in hex */
	OBJECT,  /* canonical */
	LIST,    /* NUL-terminated strings of 1 to `max` bytes */
	EFFECT,  /* enum effect */
	APPROVE, /* bool: approve or reject */
	OUTCOME, /* bool: succeeded or failed */
	TITLE,   /* the word in `word`; no member */
	REQUEST, /* the object of request_rows in the same struct */
};

struct row {
	const char *key;
	enum kind kind;
	size_t at;
	size_t max;
	const char *word;
};

#define P(kind, name, max)                                                     \
	{                                                                      \
#name, kind, offsetof(struct proposal_record, name), max, NULL \
	}

static const struct row request_rows[] = {
	P(LINES, body, 49152),
	P(LINE, content_type, 39),
	P(WORD, method, 7),
	P(WORD, url, 4096),
};

static const struct row proposal_rows[] = {
	P(WORD, action, 63),
	P(WORD, actor, 128),
	P(DIGEST, adapter, 0),
	P(OBJECT, arguments, 0),
	P(WORD, capability, 24),
	P(DIGEST, catalogue, 0),
	P(NUMBER, decide_by_ms, 0),
	P(LIST, defaulted, 63),
	P(NUMBER, dispatch_within_ms, 0),
	P(EFFECT, effect, 0),
	P(WORD, environment, 63),
	P(NUMBER, epoch, 0),
	P(OBJECT, facts, 0),
	P(WORD, idempotency_key, 63),
	P(NUMBER, issued_ms, 0),
	{"max_executions", ONE, 0, 0, NULL},
	P(WORD, owner, 128),
	P(DIGEST, policy, 0),
	P(WORD, proposal, 24),
	P(OBJECT, provenance, 0),
	P(WORD, provider_account, 63),
	P(COUNT, quorum, OPERATION_QUORUM_MAX),
	{"request", REQUEST, 0, 0, NULL},
	P(WORD, requester, 128),
	P(LIST, roles, 63),
	P(DIGEST, schema, 0),
	P(WORD, task, 24),
	P(WORD, tenant, 63),
	{"v", ONE, 0, 0, NULL},
	P(LIST, where, 256),
};

#define D(kind, name, max)                                                     \
	{                                                                      \
#name, kind, offsetof(struct decision_record, name), max, NULL \
	}
static const struct row decision_rows[] = {
	D(WORD, approver, 63),
	D(NUMBER, decided_ms, 0),
	{"decision", APPROVE, offsetof(struct decision_record, approve), 0, NULL},
	D(NUMBER, dispatch_by_ms, 0),
	D(DIGEST, display, 0),
	{"max_executions", ONE, 0, 0, NULL},
	D(DIGEST, policy, 0),
	D(DIGEST, proposal, 0),
	D(LINE, reason, 1024),
	D(DIGEST, schema, 0),
	{"v", ONE, 0, 0, NULL},
};

#define S(kind, name, max)                                                       \
	{                                                                        \
#name, kind, offsetof(struct settlement_record, name), max, NULL \
	}
static const struct row settlement_rows[] = {
	S(WORD, approver, 63),
	S(NUMBER, decided_ms, 0),
	{"decision", TITLE, 0, 0, "settle"},
	S(WORD, execution, 24),
	S(LINE, note, 1024),
	{"outcome", OUTCOME, offsetof(struct settlement_record, succeeded), 0, NULL},
	{"v", ONE, 0, 0, NULL},
};

#define R(kind, name, max)                                                    \
	{                                                                     \
#name, kind, offsetof(struct release_record, name), max, NULL \
	}
static const struct row release_rows[] = {
	R(WORD, approver, 63),
	R(NUMBER, decided_ms, 0),
	{"decision", TITLE, 0, 0, "release"},
	R(LINE, note, 1024),
	R(WORD, scope, 80),
	{"v", ONE, 0, 0, NULL},
};

enum { ROWS_MAX = ARRAY_LEN(proposal_rows) };

/* ---- writing ---- */

static int object_put(
	const struct row *rows, size_t n, const uint8_t *from, struct buf *out, struct err *err);

/* One string or number; the writer escapes and refuses. */
static int
text_put(struct view v, bool lines, struct buf *out, struct err *err)
{
	struct canon_writer w;

	canon_begin(&w, out);
	if (lines)
		canon_text(&w, v);
	else
		canon_str(&w, v);
	return canon_end(&w, err);
}

static int
number_put(uint64_t u, struct buf *out, struct err *err)
{
	struct canon_writer w;

	canon_begin(&w, out);
	canon_u64(&w, u);
	return canon_end(&w, err);
}

static int
list_put(struct view all, struct buf *out, struct err *err)
{
	bool some = false;

	buf_add_byte(out, '[');
	while (all.n > 0) {
		const uint8_t *end = memchr(all.p, 0, all.n);
		struct view one = view_of(all.p, end == NULL ? all.n : (size_t)(end - all.p));
		int e;

		if (end == NULL)
			return err_set(err, -EINVAL, "a list does not end with a NUL");
		if (some)
			buf_add_byte(out, ',');
		e = text_put(one, false, out, err);
		if (e < 0)
			return e;
		some = true;
		all = view_skip(all, one.n + 1);
	}
	buf_add_byte(out, ']');
	return 0;
}

static int
hex_put(const uint8_t *p, struct buf *out)
{
	char text[SHA256_TEXT];

	hex_encode(p, SHA256_BYTES, text);
	buf_addf(out, "\"%s\"", text);
	return 0;
}

static int
value_put(const struct row *row, const uint8_t *from, struct buf *out, struct err *err)
{
	const void *at = from + row->at;
	struct view v = {0};
	uint64_t u = 0;
	uint32_t count = 0;
	enum effect effect = EFFECT_READ;
	bool yes = false;

	switch (row->kind) {
	case LINE:
	case LINES:
	case WORD:
		memcpy(&v, at, sizeof(v));
		return text_put(v, row->kind == LINES, out, err);
	case NUMBER:
		memcpy(&u, at, sizeof(u));
		return number_put(u, out, err);
	case COUNT:
		memcpy(&count, at, sizeof(count));
		return number_put(count, out, err);
	case ONE:
		return number_put(1, out, err);
	case DIGEST:
		return hex_put(at, out);
	case OBJECT:
		memcpy(&v, at, sizeof(v));
		buf_add_view(out, v);
		return 0;
	case LIST:
		memcpy(&v, at, sizeof(v));
		return list_put(v, out, err);
	case EFFECT:
		memcpy(&effect, at, sizeof(effect));
		return text_put(view_str(effect_text(effect)), false, out, err);
	case APPROVE:
		memcpy(&yes, at, sizeof(yes));
		return text_put(view_str(yes ? "approve" : "reject"), false, out, err);
	case OUTCOME:
		memcpy(&yes, at, sizeof(yes));
		return text_put(view_str(yes ? "succeeded" : "failed"), false, out, err);
	case TITLE:
		return text_put(view_str(row->word), false, out, err);
	case REQUEST:
		return object_put(request_rows, ARRAY_LEN(request_rows), from, out, err);
	}
	must(0);
}

static int
object_put(const struct row *rows, size_t n, const uint8_t *from, struct buf *out, struct err *err)
{
	for (size_t i = 0; i < n; i++) {
		int e;

		buf_addf(out, "%s\"%s\":", i == 0 ? "{" : ",", rows[i].key);
		e = value_put(&rows[i], from, out, err);
		if (e < 0)
			return err_context(err, "%s", rows[i].key);
	}
	buf_add_byte(out, '}');
	return 0;
}

/* ---- reading ---- */

static int object_take(const struct row *rows, size_t n, const char *what, struct view bytes,
	struct buf *room, uint8_t *to, struct err *err);

static int
wrong(const struct row *row, struct err *err)
{
	return err_set(err, -EINVAL, "\"%s\" is not what it must be", row->key);
}

/* room has memory for all of the record: what was written into it does not move. */
static int
text_take(const struct row *row, const struct form_value *v, struct buf *room, struct view *ret,
	struct err *err)
{
	size_t from = room->n;

	*ret = v->text;
	if (v->escaped) {
		form_text(v, room);
		*ret = view_of(room->p + from, room->n - from);
	}
	if (ret->n > row->max || (row->kind == WORD && !identifier_ascii(*ret)) ||
		(row->kind == LINE && v->controls))
		return wrong(row, err);
	return 0;
}

static int
list_take(
	const struct row *row, struct view raw, struct buf *room, struct view *ret, struct err *err)
{
	struct form_value one = {0};
	struct form_list l;
	size_t from = room->n;
	int e = form_list_begin(&l, raw, err);

	while (e == 0 && (e = form_list_next(&l, &one, err)) == 1) {
		size_t start = room->n;

		if (one.type != FORM_TEXT || one.controls)
			return wrong(row, err);
		form_text(&one, room);
		if (room->n == start || room->n - start > row->max)
			return wrong(row, err);
		buf_add_byte(room, 0);
		e = 0;
	}
	*ret = view_of(room->p + from, room->n - from);
	return e;
}

/* One of two words. */
static int
choice_take(const struct row *row, const struct form_value *v, bool *ret, struct err *err)
{
	bool approve = row->kind == APPROVE;

	if (view_is(v->text, approve ? "approve" : "succeeded"))
		*ret = true;
	else if (view_is(v->text, approve ? "reject" : "failed"))
		*ret = false;
	else
		return wrong(row, err);
	return 0;
}

static enum form_type
form_of(enum kind k)
{
	switch (k) {
	case LINE:
	case LINES:
	case WORD:
		return FORM_TEXT;
	case NUMBER:
	case COUNT:
	case ONE:
		return FORM_INT;
	case OBJECT:
	case REQUEST:
		return FORM_OBJECT;
	case LIST:
		return FORM_ANY; /* may be empty */
	case DIGEST:
	case EFFECT:
	case APPROVE:
	case OUTCOME:
	case TITLE:
		break;
	}
	return FORM_STR;
}

static int
number_take(const struct row *row, const struct form_value *v, void *at, struct err *err)
{
	uint64_t u = (uint64_t)v->i;
	uint32_t count = (uint32_t)v->i;

	if (v->i < 0 || (row->kind == ONE && v->i != 1) || (row->kind == COUNT && u > row->max))
		return wrong(row, err);
	if (row->kind == NUMBER)
		memcpy(at, &u, sizeof(u));
	if (row->kind == COUNT)
		memcpy(at, &count, sizeof(count));
	return 0;
}

static int
value_take(const struct row *row, const struct form_value *v, struct buf *room, uint8_t *to,
	struct err *err)
{
	void *at = to + row->at;
	enum effect effect = EFFECT_READ;
	struct view text = v->raw;
	bool yes = false;
	int e = 0;

	switch (row->kind) {
	case LINE:
	case LINES:
	case WORD:
		e = text_take(row, v, room, &text, err);
		memcpy(at, &text, sizeof(text));
		return e;
	case NUMBER:
	case COUNT:
	case ONE:
		return number_take(row, v, at, err);
	case DIGEST:
		return hex_decode(v->text, at, SHA256_BYTES) < 0 ? wrong(row, err) : 0;
	case OBJECT:
		memcpy(at, &text, sizeof(text));
		return 0;
	case LIST:
		e = list_take(row, v->raw, room, &text, err);
		memcpy(at, &text, sizeof(text));
		return e;
	case EFFECT:
		if (effect_parse(v->text, &effect) < 0)
			return wrong(row, err);
		memcpy(at, &effect, sizeof(effect));
		return 0;
	case APPROVE:
	case OUTCOME:
		e = choice_take(row, v, &yes, err);
		memcpy(at, &yes, sizeof(yes));
		return e;
	case TITLE:
		return view_is(v->text, row->word) ? 0 : wrong(row, err);
	case REQUEST:
		return object_take(
			request_rows, ARRAY_LEN(request_rows), "request", v->raw, room, to, err);
	}
	must(0);
}

static int
object_take(const struct row *rows, size_t n, const char *what, struct view bytes, struct buf *room,
	uint8_t *to, struct err *err)
{
	struct form_row form[ROWS_MAX] = {0};
	struct form_value v[ROWS_MAX];
	int e;

	for (size_t i = 0; i < n; i++)
		form[i] = (struct form_row){rows[i].key, form_of(rows[i].kind), false};
	e = form_read(bytes, what, form, n, v, err);
	for (size_t i = 0; e == 0 && i < n; i++)
		e = value_take(&rows[i], &v[i], room, to, err);
	return e;
}

static int
record_take(const struct row *rows, size_t n, const char *what, struct view bytes, size_t max,
	struct buf *room, void *to, struct err *err)
{
	size_t before = room->n;
	int e;

	if (bytes.n > max)
		return err_set(err, -EINVAL, "%s: more than %zu bytes", what, max);
	if (bytes.n > 0 && buf_room(room, bytes.n) == NULL)
		return err_set(err, -ENOBUFS, "no room for the %s", what);
	e = object_take(rows, n, what, bytes, room, to, err);
	if (e < 0)
		room->n = before;
	return e;
}

/* ---- what a record must be ---- */

static bool
has_id(struct view v, const char *prefix)
{
	struct id id;

	return id_parse(v, prefix, &id) == 0;
}

/* An object of strings, or of plain values. */
static bool
plain_object(struct view object, bool strings)
{
	struct canon_token t = {0};
	struct canon_reader r;
	struct form_value v = {0};
	struct err err;
	int e;

	canon_reader_init(&r, object, true);
	e = canon_want(&r, CANON_OBJECT_BEGIN, &t, &err);
	while (e == 0 && (e = canon_next(&r, &t, &err)) == 0 && t.type == CANON_KEY) {
		e = form_value_read(&r, &v, &err);
		if (e == 0 && v.type != FORM_TEXT &&
			(strings || (v.type != FORM_INT && v.type != FORM_BOOL)))
			return false;
	}
	return e == 0;
}

/* What the engine may have chosen, in the one way it is written. */
static bool
request_sane(const struct proposal_record *r)
{
	static const char *const methods[] = {"GET", "POST", "PUT", "PATCH", "DELETE"};
	bool known = false, none = r->content_type.n == 0;

	for (size_t i = 0; i < ARRAY_LEN(methods); i++)
		known |= view_is(r->method, methods[i]);
	if (!none && !view_is(r->content_type, "application/json") &&
		!view_is(r->content_type, "application/x-www-form-urlencoded"))
		return false;
	return known && (!none || r->body.n == 0) &&
	       (view_starts(r->url, "https://") || view_starts(r->url, "http://"));
}

static int
proposal_sane(const struct proposal_record *r, struct err *err)
{
	if (!form_name_ok(r->action) || !name_ok(r->tenant) || !has_id(r->proposal, ID_PROPOSAL) ||
		!has_id(r->task, ID_TASK) || !has_id(r->capability, ID_GRANT))
		return err_set(err, -EINVAL,
			"proposal record: action, tenant, proposal, task or capability is not one");
	if (r->idempotency_key.n != 44 || !view_starts(r->idempotency_key, "dml-"))
		return err_set(err, -EINVAL, "proposal record: the key is not derived");
	if (r->decide_by_ms <= r->issued_ms || r->dispatch_within_ms == 0)
		return err_set(err, -EINVAL, "proposal record: it is never valid");
	if (!plain_object(r->facts, false) || !plain_object(r->provenance, true))
		return err_set(err, -EINVAL, "proposal record: facts or provenance are not plain");
	if (!request_sane(r))
		return err_set(err, -EINVAL, "proposal record: the request is not one");
	return 0;
}

static int
decision_sane(const struct decision_record *r, struct err *err)
{
	if (!name_ok(r->approver))
		return err_set(err, -EINVAL, "decision record: approver is not a name");
	if (r->approve ? r->dispatch_by_ms <= r->decided_ms : r->dispatch_by_ms != 0)
		return err_set(err, -EINVAL,
			"decision record: dispatch_by_ms is after decided_ms, or 0 in a rejection");
	return 0;
}

static int
settlement_sane(const struct settlement_record *r, struct err *err)
{
	if (!name_ok(r->approver) || !has_id(r->execution, ID_EXECUTION) || r->note.n == 0)
		return err_set(
			err, -EINVAL, "settlement record: approver, execution or note is not one");
	return 0;
}

static int
release_sane(const struct release_record *r, struct err *err)
{
	bool tenant = view_starts(r->scope, "tenant:"), task = view_starts(r->scope, "task:");

	if (!name_ok(r->approver) || r->note.n == 0 ||
		(tenant        ? !name_ok(view_skip(r->scope, 7))
			: task ? !has_id(view_skip(r->scope, 5), ID_TASK)
			       : !view_is(r->scope, "host")))
		return err_set(err, -EINVAL, "release record: approver, note or scope is not one");
	return 0;
}

/* ---- the four records ---- */

/* Written, then read back: what cannot be read is never written. */
#define RECORD(name, what, limit)                                                                \
	int name##_record_read(                                                                  \
		struct view bytes, struct buf *room, struct name##_record *ret, struct err *err) \
	{                                                                                        \
		struct name##_record r = {0};                                                    \
		size_t before = room->n;                                                         \
		int e = record_take(name##_rows, ARRAY_LEN(name##_rows), what " record", bytes,  \
			limit, room, &r, err);                                                   \
                                                                                                 \
		if (e == 0)                                                                      \
			e = name##_sane(&r, err);                                                \
		if (e == 0)                                                                      \
			*ret = r;                                                                \
		else                                                                             \
			room->n = before;                                                        \
		return e;                                                                        \
	}                                                                                        \
                                                                                                 \
	int name##_record_write(const struct name##_record *r, struct buf *out, struct err *err) \
	{                                                                                        \
		auto_buf struct buf room = {.max = limit};                                       \
		struct name##_record again;                                                      \
		size_t before = out->n;                                                          \
		int e = object_put(                                                              \
			name##_rows, ARRAY_LEN(name##_rows), (const uint8_t *)r, out, err);      \
                                                                                                 \
		if (e == 0 && buf_check(out) < 0)                                                \
			e = err_set(err, -ENOBUFS, "no room for the " what " record");           \
		if (e == 0)                                                                      \
			e = name##_record_read(                                                  \
				view_of(out->p + before, out->n - before), &room, &again, err);  \
		if (e < 0)                                                                       \
			out->n = before;                                                         \
		return e;                                                                        \
	}

RECORD(proposal, "proposal", PROPOSAL_RECORD_MAX)
RECORD(decision, "decision", DECISION_RECORD_MAX)
RECORD(settlement, "settlement", DECISION_RECORD_MAX)
RECORD(release, "release", DECISION_RECORD_MAX)

void
proposal_digest(struct view bytes, uint8_t ret[static SHA256_BYTES])
{
	struct sha256 h;

	sha256_init(&h);
	sha256_add(&h, "demilune-proposal-v1", sizeof("demilune-proposal-v1"));
	sha256_add(&h, bytes.p, bytes.n);
	sha256_end(&h, ret);
}

/* ---- approvals ---- */

static void
piece_put(struct buf *b, struct view v)
{
	must(v.n <= UINT16_MAX);
	buf_add_byte(b, (uint8_t)(v.n >> 8));
	buf_add_byte(b, (uint8_t)v.n);
	buf_add_view(b, v);
}

void
approvals_put(struct buf *b, struct view decision, struct view signature)
{
	piece_put(b, decision);
	piece_put(b, signature);
}

static int
piece_take(struct view *rest, struct view *ret)
{
	size_t n;

	if (rest->n < 2)
		return -EINVAL;
	n = (size_t)rest->p[0] << 8 | rest->p[1];
	if (n == 0 || n > rest->n - 2)
		return -EINVAL;
	*ret = view_of(rest->p + 2, n);
	*rest = view_skip(*rest, 2 + n);
	return 0;
}

int
approvals_take(struct view *rest, struct view *ret_decision, struct view *ret_signature)
{
	struct view left = *rest, decision = {0}, signature = {0};

	if (left.n == 0)
		return 0;
	if (piece_take(&left, &decision) < 0 || piece_take(&left, &signature) < 0)
		return -EINVAL;
	*rest = left;
	*ret_decision = decision;
	*ret_signature = signature;
	return 1;
}
