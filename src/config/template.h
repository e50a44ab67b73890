/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pieces of a request as people write them: "{order_id}" is the parameter, "@tenant" what the host knows, all else is fixed; "@@", "{{"
 * and "}}" stand for one character of it. Each function writes one value, whatever it has to refuse, so that the document goes on.
 */
#pragma once

#include "config/section.h"

enum host_word {
	HOST_KEY,
	HOST_TENANT,
	HOST_TASK,
	HOST_PROPOSAL,
	HOST_REFERENCE,
	HOST_WORDS,
};
#define HOSTS_OF_VERIFY  ((1U << HOST_TENANT) | (1U << HOST_TASK))
#define HOSTS_OF_REQUEST (HOSTS_OF_VERIFY | (1U << HOST_KEY) | (1U << HOST_PROPOSAL))

/* Where a term stands. */
struct term_room {
	const char *what; /* "a request" */
	unsigned hosts;   /* 1 << HOST_... */
};

/* [SEGMENT]; n may be NULL (told already). */
void path_write(struct builder *b, const struct term_room *room, const struct node *n,
	struct canon_writer *w);

/* "query": [{name, value}]; nothing when n is NULL. */
void query_write(struct builder *b, const struct term_room *room, const struct node *n,
	struct canon_writer *w);

/* TEMPLATE. flat: a form, whose values are no lists and mappings. */
void body_write(struct builder *b, const struct term_room *room, const struct node *n, bool flat,
	struct canon_writer *w);

/* A dotted path into an answer, as in data.0.id. */
void field_check(struct builder *b, const struct node *n);

/* The parameter of the operation that is compiled; NULL: there is none. */
const struct node *parameter_node(const struct builder *b, struct view name);

/* Tells that there is none, and what it may have meant. */
void parameter_missing(struct builder *b, struct place at, struct view name);

/* A child by its key, or NULL. */
const struct node *node_child(const struct node *n, const char *key);
