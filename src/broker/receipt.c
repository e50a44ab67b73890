/* SPDX-License-Identifier: Apache-2.0 */
/* See receipt.h. */
#include "broker/receipt.h"

#include "broker/answer.h"
#include "broker/index.h"
#include "broker/member.h"

#include "lib/json/parse.h"

#include <stdarg.h>

enum { FIELDS = 64 };

static void PRINTF(4, 5)
	judge(struct receipt *r, enum answer_class class, bool incident, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(r->text, sizeof(r->text), fmt, ap);
	va_end(ap);
	r->means.class = class;
	r->means.incident = incident;
}

/* An answer that tells of another amount or recipient than what was approved is no success, whatever its status. */
static bool
echoes(struct work *w, const json_t *found, struct receipt *r)
{
	struct answer_field fields[FIELDS];
	size_t n = request_echo_fields(w->op, fields, FIELDS);

	for (size_t i = 0; i < n; i++) {
		struct view asked = member(w->r.arguments, fields[i].name);
		const json_t *told = answer_at(found, fields[i].field);

		if (asked.n == 0)
			continue; /* an optional argument that was not given */
		if (told == NULL || json_is_null(told)) {
			judge(r, CLASS_UNKNOWN, false,
				"the provider answered %u without %.*s, which should repeat %.*s",
				r->status, VIEW_ARGS(fields[i].field), VIEW_ARGS(fields[i].name));
			return false;
		}
		if (!answer_same(told, asked)) {
			judge(r, CLASS_UNKNOWN, true,
				"the provider answered %u, but its %.*s is not the %.*s that was "
				"approved",
				r->status, VIEW_ARGS(fields[i].field), VIEW_ARGS(fields[i].name));
			return false;
		}
	}
	return true;
}

/* The provider's own name of the effect belongs to one execution. */
static void
check_unique(struct work *w, struct receipt *r)
{
	struct view id = receipt_id(buf_view(&r->kept));
	const struct spent *other;

	if (id.n == 0)
		return;
	other = ledger_by_receipt(w->b->ledger, w->op->provider.name, w->op->provider.account, id);
	if (other != NULL && strcmp(other->execution, w->execution) != 0)
		judge(r, CLASS_UNKNOWN, true,
			"the provider gave the receipt of %s again: one of the two was not done",
			other->execution);
}

void
receipt_judge(struct work *w, const json_t *found, struct receipt *r)
{
	struct answer_judge leak = judge_of(w->b);
	struct answer_field fields[FIELDS];
	size_t n = request_receipt_fields(w->op, fields, FIELDS);
	struct err err = {0};
	bool redacted = false, wants_id = false;

	if (answer_keep(found, fields, n, &leak, LIMIT_FACTS_BYTES, &r->kept, &redacted, &err) <
		0) {
		judge(r, CLASS_UNKNOWN, false, "%s", err.text);
		return;
	}
	for (size_t i = 0; i < n; i++)
		wants_id = wants_id || view_is(fields[i].name, "reference");
	if (!echoes(w, found, r))
		return;
	if (wants_id && receipt_id(buf_view(&r->kept)).n == 0) {
		judge(r, CLASS_UNKNOWN, false, "the provider answered %u without its reference",
			r->status);
		return;
	}
	check_unique(w, r);
	if (r->means.class == CLASS_SUCCEEDED && redacted)
		judge(r, CLASS_SUCCEEDED, true,
			"the provider sent a credential back; it was left out");
}

void
receipt_read(struct work *w, const struct call *c, struct receipt *r)
{
	bool whole = c->end == CALL_ANSWERED;
	auto_json json_t *root = NULL;
	struct err err = {0};

	buf_init(&r->kept, LIMIT_FACTS_BYTES + 8);
	r->status = (unsigned)c->status;
	r->means = classify(w->op, r->status, whole);
	sha256_of(buf_view(&c->body), r->response);
	if (whole)
		(void)snprintf(r->text, sizeof(r->text), "%s (%u)", r->means.sentence, r->status);
	else
		(void)snprintf(r->text, sizeof(r->text), "%s: %s", r->means.sentence, c->why.text);
	if (!whole)
		return;
	if (answer_parse(buf_view(&c->body), &root, &err) < 0) {
		struct answer_field fields[FIELDS];

		if (r->means.class == CLASS_SUCCEEDED &&
			request_receipt_fields(w->op, fields, FIELDS) +
					request_echo_fields(w->op, fields, FIELDS) !=
				0)
			judge(r, CLASS_UNKNOWN, false,
				"the provider answered %u, which cannot be read: %s", r->status,
				err.text);
		return;
	}
	if (r->means.class == CLASS_SUCCEEDED) {
		receipt_judge(w, root, r);
	} else {
		/* Of another answer the same fields, for people and for a look-up by reference. */
		struct answer_judge leak = judge_of(w->b);
		struct answer_field fields[FIELDS];
		size_t n = request_receipt_fields(w->op, fields, FIELDS);
		bool redacted;

		if (answer_keep(root, fields, n, &leak, LIMIT_FACTS_BYTES, &r->kept, &redacted,
			    &err) < 0)
			buf_clear(&r->kept);
	}
}

void
receipt_done(struct receipt *r)
{
	buf_done(&r->kept);
}
