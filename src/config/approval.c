/* SPDX-License-Identifier: Apache-2.0 */
/* `amount`, `approval` and `budgets` of an operation; see operation_parts.h. */
#include "config/operation_parts.h"
#include "config/template.h"
#include "lib/action/operation.h"
#include "lib/base/name.h"

enum {
	DECIDE_MS = 3600000,
	DECIDE_MAX_MS = 604800000,
	DISPATCH_MS = 600000,
	DISPATCH_MAX_MS = 86400000,
};

/* ---- amount ---- */

/* Currencies of ISO 4217 that do not have two digits behind the point. */
static const struct {
	const char *code;
	int64_t exponent;
} currencies[] = {{"BHD", 3}, {"BIF", 0}, {"CLP", 0}, {"DJF", 0}, {"GNF", 0}, {"IQD", 3},
	{"ISK", 0}, {"JOD", 3}, {"JPY", 0}, {"KMF", 0}, {"KRW", 0}, {"KWD", 3}, {"LYD", 3},
	{"OMR", 3}, {"PYG", 0}, {"RWF", 0}, {"TND", 3}, {"UGX", 0}, {"UYI", 0}, {"VND", 0},
	{"VUV", 0}, {"XAF", 0}, {"XOF", 0}, {"XPF", 0}};

static int64_t
exponent_of(struct view currency)
{
	for (size_t i = 0; i < ARRAY_LEN(currencies); i++)
		if (view_is(currency, currencies[i].code))
			return currencies[i].exponent;
	return 2;
}

static void
currency_check(struct builder *b, const struct node *n)
{
	bool ok = n->text.n == 3;

	for (size_t i = 0; ok && i < n->text.n; i++)
		ok = n->text.p[i] >= 'A' && n->text.p[i] <= 'Z';
	if (!ok)
		fault(b, n->at, "currency must be three capital letters, such as EUR");
}

/* Never absent and never negative: else a tier or a budget could be passed below. */
static void
argument_check(struct builder *b, const struct node *n)
{
	const struct node *p = parameter_node(b, n->text), *type, *min;
	int64_t least = 0;

	if (p == NULL) {
		parameter_missing(b, n->at, n->text);
		return;
	}
	type = node_child(p, "type");
	min = node_child(p, "min");
	if (type == NULL || !view_is(type->text, "integer"))
		fault(b, n->at,
			"%.*s is not an integer parameter; an amount is a whole number of the "
			"smallest unit",
			VIEW_ARGS(n->text));
	else if (node_child(p, "optional") != NULL)
		fault(b, n->at, "%.*s is optional, but an amount is always there",
			VIEW_ARGS(n->text));
	else if (min != NULL && literal_of(min, &least) == LITERAL_INTEGER && least < 0)
		fault(b, n->at, "%.*s may be negative; its min must be 0 or more",
			VIEW_ARGS(n->text));
}

void
amount_write(struct builder *b, const struct section *op, struct canon_writer *w)
{
	const struct node *n = op->at[KEY_OPERATION_AMOUNT], *argument, *currency, *exponent;
	struct section s;
	int64_t digits;

	if (n == NULL || !section_read(b, SECTION_AMOUNT, n, &s))
		return;
	argument = s.at[KEY_AMOUNT_ARGUMENT];
	currency = s.at[KEY_AMOUNT_CURRENCY];
	exponent = s.at[KEY_AMOUNT_EXPONENT];
	put_key(w, "amount");
	canon_object_begin(w);
	if (argument != NULL) {
		argument_check(b, argument);
		put_key(w, "argument");
		canon_str(w, argument->text);
	}
	digits = currency == NULL ? 2 : exponent_of(currency->text);
	if (currency != NULL) {
		currency_check(b, currency);
		put_key(w, "currency");
		canon_str(w, currency->text);
	}
	if (exponent != NULL)
		(void)value_int(b, exponent, "exponent", 0, 3, &digits);
	put_key(w, "exponent");
	canon_int(w, digits);
	canon_object_end(w);
}

