/* SPDX-License-Identifier: Apache-2.0 */
/* The decision: each step, its order, the reason that is told; rows of research/egress.md section 2 that are decided here carry their ids. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/egress/rules.h"
#include "lib/http/path.h"
#include "text.h"

#include <errno.h>
#include <stdio.h>

static uint8_t memory[8192];

/* "METHOD /path?query" as the gateway takes it apart. */
static struct egress_request
request_of(const char *method, const char *target, struct http_params *params)
{
	const char *mark = strchr(target, '?');
	size_t n = mark == NULL ? strlen(target) : (size_t)(mark - target);
	struct egress_request r = {.method = http_method_of(view_str(method)),
		.path = view_of(target, n),
		.has_query = mark != NULL};

	assert_true(r.method < HTTP_METHODS);
	if (mark != NULL) {
		assert_true(strlen(mark + 1) < sizeof(memory));
		assert_int_equal(
			http_query_parse(view_str(mark + 1), 0, memory, params), HTTP_FINE);
		r.query = params;
	}
	return r;
}

static struct egress_decision
decide(const struct policy *p, const char *host, uint16_t port, const char *method,
	const char *target)
{
	const struct egress_place at = {
		.scheme = port == 80 ? EGRESS_SCHEME_HTTP : EGRESS_SCHEME_HTTPS,
		.name = view_str(host),
		.port = port};
	struct egress_decision d = {.rule = EGRESS_NO_RULE};
	struct http_params params;
	struct egress_request r = request_of(method, target, &params);
	rule_set set = 0;

	d.reason = rules_place(p, &at, &set, NULL);
	if (d.reason == EGRESS_REASON_NONE)
		rules_request(p, set, &r, NULL, &d);
	return d;
}

static void
decided(const struct policy *p, const char *host, uint16_t port, const char *method,
	const char *target, enum egress_reason reason, unsigned rule)
{
	struct egress_decision d = decide(p, host, port, method, target);

	if (d.reason != reason || d.rule != rule)
		fail_msg("%s %s:%u%s: %s by %u, not %s by %u", method, host, port, target,
			egress_reason_text(d.reason), d.rule, egress_reason_text(reason), rule);
}

/* The fixture of the case list. */
#define FIXTURE                                                                                  \
	"{\"host\":\"allowed.test\",\"kind\":\"fetch\",\"methods\":[\"GET\",\"POST\"],\"path\":" \
	"\"/v1/**\",\"port\":443,\"request_max\":1048576,\"response_max\":8388608,\"tls\":true}" \
	"," FETCH("plain.test", "80", "/**", "")

/* ---- places ---- */

static enum egress_reason
place(const struct policy *p, enum egress_scheme scheme, const char *host, uint16_t port,
	rule_set *ret)
{
	const struct egress_place at = {.scheme = scheme, .name = view_str(host), .port = port};

	*ret = 77;
	return rules_place(p, &at, ret, NULL);
}

static void
an_empty_policy_knows_and_allows_nothing(void **state)
{
	const struct policy *p = policy_of("");
	rule_set set;

	(void)state;
	assert_false(rules_know(p, view_str("allowed.test")));
	assert_false(rules_know(p, view_str("")));
	assert_int_equal(
		place(p, EGRESS_SCHEME_NONE, "allowed.test", 443, &set), EGRESS_REASON_NO_RULE);
	assert_int_equal(set, 77);
	decided(p, "allowed.test", 443, "GET", "/", EGRESS_REASON_NO_RULE, EGRESS_NO_RULE);
}

static void
a_place_is_name_then_port_then_scheme(void **state)
{
	const struct policy *p = policy_of(FIXTURE "," TCP("raw.test", "9") "," PASSTHROUGH(
		"pinned.test", "443") "," BROKERED("api.test", "443", "/"));
	rule_set set;

	(void)state;
	assert_int_equal(place(p, EGRESS_SCHEME_HTTPS, "allowed.test", 443, &set), 0);
	assert_int_equal(set, 1);
	assert_int_equal(place(p, EGRESS_SCHEME_NONE, "plain.test", 80, &set), 0);
	assert_int_equal(set, 2);
	assert_int_equal(
		place(p, EGRESS_SCHEME_HTTPS, "evil.test", 443, &set), EGRESS_REASON_NO_RULE);
	assert_int_equal(
		place(p, EGRESS_SCHEME_HTTPS, "allowed.test", 80, &set), EGRESS_REASON_PORT);
	assert_int_equal(
		place(p, EGRESS_SCHEME_HTTP, "allowed.test", 443, &set), EGRESS_REASON_SCHEME);
	assert_int_equal(
		place(p, EGRESS_SCHEME_HTTPS, "plain.test", 80, &set), EGRESS_REASON_SCHEME);
	assert_int_equal(place(p, EGRESS_SCHEME_HTTP, "api.test", 443, &set), EGRESS_REASON_SCHEME);
	assert_int_equal(
		place(p, EGRESS_SCHEME_TCP, "allowed.test", 443, &set), EGRESS_REASON_SCHEME);
	assert_int_equal(set, 77);
	/* tcp takes what is spoken, whatever it is; passthrough is TLS. */
	assert_int_equal(place(p, EGRESS_SCHEME_TCP, "raw.test", 9, &set), 0);
	assert_int_equal(set, 4);
	assert_int_equal(place(p, EGRESS_SCHEME_HTTP, "raw.test", 9, &set), 0);
	assert_int_equal(place(p, EGRESS_SCHEME_HTTPS, "raw.test", 9, &set), 0);
	assert_int_equal(place(p, EGRESS_SCHEME_PASSTHROUGH, "pinned.test", 443, &set), 0);
	assert_int_equal(set, 8);
	assert_int_equal(
		place(p, EGRESS_SCHEME_HTTP, "pinned.test", 443, &set), EGRESS_REASON_SCHEME);
	assert_int_equal(place(p, EGRESS_SCHEME_DNS, "raw.test", 9, &set), EGRESS_REASON_SCHEME);
	assert_int_equal(place(p, EGRESS_SCHEME_MAX, "raw.test", 9, &set), EGRESS_REASON_SCHEME);
}

