/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The router: a walk over the table. Segments are compared as they came, before decoding, so that %2F never
 * makes a segment and no two spellings reach a fixed part of a path.
 */
#include "route.h"

#define HTTP_ANY ROUTE_ANY
const struct route routes[] = {
#define ROUTE(method, path, handler, kind, body, scope, prose) \
	{HTTP_##method, path, handler, ROUTE_##kind, BODY_##body, ROUTE_##scope},
#include "route.def"
#undef ROUTE
};
const size_t routes_n = ARRAY_LEN(routes);

/* The next segment of a pattern, and what is left of it. */
static struct view
pattern_next(struct view *pattern)
{
	struct view rest = view_skip(*pattern, 1); /* the slash */
	const uint8_t *slash = rest.n == 0 ? NULL : memchr(rest.p, '/', rest.n);
	size_t n = slash == NULL ? rest.n : (size_t)(slash - rest.p);

	*pattern = view_skip(rest, n);
	return view_of(rest.p, n);
}

static bool
path_matches(const char *path, const struct view *segment, size_t n, struct view *ret_arg,
	size_t *ret_nargs)
{
	struct view pattern = view_str(path);
	size_t i = 0;

	*ret_nargs = 0;
	while (pattern.n > 0) {
		struct view want = pattern_next(&pattern);

		if (view_is(want, "{...}"))
			return true;
		if (i == n)
			return false;
		if (view_starts(want, "{")) {
			must(*ret_nargs < REQUEST_ARGS);
			ret_arg[(*ret_nargs)++] = segment[i];
		} else if (!view_eq(want, segment[i])) {
			return false;
		}
		i++;
	}
	return i == n;
}

int
route_find(enum http_method method, const struct view *segment, size_t n, const struct route **ret,
	struct view *ret_arg, size_t *ret_nargs, unsigned *ret_allow, struct err *err)
{
	*ret_allow = 0;
	for (size_t i = 0; i < routes_n; i++) {
		if (!path_matches(routes[i].path, segment, n, ret_arg, ret_nargs))
			continue;
		if (routes[i].method == (unsigned)method || routes[i].method == ROUTE_ANY) {
			*ret = &routes[i];
			return 0;
		}
		*ret_allow |= 1U << routes[i].method;
	}
	if (*ret_allow != 0)
		return refuse(err, NOT_ALLOWED, "this path does not have that method; see Allow");
	return refuse(err, NOT_FOUND, "there is no such path; GET /openapi.json lists them");
}
