/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `demilune approver`: enrol, list, remove. Edits the file that is the root of all approvals, on this host and with the rights of whoever calls
 * it; nothing of it goes through the daemon.
 */
#include "cli/answer.h"
#include "cli/safe.h"
#include "cli/table.h"
#include "cli/trust.h"
#include "cli/verbs.h"
#include "lib/approval/split.h"
#include "lib/base/clock.h"
#include "lib/json/out.h"

#include <errno.h>

enum { JSON_BYTES = 4 << 20 };

/* A value is one word: with a blank or a line end in it the line would say something else. */
static int
check_words(const struct args *a, struct err *err)
{
	for (size_t i = 0; i < a->n_given; i++) {
		const char *text = a->given[i].text;

		if (text == NULL || a->given[i].option == OPT_KEY ||
			a->given[i].option == OPT_TRUST)
			continue;
		for (const char *c = text; *c != '\0'; c++)
			if (*c <= ' ' || *c == 0x7f)
				return err_set(err, -EINVAL, "%s: no blanks or control characters",
					args_option(a->given[i].option)->name);
	}
	return 0;
}

static void
add_option(struct buf *line, const char *name, const char *value)
{
	if (value != NULL)
		buf_addf(line, " %s=%s", name, value);
}

/* --up-to cents=5000 becomes up-to=cents:5000. */
static void
add_limits(struct buf *line, const struct args *a)
{
	bool some = false;

	for (size_t i = 0; i < a->n_given; i++) {
		const char *text = a->given[i].text, *equal;

		if (a->given[i].option != OPT_UP_TO)
			continue;
		equal = strchr(text, '=');
		must(equal != NULL);
		buf_addf(line, "%s%.*s:%s", some ? "," : " up-to=", (int)(equal - text), text,
			equal + 1);
		some = true;
	}
}

/* Without --name: who ssh-keygen wrote behind the key, "anna" of "anna@host". */
static int
person_name(const char *given, struct view comment, struct buf *ret, struct err *err)
{
	struct view name;

	if (given != NULL) {
		buf_add_str(ret, given);
		return 0;
	}
	if (!take_until(&comment, '@', &name) || !approver_name_ok(name))
		return err_set(err, -EINVAL,
			"the comment of this key is nobody's name: say whose key it is, --name "
			"NAME");
	buf_add_view(ret, name);
	return 0;
}

static int
add_line(const struct args *a, struct buf *file, struct err *err)
{
	auto_buf struct buf room = {0}, blob;
	const char *path = args_text(a, OPT_KEY);
	struct key_text key;

	buf_init(&blob, SSHKEY_BYTES_MAX);
	if (path == NULL)
		return err_set(err, -EINVAL, "say whose key it is: --key FILE.pub --name NAME");
	if (!args_has(a, OPT_MAY) && !args_has(a, OPT_ROLE))
		return err_set(err, -EINVAL,
			"say what the person may decide: --may OPERATION,... (or --role release "
			"alone)");
	if (check_words(a, err) < 0 || trust_key(path, &room, &key, &blob, err) < 0 ||
		person_name(args_text(a, OPT_NAME), key.comment, file, err) < 0)
		return err->code;
	add_option(file, "may", args_text(a, OPT_MAY));
	add_option(file, "role", args_text(a, OPT_ROLE));
	add_option(file, "tenant", args_text(a, OPT_TENANT));
	add_limits(file, a);
	add_option(file, "principal", args_text(a, OPT_PRINCIPAL));
	add_option(file, "valid-until", args_text(a, OPT_VALID_UNTIL));
	if (args_has(a, OPT_VERIFY_REQUIRED))
		buf_add_str(file, " verify-required");
	buf_addf(file, " %.*s %.*s", VIEW_ARGS(key.type), VIEW_ARGS(key.text));
	if (key.comment.n != 0) {
		buf_add_byte(file, ' ');
		buf_add_view(file, key.comment);
	}
	buf_add_byte(file, '\n');
	return 0;
}

/* The daemon looks at the owner too; whoever is not root has written a file that counts for nothing where it stands. */
static int
replace(struct trust *t, struct view file, struct err *err)
{
	int r = trust_replace(t, file, err);

	if (r == 0 && geteuid() != 0)
		safe_say("%s/approvers is yours now; the daemon takes it only from root", t->path);
	return r;
}

int
verb_approver_enrol(struct cli *cli, struct err *err)
{
	auto_trust struct trust t = {.dir = -1};
	auto_buf struct buf file;
	char key[SSHKEY_FINGERPRINT];
	int r = trust_open(args_text(&cli->args, OPT_TRUST), true, &t, err);

	buf_init(&file, LIMIT_APPROVERS_BYTES);
	if (r < 0)
		return r;
	buf_add_view(&file, t.now.file);
	r = add_line(&cli->args, &file, err);
	if (r == 0 && buf_check(&file) < 0)
		r = err_set(err, -EFBIG, "the file of approvers would become too large");
	if (r == 0)
		r = replace(&t, buf_view(&file), err);
	if (r < 0)
		return r;
	trust_done(&t);
	r = trust_open(args_text(&cli->args, OPT_TRUST), false, &t, err);
	if (r < 0 || t.now.n == 0)
		return r;
	sshkey_fingerprint(t.now.a[t.now.n - 1].key.blob, key);
	(void)printf("%.*s %s\n", VIEW_ARGS(t.now.a[t.now.n - 1].name), key);
	return answer_done(err);
}

static bool
removes(const struct approver *a, const char *who)
{
	char key[SSHKEY_FINGERPRINT];

	sshkey_fingerprint(a->key.blob, key);
	return view_is(a->name, who) || strcmp(key, who) == 0;
}

