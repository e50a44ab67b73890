/* SPDX-License-Identifier: Apache-2.0 */
/* Files of policies: the exact document, every fault with its place and words (policy_faults.def), and what the manual promises. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "config/policies.h"
#include "lib/egress/rules.h"
#include "sample.h"

#include <stdio.h>

struct told {
	char text[32768];
	size_t n;
	unsigned faults;
};

static struct told told;
static struct policy scratch;

static void
on_fault(void *ctx, const char *file, struct place at, const char *text)
{
	struct told *t = ctx;

	t->faults++;
	if (t->n < sizeof(t->text))
		t->n += (size_t)snprintf(t->text + t->n, sizeof(t->text) - t->n, "%s%s%u:%u: %s\n",
			strcmp(file, "sample.yaml") == 0 ? "" : file,
			strcmp(file, "sample.yaml") == 0 ? "" : ":", at.line, at.column, text);
}

static unsigned
compile_files(const struct operations_file *files, size_t n, struct policies_compiled *ret)
{
	const struct operations_sink sink = {.ctx = &told, .on_fault = on_fault};
	unsigned faults;

	told = (struct told){.n = 0};
	faults = policies_compile(files, n, ret, &sink);
	assert_true(faults == told.faults || faults > OPERATIONS_FAULTS_MAX);
	return faults;
}

static unsigned
compile_text(const char *text, struct policies_compiled *ret)
{
	const struct operations_file file = {"sample.yaml", view_str(text)};

	return compile_files(&file, 1, ret);
}

/* The policy of one text, or the test has failed; until the next call. */
static const struct policy *
policy_of(const char *text)
{
	static uint8_t document[POLICY_BYTES_MAX];
	auto_policies_compiled struct policies_compiled c;
	struct err err = {0};

	if (compile_text(text, &c) != 0)
		fail_msg("%s%s", text, told.text);
	memcpy(document, c.row[0].document.p, c.row[0].document.n);
	if (policy_read(view_of(document, c.row[0].document.n), &scratch, &err) < 0)
		fail_msg("%s", err.text);
	return &scratch;
}

/* ---- the document ---- */

static void
the_sample_is_exactly_this_document(void **state)
{
	auto_policies_compiled struct policies_compiled c;

	(void)state;
	if (compile_text(file_text("policy.yaml"), &c) != 0)
		fail_msg("%s", told.text);
	assert_int_equal(c.n, 1);
	assert_string_equal(c.row[0].name, "sample");
	if (!view_is(buf_view(&c.row[0].document), file_text("policy.json")))
		fail_msg("%.*s", (int)c.row[0].document.n, (const char *)c.row[0].document.p);
}

static void
what_is_left_out_has_its_default(void **state)
{
	const struct policy *p = policy_of(
		"egress:\n"
		"  - fetch: {url: https://a.example/}\n"
		"  - brokered: {url: https://b.example/, credential: c, response_fields: [d]}\n"
		"  - passthrough: {name: c.example}\n");
	const struct rule *r = p->rule;

	(void)state;
	assert_int_equal(p->ntenants, 0);
	assert_true(!p->ipv6 && !p->capture);
	assert_int_equal(p->budgets.names, 100);
	assert_int_equal(p->budgets.connections, 10000);
	assert_int_equal(p->budgets.handshakes, 5000);
	assert_int_equal(p->budgets.requests, 20000);
	assert_int_equal(p->budgets.brokered, 200);
	assert_int_equal(p->budgets.bytes_out, 64 << 20);
	assert_int_equal(p->budgets.bytes_in, 2LL << 30);
	assert_int_equal(r[0].methods, 1U << HTTP_GET | 1U << HTTP_HEAD);
	assert_int_equal(r[0].port, 443);
	assert_int_equal(r[0].response_max, 8 << 20);
	assert_int_equal(r[0].request_max, 0);
	assert_int_equal(r[0].nquery, 0);
	assert_true(!r[0].websocket && r[0].roots.n == 0 && !r[0].exact);
	assert_int_equal(r[1].methods, 1U << HTTP_GET);
	assert_int_equal(r[1].response_max, 256 << 10);
	assert_int_equal(r[1].uses, 0);
	assert_true(view_is(r[1].credential_header, "Authorization"));
	assert_true(view_is(r[1].credential_prefix, "Bearer "));
	assert_true(view_is(r[1].credential_secret, "c"));
	assert_int_equal(r[2].port, 443);
}

