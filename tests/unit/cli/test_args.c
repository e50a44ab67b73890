/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/args: the tables themselves, and what is made of words. The handlers are not run; each is a function here that
 * the tables can point to.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cli/verbs.h"

#include <errno.h>

#define VERB(verb, sub, arguments, run, least, most, command, broken, options, what) \
	int run(struct cli *cli, struct err *err)                                    \
	{                                                                            \
		(void)cli;                                                           \
		(void)err;                                                           \
		return 0;                                                            \
	}
#include "cli/verbs.def"
#undef VERB

enum { WORDS_MAX = 300 };

/* Reads words that are separated by blanks. */
static int
read_words(const char *text, struct args *ret, char *room, size_t n, char **argv, struct err *err)
{
	int argc = 0;

	assert_true(strlen(text) < n);
	memcpy(room, text, strlen(text) + 1);
	for (char *p = room; *p != '\0';) {
		size_t len = strcspn(p, " ");

		assert_true(argc < WORDS_MAX);
		argv[argc++] = p;
		p += len;
		if (*p == ' ')
			*p++ = '\0';
	}
	return args_read(ret, argc, argv, err);
}

static void
tables(void **state)
{
	size_t n;
	const struct verb *v = args_verbs(&n);

	(void)state;
	for (size_t i = 0; i < n; i++) {
		assert_true(strlen(v[i].what) > 10 && v[i].what[strlen(v[i].what) - 1] != '.');
		assert_true(v[i].most == ARGS_ANY || v[i].least <= v[i].most);
		assert_true(v[i].command == ARGS_NONE || v[i].most == ARGS_ANY);
		for (size_t j = 0; j < i; j++)
			assert_false(strcmp(v[i].verb, v[j].verb) == 0 &&
				     strcmp(v[i].sub, v[j].sub) == 0);
		/* A row without a sub-verb hides those of its verb that stand behind it. */
		for (size_t j = 0; j < i; j++)
			assert_false(strcmp(v[i].verb, v[j].verb) == 0 && v[j].sub[0] == '\0');
	}
	for (unsigned i = 0; i < OPTIONS; i++) {
		const struct option_row *o = args_option((enum option)i);
		bool used = false;

		assert_true(strncmp(o->name, "--", 2) == 0 && strlen(o->what) > 10);
		assert_int_equal(o->kind == KIND_FLAG, o->argument[0] == '\0');
		for (unsigned j = 0; j < i; j++) {
			assert_string_not_equal(o->name, args_option((enum option)j)->name);
			assert_true(o->letter == '\0' ||
				    o->letter != args_option((enum option)j)->letter);
		}
		for (size_t j = 0; j < n; j++)
			used = used || (v[j].options >> i & 1) != 0;
		assert_true(used);
	}
}

static void
good(void **state)
{
	static const struct {
		const char *words, *verb, *sub, *rest; /* rest: joined by '|' */
		size_t given;
	} rows[] = {
		{"run true", "run", "", "true", 0},
		{"run -- --ttl 5m", "run", "", "--ttl|5m", 0},
		{"run --ttl 5m -it sh -c x", "run", "", "sh|-c|x", 3},
		{"--socket /s run x --json", "run", "", "x|--json", 1},
		{"run --ttl=5m --label a=b -l c=d=e x -- y", "run", "", "x|--|y", 3},
		{"sandbox exec sb -- x", "sandbox", "exec", "sb|x", 0},
		{"sandbox exec sb -e A=1 x -e B=2", "sandbox", "exec", "sb|x|-e|B=2", 1},
		{"sandbox exec -- sb x -i", "sandbox", "exec", "sb|x|-i", 0},
		{"sandbox kill a b --json c", "sandbox", "kill", "a|b|c", 1},
		{"audit 48221", "audit", "", "48221", 0},
		{"audit verify f", "audit", "verify", "f", 0},
		{"audit -- verify", "audit", "", "verify", 0},
		{"audit verify -", "audit", "verify", "-", 0},
		{"task input t a:/b c:/d", "task", "input", "t|a:/b|c:/d", 0},
		{"sandbox list --help --ttl 5m", "sandbox", "list", "", 2},
		{"help", "help", "", "", 0},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		static struct args a;
		char room[1024], *argv[WORDS_MAX];
		struct err err = {0};
		auto_buf struct buf rest;

		buf_init(&rest, 1024);
		if (read_words(rows[i].words, &a, room, sizeof(room), argv, &err) < 0)
			fail_msg("%s: %s", rows[i].words, err.text);
		assert_string_equal(a.verb->verb, rows[i].verb);
		assert_string_equal(a.verb->sub, rows[i].sub);
		for (size_t j = 0; j < a.n_rest; j++)
			buf_addf(&rest, "%s%s", j == 0 ? "" : "|", a.rest[j]);
		if (!view_is(buf_view(&rest), rows[i].rest))
			fail_msg("%s: rest is %.*s", rows[i].words, VIEW_ARGS(buf_view(&rest)));
		assert_int_equal(a.n_given, rows[i].given);
	}
}

