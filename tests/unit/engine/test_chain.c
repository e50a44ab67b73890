/* SPDX-License-Identifier: Apache-2.0 */
/* The audit chain: what was written verifies; every changed, lost, moved or foreign record is found. */
#include "lib/audit/audit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

enum { RECORDS = 5 };

static char texts[RECORDS][256];
static struct audit_row rows[RECORDS];

static void
digest_row(size_t i, const uint8_t previous[static 32], const char *text)
{
	rows[i].number = i + 1;
	rows[i].record = view_str(text);
	memcpy(rows[i].previous, previous, 32);
	audit_digest(previous, rows[i].record, rows[i].digest);
}

static int
setup(void **state)
{
	static const uint8_t zero[32];

	(void)state;
	for (size_t i = 0; i < RECORDS; i++) {
		(void)snprintf(texts[i], sizeof(texts[i]),
			"{\"data\":{\"code\":%zu},\"event\":\"job.end\",\"task\":\"tk_"
			"0000000000000000\",\"task_seq\":%zu,\"v\":1}",
			i, i + 1);
		digest_row(i, i == 0 ? zero : rows[i - 1].digest, texts[i]);
	}
	return 0;
}

/* How many records of the rows are accepted. */
static uint64_t
accepted(size_t n)
{
	struct audit_chain c = {0};
	struct err err;

	for (size_t i = 0; i < n; i++) {
		struct audit_chain before = c;

		if (audit_chain_add(&c, &rows[i], &err) < 0) {
			assert_memory_equal(&c, &before, sizeof(c));
			break;
		}
	}
	return c.number;
}

static void
test_good(void **state)
{
	static const uint8_t zero[32], want[] = {0xc1, 0x99, 0x3a, 0x3f};
	uint8_t digest[32];

	(void)state;
	assert_int_equal(accepted(RECORDS), RECORDS);
	/* The domain tag has its NUL; computed by hand with sha256sum. */
	audit_digest(zero, view_of("", 0), digest);
	assert_memory_equal(digest, want, sizeof(want));
}

/* Every bit of every field of every record. */
static void
test_changed(void **state)
{
	(void)state;
	for (size_t i = 0; i < RECORDS; i++) {
		for (size_t at = 0; at < rows[i].record.n; at++)
			for (unsigned bit = 0; bit < 8; bit++) {
				texts[i][at] = (char)(texts[i][at] ^ 1 << bit);
				assert_int_equal(accepted(RECORDS), i);
				texts[i][at] = (char)(texts[i][at] ^ 1 << bit);
			}
		for (size_t at = 0; at < 32; at++) {
			rows[i].digest[at] ^= 1;
			assert_int_equal(accepted(RECORDS), i);
			rows[i].digest[at] ^= 1;
			rows[i].previous[at] ^= 1;
			assert_int_equal(accepted(RECORDS), i);
			rows[i].previous[at] ^= 1;
		}
		rows[i].number ^= 8;
		assert_int_equal(accepted(RECORDS), i);
		rows[i].number ^= 8;
		rows[i].record.n--;
		assert_int_equal(accepted(RECORDS), i);
		rows[i].record.n++;
	}
	assert_int_equal(accepted(RECORDS), RECORDS);
}

static void
test_order(void **state)
{
	(void)state;
	for (size_t i = 0; i < RECORDS; i++)
		for (size_t j = 0; j < RECORDS; j++) {
			struct audit_row saved = rows[i];

			if (i == j)
				continue;
			rows[i] = rows[j]; /* repeated or moved */
			assert_true(accepted(RECORDS) < RECORDS);
			rows[i] = saved;
		}
	for (size_t i = 0; i + 1 < RECORDS; i++) {
		struct audit_row saved[RECORDS];

		memcpy(saved, rows, sizeof(saved));
		memmove(rows + i, rows + i + 1, (RECORDS - i - 1) * sizeof(rows[0])); /* left out */
		assert_int_equal(accepted(RECORDS - 1), i);
		memcpy(rows, saved, sizeof(saved));
	}
}

/* Somebody who can compute digests makes a chain that is none: the record says so itself. */
static void
test_forged(void **state)
{
	static const char *const records[] = {
		"{\"task\":\"tk_0000000000000001\",\"task_seq\":3,\"v\":1}", /* another task */
		"{\"task\":\"tk_0000000000000000\",\"task_seq\":4,\"v\":1}", /* another number */
		"{\"task\":\"tk_0000000000000000\",\"task_seq\":3,\"v\":2}", /* another version */
		"{\"task\":\"tk_0000000000000000\",\"task_seq\":3}",
		"{\"task_seq\":3,\"v\":1}",
		"{\"task\":\"\",\"task_seq\":3,\"v\":1}",
		"{\"task\":\"tk_000000000000000000000000000000\",\"task_seq\":3,\"v\":1}",
		"{\"task\":\"tk_0000000000000000\",\"task_seq\":-3,\"v\":1}",
		"{\"task\":\"tk_0000000000000000\",\"task_seq\":\"3\",\"v\":1}",
		"{\"v\":1,\"task_seq\":3,\"task\":\"tk_0000000000000000\"}", /* not in order */
		"{\"task\":\"tk_0000000000000000\", \"task_seq\":3,\"v\":1}",
		"{\"task\":\"tk_0000000000000000\",\"task_seq\":3,\"v\":1} ",
		"{\"task\":\"tk_0000000000000000\",\"task_seq\":3,\"v\":1}{}",
		"[]",
		"",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(records); i++) {
		digest_row(2, rows[1].digest, records[i]);
		assert_int_equal(accepted(3), 2);
	}
	digest_row(2, rows[1].digest, "{\"task\":\"tk_0000000000000000\",\"task_seq\":3,\"v\":1}");
	assert_int_equal(accepted(3), 3);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_good, setup),
		cmocka_unit_test_setup(test_changed, setup),
		cmocka_unit_test_setup(test_order, setup),
		cmocka_unit_test_setup(test_forged, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
