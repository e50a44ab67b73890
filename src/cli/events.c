/* SPDX-License-Identifier: Apache-2.0 */
/* Reader of event streams; see events.h. */
#include "cli/events.h"

#include "cli/limits.h"

#include <errno.h>

void
events_init(struct events *e)
{
	*e = (struct events){0};
	buf_init(&e->line, LIMIT_EVENT_BYTES);
	buf_init(&e->data, LIMIT_EVENT_BYTES);
}

void
events_done(struct events *e)
{
	buf_done(&e->line);
	buf_done(&e->data);
}

static int
bad(const char *what, struct err *err)
{
	return err_set(err, -EBADMSG, "the daemon's event stream is broken: %s", what);
}

/* A complete line that is not empty. */
static int
take_line(struct events *e, struct err *err)
{
	struct view line = buf_view(&e->line);

	if (line.p[0] == ':')
		return 0;
	if (view_starts(line, "event: ")) {
		line = view_skip(line, 7);
		if (e->name[0] != '\0' || e->has_data || line.n == 0 || line.n > EVENTS_NAME_MAX)
			return bad("a name that is too long or in the wrong place", err);
		memcpy(e->name, line.p, line.n);
		e->name[line.n] = '\0';
		return 0;
	}
	if (view_starts(line, "data: ")) {
		if (e->has_data)
			return bad("two data lines", err);
		buf_add_view(&e->data, view_skip(line, 6));
		e->has_data = true;
		return 0;
	}
	return bad("an unknown line", err);
}

int
events_next(struct events *e, struct view *in, struct err *err)
{
	if (e->told) {
		buf_clear(&e->data);
		e->name[0] = '\0';
		e->has_data = e->told = false;
	}
	while (in->n != 0) {
		const uint8_t *end = memchr(in->p, '\n', in->n);
		size_t n = end != NULL ? (size_t)(end - in->p) : in->n;
		int r = 0;

		buf_add(&e->line, in->p, n);
		if (buf_check(&e->line) < 0)
			return err_set(err, -EMSGSIZE, "an event of the daemon is too large");
		*in = view_skip(*in, end != NULL ? n + 1 : n);
		if (end == NULL)
			return 0;
		if (e->line.n == 0) {
			e->told = e->has_data;
			if (!e->has_data && e->name[0] != '\0')
				return bad("an event without data", err);
			if (e->told)
				return 1;
			continue;
		}
		r = memchr(e->line.p, '\r', e->line.n) != NULL ? bad("CR", err) : take_line(e, err);
		if (r < 0)
			return r;
		buf_clear(&e->line);
	}
	return 0;
}
