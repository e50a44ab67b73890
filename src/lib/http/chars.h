/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Byte classes of RFC 9110, 9112 and 3986, for the files of this folder. One table, so that
 * reader and writer cannot disagree about which bytes are legal where.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum {
	CHAR_TOKEN = 1, /* tchar: names, methods */
	CHAR_LINE = 2,  /* inside a line of a head: all but controls (HTAB is fine) and DEL */
	CHAR_PATH = 4,  /* pchar without '%', and '/' */
	CHAR_QUERY = 8, /* printable, as browsers leave it raw; never '#' '"' '<' '>' '%' */
	CHAR_HEX = 16,
};

extern const uint8_t http_chars[256];

static inline bool
char_is(uint8_t c, uint8_t class)
{
	return (http_chars[c] & class) != 0;
}

/* Value of a digit for which CHAR_HEX holds. */
static inline uint8_t
char_hex(uint8_t c)
{
	return (uint8_t)(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
}
