/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Absolute URLs (rows A and B): what is taken as a host that a rule names is a subset of what the WHATWG parser takes, and the same host. The
 * table's second column was made by that parser; where two read different hosts from one text, ours reads none.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/egress/rules.h"
#include "lib/http/target.h"
#include "text.h"

#include <arpa/inet.h>
#include <stdio.h>

static const struct {
	const char *text;
	size_t n; /* there is one with a NUL */
	const char *host;
} urls[] = {
#define URL(text, host) {text, sizeof(text) - 1, host},
#include "urls.def"
#undef URL
};

/* Everything below test, and what the table has beside it. */
#define ANY                                                                    \
	"{\"host\":\"test\",\"kind\":\"tcp\",\"labels\":\"many\",\"port\":80}" \
	"," TCP("xn--bcher-kva.test", "80") "," TCP("0x7g", "80") "," TCP(     \
		"1.2.3.4", "80") "," TCP("2001:db8::1", "80") "," TCP("::1",   \
		"80") "," TCP("::ffff:127.0.0.1", "80") "," TCP("f",           \
		"80") ",{\"host\":\"f\",\"kind\":\"tcp\",\"labels\":\"many\",\"port\":80}"

static bool
taken(const struct policy *p, struct view text, struct http_target *ret)
{
	if (http_target_parse(text, HTTP_GET, HTTP_AUTHORITY_IP, ret) != HTTP_FINE ||
		ret->form != HTTP_FORM_ABSOLUTE)
		return false;
	for (size_t i = 0; i < p->nrules; i++)
		if (rule_hosts(&p->rule[i], view_str(ret->authority.host)))
			return true;
	return false;
}

/* Two texts of one address are one host; so is a name with its dot at the end, which ours has lost. */
static bool
same_host(const char *ours, const char *theirs)
{
	struct in6_addr a, b;
	size_t n = strlen(ours);

	if (inet_pton(AF_INET6, ours, &a) == 1)
		return inet_pton(AF_INET6, theirs, &b) == 1 && memcmp(&a, &b, sizeof(a)) == 0;
	return strncmp(ours, theirs, n) == 0 &&
	       (theirs[n] == '\0' || (theirs[n] == '.' && theirs[n + 1] == '\0'));
}

static void
A1_to_B16_what_is_taken_is_the_same_host_to_others(void **state)
{
	const struct policy *p = policy_of(ANY);
	unsigned yes = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(urls); i++) {
		struct http_target t = {.form = HTTP_FORM_ORIGIN};

		if (!taken(p, view_of(urls[i].text, urls[i].n), &t))
			continue;
		yes++;
		if (urls[i].host == NULL || !same_host(t.authority.host, urls[i].host))
			fail_msg("%s: %s, and to others %s", urls[i].text, t.authority.host,
				urls[i].host == NULL ? "nothing" : urls[i].host);
	}
	/* What every client writes is taken: refusing all would be a subset too. */
	assert_in_range(yes, 18, 25);
}

static void
what_clients_write_is_taken(void **state)
{
	static const char *const fine[] = {"http://plain.test/", "http://plain.test",
		"http://plain.test:8080/a?b", "HTTP://PLAIN.Test/", "http://plain.test./",
		"http://xn--bcher-kva.test/", "http://XN--BCHER-KVA.test/", "http://1.2.3.4/",
		"http://[2001:db8::1]/"};
	const struct policy *p = policy_of(ANY);

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(fine); i++) {
		struct http_target t = {.form = HTTP_FORM_ORIGIN};

		if (!taken(p, view_str(fine[i]), &t))
			fail_msg("%s", fine[i]);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(A1_to_B16_what_is_taken_is_the_same_host_to_others),
		cmocka_unit_test(what_clients_write_is_taken),
	};

	return cmocka_run_group_tests_name("egress url", tests, NULL, NULL);
}