/* ---- approval ---- */

static void
roles_write(struct builder *b, const struct node *list, struct canon_writer *w)
{
	struct view role[OPERATION_ROLES_MAX];
	size_t n = 0;

	if (list == NULL)
		return;
	if (list->first == NULL)
		fault(b, list->at, "roles is empty; take it away, or name a role");
	node_each(one, list)
	{
		size_t at = n;

		if (one->kind != NODE_SCALAR || !name_ok(one->text)) {
			fault(b, one->at,
				"a role is a name: 1 to 63 of a-z, 0-9, '.', '_' and '-', a letter "
				"or digit first");
			continue;
		}
		while (at > 0 && canon_key_compare(role[at - 1], one->text) > 0)
			at--;
		if (at > 0 && view_eq(role[at - 1], one->text)) {
			fault(b, one->at, "the role %.*s stands twice; keep one",
				VIEW_ARGS(one->text));
		} else if (n == OPERATION_ROLES_MAX) {
			fault(b, one->at, "more than %d roles stand here", OPERATION_ROLES_MAX);
			break;
		} else {
			memmove(&role[at + 1], &role[at], (n - at) * sizeof(role[0]));
			role[at] = one->text;
			n++;
		}
	}
	put_key(w, "roles");
	canon_array_begin(w);
	for (size_t i = 0; i < n; i++)
		canon_str(w, role[i]);
	canon_array_end(w);
}

/* What a tier must be more than. */
struct floor {
	int64_t above, quorum;
	const struct node *roles; /* of the approval, for a tier that names none */
};

static void
tier_write(struct builder *b, const struct node *n, struct floor *floor, struct canon_writer *w)
{
	const struct node *above, *quorum, *roles;
	int64_t least = floor->above, people = floor->quorum;
	struct section s;

	canon_object_begin(w);
	if (section_read(b, SECTION_TIER, n, &s)) {
		above = s.at[KEY_TIER_ABOVE];
		quorum = s.at[KEY_TIER_QUORUM];
		roles = s.at[KEY_TIER_ROLES] != NULL ? s.at[KEY_TIER_ROLES] : floor->roles;
		if (above != NULL && value_int(b, above, "above", 0, CANON_INT_MAX, &least) &&
			least <= floor->above)
			fault(b, above->at, "tiers stand in ascending order of above");
		if (quorum != NULL &&
			value_int(b, quorum, "quorum", 1, OPERATION_QUORUM_MAX, &people) &&
			people < floor->quorum)
			fault(b, quorum->at,
				"a larger amount must not need fewer people; write at least %lld",
				(long long)floor->quorum);
		put_key(w, "above");
		canon_int(w, least);
		put_key(w, "quorum");
		canon_int(w, people);
		roles_write(b, roles, w);
		floor->above = least;
		floor->quorum = people;
	}
	canon_object_end(w);
}

static void
tiers_write(struct builder *b, const struct section *op, const struct node *list,
	const struct floor *floor, struct canon_writer *w)
{
	struct floor last = *floor;
	size_t n = 0;

	if (list == NULL)
		return;
	if (op->at[KEY_OPERATION_AMOUNT] == NULL)
		fault(b, list->key_at, "tiers are for amounts; say which parameter is the amount");
	if (list->first == NULL)
		fault(b, list->at, "tiers is empty; take it away");
	put_key(w, "tiers");
	canon_array_begin(w);
	node_each(one, list)
	{
		if (n++ == OPERATION_TIERS_MAX)
			fault(b, one->at, "more than %d tiers stand here", OPERATION_TIERS_MAX);
		tier_write(b, one, &last, w);
	}
	canon_array_end(w);
}

static bool
leaves(enum effect effect)
{
	return effect == EFFECT_EXTERNAL || effect == EFFECT_IRREVERSIBLE;
}

