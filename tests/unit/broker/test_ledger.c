/* SPDX-License-Identifier: Apache-2.0 */
/* The ledger: what is written is read; a torn end is cut, every other change of any byte is refused; nothing is spent twice. */
#include "broker/ledger.h"

#include "lib/base/fd.h"
#include "lib/canon/read.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char dir_name[64];
static int dir;

static int
begin(void **state)
{
	(void)state;
	(void)snprintf(dir_name, sizeof(dir_name), "/tmp/demilune-ledger-XXXXXX");
	assert_non_null(mkdtemp(dir_name));
	dir = open(dir_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(dir >= 0);
	return 0;
}

static int
end(void **state)
{
	(void)state;
	(void)unlinkat(dir, "ledger", 0);
	(void)close(dir);
	(void)rmdir(dir_name);
	return 0;
}

static struct ledger *
open_it(uint64_t *ret_cut)
{
	struct ledger *l = NULL;
	struct err err = {0};

	if (ledger_open(dir, &l, ret_cut, &err) < 0)
		fail_msg("%s", err.text);
	return l;
}

static int
refusal(struct err *err)
{
	struct ledger *l = NULL;
	uint64_t cut;
	int r = ledger_open(dir, &l, &cut, err);

	ledger_close(l);
	return r;
}

static struct entry
spent(const char *proposal, const char *execution, const char *key)
{
	struct entry e = {.kind = ENTRY_SPENT,
		.ms = 1000,
		.account = view_str("acct_1"),
		.epoch = 1,
		.execution = view_str(execution),
		.key = view_str(key),
		.proposal = view_str(proposal),
		.provider = view_str("shop"),
		.task = view_str("tk_0123456789abcdef"),
		.tenant = view_str("acme")};

	memset(e.record, 7, SHA256_BYTES);
	return e;
}

static struct entry
ended(const char *execution, const char *outcome, const char *receipt)
{
	struct entry e = {.kind = ENTRY_ENDED,
		.ms = 2000,
		.bytes = 321,
		.calls = 2,
		.execution = view_str(execution),
		.first_byte_us = 77,
		.incident = true,
		.outcome = view_str(outcome),
		.receipt = view_str(receipt),
		.sends = 1,
		.status = 201,
		.text = view_str("line\none \"quoted\" \\ and \xc3\xa9")};

	memset(e.response, 9, SHA256_BYTES);
	return e;
}

static void
add(struct ledger *l, struct entry e)
{
	struct err err = {0};

	if (ledger_add(l, &e, &err) < 0)
		fail_msg("%s", err.text);
}

static int
try(struct ledger *l, struct entry e)
{
	struct err err = {0};

	return ledger_add(l, &e, &err);
}

/* One of each kind. */
static void
fill(struct ledger *l)
{
	struct entry e = {.kind = ENTRY_ACCEPTED,
		.ms = 900,
		.approver = view_str("anna"),
		.key = view_str("SHA256:abc"),
		.proposal = view_str("pr_0000000000000001")};

	memset(e.decision, 3, SHA256_BYTES);
	add(l, e);
	e.ms = 950; /* again: the first time counts */
	add(l, e);
	add(l, spent("pr_0000000000000001", "xc_0000000000000001", "dml-1"));
	add(l, ended("xc_0000000000000001", "unknown", "{\"reference\":\"re_1\"}"));
	add(l, spent("pr_0000000000000002", "xc_0000000000000002", "dml-2"));
	add(l, (struct entry){.kind = ENTRY_REVOKED,
		       .ms = 1,
		       .proposal = view_str("pr_0000000000000003")});
	add(l, (struct entry){.kind = ENTRY_CONTAINED, .ms = 1, .scope = view_str("tenant:acme")});
	add(l, (struct entry){.kind = ENTRY_CONTAINED, .ms = 1, .scope = view_str("task:tk_9")});
	add(l, (struct entry){.kind = ENTRY_RELEASED,
		       .ms = 2,
		       .approver = view_str("ben"),
		       .scope = view_str("task:tk_9")});
	add(l, (struct entry){.kind = ENTRY_EPOCH, .ms = 3, .epoch = 2});
	add(l, (struct entry){.kind = ENTRY_SETTLED,
		       .ms = 4,
		       .approver = view_str("ben"),
		       .execution = view_str("xc_0000000000000002"),
		       .outcome = view_str("failed")});
}

static void
check(const struct ledger *l)
{
	auto_buf struct buf room = {.max = 262144};
	uint8_t decision[SHA256_BYTES], none[SHA256_BYTES] = {1};
	const struct spent *s = ledger_by_proposal(l, view_str("pr_0000000000000001"));
	struct entry e;
	struct err err;

	memset(decision, 3, SHA256_BYTES);
	assert_int_equal(ledger_entries(l), 12);
	assert_int_equal(ledger_epoch(l), 2);
	assert_int_equal(ledger_accepted_ms(l, decision), 900);
	assert_int_equal(ledger_accepted_ms(l, none), 0);
	assert_non_null(s);
	assert_ptr_equal(s, ledger_by_execution(l, view_str("xc_0000000000000001")));
	assert_ptr_equal(s, ledger_by_key(l, view_str("dml-1")));
	assert_ptr_equal(s,
		ledger_by_receipt(l, view_str("shop"), view_str("acct_1"), view_str("\"re_1\"")));
	assert_null(
		ledger_by_receipt(l, view_str("shop"), view_str("acct_2"), view_str("\"re_1\"")));
	assert_int_equal(s->outcome, OUTCOME_UNKNOWN);
	assert_int_equal(s->record[5], 7);
	assert_int_equal(ledger_ended(l, s, &room, &e, &err), 0);
	assert_true(view_is(e.receipt, "{\"reference\":\"re_1\"}"));
	assert_true(view_is(e.text, "line\none \"quoted\" \\ and \xc3\xa9"));
	assert_int_equal(e.first_byte_us, 77);
	assert_int_equal(e.response[31], 9);
	assert_true(e.incident);
	s = ledger_by_proposal(l, view_str("pr_0000000000000002"));
	assert_int_equal(s->outcome, OUTCOME_FAILED);
	assert_string_equal(s->settled_by, "ben");
	assert_true(ledger_revoked(l, view_str("pr_0000000000000003")));
	assert_false(ledger_revoked(l, view_str("pr_0000000000000001")));
	assert_string_equal(ledger_contained(l, view_str("tk_1"), view_str("acme")), "tenant");
	assert_null(ledger_contained(l, view_str("tk_9"), view_str("other")));
	assert_ptr_equal(ledger_open_in(l, view_str("host")), ledger_by_key(l, view_str("dml-1")));
	assert_ptr_equal(
		ledger_open_in(l, view_str("tenant:acme")), ledger_by_key(l, view_str("dml-1")));
	assert_null(ledger_open_in(l, view_str("tenant:other")));
}

static void
what_is_written_is_read(void **state)
{
	uint64_t cut = 0;
	struct ledger *l = open_it(&cut);
	struct stat st;

	(void)state;
	assert_int_equal(ledger_epoch(l), 1);
	fill(l);
	check(l);
	ledger_close(l);
	l = open_it(&cut);
	assert_int_equal(cut, 0);
	check(l);
	ledger_close(l);
	assert_int_equal(fstatat(dir, "ledger", &st, 0), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
}

static size_t
read_file(uint8_t *to, size_t max)
{
	int fd = openat(dir, "ledger", O_RDONLY | O_CLOEXEC);
	struct err err;
	size_t n;

	assert_int_equal(fd_read_upto(fd, to, max, &n, &err), 0);
	(void)close(fd);
	return n;
}

static void
write_file(const uint8_t *p, size_t n)
{
	int fd = openat(dir, "ledger", O_WRONLY | O_TRUNC | O_CLOEXEC);
	struct err err;

	assert_int_equal(fd_write_all(fd, p, n, &err), 0);
	(void)close(fd);
}

static void
F2_a_torn_end_is_cut_wherever_it_tore(void **state)
{
	static uint8_t file[65536], after[65536];
	uint64_t cut, entries = 0;
	struct ledger *l = open_it(&cut);
	size_t n, whole = 0;

	(void)state;
	fill(l);
	ledger_close(l);
	n = read_file(file, sizeof(file));
	for (size_t i = 1; i < n; i++) {
		size_t next = whole + 4 + 32 + ((size_t)file[whole + 2] << 8 | file[whole + 3]);

		if (i == next) {
			whole = next;
			entries++;
		}
		write_file(file, i);
		l = open_it(&cut);
		if (entries == 0) {
			/* Not even the first entry was whole: it is made again. */
			assert_int_equal(ledger_entries(l), 1);
		} else {
			assert_int_equal(ledger_entries(l), entries);
			assert_int_equal(read_file(after, sizeof(after)), whole);
		}
		assert_int_equal(cut, i - whole);
		/* And goes on. */
		add(l, (struct entry){
			       .kind = ENTRY_REVOKED, .ms = 1, .proposal = view_str("pr_x")});
		ledger_close(l);
		l = open_it(&cut);
		assert_int_equal(cut, 0);
		assert_true(ledger_revoked(l, view_str("pr_x")));
		ledger_close(l);
	}
}

static void
every_changed_bit_is_damage(void **state)
{
	static uint8_t file[65536];
	struct err err = {0};
	uint64_t cut;
	struct ledger *l = open_it(&cut);
	size_t n;

	(void)state;
	fill(l);
	ledger_close(l);
	n = read_file(file, sizeof(file));
	for (size_t i = 0; i < n; i++)
		for (unsigned bit = 0; bit < 8; bit++) {
			file[i] ^= (uint8_t)(1 << bit);
			write_file(file, n);
			if (refusal(&err) != -EBADMSG)
				fail_msg("bit %u of byte %zu: it starts", bit, i);
			file[i] ^= (uint8_t)(1 << bit);
		}
	assert_true(strstr(err.text, "nothing is sent with it") != NULL);
}

static void
a_missing_or_moved_entry_is_damage(void **state)
{
	static uint8_t file[65536], other[65536];
	struct err err = {0};
	uint64_t cut;
	struct ledger *l = open_it(&cut);
	size_t n, first, second;

	(void)state;
	fill(l);
	ledger_close(l);
	n = read_file(file, sizeof(file));
	first = 36 + (size_t)file[3];
	second = first + 36 + ((size_t)file[first + 2] << 8 | file[first + 3]);
	/* Without the second. */
	memcpy(other, file, first);
	memcpy(other + first, file + second, n - second);
	write_file(other, n - (second - first));
	assert_int_equal(refusal(&err), -EBADMSG);
	/* The second twice. */
	memcpy(other, file, second);
	memcpy(other + second, file + first, n - first);
	write_file(other, n + (second - first));
	assert_int_equal(refusal(&err), -EBADMSG);
	/* Zeros behind it, as some file systems leave them. */
	memcpy(other, file, n);
	memset(other + n, 0, 100);
	write_file(other, n + 100);
	assert_int_equal(refusal(&err), -EBADMSG);
}

static void
F7_one_at_a_time(void **state)
{
	struct err err = {0};
	uint64_t cut;
	struct ledger *l = open_it(&cut);

	(void)state;
	assert_int_equal(refusal(&err), -EBUSY);
	ledger_close(l);
	assert_int_equal(refusal(&err), 0);
}

static void
what_others_may_read_is_refused(void **state)
{
	struct err err = {0};
	uint64_t cut;

	(void)state;
	ledger_close(open_it(&cut));
	assert_int_equal(fchmodat(dir, "ledger", 0640, 0), 0);
	assert_int_equal(refusal(&err), -EPERM);
	assert_int_equal(unlinkat(dir, "ledger", 0), 0);
	assert_int_equal(symlinkat("elsewhere", dir, "ledger"), 0);
	assert_int_equal(refusal(&err), -ELOOP);
	assert_int_equal(unlinkat(dir, "ledger", 0), 0);
	assert_int_equal(mkfifoat(dir, "ledger", 0600), 0);
	assert_true(refusal(&err) < 0);
}

static void
nothing_is_spent_twice_and_no_end_changes(void **state)
{
	uint64_t cut;
	struct ledger *l = open_it(&cut);

	(void)state;
	add(l, spent("pr_1", "xc_1", "dml-1"));
	assert_true(try(l, spent("pr_1", "xc_2", "dml-2")) < 0);
	assert_true(try(l, spent("pr_2", "xc_1", "dml-2")) < 0);
	assert_true(try(l, spent("pr_2", "xc_2", "dml-1")) < 0);
	assert_true(try(l, ended("xc_9", "failed", "{}")) < 0);
	assert_true(try(l, ended("xc_1", "perhaps", "{}")) < 0);
	add(l, ended("xc_1", "unknown", "{}"));
	add(l, ended("xc_1", "unknown", "{}"));
	add(l, ended("xc_1", "succeeded", "{}"));
	assert_true(try(l, ended("xc_1", "failed", "{}")) < 0);
	assert_true(try(l, (struct entry){.kind = ENTRY_SETTLED,
				   .approver = view_str("ben"),
				   .execution = view_str("xc_1"),
				   .outcome = view_str("failed")}) < 0);
	assert_true(try(l, (struct entry){.kind = ENTRY_EPOCH, .epoch = 3}) < 0);
	assert_true(try(l, (struct entry){.kind = ENTRY_EPOCH, .epoch = 1}) < 0);
	assert_int_equal(ledger_entries(l), 5);
	ledger_close(l);
	l = open_it(&cut);
	assert_int_equal(ledger_entries(l), 5);
	ledger_close(l);
}

static void
what_is_no_entry_is_not_written(void **state)
{
	uint64_t cut;
	struct ledger *l = open_it(&cut);
	struct entry e = ended("xc_1", "unknown", "{\"b\":1,\"a\":2}");

	(void)state;
	add(l, spent("pr_1", "xc_1", "dml-1"));
	assert_true(try(l, e) < 0); /* not canonical */
	e.receipt = view_str("[]");
	assert_true(try(l, e) < 0);
	e.receipt = view_str("{},\"x\":1");
	assert_true(try(l, e) < 0);
	e.receipt = view_str("");
	assert_true(try(l, e) < 0);
	e.receipt = view_str("{}");
	e.text = view_str("\xff");
	assert_true(try(l, e) < 0);
	assert_int_equal(ledger_entries(l), 2);
	ledger_close(l);
}

static void
entries_of_other_forms_are_refused(void **state)
{
	static const char *const bad[] = {"", "{}", "[]", "{\"kind\":\"revoked\",\"ms\":1}",
		"{\"kind\":\"revoked\",\"ms\":1,\"proposal\":\"pr_1\",\"x\":1}",
		"{\"kind\":\"revoked\",\"ms\":-1,\"proposal\":\"pr_1\"}",
		"{\"kind\":\"revoked\",\"ms\":\"1\",\"proposal\":\"pr_1\"}",
		"{\"kind\":\"revoked\",\"ms\":1,\"proposal\":1}",
		"{\"kind\":\"other\",\"ms\":1,\"proposal\":\"pr_1\"}",
		"{\"kind\":\"revoked\",\"ms\":1,\"proposal\":\"pr_1\"} ",
		"{\"ms\":1,\"kind\":\"revoked\",\"proposal\":\"pr_1\"}",
		"{\"kind\":\"revoked\",\"kind\":\"revoked\",\"ms\":1,\"proposal\":\"pr_1\"}",
		"{\"epoch\":true,\"kind\":\"epoch\",\"ms\":1}"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		auto_buf struct buf room = {.max = 65536};
		struct err err = {0};
		struct entry e;

		if (entry_read(view_str(bad[i]), &room, &e, &err) == 0)
			fail_msg("%s", bad[i]);
	}
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_is_written_is_read),
		TEST(F2_a_torn_end_is_cut_wherever_it_tore),
		TEST(every_changed_bit_is_damage),
		TEST(a_missing_or_moved_entry_is_damage),
		TEST(F7_one_at_a_time),
		TEST(what_others_may_read_is_refused),
		TEST(nothing_is_spent_twice_and_no_end_changes),
		TEST(what_is_no_entry_is_not_written),
		TEST(entries_of_other_forms_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
