/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a person sees of a proposal before they sign: rendered from the bytes of the record alone, complete, one `key: value` line per
 * field, the deciding ones first, nothing cut. The CLI shows it and signs its digest; the broker renders it again and compares. The
 * text reads back to the same bytes, so nothing can be left out unseen.
 *
 * Nothing but printable ASCII, accented Latin letters, kana, ideographs and Hangul stands in the text as itself, and the last three
 * kinds only in what the proposer wrote or the system of record said; anything else (controls, bidi, zero width, tags, combining marks, letters that look like
 * others or run from right to left) is a visible \u{...}.
 *
 * The operation is needed for one line, the amount: its argument, currency and exponent stand in the schema, whose digest is in the record. An
 * operation with another schema digest is refused.
 */
#pragma once

#include "lib/action/operation.h"
#include "lib/base/buf.h"

enum { DISPLAY_BYTES_MAX = 1 << 20 };

/* -EINVAL: the record has a field that there is no line for, lacks one, or has one of another type; or the operation is another. */
int display_render(struct view record, const struct operation *op, struct buf *out,
	struct err *err) MUST_CHECK;

/* Back to the bytes of the record; -EINVAL unless rendering these gives exactly this text. */
int display_parse(struct view text, const struct operation *op, struct buf *ret_record,
	struct err *err) MUST_CHECK;

/* SHA-256 of the text: `display` of a decision. */
void display_digest(struct view text, uint8_t ret[static SHA256_BYTES]);

/* Text of the model or of anybody, escaped the same way, for what stands beside a display. */
void display_escape(struct view text, struct buf *out);
