/* SPDX-License-Identifier: Apache-2.0 */
/* What a command's body means as a job, and how its end is told: shared by exec.c, stream.c and repl.c. */
#pragma once

#include "body.h"
#include "request.h"

/* Room for the blobs that a message borrows from. */
struct exec_words {
	struct buf argv, env;
};
void exec_words_init(struct exec_words *w);
void exec_words_done(struct exec_words *w);

/* Runs a message that is complete and answers like exec; `language` is one more member or NULL. */
int exec_begin(struct request *req, const struct msg_job_run *m, const char *language,
	struct err *err) MUST_CHECK;

/* Fills *ret (borrowing from req and *w); stdin is open if the body has some. */
int exec_message(struct request *req, struct exec_words *w, struct msg_job_run *ret,
	struct err *err) MUST_CHECK;

/* As a shell would say it: exit code, 128 + signal, 124 for a timeout, 126 and 127 for what did not start. */
int exec_code(const struct msg_job_row *row);

/* What the sandbox's loss means to a caller that waited for a command; false when the row is a plain end. */
bool exec_lost(const struct msg_job_row *row, const char **ret_text);

/* Members of the open object that say how the job ended: exit_code, reason, signal, holders, times, job. */
void exec_end_out(const struct msg_job_row *row, struct json_out *o);

/* "timeout: the command ..." into ret. */
void exec_timeout_text(const struct msg_job_row *row, char *ret, size_t n);