/* All of the file but the lines of this person or key. */
static size_t
without(const struct approvers *a, const char *who, struct buf *out)
{
	const uint8_t *from = a->file.p, *end = a->file.p + a->file.n;
	size_t removed = 0;

	for (size_t i = 0; i < a->n; i++) {
		if (!removes(&a->a[i], who))
			continue;
		buf_add(out, from, (size_t)(a->a[i].line.p - from));
		from = a->a[i].line.p + a->a[i].line.n + 1; /* its end of line */
		removed++;
	}
	buf_add(out, from, (size_t)(end - from));
	return removed;
}

int
verb_approver_remove(struct cli *cli, struct err *err)
{
	const char *who = cli->args.rest[0];
	auto_trust struct trust t = {.dir = -1};
	auto_buf struct buf file;
	size_t removed;
	int r = trust_open(args_text(&cli->args, OPT_TRUST), true, &t, err);

	buf_init(&file, LIMIT_APPROVERS_BYTES);
	if (r < 0)
		return r;
	removed = without(&t.now, who, &file);
	if (removed == 0)
		return err_set(err, -ENOENT,
			"there is no approver \"%.100s\"; demilune approver list shows names and "
			"keys",
			who);
	if (buf_check(&file) < 0)
		return err_set(err, -ENOMEM, "no memory for the file of approvers");
	r = replace(&t, buf_view(&file), err);
	if (r < 0)
		return r;
	(void)printf("%zu key%s removed; what they approved and was not sent yet is refused\n",
		removed, removed == 1 ? "" : "s");
	return answer_done(err);
}

static void
limits_text(const struct approver *a, struct buf *out)
{
	for (size_t i = 0; i < a->nlimits; i++)
		buf_addf(out, "%s%.*s=%lld", i == 0 ? "" : ",", VIEW_ARGS(a->limit[i].argument),
			(long long)a->limit[i].most);
}

static void
until_text(const struct approver *a, char ret[static CLOCK_TEXT])
{
	ret[0] = '\0';
	if (a->valid_until_ms != 0) {
		clock_text(a->valid_until_ms, ret);
		memcpy(ret + 19, "Z", 2); /* whole seconds */
	}
}

static int
list_json(const struct approvers *all, struct err *err)
{
	auto_buf struct buf out;
	struct json_out o;

	buf_init(&out, JSON_BYTES);
	json_out_init(&o, &out, true);
	json_out_array_begin(&o);
	for (size_t i = 0; i < all->n; i++) {
		const struct approver *a = &all->a[i];
		char key[SSHKEY_FINGERPRINT], until[CLOCK_TEXT];
		auto_buf struct buf limits = {.max = APPROVER_LINE_MAX};

		sshkey_fingerprint(a->key.blob, key);
		until_text(a, until);
		limits_text(a, &limits);
		json_out_object_begin(&o);
		json_out_key_str(&o, "name", a->name);
		json_out_key_str(&o, "key", view_str(key));
		json_out_key_str(&o, "type", view_str(sshkey_type(a->key.kind)));
		json_out_key_str(&o, "may", a->may);
		json_out_key_str(&o, "role", a->role);
		json_out_key_str(&o, "tenant", a->tenant);
		json_out_key_str(&o, "up_to", buf_view(&limits));
		json_out_key_str(&o, "principal", a->principal);
		json_out_key_str(&o, "valid_until", view_str(until));
		json_out_key_bool(&o, "verify_required", a->verify_required);
		json_out_object_end(&o);
	}
	json_out_array_end(&o);
	if (json_out_end(&o) < 0)
		return err_set(err, -ENOMEM, "no memory for the list");
	(void)printf("%.*s\n", (int)out.n, (const char *)out.p);
	return answer_done(err);
}

int
verb_approver_list(struct cli *cli, struct err *err)
{
	static const struct table_column columns[] = {{"NAME", false, 0}, {"KEY", false, 0},
		{"TYPE", false, 0}, {"MAY", false, 48}, {"ROLE", false, 32}, {"TENANT", false, 32},
		{"UP TO", false, 32}, {"PRINCIPAL", false, 32}, {"VALID UNTIL", false, 0}};
	auto_trust struct trust t = {.dir = -1};
	auto_table struct table table;
	int r = trust_open(args_text(&cli->args, OPT_TRUST), false, &t, err);

	table_init(&table, columns, ARRAY_LEN(columns));
	if (r < 0)
		return r;
	if (args_has(&cli->args, OPT_JSON))
		return list_json(&t.now, err);
	for (size_t i = 0; i < t.now.n; i++) {
		const struct approver *a = &t.now.a[i];
		char key[SSHKEY_FINGERPRINT], until[CLOCK_TEXT];
		auto_buf struct buf limits = {.max = APPROVER_LINE_MAX};

		sshkey_fingerprint(a->key.blob, key);
		until_text(a, until);
		limits_text(a, &limits);
		table_cell(&table, a->name);
		table_cell(&table, view_str(key));
		table_cell(&table, view_str(sshkey_type(a->key.kind)));
		table_cell(&table, a->may);
		table_cell(&table, a->role);
		table_cell(&table, a->tenant);
		table_cell(&table, buf_view(&limits));
		table_cell(&table, a->principal);
		table_tone(&table, approver_valid(a, clock_real_ms()) ? TONE_PLAIN : TONE_BAD,
			view_str(until));
	}
	r = table_print(&table, stdout, err);
	return r < 0 ? r : answer_done(err);
}
