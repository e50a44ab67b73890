/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stranger's strict JSON (parse.h) into canonical bytes (lib/canon/profile.h): the relay makes proposals of a sandbox with it, the api
 * those of trusted host code. What the profile has no form for is refused with a sentence that names the place; nothing is
 * rounded, dropped, renamed or normalised. Order of keys and white space are all that gets lost: the same value always gives the same bytes.
 *
 * Refused on purpose, though it is JSON: numbers with a fraction or an exponent, even 42.00; integers beyond 2^53 - 1; keys
 * that are not [A-Za-z][A-Za-z0-9_]*; keys that come twice (parse.h); control characters but newline and tab; noncharacters; more than 16
 * levels; more than 256 KiB. "-0" is 0. Absent, null and "" stay three different things.
 *
 * Whether a string is NFC or may have a newline is not asked here: the operation's schema knows which of its fields are identifiers.
 */
#pragma once

#include "lib/base/buf.h"
#include "lib/base/err.h"

#include <jansson.h>

/* As the messages PROPOSE and PROPOSAL_CREATE carry it. */
enum { PROPOSAL_TEXT_MAX = 32768, PROPOSAL_NOTE_MAX = 2048, PROPOSAL_CANONICAL_MAX = 36864 };

/*
 * Appends the bytes of one value to `out`. `name` is what the value is called in sentences ("arguments"). 0, -EINVAL (no form in the
 * profile), -E2BIG (depth or size), -ENOBUFS (the ceiling of `out`), -ENOMEM; then `out` is as before.
 */
int canonical_json(
	const json_t *value, const char *name, struct buf *out, struct err *err) MUST_CHECK;

/*
 * Appends {"arguments":...,"note":"...","operation":"..."}; no note is "". That the name of the operation and the note are within their
 * bounds was asked by whoever read them.
 */
int canonical_proposal(struct view operation, const json_t *arguments, struct view note,
	struct buf *out, struct err *err) MUST_CHECK;

/*
 * The whole way: the text of a program, {"operation": name, "arguments": {...}, "note": text or absent} and no other field, at
 * most PROPOSAL_TEXT_MAX bytes. Refusals as above and those of json_parse.
 */
int canonical_proposal_parse(struct view text, struct buf *out, struct err *err) MUST_CHECK;

/* The rule for names of operations, for tables of fields: [a-z][a-z0-9_]*, at most 63 bytes; and what completes "must be ...". */
bool operation_name_ok(struct view v);
#define OPERATION_NAME_SAYS "the name of an operation: a-z, 0-9 and _, starting with a letter"
