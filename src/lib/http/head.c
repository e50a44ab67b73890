/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading heads; see head.h. Two steps. scan_*: byte by byte, in order, whatever a single byte can
 * decide (controls, bare CR and LF, sizes) and where the head ends; the request line is judged as
 * soon as it is complete. read_*: the complete head, once, into views.
 */
#include "lib/http/head.h"

#include "lib/http/chars.h"
#include "lib/http/special.h"

#include <errno.h>

enum {
	VERSION_BYTES = 8, /* "HTTP/1.1" */
	LINE_EXTRA = 64,   /* request line: method, blanks and version beside the target */
	INTERIM_COUNT = 8,
	INTERIM_BYTES = 16384,
};

void
http_limits_init(struct http_limits *ret)
{
	*ret = (struct http_limits){
		.head_bytes = 32768,
		.target_bytes = 8192,
		.fields = HTTP_FIELDS_MAX,
		.body_bytes = 8u << 20,
		.body_methods = 1u << HTTP_POST | 1u << HTTP_PUT | 1u << HTTP_PATCH,
	};
}

void
http_scan_request(struct http_scan *s, const struct http_limits *limits)
{
	must(limits->fields <= HTTP_FIELDS_MAX);
	*s = (struct http_scan){.limits = limits, .side = HTTP_REQUEST};
}

void
http_scan_response(struct http_scan *s, const struct http_limits *limits, enum http_method asked,
	bool switch_asked)
{
	http_scan_request(s, limits);
	s->side = HTTP_RESPONSE;
	s->asked = asked;
	s->switch_asked = switch_asked;
}

static enum http_reason
read_version(struct view v, unsigned *ret_minor)
{
	bool digits = v.n == VERSION_BYTES && view_starts(v, "HTTP/") && v.p[5] >= '0' &&
		      v.p[5] <= '9' && v.p[6] == '.' && v.p[7] >= '0' && v.p[7] <= '9';

	if (!digits)
		return HTTP_NO_REQUEST_LINE;
	if (v.p[5] != '1' || v.p[7] > '1')
		return HTTP_NO_VERSION;
	*ret_minor = (unsigned)(v.p[7] - '0');
	return HTTP_FINE;
}

static enum http_reason
read_request_line(struct view line, const struct http_limits *limits, struct http_head *ret)
{
	const uint8_t *sp1 = line.n == 0 ? NULL : memchr(line.p, ' ', line.n), *sp2;
	struct view method, target;
	enum http_reason no;

	if (sp1 == NULL)
		return HTTP_NO_REQUEST_LINE;
	method = view_of(line.p, (size_t)(sp1 - line.p));
	target = view_skip(line, method.n + 1);
	sp2 = target.n == 0 ? NULL : memchr(target.p, ' ', target.n);
	if (sp2 == NULL || sp2 == target.p || method.n == 0)
		return HTTP_NO_REQUEST_LINE;
	target.n = (size_t)(sp2 - target.p);
	for (size_t i = 0; i < method.n; i++)
		if ((method.p[i] < 'A' || method.p[i] > 'Z') && method.p[i] != '-')
			return HTTP_NO_REQUEST_LINE;
	no = read_version(view_skip(line, method.n + target.n + 2), &ret->minor);
	if (no != HTTP_FINE)
		return no;
	ret->method = http_method_of(method);
	if (ret->method == HTTP_METHODS)
		return HTTP_NO_METHOD;
	if (target.n > limits->target_bytes)
		return HTTP_NO_TARGET_LONG;
	ret->target_text = target;
	return http_target_parse(target, ret->method, limits->host_flags, &ret->target);
}

/* "HTTP/1.1 200 OK": the blank before the phrase must be there even when the phrase is empty. */
static enum http_reason
read_status_line(struct view line, struct http_head *ret)
{
	const uint8_t *d;

	if (line.n < VERSION_BYTES + 5 ||
		read_version(view_of(line.p, VERSION_BYTES), &ret->minor) != HTTP_FINE)
		return HTTP_NO_STATUS_LINE;
	d = line.p + VERSION_BYTES + 1;
	if (d[-1] != ' ' || d[3] != ' ' || d[0] < '1' || d[0] > '5')
		return HTTP_NO_STATUS_LINE;
	if (d[1] < '0' || d[1] > '9' || d[2] < '0' || d[2] > '9')
		return HTTP_NO_STATUS_LINE;
	ret->status = (unsigned)((d[0] - '0') * 100 + (d[1] - '0') * 10 + (d[2] - '0'));
	ret->phrase = view_skip(line, VERSION_BYTES + 5);
	return HTTP_FINE;
}

static bool
blank(uint8_t c)
{
	return c == ' ' || c == '\t';
}

static enum http_reason
read_field(struct view line, struct http_field *ret)
{
	size_t n = 0;

	if (blank(line.p[0]))
		return HTTP_NO_FOLD;
	while (n < line.n && char_is(line.p[n], CHAR_TOKEN))
		n++;
	if (n == 0 || n == line.n || line.p[n] != ':')
		return HTTP_NO_FIELD_NAME;
	ret->name = view_of(line.p, n);
	ret->value = view_skip(line, n + 1);
	while (ret->value.n > 0 && blank(ret->value.p[0]))
		ret->value = view_skip(ret->value, 1);
	while (ret->value.n > 0 && blank(ret->value.p[ret->value.n - 1]))
		ret->value.n--;
	return HTTP_FINE;
}

