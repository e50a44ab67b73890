/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The credential goes to the provider and nowhere else: TLS with pinned roots, a leak test over the ledger, the log, every message that the
 * broker ever sent and its own memory when nothing is in flight, and a process that no other can look into.
 */
#include "play.h"

#include "lib/base/base64.h"
#include "lib/base/hex.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static struct play play;

static int
begin(void **state)
{
	(void)state;
	play_open(&play);
	play_start(&play);
	return 0;
}

static int
open_only(void **state)
{
	(void)state;
	play_open(&play);
	return 0;
}

static int
end(void **state)
{
	(void)state;
	play_close(&play);
	return 0;
}

static struct msg_executed
once(enum attempt attempt, enum denial denial)
{
	struct msg_executed m;
	struct action a;

	action_refund(&play, &a);
	m = action_execute(&play, &a);
	action_is(&m, attempt, denial);
	action_done(&a);
	return m;
}

/* ---- TLS ---- */

static void
with_tls_and_a_pinned_root_it_is_sent(void **state)
{
	(void)state;
	play_tls(&play);
	play_start(&play);
	once(ATTEMPT_SUCCEEDED, DENIAL_NONE);
	assert_int_equal(provider_effects(&play), 1);
}

static void
F3_with_tls_a_lost_answer_is_unknown(void **state)
{
	(void)state;
	play_tls(&play);
	play_start(&play);
	provider_script(&play, "effect executes_then_drops\n");
	once(ATTEMPT_UNKNOWN, DENIAL_PROVIDER_ANSWER);
	provider_script(&play, "effect truncated\n");
	once(ATTEMPT_UNKNOWN, DENIAL_PROVIDER_ANSWER);
	assert_int_equal(provider_effects(&play), 2);
}

/* Whoever answers in the provider's place gets no byte of the request. */
static void
another_root_or_another_name_gets_nothing(void **state)
{
	(void)state;
	play_tls(&play);
	play_shell(&play,
		"openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes "
		"-keyout other.key -out ../trust/shop.pem -days 2 -subj /CN=test 2>/dev/null "
		"&& chmod 644 ../trust/shop.pem");
	play_start(&play);
	once(ATTEMPT_DENIED, DENIAL_VERIFY_UNAVAILABLE);
	assert_int_equal(provider_requests(&play, ""), 0);
	play_kill(&play);
	play_shell(&play,
		"cp ca.pem ../trust/shop.pem && printf 'subjectAltName=DNS:other.test\\n' >san && "
		"openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 "
		"-extfile san -out server.pem 2>/dev/null");
	play_provider_again(&play);
	play_start(&play);
	once(ATTEMPT_DENIED, DENIAL_VERIFY_UNAVAILABLE);
	assert_int_equal(provider_requests(&play, ""), 0);
}

/* The handshake is before `spent`: the approval is as good as before. */
static void
a_failed_handshake_spends_nothing(void **state)
{
	struct msg_executed m;
	struct action a;

	(void)state;
	play_tls(&play);
	play_shell(&play, "mv ../trust/shop.pem good.pem && "
			  "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 "
			  "-nodes -keyout other.key -out ../trust/shop.pem -days 2 -subj /CN=test "
			  "2>/dev/null && chmod 644 ../trust/shop.pem");
	play_start(&play);
	action_make(&play, &a, "reply",
		"{\"body\":\"hello\",\"recipient\":\"kim@example.org\",\"subject\":\"order\"}");
	action_approve(&play, &a, 2);
	m = action_execute(&play, &a);
	action_is(&m, ATTEMPT_NOT_SENT, DENIAL_DIAL_REFUSED);
	assert_int_equal(provider_requests(&play, ""), 0);
	play_kill(&play);
	play_shell(&play, "cp good.pem ../trust/shop.pem");
	play_start(&play);
	id_new(&a.execution);
	m = action_execute(&play, &a);
	action_is(&m, ATTEMPT_SUCCEEDED, DENIAL_NONE);
	assert_int_equal(provider_effects(&play), 1);
	action_done(&a);
}