static void
rules_of_tcp_and_passthrough_never_take_a_request(void **state)
{
	const struct policy *p = policy_of(
		TCP("raw.test", "9") "," PASSTHROUGH("pinned.test", "443"));
	struct http_params params;
	struct egress_request r = request_of("GET", "/", &params);
	struct egress_decision d;

	(void)state;
	rules_request(p, ~UINT64_C(0), &r, NULL, &d);
	assert_int_equal(d.reason, EGRESS_REASON_NO_RULE);
	assert_int_equal(d.rule, EGRESS_NO_RULE);
	assert_int_equal(d.status, 403);
}

static void
candidates_are_the_only_rules_that_are_asked(void **state)
{
	const struct policy *p = policy_of(FIXTURE);
	struct http_params params;
	struct egress_request r = request_of("GET", "/v1/x", &params);
	struct egress_decision d;

	(void)state;
	rules_request(p, 0, &r, NULL, &d);
	assert_int_equal(d.reason, EGRESS_REASON_NO_RULE);
	rules_request(p, 1, &r, NULL, &d);
	assert_int_equal(d.reason, EGRESS_REASON_NONE);
	assert_int_equal(d.rule, 0);
	assert_int_equal(d.status, 0);
	assert_int_equal(d.step, EGRESS_STEPS);
	rules_request(p, UINT64_C(1) << 63, &r, NULL, &d);
	assert_int_equal(d.reason, EGRESS_REASON_NO_RULE);
}

static void
dns_knows_what_a_rule_can_lead_to(void **state)
{
	const struct policy *p = policy_of(FIXTURE "," FETCH(
		"1.1.1.1", "443", "/", ",\"tls\":true") ",{\"host\":\"wild.test\",\"kind\":\"tcp\","
							"\"labels\":\"one\",\"port\":9}");

	(void)state;
	assert_true(rules_know(p, view_str("allowed.test")));
	assert_true(rules_know(p, view_str("plain.test")));
	assert_true(rules_know(p, view_str("x.wild.test")));
	assert_false(rules_know(p, view_str("wild.test")));
	assert_false(rules_know(p, view_str("x.y.wild.test")));
	assert_false(rules_know(p, view_str("1.1.1.1")));
	assert_false(rules_know(p, view_str("evil.test")));
}

/* ---- A and B ---- */

static void
A11_a_query_in_place_of_a_path_is_another_host(void **state)
{
	(void)state;
	decided(policy_of(FIXTURE), "evil.test", 80, "GET", "/?@plain.test/", EGRESS_REASON_NO_RULE,
		EGRESS_NO_RULE);
}

static void
A18_an_a_label_is_matched_as_bytes(void **state)
{
	const struct policy *p = policy_of(FETCH("xn--bcher-kva.test", "80", "/", ""));

	(void)state;
	decided(p, "xn--bcher-kva.test", 80, "GET", "/", EGRESS_REASON_NONE, 0);
	decided(p, "xn--bcher-kvb.test", 80, "GET", "/", EGRESS_REASON_NO_RULE, EGRESS_NO_RULE);
	decided(p, "b\303\274cher.test", 80, "GET", "/", EGRESS_REASON_NO_RULE, EGRESS_NO_RULE);
}

/* Names come without their dot at the end (A21) and in lower case: here both are only other names. */
static void
A21_what_is_not_canonical_matches_nothing(void **state)
{
	static const char *const others[] = {"plain.test.", "PLAIN.test", "plain.test..",
		".plain.test", "", "plain", "test", "plain.test\n", "plain.test:80"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(others); i++)
		decided(policy_of(FIXTURE), others[i], 80, "GET", "/", EGRESS_REASON_NO_RULE,
			EGRESS_NO_RULE);
}

