/* SPDX-License-Identifier: Apache-2.0 */
/*
 * template.yaml to struct manifest. Only plain YAML is taken: one document, mappings,
 * sequences and scalars; no anchors, aliases or tags (so nothing refers to itself or
 * grows), no key twice, nothing that manifest.def does not list. First a pass over the
 * events for shape and depth, then the document for meaning.
 */
#include "template/limits.h"
#include "template/manifest.h"
#include "template/path_rule.h"

#include "lib/base/name.h"
#include "lib/base/num.h"

#include <errno.h>
#include <stdarg.h>
#include <yaml.h>

enum section { SECTION_TOP, SECTION_BASE, SECTION_USER };

enum kind {
	KIND_NAME,
	KIND_TEXT,
	KIND_NAMES,
	KIND_BASE,
	KIND_USER,
	KIND_PACKAGES,
	KIND_PATTERNS,
	KIND_PLACES,
	KIND_COMMANDS,
	KIND_ENV,
	KIND_ID,
	KIND_PATH,
};

struct key {
	enum section section;
	const char *name;
	size_t offset;
	enum kind kind;
	bool required;
};

static const struct key keys[] = {
#define KEY(section, name, member, kind, required, what) \
	{SECTION_##section, name, offsetof(struct manifest, member), KIND_##kind, required},
#include "template/manifest.def"
#undef KEY
};

enum { KEYS = ARRAY_LEN(keys) };

struct reader {
	const char *file;     /* borrowed */
	struct buf *problems; /* borrowed */
	struct err *err;      /* borrowed; the first problem */
	bool refused;
	yaml_document_t doc;
	struct manifest *out; /* borrowed */
};

static void problem(struct reader *r, yaml_mark_t at, const char *fmt, ...) PRINTF(3, 4);

static void
problem(struct reader *r, yaml_mark_t at, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (!r->refused)
		(void)err_set(r->err, -EINVAL, "%s:%zu:%zu: %s", r->file, at.line + 1,
			at.column + 1, text);
	r->refused = true;
	buf_addf(r->problems, "%s:%zu:%zu: %s\n", r->file, at.line + 1, at.column + 1, text);
}

/* Shape: what libyaml's document would hide from us. */
struct shape {
	unsigned depth, documents;
};

static void
shape_event(struct reader *r, struct shape *s, const yaml_event_t *e)
{
	const yaml_char_t *anchor = NULL, *tag = NULL;

	switch (e->type) {
	case YAML_SCALAR_EVENT:
		anchor = e->data.scalar.anchor;
		tag = e->data.scalar.tag;
		break;
	case YAML_SEQUENCE_START_EVENT:
		anchor = e->data.sequence_start.anchor;
		tag = e->data.sequence_start.tag;
		s->depth++;
		break;
	case YAML_MAPPING_START_EVENT:
		anchor = e->data.mapping_start.anchor;
		tag = e->data.mapping_start.tag;
		s->depth++;
		break;
	case YAML_SEQUENCE_END_EVENT:
	case YAML_MAPPING_END_EVENT:
		s->depth--;
		break;
	case YAML_ALIAS_EVENT:
		problem(r, e->start_mark, "aliases (*name) are not taken; write the value again");
		break;
	case YAML_DOCUMENT_START_EVENT:
		if (s->documents++ != 0)
			problem(r, e->start_mark, "a second document; one is taken");
		break;
	case YAML_NO_EVENT:
	case YAML_STREAM_START_EVENT:
	case YAML_STREAM_END_EVENT:
	case YAML_DOCUMENT_END_EVENT:
		break;
	}
	if (anchor != NULL)
		problem(r, e->start_mark, "anchors (&name) are not taken");
	if (tag != NULL)
		problem(r, e->start_mark, "tags (!name) are not taken");
	if (s->depth > LIMIT_MANIFEST_DEPTH)
		problem(r, e->start_mark, "nested too deep");
}

/* False when reading cannot go on. */
static bool
check_shape(struct reader *r, struct view text)
{
	struct shape shape = {0};
	yaml_parser_t parser;
	yaml_event_t event;
	bool more = true;

	if (!yaml_parser_initialize(&parser)) {
		problem(r, (yaml_mark_t){0}, "no memory");
		return false;
	}
	yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&parser, text.p, text.n);
	while (more && shape.depth <= LIMIT_MANIFEST_DEPTH) {
		if (!yaml_parser_parse(&parser, &event)) {
			problem(r, parser.problem_mark, "%s",
				parser.problem != NULL ? parser.problem : "no YAML");
			break;
		}
		shape_event(r, &shape, &event);
		more = event.type != YAML_STREAM_END_EVENT;
		yaml_event_delete(&event);
	}
	yaml_parser_delete(&parser);
	return !r->refused;
}

