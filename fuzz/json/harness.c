/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzing of strict parsing, table-driven fields and the writer of answers. The first
 * byte chooses flags, the rest is a body. What is parsed keeps to the limits and survives
 * being written and parsed again, and what has a canonical form has one that is canonical and gives itself again; what a table accepts keeps to the table. The same bytes
 * as a string of an answer always give JSON, the same in both modes.
 */
#include "lib/canon/read.h"
#include "lib/json/canonical.h"
#include "lib/json/fields.h"
#include "lib/json/out.h"
#include "lib/json/parse.h"

#include <errno.h>

enum { DEPTH = 8 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

struct body {
	struct field_str s;
	struct field_int i;
	struct field_bool b;
	struct field_json map, list, object;
};

static const struct field rows[] = {
	FIELD_STR("s", struct body, s, .required = true, .min = 1, .max = 20),
	FIELD_INT("i", struct body, i, .nullable = true, .min = -5, .max = 1000),
	FIELD_BOOL("b", struct body, b, .nullable = true),
	FIELD_STR_MAP("map", struct body, map, .max = 10, .max_entries = 3, .max_key_bytes = 5),
	FIELD_STR_LIST("list", struct body, list, .min = 1, .max = 10, .min_entries = 1,
		.max_entries = 3, .nul_ok = true),
	FIELD_OBJECT("object", struct body, object, .nullable = true),
};

static void
check_fields(const json_t *j, unsigned flags)
{
	struct body b = {0};
	struct err err = {0};

	if (fields_read(j, "", rows, ARRAY_LEN(rows), flags, &b, &err) < 0) {
		must(err.code < 0 && err.text[0] != '\0' && b.s.state == FIELD_ABSENT);
		return;
	}
	must(b.s.v.n >= 1 && b.s.v.n <= 20 && !view_has(b.s.v, 0) && view_utf8(b.s.v));
	must(b.i.v >= -5 && b.i.v <= 1000);
	must(b.map.v == NULL || json_object_size(b.map.v) <= 3);
	must(b.list.v == NULL ||
		(json_array_size(b.list.v) >= 1 && json_array_size(b.list.v) <= 3));
	must(b.object.v == NULL || json_is_object(b.object.v));
}

static unsigned
depth_of(json_t *j)
{
	unsigned deepest = 0, d;

	if (json_is_array(j)) {
		for (size_t i = 0; i < json_array_size(j); i++)
			if ((d = depth_of(json_array_get(j, i))) > deepest)
				deepest = d;
		return deepest + 1;
	}
	if (!json_is_object(j))
		return 0;
	for (void *i = json_object_iter(j); i != NULL; i = json_object_iter_next(j, i))
		if ((d = depth_of(json_object_iter_value(i))) > deepest)
			deepest = d;
	return deepest + 1;
}

/* Everything but reals, whose text may differ. */
static void
write_again(struct json_out *o, json_t *j)
{
	if (json_is_object(j)) {
		json_out_object_begin(o);
		for (void *i = json_object_iter(j); i != NULL; i = json_object_iter_next(j, i)) {
			must(!json_out_key_view(
				o, view_of(json_object_iter_key(i), json_object_iter_key_len(i))));
			write_again(o, json_object_iter_value(i));
		}
		json_out_object_end(o);
	} else if (json_is_array(j)) {
		json_out_array_begin(o);
		for (size_t i = 0; i < json_array_size(j); i++)
			write_again(o, json_array_get(j, i));
		json_out_array_end(o);
	} else if (json_is_string(j)) {
		must(!json_out_str(o, field_view(j)));
	} else if (json_is_integer(j)) {
		json_out_int(o, json_integer_value(j));
	} else if (json_is_boolean(j)) {
		json_out_bool(o, json_is_true(j));
	} else {
		json_out_null(o);
	}
}

static bool
has_real(json_t *j)
{
	if (json_is_real(j))
		return true;
	for (size_t i = 0; json_is_array(j) && i < json_array_size(j); i++)
		if (has_real(json_array_get(j, i)))
			return true;
	for (void *i = json_object_iter(j); i != NULL; i = json_object_iter_next(j, i))
		if (has_real(json_object_iter_value(i)))
			return true;
	return false;
}

static void
check_parsed(json_t *j, bool ascii)
{
	const struct json_limits loose = {.max_bytes = 1 << 24, .max_depth = DEPTH, .nul_ok = true};
	auto_buf struct buf b = {.max = 1 << 24};
	auto_json json_t *again = NULL;
	struct json_out o;
	struct err err;

	must(depth_of(j) <= DEPTH);
	if (has_real(j))
		return;
	json_out_init(&o, &b, ascii);
	write_again(&o, j);
	must(json_out_end(&o) == 0);
	must(json_parse(buf_view(&b), &loose, &again, &err) == 0);
	must(json_equal(j, again));
}

/* The reader of the profile takes what was made, and making it again changes nothing. */
static void
check_canonical(json_t *j)
{
	const struct json_limits loose = {.max_bytes = 1 << 20, .max_depth = DEPTH};
	auto_buf struct buf first = {.max = 1 << 20}, second = {.max = 1 << 20};
	auto_json json_t *again = NULL;
	struct err err = {0};

	if (canonical_json(j, "it", &first, &err) < 0) {
		must(first.n == 0 && err.code < 0 && err.text[0] != '\0');
		return;
	}
	must(!has_real(j));
	must(canon_check(buf_view(&first), true, &err) == 0);
	must(json_parse(buf_view(&first), &loose, &again, &err) == 0);
	must(json_equal(j, again));
	must(canonical_json(again, "it", &second, &err) == 0);
	must(view_eq(buf_view(&first), buf_view(&second)));
}

static void
check_proposal(struct view text)
{
	auto_buf struct buf out = {.max = PROPOSAL_CANONICAL_MAX};
	struct err err = {0};

	if (canonical_proposal_parse(text, &out, &err) == 0)
		must(canon_check(buf_view(&out), true, &err) == 0);
	else
		must(out.n == 0 && err.code != -ENOBUFS);
}

static json_t *
as_string(struct view v, bool ascii)
{
	const struct json_limits loose = {.max_bytes = 1 << 24, .max_depth = 1, .nul_ok = true};
	auto_buf struct buf b = {.max = 1 << 24};
	struct json_out o;
	struct err err;
	json_t *j = NULL;
	bool replaced;

	json_out_init(&o, &b, ascii);
	json_out_array_begin(&o);
	replaced = json_out_str(&o, v);
	json_out_array_end(&o);
	must(json_out_end(&o) == 0);
	must(replaced == !view_utf8(v));
	for (size_t i = 0; ascii && i < b.n; i++)
		must(b.p[i] < 0x7f);
	must(json_parse(buf_view(&b), &loose, &j, &err) == 0);
	must(replaced || view_eq(v, field_view(json_array_get(j, 0))));
	return j;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	auto_json json_t *j = NULL, *utf8 = NULL, *ascii = NULL;
	struct json_limits limits = {.max_bytes = 1 << 20, .max_depth = DEPTH};
	struct err err = {0};

	if (n == 0)
		return 0;
	struct view text = view_of(data + 1, n - 1);

	limits.nul_ok = (data[0] & 1) != 0;
	if (json_parse(text, &limits, &j, &err) == 0) {
		check_parsed(j, (data[0] & 2) != 0);
		check_canonical(j);
		check_fields(j, (data[0] & 4) != 0 ? FIELDS_IGNORE_UNKNOWN : 0);
	} else {
		must(j == NULL && err.code < 0 && err.text[0] != '\0');
	}
	check_proposal(text);
	utf8 = as_string(text, false);
	ascii = as_string(text, true);
	must(json_equal(utf8, ascii));
	return 0;
}
