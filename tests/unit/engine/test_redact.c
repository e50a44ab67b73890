/* SPDX-License-Identifier: Apache-2.0 */
/* Redaction: what must never show, what must stay readable, and any bytes at all. */
#include "engine/redact.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static const struct {
	const char *in, *want;
} cases[] = {
	/* untouched */
	{"ls -la /workspace", "ls -la /workspace"},
	{"python3 -c 'print(6*7)'", "python3 -c 'print(6*7)'"},
	{"git log --oneline", "git log --oneline"},
	{"echo basic training", "echo basic [redacted]"},
	{"echo a:b x=y", "echo a:b x=y"},
	{"curl https://example.com/a@b", "curl https://example.com/a@b"},
	{"tokenize file", "tokenize file"},
	/* names */
	{"PASSWORD=hunter2 make", "PASSWORD=[redacted] make"},
	{"mysql --password=hunter2 db", "mysql --password=[redacted] db"},
	{"mysql --password hunter2 db", "mysql --password [redacted] db"},
	{"x --api-key abc", "x --api-key [redacted]"},
	{"x --api_key=abc&b=c", "x --api_key=[redacted]"},
	{"{\"client_secret\": \"s3 cr3t\", \"a\": 1}",
		"{\"client_secret\": \"[redacted]\", \"a\": 1}"},
	{"AWS_SECRET_ACCESS_KEY='a b c' x", "AWS_SECRET_ACCESS_KEY='[redacted]' x"},
	{"token: abc;def", "token: [redacted]"},
	{"PGPASSWORD=x psql", "PGPASSWORD=[redacted] psql"},
	{"MyApiKey = q", "MyApiKey = [redacted]"},
	/* what a shell puts together is one value */
	{"PASSWORD=abc,defghi make", "PASSWORD=[redacted] make"},
	{"PASSWORD=abc;def make", "PASSWORD=[redacted] make"},
	{"PASSWORD=abc&def make", "PASSWORD=[redacted] make"},
	{"PASSWORD=abc\\ def make", "PASSWORD=[redacted] make"},
	{"PASSWORD=abc\"d e\"'f g' make", "PASSWORD=[redacted] make"},
	{"PASSWORD=\\\"abc\\\" make", "PASSWORD=\\\"[redacted]\\\" make"},
	{"PASSWORD=abc\\", "PASSWORD=[redacted]"},
	{"SECRET=$(echo hunter2) make", "SECRET=[redacted] make"},
	{"SECRET=$(echo $(echo hunter2) x) make", "SECRET=[redacted] make"},
	{"SECRET=\"$(echo \"hunter2\")\" make", "SECRET=\"[redacted]\" make"},
	{"SECRET=`echo hunter2` make", "SECRET=[redacted] make"},
	{"SECRET=$(echo hunter2", "SECRET=[redacted]"},
	{"sh -c 'PASSWORD=abc make' x", "sh -c 'PASSWORD=[redacted] make' x"},
	{"sh -c 'make PASSWORD=abc' x", "sh -c 'make PASSWORD=[redacted]' x"},
	{"curl -d \"{\\\"password\\\":\\\"hunter2 secret\\\"}\" u",
		"curl -d \"{\\\"password\\\":\\\"[redacted]\\\"}\" u"},
	{"x \"password\": \"a\\\"b c\" y", "x \"password\": \"[redacted]\" y"},
	{"PASS=abc x", "PASS=[redacted] x"},
	{"DB_PASS=abc x", "DB_PASS=[redacted] x"},
	{"openssl rsa -passin pass:abc", "openssl rsa -passin [redacted]"},
	{"x --pass abc y", "x --pass [redacted] y"},
	{"bypass=1 compass: n", "bypass=1 compass: n"},
	/* options of programs */
	{"mysql -uroot -phunter2 db", "mysql -uroot -p[redacted] db"},
	{"/usr/bin/mysqldump -p'hunter 2' db", "/usr/bin/mysqldump -p'[redacted]' db"},
	{"mysql -p db", "mysql -p db"},
	{"sshpass -p hunter2 ssh h", "sshpass -p [redacted] ssh h"},
	{"sshpass -phunter2 ssh h", "sshpass -p[redacted] ssh h"},
	{"redis-cli -a hunter2 get x", "redis-cli -a [redacted] get x"},
	{"mkdir -pv a", "mkdir -pv a"},
	{"curl -ubob:hunter2 u", "curl -ubob:[redacted] u"},
	/* headers go to the end of their quotes */
	{"curl -H 'Authorization: Bearer abc def' u", "curl -H 'Authorization: [redacted]' u"},
	{"curl -H \"Cookie: a=1; b=2\" u", "curl -H \"Cookie: [redacted]\" u"},
	{"authorization: Token abc", "authorization: [redacted]"},
	{"X-Proxy-Authorization=abc def", "X-Proxy-Authorization=[redacted]"},
	/* schemes and users */
	{"say Bearer abcdefgh ok", "say Bearer [redacted] ok"},
	{"say BASIC dXNlcjpwYXNz", "say BASIC [redacted]"},
	{"curl -u bob:hunter2 u", "curl -u bob:[redacted] u"},
	{"curl --user bob:hunter2 u", "curl --user bob:[redacted] u"},
	{"curl -u bob u", "curl -u bob u"},
	{"psql postgres://u:p@db/x", "psql postgres://[redacted]@db/x"},
	{"git clone https://tok@github.com/x", "git clone https://[redacted]@github.com/x"},
	{"ftp://a@b@host/", "ftp://[redacted]@host/"},
	/* shapes */
	{"k AKIAIOSFODNN7EXAMPLE z", "k [redacted] z"},
	{"ghp_0123456789abcdefghij", "[redacted]"},
	{"github_pat_0123456789abcdefghij x", "[redacted] x"},
	{"xoxb-123456789012-abc", "[redacted]"},
	{"dml_abcdefgh12345", "[redacted]"},
	{"pds_abcdefgh12345", "[redacted]"},
	{"sk-0123456789abcdefghij", "[redacted]"},
	{"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl", "[redacted]"},
	{"dml_short", "dml_short"},
	/* keys */
	{"echo -----BEGIN RSA PRIVATE KEY----- MIIE abc -----END RSA PRIVATE KEY----- ok",
		"echo [redacted] ok"},
	{"-----BEGIN PRIVATE KEY----- MIIE and no end", "[redacted]"},
	{"-----BEGIN CERTIFICATE----- MIIE", "-----BEGIN CERTIFICATE----- MIIE"},
	/* one line of plain text */
	{"a\nb\tc\x1b[1m", "a b c [1m"},
	{"\xc3\xa4 \xff \xed\xa0\x80 \xef\xbf\xbf",
		"\xc3\xa4 \xef\xbf\xbd \xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd \xef\xbf\xbd"},
	{"", ""},
};

