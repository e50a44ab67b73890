/* SPDX-License-Identifier: Apache-2.0 */
/* One command in a sandbox; see exec.h. */
#include "cli/exec.h"

#include "cli/answer.h"
#include "lib/base/base64.h"
#include "cli/events.h"
#include "cli/request.h"
#include "cli/safe.h"
#include "lib/base/fd.h"
#include "lib/base/id.h"

#include <errno.h>
#include <signal.h>
#include <sys/signalfd.h>

enum { TARGET_BYTES = 1024 };

int
exec_signals(struct client *c, struct err *err)
{
	sigset_t set;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGINT);
	(void)sigaddset(&set, SIGTERM);
	(void)sigaddset(&set, SIGHUP);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return err_errno(err, "cannot hold signals back");
	c->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return c->signals < 0 ? err_errno(err, "cannot take signals") : 0;
}

/* ---- the request ---- */

static int
add_stdin(struct json_out *o, struct err *err)
{
	char *text auto_free = malloc(LIMIT_STDIN_BYTES + 1);
	size_t n = 0;
	int r;

	if (text == NULL)
		return err_set(err, -ENOMEM, "no memory");
	r = fd_read_upto(STDIN_FILENO, text, LIMIT_STDIN_BYTES + 1, &n, err);
	if (r < 0)
		return err_context(err, "standard input");
	if (n > LIMIT_STDIN_BYTES || !view_utf8(view_of(text, n)))
		return err_set(err, -E2BIG,
			"standard input must be at most %d bytes of UTF-8; copy a file in with "
			"demilune sandbox cp",
			LIMIT_STDIN_BYTES);
	json_out_key_str(o, "stdin", view_of(text, n));
	return 0;
}

static int
compose(const struct args *a, char *const *words, size_t n, struct buf *body, struct err *err)
{
	const struct given *timeout = args_get(a, OPT_TIMEOUT);
	struct json_out o;
	int r;

	json_out_init(&o, body, false);
	json_out_object_begin(&o);
	json_out_key(&o, "argv");
	json_out_array_begin(&o);
	for (size_t i = 0; i < n; i++)
		if (json_out_str(&o, view_str(words[i])))
			return err_set(err, -EILSEQ, "word %zu of the command is not UTF-8", i + 1);
	json_out_array_end(&o);
	if (args_has(a, OPT_CWD))
		json_out_key_str(&o, "cwd", view_str(args_text(a, OPT_CWD)));
	if (args_has(a, OPT_USER))
		json_out_key_str(&o, "user", view_str(args_text(a, OPT_USER)));
	if (timeout != NULL) {
		json_out_key(&o, "timeout_seconds");
		json_out_fixed3(&o, timeout->number);
	}
	if (args_has(a, OPT_TERMINAL))
		json_out_key_bool(&o, "pty", true);
	r = request_pairs(a, OPT_ENV, "env", &o, err);
	if (r == 0 && args_has(a, OPT_STDIN))
		r = add_stdin(&o, err);
	return r < 0 ? r : request_end(&o, err);
}

/* ---- the events ---- */

struct run {
	struct cli *cli;
	const char *sandbox, *command;
	char job[ID_TEXT]; /* "": not known */
	int code;          /* of an exit event; -1: none yet */
	struct buf bytes;  /* of a chunk that is not text */
	bool cut;          /* said that bytes were left out */
};

static const struct json_limits event_limits = {
	.max_bytes = LIMIT_EVENT_BYTES, .max_depth = LIMIT_DEPTH, .nul_ok = true};

/* 0, 141 when nobody reads, or negative. */
static int
put_chunk(struct run *run, int fd, const json_t *json, struct err *err)
{
	struct view raw = answer_text(json, "base64"), v = answer_text(json, "chunk");
	int r;

	if (raw.n != 0) {
		buf_clear(&run->bytes);
		r = base64_decode(raw, &run->bytes);
		if (r < 0)
			return err_set(err, -EBADMSG,
				"the daemon's answer holds bytes that are not base 64");
		v = buf_view(&run->bytes);
	}
	r = fd_write_all(fd, v.p, v.n, err);
	if (r < 0)
		return r == -EPIPE ? EXEC_PIPE : err_context(err, "cannot write the output");
	return 0;
}

/* What is told of an end that the exit code alone does not explain. */
static const struct {
	const char *reason, *text;
} ends[] = {
	{"oom", "the sandbox reached its limit of memory; --memory gives it more"},
	{"pids", "the sandbox reached its limit of processes; --pids gives it more"},
	{"disk", "the sandbox used up its disk budget; --disk gives it more"},
	{"cancelled", "somebody cancelled the command"},
	{"agent_lost", "the sandbox's own agent was lost; make another sandbox"},
	{"sandbox_ended", "the sandbox ended before the command did"},
};

static void
tell_end(const struct run *run, const json_t *json)
{
	struct view reason = answer_text(json, "reason");

	(void)fflush(stdout);
	if (view_is(reason, "not_started"))
		safe_say("%.100s was not started: %.*s%s", run->command,
			VIEW_ARGS(answer_text(json, "not_started")),
			run->code == 127 ? " (the command, or the directory of --cwd)" : "");
	for (size_t i = 0; i < ARRAY_LEN(ends); i++)
		if (view_is(reason, ends[i].reason))
			safe_say("%s", ends[i].text);
}

