/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzing of the approvers file. A file that holds: every key is found by its bytes, every line is a file of its own that says the same, and
 * the file with anything behind its last line end does not hold.
 */
#include "lib/approval/approvers.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void
check_line(const struct approver *a)
{
	auto_buf struct buf line = {.max = APPROVER_LINE_MAX + 1};
	auto_approvers struct approvers alone = {0};
	struct err err;

	buf_add_view(&line, a->line);
	buf_add_byte(&line, '\n');
	must(approvers_read(buf_view(&line), &alone, &err) == 0 && alone.n == 1);
	must(view_eq(alone.a[0].name, a->name) && view_eq(alone.a[0].may, a->may));
	must(alone.a[0].valid_until_ms == a->valid_until_ms && alone.a[0].nlimits == a->nlimits);
	must(approver_name_ok(a->name) && approver_is(a, a->name));
	must(!approver_may(a, view_str("")) && !approver_may(a, view_str("*")));
	(void)approver_within(a, view_str("{\"cents\":1}"), view_str("cents"));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	auto_approvers struct approvers a = {0};
	auto_buf struct buf longer = {.max = APPROVERS_BYTES_MAX + 2};
	struct approvers never = {0};
	struct err err;

	if (approvers_read(view_of(data, n), &a, &err) < 0)
		return 0;
	must(a.people <= a.n && a.n <= APPROVERS_MAX);
	for (size_t i = 0; i < a.n; i++) {
		must(approvers_find(&a, a.a[i].key.blob) == &a.a[i]);
		check_line(&a.a[i]);
	}
	buf_add(&longer, data, n);
	buf_add_str(&longer, "x");
	must(approvers_read(buf_view(&longer), &never, &err) < 0);
	return 0;
}
