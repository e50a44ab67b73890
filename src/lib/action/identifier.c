/* SPDX-License-Identifier: Apache-2.0 */
/* What may stand before a person as an identifier; see schema.h. Pure; sees bytes of anybody. */
#include "lib/action/schema.h"
#include "lib/base/utf8.h"

/*
 * Letters that are in NFC whatever stands beside them: starters whose NFC_Quick_Check is Yes and that compose with nothing before them. All
 * combining marks are outside, so is everything that has no shape, changes direction or is private. A list of what is allowed
 * cannot be out of date in the wrong direction.
 */
static const struct {
	uint32_t from, to;
} letters[] = {
	{0x21, 0x7e}, {0xc0, 0xd6},  /* Latin-1, without the signs */
	{0xd8, 0xf6}, {0xf8, 0x24f}, /* Latin Extended */
	{0x386, 0x386},              /* Greek, without U+0387, which NFC replaces */
	{0x388, 0x38a}, {0x38c, 0x38c}, {0x38e, 0x3a1}, {0x3a3, 0x3ce},
	{0x400, 0x45f},                     /* Cyrillic */
	{0x490, 0x4ff}, {0x5d0, 0x5ea},     /* Hebrew letters */
	{0x3041, 0x3096},                   /* kana */
	{0x30a1, 0x30fa}, {0x4e00, 0x9fff}, /* unified ideographs */
	{0xac00, 0xd7a3},                   /* Hangul syllables */
};

static bool
letter(uint32_t c)
{
	for (size_t i = 0; i < ARRAY_LEN(letters); i++) {
		if (c >= letters[i].from && c <= letters[i].to)
			return true;
	}
	return false;
}

bool
identifier_ok(struct view v)
{
	if (v.n == 0)
		return false;
	while (v.n > 0) {
		uint32_t c = 0;
		int n = utf8_next(v, &c);

		if (n < 0 || !letter(c))
			return false;
		v = view_skip(v, (size_t)n);
	}
	return true;
}

bool
identifier_ascii(struct view v)
{
	for (size_t i = 0; i < v.n; i++) {
		if (v.p[i] <= 0x20 || v.p[i] >= 0x7f)
			return false;
	}
	return v.n > 0;
}
