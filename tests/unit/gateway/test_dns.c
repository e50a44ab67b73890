/* SPDX-License-Identifier: Apache-2.0 */
/* Questions of programs: which are read, which are refused and how. Built byte by byte, cut at each place and changed in each bit. */
#include "gateway/dns.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>

#include <cmocka.h>

enum { A = 1, AAAA = 28, OPT = 41, IN = 1, RD = 0x0100 };

static struct buf m;

static void
put(unsigned v, size_t n)
{
	uint8_t b[4] = {(uint8_t)(v >> 24), (uint8_t)(v >> 16), (uint8_t)(v >> 8), (uint8_t)v};

	buf_add(&m, b + 4 - n, n);
}

static void
put_name(const char *name)
{
	while (*name != '\0') {
		size_t n = strcspn(name, ".");

		put((unsigned)n, 1);
		buf_add(&m, name, n);
		name += n + (name[n] == '.');
	}
	put(0, 1);
}

static void
header(unsigned flags, unsigned qd, unsigned an, unsigned ns, unsigned ar)
{
	buf_clear(&m);
	put(0xbeef, 2);
	put(flags, 2);
	put(qd, 2);
	put(an, 2);
	put(ns, 2);
	put(ar, 2);
}

static void
question(const char *name, unsigned type, unsigned class)
{
	put_name(name);
	put(type, 2);
	put(class, 2);
}

static void
ask(const char *name, unsigned type)
{
	header(RD, 1, 0, 0, 0);
	question(name, type, IN);
}

static void
opt(unsigned version, const void *options, size_t n)
{
	put(0, 1);
	put(OPT, 2);
	put(4096, 2);
	put(version << 16, 4);
	put((unsigned)n, 2);
	buf_add(&m, options, n);
}

/* The code, or -ENOMSG. */
static int
refused(void)
{
	struct dns_asked q;
	enum dns_code code = DNS_NOERROR;
	int r = dns_asked_read(buf_view(&m), &q, &code);

	return r == 0 ? -1 : r == -ENOMSG ? r : (int)code;
}

static struct dns_asked
taken(void)
{
	struct dns_asked q;
	enum dns_code code;

	assert_int_equal(dns_asked_read(buf_view(&m), &q, &code), 0);
	return q;
}

static void
a_question_is_read(void **state)
{
	struct dns_asked q;

	(void)state;
	ask("Docs.EXAMPLE", A);
	q = taken();
	assert_int_equal(q.id, 0xbeef);
	assert_int_equal(q.type, A);
	assert_int_equal(q.class, IN);
	assert_true(q.recursion);
	assert_false(q.edns);
	assert_true(view_is(view_of(q.name, q.name_n), "docs.example"));
	assert_int_equal(q.wire.n, m.n - 12);
	assert_memory_equal(q.wire.p, m.p + 12, q.wire.n);
	header(0, 1, 0, 0, 1);
	question("a.example", AAAA, IN);
	opt(0, "\0\012\0\010cookie78", 12);
	q = taken();
	assert_true(q.edns);
	assert_false(q.recursion);
	assert_int_equal(q.wire.n, 11 + 4);
}

static void
names_that_are_no_host_names_are_well_formed_all_the_same(void **state)
{
	static const char *const names[] = {"", "_dmarc.example", "a b.example", "-a.example",
		"a-.example", "1.2.3.4", "127.1", "b\xc3\xbc.example", "a\001.example",
		"a*.example"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		ask(names[i], A);
		assert_int_equal(taken().name_n, 0);
	}
	/* A NUL and a dot inside a label: the text would be another name. */
	header(RD, 1, 0, 0, 0);
	buf_add(&m, "\014evil.example\0", 14);
	put(A, 2);
	put(IN, 2);
	assert_int_equal(taken().name_n, 0);
	header(RD, 1, 0, 0, 0);
	buf_add(&m, "\004a\0bc\007example\0", 14);
	put(A, 2);
	put(IN, 2);
	assert_int_equal(taken().name_n, 0);
}

static void
J6_what_is_not_one_question_is_refused(void **state)
{
	(void)state;
	header(RD, 2, 0, 0, 0); /* QDCOUNT 2 */
	question("a.example", A, IN);
	question("b.example", A, IN);
	assert_int_equal(refused(), DNS_FORMERR);
	for (unsigned counted = 0; counted < 5; counted++) { /* and one that is counted otherwise */
		header(RD, counted == 4 ? 0xffff : counted, 0, 0, 0);
		question("a.example", A, IN);
		assert_int_equal(refused(), counted == 1 ? -1 : DNS_FORMERR);
	}
	for (unsigned i = 0; i < 2; i++) { /* an answer or an authority in a question */
		header(RD, 1, i == 0, i == 1, 0);
		question("a.example", A, IN);
		question("a.example", A, IN);
		put(0, 4);
		put(4, 2);
		put(0x01020304, 4);
		assert_int_equal(refused(), DNS_FORMERR);
	}
	ask("a.example", A); /* QR=1 deserves no answer */
	m.p[2] |= 0x80;
	assert_int_equal(refused(), -ENOMSG);
	for (unsigned opcode = 1; opcode < 16; opcode++) { /* IQUERY, STATUS, NOTIFY, UPDATE */
		ask("a.example", A);
		m.p[2] |= (uint8_t)(opcode << 3);
		assert_int_equal(refused(), DNS_NOTIMP);
	}
	ask("a.example", A);
	m.p[2] |= 0x02; /* TC */
	assert_int_equal(refused(), DNS_FORMERR);
	header(RD, 1, 0, 0, 0); /* class CHAOS and ANY */
	question("version.bind", 16, 3);
	assert_int_equal(refused(), DNS_NOTIMP);
	header(RD, 1, 0, 0, 0);
	question("a.example", A, 255);
	assert_int_equal(refused(), DNS_NOTIMP);
	ask("a.example", OPT);
	assert_int_equal(refused(), DNS_FORMERR);
}

