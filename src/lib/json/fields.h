/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An object of a stranger into a struct, by a table: one table per request body, so that
 * a route is data and not code. The first thing that is wrong is refused with a sentence
 * that names the field and what it must be.
 *
 *	struct exec_body {
 *		struct field_str cmd;
 *		struct field_int timeout_seconds;
 *	};
 *	static const struct field exec_fields[] = {
 *		FIELD_STR("cmd", struct exec_body, cmd, .required = true, .min = 1, .max = 65536),
 *		FIELD_INT("timeout_seconds", struct exec_body, timeout_seconds, .min = 1, .max = 3600),
 *	};
 *	struct exec_body body = {.timeout_seconds.v = 300};
 *	fields_read(json, "", exec_fields, ARRAY_LEN(exec_fields), 0, &body, err);
 *
 * Values in the struct are borrowed from the json_t. What is absent or null keeps the
 * default that the caller put there; `state` tells which of the three it was.
 */
#pragma once

#include "lib/base/err.h"
#include "lib/base/view.h"

#include <jansson.h>

enum field_state {
	FIELD_ABSENT,
	FIELD_NULL,
	FIELD_SET,
};

struct field_str {
	enum field_state state;
	struct view v; /* borrowed; a NUL stands behind it */
};

struct field_int {
	enum field_state state;
	int64_t v;
};

struct field_bool {
	enum field_state state;
	bool v;
};

/* A map of strings, a list of strings, or an object for another table; see `type`. */
struct field_json {
	enum field_state state;
	const json_t *v; /* borrowed */
};

enum field_type {
	FIELD_TYPE_STR,      /* struct field_str */
	FIELD_TYPE_INT,      /* struct field_int */
	FIELD_TYPE_BOOL,     /* struct field_bool */
	FIELD_TYPE_STR_MAP,  /* struct field_json: an object whose values are strings */
	FIELD_TYPE_STR_LIST, /* struct field_json: an array of strings */
	FIELD_TYPE_OBJECT,   /* struct field_json: any object, not looked into */
};

struct field {
	const char *name;
	enum field_type type;
	size_t at; /* offset in the struct */
	bool required;
	bool nullable;
	bool nul_ok; /* strings may have NUL (and json_limits.nul_ok must let them through) */

	/* INT: the range. Strings, also those in maps and lists: bytes of each. */
	int64_t min, max;

	const char *note; /* INT: what a refusal says behind the range; or NULL */

	/* Maps and lists. */
	size_t min_entries, max_entries;
	size_t max_key_bytes; /* maps; a key is never empty */

	/* A rule on top, for strings and for keys of maps, and what completes "must be ...". */
	bool (*check)(struct view v);
	const char *check_says;
	bool (*key_check)(struct view v);
	const char *key_says;
};

/* The offset of a member that has this type, else it does not compile. */
#define FIELD_AT(object, member, want)                                                  \
	(offsetof(object, member) + 0 * sizeof(struct {                                 \
		_Static_assert(__builtin_types_compatible_p(                            \
				       __typeof__(((object *)0)->member), struct want), \
			#member " is not a struct " #want);                             \
		int unused;                                                             \
	}))

#define FIELD_STR(field_name, object, member, ...)                     \
	{                                                              \
		.name = (field_name), .type = FIELD_TYPE_STR,          \
		.at = FIELD_AT(object, member, field_str), __VA_ARGS__ \
	}
#define FIELD_INT(field_name, object, member, ...)                     \
	{                                                              \
		.name = (field_name), .type = FIELD_TYPE_INT,          \
		.at = FIELD_AT(object, member, field_int), __VA_ARGS__ \
	}
#define FIELD_BOOL(field_name, object, member, ...)                     \
	{                                                               \
		.name = (field_name), .type = FIELD_TYPE_BOOL,          \
		.at = FIELD_AT(object, member, field_bool), __VA_ARGS__ \
	}
#define FIELD_STR_MAP(field_name, object, member, ...)                  \
	{                                                               \
		.name = (field_name), .type = FIELD_TYPE_STR_MAP,       \
		.at = FIELD_AT(object, member, field_json), __VA_ARGS__ \
	}
#define FIELD_STR_LIST(field_name, object, member, ...)                 \
	{                                                               \
		.name = (field_name), .type = FIELD_TYPE_STR_LIST,      \
		.at = FIELD_AT(object, member, field_json), __VA_ARGS__ \
	}
#define FIELD_OBJECT(field_name, object, member, ...)                   \
	{                                                               \
		.name = (field_name), .type = FIELD_TYPE_OBJECT,        \
		.at = FIELD_AT(object, member, field_json), __VA_ARGS__ \
	}

enum { FIELDS_IGNORE_UNKNOWN = 1 };

/*
 * Reads `json`, which must be an object. `path` stands before each name in sentences: ""
 * at the top, "files[2]." for a nested object. 0, or -EINVAL with *object untouched.
 */
int fields_read(const json_t *json, const char *path, const struct field *rows, size_t n,
	unsigned flags, void *object, struct err *err) MUST_CHECK;

/*
 * Of that the question of unknown fields alone: every key of json, an object, is one of n names (at most 64), else a refusal
 * that tells the closest ones. For tables that take fields of their own before fields_read.
 */
int fields_known(const json_t *json, const char *path, const char *const *names, size_t n,
	struct err *err) MUST_CHECK;

/* The bytes of a string of a map or list that fields_read has accepted. */
static inline struct view
field_view(const json_t *string)
{
	return view_of(json_string_value(string), json_string_length(string));
}