static int
on_failure(struct run *run, const json_t *json, struct err *err)
{
	struct view text = answer_text(json, "error");

	(void)fflush(stdout);
	if (view_is(answer_text(json, "code"), "timeout")) {
		run->code = EXEC_TIMEOUT;
		safe_say("%.*s", VIEW_ARGS(text));
		return 0;
	}
	if (text.n == 0)
		text = view_str("the daemon could not go on");
	return err_set(err, -EREMOTEIO, "%.*s", VIEW_ARGS(text));
}

/* 0: go on; 141, or negative. */
static int
on_event(struct run *run, const struct events *e, struct err *err)
{
	json_t *json auto_json = NULL;
	int r = json_parse(buf_view(&e->data), &event_limits, &json, err);

	if (r < 0)
		return err_context(err, "an event of the daemon");
	if (run->code >= 0)
		return err_set(err, -EBADMSG, "the daemon's answer goes on behind its end");
	if (strcmp(e->name, "stdout") == 0)
		return put_chunk(run, STDOUT_FILENO, json, err);
	if (strcmp(e->name, "stderr") == 0)
		return put_chunk(run, STDERR_FILENO, json, err);
	if (strcmp(e->name, "error") == 0)
		return on_failure(run, json, err);
	if (strcmp(e->name, "exit") == 0) {
		int64_t code = answer_int(json, "exit_code", -1);

		if (code < 0 || code > 255)
			return err_set(err, -EBADMSG, "the daemon's answer has no exit code");
		run->code = (int)code;
		tell_end(run, json);
		return 0;
	}
	if (strcmp(e->name, "gap") == 0 && !run->cut) {
		run->cut = true;
		(void)fprintf(stderr, "demilune: a part of the output was left out\n");
	}
	return 0;
}

static int
read_events(struct run *run, struct exchange *x, struct err *err)
{
	auto_events struct events e;
	struct view piece;
	int r;

	events_init(&e);
	while ((r = exchange_next(x, &piece, err)) == 1) {
		while ((r = events_next(&e, &piece, err)) == 1) {
			r = on_event(run, &e, err);
			if (r != 0)
				return r;
		}
		if (r < 0)
			return r;
	}
	if (r == 0 && run->code < 0)
		return err_set(err, -EBADMSG, "the daemon's answer ended before the command did");
	return r < 0 ? r : run->code;
}

/* Ends the command with all its descendants. Best effort: what went wrong before is what is told. */
static void
cancel(struct run *run)
{
	json_t *answer auto_json = NULL;
	struct err unused = {0};
	char target[TARGET_BYTES];

	if (run->job[0] == '\0')
		return;
	(void)snprintf(target, sizeof(target), "/v1/sandboxes/%s/jobs/%s", run->sandbox, run->job);
	if (client_send(&run->cli->client, HTTP_DELETE, view_str(target), view_of(NULL, 0), &answer,
		    &unused) < 0 &&
		unused.code != -EREMOTEIO) /* refused: it has ended already */
		safe_say("the command may go on: %s", unused.text);
}

static int
stream(struct run *run, const struct ask *ask, struct err *err)
{
	auto_exchange struct exchange x = {0};
	const struct http_field *job;
	struct id id;
	unsigned n;
	int r = exchange_open(&run->cli->client, ask, &x, err);

	if (r < 0)
		return r;
	job = http_head_field(&x.head, "x-demilune-job", &n);
	if (job != NULL && id_parse(job->value, ID_JOB, &id) == 0)
		id_text(&id, ID_JOB, run->job);
	return read_events(run, &x, err);
}

int
exec_words(struct cli *cli, const char *sandbox, char *const *words, size_t n, struct err *err)
{
	struct run run = {.cli = cli, .sandbox = sandbox, .command = words[0], .code = -1};
	char target[TARGET_BYTES];
	auto_buf struct buf body;
	struct ask ask = {
		.method = HTTP_POST, .accept = "text/event-stream", .type = "application/json"};
	int r;

	buf_init(&body, LIMIT_BODY_BYTES);
	r = compose(&cli->args, words, n, &body, err);
	if (r < 0)
		return r;
	(void)snprintf(target, sizeof(target), "/v1/sandboxes/%s/exec/stream", sandbox);
	ask.target = view_str(target);
	ask.body = buf_view(&body);
	buf_init(&run.bytes, LIMIT_EVENT_BYTES);
	r = stream(&run, &ask, err);
	if ((r < 0 && r != -EREMOTEIO) || r == EXEC_PIPE)
		cancel(&run);
	buf_done(&run.bytes);
	return r;
}

int
exec_collect(struct cli *cli, const char *sandbox, char *const *words, size_t n, json_t **ret,
	int *ret_code, struct err *err)
{
	struct client *c = &cli->client;
	char target[TARGET_BYTES];
	auto_buf struct buf body;
	int64_t code;
	int r;

	buf_init(&body, LIMIT_BODY_BYTES);
	r = compose(&cli->args, words, n, &body, err);
	if (r < 0)
		return r;
	(void)snprintf(target, sizeof(target), "/v1/sandboxes/%s/exec", sandbox);
	r = client_send(c, HTTP_POST, view_str(target), buf_view(&body), ret, err);
	if (r == -EREMOTEIO && view_is(answer_text(c->refused, "code"), "timeout")) {
		*ret = json_incref(c->refused);
		r = 0;
	}
	if (r < 0)
		return r;
	code = answer_int(*ret, "exit_code", -1);
	if (!json_is_object(*ret) || code < 0 || code > 255)
		return err_set(err, -EBADMSG, "the daemon's answer has no exit code");
	*ret_code = (int)code;
	return 0;
}
