/* SPDX-License-Identifier: Apache-2.0 */
/* The document of a policy: what its form says is read, and nothing else is; sealed files; names, ports and kinds that meet. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/base/fd.h"
#include "lib/egress/weak.h"
#include "text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>

enum { ALL_SEALS = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL };

static struct policy scratch;

/* ---- what is read ---- */

static const char whole[] =
	"{\"budgets\":" BUDGETS ",\"capture\":true,\"ipv6\":true,\"name\":\"support\",\"rules\":["
	"{\"address\":\"10.0.3.8\",\"host\":\"docs.example\",\"kind\":\"fetch\",\"methods\":"
	"[\"GET\",\"HEAD\",\"POST\"],\"path\":\"/help/"
	"**\",\"port\":8443,\"query\":[\"lang\",\"page\"],"
	"\"request_max\":1024,\"response_max\":8388608,\"roots\":\"own\",\"tls\":true,"
	"\"websocket\":true}"
	",{\"credential\":{\"header\":\"X-Api-Key\",\"secret\":\"carrier\"},\"fields\":[\"data.0."
	"eta\","
	"\"status\"],\"host\":\"carrier.example\",\"kind\":\"brokered\",\"labels\":\"many\","
	"\"methods\":[\"GET\"],\"path\":\"/v1/track/*\",\"port\":443,\"query\":[\"number\"],"
	"\"response_max\":4096,\"uses\":7}"
	"," TCP("mirror.internal", "873") "," PASSTHROUGH(
		"2001:db8::1", "443") "],\"tenants\":[\"acme\",\"zeta\"],\"v\":1}";

static void
every_key_of_the_form_is_read(void **state)
{
	const struct rule *r = scratch.rule;
	struct err err = {0};

	(void)state;
	if (policy_read(view_str(whole), &scratch, &err) < 0)
		fail_msg("%s", err.text);
	assert_true(view_is(scratch.name, "support"));
	assert_true(scratch.capture && scratch.ipv6);
	assert_int_equal(scratch.budgets.brokered, 200);
	assert_int_equal(scratch.budgets.bytes_in, 2147483648);
	assert_int_equal(scratch.budgets.bytes_out, 67108864);
	assert_int_equal(scratch.budgets.connections, 10000);
	assert_int_equal(scratch.budgets.handshakes, 5000);
	assert_int_equal(scratch.budgets.names, 100);
	assert_int_equal(scratch.budgets.requests, 20000);
	assert_int_equal(scratch.ntenants, 2);
	assert_true(view_is(scratch.tenant[1], "zeta"));
	assert_int_equal(scratch.nrules, 4);
	assert_int_equal(scratch.nports, 4); /* 80 because of capture */
	assert_int_equal(scratch.ports[0], 80);
	assert_int_equal(scratch.ports[1], 443);
	assert_int_equal(scratch.ports[2], 873);
	assert_int_equal(scratch.ports[3], 8443);
	assert_int_equal(scratch.ports[4], 0);

	assert_int_equal(r->kind, RULE_KIND_FETCH);
	assert_true(r->exact && !r->literal && r->tls && r->websocket);
	assert_int_equal(r->address.b[3], 8);
	assert_int_equal(r->methods, 1U << HTTP_GET | 1U << HTTP_HEAD | 1U << HTTP_POST);
	assert_true(view_is(r->path, "/help/**") && view_is(r->roots, "own"));
	assert_int_equal(r->nquery, 2);
	assert_int_equal(r->request_max, 1024);
	assert_int_equal(r->response_max, 8388608);
	r++;
	assert_int_equal(r->kind, RULE_KIND_BROKERED);
	assert_int_equal(r->labels, LABELS_MANY);
	assert_true(r->tls && !r->exact && !r->websocket);
	assert_true(view_is(r->credential_header, "X-Api-Key"));
	assert_int_equal(r->credential_prefix.n, 0);
	assert_true(view_is(r->credential_secret, "carrier"));
	assert_int_equal(r->nfields, 2);
	assert_true(view_is(r->field[0], "data.0.eta"));
	assert_int_equal(r->uses, 7);
	r++;
	assert_int_equal(r->kind, RULE_KIND_TCP);
	assert_true(!r->tls && !r->literal);
	r++;
	assert_int_equal(r->kind, RULE_KIND_PASSTHROUGH);
	assert_true(r->literal && !r->exact && r->address.family == AF_INET6);
}