static void
values(void **state)
{
	static struct args a;
	char room[1024], *argv[WORDS_MAX];
	struct err err = {0};

	(void)state;
	assert_int_equal(read_words("run --ttl 10m --memory 2GiB --cpu 2 --pids 7 --tenant acme x",
				 &a, room, sizeof(room), argv, &err),
		0);
	assert_int_equal(args_get(&a, OPT_TTL)->number, 600000);
	assert_int_equal(args_get(&a, OPT_MEMORY)->number, INT64_C(2) << 30);
	assert_int_equal(args_get(&a, OPT_CPU)->number, 2000);
	assert_int_equal(args_get(&a, OPT_PIDS)->number, 7);
	assert_string_equal(args_text(&a, OPT_TENANT), "acme");
	assert_null(args_text(&a, OPT_TEMPLATE));
	assert_false(args_has(&a, OPT_KEEP));
}

static void
bad(void **state)
{
	static const char *const rows[] = {"frob", "run", "run --ttl", "run --ttl 5",
		"run --ttl= x", "run --ttl 5m --ttl 6m x", "run --keep=yes x", "run --label x y",
		"run --label =x y", "run -l", "run -ie A=1 x", "run --unknown x", "run -Z x",
		"run ---ttl 5m x", "run --tt 5m x", "sandbox", "sandbox frob", "sandbox list x",
		"sandbox show", "sandbox show a b", "sandbox list --ttl 5m", "sandbox exec sb",
		"audit", "audit verify", "--socket", "--socket x", "check", "check a b",
		"run --input x y", "run --input :/x y", "run --input x: y", "run --config f x",
		"version --json"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		static struct args a;
		char room[1024], *argv[WORDS_MAX];
		struct err err = {0};

		if (read_words(rows[i], &a, room, sizeof(room), argv, &err) >= 0)
			fail_msg("%s was taken", rows[i]);
		assert_true(err.code < 0 && err.text[0] != '\0');
	}
}

static void
too_many(void **state)
{
	static struct args a;
	static char run[] = "run", option[] = "--env=A=1", word[] = "x";
	char *argv[ARGS_GIVEN_MAX + 3] = {run};
	struct err err = {0};
	int argc = 1;

	(void)state;
	while (argc < ARGS_GIVEN_MAX + 2)
		argv[argc++] = option;
	argv[argc++] = word;
	assert_int_equal(args_read(&a, argc, argv, &err), -E2BIG);
}

static void
files(void **state)
{
	static const struct {
		const char *text, *here, *there;
	} rows[] = {{"a:/b", "a", "/b"}, {"/x/y:/work/y", "/x/y", "/work/y"},
		{"a:b:/c", "a:b", "/c"}, {"a:/b:/c", "a:/b", "/c"}, {"a:/b:c", "a", "/b:c"}};
	static const char *const bad_rows[] = {"", "a", "a:b", ":/b", "a:", "/a"};
	struct err err = {0};
	struct view here;
	const char *there;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		assert_int_equal(args_files(rows[i].text, &here, &there, &err), 0);
		assert_true(view_is(here, rows[i].here));
		assert_string_equal(there, rows[i].there);
	}
	for (size_t i = 0; i < ARRAY_LEN(bad_rows); i++)
		assert_int_equal(args_files(bad_rows[i], &here, &there, &err), -EINVAL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tables),
		cmocka_unit_test(good),
		cmocka_unit_test(values),
		cmocka_unit_test(bad),
		cmocka_unit_test(too_many),
		cmocka_unit_test(files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
