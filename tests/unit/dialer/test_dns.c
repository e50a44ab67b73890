/* SPDX-License-Identifier: Apache-2.0 */
/* DNS messages: the question, and what is no answer to it. Answers are built byte by byte, cut at each place and changed in each bit. */
#include "dialer/dns.h"

#include "lib/base/buf.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static const uint8_t noise[34] = {0x12, 0x34, 0x55, 0xaa, 0x0f};
static struct dns_question question;

/* ---- answers ---- */

static struct buf m;

static void
put(unsigned v, size_t n)
{
	uint8_t b[4] = {(uint8_t)(v >> 24), (uint8_t)(v >> 16), (uint8_t)(v >> 8), (uint8_t)v};

	buf_add(&m, b + 4 - n, n);
}

static void
put_zeros(size_t n)
{
	static const uint8_t zeros[32];

	buf_add(&m, zeros, n);
}

/* "a.b", or "@12" for a pointer, or "a@12". */
static void
put_name(const char *name)
{
	while (*name != '\0' && *name != '@') {
		size_t n = strcspn(name, ".@");

		put((unsigned)n, 1);
		buf_add(&m, name, n);
		name += n + (name[n] == '.');
	}
	if (*name == '@') {
		unsigned at = 0;

		for (name++; *name != '\0'; name++)
			at = at * 10 + (unsigned)(*name - '0');
		put(0xc000 | at, 2);
	} else {
		put(0, 1);
	}
}

static void
begin(unsigned flags, unsigned answers)
{
	buf_clear(&m);
	put(question.id, 2);
	put(flags, 2);
	put(1, 2);
	put(answers, 2);
	put(0, 4);
	buf_add(&m, question.wire, question.n);
	put(question.type, 2);
	put(1, 2);
}

static void
put_record(const char *owner, unsigned type, const void *data, size_t n)
{
	put_name(owner);
	put(type, 2);
	put(1, 2);
	put(60, 4);
	put((unsigned)n, 2);
	buf_add(&m, data, n);
}

static void
put_alias(const char *owner, const char *target)
{
	size_t at;

	put_name(owner);
	put(DNS_CNAME, 2);
	put(1, 2);
	put(60, 4);
	at = m.n;
	put(0, 2);
	put_name(target);
	m.p[at + 1] = (uint8_t)(m.n - at - 2);
}

static int
answer(struct dns_answer *ret, struct err *err)
{
	uint8_t *exact;
	int r;

	/* Of its exact size, so that a byte behind it is seen by a sanitizer. */
	assert_int_equal(buf_check(&m), 0);
	exact = malloc(m.n == 0 ? 1 : m.n);
	assert_non_null(exact);
	memcpy(exact, m.p, m.n);
	memset(ret, 0xee, sizeof(*ret));
	*err = (struct err){0};
	r = dns_answer_read(view_of(exact, m.n), &question, ret, err);
	free(exact);
	return r;
}

static void
is(int code)
{
	struct dns_answer a;
	struct err err;
	int r = answer(&a, &err);

	if (r != code)
		fail_msg("%d, not %d: %s", r, code, err.text);
}

static int
setup(void **state)
{
	struct err err;

	(void)state;
	buf_init(&m, 1 << 17);
	return dns_question_make(view_str("pay.example"), DNS_A, noise, &question, &err);
}

static int
teardown(void **state)
{
	(void)state;
	buf_done(&m);
	return 0;
}

enum { OK = 0x8180, CUT = 0x8380 };
#define A "\x5d\xb8\xd8\x22"

/* ---- the question ---- */

static void
question_is_written(void **state)
{
	static const uint8_t want[] = "\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00"
				      "\x03PaY\x07"
				      "ExAmpLe\x00\x00\x01\x00\x01";
	uint8_t out[DNS_QUERY_MAX];

	(void)state;
	assert_int_equal(dns_query_write(&question, out), sizeof(want) - 1);
	assert_memory_equal(out, want, sizeof(want) - 1);
}