static void
A29_globs_are_whole_labels(void **state)
{
	const struct policy *one = policy_of(
		"{\"host\":\"plain.test\",\"kind\":\"fetch\",\"labels\":\"one\",\"methods\":"
		"[\"GET\"],\"path\":\"/\",\"port\":80,\"response_max\":1}");

	(void)state;
	decided(one, "a.plain.test", 80, "GET", "/", EGRESS_REASON_NONE, 0);
	decided(one, "plain.test", 80, "GET", "/", EGRESS_REASON_NO_RULE, EGRESS_NO_RULE);
	decided(one, "xplain.test", 80, "GET", "/", EGRESS_REASON_NO_RULE, EGRESS_NO_RULE);
	decided(one, "a.b.plain.test", 80, "GET", "/", EGRESS_REASON_NO_RULE, EGRESS_NO_RULE);
}

static void
B1_an_address_without_a_rule_says_so(void **state)
{
	static const char *const addresses[] = {"127.0.0.1", "169.254.169.254", "10.0.0.1", "::1",
		"::", "0.0.0.0", "::ffff:127.0.0.1", "64:ff9b::a9fe:a9fe", "2002:a9fe:a9fe::1",
		"fec0::1", "ff02::1", "5f00::1", "168.63.129.16", "198.18.0.5", "fd00:5eed::5"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(addresses); i++) {
		decided(policy_of(FIXTURE), addresses[i], 443, "GET", "/", EGRESS_REASON_IP_LITERAL,
			EGRESS_NO_RULE);
		assert_int_equal(egress_reason_status(EGRESS_REASON_IP_LITERAL), 403);
	}
}

static void
B24_an_exact_rule_takes_one_address_in_one_form(void **state)
{
	const struct policy *p = policy_of(FETCH("1.1.1.1", "443", "/", ",\"tls\":true") "," FETCH(
		"2001:db8::1", "443", "/", ",\"tls\":true"));

	(void)state;
	decided(p, "1.1.1.1", 443, "GET", "/", EGRESS_REASON_NONE, 0);
	decided(p, "2001:db8::1", 443, "GET", "/", EGRESS_REASON_NONE, 1);
	decided(p, "1.1.1.1", 80, "GET", "/", EGRESS_REASON_PORT, EGRESS_NO_RULE);
	decided(p, "1.1.1.2", 443, "GET", "/", EGRESS_REASON_IP_LITERAL, EGRESS_NO_RULE);
	decided(p, "1.1.257", 443, "GET", "/", EGRESS_REASON_NO_RULE, EGRESS_NO_RULE);
	decided(p, "::ffff:1.1.1.1", 443, "GET", "/", EGRESS_REASON_IP_LITERAL, EGRESS_NO_RULE);
	decided(p, "2001:db8:0:0:0:0:0:1", 443, "GET", "/", EGRESS_REASON_NO_RULE, EGRESS_NO_RULE);
}

/* ---- D ---- */

static void
D2_the_other_scheme_is_another_place(void **state)
{
	rule_set set;

	(void)state;
	decided(policy_of(FIXTURE), "allowed.test", 80, "GET", "/v1/", EGRESS_REASON_PORT,
		EGRESS_NO_RULE);
	assert_int_equal(place(policy_of(FIXTURE), EGRESS_SCHEME_HTTP, "allowed.test", 443, &set),
		EGRESS_REASON_SCHEME);
}

static void
D9_a_path_outside_of_the_rule_is_refused(void **state)
{
	(void)state;
	decided(policy_of(FIXTURE), "allowed.test", 443, "GET", "/admin", EGRESS_REASON_PATH, 0);
	decided(policy_of(FIXTURE), "allowed.test", 443, "GET", "/", EGRESS_REASON_PATH, 0);
}

/* ---- E ---- */

static void
E21_a_body_is_for_methods_that_carry_one(void **state)
{
	const struct policy *p = policy_of(
		"{\"host\":\"a.test\",\"kind\":\"fetch\",\"methods\":[\"GET\",\"POST\",\"DELETE\"],"
		"\"path\":\"/\",\"port\":80,\"request_max\":10,\"response_max\":1}");
	struct egress_request r = {.method = HTTP_GET, .path = view_str("/"), .body = true};
	struct egress_decision d;

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		r.method = i == 0 ? HTTP_GET : HTTP_DELETE;
		r.body_bytes = 5;
		rules_request(p, 1, &r, NULL, &d);
		assert_int_equal(d.reason, EGRESS_REASON_BODY_LIMIT);
		r.body_bytes = UINT64_MAX;
		rules_request(p, 1, &r, NULL, &d);
		assert_int_equal(d.reason, EGRESS_REASON_BODY_LIMIT);
		r.body_bytes = 0;
		rules_request(p, 1, &r, NULL, &d);
		assert_int_equal(d.reason, EGRESS_REASON_NONE);
	}
}