static void
J6_edns_keeps_to_its_form(void **state)
{
	static const struct {
		unsigned ar, version;
		const char *options;
		size_t n;
		int end;
	} rows[] = {{1, 0, "", 0, -1}, {1, 0, "\0\3\0\0", 4, -1},
		{1, 0, "\0\3\0\1x\0\012\0\0", 9, -1}, {1, 1, "", 0, DNS_FORMERR},
		{1, 255, "", 0, DNS_FORMERR}, {2, 0, "", 0, DNS_FORMERR},
		{0, 0, "", 0, DNS_FORMERR}, {1, 0, "\0\3\0\1", 4, DNS_FORMERR},
		{1, 0, "\0\3\0", 3, DNS_FORMERR}, {1, 0, "\0\3\377\377x", 5, DNS_FORMERR}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		header(RD, 1, 0, 0, rows[i].ar);
		question("a.example", A, IN);
		opt(rows[i].version, rows[i].options, rows[i].n);
		if (refused() != rows[i].end)
			fail_msg("row %zu", i);
	}
	/* An option behind its end. */
	header(RD, 1, 0, 0, 1);
	question("a.example", A, IN);
	opt(0, "", 0);
	buf_add(&m, "\0\3\0\0", 4);
	assert_int_equal(refused(), DNS_FORMERR);
	/* Another record in its place, one with a name, two of them. */
	header(RD, 1, 0, 0, 1);
	question("a.example", A, IN);
	put_name("");
	put(250, 2); /* TSIG */
	put(255, 2);
	put(0, 4);
	put(0, 2);
	assert_int_equal(refused(), DNS_FORMERR);
	header(RD, 1, 0, 0, 1);
	question("a.example", A, IN);
	put_name("a");
	put(OPT, 2);
	put(512, 2);
	put(0, 4);
	put(0, 2);
	assert_int_equal(refused(), DNS_FORMERR);
	header(RD, 1, 0, 0, 1);
	question("a.example", A, IN);
	opt(0, "", 0);
	opt(0, "", 0);
	assert_int_equal(refused(), DNS_FORMERR);
}

static void
what_is_cut_or_longer_is_refused(void **state)
{
	size_t whole;

	(void)state;
	header(RD, 1, 0, 0, 1);
	question("docs.example", A, IN);
	opt(0, "\0\3\0\1x", 5);
	whole = m.n;
	assert_int_equal(refused(), -1);
	for (size_t n = 0; n < whole; n++) {
		m.n = n;
		assert_int_equal(refused(), n < 12 ? -ENOMSG : DNS_FORMERR);
	}
	m.n = whole;
	put(0, 1);
	assert_int_equal(refused(), DNS_FORMERR);
	ask("docs.example", A);
	put(0, 1);
	assert_int_equal(refused(), DNS_FORMERR);
	/* A whole second message behind the first. */
	ask("docs.example", A);
	buf_add(&m, "\xbe\xef\1\0\0\1\0\0\0\0\0\0\1b\0\0\1\0\1", 19);
	assert_int_equal(refused(), DNS_FORMERR);
}

static void
labels_keep_to_their_lengths(void **state)
{
	char label[65];

	(void)state;
	memset(label, 'a', sizeof(label));
	label[63] = '\0';
	ask(label, A);
	assert_int_equal(taken().name_n, 63);
	/* 64 and more are other kinds of labels: pointers, and what never came to be. */
	for (unsigned kind = 64; kind < 256; kind++) {
		header(RD, 1, 0, 0, 0);
		put(kind, 1);
		buf_add(&m, label, 63);
		for (int i = 0; i < 200; i++)
			put(0, 1);
		assert_int_equal(refused(), DNS_FORMERR);
	}
	/* A pointer to itself, and to the header. */
	for (unsigned at = 0; at < 32; at++) {
		header(RD, 1, 0, 0, 0);
		put(1, 1);
		put('a', 1);
		put(0xc000 | at, 2);
		put(A, 2);
		put(IN, 2);
		assert_int_equal(refused(), DNS_FORMERR);
	}
}

