/* SPDX-License-Identifier: Apache-2.0 */
/* See index.h. */
#include "broker/index.h"

#include "broker/limits.h"
#include "broker/member.h"

#include <errno.h>
#include <inttypes.h>

static char yes;

void
index_init(struct index *x)
{
	*x = (struct index){0};
	map_init(&x->proposal);
	map_init(&x->execution);
	map_init(&x->key);
	map_init(&x->receipt);
	map_init(&x->revoked);
	map_init(&x->released);
	map_init(&x->accepted);
	map_init(&x->contained);
}

static void
free_value(struct view key, void *value)
{
	(void)key;
	free(value);
}

void
index_done(struct index *x)
{
	map_each(&x->accepted, free_value);
	map_each(&x->contained, free_value);
	map_done(&x->proposal);
	map_done(&x->execution);
	map_done(&x->key);
	map_done(&x->receipt);
	map_done(&x->revoked);
	map_done(&x->released);
	map_done(&x->accepted);
	map_done(&x->contained);
	while (x->first != NULL) {
		struct spent *s = x->first;

		x->first = s->next;
		free(s->account);
		free(s->settled_by);
		free(s);
	}
}

void
index_receipt_key(struct buf *b, struct view provider, struct view account, struct view receipt)
{
	buf_add_view(b, provider);
	buf_add_byte(b, 0);
	buf_add_view(b, account);
	buf_add_byte(b, 0);
	buf_add_view(b, receipt);
}

struct view
receipt_id(struct view receipt)
{
	/* As it is written: a number and a string are two. */
	return member(receipt, view_str("reference"));
}

static bool
text_put(char *to, size_t n, struct view v)
{
	if (v.n >= n || view_has(v, 0))
		return false;
	memcpy(to, v.p, v.n);
	to[v.n] = '\0';
	return true;
}

static bool
outcome_of(struct view word, enum outcome *ret)
{
	if (view_is(word, "succeeded"))
		*ret = OUTCOME_SUCCEEDED;
	else if (view_is(word, "failed"))
		*ret = OUTCOME_FAILED;
	else if (view_is(word, "unknown"))
		*ret = OUTCOME_UNKNOWN;
	else
		return false;
	return true;
}

static int
check_spent(const struct index *x, const struct entry *e, struct err *err)
{
	struct spent s;

	if (!text_put(s.execution, sizeof(s.execution), e->execution) ||
		!text_put(s.proposal, sizeof(s.proposal), e->proposal) ||
		!text_put(s.task, sizeof(s.task), e->task) ||
		!text_put(s.tenant, sizeof(s.tenant), e->tenant) ||
		!text_put(s.key, sizeof(s.key), e->key))
		return err_set(err, -EBADMSG, "a name is too long");
	if (map_find(&x->proposal, e->proposal) != NULL)
		return err_set(err, -EBADMSG, "%s was spent already", s.proposal);
	if (map_find(&x->execution, e->execution) != NULL)
		return err_set(err, -EBADMSG, "%s was there already", s.execution);
	if (map_find(&x->key, e->key) != NULL)
		return err_set(err, -EBADMSG, "the key of %s was used already", s.proposal);
	return 0;
}

int
index_check(const struct index *x, const struct entry *e, struct err *err)
{
	const struct spent *s;
	enum outcome outcome;

	switch (e->kind) {
	case ENTRY_SPENT:
		return check_spent(x, e, err);
	case ENTRY_ENDED:
	case ENTRY_SETTLED:
		s = map_find(&x->execution, e->execution);
		if (s == NULL)
			return err_set(err, -EBADMSG, "an execution ends that was not spent");
		if (!outcome_of(e->outcome, &outcome))
			return err_set(err, -EBADMSG, "an end of no known kind");
		if (s->outcome == OUTCOME_SUCCEEDED || s->outcome == OUTCOME_FAILED)
			return err_set(err, -EBADMSG, "%s ended already", s->execution);
		return 0;
	case ENTRY_EPOCH:
		if (e->epoch != x->epoch + 1)
			return err_set(err, -EBADMSG, "epoch %" PRIu64 " after %" PRIu64, e->epoch,
				x->epoch);
		return 0;
	case ENTRY_RELEASED:
	case ENTRY_ACCEPTED:
	case ENTRY_REVOKED:
	case ENTRY_CONTAINED:
		return 0;
	case ENTRY_KINDS:
		break;
	}
	return err_set(err, -EBADMSG, "an entry of no known kind");
}

