/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Code contexts: interpreters that are held open for a caller, each a job with repl_driver.py. They live in this
 * process: they end with it, with their sandbox, when nobody used them for LIMIT_REPL_IDLE_MS, or when the engine is
 * restarted. What comes out of one is a claim of the sandbox; it is bounded and parsed strictly.
 */
#pragma once

#include "job.h"
#include "request.h"

#include <jansson.h>

enum { REPL_NAME = 17 };

struct repl {
	struct link link; /* in api->repls */
	struct api *api;  /* borrowed */
	char name[REPL_NAME];
	struct id sandbox;
	struct caller caller;
	struct job *job;         /* owned */
	struct buf line;         /* of the interpreter, not complete yet */
	struct request *waiting; /* borrowed; who waits for its next answer, NULL = it is idle */
	bool ready;              /* it said so */
	bool interrupted;        /* the cell passed its time and was interrupted */
	uint64_t cell;           /* number of the last one */
	uint64_t created_ms, used_ms;
};

void repl_start(struct api *api); /* the reaper of idle ones */
void repl_stop(struct api *api);

/* A new one for the request, which then waits for it. */
int repl_open(struct request *req, const struct id *sandbox, struct err *err) MUST_CHECK;

/* The caller's own, by name; NULL when there is none. */
struct repl *repl_find(struct request *req, const struct id *sandbox, struct view name);

/* Kills the interpreter; whoever waits is left to the caller of this. */
void repl_end(struct repl *repl);

/* Sends a cell. */
void repl_ask(struct repl *repl, struct view code);

/* In repl_serve.c: what the interpreter said, for repl->waiting. `line` is parsed JSON, an object. */
void repl_answered(struct repl *repl, json_t *line);
void repl_lost(struct repl *repl, enum error error, struct view text);
