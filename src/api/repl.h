/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Code contexts: interpreters that are held open for a caller, each a job with repl_driver.py. They live in this
 * process: they end with it, with their sandbox, when nobody used them for LIMIT_REPL_IDLE_MS, or when the engine is
 * restarted. What comes out of one is a claim of the sandbox; it is bounded and parsed strictly.
 *
 * Each cell is recorded by the engine before it is sent and again before its answer is given (CELL_BEGIN, CELL_END). What
 * cannot be recorded is not sent; an interpreter whose cell's end cannot be recorded is ended, which is recorded in time.
 */
#pragma once

#include "job.h"
#include "request.h"

#include <jansson.h>

enum { REPL_NAME = 17 };

enum repl_state {
	REPL_OPENING,   /* it has not said that it is ready */
	REPL_IDLE,      /* only now a cell may be asked */
	REPL_BEGINNING, /* the engine is asked to record the cell */
	REPL_RUNNING,   /* the cell was sent */
	REPL_ENDING,    /* it answered (or was never sent); the engine is asked to record that */
};

struct repl {
	struct link link; /* in api->repls */
	struct api *api;  /* borrowed */
	char name[REPL_NAME];
	struct id sandbox;
	struct caller caller;
	struct job *job; /* owned */
	struct buf line; /* of the interpreter, not complete yet */
	struct request
		*waiting; /* borrowed; who waits for its next answer, NULL = nobody (any more) */
	enum repl_state state;
	struct link asks; /* CELL_BEGIN, CELL_END */
	json_t *answer;   /* owned; to the cell, while its end is being recorded */
	bool interrupted; /* the cell passed its time and was interrupted */
	uint64_t cell;    /* number of the last one */
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

/* Has a cell recorded and then sends it, for the request that waits then; in REPL_IDLE only. */
int repl_ask(struct repl *repl, struct request *req, struct view code, struct err *err) MUST_CHECK;

/*
 * In repl_serve.c. repl_code: the cell of repl->waiting. repl_answered: what the interpreter said, for repl->waiting;
 * `line` is parsed JSON, an object. repl_lost: what became of it instead.
 */
struct view repl_code(const struct repl *repl);
void repl_answered(struct repl *repl, json_t *line);
void repl_lost(struct repl *repl, enum error error, struct view text);
