/* SPDX-License-Identifier: Apache-2.0 */
/* YAML by libyaml's events; see document.h. */
#include "config/document.h"

#include <stdio.h>
#include <yaml.h>

enum { KEY_BYTES_MAX = 128 };

struct reader {
	const struct document_sink *sink;
	struct document *out; /* borrowed */
	struct node *open[DOCUMENT_DEPTH_MAX];
	struct node *tail[DOCUMENT_DEPTH_MAX]; /* last child of each */
	unsigned children[DOCUMENT_DEPTH_MAX]; /* and their number */
	unsigned depth;                        /* containers that are open */
	struct node *keyed; /* waits for its value: the node was made when its key was read */
	unsigned skip;      /* open containers inside something refused */
	bool lose;          /* the next value belongs to a refused key */
	unsigned documents, nodes, faults;
};

static struct place
place_of(yaml_mark_t mark)
{
	return (struct place){.line = (uint32_t)mark.line + 1, .column = (uint32_t)mark.column + 1};
}

static void
fault(struct reader *r, yaml_mark_t mark, const char *text)
{
	r->faults++;
	r->sink->on_fault(r->sink->ctx, place_of(mark), text);
}

/* NULL: no memory, told. The texts stand behind the node. */
static struct node *
node_new(struct reader *r, yaml_mark_t at, struct view key)
{
	struct node *n = r->nodes < DOCUMENT_NODES_MAX ? calloc(1, sizeof(*n) + key.n + 1) : NULL;

	if (n == NULL) {
		fault(r, at, "the file holds more values than can be read");
		return NULL;
	}
	r->nodes++;
	n->created = r->out->last;
	r->out->last = n;
	if (key.n > 0) {
		memcpy(n + 1, key.p, key.n);
		n->key = view_of(n + 1, key.n);
	}
	return n;
}

static bool
inside(const struct reader *r, enum node_kind kind)
{
	return r->depth > 0 && r->open[r->depth - 1]->kind == kind;
}

static void
append(struct reader *r, struct node *n)
{
	struct node **tail;

	if (r->depth == 0) {
		r->out->root = n;
		return;
	}
	tail = &r->tail[r->depth - 1];
	if (*tail == NULL)
		r->open[r->depth - 1]->first = n;
	else
		(*tail)->next = n;
	*tail = n;
}

/* The node of a value that begins at `at`; NULL when it is refused. */
static struct node *
value_begin(struct reader *r, enum node_kind kind, yaml_mark_t at)
{
	struct node *n = r->keyed;

	if (r->lose) {
		r->lose = false;
		return NULL;
	}
	r->keyed = NULL;
	if (n == NULL)
		n = node_new(r, at, view_of(NULL, 0));
	if (n == NULL)
		return NULL;
	if (r->depth > 0 && r->children[r->depth - 1]++ == DOCUMENT_CHILDREN_MAX) {
		fault(r, at, "this list is longer than can be read");
		return NULL;
	}
	if (r->depth > 0 && r->children[r->depth - 1] > DOCUMENT_CHILDREN_MAX)
		return NULL;
	n->kind = kind;
	n->at = place_of(at);
	append(r, n);
	return n;
}

static bool
key_known(const struct reader *r, struct view key)
{
	node_each(n, r->open[r->depth - 1]) if (view_eq(n->key, key)) return true;
	return false;
}

static void
read_key(struct reader *r, const yaml_event_t *e)
{
	struct view key = view_of(e->data.scalar.value, e->data.scalar.length);
	struct node *n = NULL;

	if (key.n == 0 || key.n > KEY_BYTES_MAX || view_has(key, '\0'))
		fault(r, e->start_mark, "this is not the name of an option");
	else if (view_is(key, "<<"))
		fault(r, e->start_mark, "merge keys are not used here; write the values out");
	else if (key_known(r, key))
		fault(r, e->start_mark, "this option stands twice in the file; keep one");
	else
		n = node_new(r, e->start_mark, key);
	if (n != NULL)
		n->key_at = place_of(e->start_mark);
	r->keyed = n;
	r->lose = n == NULL;
}

static void
refuse_marks(
	struct reader *r, const yaml_event_t *e, const yaml_char_t *anchor, const yaml_char_t *tag)
{
	if (anchor != NULL)
		fault(r, e->start_mark, "anchors are not used here; write the value itself");
	if (tag != NULL)
		fault(r, e->start_mark, "tags are not used here; write the value alone");
}

static bool
key_comes(const struct reader *r)
{
	return inside(r, NODE_MAPPING) && r->keyed == NULL && !r->lose;
}

static void
on_scalar(struct reader *r, const yaml_event_t *e)
{
	size_t n = e->data.scalar.length;
	uint8_t *text;
	struct node *node;

	refuse_marks(r, e, e->data.scalar.anchor, e->data.scalar.tag);
	/* An empty file reads as one empty scalar. */
	if (r->depth == 0 && n == 0)
		return;
	if (key_comes(r)) {
		read_key(r, e);
		return;
	}
	node = value_begin(r, NODE_SCALAR, e->start_mark);
	if (node == NULL)
		return;
	node->plain = e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
	/* A node of its own holds the text: that of the value was made before its length was known. */
	if (n > 0) {
		struct node *holder = node_new(r, e->start_mark, view_of(e->data.scalar.value, n));

		if (holder == NULL)
			return;
		text = (uint8_t *)(holder + 1);
		node->text = view_of(text, n);
	}
}

