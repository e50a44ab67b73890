/* SPDX-License-Identifier: Apache-2.0 */
/* The query of a brokered request between gateway and broker; see rules.h. */
#include "lib/egress/rules.h"

#include "lib/canon/profile.h"

#include <errno.h>

void
egress_query_write(struct buf *out, const struct http_params *query)
{
	const struct http_param *last = NULL;

	for (unsigned done = 0; done < query->n; done++) {
		const struct http_param *next = NULL;

		for (unsigned i = 0; i < query->n; i++) {
			const struct http_param *p = &query->param[i];

			if ((last == NULL || canon_key_compare(p->name, last->name) > 0) &&
				(next == NULL || canon_key_compare(p->name, next->name) < 0))
				next = p;
		}
		must(next != NULL); /* http_query_parse() refuses a name that comes twice */
		buf_add_view(out, next->name);
		buf_add_byte(out, 0);
		buf_add_view(out, next->value);
		buf_add_byte(out, 0);
		last = next;
	}
}

/* Up to the next NUL, which is taken off too. */
static bool
text_take(struct view *rest, struct view *ret)
{
	const uint8_t *end = rest->n == 0 ? NULL : memchr(rest->p, 0, rest->n);

	if (end == NULL)
		return false;
	*ret = view_of(rest->p, (size_t)(end - rest->p));
	*rest = view_skip(*rest, ret->n + 1);
	return view_utf8(*ret);
}

int
egress_query_read(struct view bytes, struct http_params *ret, struct err *err)
{
	ret->n = 0;
	while (bytes.n > 0) {
		struct http_param p = {.has_value = true};

		if (ret->n == HTTP_PARAMS_MAX || !text_take(&bytes, &p.name) ||
			!text_take(&bytes, &p.value) || p.name.n == 0 ||
			(ret->n > 0 && canon_key_compare(ret->param[ret->n - 1].name, p.name) >= 0))
			return err_set(err, -EINVAL, "the query is not in its form");
		ret->param[ret->n++] = p;
	}
	return 0;
}
