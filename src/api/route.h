/* SPDX-License-Identifier: Apache-2.0 */
/* Which handler a method and a path belong to (route.def). */
#pragma once

#include "body_gen.h"
#include "request.h"

typedef int route_fn(struct request *req, struct err *err);

enum route_kind { ROUTE_NONE, ROUTE_JSON, ROUTE_TYPED, ROUTE_MAYBE, ROUTE_FEED, ROUTE_DROP };
enum route_scope { ROUTE_PUBLIC, ROUTE_CALLER };
enum { ROUTE_ANY = HTTP_METHODS, ROUTE_SEGMENTS = 8 };

struct route {
	unsigned method; /* enum http_method, or ROUTE_ANY */
	const char *path;
	route_fn *handler;
	enum route_kind kind;
	enum body_name body;
	enum route_scope scope;
};

extern const struct route routes[];
extern const size_t routes_n;

/*
 * The route of n undecoded path segments; what stands for {...} into ret_arg (at most REQUEST_ARGS). -ERROR_NOT_FOUND,
 * or -ERROR_NOT_ALLOWED with the methods that the path has as bits in *ret_allow.
 */
int route_find(enum http_method method, const struct view *segment, size_t n,
	const struct route **ret, struct view *ret_arg, size_t *ret_nargs, unsigned *ret_allow,
	struct err *err) MUST_CHECK;

#define ROUTE(method, path, handler, kind, body, scope, prose) route_fn handler;
#include "route.def"
#undef ROUTE
