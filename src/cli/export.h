/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One line of an audit export (NDJSON): {"number":N,"previous":"sha256:...","digest":"sha256:...","leaf":N,"record":{...}},
 * in exactly this form (`audit export` adds "proof":"hex" before the record), so that the record's own bytes, which its digest covers, are known. Made by the daemon; a file
 * may be anybody's.
 */
#pragma once

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/base/sha256.h"
#include "lib/base/view.h"

struct export_line {
	uint64_t number;
	uint64_t leaf; /* index in the tree of all records of the host */
	uint8_t previous[SHA256_BYTES], digest[SHA256_BYTES];
	struct view
		proof; /* borrowed from the line: hexadecimal digits of its inclusion proof; p NULL = it has none */
	struct view record; /* borrowed from the line */
};

/* A line without its newline; -EBADMSG. That the record is JSON is not looked at. */
int export_read(struct view line, struct export_line *ret, struct err *err) MUST_CHECK;

/* The same line with this proof (its bytes), and a newline. */
void export_write(const struct export_line *l, struct view proof, struct buf *out);