static void
K11_the_body_ends_at_the_rules_limit(void **state)
{
	const struct policy *p = policy_of(FIXTURE);
	struct egress_request r = {.method = HTTP_POST, .path = view_str("/v1/"), .body = true};
	struct egress_decision d;

	(void)state;
	r.body_bytes = 1048576;
	rules_request(p, 1, &r, NULL, &d);
	assert_int_equal(d.reason, EGRESS_REASON_NONE);
	r.body_bytes = 1048577;
	rules_request(p, 1, &r, NULL, &d);
	assert_int_equal(d.reason, EGRESS_REASON_BODY_LIMIT);
	assert_int_equal(d.step, EGRESS_STEP_BODY);
	assert_int_equal(d.status, 413);
	/* Not announced: the gateway counts it as it comes. */
	r.body_bytes = UINT64_MAX;
	rules_request(p, 1, &r, NULL, &d);
	assert_int_equal(d.reason, EGRESS_REASON_NONE);
}

static void
E29_another_method_is_refused(void **state)
{
	static const char *const others[] = {
		"HEAD", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(others); i++)
		decided(policy_of(FIXTURE), "allowed.test", 443, others[i], "/v1/x",
			EGRESS_REASON_METHOD, 0);
	assert_int_equal(egress_reason_status(EGRESS_REASON_METHOD), 403);
}

/* ---- F ---- */

static void
paths(const char *const *path, size_t n, enum egress_reason reason, unsigned status)
{
	for (size_t i = 0; i < n; i++) {
		struct egress_request r = {.method = HTTP_GET, .path = view_str(path[i])};
		struct egress_decision d;

		rules_request(policy_of(FIXTURE), 1, &r, NULL, &d);
		if (d.reason != reason || d.status != status)
			fail_msg("%s: %s, %u", path[i], egress_reason_text(d.reason), d.status);
	}
}

static void
F1_to_F7_a_path_that_two_may_read_in_two_ways_is_refused(void **state)
{
	static const char *const ambiguous[] = {"/v1/../admin", "/v1/./x", "/v1/%2e%2e/admin",
		"/v1/.%2e/", "/v1/%2E%2e", "/v1/..", "/v1/.", "/v1/%2fadmin", "/v1%2f..%2fadmin",
		"/v1/a%5cb", "/v1/a\\b", "//v1/x", "/v1//x", "/v1/%00", "/v1/%0d%0a", "/v1/\x01",
		"/v1/\303\274", "/v1/#", "/v1/%zz", "/v1/%u002e", "/v1/%", "/v1/%2",
		"/v1/%252e%252e", "/v1/%25", "/v1/%c0%ae", "/v1/%ff", "", "v1/", "*"};
	static const char *const parameter[] = {"/v1/a;b", "/v1/%3bx"};
	static const char *const fine[] = {"/v1/", "/v1/a", "/v1/a/b/", "/v1/%ef%bc%8f",
		"/v1/a%20b", "/v1/...", "/v1/a.b", "/v1/.a", "/v1/~a!$&'()*+,=:@"};

	(void)state;
	paths(ambiguous, ARRAY_LEN(ambiguous), EGRESS_REASON_PATH, 400);
	paths(parameter, ARRAY_LEN(parameter), EGRESS_REASON_PATH, 403);
	paths(fine, ARRAY_LEN(fine), EGRESS_REASON_NONE, 0);
}

static void
F8_a_prefix_ends_at_a_segment(void **state)
{
	static const char *const outside[] = {
		"/v1", "/v1evil", "/v1evil/", "/V1/", "/v", "/", "/x/v1/", "/%76%31/"};

	(void)state;
	paths(outside, ARRAY_LEN(outside), EGRESS_REASON_PATH, 403);
}

static const struct {
	const char *pattern, *path;
	bool fits;
} patterns[] = {
	{"/", "/", true},
	{"/", "/a", false},
	{"/a", "/a", true},
	{"/a", "/a/", false},
	{"/a", "/A", false},
	{"/a/", "/a/", true},
	{"/a/", "/a", false},
	{"/a/", "/a/b", false},
	{"/*", "/", false},
	{"/*", "/a", true},
	{"/*", "/a/", false},
	{"/*", "/a/b", false},
	{"/*/", "/a/", true},
	{"/*/", "/a", false},
	{"/a/*/c", "/a/b/c", true},
	{"/a/*/c", "/a/c", false},
	{"/a/*/c", "/a/b/b/c", false},
	{"/**", "/", true},
	{"/**", "/a/b/c/", true},
	{"/help/**", "/help/", true},
	{"/help/**", "/help/a/b", true},
	{"/help/**", "/help", false},
	{"/help/**", "/helpless", false},
	{"/*/**", "/a/", true},
	{"/*/**", "/a", false},
	{"/*/**", "/a/b/c", true},
	{"/a%20b", "/a%20b", true},
	{"/a%20b", "/a+b", false},
	{"/a%3A", "/a%3a", false},
	{"/a%3A", "/a:", false},
};

