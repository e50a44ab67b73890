/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The writer of answers; see out.h. No value is left out or shortened here: what does
 * not fit marks the buffer as failed.
 */
#include "lib/json/out.h"

#include "lib/base/utf8.h"

static const char hex_digits[] = "0123456789abcdef";

void
json_out_init(struct json_out *o, struct buf *b, bool ascii)
{
	*o = (struct json_out){.b = b, .ascii = ascii};
}

int
json_out_end(const struct json_out *o)
{
	must(o->depth == 0 && o->level[0].some);
	return buf_check(o->b);
}

static void
value_begin(struct json_out *o)
{
	if (o->level[o->depth].object) {
		must(o->keyed);
		o->keyed = false;
		return;
	}
	if (o->level[o->depth].some) {
		must(o->depth > 0);
		buf_add_byte(o->b, ',');
	}
	o->level[o->depth].some = true;
}

static void
container_begin(struct json_out *o, bool object)
{
	value_begin(o);
	must(o->depth < JSON_OUT_DEPTH_MAX);
	o->depth++;
	o->level[o->depth].object = object;
	o->level[o->depth].some = false;
	buf_add_byte(o->b, object ? '{' : '[');
}

static void
container_end(struct json_out *o, bool object)
{
	must(o->depth > 0 && o->level[o->depth].object == object && !o->keyed);
	o->depth--;
	buf_add_byte(o->b, object ? '}' : ']');
}

void
json_out_object_begin(struct json_out *o)
{
	container_begin(o, true);
}

void
json_out_object_end(struct json_out *o)
{
	container_end(o, true);
}

void
json_out_array_begin(struct json_out *o)
{
	container_begin(o, false);
}

void
json_out_array_end(struct json_out *o)
{
	container_end(o, false);
}

static void
put_unit(struct json_out *o, uint32_t unit)
{
	char esc[6] = {'\\', 'u', hex_digits[unit >> 12 & 15], hex_digits[unit >> 8 & 15],
		hex_digits[unit >> 4 & 15], hex_digits[unit & 15]};

	buf_add(o->b, esc, sizeof(esc));
}

static void
put_escaped(struct json_out *o, uint32_t point)
{
	static const char short_form[0x20] = {
		['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f', ['\r'] = 'r'};

	if (point < 0x20 && short_form[point] != 0) {
		char two[2] = {'\\', short_form[point]};

		buf_add(o->b, two, 2);
	} else if (point < 0x10000) {
		put_unit(o, point);
	} else {
		put_unit(o, 0xd800 + ((point - 0x10000) >> 10));
		put_unit(o, 0xdc00 + ((point - 0x10000) & 0x3ff));
	}
}

/* One character at the front of v that is not plain printable ASCII; how many bytes it had. */
static size_t
put_char(struct json_out *o, struct view v)
{
	uint32_t point = 0xfffd;
	int len = utf8_next(v, &point);
	struct view text = len > 0 ? view_of(v.p, (size_t)len) : view_str("\xef\xbf\xbd");

	o->replaced |= len < 0;
	if (point == '"' || point == '\\') {
		buf_add_byte(o->b, '\\');
		buf_add_byte(o->b, v.p[0]);
	} else if (point < 0x20 || o->ascii) {
		put_escaped(o, point);
	} else {
		buf_add_view(o->b, text);
	}
	return (size_t)(len > 0 ? len : -len);
}

static size_t
plain_run(struct view v)
{
	size_t i = 0;

	while (i < v.n && v.p[i] >= 0x20 && v.p[i] < 0x7f && v.p[i] != '"' && v.p[i] != '\\')
		i++;
	return i;
}

static bool
put_string(struct json_out *o, struct view v)
{
	bool before = o->replaced, now;

	o->replaced = false;
	buf_add_byte(o->b, '"');
	while (v.n > 0) {
		size_t n = plain_run(v);

		buf_add(o->b, v.p, n);
		if (n == 0)
			n = put_char(o, v);
		v = view_skip(v, n);
	}
	buf_add_byte(o->b, '"');
	now = o->replaced;
	o->replaced = before || now;
	return now;
}

bool
json_out_key_view(struct json_out *o, struct view key)
{
	bool replaced;

	must(o->level[o->depth].object && !o->keyed);
	if (o->level[o->depth].some)
		buf_add_byte(o->b, ',');
	replaced = put_string(o, key);
	buf_add_byte(o->b, ':');
	o->level[o->depth].some = true;
	o->keyed = true;
	return replaced;
}

void
json_out_key(struct json_out *o, const char *key)
{
	must(!json_out_key_view(o, view_str(key)));
}

bool
json_out_str(struct json_out *o, struct view v)
{
	value_begin(o);
	return put_string(o, v);
}

void
json_out_int(struct json_out *o, int64_t i)
{
	value_begin(o);
	buf_addf(o->b, "%lld", (long long)i);
}

void
json_out_u64(struct json_out *o, uint64_t u)
{
	value_begin(o);
	buf_addf(o->b, "%llu", (unsigned long long)u);
}

void
json_out_fixed3(struct json_out *o, int64_t thousandths)
{
	uint64_t u = thousandths < 0 ? 0 - (uint64_t)thousandths : (uint64_t)thousandths;

	value_begin(o);
	buf_addf(o->b, "%s%llu.%03u", thousandths < 0 ? "-" : "", (unsigned long long)(u / 1000),
		(unsigned)(u % 1000));
}

void
json_out_bool(struct json_out *o, bool b)
{
	value_begin(o);
	buf_add_str(o->b, b ? "true" : "false");
}

void
json_out_null(struct json_out *o)
{
	value_begin(o);
	buf_add_str(o->b, "null");
}

void
json_out_raw(struct json_out *o, struct view v)
{
	must(v.n > 0);
	value_begin(o);
	buf_add_view(o->b, v);
}

void
json_out_key_str(struct json_out *o, const char *key, struct view v)
{
	json_out_key(o, key);
	(void)json_out_str(o, v);
}

void
json_out_key_int(struct json_out *o, const char *key, int64_t i)
{
	json_out_key(o, key);
	json_out_int(o, i);
}

void
json_out_key_bool(struct json_out *o, const char *key, bool b)
{
	json_out_key(o, key);
	json_out_bool(o, b);
}
