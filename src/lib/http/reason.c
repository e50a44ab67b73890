/* SPDX-License-Identifier: Apache-2.0 */
/* The table of refusals; see reason.h. */
#include "lib/http/reason.h"

#include <stddef.h>

struct row {
	unsigned status;
	const char *code, *text, *name;
};

static const struct row rows[] = {
	[HTTP_FINE] = {200, "ok", "accepted", "FINE"},
#define HTTP_REASON(name, status, code, text) [HTTP_NO_##name] = {status, code, text, #name},
#include "lib/http/reason.def"
#undef HTTP_REASON
};

static const struct row *
row_of(enum http_reason reason)
{
	must((size_t)reason < ARRAY_LEN(rows));
	return &rows[reason];
}

unsigned
http_reason_status(enum http_reason reason, enum http_side side)
{
	return reason != HTTP_FINE && side == HTTP_RESPONSE ? 502 : row_of(reason)->status;
}

const char *
http_reason_code(enum http_reason reason)
{
	return row_of(reason)->code;
}

const char *
http_reason_text(enum http_reason reason)
{
	return row_of(reason)->text;
}

const char *
http_reason_name(enum http_reason reason)
{
	return row_of(reason)->name;
}
