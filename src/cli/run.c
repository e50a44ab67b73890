/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `demilune run`: a fresh sandbox, one command, its output, its exit code, and no sandbox. Silent but for
 * the command's own output and what failed. The sandbox is killed on every way out, also when a signal
 * comes; if even that fails, its id is told, and its time to live ends it.
 */
#include "cli/answer.h"
#include "cli/exec.h"
#include "cli/request.h"

#include <errno.h>
#include <stdio.h>

/* The command's answer as JSON, with the sandbox and the task in it. */
static int
run_json(struct cli *cli, const char *sandbox, json_t *made, struct err *err)
{
	json_t *answer auto_json = NULL;
	int code, r = exec_collect(
			  cli, sandbox, cli->args.rest, cli->args.n_rest, &answer, &code, err);

	if (r < 0)
		return r;
	if (json_object_set_new(answer, "sandbox", json_string(sandbox)) < 0 ||
		json_object_set(answer, "task", json_object_get(made, "task")) < 0)
		return err_set(err, -ENOMEM, "no memory");
	r = answer_print(answer, err);
	return r < 0 ? r : code;
}

int
verb_run(struct cli *cli, struct err *err)
{
	json_t *made auto_json = NULL;
	struct err first;
	char sandbox[ID_TEXT];
	int r = exec_signals(&cli->client, err);

	if (r == 0)
		r = request_sandbox(cli, &made, sandbox, err);
	if (r < 0)
		return r;
	r = args_has(&cli->args, OPT_JSON)
		    ? run_json(cli, sandbox, made, err)
		    : exec_words(cli, sandbox, cli->args.rest, cli->args.n_rest, err);
	first = *err;
	if (args_has(&cli->args, OPT_KEEP))
		(void)fprintf(stderr, "%s\n", sandbox);
	else
		request_kill(cli, sandbox);
	*err = first;
	return r;
}
