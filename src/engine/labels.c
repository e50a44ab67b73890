/* SPDX-License-Identifier: Apache-2.0 */
/* Labels; see labels.h. */
#include "engine/labels.h"

#include "engine/limits.h"

enum { KEY_BYTES = 128, VALUE_BYTES = 4096 };

static bool
next_string(struct view *left, struct view *ret)
{
	const uint8_t *end = left->n == 0 ? NULL : memchr(left->p, '\0', left->n);

	if (end == NULL)
		return false;
	*ret = view_of(left->p, (size_t)(end - left->p));
	*left = view_skip(*left, ret->n + 1);
	return true;
}

bool
labels_next(struct view *left, struct view *ret_key, struct view *ret_value)
{
	return next_string(left, ret_key) && next_string(left, ret_value);
}

int
labels_check(struct view labels, struct err *err)
{
	struct view left = labels, key, value;
	unsigned n = 0;

	while (left.n > 0) {
		struct view before = view_of(labels.p, labels.n - left.n), old, ignored;

		if (!labels_next(&left, &key, &value) || ++n > LIMIT_LABELS)
			return REFUSE(err, BAD_REQUEST, "labels: at most %u pairs of key and value",
				(unsigned)LIMIT_LABELS);
		if (key.n == 0 || key.n > KEY_BYTES || value.n > VALUE_BYTES || !view_utf8(key) ||
			!view_utf8(value))
			return REFUSE(err, BAD_REQUEST,
				"labels: keys of 1 to %d bytes, values of up to %d, in UTF-8",
				KEY_BYTES, VALUE_BYTES);
		while (labels_next(&before, &old, &ignored))
			if (view_eq(old, key))
				return REFUSE(err, BAD_REQUEST, "labels: a key is there twice");
	}
	return 0;
}

struct view
labels_get(struct view labels, const char *name)
{
	struct view key, value;

	while (labels_next(&labels, &key, &value))
		if (view_is(key, name))
			return value;
	return view_of(NULL, 0);
}

bool
labels_match(struct view labels, struct view filter)
{
	struct view key, value, want_key, want_value;

	if (!labels_next(&filter, &want_key, &want_value))
		return true;
	while (labels_next(&labels, &key, &value))
		if (view_eq(key, want_key))
			return view_eq(value, want_value);
	return false;
}
