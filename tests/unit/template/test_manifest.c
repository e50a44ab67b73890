/* SPDX-License-Identifier: Apache-2.0 */
/*
 * template.yaml: a row for each thing that is refused, with the place that must be named;
 * all problems of one file at once; and the canonical text of a good one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "template/manifest.h"

#include "lib/canon/read.h"

#include <errno.h>
#include <stdio.h>

#define HEAD "name: a\ndescription: d\nbase: {suite: bookworm}\n"
#define BODY                                                     \
	"packages: [bash]\nplaces: [/home, /tmp]\nenv: {A: b}\n" \
	"user: {name: agent, uid: 10001, gid: 10001, home: /home/agent}\nhostname: h\n"
#define GOOD HEAD BODY

static int
parse(const char *text, struct manifest *m, struct buf *problems)
{
	struct err err = {0};
	int r;

	buf_init(problems, 65536);
	r = manifest_parse(view_str(text), "f", m, problems, &err);
	buf_add_byte(problems, '\0');
	assert_int_equal(buf_check(problems), 0);
	assert_int_equal(r<0, problems->n> 1);
	if (r < 0)
		assert_non_null(strstr((const char *)problems->p, err.text));
	return r;
}

static const struct {
	const char *text, *problem;
} refused[] = {
	{"", "f:1:1: the file is empty"},
	{"[a]", "f:1:1: here a section"},
	{"a", "f:1:1: here a section"},
	{GOOD "colour: red\n", "f:9:1: unknown key \"colour\""},
	{GOOD "name: b\n", "f:9:1: the key name stands twice"},
	{"name: a\n", "f:1:1: the key description is missing"},
	{GOOD "aliases: &x [b]\n", "f:9:10: anchors"},
	{GOOD "aliases: *x\n", "f:9:10: aliases (*name)"},
	{GOOD "aliases: !!set [b]\n", "f:9:10: tags"},
	{GOOD "---\na: b\n", "f:9:1: a second document"},
	{GOOD "aliases: [[[[[b]]]]]\n", "nested too deep"},
	{GOOD "aliases: [a]\n", "the alias a is the name itself"},
	{GOOD "aliases: [b, b]\n", "f:9:14: aliases: \"b\" is in the list twice"},
	{GOOD "aliases: [.b]\n", "f:9:11: aliases: \".b\" is no name"},
	{GOOD "aliases: [a/b]\n", "is no name"},
	{GOOD "aliases: b\n", "f:9:10: aliases must be a list"},
	{GOOD "aliases: [\"\"]\n", "f:9:11: aliases must have 1 to"},
	{GOOD "aliases: [\"a\\x01\"]\n", "control character"},
	{GOOD "exclude: [usr/share]\n", "no absolute path pattern"},
	{GOOD "exclude: [\"/usr/../x\"]\n", "no absolute path pattern"},
	{GOOD "exclude: [\"/usr; rm\"]\n", "no absolute path pattern"},
	{GOOD "finish: [ls]\n", "f:9:10: a command of finish must be a list"},
	{GOOD "finish: [[ls]]\n", "f:9:10: a command starts with an absolute path"},
	{GOOD "finish: [[]]\n", "a command starts with an absolute path"},
	{GOOD "finish: []\n", "finish: 1 to"},
	{"name: A\n", "f:1:7: name: 1 to 63"},
	{"name: ../a\n", "f:1:7: name: 1 to 63"},
	{"name: [a]\n", "f:1:7: name must be one value"},
	{"base: bookworm\n", "f:1:7: here a section"},
	{"base: {suite: bookworm, mirror: x}\n", "f:1:25: unknown key \"mirror\""},
	{"packages: [\"-o=Dir::Bin=x\"]\n", "f:1:12: packages: \"-o=Dir::Bin=x\" is no Debian"},
	{"packages: [\"a,b\"]\n", "is no Debian package name"},
	{"packages: [\"../a\"]\n", "is no Debian package name"},
	{"places: [tmp]\n", "is no place"},
	{"places: [/]\n", "is no place"},
	{"places: [/tmp/]\n", "is no place"},
	{"places: [//tmp]\n", "is no place"},
	{"places: [/tmp/../etc]\n", "is no place"},
	{"places: [/tmp/.]\n", "is no place"},
	{"places: [/etc]\n", "is no place"},
	{"places: [/usr/local]\n", "is no place"},
	{"places: [/proc/1]\n", "is no place"},
	{"env: [A]\n", "f:1:6: env must be a section"},
	{"env: {1A: b}\n", "f:1:7: env: \"1A\" is no variable name"},
	{"env: {\"A=B\": b}\n", "is no variable name"},
	{"env: {A: b, A: c}\n", "f:1:13: env: A stands twice"},
	{"env: {A: [b]}\n", "a value in env must be one value"},
	{"user: {uid: 0}\n", "f:1:13: uid must be a number from 1000"},
	{"user: {uid: 999}\n", "uid must be a number"},
	{"user: {uid: 60001}\n", "uid must be a number"},
	{"user: {uid: 010001}\n", "uid must be a number"},
	{"user: {uid: -1}\n", "uid must be a number"},
	{"user: {gid: 1e4}\n", "gid must be a number"},
	{"user: {home: agent}\n", "home must be a plain absolute path"},
	{"user: {shell: /bin/sh}\n", "f:1:8: unknown key \"shell\""},
	{"name: a\n\tb: c\n", "f:2:1: "},
	{"name: \"a\n", "f:"},
	{"name: \xff\n", "f:"},
	{HEAD "packages: [bash]\nplaces: [/tmp, /tmp/x]\nenv: {A: b}\n"
	      "user: {name: u, uid: 1000, gid: 1000, home: /tmp}\nhostname: h\n",
		"places: /tmp/x lies inside /tmp"},
	{HEAD "packages: [bash]\nplaces: [/tmp]\nenv: {A: b}\n"
	      "user: {name: u, uid: 1000, gid: 1000, home: /tmpx}\nhostname: h\n",
		"the home /tmpx lies in none of the places"},
};

static void
each_refusal_names_its_place(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
		struct manifest m auto_manifest = {0};
		struct buf problems auto_buf = {0};

		assert_int_equal(parse(refused[i].text, &m, &problems), -EINVAL);
		if (strstr((const char *)problems.p, refused[i].problem) == NULL)
			fail_msg("row %zu: \"%s\" not in:\n%s", i, refused[i].problem,
				(const char *)problems.p);
	}
}

static void
all_problems_come_at_once(void **state)
{
	struct manifest m auto_manifest = {0};
	struct buf problems auto_buf = {0};
	size_t lines = 0;

	(void)state;
	assert_int_equal(
		parse("name: A\nx: 1\npackages: [a, _]\nenv: {1: 2}\n" HEAD, &m, &problems),
		-EINVAL);
	for (size_t i = 0; i < problems.n; i++)
		lines += problems.p[i] == '\n';
	/* name, x, two packages, env, name twice; places, user, hostname missing */
	assert_int_equal(lines, 9);
}