static void
A23_the_longest_name(void **state)
{
	char name[300];

	(void)state;
	for (size_t n = 250; n <= 256; n++) {
		for (size_t i = 0; i < n; i++)
			name[i] = i % 64 == 63 ? '.' : 'a';
		name[n] = '\0';
		ask(name, A);
		if (n <= 253)
			assert_int_equal(taken().name_n, n);
		else
			assert_int_equal(refused(), DNS_FORMERR);
	}
}

static void
a_changed_bit_never_makes_another_of_it_than_it_says(void **state)
{
	size_t whole;

	(void)state;
	header(RD, 1, 0, 0, 1);
	question("docs.example", A, IN);
	opt(0, "\0\3\0\1x", 5);
	whole = m.n;
	for (size_t bit = 0; bit < whole * 8; bit++) {
		struct dns_asked q;
		enum dns_code code;

		m.p[bit / 8] ^= (uint8_t)(1 << bit % 8);
		if (dns_asked_read(buf_view(&m), &q, &code) == 0) {
			assert_true(q.name_n == 0 || host_name_ok(view_of(q.name, q.name_n)));
			assert_int_equal(q.class, IN);
			assert_true(q.wire.p == m.p + 12 && q.wire.n <= m.n - 12);
			assert_int_equal(m.p[2] & 0xfa, 0);
		}
		m.p[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
}

static void
answers_have_one_form(void **state)
{
	const struct address four = {.family = AF_INET, .b = {198, 18, 1, 2}},
			     six = {.family = AF_INET6, .b = {0xfd, 0, 0x5e, 0xed, [15] = 7}};
	auto_buf struct buf out;
	struct dns_asked q;

	(void)state;
	buf_init(&out, DNS_UDP_ANSWER_MAX);
	ask("A.example", A);
	q = taken();
	dns_answer_write(&out, &q, DNS_NOERROR, &four, 2);
	assert_int_equal(buf_check(&out), 0);
	assert_memory_equal(out.p, "\xbe\xef\x81\x80\0\1\0\1\0\0\0\0\1A\7example\0\0\1\0\1", 27);
	assert_int_equal(out.n, 27 + 16);
	assert_memory_equal(out.p + 27, "\xc0\x0c\0\1\0\1\0\0\0\2\0\4\xc6\x12\1\2", 16);

	buf_clear(&out);
	header(0, 1, 0, 0, 1);
	question("a.example", AAAA, IN);
	opt(0, "", 0);
	q = taken();
	dns_answer_write(&out, &q, DNS_NOERROR, &six, 5);
	assert_memory_equal(out.p, "\xbe\xef\x80\x80\0\1\0\1\0\0\0\1", 12);
	assert_int_equal(out.n, 27 + 28 + 11);
	assert_memory_equal(out.p + 27, "\xc0\x0c\0\x1c\0\1\0\0\0\5\0\x10\xfd\0\x5e\xed", 16);
	assert_memory_equal(out.p + 55, "\0\0\x29\4\xd0\0\0\0\0\0\0", 11); /* 1232 bytes */

	for (int code = DNS_NOERROR; code <= DNS_NXDOMAIN; code++) {
		buf_clear(&out); /* NODATA, or the code; an address is of NOERROR only */
		dns_answer_write(
			&out, &q, (enum dns_code)code, code == DNS_NOERROR ? NULL : &six, 5);
		assert_int_equal(out.n, 27 + 11);
		assert_int_equal(out.p[3], 0x80 | code);
		assert_int_equal(out.p[7], 0);
	}
	buf_clear(&out);
	ask("x", A);
	dns_error_write(&out, buf_view(&m), DNS_FORMERR);
	assert_int_equal(out.n, 12);
	assert_memory_equal(out.p, "\xbe\xef\x81\x81\0\0\0\0\0\0\0\0", 12);
}

/* Whatever is asked, the answer goes into the smallest datagram that every resolver takes. */
static void
the_longest_answer_fits(void **state)
{
	const struct address six = {.family = AF_INET6};
	auto_buf struct buf out;
	struct dns_asked q;
	char name[254];

	(void)state;
	for (size_t i = 0; i < 253; i++)
		name[i] = i % 64 == 63 ? '.' : 'a';
	name[253] = '\0';
	header(RD, 1, 0, 0, 1);
	question(name, AAAA, IN);
	opt(0, "", 0);
	q = taken();
	buf_init(&out, DNS_UDP_ANSWER_MAX);
	dns_answer_write(&out, &q, DNS_NOERROR, &six, 5);
	assert_int_equal(buf_check(&out), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(a_question_is_read),
		cmocka_unit_test(names_that_are_no_host_names_are_well_formed_all_the_same),
		cmocka_unit_test(J6_what_is_not_one_question_is_refused),
		cmocka_unit_test(J6_edns_keeps_to_its_form),
		cmocka_unit_test(what_is_cut_or_longer_is_refused),
		cmocka_unit_test(labels_keep_to_their_lengths),
		cmocka_unit_test(A23_the_longest_name),
		cmocka_unit_test(a_changed_bit_never_makes_another_of_it_than_it_says),
		cmocka_unit_test(answers_have_one_form), cmocka_unit_test(the_longest_answer_fits)};

	buf_init(&m, 8192);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
