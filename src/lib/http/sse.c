/* SPDX-License-Identifier: Apache-2.0 */
/* Event-stream frames; see sse.h. */
#include "lib/http/sse.h"

#include <errno.h>

static bool
printable(struct view v)
{
	for (size_t i = 0; i < v.n; i++)
		if (v.p[i] < 0x20 || v.p[i] > 0x7e)
			return false;
	return true;
}

static bool
name_legal(const char *name)
{
	size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyz_");

	return n > 0 && name[n] == '\0';
}

/* A frame that did not fit leaves nothing behind. */
static int
finish(struct buf *out, size_t start)
{
	int r = buf_check(out);

	if (r < 0)
		out->n = start;
	return r;
}

int
sse_frame(struct buf *out, const char *name, struct view data)
{
	size_t start = out->n;

	if (!printable(data) || (name != NULL && !name_legal(name)))
		return -EINVAL;
	if (name != NULL) {
		buf_add_str(out, "event: ");
		buf_add_str(out, name);
		buf_add_byte(out, '\n');
	}
	buf_add_str(out, "data: ");
	buf_add_view(out, data);
	buf_add_str(out, "\n\n");
	return finish(out, start);
}

int
sse_comment(struct buf *out, struct view text)
{
	size_t start = out->n;

	if (!printable(text))
		return -EINVAL;
	buf_add_str(out, ": ");
	buf_add_view(out, text);
	buf_add_str(out, "\n\n");
	return finish(out, start);
}