static struct view
scalar(const yaml_node_t *n)
{
	return view_of(n->data.scalar.value, n->data.scalar.length);
}

/* A scalar of at most LIMIT_SCALAR_BYTES printable characters; not empty. */
static bool
want_text(struct reader *r, const yaml_node_t *n, const char *what)
{
	struct view v;

	if (n->type != YAML_SCALAR_NODE) {
		problem(r, n->start_mark, "%s must be one value, not a list or a section", what);
		return false;
	}
	v = scalar(n);
	if (v.n == 0 || v.n > LIMIT_SCALAR_BYTES || !view_utf8(v)) {
		problem(r, n->start_mark, "%s must have 1 to %zu bytes of UTF-8", what,
			(size_t)LIMIT_SCALAR_BYTES);
		return false;
	}
	for (size_t i = 0; i < v.n; i++) {
		if (v.p[i] < 0x20 || v.p[i] == 0x7f) {
			problem(r, n->start_mark, "%s holds a control character", what);
			return false;
		}
	}
	return true;
}

static bool
only_of(struct view v, const char *set)
{
	for (size_t i = 0; i < v.n; i++) {
		if (strchr(set, (char)v.p[i]) == NULL)
			return false;
	}
	return true;
}

static void
store_text(struct reader *r, const yaml_node_t *n, void *at)
{
	struct view v = scalar(n);
	char **member = at;

	*member = strndup((const char *)v.p, v.n);
	if (*member == NULL)
		problem(r, n->start_mark, "no memory");
}

static void
read_name(struct reader *r, const yaml_node_t *n, const char *what, void *at)
{
	if (!want_text(r, n, what))
		return;
	if (!name_ok(scalar(n)))
		problem(r, n->start_mark,
			"%s: 1 to 63 of a-z 0-9 . _ -, starting with a letter or digit", what);
	else
		store_text(r, n, at);
}

static void
read_path(struct reader *r, const yaml_node_t *n, const char *what, void *at)
{
	if (!want_text(r, n, what))
		return;
	if (!path_rule_plain(scalar(n), ""))
		problem(r, n->start_mark, "%s must be a plain absolute path", what);
	else
		store_text(r, n, at);
}

/* 1000 to 60000: neither a system user nor one that the host gives a meaning. */
static void
read_id(struct reader *r, const yaml_node_t *n, const char *what, void *at)
{
	uint32_t *member = at;
	uint64_t value;

	if (!want_text(r, n, what))
		return;
	if (num_u64(scalar(n), 60000, &value) < 0 || value < 1000)
		problem(r, n->start_mark, "%s must be a number from 1000 to 60000", what);
	else
		*member = (uint32_t)value;
}

static bool
package_ok(struct view v)
{
	return v.n >= 2 && v.n <= 100 && only_of(v, "abcdefghijklmnopqrstuvwxyz0123456789+.-") &&
	       v.p[0] != '+' && v.p[0] != '.' && v.p[0] != '-';
}

/* What an item of a list must look like, and how that is told. */
static const char *
item_refusal(enum kind kind, struct view v)
{
	switch (kind) {
	case KIND_NAMES:
		return name_ok(v) ? NULL : "no name (1 to 63 of a-z 0-9 . _ -)";
	case KIND_PACKAGES:
		return package_ok(v) ? NULL : "no Debian package name";
	case KIND_PATTERNS:
		return path_rule_plain(v, "*?[]") ? NULL : "no absolute path pattern";
	case KIND_PLACES:
		return path_rule_place(v)
			       ? NULL
			       : "no place: a plain absolute path outside of system directories";
	case KIND_COMMANDS:
		return NULL;
	case KIND_NAME:
	case KIND_TEXT:
	case KIND_BASE:
	case KIND_USER:
	case KIND_ENV:
	case KIND_ID:
	case KIND_PATH:
		break;
	}
	return "no list item";
}