static void
the_digest_is_over_the_tag_and_the_document(void **state)
{
	static const char tag[] = "demilune-egress-v1";
	const struct policy *p = policy_of(TCP("a.test", "1"));
	uint8_t want[SHA256_BYTES], before[SHA256_BYTES];
	struct sha256 h;

	(void)state;
	sha256_init(&h);
	sha256_add(&h, tag, sizeof(tag));
	sha256_add(&h, p->document.p, p->document.n);
	sha256_end(&h, want);
	assert_memory_equal(p->digest, want, sizeof(want));
	memcpy(before, p->digest, sizeof(before));
	p = policy_of(TCP("a.test", "2"));
	assert_memory_not_equal(p->digest, before, sizeof(before));
}

/* Nothing listed is nothing allowed: the class of CVE-2025-66479. */
static void
an_empty_list_names_nothing(void **state)
{
	const struct policy *p = policy_of("");

	(void)state;
	assert_int_equal(p->nrules, 0);
	assert_int_equal(p->nports, 0);
	assert_int_equal(p->ntenants, 0);
}

/* ---- what is refused ---- */

#define REFUSED_DOCUMENT(text, why) {text, why},
static const struct {
	const char *text, *why;
} bad_documents[] = {
#include "document.def"
#undef REFUSED_DOCUMENT
};

static void
documents_of_another_form_are_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad_documents); i++) {
		struct err err = {0};

		scratch.nrules = 77;
		if (policy_read(view_str(bad_documents[i].text), &scratch, &err) != -EINVAL)
			fail_msg("was read: %s", bad_documents[i].text);
		if (strstr(err.text, bad_documents[i].why) == NULL)
			fail_msg("\"%s\" does not say \"%s\": %s", err.text, bad_documents[i].why,
				bad_documents[i].text);
		assert_int_equal(err.code, -EINVAL);
		assert_int_equal(scratch.nrules, 0);
	}
}

static const struct {
	const char *rules, *why;
} bad_rules[] = {
#define REFUSED_RULES(rules, why) {rules, why},
#include "refused.def"
#undef REFUSED_RULES
};

static void
rules_of_another_form_are_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad_rules); i++) {
		struct err err = {0};

		if (policy_read(document_of(bad_rules[i].rules), &scratch, &err) != -EINVAL)
			fail_msg("was read: %s", bad_rules[i].rules);
		if (strstr(err.text, bad_rules[i].why) == NULL)
			fail_msg("\"%s\" does not say \"%s\": %s", err.text, bad_rules[i].why,
				bad_rules[i].rules);
	}
}

/* The whole document without one byte, with one more, or with one changed, is no policy, or another one. */
static void
every_byte_of_the_document_counts(void **state)
{
	char text[sizeof(whole) + 1];
	uint8_t digest[SHA256_BYTES];
	struct err err = {0};
	unsigned read = 0;

	(void)state;
	assert_int_equal(policy_read(view_str(whole), &scratch, &err), 0);
	memcpy(digest, scratch.digest, sizeof(digest));
	for (size_t i = 0; i < sizeof(whole) - 1; i++) {
		for (size_t n = 0; n < i; n += 97)
			assert_int_equal(policy_read(view_of(whole, n), &scratch, &err), -EINVAL);
		memcpy(text, whole, i);
		memcpy(text + i, whole + i + 1, sizeof(whole) - i - 1);
		if (policy_read(view_of(text, sizeof(whole) - 2), &scratch, &err) == 0) {
			assert_memory_not_equal(scratch.digest, digest, sizeof(digest));
			read++;
		}
		memcpy(text, whole, sizeof(whole));
		text[i] ^= 1;
		if (policy_read(view_of(text, sizeof(whole) - 1), &scratch, &err) == 0)
			assert_memory_not_equal(scratch.digest, digest, sizeof(digest));
	}
	assert_true(read > 0); /* names and numbers may be shorter */
}

/* ---- bounds ---- */

