/* SPDX-License-Identifier: Apache-2.0 */
/* Answers of the daemon; see answer.h. */
#include "cli/answer.h"

#include "lib/base/clock.h"
#include "lib/json/fields.h"

#include <errno.h>
#include <inttypes.h>

enum { PAGE_ROWS = 50, PAGES_MAX = 4000, EXIT_PIPE = 128 + 13 };

const json_t *
answer_at(const json_t *json, const char *path)
{
	while (json != NULL && *path != '\0') {
		size_t n = strcspn(path, ".");

		json = json_object_getn(json, path, n);
		path += n + (path[n] == '.');
	}
	return json;
}

struct view
answer_text(const json_t *json, const char *path)
{
	const json_t *v = answer_at(json, path);

	return json_is_string(v) ? field_view(v) : view_of("", 0);
}

int64_t
answer_int(const json_t *json, const char *path, int64_t absent)
{
	const json_t *v = answer_at(json, path);

	if (json_is_real(v) && json_real_value(v) >= 0 && json_real_value(v) < 9e15)
		return (int64_t)json_real_value(v);
	return json_is_integer(v) ? json_integer_value(v) : absent;
}

bool
answer_bool(const json_t *json, const char *path)
{
	return json_is_true(answer_at(json, path));
}

int
answer_need(const json_t *json, const char *path, struct view *ret, struct err *err)
{
	*ret = answer_text(json, path);
	if (ret->n == 0 || view_has(*ret, '\0'))
		return err_set(err, -EBADMSG, "the daemon's answer has no %s", path);
	return 0;
}

int
answer_id(const json_t *json, const char *prefix, char ret[static ID_TEXT], struct err *err)
{
	struct id id;

	if (id_parse(answer_text(json, "id"), prefix, &id) < 0)
		return err_set(err, -EBADMSG, "the daemon's answer has no id");
	id_text(&id, prefix, ret);
	return 0;
}

void
answer_time(const json_t *json, const char *path, char ret[static 32])
{
	struct view text = answer_text(json, path);
	int64_t ms = answer_int(json, path, 0);
	char made[CLOCK_TEXT];

	(void)snprintf(ret, 32, "-");
	if (text.n == 0 && ms > 0) {
		clock_text((uint64_t)ms, made);
		text = view_str(made);
	}
	if (text.n < 19 || text.n >= 32)
		return;
	memcpy(ret, text.p, 19);
	ret[19] = '\0';
	if (ret[10] == 'T')
		ret[10] = ' ';
}

void
answer_pairs(const json_t *object, struct buf *ret)
{
	json_t *o = (json_t *)(uintptr_t)object;

	for (void *i = json_object_iter(o); i != NULL; i = json_object_iter_next(o, i)) {
		const json_t *v = json_object_iter_value(i);

		if (ret->n != 0)
			buf_add_byte(ret, ' ');
		buf_add(ret, json_object_iter_key(i), json_object_iter_key_len(i));
		buf_add_byte(ret, '=');
		if (json_is_string(v))
			buf_add_view(ret, field_view(v));
		else if (json_is_integer(v))
			buf_addf(ret, "%" PRId64, (int64_t)json_integer_value(v));
		else
			buf_add_str(ret, "?");
	}
}

int
answer_print(const json_t *json, struct err *err)
{
	if (json_dumpf(json, stdout, JSON_INDENT(2) | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(15)) <
			0 ||
		putchar('\n') == EOF)
		return answer_done(err);
	return 0;
}

/* One page, {items, more}, onto `all`; 1: more follow, after the `key` of its last one. */
static int
take_page(const json_t *page, const char *key, json_t *all, char *after, size_t n, struct err *err)
{
	json_t *items = json_object_get(page, "items");
	struct view last;
	int r;

	if (!json_is_array(items))
		return err_set(err, -EBADMSG, "the daemon's answer is not a list");
	if (json_array_extend(all, items) < 0)
		return err_set(err, -ENOMEM, "no memory");
	if (!answer_bool(page, "more"))
		return 0;
	r = answer_need(json_array_get(items, json_array_size(items) - 1), key, &last, err);
	if (r < 0)
		return r;
	if (last.n >= n || view_is(last, after))
		return err_set(err, -EBADMSG, "the daemon's list does not go on");
	memcpy(after, last.p, last.n);
	after[last.n] = '\0';
	return 1;
}

int
answer_pages(struct client *c, struct view target, bool has_query, const char *key, json_t **ret,
	struct err *err)
{
	json_t *all auto_json = json_array();
	char after[256] = "";
	int r = 1;

	for (unsigned pages = 0; all != NULL && r == 1 && pages < PAGES_MAX; pages++) {
		auto_buf struct buf at;
		json_t *page auto_json = NULL;

		buf_init(&at, 4096);
		buf_add_view(&at, target);
		buf_addf(&at, "%climit=%d", has_query ? '&' : '?', PAGE_ROWS);
		if (after[0] != '\0') {
			buf_add_str(&at, "&after=");
			target_add(&at, after);
		}
		r = client_get(c, buf_view(&at), &page, err);
		if (r == 0)
			r = take_page(page, key, all, after, sizeof(after), err);
	}
	if (r == 0)
		*ret = take_ptr(all);
	return r <= 0 ? r : err_set(err, -ENOMEM, "the list is too long");
}

int
answer_done(struct err *err)
{
	if (fflush(stdout) == 0 && ferror(stdout) == 0)
		return 0;
	return errno == EPIPE ? EXIT_PIPE : err_errno(err, "cannot write the output");
}
