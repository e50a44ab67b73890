/* SPDX-License-Identifier: Apache-2.0 */
/* The file of approvers: reading; see approvers.h. One line is NAME, options, key type, key, and perhaps a comment, with one blank between. */
#include "lib/approval/approvers.h"

#include "lib/approval/split.h"
#include "lib/base/base64.h"
#include "lib/base/name.h"
#include "lib/base/num.h"

#include <errno.h>

struct line {
	struct approver *a;
	struct buf *keys;
	unsigned seen; /* 1 << row of options */
};
typedef int option_fn(struct approver *a, struct view value, struct err *err);

bool
approver_name_ok(struct view name)
{
	if (name.n == 0 || name.n > APPROVER_NAME_MAX || name.p[0] < 'a' || name.p[0] > 'z')
		return false;
	for (size_t i = 0; i < name.n; i++) {
		uint8_t c = name.p[i];

		if ((c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '.' && c != '_' &&
			c != '-')
			return false;
	}
	return true;
}

/* Operations, parameters: [a-z][a-z0-9_]*; with `upper` as keys of the canonical form. */
static bool
word_ok(struct view v, bool upper)
{
	for (size_t i = 0; i < v.n; i++) {
		uint8_t c = v.p[i];
		bool letter = (c >= 'a' && c <= 'z') || (upper && c >= 'A' && c <= 'Z');

		if (!letter && (i == 0 || (c != '_' && (c < '0' || c > '9'))))
			return false;
	}
	return v.n != 0 && v.n <= APPROVER_WORD_MAX;
}

static bool
operation_ok(struct view v)
{
	return word_ok(v, false);
}

/* "uid:" and a number, or "token:" and the beginning of a token as the engine keeps it: one of another form, or all of it, would be nobody. */
static bool
principal_ok(struct view v)
{
	struct view kind;
	uint64_t uid;

	if (v.n > APPROVER_PRINCIPAL_MAX || !view_has(v, ':') || !take_until(&v, ':', &kind))
		return false;
	if (view_is(kind, "uid"))
		return num_u64(v, UINT32_MAX, &uid) == 0;
	for (size_t i = 0; i < v.n; i++) {
		uint8_t c = v.p[i];

		if ((c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_')
			return false;
	}
	return view_is(kind, "token") && v.n >= 4 && v.n <= 16;
}

/* A list that is not empty, each entry once. */
static int
check_list(struct view list, bool (*ok)(struct view v), const char *what, const char *wants,
	struct err *err)
{
	struct view rest = list, entry;
	size_t n = 0;

	while (take_until(&rest, ',', &entry)) {
		if (!ok(entry))
			return err_set(err, -EINVAL, "%s= wants %s, not \"%.*s\"", what, wants,
				(int)(entry.n < 64 ? entry.n : 64), (const char *)entry.p);
		if (++n > APPROVER_LIST_MAX)
			return err_set(err, -EINVAL, "%s= has more than %d entries", what,
				APPROVER_LIST_MAX);
		if (rest.p != NULL && approver_lists(rest, entry))
			return err_set(err, -EINVAL, "%s= has an entry twice", what);
	}
	return 0;
}

static int
read_may(struct approver *a, struct view value, struct err *err)
{
	a->may = value;
	return check_list(value, operation_ok, "may", "names of operations", err);
}

static int
read_role(struct approver *a, struct view value, struct err *err)
{
	a->role = value;
	return check_list(value, approver_name_ok, "role", "names of roles", err);
}

static int
read_tenant(struct approver *a, struct view value, struct err *err)
{
	a->tenant = value;
	return check_list(value, name_ok, "tenant", "names of tenants", err);
}

static int
read_principal(struct approver *a, struct view value, struct err *err)
{
	a->principal = value;
	return check_list(value, principal_ok, "principal", "uid:NUMBER or token:PREFIX", err);
}

static int
read_up_to(struct approver *a, struct view value, struct err *err)
{
	struct view rest = value, entry, argument;
	uint64_t most;

	while (take_until(&rest, ',', &entry)) {
		if (!view_has(entry, ':') || !take_until(&entry, ':', &argument) ||
			!word_ok(argument, true) || num_u64(entry, INT64_MAX >> 10, &most) < 0)
			return err_set(
				err, -EINVAL, "up-to= wants ARGUMENT:NUMBER, a whole number");
		if (a->nlimits == APPROVER_LIMITS_MAX)
			return err_set(err, -EINVAL, "up-to= has more than %d entries",
				APPROVER_LIMITS_MAX);
		for (size_t i = 0; i < a->nlimits; i++)
			if (view_eq(a->limit[i].argument, argument))
				return err_set(err, -EINVAL, "up-to= has an argument twice");
		a->limit[a->nlimits++] = (struct approver_limit){argument, (int64_t)most};
	}
	return 0;
}

static int
read_valid_until(struct approver *a, struct view value, struct err *err)
{
	if (approver_time(value, &a->valid_until_ms) < 0 || a->valid_until_ms == 0)
		return err_set(err, -EINVAL, "valid-until= wants a time like 2026-11-29T16:13:04Z");
	return 0;
}

static int
read_verify_required(struct approver *a, struct view value, struct err *err)
{
	(void)value;
	(void)err;
	a->verify_required = true;
	return 0;
}

static const struct {
	const char *name;
	bool alone; /* no value */
	option_fn *read;
} options[] = {
	{"may=", false, read_may},
	{"role=", false, read_role},
	{"up-to=", false, read_up_to},
	{"tenant=", false, read_tenant},
	{"principal=", false, read_principal},
	{"valid-until=", false, read_valid_until},
	{"verify-required", true, read_verify_required},
};

/* 1: the word is an option and was read; 0: it is none. */
static int
read_option(struct line *l, struct view word, struct err *err)
{
	for (unsigned i = 0; i < ARRAY_LEN(options); i++) {
		const char *name = options[i].name;

		if (options[i].alone ? !view_is(word, name) : !view_starts(word, name))
			continue;
		if ((l->seen >> i & 1) != 0)
			return err_set(err, -EINVAL, "%s stands there twice", name);
		l->seen |= 1U << i;
		if (options[i].read(l->a, view_skip(word, strlen(name)), err) < 0)
			return err->code;
		return 1;
	}
	return 0;
}

static int
read_key(struct line *l, struct view type, struct view text, struct err *err)
{
	size_t at = l->keys->n;
	int r;

	if (base64_decode(text, l->keys) < 0)
		return err_set(err, -EINVAL, "the key is not in base 64");
	r = sshkey_read(view_of(l->keys->p + at, l->keys->n - at), &l->a->key, err);
	if (r < 0)
		return err->code = -EINVAL;
	if (!view_is(type, sshkey_type(l->a->key.kind)))
		return err_set(err, -EINVAL, "the key is of another type than the line says");
	return 0;
}

static bool
printable(struct view v)
{
	for (size_t i = 0; i < v.n; i++)
		if (v.p[i] < ' ' || v.p[i] == 0x7f)
			return false;
	return view_utf8(v);
}

static int
read_line(struct line *l, struct err *err)
{
	struct view rest = l->a->line, word;
	int r = 1;

	if (rest.n > APPROVER_LINE_MAX || !printable(rest))
		return err_set(err, -EINVAL, "the line is too long or has a control character");
	if (!take_until(&rest, ' ', &l->a->name) || !approver_name_ok(l->a->name))
		return err_set(err, -EINVAL, "it begins with a name: a-z, then a-z 0-9 . _ -");
	while (r == 1) {
		if (!take_until(&rest, ' ', &word) || word.n == 0)
			return err_set(err, -EINVAL, "a key is missing, or there are two blanks");
		r = read_option(l, word, err);
	}
	if (r < 0)
		return r;
	/* What is no option is the type of the key. */
	struct view type = word, text;

	if (!take_until(&rest, ' ', &text))
		return err_set(err, -EINVAL, "there is no key behind \"%.*s\"",
			(int)(type.n < 64 ? type.n : 64), (const char *)type.p);
	r = read_key(l, type, text, err);
	if (r == 0 && l->a->verify_required && l->a->key.application.n == 0)
		return err_set(err, -EINVAL, "verify-required is for hardware keys");
	return r;
}

static bool
known_name(const struct approvers *a, struct view name)
{
	for (size_t i = 0; i < a->n; i++)
		if (view_eq(a->a[i].name, name))
			return true;
	return false;
}

/* Adds one line to the table, or says what is wrong with it. */
static int
add_line(struct approvers *a, struct view text, struct err *err)
{
	struct approver *one = &a->a[a->n];
	struct line l = {.a = one, .keys = &a->keys};

	if (text.n == 0 || text.p[0] == '#')
		return printable(text) ? 0 : err_set(err, -EINVAL, "a control character");
	*one = (struct approver){.line = text};
	if (read_line(&l, err) < 0)
		return err->code;
	if (approvers_find(a, one->key.blob) != NULL)
		return err_set(err, -EINVAL, "the key stands there already");
	if (!known_name(a, one->name))
		a->people++;
	a->n++;
	return 0;
}

static int
read_all(struct approvers *a, struct err *err)
{
	struct view rest = a->file, text;
	size_t number = 0;

	while (rest.n != 0) {
		must(take_until(&rest, '\n', &text));
		if (rest.p == NULL)
			return err_set(err, -EINVAL, "its last line has no end: it may be cut off");
		if (++number > APPROVERS_MAX)
			return err_set(err, -EINVAL, "more than %d lines", APPROVERS_MAX);
		if (add_line(a, text, err) < 0)
			return err_context(err, "line %zu", number);
	}
	return 0;
}

int
approvers_read(struct view file, struct approvers *ret, struct err *err)
{
	auto_approvers struct approvers a = {0};
	uint8_t *copy;

	if (file.n > APPROVERS_BYTES_MAX)
		return err_set(err, -EINVAL, "the file of approvers has more than %d bytes",
			APPROVERS_BYTES_MAX);
	copy = malloc(file.n + 1);
	a.file = view_of(copy, file.n);
	a.a = calloc(APPROVERS_MAX, sizeof(*a.a));
	/* All keys fit at once, so that views into the buffer stay where they are. */
	buf_init(&a.keys, file.n + 1);
	if (copy == NULL || a.a == NULL || buf_room(&a.keys, file.n + 1) == NULL)
		return err_set(err, -ENOMEM, "no memory for the file of approvers");
	if (file.n != 0)
		memcpy(copy, file.p, file.n);
	sha256_of(file, a.digest);
	if (read_all(&a, err) < 0)
		return err_context(err, "approvers");
	*ret = a;
	a = (struct approvers){0};
	return 0;
}

void
approvers_done(struct approvers *a)
{
	free(a->a);
	free((void *)(uintptr_t)a->file.p);
	buf_done(&a->keys);
	*a = (struct approvers){0};
}

const struct approver *
approvers_find(const struct approvers *a, struct view key_blob)
{
	for (size_t i = 0; i < a->n; i++)
		if (view_eq(a->a[i].key.blob, key_blob))
			return &a->a[i];
	return NULL;
}
