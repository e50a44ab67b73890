/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines of an audit export that wait for their inclusion proofs, which the daemon gives for many at once. Each proof is verified against the head
 * before the line goes on to `take`.
 */
#pragma once

#include "cli/export.h"
#include "cli/head.h"

enum { PROOFS_LINES = 128 };

struct proofs {
	struct cli *cli;         /* borrowed */
	const char *task;        /* borrowed */
	const struct head *head; /* borrowed */
	int (*take)(void *arg, const struct export_line *l, struct view proof, struct err *err);
	void *arg;
	struct buf text; /* owned: the lines */
	size_t end[PROOFS_LINES];
	size_t n;
	uint64_t beyond; /* records that came after the head: not taken */
};

void proofs_init(struct proofs *p);
void proofs_done(struct proofs *p);
#define auto_proofs __attribute__((cleanup(proofs_done)))

/* A line without newline. */
int proofs_add(struct proofs *p, struct view line, struct err *err) MUST_CHECK;
/* What still waits. */
int proofs_flush(struct proofs *p, struct err *err) MUST_CHECK;

/* Reads the whole record of the task from the daemon through `p`. */
int proofs_read(struct proofs *p, struct err *err) MUST_CHECK;