static void
patterns_fit_whole_segments(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(patterns); i++) {
		char rule[512];
		struct egress_decision d;

		(void)snprintf(
			rule, sizeof(rule), FETCH("a.test", "80", "%s", ""), patterns[i].pattern);
		d = decide(policy_of(rule), "a.test", 80, "GET", patterns[i].path);
		if ((d.reason == EGRESS_REASON_NONE) != patterns[i].fits)
			fail_msg("%s takes %s?", patterns[i].pattern, patterns[i].path);
		if (!patterns[i].fits)
			assert_int_equal(d.step, EGRESS_STEP_PATH);
	}
}

static void
F11_a_query_is_there_only_when_each_parameter_is_listed(void **state)
{
	const struct policy *p = policy_of(FETCH("none.test", "80", "/",
		"") ","
		    "{\"host\":\"some.test\",\"kind\":\"fetch\",\"methods\":[\"GET\"],\"path\":\"/"
		    "\","
		    "\"port\":80,\"query\":[\"a[b]\",\"lang\",\"page\"],\"response_max\":1}");

	(void)state;
	decided(p, "none.test", 80, "GET", "/", EGRESS_REASON_NONE, 0);
	decided(p, "none.test", 80, "GET", "/?", EGRESS_REASON_QUERY, 0);
	decided(p, "none.test", 80, "GET", "/?lang=de", EGRESS_REASON_QUERY, 0);
	decided(p, "some.test", 80, "GET", "/", EGRESS_REASON_NONE, 1);
	decided(p, "some.test", 80, "GET", "/?", EGRESS_REASON_NONE, 1);
	decided(p, "some.test", 80, "GET", "/?lang=de", EGRESS_REASON_NONE, 1);
	decided(p, "some.test", 80, "GET", "/?page=1&lang", EGRESS_REASON_NONE, 1);
	decided(p, "some.test", 80, "GET", "/?l%61ng=de", EGRESS_REASON_NONE, 1);
	decided(p, "some.test", 80, "GET", "/?a%5Bb%5d=1", EGRESS_REASON_NONE, 1);
	decided(p, "some.test", 80, "GET", "/?Lang=de", EGRESS_REASON_QUERY, 1);
	decided(p, "some.test", 80, "GET", "/?lang=de&url=x", EGRESS_REASON_QUERY, 1);
	decided(p, "some.test", 80, "GET", "/?lan=de", EGRESS_REASON_QUERY, 1);
	decided(p, "some.test", 80, "GET", "/?lang%20=de", EGRESS_REASON_QUERY, 1);
}

static void
a_query_that_nobody_read_is_refused(void **state)
{
	const struct policy *p = policy_of(BROKERED("a.test", "443", "/"));
	struct egress_request r = {.method = HTTP_GET, .path = view_str("/"), .has_query = true};
	struct egress_decision d;

	(void)state;
	rules_request(p, 1, &r, NULL, &d);
	assert_int_equal(d.reason, EGRESS_REASON_QUERY);
}

/* ---- H, K ---- */

static void
H1_an_upgrade_needs_a_rule_with_websocket(void **state)
{
	const struct policy *p = policy_of(FETCH("a.test", "80", "/", "") "," FETCH(
		"a.test", "80", "/ws", ",\"websocket\":true"));
	struct egress_request r = {.method = HTTP_GET, .path = view_str("/"), .upgrade = true};
	struct egress_decision d;

	(void)state;
	rules_request(p, 3, &r, NULL, &d);
	assert_int_equal(d.reason, EGRESS_REASON_UPGRADE);
	assert_int_equal(d.status, 403);
	r.path = view_str("/ws");
	rules_request(p, 3, &r, NULL, &d);
	assert_int_equal(d.reason, EGRESS_REASON_NONE);
	assert_int_equal(d.rule, 1);
}

static void
K4_a_credential_of_the_program_is_refused_by_every_rule(void **state)
{
	const struct policy *p = policy_of(FIXTURE "," BROKERED("api.test", "443", "/v1/**"));
	struct egress_request r = {
		.method = HTTP_GET, .path = view_str("/v1/x"), .credential = true};
	struct egress_decision d;

	(void)state;
	for (rule_set one = 1; one <= 4; one <<= 1) {
		rules_request(p, one, &r, NULL, &d);
		assert_int_equal(d.reason, EGRESS_REASON_CRED_SCOPE);
		assert_int_equal(d.step, EGRESS_STEP_CREDENTIAL);
		assert_int_equal(d.status, 403);
	}
}