static enum http_reason
read_head(const struct http_scan *s, struct view head, struct http_head *ret)
{
	enum http_reason no = HTTP_FINE;
	struct view rest = view_skip(head, s->begin);
	bool first = true;

	/* The array of fields stays as it is: only what `fields` counts is ever read. */
	memset(ret, 0, offsetof(struct http_head, field));
	ret->fields = 0;
	ret->framing = HTTP_BODY_NONE;
	ret->length = 0;
	ret->side = s->side;
	ret->odd = s->begin > 0;
	while (no == HTTP_FINE) {
		const uint8_t *cr = memchr(rest.p, '\r', rest.n);
		struct view line;

		must(cr != NULL); /* scan_byte saw every CR with its LF */
		line = view_of(rest.p, (size_t)(cr - rest.p));
		if (line.n == 0)
			break;
		if (!first)
			no = read_field(line, &ret->field[ret->fields++]);
		else if (s->side == HTTP_REQUEST)
			no = read_request_line(line, s->limits, ret);
		else
			no = read_status_line(line, ret);
		first = false;
		rest = view_skip(rest, line.n + 2);
	}
	return no != HTTP_FINE ? no : http_special_judge(ret, s->limits, s->asked, s->switch_asked);
}

/* A line is complete; `end` is where its CR stands. *ret_done: it was the empty one at the end. */
static enum http_reason
scan_line(struct http_scan *s, struct view in, size_t end, struct http_head *ret, bool *ret_done)
{
	struct view line = view_of(in.p + s->line, end - s->line);

	s->line = s->pos;
	if (line.n == 0 && s->lines == 0) {
		if (s->side == HTTP_RESPONSE)
			return HTTP_NO_STATUS_LINE;
		if (s->begin > 0)
			return HTTP_NO_LEADING;
		s->begin = s->pos;
		return HTTP_FINE;
	}
	*ret_done = line.n == 0;
	if (*ret_done)
		return HTTP_FINE;
	s->lines++;
	if (s->lines == 1)
		return s->side == HTTP_REQUEST ? read_request_line(line, s->limits, ret)
					       : read_status_line(line, ret);
	return s->lines - 1 > s->limits->fields ? HTTP_NO_FIELDS : HTTP_FINE;
}

/* How far the current line may be scanned before a size decides, and what that size says. */
static size_t
scan_bound(const struct http_scan *s, enum http_reason *ret_no)
{
	size_t line_end = s->line + s->limits->target_bytes + LINE_EXTRA;

	*ret_no = HTTP_NO_HEAD_LONG;
	if (s->side == HTTP_RESPONSE || s->lines > 0 || line_end >= s->limits->head_bytes)
		return s->limits->head_bytes;
	*ret_no = HTTP_NO_TARGET_LONG;
	return line_end;
}

static enum http_reason
scan(struct http_scan *s, struct view in, struct http_head *ret, bool *ret_done)
{
	while (s->pos < in.n && !*ret_done) {
		enum http_reason too_long, no = HTTP_FINE;
		size_t bound = scan_bound(s, &too_long), stop = bound < in.n ? bound : in.n;
		uint8_t c;

		while (!s->cr && s->pos < stop && char_is(in.p[s->pos], CHAR_LINE))
			s->pos++;
		if (s->pos >= bound)
			return too_long;
		if (s->pos == in.n)
			break;
		c = in.p[s->pos];
		if (s->cr && c != '\n')
			return HTTP_NO_BARE_CR;
		if (!s->cr && c != '\r')
			return c == '\n' ? HTTP_NO_BARE_LF : HTTP_NO_CONTROL;
		s->pos++;
		s->cr = c == '\r';
		if (!s->cr)
			no = scan_line(s, in, s->pos - 2, ret, ret_done);
		if (no != HTTP_FINE)
			return no;
	}
	return HTTP_FINE;
}

int
http_head_feed(struct http_scan *s, struct view in, struct http_head *ret)
{
	bool done = false;

	must(s->pos <= in.n);
	if (s->reason == HTTP_FINE)
		s->reason = scan(s, in, ret, &done);
	if (s->reason == HTTP_FINE && done)
		s->reason = read_head(s, view_of(in.p, s->pos), ret);
	if (s->reason != HTTP_FINE)
		return -EBADMSG;
	return done ? 1 : 0;
}

const struct http_field *
http_head_field(const struct http_head *head, const char *name, unsigned *ret_n)
{
	const struct http_field *found = NULL;
	struct view want = view_str(name);
	unsigned n = 0;

	for (unsigned i = 0; i < head->fields; i++) {
		if (!view_eq_nocase(head->field[i].name, want))
			continue;
		found = &head->field[i];
		n++;
	}
	*ret_n = n;
	return n == 1 ? found : NULL;
}

enum http_reason
http_interim_admit(struct http_interim *i, const struct http_head *head, size_t head_bytes)
{
	if (head->status >= 200 || head->status == 101)
		return HTTP_FINE;
	i->count++;
	i->bytes += head_bytes;
	return i->count > INTERIM_COUNT || i->bytes > INTERIM_BYTES ? HTTP_NO_INTERIM : HTTP_FINE;
}