/* Quorum 0 lets the sandbox act alone: only where nothing leaves. */
static int64_t
quorum_read(struct builder *b, const struct section *s, enum effect effect)
{
	const struct node *n = s->at[KEY_APPROVAL_QUORUM];
	int64_t quorum = leaves(effect) ? 1 : 0;

	if (n == NULL || !value_int(b, n, "quorum", 0, OPERATION_QUORUM_MAX, &quorum))
		return quorum;
	if (quorum == 0 && leaves(effect))
		fault(b, n->at,
			"quorum 0 is only for read and draft: what is %s needs at least one person",
			effect_text(effect));
	return quorum;
}

void
approval_write(
	struct builder *b, const struct section *op, enum effect effect, struct canon_writer *w)
{
	const struct node *n = op->at[KEY_OPERATION_APPROVAL];
	struct section s = {.id = SECTION_APPROVAL};
	uint64_t decide = DECIDE_MS, dispatch = DISPATCH_MS;
	struct floor floor = {.above = -1};

	if (n != NULL && !section_read(b, SECTION_APPROVAL, n, &s))
		return;
	if (s.at[KEY_APPROVAL_DECIDE_WITHIN] != NULL)
		(void)value_duration(b, s.at[KEY_APPROVAL_DECIDE_WITHIN], "decide_within", 1000,
			DECIDE_MAX_MS, &decide);
	if (s.at[KEY_APPROVAL_DISPATCH_WITHIN] != NULL)
		(void)value_duration(b, s.at[KEY_APPROVAL_DISPATCH_WITHIN], "dispatch_within", 1000,
			DISPATCH_MAX_MS, &dispatch);
	floor.quorum = quorum_read(b, &s, effect);
	floor.roles = s.at[KEY_APPROVAL_ROLES];
	if (floor.roles != NULL && floor.quorum == 0 && !leaves(effect))
		fault(b, floor.roles->key_at, "roles are of who signs; with quorum 0 nobody does");
	put_key(w, "approval");
	canon_object_begin(w);
	put_key(w, "decide_within_ms");
	canon_u64(w, decide);
	put_key(w, "dispatch_within_ms");
	canon_u64(w, dispatch);
	put_key(w, "quorum");
	canon_int(w, floor.quorum);
	roles_write(b, floor.roles, w);
	tiers_write(b, op, s.at[KEY_APPROVAL_TIERS], &floor, w);
	canon_object_end(w);
}

/* ---- budgets ---- */

void
budgets_write(struct builder *b, const struct section *op, struct canon_writer *w)
{
	static const struct {
		enum key_id key;
		const char *name;
		bool money;
	} rows[] = {{KEY_BUDGETS_TASK_AMOUNT, "task_amount", true},
		{KEY_BUDGETS_TASK_USES, "task_uses", false},
		{KEY_BUDGETS_TENANT_DAY_AMOUNT, "tenant_day_amount", true},
		{KEY_BUDGETS_TENANT_DAY_USES, "tenant_day_uses", false}};
	const struct node *n = op->at[KEY_OPERATION_BUDGETS];
	struct section s;

	if (n == NULL || !section_read(b, SECTION_BUDGETS, n, &s))
		return;
	if (n->first == NULL)
		fault(b, n->at, "budgets limits nothing; take it away");
	put_key(w, "budgets");
	canon_object_begin(w);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct node *v = s.at[rows[i].key];
		int64_t limit = 1;

		if (v == NULL)
			continue;
		(void)value_int(b, v, rows[i].name, 1, CANON_INT_MAX, &limit);
		if (rows[i].money && op->at[KEY_OPERATION_AMOUNT] == NULL)
			fault(b, v->key_at, "%s is money; say which parameter is the amount",
				rows[i].name);
		put_key(w, rows[i].name);
		canon_int(w, limit);
	}
	canon_object_end(w);
}
