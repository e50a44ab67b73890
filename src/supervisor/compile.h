/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One run of the configuration compiler: a short-lived confined process that reads a file or a directory by descriptor. Of
 * what it says only typed messages are believed. Used for demilune.yaml at the start (settings.c) and for the directories of operations and
 * policies at the start and after SIGHUP (catalogue.c).
 */
#pragma once

#include "lib/ipc/datagram.h"
#include "supervisor/revisions.h"
#include "supervisor/program.h"

enum compile_kind { COMPILE_SETTINGS, COMPILE_OPERATIONS, COMPILE_POLICIES };

struct compile {
	const char *name; /* of the file or directory, for the log; borrowed */
	enum compile_kind kind;
	int fd, pidfd; /* owned; -1: it does not run */
	uint8_t *room; /* owned: where messages are received */
	size_t room_bytes;
	uint64_t until_ms;

	/* What it said. The answer is there when it was told and there are no faults. */
	bool told;
	uint32_t faults;
	struct settings settings;
	struct msg_config_catalogue catalogue;
	int operations, origins;   /* owned: sealed, within their bounds; -1 */
	uint32_t npolicies;        /* to be told */
	struct revisions policies; /* owned: sealed, within their bounds */
};

void compile_init(struct compile *c);

/* Starts it on what is open as `input`. */
int compile_begin(struct compile *c, const struct programs *programs, const char *name,
	enum compile_kind kind, int input, struct err *err) MUST_CHECK;

/* Reads what is there. 1: it came to its end and told an answer without a fault; 0: more is to come; negative: no answer. */
int compile_step(struct compile *c, struct err *err) MUST_CHECK;

/* Until its end: 0 or negative. */
int compile_wait(struct compile *c, struct err *err) MUST_CHECK;

/* Ends the process and closes what nobody took. */
void compile_end(struct compile *c);
