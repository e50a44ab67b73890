/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Canonical documents one after the other, each behind its length (u32, big-endian): what the configuration compiler writes into sealed memory
 * files. Pure.
 */
#pragma once

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/base/view.h"

/* The next document, of 1 to max bytes, off the front of rest: 1, 0 at the end, -EINVAL. `what` is the name of the whole in the sentence. */
int canon_sequence_next(struct view *rest, const char *what, size_t max, struct view *ret,
	struct err *err) MUST_CHECK;

/* A document onto the end. */
void canon_sequence_add(struct buf *b, struct view document);