static void
cases_are_mixed(void **state)
{
	static const uint8_t none[34], all[34] = {0, 0, 0xff, 0xff, 0xff, 0xff};
	struct dns_question q;
	struct err err;

	(void)state;
	assert_int_equal(dns_question_make(view_str("ab-1.cd"), DNS_AAAA, none, &q, &err), 0);
	assert_memory_equal(q.wire, "\4ab-1\2cd", 9);
	assert_int_equal(dns_question_make(view_str("ab-1.cd"), DNS_AAAA, all, &q, &err), 0);
	assert_memory_equal(q.wire, "\4AB-1\2CD", 9);
}

static void
the_longest_name(void **state)
{
	char name[HOST_NAME_MAX_BYTES + 1];
	struct dns_question q;
	struct err err;

	(void)state;
	memset(name, 'a', sizeof(name));
	for (size_t i = 49; i < sizeof(name); i += 50)
		name[i] = '.';
	assert_int_equal(dns_question_make(view_of(name, 253), DNS_A, noise, &q, &err), 0);
	assert_int_equal(q.n, 255);
	assert_int_equal(q.wire[254], 0);
	assert_int_equal(dns_question_make(view_of(name, 254), DNS_A, noise, &q, &err), -EINVAL);
}

/* ---- the answer ---- */

static void
addresses_are_read(void **state)
{
	struct dns_answer a;
	struct err err;

	(void)state;
	begin(OK, 2);
	put_record("@12", DNS_A, A, 4);
	put_record("pay.example", DNS_A, "\1\1\1\1", 4);
	assert_int_equal(answer(&a, &err), 0);
	assert_int_equal(a.n, 2);
	assert_false(a.no_name || a.truncated);
	assert_int_equal(a.address[0].family, AF_INET);
	assert_memory_equal(a.address[0].b, A, 4);
	assert_memory_equal(a.address[1].b, "\1\1\1\1", 4);
	begin(OK, 0);
	assert_int_equal(answer(&a, &err), 0);
	assert_int_equal(a.n, 0);
	begin(OK | 3, 0);
	assert_int_equal(answer(&a, &err), 0);
	assert_true(a.no_name);
	begin(CUT, 0);
	assert_int_equal(answer(&a, &err), 0);
	assert_true(a.truncated);
}

static void
six_is_read(void **state)
{
	struct dns_answer a;
	struct err err;

	(void)state;
	assert_int_equal(
		dns_question_make(view_str("pay.example"), DNS_AAAA, noise, &question, &err), 0);
	begin(OK, 2);
	put_record("@12", DNS_A, A, 4); /* was not asked for */
	put_record("@12", DNS_AAAA, "\x26\x06\x47\0\0\0\0\0\0\0\0\0\0\0\0\1", 16);
	assert_int_equal(answer(&a, &err), 0);
	assert_int_equal(a.n, 1);
	assert_int_equal(a.address[0].family, AF_INET6);
	begin(OK, 1);
	put_record("@12", DNS_AAAA, A, 4);
	is(-EPROTO);
}

static void
somebody_elses_answer(void **state)
{
	(void)state;
	begin(OK, 0);
	m.p[1] ^= 1; /* id */
	is(-ENOMSG);
	begin(OK, 0);
	m.p[13] ^= 0x20; /* another case */
	is(-ENOMSG);
	begin(OK, 0);
	m.p[13] = 'b'; /* another name */
	is(-ENOMSG);
	begin(OK, 0);
	m.p[12 + question.n + 1] = 28; /* another type */
	is(-ENOMSG);
	begin(OK, 0);
	m.p[12 + question.n + 3] = 3; /* another class */
	is(-ENOMSG);
	begin(0x0100, 0); /* a question */
	is(-ENOMSG);
	begin(OK | 0x0800, 0); /* another operation */
	is(-ENOMSG);
	begin(OK, 0);
	m.p[5] = 2; /* two questions */
	is(-ENOMSG);
	buf_clear(&m);
	is(-ENOMSG);
}

