/* SPDX-License-Identifier: Apache-2.0 */
/* Lines; see lines.h. */
#include "cli/lines.h"

#include <errno.h>

void
lines_init(struct lines *l, size_t max)
{
	*l = (struct lines){0};
	buf_init(&l->line, max);
}

void
lines_done(struct lines *l)
{
	buf_done(&l->line);
}

int
lines_next(struct lines *l, struct view *in, struct view *ret, struct err *err)
{
	const uint8_t *end;
	size_t n;

	if (l->told)
		buf_clear(&l->line);
	l->told = false;
	if (in->n == 0)
		return 0;
	end = memchr(in->p, '\n', in->n);
	n = end != NULL ? (size_t)(end - in->p) : in->n;
	buf_add(&l->line, in->p, n);
	if (buf_check(&l->line) < 0)
		return err_set(err, -EMSGSIZE, "a line is longer than %zu bytes", l->line.max);
	*in = view_skip(*in, end != NULL ? n + 1 : n);
	if (end == NULL)
		return 0;
	l->told = true;
	*ret = buf_view(&l->line);
	return 1;
}

int
lines_end(const struct lines *l, struct err *err)
{
	if (l->told || l->line.n == 0)
		return 0;
	return err_set(err, -EBADMSG, "the last line is cut off");
}