static void
too_many_is_refused(void **state)
{
	auto_buf struct buf b = {.max = POLICY_BYTES_MAX * 2};
	struct err err = {0};

	(void)state;
	for (unsigned i = 0; i < POLICY_RULES_MAX + 1; i++) {
		buf_addf(&b, "%s" TCP("h%u.test", "9"), i == 0 ? "" : ",", i);
		buf_add_byte(&b, 0);
		b.n--;
		if (policy_read(document_of((char *)b.p), &scratch, &err) == 0)
			assert_true(i < POLICY_RULES_MAX);
		else
			assert_true(i == POLICY_RULES_MAX && strstr(err.text, "64 rules") != NULL);
	}
	buf_clear(&b);
	for (unsigned i = 0; i < POLICY_PORTS_MAX + 1; i++) {
		buf_addf(&b, "%s" TCP("h.test", "%u"), i == 0 ? "" : ",", 9000 - i);
		buf_add_byte(&b, 0);
		b.n--;
		if (policy_read(document_of((char *)b.p), &scratch, &err) == 0)
			assert_true(i < POLICY_PORTS_MAX && scratch.ports[0] == 9000 - i);
		else
			assert_true(i == POLICY_PORTS_MAX && strstr(err.text, "16 different"));
	}
	buf_clear(&b);
	for (unsigned i = 0; i < POLICY_ROOTS_MAX + 1; i++) {
		buf_addf(&b, "%s" FETCH("h.test", "443", "/", ",\"roots\":\"r%u\",\"tls\":true"),
			i == 0 ? "" : ",", i);
		buf_add_byte(&b, 0);
		b.n--;
		if (policy_read(document_of((char *)b.p), &scratch, &err) == 0)
			assert_true(i < POLICY_ROOTS_MAX);
		else
			assert_true(i == POLICY_ROOTS_MAX && strstr(err.text, "8 different roots"));
	}
	assert_int_equal(buf_check(&b), 0);
}

static void
a_long_document_is_refused(void **state)
{
	static char text[POLICY_BYTES_MAX + 2];
	struct err err = {0};

	(void)state;
	memset(text, ' ', sizeof(text) - 1);
	assert_int_equal(policy_read(view_str(text), &scratch, &err), -EINVAL);
	assert_non_null(strstr(err.text, "65536 bytes"));
}

/* ---- memory files ---- */

static int
memory_file(struct view bytes, int seals)
{
	int fd = memfd_create("policy", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct err err = {0};

	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, bytes.p, bytes.n, &err), 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

static void
a_policy_comes_in_a_sealed_file_only(void **state)
{
	static const int seals[] = {F_SEAL_WRITE, F_SEAL_SHRINK, F_SEAL_GROW, F_SEAL_SEAL};
	auto_free uint8_t *bytes = NULL;
	struct err err = {0};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(seals); i++) {
		auto_fd int fd = memory_file(view_str(whole), ALL_SEALS & ~seals[i]);

		assert_int_equal(policy_load(fd, &bytes, &scratch, &err), -EINVAL);
		assert_non_null(strstr(err.text, "not a sealed memory file"));
		assert_null(bytes);
	}
	auto_fd int fd = memory_file(view_str(whole), ALL_SEALS);

	assert_int_equal(policy_load(fd, &bytes, &scratch, &err), 0);
	assert_true(view_eq(scratch.document, view_str(whole)));
	assert_ptr_equal(scratch.document.p, bytes);
}

static void
refused_list(const struct buf *b, const char *why)
{
	auto_fd int fd = memory_file(buf_view(b), ALL_SEALS);
	struct policies all = {.n = 77};
	struct err err = {0};

	assert_int_equal(policies_load(fd, &all, &err), -EINVAL);
	if (strstr(err.text, why) == NULL)
		fail_msg("\"%s\" does not say \"%s\"", err.text, why);
	assert_int_equal(all.n, 77);
}

static struct view
named(char *room, size_t size, const char *name)
{
	int n = snprintf(
		room, size, "{\"budgets\":" BUDGETS ",\"name\":\"%s\",\"rules\":[],\"v\":1}", name);

	assert_true(n > 0 && (size_t)n < size);
	return view_of(room, (size_t)n);
}

