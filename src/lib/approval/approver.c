/* SPDX-License-Identifier: Apache-2.0 */
/* What one approver may decide; see approvers.h. */
#include "lib/approval/approvers.h"
#include "lib/approval/split.h"
#include "lib/base/clock.h"
#include "lib/base/num.h"
#include "lib/canon/read.h"

#include <errno.h>

bool
approver_lists(struct view list, struct view entry)
{
	struct view one;

	while (take_until(&list, ',', &one))
		if (view_eq(one, entry))
			return true;
	return false;
}

bool
approver_valid(const struct approver *a, uint64_t now_ms)
{
	return a->valid_until_ms == 0 || now_ms < a->valid_until_ms;
}

bool
approver_may(const struct approver *a, struct view operation)
{
	return operation.n != 0 && approver_lists(a->may, operation);
}

bool
approver_for(const struct approver *a, struct view tenant)
{
	return a->tenant.n == 0 || approver_lists(a->tenant, tenant);
}

bool
approver_has_role(const struct approver *a, const struct view *role, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (role[i].n != 0 && approver_lists(a->role, role[i]))
			return true;
	return n == 0;
}

/* The engine calls a token by its beginning alone; a uid always has its kind. */
static bool
same_principal(struct view principal, struct view who)
{
	struct view kind;

	if (view_eq(principal, who))
		return true;
	return take_until(&principal, ':', &kind) && view_is(kind, "token") &&
	       view_eq(principal, who);
}

bool
approver_is(const struct approver *a, struct view who)
{
	struct view list = a->principal, one, name = who, kind;

	while (take_until(&list, ',', &one))
		if (same_principal(one, who))
			return true;
	if (view_eq(who, a->name))
		return true;
	/* KIND:NAME with the person's own name. */
	return view_has(who, ':') && take_until(&name, ':', &kind) && view_eq(name, a->name);
}

static const struct approver_limit *
limit_of(const struct approver *a, struct view argument)
{
	for (size_t i = 0; i < a->nlimits; i++)
		if (view_eq(a->limit[i].argument, argument))
			return &a->limit[i];
	return NULL;
}

/* One member of the arguments; the reader stands behind its key. */
static bool
member_within(const struct approver *a, struct canon_reader *r, struct view key)
{
	const struct approver_limit *limit = limit_of(a, key);
	struct canon_token t;
	struct err err;

	if (limit == NULL)
		return canon_skip(r, &err) == 0;
	return canon_want(r, CANON_INT, &t, &err) == 0 && t.i <= limit->most && t.i >= -limit->most;
}

bool
approver_within(const struct approver *a, struct view arguments, struct view amount_argument)
{
	struct canon_reader r;
	struct canon_token t;
	struct err err;

	if (a->nlimits == 0)
		return true;
	if (amount_argument.n != 0 && limit_of(a, amount_argument) == NULL)
		return false;
	canon_reader_init(&r, arguments, true);
	if (canon_want(&r, CANON_OBJECT_BEGIN, &t, &err) < 0)
		return false;
	while (canon_next(&r, &t, &err) == 0 && t.type == CANON_KEY)
		if (!member_within(a, &r, t.raw))
			return false;
	return t.type == CANON_OBJECT_END && canon_want(&r, CANON_END, &t, &err) == 0;
}

/* Days from 1970-01-01 to the first of a month (1..12) of the Gregorian calendar. */
static uint64_t
days_before(uint64_t year, uint64_t month)
{
	static const unsigned before[] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334};
	uint64_t y = year - 1;
	bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

	return y * 365 + y / 4 - y / 100 + y / 400 - 719162 + before[month - 1] +
	       (leap && month > 2);
}

/* Digits only, as many as asked. */
static bool
take_digits(struct view v, size_t at, size_t n, uint64_t *ret)
{
	*ret = 0;
	for (size_t i = at; i < at + n; i++) {
		if (v.p[i] < '0' || v.p[i] > '9')
			return false;
		*ret = *ret * 10 + (uint64_t)(v.p[i] - '0');
	}
	return true;
}

int
approver_time(struct view text, uint64_t *ret_ms)
{
	uint64_t year, month, day, hour, minute, second, ms;
	char again[CLOCK_TEXT];

	if (text.n != 20 || !take_digits(text, 0, 4, &year) || !take_digits(text, 5, 2, &month) ||
		!take_digits(text, 8, 2, &day) || !take_digits(text, 11, 2, &hour) ||
		!take_digits(text, 14, 2, &minute) || !take_digits(text, 17, 2, &second))
		return -EINVAL;
	if (year < 1970 || month < 1 || month > 12 || day < 1 || hour > 23 || minute > 59 ||
		second > 59)
		return -EINVAL;
	ms = ((days_before(year, month) + day - 1) * 86400 + hour * 3600 + minute * 60 + second) *
	     1000;
	if (ms > CLOCK_MS_MAX)
		return -EINVAL;
	/* The one text of this time: no 30th of February, every mark in its place. */
	clock_text(ms, again);
	if (memcmp(text.p, again, 19) != 0 || text.p[19] != 'Z')
		return -EINVAL;
	*ret_ms = ms;
	return 0;
}
