/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The closed list of refusals of the HTTP codec (reason.def). Parsers return a value of it
 * instead of text: it holds no byte of the input, so an answer or an audit record made from it
 * cannot echo or be injected into. Zero is "fine".
 */
#pragma once

#include "lib/base/attr.h"

enum http_side { HTTP_REQUEST, HTTP_RESPONSE };

enum http_reason {
	HTTP_FINE = 0,
#define HTTP_REASON(name, status, code, text) HTTP_NO_##name,
#include "lib/http/reason.def"
#undef HTTP_REASON
};

/*
 * The status to answer with; for a refused response (HTTP_RESPONSE) always 502. 200 for
 * HTTP_FINE.
 */
unsigned http_reason_status(enum http_reason reason, enum http_side side);

/* The stable code ("framing") and the sentence. */
const char *http_reason_code(enum http_reason reason);
const char *http_reason_text(enum http_reason reason);

/* "CHUNK" and the like, for tests and traces. */
const char *http_reason_name(enum http_reason reason);
