/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One document of the catalogue; see operation.h. Written by the configuration compiler, read by engine, broker and CLI. Its digests are taken
 * over pieces of the document as they stand, so they change with every byte that means something.
 */
#include "lib/action/operation.h"

#include "lib/action/parameter.h"
#include "lib/action/part.h"
#include "lib/action/schema.h"
#include "lib/base/name.h"

#include <errno.h>

enum {
	O_AMOUNT,
	O_APPROVAL,
	O_BUDGETS,
	O_DESCRIBE,
	O_EFFECT,
	O_NAME,
	O_PARAMETERS,
	O_REQUEST,
	O_VERIFY,
	O_VERSION,
	O_N
};

static const struct form_row operation_form[O_N] = {
	[O_AMOUNT] = {"amount", FORM_OBJECT, true},
	[O_APPROVAL] = {"approval", FORM_OBJECT, false},
	[O_BUDGETS] = {"budgets", FORM_OBJECT, true},
	[O_DESCRIBE] = {"describe", FORM_STR, false},
	[O_EFFECT] = {"effect", FORM_STR, false},
	[O_NAME] = {"name", FORM_STR, false},
	[O_PARAMETERS] = {"parameters", FORM_ARRAY, false},
	[O_REQUEST] = {"request", FORM_OBJECT, false},
	[O_VERIFY] = {"verify", FORM_OBJECT, true},
	[O_VERSION] = {"version", FORM_INT, false},
};

static int
amount_read(const struct form_value *raw, struct operation *op, struct err *err)
{
	static const struct form_row form[] = {{"argument", FORM_STR, false},
		{"currency", FORM_STR, false}, {"exponent", FORM_INT, false}};
	struct form_value v[ARRAY_LEN(form)];
	struct parameter p;
	int64_t exponent = 0;
	int e;

	if (!raw->there)
		return 0;
	e = form_read(raw->raw, "amount", form, ARRAY_LEN(form), v, err);
	if (e == 0)
		e = form_int(&v[2], "amount: exponent", 0, 3, &exponent, err);
	if (e == 0)
		e = parameter_find(op->parameters, v[0].text, &p, err);
	if (e < 0)
		return e;
	if (e == 0 || p.type != PARAMETER_INTEGER || p.optional || p.min < 0)
		return err_set(err, -EINVAL,
			"amount: argument must be an integer parameter that is never absent and "
			"not "
			"negative");
	for (size_t i = 0; i < v[1].text.n; i++) {
		if (v[1].text.p[i] < 'A' || v[1].text.p[i] > 'Z')
			v[1].text.n = 0;
	}
	if (v[1].text.n != 3)
		return err_set(err, -EINVAL, "amount: currency is three capital letters");
	op->has_amount = true;
	op->amount_argument = v[0].text;
	op->currency = v[1].text;
	op->exponent = (uint32_t)exponent;
	return 0;
}

static int
roles_read(const struct form_value *v, struct tier *t, struct err *err)
{
	struct form_value one = {0};
	struct form_list l;
	int e;

	t->nroles = 0;
	if (!v->there)
		return 0;
	e = form_list_begin(&l, v->raw, err);
	while (e == 0 && (e = form_list_next(&l, &one, err)) == 1) {
		if (one.type != FORM_TEXT || one.escaped || !name_ok(one.text) ||
			t->nroles == OPERATION_ROLES_MAX ||
			(t->nroles > 0 && canon_key_compare(t->role[t->nroles - 1], one.text) >= 0))
			return err_set(err, -EINVAL,
				"roles are at most %d names, in order, each once",
				OPERATION_ROLES_MAX);
		t->role[t->nroles++] = one.text;
		e = 0;
	}
	if (e == 0 && t->quorum == 0)
		return err_set(err, -EINVAL, "roles without a quorum mean nothing");
	return e;
}

static int
tier_read(struct view raw, const struct operation *op, struct tier *ret, struct err *err)
{
	static const struct form_row form[] = {{"above", FORM_INT, false},
		{"quorum", FORM_INT, false}, {"roles", FORM_ARRAY, true}};
	const struct tier *last = op->ntiers == 0 ? &op->base : &op->tier[op->ntiers - 1];
	struct form_value v[ARRAY_LEN(form)];
	struct tier t = {0};
	int64_t quorum = 0;
	int e = form_read(raw, "tier", form, ARRAY_LEN(form), v, err);

	if (e == 0)
		e = form_int(&v[0], "above", 0, CANON_INT_MAX, &t.above, err);
	if (e == 0 && t.above <= last->above)
		e = err_set(err, -EINVAL, "tiers ascend");
	if (e == 0)
		e = form_int(&v[1], "quorum of a tier", last->quorum, OPERATION_QUORUM_MAX, &quorum,
			err);
	t.quorum = (uint32_t)quorum;
	if (e == 0)
		e = roles_read(&v[2], &t, err);
	if (e == 0)
		*ret = t;
	return e;
}

