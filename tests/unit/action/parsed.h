/* SPDX-License-Identifier: Apache-2.0 */
/* Operations for the tests of this folder: a document of the sample, changed in one place, and read. */
#pragma once

#include "tests/actions/sample.h"

struct parsed {
	struct buf document;
	struct operation op;
	struct err err;
	int code;
};

/* The document `name` with the first `from` replaced by `to` (both with ' for "; NULL = as it is), read. */
void parse(struct parsed *ret, const char *name, const char *from, const char *to);

/* `note` with these parameters and a literal as its body. */
void parse_parameters(struct parsed *ret, const char *parameters);

void parsed_done(struct parsed *p);
#define auto_parsed __attribute__((cleanup(parsed_done)))

/* ' becomes ". */
void quoted(const char *text, struct buf *out);
