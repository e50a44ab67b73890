/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arguments against the parameters of an operation. In: the canonical object that a relay (or the api) made of a stranger's JSON. Out:
 * the canonical object that is stored, digested, shown and sent: every parameter checked, defaults put in, no other field at any
 * depth. Nothing is repaired. A refusal names the field and what it must be, so that a model can correct itself.
 */
#pragma once

#include "lib/action/operation.h"
#include "lib/base/buf.h"

enum { ARGUMENTS_BYTES_MAX = 32768 };

/*
 * Appends the canonical arguments to `out`, and to `defaulted` the names of the parameters whose default was put in, NUL-terminated
 * (top level). -EINVAL with the sentence.
 */
int schema_apply(const struct operation *op, struct view arguments, struct buf *out,
	struct buf *defaulted, struct err *err) MUST_CHECK;

/*
 * The amount of arguments that schema_apply made; 0 when the operation has none. Of other bytes, where it is not to be found, INT64_MAX: above
 * every limit and in the highest tier.
 */
int64_t schema_amount(const struct operation *op, struct view arguments);

/*
 * May this go into a record and before a person as an identifier: NFC, no blank, control, format, bidi or private character. Decided without
 * a Unicode library by a list of letters that are in NFC whatever stands beside them; everything else is refused, never rewritten
 * (two spellings of one name would be two digests, or one name for two). Scripts that need combining marks are therefore refused.
 */
bool identifier_ok(struct view v);

/* What a parameter with `identifier` and without a pattern may have: U+0021..U+007E. */
bool identifier_ascii(struct view v);
