/* SPDX-License-Identifier: Apache-2.0 */
/* `demilune token`: create, list, revoke. A token's text passes through here once and is printed, never stored. */
#include "cli/answer.h"
#include "cli/request.h"
#include "cli/table.h"
#include "lib/base/clock.h"

#include <errno.h>

enum { BODY_BYTES = 8192 };

static int
compose(const struct args *a, struct buf *body, struct err *err)
{
	const struct given *expires = args_get(a, OPT_EXPIRES);
	struct json_out o;

	json_out_init(&o, body, false);
	json_out_object_begin(&o);
	request_owner(a, &o);
	if (args_has(a, OPT_NAME))
		json_out_key_str(&o, "label", view_str(args_text(a, OPT_NAME)));
	if (expires != NULL) {
		json_out_key(&o, "expires_in_seconds");
		json_out_fixed3(&o, expires->number);
	}
	return request_end(&o, err);
}

/* A token is letters, digits and underscores; anything else is not printed. */
static int
check_token(struct view token, struct err *err)
{
	for (size_t i = 0; i < token.n; i++) {
		uint8_t c = token.p[i];
		bool fine = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
			    (c >= 'A' && c <= 'Z') || c == '_';

		if (!fine)
			return err_set(err, -EBADMSG, "the daemon's answer has no token");
	}
	return 0;
}

int
verb_token_create(struct cli *cli, struct err *err)
{
	json_t *made auto_json = NULL;
	auto_buf struct buf body;
	struct view token;
	char expires[32];
	int r;

	buf_init(&body, BODY_BYTES);
	r = compose(&cli->args, &body, err);
	if (r == 0)
		r = client_send(&cli->client, HTTP_POST, view_str("/v1/me/tokens"), buf_view(&body),
			&made, err);
	if (r == 0)
		r = answer_need(made, "token", &token, err);
	if (r == 0)
		r = check_token(token, err);
	if (r < 0)
		return r;
	if (args_has(&cli->args, OPT_JSON))
		return answer_print(made, err);
	if (!args_has(&cli->args, OPT_PRINT)) {
		answer_time(made, "expires_at", expires);
		field_line(stdout, "prefix", answer_text(made, "prefix"));
		field_line(stdout, "tenant", answer_text(made, "tenant"));
		field_line(stdout, "expires", view_str(expires));
		(void)printf("\nThe token is told this once. Put it into ~/.config/demilune/token "
			     "(mode 0600) or "
			     "DEMILUNE_TOKEN:\n\n");
	}
	(void)printf("%.*s\n", VIEW_ARGS(token));
	return answer_done(err);
}

/* By our own clock; times of the daemon are UTC in one form, so their order is that of their text. */
static bool
expired(const json_t *token)
{
	struct view until = answer_text(token, "expires_at");
	char now[CLOCK_TEXT];

	clock_text(clock_real_ms(), now);
	return until.n == strlen(now) && memcmp(until.p, now, until.n) <= 0;
}

int
verb_token_list(struct cli *cli, struct err *err)
{
	static const struct table_column columns[] = {{"PREFIX", false, 0}, {"TENANT", false, 24},
		{"NAME", false, 40}, {"TEMPLATE", false, 24}, {"CREATED", false, 0},
		{"EXPIRES", false, 0}, {"LAST USED", false, 0}, {"STATE", false, 0}};
	static const char *const times[] = {"created_at", "expires_at", "used_at"};
	json_t *list auto_json = NULL;
	const json_t *items;
	auto_table struct table t;
	int r = client_get(&cli->client, view_str("/v1/me/tokens"), &list, err);

	table_init(&t, columns, ARRAY_LEN(columns));
	if (r < 0)
		return r;
	if (args_has(&cli->args, OPT_JSON))
		return answer_print(list, err);
	items = json_object_get(list, "items");
	for (size_t i = 0; i < json_array_size(items); i++) {
		const json_t *token = json_array_get(items, i);
		bool revoked = answer_text(token, "revoked_at").n != 0, over = expired(token);

		table_cell(&t, answer_text(token, "prefix"));
		table_cell(&t, answer_text(token, "tenant"));
		table_cell(&t, answer_text(token, "label"));
		table_cell(&t, answer_text(token, "template"));
		for (size_t j = 0; j < ARRAY_LEN(times); j++) {
			char text[32];

			answer_time(token, times[j], text);
			table_cell(&t, view_str(text));
		}
		table_tone(&t, revoked || over ? TONE_QUIET : TONE_GOOD,
			view_str(revoked ? "revoked"
				 : over  ? "expired"
					 : "valid"));
	}
	r = table_print(&t, stdout, err);
	return r < 0 ? r : answer_done(err);
}

int
verb_token_revoke(struct cli *cli, struct err *err)
{
	json_t *answer auto_json = NULL;
	auto_buf struct buf target;

	buf_init(&target, BODY_BYTES);
	buf_add_str(&target, "/v1/me/tokens/");
	target_add(&target, cli->args.rest[0]);
	return client_send(
		&cli->client, HTTP_DELETE, buf_view(&target), view_of(NULL, 0), &answer, err);
}