static void
test_cases(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct buf out;

		buf_init(&out, 512);
		redact_text(view_str(cases[i].in), 512, &out);
		buf_add_byte(&out, 0);
		assert_int_equal(buf_check(&out), 0);
		if (strcmp((const char *)out.p, cases[i].want) != 0)
			fail_msg("'%s' became '%s', not '%s'", cases[i].in, (const char *)out.p,
				cases[i].want);
		buf_done(&out);
	}
}

static void
test_argv(void **state)
{
	struct buf out;

	(void)state;
	buf_init(&out, 64);
	redact_argv(view_of("sh\0-c\0echo a\0\0", 14), 64, &out);
	assert_true(view_is(buf_view(&out), "sh -c 'echo a' ''"));
	buf_clear(&out);
	/* An option and its value are two words. */
	redact_argv(view_of("x\0--password\0hunter 2\0y", 24), 64, &out);
	assert_true(view_is(buf_view(&out), "x --password '[redacted]' y"));
	buf_clear(&out);
	redact_argv(view_of("echo one two", 13), 64, &out);
	assert_true(view_is(buf_view(&out), "echo one two"));
	buf_done(&out);
}

/* Never longer than asked, never half a character, always text. */
static void
test_bounds(void **state)
{
	uint8_t in[400];
	struct buf out;

	(void)state;
	for (size_t i = 0; i < sizeof(in); i++)
		in[i] = (uint8_t)("\xe2\x82\xac"[i % 3]);
	for (size_t n = 0; n < sizeof(in); n++)
		for (size_t max = 8; max < 20; max++) {
			buf_init(&out, max);
			redact_text(view_of(in, n), max, &out);
			assert_int_equal(buf_check(&out), 0);
			assert_true(view_utf8(buf_view(&out)));
			assert_true(out.n <= max);
			buf_done(&out);
		}
}

/* The pattern of a secret at every position of the part that is looked at, and random bytes. */
static void
test_positions(void **state)
{
	static uint8_t in[40000];
	struct buf out;

	(void)state;
	for (size_t at = 0; at < 400; at++) {
		memset(in, ' ', sizeof(in));
		memcpy(in + at, "password=hunter2", 16);
		buf_init(&out, 1024);
		redact_text(view_of(in, 440), 1024, &out);
		assert_null(memmem(out.p, out.n, "hunter2", 7));
		buf_done(&out);
	}
	for (unsigned round = 0; round < 200; round++) {
		unsigned seed = round;

		for (size_t i = 0; i < sizeof(in); i++) {
			seed = seed * 1103515245 + 12345;
			in[i] = (uint8_t)(seed >> 16);
		}
		buf_init(&out, 512);
		redact_text(view_of(in, sizeof(in)), 512, &out);
		assert_int_equal(buf_check(&out), 0);
		assert_true(view_utf8(buf_view(&out)));
		buf_done(&out);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cases),
		cmocka_unit_test(test_argv),
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_positions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
