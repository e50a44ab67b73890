/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A YAML document as (dotted path, scalar, place) triples. Only what a configuration needs is YAML
 * here: one document, mappings and plain or quoted scalars. Anchors, aliases, tags, sequences, merge
 * keys, duplicate keys and further documents are faults. All faults are told, not only the first.
 */
#pragma once

#include "lib/base/err.h"
#include "lib/base/view.h"

struct place {
	uint32_t line, column; /* from 1 */
};

struct document_sink {
	void *ctx;
	/* A value; path is NUL-terminated, value borrowed. */
	void (*on_value)(void *ctx, const char *path, struct view value, struct place at);
	/* A mapping begins; so that a path that should be a value can be refused. */
	void (*on_mapping)(void *ctx, const char *path, struct place at);
	void (*on_fault)(void *ctx, struct place at, const char *text);
};

/* Reads the whole text. Faults of syntax end the reading; others do not. */
void document_read(struct view text, const struct document_sink *sink);