/* The class of CVE-2025-66479: what is empty lets nothing through, and what is forgotten is told. */
static void
an_empty_list_lets_nothing_through(void **state)
{
	static const char *const faults[] = {"", "---\n", "# nothing\n", "tenants: [acme]\n",
		"egress:\n", "egress: ''\n", "egress: null\n", "egress: ~\n", "egress: {}\n",
		"egress: all\n", "egress: [{}]\n", "egress: [fetch]\n", "egress: [{fetch: {}}]\n",
		"egress: [{fetch: }]\n", "egress: []\ntenants: []\n",
		"egress: [{fetch: {url: https://a.example/, methods: []}}]\n",
		"egress: [{fetch: {url: https://a.example/, query: []}}]\n",
		"egress: [{brokered: {url: https://a.example/, credential: c, uses: 0}}]\n"};
	const struct policy *p = policy_of("egress: []\n");
	const struct egress_place at = {
		.scheme = EGRESS_SCHEME_NONE, .name = view_str("a.example"), .port = 443};
	rule_set set;

	(void)state;
	assert_int_equal(p->nrules, 0);
	assert_false(rules_know(p, view_str("a.example")));
	assert_int_equal(rules_place(p, &at, &set, NULL), EGRESS_REASON_NO_RULE);
	for (size_t i = 0; i < ARRAY_LEN(faults); i++) {
		auto_policies_compiled struct policies_compiled c;

		if (compile_text(faults[i], &c) == 0)
			fail_msg("accepted: %s", faults[i]);
		assert_true(told.n > 0);
	}
}

/* ---- faults ---- */

static void
every_fault_is_told_at_its_place(void **state)
{
	static const struct {
		const char *from, *to, *told;
	} rows[] = {
#define FAULT(from, to, told) {from, to, told},
#include "policy_faults.def"
#undef FAULT
	};
	unsigned wrong = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		auto_policies_compiled struct policies_compiled c;
		char *text auto_free = file_changed("policy.yaml", rows[i].from, rows[i].to);
		unsigned faults = compile_text(text, &c);

		if (faults > 0 && strcmp(told.text, rows[i].told) == 0)
			continue;
		print_error("%s -> %s\n told: %s wanted: %s", rows[i].from, rows[i].to, told.text,
			rows[i].told);
		wrong++;
	}
	assert_int_equal(wrong, 0);
}

/* ---- hosts ---- */

static const struct {
	const char *written, *host; /* NULL: refused */
} hosts[] = {
#define HOST(written, host) {written, host},
#include "policy_hosts.def"
#undef HOST
};

static void
hosts_have_one_form(void **state)
{
	unsigned wrong = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(hosts); i++) {
		auto_policies_compiled struct policies_compiled c;
		char text[1024];
		unsigned faults;

		(void)snprintf(text, sizeof(text), "egress:\n  - tcp: {port: 9, name: \"%s\"}\n",
			hosts[i].written);
		faults = compile_text(text, &c);
		if (hosts[i].host == NULL ? faults == 1
					  : faults == 0 && view_is(policy_of(text)->rule[0].host,
								   hosts[i].host))
			continue;
		print_error("%s: %u faults, %s%.*s\n", hosts[i].written, faults, told.text,
			faults == 0 ? (int)scratch.rule[0].host.n : 0,
			faults == 0 ? (const char *)scratch.rule[0].host.p : "");
		wrong++;
	}
	assert_int_equal(wrong, 0);
}

/* ---- files ---- */

static void
the_name_of_the_file_is_that_of_the_policy(void **state)
{
	static const char *const bad[] = {"", ".yaml", "a", "a.yml", "A.yaml", "-a.yaml", "_a.yaml",
		"a b.yaml", "a/b.yaml", "none.yaml", "\303\274.yaml",
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.yaml"};
	const struct operations_file good[] = {{"a-b.yaml", view_str("egress: []")},
		{"a.b.yaml", view_str("egress: []")}, {"a.yaml", view_str("egress: []")},
		{"9.yaml", view_str("egress: []")}};
	struct policies_compiled c;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		const struct operations_file file = {bad[i], view_str("egress: []")};

		assert_int_equal(compile_files(&file, 1, &c), 1);
		policies_compiled_done(&c);
	}
	assert_int_equal(compile_files(good, ARRAY_LEN(good), &c), 0);
	assert_int_equal(c.n, 4);
	assert_string_equal(c.row[0].name, "9");
	assert_string_equal(c.row[1].name, "a");
	assert_string_equal(c.row[2].name, "a-b");
	assert_string_equal(c.row[3].name, "a.b");
	policies_compiled_done(&c);
	assert_int_equal(compile_files(NULL, 0, &c), 0);
	assert_int_equal(c.n, 0);
}