static int
tiers_read(const struct form_value *v, struct operation *op, struct err *err)
{
	struct form_value one = {0};
	struct form_list l;
	int e;

	if (!v->there)
		return 0;
	if (!op->has_amount)
		return err_set(err, -EINVAL, "tiers need an amount");
	e = form_list_begin(&l, v->raw, err);
	while (e == 0 && (e = form_list_next(&l, &one, err)) == 1) {
		if (op->ntiers == OPERATION_TIERS_MAX)
			return err_set(err, -EINVAL, "more than %d tiers", OPERATION_TIERS_MAX);
		e = tier_read(one.raw, op, &op->tier[op->ntiers], err);
		op->ntiers++;
	}
	return e;
}

enum { A_DECIDE, A_DISPATCH, A_QUORUM, A_ROLES, A_TIERS, A_N };

static int
approval_read(const struct form_value *raw, struct operation *op, struct err *err)
{
	static const struct form_row form[A_N] = {{"decide_within_ms", FORM_INT, false},
		{"dispatch_within_ms", FORM_INT, false}, {"quorum", FORM_INT, false},
		{"roles", FORM_ARRAY, true}, {"tiers", FORM_ARRAY, true}};
	bool quiet = op->effect == EFFECT_READ || op->effect == EFFECT_DRAFT;
	struct form_value v[A_N];
	int64_t decide = 0, dispatch = 0, quorum = 0;
	int e = form_read(raw->raw, "approval", form, A_N, v, err);

	if (e == 0)
		e = form_int(&v[A_DECIDE], "decide_within_ms", 1000, 604800000, &decide, err);
	if (e == 0)
		e = form_int(&v[A_DISPATCH], "dispatch_within_ms", 1000, 86400000, &dispatch, err);
	if (e == 0)
		e = form_int(&v[A_QUORUM], "quorum (0 only for read and draft)", quiet ? 0 : 1,
			OPERATION_QUORUM_MAX, &quorum, err);
	op->decide_within_ms = (uint64_t)decide;
	op->dispatch_within_ms = (uint64_t)dispatch;
	op->base.above = INT64_MIN;
	op->base.quorum = (uint32_t)quorum;
	if (e == 0)
		e = roles_read(&v[A_ROLES], &op->base, err);
	if (e == 0)
		e = tiers_read(&v[A_TIERS], op, err);
	return e < 0 ? err_context(err, "approval") : 0;
}

static int
budgets_read(const struct form_value *raw, struct operation *op, struct err *err)
{
	static const struct form_row form[] = {{"task_amount", FORM_INT, true},
		{"task_uses", FORM_INT, true}, {"tenant_day_amount", FORM_INT, true},
		{"tenant_day_uses", FORM_INT, true}};
	uint64_t *const to[] = {
		&op->task_amount, &op->task_uses, &op->tenant_day_amount, &op->tenant_day_uses};
	struct form_value v[ARRAY_LEN(form)];
	size_t n = 0;
	int e;

	if (!raw->there)
		return 0;
	e = form_read(raw->raw, "budgets", form, ARRAY_LEN(form), v, err);
	for (size_t i = 0; e == 0 && i < ARRAY_LEN(form); i++) {
		int64_t limit = 0;

		if (!v[i].there)
			continue;
		n++;
		e = form_int(&v[i], form[i].key, 1, CANON_INT_MAX, &limit, err);
		*to[i] = (uint64_t)limit;
	}
	if (e == 0 && n == 0)
		e = err_set(err, -EINVAL, "budgets is there and limits nothing");
	if (e == 0 && !op->has_amount && (v[0].there || v[2].there))
		e = err_set(err, -EINVAL, "a budget of amounts needs an amount");
	return e;
}

