/* SPDX-License-Identifier: Apache-2.0 */
/* See member.h. */
#include "broker/member.h"

#include "lib/canon/read.h"

struct view
member(struct view object, struct view name)
{
	struct canon_reader r;
	struct canon_token t;
	struct err err;

	canon_reader_init(&r, object, true);
	if (canon_want(&r, CANON_OBJECT_BEGIN, &t, &err) < 0)
		return view_of(NULL, 0);
	while (canon_next(&r, &t, &err) == 0 && t.type == CANON_KEY) {
		bool found = view_eq(t.raw, name);
		size_t from = r.at;

		if (canon_skip(&r, &err) < 0)
			break;
		if (found)
			return view_of(object.p + from, r.at - from);
	}
	return view_of(NULL, 0);
}

bool
string_of(struct view value, struct buf *ret)
{
	struct canon_reader r;
	struct canon_token t;
	struct err err;

	canon_reader_init(&r, value, true);
	if (canon_want(&r, CANON_STR, &t, &err) < 0)
		return false;
	canon_token_text(&t, ret);
	return buf_check(ret) == 0;
}