static void
K4_a_credential_in_the_query_is_refused_though_a_rule_lists_it(void **state)
{
	const struct policy *p = policy_of(
		"{\"host\":\"a.test\",\"kind\":\"fetch\",\"methods\":[\"GET\"],\"path\":\"/\","
		"\"port\":80,\"query\":[\"Access_Token\",\"X-Amz-Signature\",\"key\",\"keys\"],"
		"\"response_max\":1}");

	(void)state;
	decided(p, "a.test", 80, "GET", "/?keys=1", EGRESS_REASON_NONE, 0);
	decided(p, "a.test", 80, "GET", "/?key=1", EGRESS_REASON_CRED_SCOPE, 0);
	decided(p, "a.test", 80, "GET", "/?%6bey=1", EGRESS_REASON_CRED_SCOPE, 0);
	decided(p, "a.test", 80, "GET", "/?keys=1&Access_Token=x", EGRESS_REASON_CRED_SCOPE, 0);
	decided(p, "a.test", 80, "GET", "/?X-Amz-Signature=x", EGRESS_REASON_CRED_SCOPE, 0);
}

static void
K9_names_of_credentials_are_known_in_every_spelling(void **state)
{
	static const char *const yes[] = {"Authorization", "AUTHORIZATION", "authorization",
		"Proxy-Authorization", "Proxy_Authorization", "Cookie", "cOOkie", "X-Api-Key",
		"x_api_key", "X_API-KEY", "X-Auth-Token", "PRIVATE-TOKEN", "private_token",
		"X-Amz-Security-Token", "X-Goog-Api-Key", "Ocp-Apim-Subscription-Key", "Api-Key",
		"X-Vault-Token", "DPoP"};
	static const char *const no[] = {"", "Accept", "Authorizatio", "Authorization2",
		"X Api Key", "Content-Type", "User-Agent", "X-Api.Key", "Set-Cookie", "XApiKey2",
		"Authorization\xc2\xa0", "\xc3\xa1uthorization", "If-None-Match"};
	static const char *const parameters[] = {"key", "KEY", "api_key", "api-key", "apikey",
		"API_Key", "access_token", "token", "sig", "signature", "X-Amz-Signature",
		"x_amz_signature", "client_secret", "password", "auth"};
	static const char *const others[] = {
		"", "keys", "q", "lang", "number", "page_token", "tokens", "keyword", "author"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(yes); i++)
		if (!egress_field_is_credential(view_str(yes[i])))
			fail_msg("%s", yes[i]);
	for (size_t i = 0; i < ARRAY_LEN(no); i++)
		if (egress_field_is_credential(view_str(no[i])))
			fail_msg("%s", no[i]);
	for (size_t i = 0; i < ARRAY_LEN(parameters); i++)
		if (!egress_parameter_is_credential(view_str(parameters[i])))
			fail_msg("%s", parameters[i]);
	for (size_t i = 0; i < ARRAY_LEN(others); i++)
		if (egress_parameter_is_credential(view_str(others[i])))
			fail_msg("%s", others[i]);
}

static const char *const credential_words[] = {
#define CREDENTIAL_FIELD(name)     name,
#define CREDENTIAL_PARAMETER(name) name,
#include "lib/egress/credential.def"
#undef CREDENTIAL_FIELD
#undef CREDENTIAL_PARAMETER
};

/* A row with a capital letter or '_' would match nothing. */
static void
the_table_of_credentials_is_in_its_own_spelling(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(credential_words); i++) {
		struct view v = view_str(credential_words[i]);

		assert_true(egress_field_is_credential(v) || egress_parameter_is_credential(v));
	}
}

/* ---- order ---- */

static void
the_rule_that_came_furthest_says_why(void **state)
{
	const struct policy *p = policy_of(FETCH("a.test", "80", "/one",
		"") ","
		    "{\"host\":\"a.test\",\"kind\":\"fetch\",\"methods\":[\"HEAD\"],\"path\":\"/"
		    "two\","
		    "\"port\":80,\"response_max\":1}"
		    "," FETCH("a.test", "80", "/two", "") "," FETCH("a.test", "80", "/two",
			    "") ",{\"host\":\"a.test\",\"kind\":\"fetch\",\"methods\":[\"GET\"],"
				"\"path\":\"/*\","
				"\"port\":80,\"query\":[\"q\"],\"response_max\":1}");

	(void)state;
	decided(p, "a.test", 80, "PUT", "/one", EGRESS_REASON_METHOD, 0);
	decided(p, "a.test", 80, "HEAD", "/three", EGRESS_REASON_PATH, 1);
	decided(p, "a.test", 80, "GET", "/two?x=1", EGRESS_REASON_QUERY, 2);
	decided(p, "a.test", 80, "GET", "/two?q=1", EGRESS_REASON_NONE, 4);
	decided(p, "a.test", 80, "GET", "/two", EGRESS_REASON_NONE, 2);
	decided(p, "a.test", 80, "GET", "/one", EGRESS_REASON_NONE, 0);
	decided(p, "a.test", 80, "GET", "/x/y", EGRESS_REASON_PATH, 0);
}