/* {"key":raw,...} of those keys that are there, under a domain tag. */
static void
part_digest(
	const char *tag, const struct form_value *v, const unsigned *which, size_t n, uint8_t *ret)
{
	struct sha256 h;
	bool some = false;

	sha256_init(&h);
	sha256_add(&h, tag, strlen(tag) + 1);
	sha256_add(&h, "{", 1);
	for (size_t i = 0; i < n; i++) {
		const char *key = operation_form[which[i]].key;

		if (!v[which[i]].there)
			continue;
		sha256_add(&h, some ? ",\"" : "\"", some ? 2 : 1);
		sha256_add(&h, key, strlen(key));
		sha256_add(&h, "\":", 2);
		sha256_add(&h, v[which[i]].raw.p, v[which[i]].raw.n);
		some = true;
	}
	sha256_add(&h, "}", 1);
	sha256_end(&h, ret);
}

static void
digests(const struct form_value *v, struct operation *op)
{
	static const unsigned schema[] = {O_AMOUNT, O_EFFECT, O_NAME, O_PARAMETERS, O_VERSION};
	static const unsigned adapter[] = {O_REQUEST, O_VERIFY};
	static const unsigned policy[] = {O_APPROVAL, O_BUDGETS};
	struct sha256 h;

	part_digest("demilune-schema-v1", v, schema, ARRAY_LEN(schema), op->schema);
	part_digest("demilune-adapter-v1", v, adapter, ARRAY_LEN(adapter), op->adapter);
	part_digest("demilune-policy-v1", v, policy, ARRAY_LEN(policy), op->policy);
	sha256_init(&h);
	sha256_add(&h, "demilune-operation-v1", sizeof("demilune-operation-v1"));
	sha256_add(&h, op->document.p, op->document.n);
	sha256_end(&h, op->digest);
}

static int
head_read(const struct form_value *v, struct operation *op, struct err *err)
{
	int64_t version = 0;
	int e;

	if (!form_name_ok(v[O_NAME].text))
		return err_set(err, -EINVAL, "name is [a-z][a-z0-9_]*, at most 63");
	if (v[O_DESCRIBE].text.n == 0 || v[O_DESCRIBE].text.n > 512)
		return err_set(err, -EINVAL, "describe has 1 to 512 bytes");
	if (effect_parse(v[O_EFFECT].text, &op->effect) < 0)
		return err_set(err, -EINVAL, "effect is read, draft, external or irreversible");
	e = form_int(&v[O_VERSION], "version", 1, INT32_MAX, &version, err);
	op->name = v[O_NAME].text;
	op->describe = v[O_DESCRIBE].text;
	op->version = (uint32_t)version;
	op->parameters = v[O_PARAMETERS].raw;
	return e;
}

static int
parts_read(const struct form_value *v, struct operation *op, struct err *err)
{
	int e = parameters_check(op->parameters, 0, err);

	if (e < 0)
		return err_context(err, "parameters");
	e = amount_read(&v[O_AMOUNT], op, err);
	if (e == 0)
		e = approval_read(&v[O_APPROVAL], op, err);
	if (e == 0)
		e = budgets_read(&v[O_BUDGETS], op, err);
	if (e == 0)
		e = request_read(v[O_REQUEST].raw, op, err);
	if (e == 0 && v[O_VERIFY].there)
		e = verify_read(v[O_VERIFY].raw, op, err);
	if (e == 0 && !v[O_VERIFY].there && op->effect == EFFECT_IRREVERSIBLE)
		e = err_set(err, -EINVAL, "what is irreversible needs verify");
	return e;
}

int
operation_read(struct view document, struct operation *ret, struct err *err)
{
	struct operation op = {.document = document};
	struct form_value v[O_N];
	int e;

	if (document.n > OPERATION_BYTES_MAX)
		return err_set(
			err, -EINVAL, "the operation has more than %d bytes", OPERATION_BYTES_MAX);
	e = form_read(document, "operation", operation_form, O_N, v, err);
	if (e == 0)
		e = head_read(v, &op, err);
	if (e < 0)
		return err->code = -EINVAL;
	e = parts_read(v, &op, err);
	if (e < 0) {
		(void)err_context(err, "%.*s", VIEW_ARGS(op.name));
		return e == -ENOBUFS ? e : (err->code = -EINVAL);
	}
	digests(v, &op);
	*ret = op;
	return 0;
}

const struct tier *
operation_tier(const struct operation *op, int64_t amount)
{
	const struct tier *t = &op->base;

	for (size_t i = 0; i < op->ntiers && op->tier[i].above < amount; i++)
		t = &op->tier[i];
	return t;
}