static void
servers_that_fail(void **state)
{
	static const unsigned codes[] = {1, 2, 4, 5, 9, 15};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(codes); i++) {
		begin(OK | codes[i], 0);
		is(-EAGAIN);
	}
}

/* C4, C6 and the length of a chain. */
static void
C4_aliases_are_followed(void **state)
{
	struct dns_answer a;
	struct err err;
	char from[16], to[16];

	(void)state;
	for (unsigned n = 1; n <= 10; n++) {
		begin(OK, n + 2);
		/* In any order: the last one first. */
		put_record("other", DNS_A, "\1\1\1\1", 4);
		(void)snprintf(to, sizeof(to), "n%u", n);
		put_record(to, DNS_A, A, 4);
		for (unsigned i = n; i > 0; i--) {
			(void)snprintf(from, sizeof(from), "N%u", i - 1);
			(void)snprintf(to, sizeof(to), "n%u", i);
			put_alias(i == 1 ? "@12" : from, to);
		}
		if (n > DNS_ALIASES_MAX) {
			is(-EPROTO);
			continue;
		}
		assert_int_equal(answer(&a, &err), 0);
		assert_int_equal(a.n, 1);
		assert_memory_equal(a.address[0].b, A, 4);
	}
}

static void
C6_circles_of_aliases(void **state)
{
	(void)state;
	begin(OK, 1);
	put_alias("@12", "@12");
	is(-EPROTO);
	begin(OK, 3);
	put_alias("@12", "b");
	put_alias("b", "pay.example");
	put_record("b", DNS_A, A, 4);
	is(-EPROTO);
	begin(OK, 2); /* two targets */
	put_alias("@12", "b");
	put_alias("@12", "c");
	is(-EPROTO);
	begin(OK, 1); /* a target that ends before its data */
	put_record("@12", DNS_CNAME, "\1b\0x", 4);
	is(-EPROTO);
	begin(OK, 1); /* and one that ends behind them */
	put_record("@12", DNS_CNAME, "\1", 1);
	put(0, 2);
	is(-EPROTO);
}

/* C11: what stands there for other names, or in other sections. */
static void
C11_other_names_are_not_believed(void **state)
{
	struct dns_answer a;
	struct err err;

	(void)state;
	begin(OK, 1);
	put_record("other.example", DNS_A, A, 4);
	assert_int_equal(answer(&a, &err), 0);
	assert_int_equal(a.n, 0);
	begin(OK, 1);
	put_record("@12", DNS_A, A, 4);
	put_record("@12", DNS_A, "\1\1\1\1", 4);
	m.p[9] = 1; /* of authority */
	assert_int_equal(answer(&a, &err), 0);
	assert_int_equal(a.n, 1);
	begin(OK, 1);
	put_record("@12", DNS_A, A, 4);
	put_record("@12", DNS_A, "\1\1\1\1", 4);
	m.p[11] = 1; /* additional */
	assert_int_equal(answer(&a, &err), 0);
	assert_int_equal(a.n, 1);
	begin(OK, 1); /* of another class */
	put_record("@12", DNS_A, A, 4);
	m.p[12 + question.n + 4 + 2 + 3] = 3;
	assert_int_equal(answer(&a, &err), 0);
	assert_int_equal(a.n, 0);
}

static void
C13_too_many(void **state)
{
	struct dns_answer a;
	struct err err;

	(void)state;
	for (unsigned n = DNS_ADDRESSES_MAX; n <= DNS_ADDRESSES_MAX + 1; n++) {
		begin(OK, n);
		for (unsigned i = 0; i < n; i++)
			put_record("@12", DNS_A, A, 4);
		assert_int_equal(answer(&a, &err), n == DNS_ADDRESSES_MAX ? 0 : -EPROTO);
	}
	assert_int_equal(a.address[0].family, (int)0xeeeeeeee); /* untouched */
	begin(OK, DNS_RECORDS_MAX + 1);
	for (unsigned i = 0; i < DNS_RECORDS_MAX + 1; i++)
		put_record("x", DNS_A, A, 4);
	is(-EPROTO);
}

