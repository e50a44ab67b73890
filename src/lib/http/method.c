/* SPDX-License-Identifier: Apache-2.0 */
/* Names of methods; see method.h. */
#include "lib/http/method.h"

#include "lib/base/attr.h"

static const char *const names[HTTP_METHODS] = {
#define HTTP_METHOD(name) [HTTP_##name] = #name,
#include "lib/http/method.def"
#undef HTTP_METHOD
};

const char *
http_method_name(enum http_method method)
{
	must(method < HTTP_METHODS);
	return names[method];
}

enum http_method
http_method_of(struct view name)
{
	unsigned m = 0;

	while (m < HTTP_METHODS && !view_is(name, names[m]))
		m++;
	return (enum http_method)m;
}