static void
on_begin(struct reader *r, const yaml_event_t *e, enum node_kind kind)
{
	struct node *n;

	if (key_comes(r)) {
		fault(r, e->start_mark,
			"this is not the name of an option; text that begins with { or [ must "
			"stand in quotes");
		r->lose = true;
		r->skip = 1;
		return;
	}
	n = r->depth == DOCUMENT_DEPTH_MAX ? NULL : value_begin(r, kind, e->start_mark);
	if (r->depth == DOCUMENT_DEPTH_MAX) {
		fault(r, e->start_mark, "options are not nested so deep");
		r->keyed = NULL;
	}
	if (n == NULL) {
		r->lose = false;
		r->skip = 1;
		return;
	}
	r->open[r->depth] = n;
	r->tail[r->depth] = NULL;
	r->children[r->depth] = 0;
	r->depth++;
}

/* false ends the reading. */
static bool
on_event(struct reader *r, const yaml_event_t *e)
{
	bool starts = e->type == YAML_MAPPING_START_EVENT || e->type == YAML_SEQUENCE_START_EVENT;
	bool ends = e->type == YAML_MAPPING_END_EVENT || e->type == YAML_SEQUENCE_END_EVENT;

	if (r->skip > 0) {
		r->skip += starts ? 1U : 0U;
		r->skip -= ends ? 1U : 0U;
		return e->type != YAML_STREAM_END_EVENT;
	}
	switch (e->type) {
	case YAML_SCALAR_EVENT:
		on_scalar(r, e);
		break;
	case YAML_MAPPING_START_EVENT:
		refuse_marks(r, e, e->data.mapping_start.anchor, e->data.mapping_start.tag);
		on_begin(r, e, NODE_MAPPING);
		break;
	case YAML_SEQUENCE_START_EVENT:
		refuse_marks(r, e, e->data.sequence_start.anchor, e->data.sequence_start.tag);
		on_begin(r, e, NODE_SEQUENCE);
		break;
	case YAML_MAPPING_END_EVENT:
	case YAML_SEQUENCE_END_EVENT:
		r->depth--;
		break;
	case YAML_ALIAS_EVENT:
		fault(r, e->start_mark, "aliases are not used here; write the value itself");
		r->lose = key_comes(r);
		r->keyed = NULL;
		break;
	case YAML_DOCUMENT_START_EVENT:
		if (r->documents++ > 0) {
			fault(r, e->start_mark, "the file must hold one document");
			return false;
		}
		break;
	case YAML_STREAM_END_EVENT:
		return false;
	case YAML_NO_EVENT:
	case YAML_STREAM_START_EVENT:
	case YAML_DOCUMENT_END_EVENT:
		break;
	}
	return true;
}

/* Whether a tab is among the blanks that a line begins with: what libyaml says of it helps nobody. */
static bool
tab_leads(struct view text, size_t line)
{
	const uint8_t *end;

	for (; line > 0; line--) {
		end = text.n == 0 ? NULL : memchr(text.p, '\n', text.n);
		if (end == NULL)
			return false;
		text = view_skip(text, (size_t)(end - text.p) + 1);
	}
	while (text.n > 0 && text.p[0] == ' ')
		text = view_skip(text, 1);
	return text.n > 0 && text.p[0] == '\t';
}

unsigned
document_read(struct view text, struct document *ret, const struct document_sink *sink)
{
	struct reader r = {.sink = sink, .out = ret};
	yaml_parser_t parser;
	bool more = true;

	*ret = (struct document){.root = NULL};
	if (yaml_parser_initialize(&parser) == 0) {
		sink->on_fault(sink->ctx, (struct place){1, 1}, "no memory to read the file");
		return 1;
	}
	yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING); /* never by a mark of order */
	/* libyaml asserts that there is a pointer, even to nothing. */
	yaml_parser_set_input_string(&parser, text.n == 0 ? (const uint8_t *)"" : text.p, text.n);
	while (more && r.nodes < DOCUMENT_NODES_MAX) {
		yaml_event_t e;

		if (yaml_parser_parse(&parser, &e) == 0) {
			char what[160];

			(void)snprintf(what, sizeof(what), "this is not YAML: %s%s",
				parser.problem != NULL ? parser.problem : "unknown fault",
				tab_leads(text, parser.problem_mark.line)
					? "; the line begins with a tab: write spaces"
					: "");
			fault(&r, parser.problem_mark, what);
			break;
		}
		more = on_event(&r, &e);
		yaml_event_delete(&e);
	}
	if (r.nodes >= DOCUMENT_NODES_MAX && r.faults == 0)
		fault(&r, (yaml_mark_t){.line = 0}, "the file holds more values than can be read");
	yaml_parser_delete(&parser);
	return r.faults;
}

void
document_done(struct document *d)
{
	while (d->last != NULL) {
		struct node *n = d->last;

		d->last = n->created;
		free(n);
	}
	d->root = NULL;
}
