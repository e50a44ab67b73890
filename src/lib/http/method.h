/* SPDX-License-Identifier: Apache-2.0 */
/* The methods that are spoken (method.def) and their names. Names are case-sensitive. */
#pragma once

#include "lib/base/view.h"

enum http_method {
#define HTTP_METHOD(name) HTTP_##name,
#include "lib/http/method.def"
#undef HTTP_METHOD
	HTTP_METHODS,
};

const char *http_method_name(enum http_method method);

/* HTTP_METHODS when no row has this name. */
enum http_method http_method_of(struct view name);