static void
names_that_lead_nowhere(void **state)
{
	static const char *const bad[] = {"@29", "@30", "@500", "@0", "@11"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		begin(OK, 1); /* the record begins at 29 */
		assert_int_equal(m.n, 29);
		put_record(bad[i], DNS_A, A, 4);
		is(-EPROTO);
	}
	begin(OK, 1); /* reserved kinds of labels */
	put(0x40, 1);
	put_zeros(20);
	is(-EPROTO);
	begin(OK, 1);
	put(0x80, 1);
	put_zeros(20);
	is(-EPROTO);
}

/* A name of pointers to pointers costs steps; so does one of 255 bytes that is said again and again. */
static void
long_names(void **state)
{
	char last[16];

	(void)state;
	begin(OK, 2);
	put_record("x", 16, "", 0);
	m.p[m.n - 1] = 40; /* its data: twenty pointers, each to the one before */
	put(0xc000 | 12, 2);
	for (unsigned i = 0; i < 19; i++)
		put(0xc000 | (unsigned)(m.n - 2), 2);
	(void)snprintf(last, sizeof(last), "@%u", (unsigned)(m.n - 2));
	put_record(last, DNS_A, A, 4);
	is(-EPROTO);
	begin(OK, 1); /* 4 * 64 bytes are more than a name has */
	for (int i = 0; i < 4; i++) {
		char label[64];

		put(63, 1);
		memset(label, 'a', sizeof(label));
		buf_add(&m, label, 63);
	}
	put(0, 1);
	put_zeros(10);
	is(-EPROTO);
}

static void
build_rich(void)
{
	begin(OK, 3);
	put_alias("@12", "b.pay@16");
	put_record("b.pay.example", DNS_A, A, 4);
	put_record("b.pay.example", DNS_A, "\1\1\1\1", 4);
	put_record("ns", 2, "\0", 1);
	m.p[9] = 1;
}

static void
cut_everywhere(void **state)
{
	struct dns_answer a;
	struct err err;
	size_t whole;

	(void)state;
	build_rich();
	whole = m.n;
	assert_int_equal(answer(&a, &err), 0);
	assert_int_equal(a.n, 2);
	for (size_t n = 0; n < whole; n++) {
		build_rich();
		m.n = n;
		if (answer(&a, &err) == 0)
			fail_msg("cut at %zu was taken", n);
	}
	build_rich();
	put(0, 1);
	is(-EPROTO); /* something follows */
}

/* No bit may bring an address that was not there for the name; those of the addresses themselves and of flags apart. */
static void
changed_everywhere(void **state)
{
	struct dns_answer a;
	struct err err;
	size_t whole;

	(void)state;
	build_rich();
	whole = m.n;
	for (size_t bit = 0; bit < whole * 8; bit++) {
		build_rich();
		m.p[bit / 8] ^= (uint8_t)(1U << bit % 8);
		if (answer(&a, &err) != 0 || a.truncated)
			continue;
		assert_true(a.n <= 2);
	}
}

int
main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {TEST(question_is_written), TEST(cases_are_mixed),
		TEST(the_longest_name), TEST(addresses_are_read), TEST(six_is_read),
		TEST(somebody_elses_answer), TEST(servers_that_fail), TEST(C4_aliases_are_followed),
		TEST(C6_circles_of_aliases), TEST(C11_other_names_are_not_believed),
		TEST(C13_too_many), TEST(names_that_lead_nowhere), TEST(long_names),
		TEST(cut_everywhere), TEST(changed_everywhere)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