struct heard {
	char text[512];
	size_t n;
};

static void
hear(void *owner, size_t rule, enum egress_step step, bool it_holds)
{
	struct heard *h = owner;

	h->n += (size_t)snprintf(h->text + h->n, sizeof(h->text) - h->n, "%zu%c%u ", rule,
		it_holds ? '+' : '-', (unsigned)step);
	assert_true(h->n < sizeof(h->text));
	assert_true(strlen(egress_step_text(step)) > 5);
}

static void
each_step_is_told_in_its_order(void **state)
{
	const struct policy *p = policy_of(FETCH("b.test", "80", "/", "") "," FETCH("a.test", "81",
		"/", "") "," FETCH("a.test", "443", "/", ",\"tls\":true") "," FETCH("a.test", "80",
		"/one", "") "," FETCH("a.test", "80", "/two", ""));
	const struct egress_place at = {
		.scheme = EGRESS_SCHEME_HTTP, .name = view_str("a.test"), .port = 80};
	struct heard h = {.n = 0};
	const struct rules_trace trace = {.step = hear, .owner = &h};
	struct http_params params;
	struct egress_request r = request_of("GET", "/two", &params);
	struct egress_decision d;
	rule_set set = 0;

	(void)state;
	assert_int_equal(rules_place(p, &at, &set, &trace), 0);
	assert_int_equal(set, 24);
	assert_string_equal(h.text, "0-0 1+0 1-1 2+0 2-1 3+0 3+1 3+2 4+0 4+1 4+2 ");
	h.n = 0;
	const struct egress_place other = {
		.scheme = EGRESS_SCHEME_HTTP, .name = view_str("a.test"), .port = 443};

	assert_int_equal(rules_place(p, &other, &set, &trace), EGRESS_REASON_SCHEME);
	assert_string_equal(h.text, "0-0 1+0 1-1 2+0 2+1 2-2 3+0 3-1 4+0 4-1 ");
	h.n = 0;
	rules_request(p, set, &r, &trace, &d);
	assert_int_equal(d.rule, 4);
	assert_string_equal(h.text, "3+3 3+4 3-5 4+3 4+4 4+5 4+6 4+7 4+8 4+9 ");
}

/* ---- digest, query, reasons ---- */

static void
digest_of(enum egress_scheme scheme, const char *host, uint16_t port, const char *method,
	const char *target, uint8_t ret[static SHA256_BYTES])
{
	const struct egress_place at = {.scheme = scheme, .name = view_str(host), .port = port};
	struct http_params params;
	struct egress_request r = request_of(method, target, &params);

	egress_request_digest(&at, &r, ret);
}

static void
the_digest_is_the_one_of_the_prose(void **state)
{
	static const char text[] = "demilune-request-v1\0"
				   "\0\0\0\5https\0\0\0\6a.test\0\0\0\003443\0\0\0\3GET\0\0\0\4/a/b"
				   "\0\0\0\1a\0\0\0\2 1\0\0\0\2aa\0\0\0\0\0\0\0\1b\0\0\0\0012";
	uint8_t want[SHA256_BYTES], is[SHA256_BYTES];

	(void)state;
	sha256_of(view_of(text, sizeof(text) - 1), want);
	digest_of(EGRESS_SCHEME_HTTPS, "a.test", 443, "GET", "/a/b?b=2&a=+1&aa", is);
	assert_memory_equal(is, want, sizeof(want));
}

static void
the_digest_says_each_part_apart(void **state)
{
	uint8_t d[10][SHA256_BYTES];

	(void)state;
	digest_of(EGRESS_SCHEME_HTTPS, "a.test", 443, "GET", "/a?b=c", d[0]);
	digest_of(EGRESS_SCHEME_HTTP, "a.test", 443, "GET", "/a?b=c", d[1]);
	digest_of(EGRESS_SCHEME_HTTPS, "b.test", 443, "GET", "/a?b=c", d[2]);
	digest_of(EGRESS_SCHEME_HTTPS, "a.test", 444, "GET", "/a?b=c", d[3]);
	digest_of(EGRESS_SCHEME_HTTPS, "a.test", 443, "HEAD", "/a?b=c", d[4]);
	digest_of(EGRESS_SCHEME_HTTPS, "a.test", 443, "GET", "/b?b=c", d[5]);
	digest_of(EGRESS_SCHEME_HTTPS, "a.test", 443, "GET", "/a?c=c", d[6]);
	digest_of(EGRESS_SCHEME_HTTPS, "a.test", 443, "GET", "/a?b=d", d[7]);
	digest_of(EGRESS_SCHEME_HTTPS, "a.test", 443, "GET", "/a?bc=", d[8]);
	digest_of(EGRESS_SCHEME_HTTPS, "a.test", 443, "GET", "/a", d[9]);
	for (size_t i = 0; i < ARRAY_LEN(d); i++)
		for (size_t k = 0; k < i; k++)
			assert_memory_not_equal(d[i], d[k], SHA256_BYTES);
}

