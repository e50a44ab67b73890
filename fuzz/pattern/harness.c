/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzing of patterns: up to the first NUL the pattern, behind it the text. pattern_check and pattern_match agree about what is a pattern, and only
 * well-formed text of bounded length matches.
 */
#include "lib/action/pattern.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	const uint8_t *end = n == 0 ? NULL : memchr(data, 0, n);
	struct view pattern = view_of(data, end == NULL ? n : (size_t)(end - data));
	struct view text = end == NULL ? view_of(NULL, 0)
				       : view_skip(view_of(data, n), pattern.n + 1);
	struct err err = {0};
	int checked = pattern_check(pattern, &err), e;

	e = pattern_match(pattern, text, &err);
	must((checked < 0) == (e < 0));
	must(e < 0 || e == pattern_match(pattern, text, &err));
	if (e == 1)
		must(view_utf8(text) && text.n <= PATTERN_TEXT_MAX);
	return 0;
}
