/* SPDX-License-Identifier: Apache-2.0 */
/* See reading.h. */
#include "broker/reading.h"

#include "broker/answer.h"
#include "broker/broker.h"

#include "lib/action/condition.h"
#include "lib/json/parse.h"

#include <errno.h>

enum { FIELDS = 64 };

static bool
leaks(void *owner, struct view text)
{
	return vault_leaks(owner, text);
}

struct answer_judge
judge_of(struct broker *b)
{
	return (struct answer_judge){.leaks = leaks, .owner = b->vault};
}

int
reading_secrets(const struct broker *b, const struct operation *op, struct err *err)
{
	const struct view names[] = {op->provider.credential_secret,
		op->verify.n == 0 ? view_of(NULL, 0) : op->verify_provider.credential_secret};

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (names[i].n != 0 && vault_find(b->vault, names[i]) == NULL)
			return err_set(err, -ENOENT,
				"the secret %.*s is not in actions.secrets, or not usable, which "
				"the daemon's log says",
				VIEW_ARGS(names[i]));
	return 0;
}

static void
end(struct reading *f, enum denial denial)
{
	f->denial = denial;
	if (f->read.n == 0)
		buf_add_str(&f->read, "{}");
	broker_clean(f->b, &f->why);
	f->done(f);
}

static struct condition_world
world_of(const struct reading *f)
{
	return (struct condition_world){.op = f->op,
		.arguments = f->values.arguments,
		.facts = buf_view(&f->read),
		.tenant = f->values.tenant,
		.task = f->values.task};
}

static void
test(struct reading *f)
{
	const struct condition_world w = world_of(f);

	if (conditions_hold(&w, &f->why) < 0)
		end(f, DENIAL_VERIFY_FAILED);
	else if (conditions_hold_text(&w, f->where, &f->why) < 0)
		end(f, DENIAL_GRANT_CONDITION);
	else
		end(f, DENIAL_NONE);
}

/*
 * There is no such thing. Said of the first condition that fails without facts, as of a thing of somebody else: a sandbox hears the condition
 * alone, so it does not hear whether there is one.
 */
static enum denial
not_there(struct reading *f)
{
	const struct condition_world w = world_of(f);
	struct view failed = view_of(NULL, 0);
	struct err why;

	if (conditions_hold(&w, &why) < 0)
		failed = condition_failed(view_str(why.text));
	(void)err_set(&f->why, -ENOENT, "%.*s%sthe system of record does not have it",
		VIEW_ARGS(failed), failed.n == 0 ? "" : ": ");
	return DENIAL_VERIFY_FAILED;
}

static enum denial
keep(struct reading *f)
{
	struct answer_judge judge = judge_of(f->b);
	struct answer_field fields[FIELDS];
	size_t n = request_fact_fields(f->op, fields, FIELDS);
	auto_json json_t *root = NULL;
	bool redacted = false;

	if (f->call->status == 404)
		return not_there(f);
	if (f->call->status != 200) {
		(void)err_set(&f->why, -EIO, "the system of record answered %ld", f->call->status);
		return DENIAL_VERIFY_UNAVAILABLE;
	}
	if (answer_parse(buf_view(&f->call->body), &root, &f->why) < 0 ||
		answer_keep(root, fields, n, &judge, LIMIT_FACTS_BYTES, &f->read, &redacted,
			&f->why) < 0) {
		(void)err_context(&f->why, "the answer of the system of record");
		return DENIAL_VERIFY_UNAVAILABLE;
	}
	return DENIAL_NONE;
}

static void
on_done(struct call *c)
{
	struct reading *f = c->owner;
	enum denial denial = DENIAL_VERIFY_UNAVAILABLE;

	f->calls += c->sent;
	f->bytes += c->bytes;
	if (c->end == CALL_ANSWERED)
		denial = keep(f);
	else
		f->why = c->why;
	f->call = NULL;
	call_free(c);
	if (denial == DENIAL_NONE)
		test(f);
	else
		end(f, denial);
}

void
reading_start(struct reading *f)
{
	struct request request = {0};

	buf_init(&f->read, LIMIT_FACTS_BYTES + 8);
	if (f->op->verify.n == 0) {
		buf_add_str(&f->read, "{}");
		test(f);
		return;
	}
	if (request_render_verify(f->op, &f->values, &request, &f->why) < 0) {
		request_done(&request);
		end(f, DENIAL_ARGUMENTS);
		return;
	}
	f->call = call_new(f->b, &f->op->verify_provider, &request, &f->why);
	request_done(&request);
	if (f->call == NULL) {
		end(f, DENIAL_SECRET_MISSING);
		return;
	}
	f->call->owner = f;
	f->call->done = on_done;
	call_start(f->call);
}

void
reading_free(struct reading *f)
{
	call_free(f->call);
	f->call = NULL;
	buf_done(&f->read);
}
