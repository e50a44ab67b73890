/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies by table; see body.h. */
#include "body.h"

#include "body_table.h"

static int read_into(
	enum body_name name, json_t *json, const char *path, void *at, struct err *err);

static int
seconds_take(const struct extra *x, const char *path, const json_t *v, struct field_int *ret,
	struct err *err)
{
	double s = json_number_value(v);

	if (json_is_null(v))
		return 0;
	if (!json_is_number(v) || !(s >= 0.001 && s <= (double)x->max))
		return err_set(err, -ERROR_BAD_REQUEST,
			"%s%s must be a number of seconds above 0 and at most %lld%s%s", path,
			x->name, (long long)x->max, x->note == NULL ? "" : "; ",
			x->note == NULL ? "" : x->note);
	*ret = (struct field_int){.state = FIELD_SET, .v = (int64_t)(s * 1000 + 0.5)};
	return 0;
}

static bool
is_empty(const json_t *v)
{
	return json_is_null(v) || (json_is_array(v) && json_array_size(v) == 0) ||
	       (json_is_object(v) && json_object_size(v) == 0) ||
	       (json_is_string(v) && json_string_length(v) == 0);
}

/* One field that is there; `v` is borrowed. */
static int
extra_take(const struct extra *x, const char *path, json_t *v, void *object, struct err *err)
{
	void *at = (char *)object + x->at;
	char inner[64];

	switch (x->kind) {
	case EXTRA_SECONDS:
		return seconds_take(x, path, v, at, err);
	case EXTRA_IGNORED:
		return 0;
	case EXTRA_LATER:
		if (is_empty(v))
			return 0;
		return err_set(err, -ERROR_NOT_BUILT, "%s%s: %s", path, x->name, x->prose);
	case EXTRA_OBJECT:
		if (json_is_null(v))
			return 0;
		(void)snprintf(inner, sizeof(inner), "%s%s.", path, x->name);
		return read_into(x->body, v, inner, at, err);
	}
	return 0;
}

static int
read_into(enum body_name name, json_t *json, const char *path, void *object, struct err *err)
{
	const struct body_table *t = &body_tables[name];

	for (size_t i = 0; json_is_object(json) && i < t->nextras; i++) {
		const struct extra *x = &t->extras[i];
		json_t *v = json_object_get(json, x->name);

		if (v == NULL)
			continue;
		if (extra_take(x, path, v, object, err) < 0)
			return err->code;
		if (x->kind != EXTRA_OBJECT)
			(void)json_object_del(json, x->name); /* it is there */
	}
	if ((json_is_object(json) && fields_known(json, path, t->names, t->nnames, err) < 0) ||
		fields_read(json, path, t->rows, t->nrows, 0, object, err) < 0)
		return err->code = -ERROR_BAD_REQUEST;
	return 0;
}

int
body_read(enum body_name name, json_t *json, void **ret, struct err *err)
{
	auto_free void *object = calloc(1, body_tables[name].bytes);

	if (object == NULL)
		return err_set(err, -ERROR_INTERNAL, "no memory for a request");
	if (read_into(name, json, "", object, err) < 0)
		return err->code;
	*ret = take_ptr(object);
	return 0;
}

void
body_map(const struct field_json *map, bool joined, struct buf *ret)
{
	json_t *json =
		(json_t *)(uintptr_t)map->v; /* jansson iterates over non-const objects only */

	if (map->state != FIELD_SET)
		return;
	for (void *i = json_object_iter(json); i != NULL; i = json_object_iter_next(json, i)) {
		buf_add(ret, json_object_iter_key(i), json_object_iter_key_len(i));
		buf_add_byte(ret, joined ? '=' : 0);
		buf_add_view(ret, field_view(json_object_iter_value(i)));
		buf_add_byte(ret, 0);
	}
}

void
body_list(const struct field_json *list, struct buf *ret)
{
	if (list->state != FIELD_SET)
		return;
	for (size_t i = 0; i < json_array_size(list->v); i++) {
		buf_add_view(ret, field_view(json_array_get(list->v, i)));
		buf_add_byte(ret, 0);
	}
}

void
body_limits(const struct body_limits *in, struct limits *ret)
{
	*ret = (struct limits){
		.memory_bytes = (uint64_t)in->memory_mb.v << 20,
		.disk_bytes = (uint64_t)in->disk_mb.v << 20,
		.disk_inodes = (uint32_t)in->disk_inodes.v,
		.pids = (uint32_t)in->pids.v,
		.cpu_milli = (uint32_t)in->cpu_milli.v,
		.open_files = (uint32_t)in->open_files.v,
	};
}
