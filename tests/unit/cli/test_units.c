/* SPDX-License-Identifier: Apache-2.0 */
/* cli/units: times, sizes and shares, both ways, and everything that is none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cli/units.h"

typedef int parse_fn(struct view v, int64_t *ret, struct err *err);

struct good {
	const char *text;
	int64_t value;
};

static void
accept_all(parse_fn *parse, const struct good *rows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct err err = {0};
		int64_t v = -1;

		if (parse(view_str(rows[i].text), &v, &err) != 0)
			fail_msg("%s: %s", rows[i].text, err.text);
		assert_int_equal(v, rows[i].value);
	}
}

static void
refuse_all(parse_fn *parse, const char *const *rows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct err err = {0};
		int64_t v = -77;

		if (parse(view_str(rows[i]), &v, &err) >= 0)
			fail_msg("%s was taken as %lld", rows[i], (long long)v);
		assert_int_equal(v, -77);
		assert_true(err.code < 0 && strstr(err.text, "must be") != NULL);
	}
}

static void
durations(void **state)
{
	static const struct good rows[] = {{"1ms", 1}, {"500ms", 500}, {"30s", 30000},
		{"10m", 600000}, {"2h", 7200000}, {"1d", 86400000},
		{"3660d", INT64_C(316224000000)}};
	static const char *const bad[] = {"", "0s", "10", "s", "-1s", "+1s", " 1s", "1s ", "1 s",
		"1.5s", "1e3s", "01s", "1S", "1sec", "1m30s", "3661d", "99999999999999999999d",
		"9223372036854775807d", "1\xc2\xb5s", "infinity", "NaN"};

	(void)state;
	accept_all(units_duration, rows, ARRAY_LEN(rows));
	refuse_all(units_duration, bad, ARRAY_LEN(bad));
}

static void
sizes(void **state)
{
	static const struct good rows[] = {{"1MiB", 1 << 20}, {"512MiB", 512 << 20},
		{"2GiB", INT64_C(2) << 30}, {"2048KiB", 2 << 20}, {"1048576GiB", INT64_C(1) << 50}};
	static const char *const bad[] = {"", "0MiB", "512", "512MB", "512M", "512m", "1KiB",
		"1025KiB", "1.5GiB", "-1MiB", "MiB", "1048577GiB", "99999999999999999999GiB",
		"9223372036854775807GiB", "1 GiB", "1GiB\n"};

	(void)state;
	accept_all(units_bytes, rows, ARRAY_LEN(rows));
	refuse_all(units_bytes, bad, ARRAY_LEN(bad));
}

static void
shares_and_counts(void **state)
{
	static const struct good shares[] = {
		{"1m", 1}, {"1500m", 1500}, {"2", 2000}, {"1024", 1024000}};
	static const char *const bad_shares[] = {
		"", "0", "0m", "0.5", "1.5", "-1", "1025", "1c", "m", "1m ", "1000000000000m"};
	static const struct good counts[] = {{"1", 1}, {"256", 256}, {"1000000000", 1000000000}};
	static const char *const bad_counts[] = {
		"", "0", "-1", "1.0", "1k", "1000000001", "0x10", "010", "18446744073709551617"};

	(void)state;
	accept_all(units_cpu, shares, ARRAY_LEN(shares));
	refuse_all(units_cpu, bad_shares, ARRAY_LEN(bad_shares));
	accept_all(units_count, counts, ARRAY_LEN(counts));
	refuse_all(units_count, bad_counts, ARRAY_LEN(bad_counts));
}

static void
texts(void **state)
{
	static const struct {
		int64_t v;
		const char *text;
	} bytes[] = {{-1, "-"}, {0, "0 B"}, {1023, "1023 B"}, {1024, "1 KiB"}, {1536, "1.5 KiB"},
		{512 << 20, "512 MiB"}, {(INT64_C(3) << 30) + (1 << 29), "3.5 GiB"},
		{INT64_MAX, "8191.9 PiB"}},
	  times[] = {{-1, "-"}, {0, "0.0 ms"}, {450, "0.4 ms"}, {9999, "9.9 ms"}, {12000, "12 ms"},
		  {999999, "999 ms"}, {3250000, "3.2 s"}, {59999999, "59.9 s"},
		  {250000000, "4m10s"}, {INT64_C(7500000000), "2h05m"},
		  {INT64_C(273600000000), "3d04h"}};
	char text[UNITS_TEXT];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bytes); i++) {
		units_bytes_text(bytes[i].v, text);
		assert_string_equal(text, bytes[i].text);
	}
	for (size_t i = 0; i < ARRAY_LEN(times); i++) {
		units_duration_text(times[i].v, text);
		assert_string_equal(text, times[i].text);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(durations),
		cmocka_unit_test(sizes),
		cmocka_unit_test(shares_and_counts),
		cmocka_unit_test(texts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