static void
read_list(struct reader *r, const yaml_node_t *n, const char *what, enum kind kind,
	struct strings *ret)
{
	if (n->type != YAML_SEQUENCE_NODE) {
		problem(r, n->start_mark, "%s must be a list", what);
		return;
	}
	for (const yaml_node_item_t *i = n->data.sequence.items.start;
		i < n->data.sequence.items.top; i++) {
		const yaml_node_t *item = yaml_document_get_node(&r->doc, *i);
		const char *refusal;
		bool twice = false;

		if (!want_text(r, item, what))
			continue;
		for (size_t k = 0; kind != KIND_COMMANDS && k < ret->n; k++)
			twice = twice || view_is(scalar(item), ret->v[k]);
		refusal = twice ? "in the list twice" : item_refusal(kind, scalar(item));
		if (refusal != NULL)
			problem(r, item->start_mark, "%s: \"%.*s\" is %s", what,
				VIEW_ARGS(scalar(item)), refusal);
		else if (strings_add(ret, scalar(item)) < 0)
			problem(r, item->start_mark, "%s: too many, or no memory", what);
	}
	if (kind != KIND_COMMANDS && kind != KIND_PATTERNS)
		strings_sort(ret);
}

static void
read_commands(struct reader *r, const yaml_node_t *n, const char *what)
{
	struct manifest *m = r->out;
	size_t count;

	if (n->type != YAML_SEQUENCE_NODE) {
		problem(r, n->start_mark, "%s must be a list of commands", what);
		return;
	}
	count = (size_t)(n->data.sequence.items.top - n->data.sequence.items.start);
	if (count == 0 || count > LIMIT_LIST_ITEMS) {
		problem(r, n->start_mark, "%s: 1 to %zu commands", what, (size_t)LIMIT_LIST_ITEMS);
		return;
	}
	m->finish = calloc(count, sizeof(m->finish[0]));
	if (m->finish == NULL) {
		problem(r, n->start_mark, "no memory");
		return;
	}
	m->n_finish = count;
	for (size_t i = 0; i < count; i++) {
		const yaml_node_t *item = yaml_document_get_node(
			&r->doc, n->data.sequence.items.start[i]);

		read_list(r, item, "a command of finish", KIND_COMMANDS, &m->finish[i]);
		if (item->type == YAML_SEQUENCE_NODE &&
			(m->finish[i].n == 0 || m->finish[i].v[0][0] != '/'))
			problem(r, item->start_mark, "a command starts with an absolute path");
	}
}

static bool
env_name_ok(struct view v)
{
	return v.n <= 64 && canon_key_ok(v);
}

static void
read_env(struct reader *r, const yaml_node_t *n, const char *what, struct strings *ret)
{
	if (n->type != YAML_MAPPING_NODE) {
		problem(r, n->start_mark, "%s must be a section of NAME: value", what);
		return;
	}
	for (const yaml_node_pair_t *p = n->data.mapping.pairs.start; p < n->data.mapping.pairs.top;
		p++) {
		const yaml_node_t *k = yaml_document_get_node(&r->doc, p->key);
		const yaml_node_t *v = yaml_document_get_node(&r->doc, p->value);
		char *line auto_free = NULL;
		bool twice = false;

		if (!want_text(r, k, "a name in env") || !want_text(r, v, "a value in env"))
			continue;
		if (!env_name_ok(scalar(k))) {
			problem(r, k->start_mark, "env: \"%.*s\" is no variable name",
				VIEW_ARGS(scalar(k)));
			continue;
		}
		for (size_t i = 0; i < ret->n; i++)
			twice = twice || (strlen(ret->v[i]) > scalar(k).n &&
						 memcmp(ret->v[i], scalar(k).p, scalar(k).n) == 0 &&
						 ret->v[i][scalar(k).n] == '=');
		if (twice)
			problem(r, k->start_mark, "env: %.*s stands twice", VIEW_ARGS(scalar(k)));
		else if (asprintf(&line, "%.*s=%.*s", VIEW_ARGS(scalar(k)), VIEW_ARGS(scalar(v))) <
				 0 ||
			 strings_add(ret, view_str(line)) < 0)
			problem(r, k->start_mark, "env: too many, or no memory");
	}
	manifest_sort_env(r->out);
}

static void read_section(struct reader *r, const yaml_node_t *n, enum section section);

