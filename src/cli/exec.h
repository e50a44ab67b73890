/* SPDX-License-Identifier: Apache-2.0 */
/* One command in a sandbox: its output comes out raw, as it comes; see run.c and sandbox.c. */
#pragma once

#include "cli/verbs.h"

enum { EXEC_TIMEOUT = 124, EXEC_BROKEN = 125, EXEC_PIPE = 128 + 13 };

/*
 * Runs the words with the options of the command line. Returns its exit code (124: timeout, 128 + signal),
 * 141 when nobody reads our output any more; negative when demilune failed. -EINTR: a signal came, and the
 * command was cancelled if that was possible.
 */
int exec_words(struct cli *cli, const char *sandbox, char *const *words, size_t n,
	struct err *err) MUST_CHECK;

/*
 * The same, but the daemon's whole answer is handed out, with the command's exit code beside it. A command that
 * was timed out is an answer too.
 */
int exec_collect(struct cli *cli, const char *sandbox, char *const *words, size_t n, json_t **ret,
	int *ret_code, struct err *err) MUST_CHECK;

/* Lets SIGINT, SIGTERM and SIGHUP end what the client waits for; before the first request. */
int exec_signals(struct client *c, struct err *err) MUST_CHECK;