static void
too_large_is_refused(void **state)
{
	struct manifest m auto_manifest = {0};
	struct buf problems auto_buf = {0};
	char *text auto_free = malloc(65538);

	(void)state;
	assert_non_null(text);
	memset(text, '#', 65537);
	text[65537] = '\0';
	assert_int_equal(parse(text, &m, &problems), -EINVAL);
	assert_string_equal((const char *)problems.p, "f:1:1: more than 65536 bytes\n");
}

/* The order of a mapping or list in the file says nothing; the order of commands does. */
static void
canonical_text(void **state)
{
	static const char text[] = "hostname: h\nenv: {A1: x, A: 'q\"uote', B: \"\xc3\xa9\"}\n"
				   "places: [/tmp, /home]\npackages: [zip, bash]\naliases: [z, b]\n"
				   "user: {home: /home/agent, gid: 1001, uid: 1000, name: agent}\n"
				   "finish: [[/b, x], [/a]]\nexclude: [/z/*, /a/*]\n" HEAD;
	static const char want[] =
		"{\"aliases\":[\"b\",\"z\"],\"description\":\"d\","
		"\"env\":{\"A\":\"q\\\"uote\",\"A1\":\"x\",\"B\":\"\xc3\xa9\"},"
		"\"exclude\":[\"/z/*\",\"/a/*\"],\"finish\":[[\"/b\",\"x\"],[\"/a\"]],"
		"\"hostname\":\"h\",\"name\":\"a\",\"packages\":[\"bash\",\"zip\"],"
		"\"places\":[\"/home\",\"/tmp\"],\"suite\":\"bookworm\","
		"\"user\":{\"gid\":1001,\"home\":\"/home/agent\",\"name\":\"agent\",\"uid\":1000}}";
	struct manifest m auto_manifest = {0};
	struct buf problems auto_buf = {0}, json auto_buf = {0};
	struct err err;

	(void)state;
	if (parse(text, &m, &problems) < 0)
		fail_msg("%s", (const char *)problems.p);
	buf_init(&json, 65536);
	assert_int_equal(manifest_json(&m, &json, &err), 0);
	assert_int_equal(canon_check(buf_view(&json), false, &err), 0);
	buf_add_byte(&json, '\0');
	assert_string_equal((const char *)json.p, want);
}

