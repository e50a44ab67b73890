/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A YAML document as a tree of values with their places. Only what a configuration needs is YAML here: one document,
 * mappings, sequences, plain and quoted scalars. Anchors, aliases, tags, merge keys, keys that stand twice and further
 * documents are faults. All faults are told, not only the first; a fault of syntax ends the reading.
 */
#pragma once

#include "lib/base/err.h"
#include "lib/base/view.h"

enum { DOCUMENT_DEPTH_MAX = 16, DOCUMENT_NODES_MAX = 32768, DOCUMENT_CHILDREN_MAX = 1024 };

struct place {
	uint32_t line, column; /* from 1 */
};

struct document_sink {
	void *ctx;
	void (*on_fault)(void *ctx, struct place at, const char *text);
};

enum node_kind {
	NODE_SCALAR,
	NODE_MAPPING,
	NODE_SEQUENCE,
};

struct node {
	enum node_kind kind;
	bool plain;           /* SCALAR: without quotes, on one line */
	struct place at;      /* of the value */
	struct place key_at;  /* of its key, in a mapping */
	struct view key;      /* in a mapping; not empty, without NUL */
	struct view text;     /* SCALAR */
	struct node *first;   /* children in the order of the file */
	struct node *next;    /* sibling */
	struct node *created; /* the one before, to free them */
};

struct document {
	struct node *root; /* NULL: the file is empty, or could not be read */
	struct node *last; /* owned: all nodes, linked by `created` */
};

/* The number of faults. The tree is usable when there are some too: what is refused is not in it. */
unsigned document_read(struct view text, struct document *ret, const struct document_sink *sink);
void document_done(struct document *d);

static inline void
document_cleanup(struct document *d)
{
	document_done(d);
}
#define auto_document __attribute__((cleanup(document_cleanup)))

/* The children of a mapping or sequence. */
#define node_each(var, parent) \
	for (const struct node *var = (parent)->first; var != NULL; var = var->next)
