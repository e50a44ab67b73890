/* SPDX-License-Identifier: Apache-2.0 */
/*
 * demilune: the user's command. Runs as the user, holds the user's token, talks to the api only. Reads the command
 * line by its tables, runs one verb, tells what failed in one sentence. Exit codes: 0 done, 1 failed, 2 used wrongly;
 * run and exec: the command's own, 124 timed out, 125 demilune itself failed, 128 + signal.
 */
#include "cli/answer.h"
#include "cli/help.h"
#include "cli/program.h"
#include "cli/safe.h"
#include "cli/verbs.h"
#include "lib/action/check.h"

#include <errno.h>
#include <locale.h>
#include <signal.h>

enum { EXIT_USAGE = 2 };

int
verb_version(struct cli *cli, struct err *err)
{
	(void)cli;
	(void)printf("demilune %s\n", DEMILUNE_VERSION);
	return answer_done(err);
}

int
verb_serve(struct cli *cli, struct err *err)
{
	const char *config = args_text(&cli->args, OPT_CONFIG);
	char *argv[] = {NULL, NULL, NULL, NULL};

	if (config != NULL) {
		argv[1] = (char *)(uintptr_t) "--config";
		argv[2] = (char *)(uintptr_t)config;
	}
	return program_become(PROGRAM_SUPERVISOR, argv, err);
}

static const struct {
	const char *code, *part, *todo;
} hints[] = {
#define HINT(code, part, todo) {code, part, todo},
#include "cli/hints.def"
#undef HINT
};

static void
add_hint(const struct client *c, struct buf *out)
{
	struct view code = answer_text(c->refused, "code"), text = answer_text(c->refused, "error");

	for (size_t i = 0; i < ARRAY_LEN(hints); i++) {
		size_t n = strlen(hints[i].part);

		if (!view_is(code, hints[i].code) ||
			(n != 0 && memmem(text.p, text.n, hints[i].part, n) == NULL))
			continue;
		if (memmem(text.p, text.n, hints[i].todo, strlen(hints[i].todo)) == NULL)
			buf_addf(out, "; %s", hints[i].todo);
		return;
	}
}

/* The check of an action that failed, for whoever looks it up, and its sentence where the daemon did not say it. */
static void
add_denial(const struct client *c, struct buf *out)
{
	struct view denial = answer_text(c->refused, "denial"),
		    text = answer_text(c->refused, "error");
	enum denial known = DENIAL_NONE;
	const char *sentence;

	if (denial.n == 0)
		return;
	buf_add_str(out, " (");
	safe_add(out, denial, 40);
	sentence = denial_parse(denial, &known) == 0 ? denial_sentence(known) : "";
	if (sentence[0] != '\0' && memmem(text.p, text.n, sentence, strlen(sentence)) == NULL)
		buf_addf(out, ": %s", sentence);
	buf_add_str(out, ")");
}

/* What the daemon said stands in full in client.refusal; it and all else may quote a stranger. */
static void
tell(const struct cli *cli, const struct err *err)
{
	auto_buf struct buf safe;

	buf_init(&safe, LIMIT_REFUSAL_BYTES * 9);
	if (err->code == -EREMOTEIO && cli->client.refusal.n != 0) {
		buf_add_view(&safe, buf_view(&cli->client.refusal));
		add_denial(&cli->client, &safe);
		add_hint(&cli->client, &safe);
	} else {
		safe_add(&safe, view_str(err->text), 0);
	}
	(void)fprintf(stderr, "demilune: %.*s\n", (int)safe.n, (const char *)safe.p);
}

static int
place(struct cli *cli, struct err *err)
{
	const struct place_wish wish = {
		.socket = args_text(&cli->args, OPT_SOCKET),
		.api = args_text(&cli->args, OPT_API),
		.env_socket = getenv("DEMILUNE_SOCKET"),
		.env_api = getenv("DEMILUNE_API"),
		.env_token = getenv("DEMILUNE_TOKEN"),
		.home = getenv("HOME"),
	};

	if ((cli->args.verb->options >> OPT_SOCKET & 1) == 0)
		return 0;
	return place_find(&wish, &cli->client.place, err);
}

static int
run(struct cli *cli)
{
	struct err err = {0};
	int r = json_start(&err);

	if (r == 0)
		r = place(cli, &err);
	if (r == 0)
		r = cli->args.verb->run(cli, &err);
	if (r >= 0)
		return r;
	if (r == -EINTR && cli->client.signalled != 0)
		return 128 + cli->client.signalled;
	tell(cli, &err);
	return cli->args.verb->broken;
}

int
main(int argc, char **argv)
{
	struct cli cli = {0};
	struct err err = {0};
	int code;

	(void)setlocale(
		LC_CTYPE, "C.UTF-8"); /* for the width of characters; without it each is one wide */
	if (signal(SIGPIPE, SIG_IGN) == SIG_ERR)
		return EXIT_FAILURE;
	client_init(&cli.client);
	if (argc < 2) {
		help_all(stderr);
		return EXIT_USAGE;
	}
	if (args_read(&cli.args, argc - 1, argv + 1, &err) < 0) {
		tell(&cli, &err);
		return EXIT_USAGE;
	}
	if (cli.args.group != NULL || args_has(&cli.args, OPT_HELP)) {
		if (cli.args.group != NULL)
			help_group(cli.args.group, stdout);
		else if (cli.args.verb == NULL)
			help_all(stdout);
		else
			help_verb(cli.args.verb, stdout);
		return fflush(stdout) == 0 ? 0 : EXIT_FAILURE;
	}
	code = run(&cli);
	client_done(&cli.client);
	return code;
}