static void
imported_has_the_usual_places(void **state)
{
	static const char *const own[] = {"/work"};
	struct manifest usual auto_manifest = {0}, chosen auto_manifest = {0},
			      bad auto_manifest = {0};
	struct err err;

	(void)state;
	assert_int_equal(manifest_imported("tiny", NULL, 0, &usual, &err), 0);
	assert_int_equal(usual.places.n, 8);
	assert_null(usual.suite);
	assert_int_equal(manifest_imported("tiny", own, 1, &chosen, &err), 0);
	assert_int_equal(chosen.places.n, 1);
	assert_int_equal(manifest_imported("../tiny", NULL, 0, &bad, &err), -EINVAL);
}

/* A place from the command line is held to the same rule as one of a file. */
static void
imported_refuses_bad_places(void **state)
{
	static const char *const bad[] = {"/etc", "tmp", "/tmp/../etc", "/", "/usr/x", ""};
	struct err err;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct manifest m auto_manifest = {0};

		assert_int_equal(manifest_imported("tiny", &bad[i], 1, &m, &err), -EINVAL);
	}
}

static void
python_manifest_is_good(void **state)
{
	static char text[65536];
	struct manifest m auto_manifest = {0};
	struct buf problems auto_buf = {0};
	FILE *f = fopen(PYTHON_MANIFEST, "re");
	size_t n;

	(void)state;
	assert_non_null(f);
	n = fread(text, 1, sizeof(text) - 1, f);
	assert_int_equal(fclose(f), 0);
	text[n] = '\0';
	if (parse(text, &m, &problems) < 0)
		fail_msg("%s", (const char *)problems.p);
	assert_string_equal(m.name, "python");
	assert_string_equal(m.aliases.v[0], "code-interpreter");
	assert_string_equal(m.aliases.v[1], "ubuntu-24.04");
	assert_int_equal(m.uid, 10001);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_refusal_names_its_place),
		cmocka_unit_test(all_problems_come_at_once),
		cmocka_unit_test(too_large_is_refused),
		cmocka_unit_test(canonical_text),
		cmocka_unit_test(imported_has_the_usual_places),
		cmocka_unit_test(imported_refuses_bad_places),
		cmocka_unit_test(python_manifest_is_good),
	};

	return cmocka_run_group_tests_name("manifest", tests, NULL, NULL);
}
