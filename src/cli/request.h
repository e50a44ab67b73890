/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies of requests, made of the command line; and what several verbs ask for. */
#pragma once

#include "cli/verbs.h"
#include "lib/base/id.h"
#include "lib/json/out.h"

/* limits, ttl_seconds, idle_limit_seconds of the options that were given. */
void request_shape(const struct args *a, struct json_out *o);

/* Members tenant, template, policy. */
void request_owner(const struct args *a, struct json_out *o);

/* The --label options as one object under `key`, if there are any. -EINVAL when one comes twice. */
int request_pairs(const struct args *a, enum option option, const char *key, struct json_out *o,
	struct err *err) MUST_CHECK;

/* -E2BIG when it did not fit. */
int request_end(struct json_out *o, struct err *err) MUST_CHECK;

/* Makes the task of a run or a `task create`; its id into ret. */
int request_task(
	struct cli *cli, json_t **ret, char ret_id[static ID_TEXT], struct err *err) MUST_CHECK;

/* The id of the task named by id or ticket; with --tenant, of this tenant's newest task with the ticket. */
int request_task_id(
	struct cli *cli, const char *name, char ret[static ID_TEXT], struct err *err) MUST_CHECK;

/* What was done for this task, the newest of the ticket, was not done for others that have it too: says so. Nothing when that cannot be told. */
void request_say_others(struct cli *cli, const char *name, const char *task);

/* The same for who reads a record, and says on standard error when other tasks have the ticket too. */
int request_record_id(
	struct cli *cli, const char *name, char ret[static ID_TEXT], struct err *err) MUST_CHECK;

/* Asks for the lines of a task's record, named by its id. */
int request_export(
	struct client *c, const char *task, struct exchange *ret, struct err *err) MUST_CHECK;

/* Stores HERE:THERE with the task. */
int request_input(struct cli *cli, const char *task, const char *files, struct err *err) MUST_CHECK;

/* Kills a sandbox; what goes wrong is said on standard error, but that it ended already is not wrong. */
void request_kill(struct cli *cli, const char *sandbox);

/*
 * Asks for something that makes a sandbox. -EINTR when a signal came meanwhile (see exec_signals): the sandbox is killed, or, when
 * its name could not be waited for, standard error says that one may be left.
 */
int request_made(struct cli *cli, struct view target, struct view body, json_t **ret,
	char ret_id[static ID_TEXT], struct err *err) MUST_CHECK;

/* A sandbox as the options say; with --input or --task for that task, as request_made. The task that was made for it is not undone. */
int request_sandbox(
	struct cli *cli, json_t **ret, char ret_id[static ID_TEXT], struct err *err) MUST_CHECK;

/* Prints the id of what was made or, with --json, all of it. */
int request_print(struct cli *cli, const json_t *made, const char *id, struct err *err) MUST_CHECK;

/* An id of a kind ("sb_", "tk_"), exactly. */
int request_check_id(
	const char *text, const char *prefix, const char *what, struct err *err) MUST_CHECK;
