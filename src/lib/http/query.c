/* SPDX-License-Identifier: Apache-2.0 */
/* Parameters; see query.h. */
#include "lib/http/query.h"

/* The piece of *rest up to `c`, which is taken off too; all of it when there is no `c`. */
static struct view
cut(struct view *rest, uint8_t c, bool *ret_found)
{
	const uint8_t *at = rest->n == 0 ? NULL : memchr(rest->p, c, rest->n);
	struct view piece = at == NULL ? *rest : view_of(rest->p, (size_t)(at - rest->p));

	*ret_found = at != NULL;
	*rest = at == NULL ? view_of(NULL, 0) : view_skip(*rest, piece.n + 1);
	return piece;
}

static bool
decode(struct view text, unsigned flags, uint8_t **mem, struct view *ret)
{
	size_t n;

	if (!http_percent_decode(text, flags | HTTP_DECODE_PLUS, *mem, &n))
		return false;
	*ret = view_of(*mem, n);
	*mem += n;
	return true;
}

static enum http_reason
pair(struct view text, unsigned flags, uint8_t **mem, struct http_params *params)
{
	struct http_param p;
	struct view value = text, name = cut(&value, '=', &p.has_value);

	if (name.n == 0 || !decode(name, 0, mem, &p.name) || !decode(value, flags, mem, &p.value))
		return HTTP_NO_QUERY;
	for (unsigned i = 0; i < params->n; i++)
		if (view_eq(params->param[i].name, p.name))
			return HTTP_NO_QUERY_TWICE;
	if (params->n == HTTP_PARAMS_MAX)
		return HTTP_NO_QUERY_LONG;
	params->param[params->n++] = p;
	return HTTP_FINE;
}

enum http_reason
http_query_parse(struct view text, unsigned flags, uint8_t *mem, struct http_params *ret)
{
	bool more = text.n > 0;

	ret->n = 0;
	while (more) {
		struct view one = cut(&text, '&', &more);
		enum http_reason no = pair(one, flags, &mem, ret);

		if (no != HTTP_FINE)
			return no;
	}
	return HTTP_FINE;
}

const struct http_param *
http_param_find(const struct http_params *params, const char *name)
{
	for (unsigned i = 0; i < params->n; i++)
		if (view_is(params->param[i].name, name))
			return &params->param[i];
	return NULL;
}
