/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is kept of a provider's answer: the allow-listed fields of its JSON, as one canonical object. The answer is hostile: strict JSON
 * within bounds, strings of at most 1 KiB without control characters, integers and booleans; any other value is as if it were not
 * there. A value that has a secret in it is replaced by a mark. Pure but for the judge that is handed in; fuzz/provider.
 */
#pragma once

#include "lib/action/request.h"
#include "lib/base/buf.h"

#include <jansson.h>

#define ANSWER_REDACTED "[redacted]"

struct answer_judge {
	bool (*leaks)(void *owner, struct view text); /* does it have a secret in it */
	void *owner;                                  /* borrowed */
};

/* A new reference; -EINVAL, -E2BIG: not strict JSON within the bounds. */
int answer_parse(struct view body, json_t **ret, struct err *err) MUST_CHECK;

/* The value at a dotted path ("data.0.id"); NULL: there is none. Borrowed. */
const json_t *answer_at(const json_t *root, struct view path);

/*
 * Appends the object of these fields to out, names with dots as `__`, ascending. *ret_redacted: a value was. -E2BIG: more than `max` bytes.
 */
int answer_keep(const json_t *root, const struct answer_field *fields, size_t n,
	const struct answer_judge *judge, size_t max, struct buf *out, bool *ret_redacted,
	struct err *err) MUST_CHECK;

/* Does the JSON value say the same as this value of canonical arguments (`"text"`, 12, true)? */
bool answer_same(const json_t *value, struct view canonical);

/* reading.c: by the vault of this broker. */
struct broker;
struct answer_judge judge_of(struct broker *b);
