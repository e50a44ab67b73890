/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of operations (YAML, demilune-operations(5)) into the catalogue and the list of origins, as docs/decisions/0003-actions.md has
 * them. Pure; for main.c, tests and fuzzing. lib/action, which engine, broker and CLI read the catalogue with, has the last word about
 * each document: what it refuses is a fault here.
 */
#pragma once

#include "config/document.h"
#include "lib/base/buf.h"

enum {
	OPERATIONS_FILES_MAX = 64,
	OPERATIONS_FILE_BYTES_MAX = 256 << 10,
	OPERATIONS_FAULTS_MAX = 100, /* told; more are counted */
	ORIGINS_MAX = 512,
};

struct operations_file {
	const char *name; /* in faults */
	struct view text;
};

struct operations_sink {
	void *ctx;
	void (*on_fault)(void *ctx, const char *file, struct place at, const char *text);
};

struct operations {
	struct buf catalogue; /* owned: u32 length and document, again and again */
	struct buf origins;   /* owned: one document */
	uint32_t noperations, norigins;
};

/* The number of faults; *ret is complete when it is 0, and to be ended by operations_done() in any case. */
unsigned operations_compile(const struct operations_file *files, size_t n, struct operations *ret,
	const struct operations_sink *sink);
void operations_done(struct operations *o);

static inline void
operations_cleanup(struct operations *o)
{
	operations_done(o);
}
#define auto_operations __attribute__((cleanup(operations_cleanup)))