static void
each_file_has_its_own_faults(void **state)
{
	const struct operations_file files[] = {{"a.yaml", view_str("egress: [")},
		{"b.yaml", view_str("egress: []")}, {"c.yaml", view_str("egress: []\nx: 1\n")}};
	auto_policies_compiled struct policies_compiled c;

	(void)state;
	assert_int_equal(compile_files(files, 3, &c), 2);
	assert_non_null(strstr(told.text, "a.yaml:"));
	assert_null(strstr(told.text, "b.yaml:"));
	assert_non_null(strstr(told.text, "c.yaml:2:1: a policy has no \"x\""));
}

static void
not_a_policy(void **state)
{
	static const char *const bad[] = {"text", "[a]", "- a", "a: b",
		"egress: []\n---\negress: []", "egress: &a []", "egress: !!seq []", "egress: [*a]",
		"egress: [], egress: []", "egress: []\negress: []", "<<: {egress: []}", "\x01",
		"\xff\xfe", "egress: [", "egress: [{fetch: {url: \"\xc3\"}}]", "? [a]\n: b",
		"egress: []\ncapture: yes", "egress: []\ncapture: \"true\"",
		"egress: []\naddresses: both", "egress: []\nbudgets: []",
		"egress: []\nbudgets: {names: -1}", "egress: []\nbudgets: {names: 1.5}",
		"egress: []\nbudgets: {bytes_in: 5}",
		"egress: []\nbudgets: {bytes_in: 99999999GiB}", "egress: []\ntenants: acme",
		"egress: []\ntenants: [Acme]", "egress: []\ntenants: [[acme]]",
		"egress: []\noperations: {}"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		auto_policies_compiled struct policies_compiled c;

		if (compile_text(bad[i], &c) == 0)
			fail_msg("accepted: %s", bad[i]);
		assert_true(told.n > 0);
	}
}

/* ---- bounds ---- */

static unsigned
repeated(const char *head, const char *each, unsigned n, const char *tail)
{
	auto_policies_compiled struct policies_compiled c;
	auto_buf struct buf b = {.max = TEXT_BYTES};

	buf_add_str(&b, head);
	for (unsigned i = 0; i < n; i++) {
		char one[512];
		int used;

		/* Rows of this file are the only formats. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		used = snprintf(one, sizeof(one), each, i);
#pragma GCC diagnostic pop
		buf_add(&b, one, (size_t)used);
	}
	buf_add_str(&b, tail);
	buf_add_byte(&b, 0);
	assert_int_equal(buf_check(&b), 0);
	return compile_text((const char *)b.p, &c);
}

static void
lists_have_an_end(void **state)
{
	static const struct {
		const char *head, *each, *tail, *told;
		unsigned most;
	} rows[] = {
		{"egress:\n", "  - tcp: {name: h%u.example, port: 9}\n", "",
			"66:5: a policy has at most 64 rules", 64},
		{"egress:\n", "  - tcp: {name: h.example, port: 9%02u}\n", "",
			"18:5: port 916 is one more than the 16 different ports", 16},
		{"capture: true\negress:\n", "  - tcp: {name: h.example, port: 9%02u}\n", "",
			"17:5: port 914 is one more than the 16 different ports", 14},
		{"egress:\n", "  - fetch: {url: https://h.example/, roots: r%u}\n", "",
			"10:5: a policy can have at most 8 different roots", 8},
		{"egress:\n  - fetch:\n      url: https://h.example/\n      query:\n",
			"        - p%u\n", "", "query has more than 16 entries", 16},
		{"egress:\n  - brokered:\n      url: https://h.example/\n      credential: c\n     "
		 " "
		 "response_fields:\n",
			"        - p%u\n", "", "response_fields has more than 16 entries", 16},
		{"egress: []\ntenants:\n", "  - t%u\n", "", "tenants has more than 64 entries", 64},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		if (repeated(rows[i].head, rows[i].each, rows[i].most, rows[i].tail) != 0)
			fail_msg("%s", told.text);
		assert_int_equal(
			repeated(rows[i].head, rows[i].each, rows[i].most + 1, rows[i].tail), 1);
		if (strstr(told.text, rows[i].told) == NULL)
			fail_msg("%s", told.text);
	}
	/* No more than 100 are told. */
	assert_int_equal(repeated("egress: []\n", "x%u: 1\n", 300, ""), 300);
	assert_int_equal(told.faults, OPERATIONS_FAULTS_MAX);
}

/* 64 rules of 1024 bytes do not fit into a document. */
static void
a_document_has_an_end(void **state)
{
	auto_policies_compiled struct policies_compiled c;
	auto_buf struct buf b = {.max = TEXT_BYTES};

	(void)state;
	buf_add_str(&b, "egress:\n");
	for (unsigned i = 0; i < 64; i++) {
		buf_addf(&b, "  - fetch: {url: https://h%u.example/", i);
		for (unsigned k = 0; k < 1000; k++)
			buf_add_byte(&b, 'a');
		buf_add_str(&b, "}\n");
	}
	buf_add_byte(&b, 0);
	assert_int_equal(compile_text((const char *)b.p, &c), 1);
	assert_non_null(strstr(told.text, "1:1: the policy as a whole: "));
}

/* ---- what people read ---- */

#define PAGE "../../../docs/man/demilune-policy.5.scd"

static void
the_manual_names_each_key(void **state)
{
	static const char *const keys[] = {
#define SECTION(id, what, where)
#define KEY(section, id, name, kind, need, prose) name,
#include "config/policy_keys.def"
#undef SECTION
#undef KEY
	};
	const char *page = file_text(PAGE);

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		char escaped[64] = "*";
		size_t n = 1;

		for (const char *c = keys[i]; *c != '\0'; c++) {
			if (*c == '_')
				escaped[n++] = '\\';
			escaped[n++] = *c;
		}
		escaped[n] = '*';
		if (strstr(page, escaped) == NULL)
			fail_msg("demilune-policy(5) does not name %s", escaped);
	}
}

