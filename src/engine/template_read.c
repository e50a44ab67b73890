/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The record of a template, written by demilune-template in canonical form. A record that does not
 * keep to its bounds is refused whole: its template is then not known.
 */
#include "engine/template.h"

#include "lib/base/hex.h"
#include "lib/base/name.h"
#include "lib/canon/read.h"

#include <errno.h>

/* An array of strings into `out`, each with a NUL. */
static int
read_strings(struct canon_reader *r, struct buf *out, struct err *err)
{
	struct canon_token t;
	int code = canon_want(r, CANON_ARRAY_BEGIN, &t, err);

	while (code == 0) {
		code = canon_next(r, &t, err);
		if (code < 0 || t.type == CANON_ARRAY_END)
			return code;
		if (t.type != CANON_STR || t.controls)
			return err_set(
				err, -EINVAL, "a list of the template's record holds no texts");
		canon_token_text(&t, out);
		buf_add_byte(out, 0);
	}
	return code;
}

/* An object of strings as NAME=value. */
static int
read_env(struct canon_reader *r, struct buf *out, struct err *err)
{
	struct canon_token t;
	int code = canon_want(r, CANON_OBJECT_BEGIN, &t, err);

	while (code == 0) {
		code = canon_next(r, &t, err);
		if (code < 0 || t.type == CANON_OBJECT_END)
			return code;
		buf_add_view(out, t.raw);
		buf_add_byte(out, '=');
		code = canon_want(r, CANON_STR, &t, err);
		if (code == 0 && t.controls)
			return err_set(
				err, -EINVAL, "an environment value with control characters");
		if (code == 0)
			canon_token_text(&t, out);
		buf_add_byte(out, 0);
	}
	return code;
}

static int
read_text(struct canon_reader *r, char *ret, size_t size, struct err *err)
{
	struct canon_token t;
	auto_buf struct buf text;
	int code;

	buf_init(&text, size - 1);
	code = canon_want(r, CANON_STR, &t, err);
	if (code < 0)
		return code;
	canon_token_text(&t, &text);
	if (buf_check(&text) < 0 || t.controls)
		return err_set(err, -EINVAL, "a text of the template's record is too long");
	if (text.n > 0)
		memcpy(ret, text.p, text.n);
	ret[text.n] = '\0';
	return 0;
}

static int
read_manifest(struct canon_reader *r, struct template *t, struct err *err)
{
	struct canon_token token;
	int code = canon_want(r, CANON_OBJECT_BEGIN, &token, err);

	while (code == 0) {
		struct view key;

		code = canon_next(r, &token, err);
		if (code < 0 || token.type == CANON_OBJECT_END)
			return code;
		key = token.raw;
		if (view_is(key, "description"))
			code = read_text(r, t->description, sizeof(t->description), err);
		else if (view_is(key, "name"))
			code = read_text(r, t->name, sizeof(t->name), err);
		else if (view_is(key, "env"))
			code = read_env(r, &t->env, err);
		else if (view_is(key, "places"))
			code = read_strings(r, &t->places, err);
		else
			code = canon_skip(r, err);
	}
	return code;
}

static int
read_digest(struct canon_reader *r, uint8_t ret[static 32], struct err *err)
{
	struct canon_token t;
	int code = canon_want(r, CANON_STR, &t, err);

	if (code == 0 && hex_decode(t.raw, ret, 32) < 0)
		return err_set(err, -EINVAL, "a digest of the template's record is none");
	return code;
}

/* TEMPLATE_PREPARE has 16 places of less than 64 bytes. */
static int
check_places(const struct template *t, struct err *err)
{
	struct view left = buf_view(&t->places);
	unsigned n = 0;

	for (; left.n > 0; n++) {
		size_t length = strlen((const char *)left.p);

		if (length == 0 || length >= 64 || left.p[0] != '/')
			return err_set(
				err, -EINVAL, "a place that is no path of less than 64 bytes");
		left = view_skip(left, length + 1);
	}
	if (n > 16)
		return err_set(err, -EINVAL, "%u places; 16 are possible", n);
	return 0;
}

int
template_parse(struct view record, struct template *t, struct err *err)
{
	struct canon_reader r;
	struct canon_token token;
	int code;

	canon_reader_init(&r, record, true);
	code = canon_want(&r, CANON_OBJECT_BEGIN, &token, err);
	while (code == 0) {
		struct view key;

		code = canon_next(&r, &token, err);
		if (code < 0 || token.type == CANON_OBJECT_END)
			break;
		key = token.raw;
		if (view_is(key, "digest")) {
			code = read_digest(&r, t->digest, err);
		} else if (view_is(key, "image_bytes")) {
			code = canon_want(&r, CANON_INT, &token, err);
			t->size_bytes = code == 0 && token.i > 0 ? (uint64_t)token.i : 0;
		} else if (view_is(key, "manifest")) {
			code = read_manifest(&r, t, err);
		} else {
			code = canon_skip(&r, err);
		}
	}
	if (code == 0)
		code = canon_want(&r, CANON_END, &token, err);
	if (code < 0)
		return code;
	if (buf_check(&t->env) < 0 || buf_check(&t->places) < 0)
		return err_set(
			err, -E2BIG, "the template's record has too large an environment or list");
	if (!name_ok(view_str(t->name)))
		return err_set(err, -EINVAL, "the template's record has no name");
	return check_places(t, err);
}
