/* SPDX-License-Identifier: Apache-2.0 */
/* Writing heads; see write.h. */
#include "lib/http/write.h"

#include "lib/http/chars.h"

#include <errno.h>
#include <stdio.h>

static const char *
phrase_of(unsigned status)
{
	static const struct {
		unsigned status;
		const char *phrase;
	} rows[] = {
#define HTTP_STATUS(status, phrase) {status, phrase},
#include "lib/http/status.def"
#undef HTTP_STATUS
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (rows[i].status == status)
			return rows[i].phrase;
	return "";
}

static void
begin(struct http_write *w, struct buf *out, enum http_side side)
{
	*w = (struct http_write){.out = out, .start = out->n, .side = side};
}

void
http_write_request(
	struct http_write *w, struct buf *out, enum http_method method, struct view target)
{
	struct http_target parsed;

	begin(w, out, HTTP_REQUEST);
	w->bad = http_target_parse(target, method, HTTP_AUTHORITY_IP | HTTP_AUTHORITY_UNDERSCORE,
			 &parsed) != HTTP_FINE;
	buf_add_str(out, http_method_name(method));
	buf_add_byte(out, ' ');
	buf_add_view(out, target);
	buf_add_str(out, " HTTP/1.1\r\n");
}

void
http_write_response(struct http_write *w, struct buf *out, unsigned status)
{
	begin(w, out, HTTP_RESPONSE);
	w->status = status;
	w->bad = status < 100 || status > 599;
	buf_addf(out, "HTTP/1.1 %03u %s\r\n", status % 1000, phrase_of(status));
}

static bool
field_ok(struct view name, struct view value)
{
	for (size_t i = 0; i < name.n; i++)
		if (!char_is(name.p[i], CHAR_TOKEN))
			return false;
	for (size_t i = 0; i < value.n; i++)
		if (!char_is(value.p[i], CHAR_LINE))
			return false;
	return name.n > 0;
}

static void
add_field(struct http_write *w, struct view name, struct view value)
{
	w->bad = w->bad || !field_ok(name, value);
	buf_add_view(w->out, name);
	buf_add_str(w->out, ": ");
	buf_add_view(w->out, value);
	buf_add_str(w->out, "\r\n");
}

void
http_write_field_view(struct http_write *w, struct view name, struct view value)
{
	if (view_eq_nocase(name, view_str("content-length")) ||
		view_eq_nocase(name, view_str("transfer-encoding")))
		w->bad = true;
	if (view_eq_nocase(name, view_str("host")))
		w->hosts++;
	add_field(w, name, value);
}

void
http_write_field(struct http_write *w, const char *name, struct view value)
{
	http_write_field_view(w, view_str(name), value);
}

void
http_write_length(struct http_write *w, uint64_t length)
{
	char text[24];
	int n = snprintf(text, sizeof(text), "%llu", (unsigned long long)length);

	must(n > 0);
	w->framings++;
	add_field(w, view_str("Content-Length"), view_of(text, (size_t)n));
}

void
http_write_chunked(struct http_write *w)
{
	w->framings++;
	add_field(w, view_str("Transfer-Encoding"), view_str("chunked"));
}

void
http_write_until_close(struct http_write *w)
{
	w->bad = w->bad || w->side == HTTP_REQUEST;
	w->framings++;
	add_field(w, view_str("Connection"), view_str("close"));
}

int
http_write_end(struct http_write *w)
{
	bool bodyless = w->status < 200 || w->status == 204;
	int r;

	buf_add_str(w->out, "\r\n");
	if (w->side == HTTP_REQUEST)
		w->bad = w->bad || w->hosts != 1 || w->framings > 1;
	else if (bodyless)
		w->bad = w->bad || w->framings > 0;
	else
		w->bad = w->bad || w->framings > 1 || (w->framings == 0 && w->status != 304);
	r = w->bad ? -EINVAL : buf_check(w->out);
	if (r < 0)
		w->out->n = w->start;
	return r;
}

int
http_write_answer(struct buf *out, const struct http_answer *a)
{
	size_t start = out->n;
	struct http_write w;
	int r;

	http_write_response(&w, out, a->status);
	if (a->type != NULL)
		http_write_field(&w, "Content-Type", view_str(a->type));
	for (size_t i = 0; i < a->fields; i++)
		http_write_field_view(&w, a->field[i].name, a->field[i].value);
	if (a->close)
		http_write_field(&w, "Connection", view_str("close"));
	if (a->status >= 200 && a->status != 204 && a->status != 304)
		http_write_length(&w, a->body.n);
	else if (a->body.n > 0)
		w.bad = true;
	r = http_write_end(&w);
	if (r < 0 || a->head_only)
		return r;
	buf_add_view(out, a->body);
	r = buf_check(out);
	if (r < 0)
		out->n = start;
	return r;
}