static void
the_list_is_whole_and_in_order(void **state)
{
	auto_buf struct buf b = {.max = 4 << 20};
	struct policies all = {.n = 0};
	char one[512], two[512];
	struct err err = {0};
	size_t n;

	(void)state;
	policies_put(&b, named(two, sizeof(two), "b"));
	policies_put(&b, named(one, sizeof(one), "a"));
	refused_list(&b, "twice or out of order");
	buf_clear(&b);
	policies_put(&b, view_str(one));
	policies_put(&b, view_str(one));
	refused_list(&b, "twice or out of order");
	buf_clear(&b);
	policies_put(&b, view_str(one));
	policies_put(&b, view_str(two));
	auto_fd int fd = memory_file(buf_view(&b), ALL_SEALS);

	assert_int_equal(policies_load(fd, &all, &err), 0);
	assert_int_equal(all.n, 2);
	assert_ptr_equal(policies_find(&all, view_str("b")), &all.row[1]);
	assert_null(policies_find(&all, view_str("c")));
	policies_done(&all);
	n = b.n;
	for (b.n = 1; b.n < n; b.n++)
		if (b.n != n / 2)
			refused_list(&b, "cut off");
	buf_clear(&b);
	auto_fd int none = memory_file(view_of("", 0), ALL_SEALS);

	assert_int_equal(policies_load(none, &all, &err), 0);
	assert_int_equal(all.n, 0);
	policies_done(&all);
	for (unsigned i = 0; i < POLICIES_MAX + 1; i++) {
		char name[8];

		(void)snprintf(name, sizeof(name), "p%03u", i);
		policies_put(&b, named(one, sizeof(one), name));
	}
	refused_list(&b, "more than 64 policies");
}

/* ---- names ---- */

static const struct {
	const char *host, *labels, *name;
	bool is;
} hosts[] = {
	{"plain.test", "", "plain.test", true},
	{"plain.test", "", "plain.test.", false},
	{"plain.test", "", "PLAIN.test", false},
	{"plain.test", "", "xplain.test", false},
	{"plain.test", "", "a.plain.test", false},
	{"plain.test", "one", "a.plain.test", true},
	{"plain.test", "one", "plain.test", false},
	{"plain.test", "one", "xplain.test", false},
	{"plain.test", "one", ".plain.test", false},
	{"plain.test", "one", "a.b.plain.test", false},
	{"plain.test", "one", "-.plain.test", false},
	{"plain.test", "one", "*.plain.test", false},
	{"plain.test", "one", "a_b.plain.test", false},
	{"plain.test", "many", "a.plain.test", true},
	{"plain.test", "many", "a.b.plain.test", true},
	{"plain.test", "many", "plain.test", false},
	{"plain.test", "many", "a..plain.test", false},
	{"plain.test", "many", "axplain.test", false},
	{"plain.test", "many", "a.plain.test.evil.test", false},
	{"plain.test", "one", "xn--a.plain.test", false},
	{"plain.test", "many", "a.xn--bcher-kva.plain.test", false},
	{"plain.test", "many", "axn--a.plain.test", true},
	{"xn--bcher-kva.test", "one", "a.xn--bcher-kva.test", true},
	{"1.1.1.1", "", "1.1.1.1", true},
	{"1.1.1.1", "", "1.1.1.1.", false},
	{"1.1.1.1", "", "1.1.257", false},
	{"1.1.1.1", "", "11.1.1.1", false},
};

static void
A29_labels_mean_what_the_man_page_says(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(hosts); i++) {
		struct rule r = {.host = view_str(hosts[i].host), .port = 443};

		r.labels = hosts[i].labels[0] == '\0'  ? LABELS_NONE
			   : hosts[i].labels[0] == 'o' ? LABELS_ONE
						       : LABELS_MANY;
		if (rule_names(&r, view_str(hosts[i].name), 443) != hosts[i].is)
			fail_msg("%s %s: %s", hosts[i].labels, hosts[i].host, hosts[i].name);
		assert_false(rule_names(&r, view_str(hosts[i].name), 442));
		assert_int_equal(rule_hosts(&r, view_str(hosts[i].name)), hosts[i].is);
	}
}

static void
a_name_of_254_bytes_is_no_wildcards(void **state)
{
	struct rule r = {.host = view_str("plain.test"), .labels = LABELS_MANY, .port = 1};
	char name[260];

	(void)state;
	for (size_t n = 250; n < 258; n++) {
		memset(name, 'a', sizeof(name));
		for (size_t i = 50; i + 11 < n; i += 50)
			name[i] = '.';
		memcpy(name + n - 11, ".plain.test", 11);
		assert_int_equal(rule_hosts(&r, view_of(name, n)), n <= 253);
	}
}

