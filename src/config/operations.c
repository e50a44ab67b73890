/* SPDX-License-Identifier: Apache-2.0 */
/* Files, providers and operations together; see operations.h. */
#include "config/operations.h"

#include "config/operation.h"
#include "config/provider.h"
#include "lib/action/operation.h"

#include <stdio.h>

/* A file that was read. */
struct source {
	const char *name;
	struct document document;
	struct section s; /* .node NULL: it holds nothing that can be used */
};

/* An operation, and where it stands. */
struct named {
	const struct node *node;
	const char *file;
};

struct compilation {
	struct builder b;
	struct source *source; /* owned */
	size_t sources;
	struct named *operation; /* owned; ascending by name */
	size_t operations;
};

static void
on_document_fault(void *ctx, struct place at, const char *text)
{
	fault(ctx, at, "%s", text);
}

static void
source_read(struct compilation *c, const struct operations_file *file, struct source *ret)
{
	const struct document_sink sink = {.ctx = &c->b, .on_fault = on_document_fault};

	*ret = (struct source){.name = file->name};
	c->b.file = file->name;
	(void)document_read(file->text, &ret->document, &sink);
}

static void
source_sections(struct compilation *c, struct source *s)
{
	c->b.file = s->name;
	if (s->document.root != NULL && !section_read(&c->b, SECTION_FILE, s->document.root, &s->s))
		s->s.node = NULL;
}

static size_t
children(const struct node *n)
{
	size_t count = 0;

	if (n != NULL)
		node_each(child, n) count++;
	return count;
}

/* ---- providers ---- */

static void
provider_add(struct compilation *c, const struct node *n)
{
	struct builder *b = &c->b;

	for (size_t i = 0; i < b->providers; i++)
		if (view_eq(b->provider[i].node->key, n->key)) {
			fault(b, n->key_at,
				"the provider %.*s stands in %s too (line %u); keep one",
				VIEW_ARGS(n->key), b->provider[i].file,
				b->provider[i].node->key_at.line);
			return;
		}
	if (b->providers == ORIGINS_MAX) {
		fault(b, n->key_at, "there are more than %d providers", ORIGINS_MAX);
		return;
	}
	provider_source_read(b, n, &b->provider[b->providers]);
	b->providers++;
}

static void
read_providers(struct compilation *c)
{
	size_t n = 0;

	for (size_t i = 0; i < c->sources; i++)
		n += children(c->source[i].s.at[KEY_FILE_PROVIDERS]);
	c->b.provider = calloc((n < ORIGINS_MAX ? n : ORIGINS_MAX) + 1, sizeof(*c->b.provider));
	must(c->b.provider != NULL);
	for (size_t i = 0; i < c->sources; i++) {
		const struct node *all = c->source[i].s.at[KEY_FILE_PROVIDERS];

		c->b.file = c->source[i].name;
		if (all != NULL)
			node_each(one, all) provider_add(c, one);
	}
}

/* ---- operations ---- */

static int
by_name(const void *a, const void *b)
{
	const struct named *x = a, *y = b;

	return canon_key_compare(x->node->key, y->node->key);
}

static void
collect_operations(struct compilation *c)
{
	size_t n = 0;

	for (size_t i = 0; i < c->sources; i++)
		n += children(c->source[i].s.at[KEY_FILE_OPERATIONS]);
	c->operation = calloc(n + 1, sizeof(*c->operation));
	must(c->operation != NULL);
	for (size_t i = 0; i < c->sources; i++) {
		const struct node *all = c->source[i].s.at[KEY_FILE_OPERATIONS];

		if (all != NULL)
			node_each(one, all) c->operation[c->operations++] = (struct named){
				.node = one, .file = c->source[i].name};
	}
}

/* The same name twice is told at the second; files are in the order of their names. */
static void
find_twice(struct compilation *c)
{
	for (size_t i = 1; i < c->operations; i++)
		for (size_t j = 0; j < i; j++) {
			const struct named *late = &c->operation[i], *early = &c->operation[j];

			if (!view_eq(late->node->key, early->node->key))
				continue;
			c->b.file = late->file;
			fault(&c->b, late->node->key_at,
				"the operation %.*s stands in %s too (line %u); keep one",
				VIEW_ARGS(late->node->key), early->file, early->node->key_at.line);
			break;
		}
}

static void
compile_operations(struct compilation *c, struct operations *ret)
{
	collect_operations(c);
	if (c->operations > OPERATIONS_MAX) {
		c->b.file = c->operation[OPERATIONS_MAX].file;
		fault(&c->b, c->operation[OPERATIONS_MAX].node->key_at,
			"there are more than %d operations", OPERATIONS_MAX);
		return;
	}
	find_twice(c);
	qsort(c->operation, c->operations, sizeof(*c->operation), by_name);
	for (size_t i = 0; i < c->operations; i++) {
		c->b.file = c->operation[i].file;
		operation_compile(&c->b, c->operation[i].node, &ret->catalogue);
	}
	if (buf_check(&ret->catalogue) < 0)
		fault(&c->b, (struct place){1, 1}, "all operations together are larger than %d MiB",
			CATALOGUE_BYTES_MAX >> 20);
	ret->noperations = (uint32_t)c->operations;
}

static void
compile_meaning(struct compilation *c, struct operations *ret)
{
	for (size_t i = 0; i < c->sources; i++)
		source_sections(c, &c->source[i]);
	read_providers(c);
	compile_operations(c, ret);
	c->b.file = c->sources > 0 ? c->source[0].name : "";
	ret->norigins = origins_write(&c->b, &ret->origins);
}

unsigned
operations_compile(const struct operations_file *files, size_t n, struct operations *ret,
	const struct operations_sink *sink)
{
	struct compilation c = {.b = {.sink = sink, .file = ""}};

	*ret = (struct operations){.noperations = 0};
	buf_init(&ret->catalogue, CATALOGUE_BYTES_MAX);
	buf_init(&ret->origins, CANON_BYTES_MAX);
	must(n <= OPERATIONS_FILES_MAX);
	c.source = calloc(n + 1, sizeof(*c.source));
	must(c.source != NULL);
	for (; c.sources < n; c.sources++)
		source_read(&c, &files[c.sources], &c.source[c.sources]);
	/* What is not YAML of ours has no meaning that could be looked at. */
	if (c.b.faults == 0)
		compile_meaning(&c, ret);
	for (size_t i = 0; i < c.sources; i++)
		document_done(&c.source[i].document);
	free(c.source);
	free(c.operation);
	free(c.b.provider);
	return c.b.faults;
}

void
operations_done(struct operations *o)
{
	buf_done(&o->catalogue);
	buf_done(&o->origins);
}
