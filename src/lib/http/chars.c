/* SPDX-License-Identifier: Apache-2.0 */
/* The table of byte classes; see chars.h. A byte that is not listed is a control: no class. */
#include "lib/http/chars.h"

#define T CHAR_TOKEN
#define L CHAR_LINE
#define P CHAR_PATH
#define Q CHAR_QUERY
#define H CHAR_HEX

const uint8_t http_chars[256] = {
	['\t'] = L,
	[' '] = L,
	['!'] = T | L | P | Q,
	['"'] = L,
	['#'] = T | L,
	['$'] = T | L | P | Q,
	['%'] = T | L,
	['&'] = T | L | P | Q,
	['\''] = T | L | P | Q,
	['(' ... ')'] = L | P | Q,
	['*' ... '+'] = T | L | P | Q,
	[','] = L | P | Q,
	['-' ... '.'] = T | L | P | Q,
	['/'] = L | P | Q,
	['0' ... '9'] = T | L | P | Q | H,
	[':' ... ';'] = L | P | Q,
	['<'] = L,
	['='] = L | P | Q,
	['>'] = L,
	['?'] = L | Q,
	['@'] = L | P | Q,
	['A' ... 'F'] = T | L | P | Q | H,
	['G' ... 'Z'] = T | L | P | Q,
	['[' ... ']'] = L | Q,
	['^'] = T | L | Q,
	['_'] = T | L | P | Q,
	['`'] = T | L | Q,
	['a' ... 'f'] = T | L | P | Q | H,
	['g' ... 'z'] = T | L | P | Q,
	['{'] = L | Q,
	['|'] = T | L | Q,
	['}'] = L | Q,
	['~'] = T | L | P | Q,
	[0x80 ... 0xff] = L,
};