/* Literal blocks that begin with "# ...NAME.yaml" are one directory; together they use every key. */
static void
the_examples_of_the_manual_compile(void **state)
{
	static const char *const words[] = {
#define SECTION(id, what, where)
#define KEY(section, id, name, kind, need, prose) name ":",
#include "config/policy_keys.def"
#undef SECTION
#undef KEY
	};
	auto_policies_compiled struct policies_compiled c;
	struct operations_file files[POLICIES_MAX];
	char names[POLICIES_MAX][64];
	bool used[ARRAY_LEN(words)] = {false};
	const char *at = file_text(PAGE);
	size_t n = 0;

	(void)state;
	while ((at = strstr(at, "\n```\n# ")) != NULL) {
		const char *begin = at + 5, *line = strchr(begin, '\n'),
			   *end = strstr(begin, "\n```\n"), *name = line;

		assert_non_null(end);
		while (name[-1] != ' ' && name[-1] != '/')
			name--;
		(void)snprintf(names[n], sizeof(names[n]), "%.*s", (int)(line - name), name);
		files[n] = (struct operations_file){
			names[n], view_of(begin, (size_t)(end - begin) + 1)};
		for (size_t i = 0; i < ARRAY_LEN(words); i++)
			used[i] = used[i] || memmem(begin, files[n].text.n, words[i],
						     strlen(words[i])) != NULL;
		n++;
		at = end + 5;
	}
	assert_true(n >= 6);
	if (compile_files(files, n, &c) != 0)
		fail_msg("%s", told.text);
	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (!used[i])
			fail_msg("no example has %s", words[i]);
}

/* Each block of YAML of the guide is a policy. */
static void
the_policies_of_the_guide_compile(void **state)
{
	auto_policies_compiled struct policies_compiled c;
	struct operations_file files[POLICIES_MAX];
	char names[POLICIES_MAX][16];
	const char *at = file_text("../../../docs/guide/egress.md");
	size_t n = 0;

	(void)state;
	while ((at = strstr(at, "```yaml\n")) != NULL) {
		const char *begin = at + 8, *end = strstr(begin, "\n```");

		assert_non_null(end);
		assert_true(n < POLICIES_MAX);
		(void)snprintf(names[n], sizeof(names[n]), "g%zu.yaml", n);
		files[n] = (struct operations_file){
			names[n], view_of(begin, (size_t)(end - begin) + 1)};
		n++;
		at = end + 4;
	}
	assert_true(n >= 1);
	if (compile_files(files, n, &c) != 0)
		fail_msg("%s", told.text);
	assert_true(c.n == n);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_sample_is_exactly_this_document),
		cmocka_unit_test(what_is_left_out_has_its_default),
		cmocka_unit_test(an_empty_list_lets_nothing_through),
		cmocka_unit_test(every_fault_is_told_at_its_place),
		cmocka_unit_test(hosts_have_one_form),
		cmocka_unit_test(the_name_of_the_file_is_that_of_the_policy),
		cmocka_unit_test(each_file_has_its_own_faults),
		cmocka_unit_test(not_a_policy),
		cmocka_unit_test(lists_have_an_end),
		cmocka_unit_test(a_document_has_an_end),
		cmocka_unit_test(the_manual_names_each_key),
		cmocka_unit_test(the_examples_of_the_manual_compile),
		cmocka_unit_test(the_policies_of_the_guide_compile),
	};

	return cmocka_run_group_tests_name("policies", tests, NULL, NULL);
}
