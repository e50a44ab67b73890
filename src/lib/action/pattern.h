/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Patterns of string parameters: characters and [classes] one after the other, each with ? * + {m} {m,n} {m,} behind it. No groups, no
 * alternatives, no "any character", no negation: a pattern names what is allowed. The whole text must match. A match is one walk over
 * the text with the set of places where it can be, so its time is (places x characters) at most, whatever the pattern.
 *
 * "\" takes the special meaning from one of \ [ ] ( ) { } ? * + . ^ $ | - ; these stand for themselves only behind it (inside a class only
 * \ [ ] ^ - need it). There are no other escapes: \d is refused, [0-9] says it.
 */
#pragma once

#include "lib/base/err.h"
#include "lib/base/view.h"

enum {
	PATTERN_BYTES_MAX = 256,
	PATTERN_REPEAT_MAX = 256,
	PATTERN_TEXT_MAX = 1024, /* of what a parameter with a pattern can hold */
};

/* Is this a pattern: -EINVAL with what to write instead. */
int pattern_check(struct view pattern, struct err *err) MUST_CHECK;

/* 1: the whole text matches, 0: it does not, -EINVAL: not a pattern. */
int pattern_match(struct view pattern, struct view text, struct err *err) MUST_CHECK;