static void
without_its_roots_a_provider_gets_nothing(void **state)
{
	(void)state;
	play_tls(&play);
	assert_int_equal(unlinkat(play.trust, "shop.pem", 0), 0);
	play_start(&play);
	once(ATTEMPT_DENIED, DENIAL_VERIFY_UNAVAILABLE);
	play_kill(&play);
	play_shell(&play, "cp ca.pem ../trust/shop.pem; chmod 664 ../trust/shop.pem");
	play_start(&play);
	once(ATTEMPT_DENIED, DENIAL_VERIFY_UNAVAILABLE);
	assert_int_equal(provider_requests(&play, ""), 0);
}

/* ---- secrets that are not there ---- */

static void
without_its_secret_an_operation_is_denied(void **state)
{
	(void)state;
	play_shell(&play, "rm ../secrets/shop-key");
	play_start(&play);
	once(ATTEMPT_DENIED, DENIAL_SECRET_MISSING);
	assert_int_equal(play.dialled, 0);
	play_kill(&play);
	/* Too short to be told from other text. */
	play_shell(&play, "printf 'seven77\\n' >../secrets/shop-key");
	play_start(&play);
	once(ATTEMPT_DENIED, DENIAL_SECRET_MISSING);
	play_kill(&play);
	/* Would be a second header. */
	play_shell(&play, "printf 'good enough\\nX-Other: 1' >../secrets/shop-key");
	play_start(&play);
	once(ATTEMPT_DENIED, DENIAL_SECRET_MISSING);
	play_kill(&play);
	play_shell(&play, "head -c 8193 /dev/zero | tr '\\0' x >../secrets/shop-key");
	play_start(&play);
	once(ATTEMPT_DENIED, DENIAL_SECRET_MISSING);
	assert_int_equal(play.dialled, 0);
	play_kill(&play);
	play_shell(&play, "head -c 8192 /dev/zero | tr '\\0' x >../secrets/shop-key");
	play_start(&play);
	once(ATTEMPT_SUCCEEDED, DENIAL_NONE);
}

/* ---- leaks ---- */

static void
everything_that_can_go_wrong(void)
{
	static const char *const scripts[] = {"", "effect echo\n", "read echo\n",
		"effect garbage\n", "effect executes_then 500\n", "effect truncated\n",
		"effect status 400\n", "effect drop\n", "read garbage\n", "read status 500\n",
		"effect huge\n", "effect other_amount\n"};

	for (size_t i = 0; i < ARRAY_LEN(scripts); i++) {
		struct action a;

		provider_script(&play, scripts[i]);
		action_refund(&play, &a);
		if (action_execute(&play, &a).attempt == ATTEMPT_UNKNOWN)
			(void)action_lookup(&play, &a);
		action_done(&a);
	}
}

static void
leaked_nowhere(const char *text)
{
	auto_buf struct buf b = {.max = 4096};
	char hex[256];

	assert_false(play_leaked(&play, text));
	hex_encode((const uint8_t *)text, strlen(text), hex);
	assert_false(play_leaked(&play, hex));
	base64_encode(view_str(text), &b);
	buf_add_byte(&b, 0);
	assert_false(play_leaked(&play, (const char *)b.p));
}

static void
H4_H11_the_credential_is_in_no_ledger_log_or_message(void **state)
{
	(void)state;
	everything_that_can_go_wrong();
	leaked_nowhere(PLAY_SECRET);
	leaked_nowhere("CANARY");
	play_restart(&play);
	everything_that_can_go_wrong();
	leaked_nowhere("CANARY");
	/* The test itself finds what is there. */
	assert_true(play_leaked(&play, "succeeded"));
}