static void
read_value(struct reader *r, const yaml_node_t *n, const struct key *key)
{
	void *at = (char *)r->out + key->offset;

	switch (key->kind) {
	case KIND_NAME:
		read_name(r, n, key->name, at);
		break;
	case KIND_TEXT:
		if (want_text(r, n, key->name))
			store_text(r, n, at);
		break;
	case KIND_PATH:
		read_path(r, n, key->name, at);
		break;
	case KIND_ID:
		read_id(r, n, key->name, at);
		break;
	case KIND_NAMES:
	case KIND_PACKAGES:
	case KIND_PATTERNS:
	case KIND_PLACES:
		read_list(r, n, key->name, key->kind, at);
		break;
	case KIND_COMMANDS:
		read_commands(r, n, key->name);
		break;
	case KIND_ENV:
		read_env(r, n, key->name, at);
		break;
	case KIND_BASE:
		read_section(r, n, SECTION_BASE);
		break;
	case KIND_USER:
		read_section(r, n, SECTION_USER);
		break;
	}
}

static const struct key *
key_find(enum section section, struct view name)
{
	for (size_t i = 0; i < KEYS; i++) {
		if (keys[i].section == section && view_is(name, keys[i].name))
			return &keys[i];
	}
	return NULL;
}

static void
read_section(struct reader *r, const yaml_node_t *n, enum section section)
{
	bool seen[KEYS] = {false};

	if (n->type != YAML_MAPPING_NODE) {
		problem(r, n->start_mark, "here a section of \"key: value\" is wanted");
		return;
	}
	for (const yaml_node_pair_t *p = n->data.mapping.pairs.start; p < n->data.mapping.pairs.top;
		p++) {
		const yaml_node_t *k = yaml_document_get_node(&r->doc, p->key);
		const struct key *key;

		if (!want_text(r, k, "a key"))
			continue;
		key = key_find(section, scalar(k));
		if (key == NULL) {
			problem(r, k->start_mark, "unknown key \"%.*s\"", VIEW_ARGS(scalar(k)));
		} else if (seen[key - keys]) {
			problem(r, k->start_mark, "the key %s stands twice", key->name);
		} else {
			seen[key - keys] = true;
			read_value(r, yaml_document_get_node(&r->doc, p->value), key);
		}
	}
	for (size_t i = 0; i < KEYS; i++) {
		if (keys[i].section == section && keys[i].required && !seen[i])
			problem(r, n->start_mark, "the key %s is missing", keys[i].name);
	}
}

/* Rules between keys; only looked at when each key by itself was right. */
static void
check_whole(struct reader *r)
{
	const struct manifest *m = r->out;
	yaml_mark_t top = {0};
	bool home_is_writable = false;

	for (size_t i = 0; i < m->places.n; i++) {
		for (size_t k = 0; k < m->places.n; k++) {
			if (i != k && path_rule_holds(m->places.v[i], view_str(m->places.v[k])))
				problem(r, top, "places: %s lies inside %s", m->places.v[k],
					m->places.v[i]);
		}
		home_is_writable = home_is_writable ||
				   path_rule_holds(m->places.v[i], view_str(m->home));
	}
	if (!home_is_writable)
		problem(r, top, "the home %s lies in none of the places", m->home);
	for (size_t i = 0; i < m->aliases.n; i++) {
		if (strcmp(m->aliases.v[i], m->name) == 0)
			problem(r, top, "the alias %s is the name itself", m->name);
	}
}

static void
read_document(struct reader *r, struct view text)
{
	yaml_parser_t parser;
	yaml_node_t *root;

	if (!yaml_parser_initialize(&parser)) {
		problem(r, (yaml_mark_t){0}, "no memory");
		return;
	}
	yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&parser, text.p, text.n);
	if (!yaml_parser_load(&parser, &r->doc)) {
		problem(r, parser.problem_mark, "%s",
			parser.problem != NULL ? parser.problem : "no YAML");
		yaml_parser_delete(&parser);
		return;
	}
	root = yaml_document_get_root_node(&r->doc);
	if (root == NULL)
		problem(r, (yaml_mark_t){0}, "the file is empty");
	else
		read_section(r, root, SECTION_TOP);
	if (!r->refused)
		check_whole(r);
	yaml_document_delete(&r->doc);
	yaml_parser_delete(&parser);
}

int
manifest_parse(struct view text, const char *file, struct manifest *ret, struct buf *problems,
	struct err *err)
{
	struct reader r = {.file = file, .problems = problems, .err = err, .out = ret};

	if (text.n > LIMIT_MANIFEST_BYTES)
		problem(&r, (yaml_mark_t){0}, "more than %zu bytes", (size_t)LIMIT_MANIFEST_BYTES);
	else if (check_shape(&r, text))
		read_document(&r, text);
	return r.refused ? err->code : 0;
}