static void
the_query_of_a_brokered_request_goes_and_comes(void **state)
{
	static const char *const bad[] = {
		"a", "a\0", "a\0b", "\0b\0", "b\0\0a\0\0", "a\0\0a\0\0", "a\0\xff\0"};
	static const size_t bad_n[] = {1, 2, 3, 3, 6, 6, 4};
	auto_buf struct buf b = {.max = 4096};
	struct http_params params, again;
	struct err err = {0};

	(void)state;
	(void)request_of("GET", "/?z=%20&number=12&a", &params);
	egress_query_write(&b, &params);
	assert_int_equal(b.n, 17);
	assert_memory_equal(b.p, "a\0\0number\00012\0z\0 \0", 17);
	assert_int_equal(egress_query_read(buf_view(&b), &again, &err), 0);
	assert_int_equal(again.n, 3);
	assert_true(view_is(again.param[1].name, "number") && view_is(again.param[1].value, "12"));
	assert_int_equal(egress_query_read(view_of("", 0), &again, &err), 0);
	assert_int_equal(again.n, 0);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(
			egress_query_read(view_of(bad[i], bad_n[i]), &again, &err), -EINVAL);
	buf_clear(&b);
	for (unsigned i = 0; i < HTTP_PARAMS_MAX + 1; i++)
		buf_addf(&b, "p%02u%c%c", i, 0, 0);
	assert_int_equal(egress_query_read(buf_view(&b), &again, &err), -EINVAL);
	b.n -= 5;
	assert_int_equal(egress_query_read(buf_view(&b), &again, &err), 0);
}

static void
each_reason_has_a_status_and_a_sentence(void **state)
{
	(void)state;
	for (unsigned i = 0; i < EGRESS_REASON_MAX; i++) {
		unsigned status = egress_reason_status((enum egress_reason)i);

		assert_true(status == 0 || (status >= 400 && status < 600));
		assert_true(strlen(egress_reason_says((enum egress_reason)i)) > 10);
	}
	assert_int_equal(egress_reason_status(EGRESS_REASON_NAME_MISMATCH), 421);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_policy_knows_and_allows_nothing),
		cmocka_unit_test(a_place_is_name_then_port_then_scheme),
		cmocka_unit_test(rules_of_tcp_and_passthrough_never_take_a_request),
		cmocka_unit_test(candidates_are_the_only_rules_that_are_asked),
		cmocka_unit_test(dns_knows_what_a_rule_can_lead_to),
		cmocka_unit_test(A11_a_query_in_place_of_a_path_is_another_host),
		cmocka_unit_test(A18_an_a_label_is_matched_as_bytes),
		cmocka_unit_test(A21_what_is_not_canonical_matches_nothing),
		cmocka_unit_test(A29_globs_are_whole_labels),
		cmocka_unit_test(B1_an_address_without_a_rule_says_so),
		cmocka_unit_test(B24_an_exact_rule_takes_one_address_in_one_form),
		cmocka_unit_test(D2_the_other_scheme_is_another_place),
		cmocka_unit_test(D9_a_path_outside_of_the_rule_is_refused),
		cmocka_unit_test(E21_a_body_is_for_methods_that_carry_one),
		cmocka_unit_test(E29_another_method_is_refused),
		cmocka_unit_test(F1_to_F7_a_path_that_two_may_read_in_two_ways_is_refused),
		cmocka_unit_test(F8_a_prefix_ends_at_a_segment),
		cmocka_unit_test(patterns_fit_whole_segments),
		cmocka_unit_test(F11_a_query_is_there_only_when_each_parameter_is_listed),
		cmocka_unit_test(a_query_that_nobody_read_is_refused),
		cmocka_unit_test(H1_an_upgrade_needs_a_rule_with_websocket),
		cmocka_unit_test(K4_a_credential_of_the_program_is_refused_by_every_rule),
		cmocka_unit_test(K4_a_credential_in_the_query_is_refused_though_a_rule_lists_it),
		cmocka_unit_test(K9_names_of_credentials_are_known_in_every_spelling),
		cmocka_unit_test(the_table_of_credentials_is_in_its_own_spelling),
		cmocka_unit_test(K11_the_body_ends_at_the_rules_limit),
		cmocka_unit_test(the_rule_that_came_furthest_says_why),
		cmocka_unit_test(each_step_is_told_in_its_order),
		cmocka_unit_test(the_digest_is_the_one_of_the_prose),
		cmocka_unit_test(the_digest_says_each_part_apart),
		cmocka_unit_test(the_query_of_a_brokered_request_goes_and_comes),
		cmocka_unit_test(each_reason_has_a_status_and_a_sentence),
	};

	return cmocka_run_group_tests_name("egress rules", tests, NULL, NULL);
}