static int
add_spent(struct index *x, const struct entry *e)
{
	auto_free struct spent *s = calloc(1, sizeof(*s));
	auto_free char *account = malloc(e->provider.n + e->account.n + 2);

	if (s == NULL || account == NULL)
		return -ENOMEM;
	must(text_put(s->execution, sizeof(s->execution), e->execution) &&
		text_put(s->proposal, sizeof(s->proposal), e->proposal) &&
		text_put(s->task, sizeof(s->task), e->task) &&
		text_put(s->tenant, sizeof(s->tenant), e->tenant) &&
		text_put(s->key, sizeof(s->key), e->key));
	memcpy(account, e->provider.p, e->provider.n);
	account[e->provider.n] = '\0';
	memcpy(account + e->provider.n + 1, e->account.p, e->account.n);
	account[e->provider.n + 1 + e->account.n] = '\0';
	memcpy(s->record, e->record, SHA256_BYTES);
	s->ms = e->ms;
	/* All three or none: a later failure leaves names of an object that stays. */
	s->account = take_ptr(account);
	s->next = x->first;
	x->first = s;
	if (map_put(&x->proposal, e->proposal, s) < 0 || map_put(&x->key, e->key, s) < 0 ||
		map_put(&x->execution, e->execution, s) < 0) {
		s = NULL; /* owned by the list */
		return -ENOMEM;
	}
	s = NULL;
	return 0;
}

static int
add_ended(struct index *x, const struct entry *e, uint64_t at, size_t n)
{
	struct spent *s = map_find(&x->execution, e->execution);
	struct view id = receipt_id(e->receipt);

	must(s != NULL && outcome_of(e->outcome, &s->outcome));
	s->ended_ms = e->ms;
	s->ended_at = at;
	s->ended_n = n;
	if (id.n != 0) {
		auto_buf struct buf key = {.max = LIMIT_ENTRY_BYTES};
		struct view provider = view_str(s->account);
		struct view account = view_str(s->account + provider.n + 1);

		index_receipt_key(&key, provider, account, id);
		if (buf_check(&key) < 0)
			return -ENOMEM;
		/* The first one keeps it; the second was an incident. */
		if (map_find(&x->receipt, buf_view(&key)) == NULL &&
			map_put(&x->receipt, buf_view(&key), s) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int
add_settled(struct index *x, const struct entry *e)
{
	struct spent *s = map_find(&x->execution, e->execution);
	char *by = strndup((const char *)e->approver.p, e->approver.n);

	if (by == NULL)
		return -ENOMEM;
	must(s != NULL && outcome_of(e->outcome, &s->outcome));
	free(s->settled_by);
	s->settled_by = by;
	s->settled = true;
	s->ended_ms = e->ms;
	return 0;
}

static int
add_accepted(struct index *x, const struct entry *e)
{
	struct view key = view_of(e->decision, SHA256_BYTES);
	auto_free uint64_t *ms = malloc(sizeof(*ms));

	if (map_find(&x->accepted, key) != NULL)
		return 0; /* the first time counts */
	if (ms == NULL)
		return -ENOMEM;
	*ms = e->ms;
	if (map_put(&x->accepted, key, ms) < 0)
		return -ENOMEM;
	ms = NULL;
	return 0;
}

static int
set_contained(struct index *x, struct view scope, bool is)
{
	bool *there = map_find(&x->contained, scope);

	if (there == NULL) {
		there = malloc(sizeof(*there));
		if (there == NULL)
			return -ENOMEM;
		if (map_put(&x->contained, scope, there) < 0) {
			free(there);
			return -ENOMEM;
		}
	}
	*there = is;
	return 0;
}

int
index_add(struct index *x, const struct entry *e, uint64_t at, size_t n, struct err *err)
{
	int r = index_check(x, e, err);

	if (r < 0)
		return r;
	switch (e->kind) {
	case ENTRY_SPENT:
		r = add_spent(x, e);
		break;
	case ENTRY_ENDED:
		r = add_ended(x, e, at, n);
		break;
	case ENTRY_SETTLED:
		r = add_settled(x, e);
		break;
	case ENTRY_ACCEPTED:
		r = add_accepted(x, e);
		break;
	case ENTRY_REVOKED:
		r = map_put(&x->revoked, e->proposal, &yes);
		break;
	case ENTRY_CONTAINED:
		r = set_contained(x, e->scope, true);
		break;
	case ENTRY_RELEASED:
		r = map_put(&x->released, view_of(e->record, SHA256_BYTES), &yes);
		if (r == 0)
			r = set_contained(x, e->scope, false);
		break;
	case ENTRY_EPOCH:
		x->epoch = e->epoch;
		break;
	case ENTRY_KINDS:
		must(false);
	}
	return r < 0 ? err_set(err, r, "no memory for the index of the ledger") : 0;
}