/* Whether patterns share a name, decided the slow way: over all names of a small alphabet. */
static void
patterns_overlap_when_they_share_a_name(void **state)
{
	static const char *const bases[] = {"a", "b", "a.a", "b.a", "a.b", "a.a.a", "b.a.a"};
	static const char *const names[] = {"a", "b", "a.a", "b.a", "a.b", "a.a.a", "b.a.a",
		"a.b.a", "a.a.b", "x.a", "x.b", "x.a.a", "x.b.a", "x.a.b", "x.a.a.a", "x.b.a.a",
		"x.x.a", "x.x.b", "x.x.a.a", "x.x.b.a", "x.x.a.b", "x.x.a.a.a", "x.x.b.a.a"};
	const size_t n = ARRAY_LEN(bases) * 3;
	unsigned yes = 0;

	(void)state;
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < n; k++) {
			struct rule a = {.host = view_str(bases[i / 3]),
				.labels = (enum rule_labels)(i % 3),
				.port = 1};
			struct rule b = {.host = view_str(bases[k / 3]),
				.labels = (enum rule_labels)(k % 3),
				.port = 1};
			bool shared = false;

			for (size_t j = 0; j < ARRAY_LEN(names); j++)
				shared = shared || (rule_hosts(&a, view_str(names[j])) &&
							   rule_hosts(&b, view_str(names[j])));
			if (rule_overlaps(&a, &b) != shared)
				fail_msg("%s/%u and %s/%u", bases[i / 3], a.labels, bases[k / 3],
					b.labels);
			yes += shared ? 1 : 0;
			b.port = 2;
			assert_false(rule_overlaps(&a, &b));
		}
	assert_true(yes > n);
}

static void
weak_rules_are_known(void **state)
{
	const struct policy *p = policy_of(TCP("a.test", "1") "," PASSTHROUGH(
		"a.test", "443") ","
				 "{\"host\":\"a.test\",\"kind\":\"fetch\",\"labels\":\"one\","
				 "\"methods\":[\"GET\"],"
				 "\"path\":\"/\",\"port\":80,\"response_max\":1,\"websocket\":true}"
				 "," FETCH("dns.google", "443", "/", ",\"tls\":true") "," BROKERED(
					 "b.test", "443", "/") "," FETCH("c.test", "443", "/",
					 ",\"tls\":true") ",{\"host\":\"google\",\"kind\":\"tcp\","
							  "\"labels\":\"many\",\"port\":9}");
	static const unsigned want[] = {1U << RULE_WEAK_TCP, 1U << RULE_WEAK_PASSTHROUGH,
		1U << RULE_WEAK_LABELS | 1U << RULE_WEAK_PLAIN | 1U << RULE_WEAK_WEBSOCKET,
		1U << RULE_WEAK_RESOLVER, 0, 0,
		1U << RULE_WEAK_TCP | 1U << RULE_WEAK_LABELS | 1U << RULE_WEAK_RESOLVER};

	(void)state;
	assert_int_equal(p->nrules, ARRAY_LEN(want));
	for (size_t i = 0; i < ARRAY_LEN(want); i++)
		assert_int_equal(rule_weak(&p->rule[i]), want[i]);
	for (unsigned w = 0; w < RULE_WEAKS; w++)
		assert_true(strlen(rule_weak_text((enum rule_weak)w)) > 20);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_key_of_the_form_is_read),
		cmocka_unit_test(the_digest_is_over_the_tag_and_the_document),
		cmocka_unit_test(an_empty_list_names_nothing),
		cmocka_unit_test(documents_of_another_form_are_refused),
		cmocka_unit_test(rules_of_another_form_are_refused),
		cmocka_unit_test(every_byte_of_the_document_counts),
		cmocka_unit_test(too_many_is_refused),
		cmocka_unit_test(a_long_document_is_refused),
		cmocka_unit_test(a_policy_comes_in_a_sealed_file_only),
		cmocka_unit_test(the_list_is_whole_and_in_order),
		cmocka_unit_test(A29_labels_mean_what_the_man_page_says),
		cmocka_unit_test(a_name_of_254_bytes_is_no_wildcards),
		cmocka_unit_test(patterns_overlap_when_they_share_a_name),
		cmocka_unit_test(weak_rules_are_known),
	};

	return cmocka_run_group_tests_name("egress policy", tests, NULL, NULL);
}
