/* SPDX-License-Identifier: Apache-2.0 */
/* YAML by libyaml's events; see document.h. */
#include "config/document.h"

#include <stdio.h>
#include <yaml.h>

enum { DEPTH_MAX = 4, PATH_MAX_BYTES = 128, KEYS_MAX = 256 };

struct reader {
	const struct document_sink *sink;
	char path[PATH_MAX_BYTES];
	size_t starts[DEPTH_MAX + 1]; /* length of the path before the key at this depth */
	int depth;                    /* open mappings */
	bool has_key;                 /* the next event is the value of path */
	int skip;                     /* open containers inside something refused */
	int documents;
	char seen[KEYS_MAX][PATH_MAX_BYTES]; /* full paths, to find duplicates */
	size_t nseen;
};

static struct place
place_of(yaml_mark_t mark)
{
	return (struct place){.line = (uint32_t)mark.line + 1, .column = (uint32_t)mark.column + 1};
}

static void
fault(struct reader *r, yaml_mark_t mark, const char *text)
{
	r->sink->on_fault(r->sink->ctx, place_of(mark), text);
}

static bool
seen_before(struct reader *r)
{
	for (size_t i = 0; i < r->nseen; i++)
		if (strcmp(r->seen[i], r->path) == 0)
			return true;
	if (r->nseen < KEYS_MAX)
		memcpy(r->seen[r->nseen++], r->path, sizeof(r->path));
	return false;
}

/* Appends ".key" to the path. */
static void
read_key(struct reader *r, const yaml_event_t *e)
{
	struct view key = view_of(e->data.scalar.value, e->data.scalar.length);
	size_t used = r->starts[r->depth];

	r->has_key = true;
	if (key.n == 0 || view_has(key, '\0') || view_has(key, '.') ||
		used + key.n + 2 > PATH_MAX_BYTES) {
		fault(r, e->start_mark, "this is not the name of an option");
		(void)snprintf(r->path + used, PATH_MAX_BYTES - used, "?");
		return;
	}
	(void)snprintf(r->path + used, PATH_MAX_BYTES - used, "%s%.*s", used == 0 ? "" : ".",
		VIEW_ARGS(key));
	if (seen_before(r))
		fault(r, e->start_mark, "this option stands twice in the file; keep one");
}

static void
on_scalar(struct reader *r, const yaml_event_t *e)
{
	if (e->data.scalar.anchor != NULL)
		fault(r, e->start_mark, "anchors are not used here; write the value itself");
	if (e->data.scalar.tag != NULL)
		fault(r, e->start_mark, "tags are not used here; write the value alone");
	if (r->depth == 0) {
		/* An empty file reads as one empty scalar. */
		if (e->data.scalar.length != 0)
			fault(r, e->start_mark, "the file must be a list of `option: value` lines");
		return;
	}
	if (!r->has_key) {
		read_key(r, e);
		return;
	}
	r->has_key = false;
	r->sink->on_value(r->sink->ctx, r->path,
		view_of(e->data.scalar.value, e->data.scalar.length), place_of(e->start_mark));
}

static void
on_mapping_start(struct reader *r, const yaml_event_t *e)
{
	if (r->depth > 0 && !r->has_key) {
		fault(r, e->start_mark, "a mapping cannot be the name of an option");
		r->skip = 1;
		return;
	}
	if (r->depth == DEPTH_MAX) {
		fault(r, e->start_mark, "options are not nested so deep");
		r->has_key = false;
		r->skip = 1;
		return;
	}
	if (r->depth > 0)
		r->sink->on_mapping(r->sink->ctx, r->path, place_of(e->start_mark));
	r->has_key = false;
	r->depth++;
	r->starts[r->depth] = r->depth == 1 ? 0 : strlen(r->path);
}

static void
on_mapping_end(struct reader *r)
{
	r->path[r->starts[r->depth]] = '\0';
	r->depth--;
}

static void
refuse_container(struct reader *r, const yaml_event_t *e, const char *text)
{
	fault(r, e->start_mark, text);
	r->has_key = false;
	r->skip = 1;
}

/* false ends the reading. */
static bool
on_event(struct reader *r, const yaml_event_t *e)
{
	bool starts = e->type == YAML_MAPPING_START_EVENT || e->type == YAML_SEQUENCE_START_EVENT;
	bool ends = e->type == YAML_MAPPING_END_EVENT || e->type == YAML_SEQUENCE_END_EVENT;

	if (r->skip > 0) {
		r->skip += starts ? 1 : ends ? -1 : 0;
		return e->type != YAML_STREAM_END_EVENT;
	}
	switch (e->type) {
	case YAML_SCALAR_EVENT:
		on_scalar(r, e);
		break;
	case YAML_MAPPING_START_EVENT:
		on_mapping_start(r, e);
		break;
	case YAML_MAPPING_END_EVENT:
		on_mapping_end(r);
		break;
	case YAML_SEQUENCE_START_EVENT:
		refuse_container(r, e, "no option is a list");
		break;
	case YAML_ALIAS_EVENT:
		fault(r, e->start_mark, "aliases are not used here; write the value itself");
		r->has_key = false;
		break;
	case YAML_DOCUMENT_START_EVENT:
		if (r->documents++ > 0)
			fault(r, e->start_mark, "the file must hold one document");
		break;
	case YAML_STREAM_END_EVENT:
		return false;
	case YAML_NO_EVENT:
	case YAML_STREAM_START_EVENT:
	case YAML_DOCUMENT_END_EVENT:
	case YAML_SEQUENCE_END_EVENT:
		break;
	}
	return true;
}

void
document_read(struct view text, const struct document_sink *sink)
{
	struct reader *r = calloc(1, sizeof(*r));
	yaml_parser_t parser;
	bool more = true;

	if (r == NULL || yaml_parser_initialize(&parser) == 0) {
		free(r);
		sink->on_fault(sink->ctx, (struct place){1, 1}, "no memory to read the file");
		return;
	}
	r->sink = sink;
	yaml_parser_set_input_string(&parser, text.p, text.n);
	while (more) {
		yaml_event_t e;

		if (yaml_parser_parse(&parser, &e) == 0) {
			char what[160];

			(void)snprintf(what, sizeof(what), "this is not YAML: %s",
				parser.problem != NULL ? parser.problem : "unknown fault");
			fault(r, parser.problem_mark, what);
			break;
		}
		more = on_event(r, &e);
		yaml_event_delete(&e);
	}
	yaml_parser_delete(&parser);
	free(r);
}