#ifndef JAIL_NONE
/* How often the text stands in memory of the broker that root can read: not in memfd_secret, where that is used. */
static unsigned
in_memory(const char *text, bool *ret_secretmem)
{
	char path[64], line[512];
	unsigned found = 0;
	FILE *maps;
	int mem;

	(void)snprintf(path, sizeof(path), "/proc/%d/maps", play.broker);
	maps = fopen(path, "re");
	assert_non_null(maps);
	(void)snprintf(path, sizeof(path), "/proc/%d/mem", play.broker);
	mem = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(mem >= 0);
	*ret_secretmem = false;
	while (fgets(line, sizeof(line), maps) != NULL) {
		unsigned long from, to;
		uint8_t *p;
		ssize_t n;

		assert_int_equal(sscanf(line, "%lx-%lx", &from, &to), 2);
		*ret_secretmem = *ret_secretmem || strstr(line, "secretmem") != NULL;
		p = malloc(to - from);
		assert_non_null(p);
		n = pread(mem, p, to - from, (off_t)from);
		for (ssize_t i = 0; i + (ssize_t)strlen(text) <= n; i++)
			if (memcmp(p + i, text, strlen(text)) == 0)
				found++;
		free(p);
	}
	(void)fclose(maps);
	(void)close(mem);
	return found;
}

static void
when_nothing_is_in_flight_the_credential_is_in_one_place(void **state)
{
	bool secretmem;
	unsigned n;

	(void)state;
	for (unsigned i = 0; i < 3; i++)
		once(ATTEMPT_SUCCEEDED, DENIAL_NONE);
	provider_script(&play, "effect echo\n");
	once(ATTEMPT_SUCCEEDED, DENIAL_NONE);
	play_silence(&play, 200); /* it tells the end before it clears its table */
	n = in_memory("sk_live_CANARY", &secretmem);
	if (n > (secretmem ? 0 : 1))
		fail_msg("%u copies of the credential in the memory of the broker", n);
}

static void
nor_after_tls(void **state)
{
	bool secretmem;
	unsigned n;

	(void)state;
	play_tls(&play);
	play_start(&play);
	for (unsigned i = 0; i < 3; i++)
		once(ATTEMPT_SUCCEEDED, DENIAL_NONE);
	provider_script(&play, "effect echo\n");
	once(ATTEMPT_SUCCEEDED, DENIAL_NONE);
	provider_script(&play, "read echo\n");
	once(ATTEMPT_DENIED, DENIAL_VERIFY_FAILED);
	play_silence(&play, 200);
	n = in_memory("sk_live_CANARY", &secretmem);
	if (n > (secretmem ? 0 : 1))
		fail_msg("%u copies of the credential in the memory of the broker", n);
}

static void
nobody_but_root_can_look_into_it(void **state)
{
	char path[64], line[256];
	bool core = false;
	struct stat st;
	FILE *limits;

	(void)state;
	/* Not dumpable: its files in /proc are root's, though it runs as another user. */
	(void)snprintf(path, sizeof(path), "/proc/%d/mem", play.broker);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_uid, 0);
	(void)snprintf(path, sizeof(path), "/proc/%d/limits", play.broker);
	limits = fopen(path, "re");
	assert_non_null(limits);
	while (fgets(line, sizeof(line), limits) != NULL) {
		unsigned long soft, hard;

		if (sscanf(line, "Max core file size %lu %lu", &soft, &hard) == 2) {
			core = true;
			assert_true(soft <= 1 && hard <= 1);
		}
	}
	(void)fclose(limits);
	assert_true(core);
}
#endif

#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)
#define COLD(f) cmocka_unit_test_setup_teardown(f, open_only, end)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		COLD(with_tls_and_a_pinned_root_it_is_sent),
		COLD(F3_with_tls_a_lost_answer_is_unknown),
		COLD(another_root_or_another_name_gets_nothing),
		COLD(a_failed_handshake_spends_nothing),
		COLD(without_its_roots_a_provider_gets_nothing),
		COLD(without_its_secret_an_operation_is_denied),
		TEST(H4_H11_the_credential_is_in_no_ledger_log_or_message),
#ifndef JAIL_NONE
		TEST(when_nothing_is_in_flight_the_credential_is_in_one_place),
		COLD(nor_after_tls),
		TEST(nobody_but_root_can_look_into_it),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
