/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzing of conditions as text, over an operation of the sample. What condition_check accepts is then true or not; what it refuses is never
 * true. Up to the first newline the conditions (NUL between them), behind it the facts.
 */
#include "lib/action/condition.h"
#include "tests/actions/sample.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* Read once; lives as long as the process. */
static const struct operation *
refund(void)
{
	static struct buf document = {.max = OPERATION_BYTES_MAX};
	static struct operation op;
	struct err err;

	if (document.n == 0) {
		sample_document("refund", 1, &document);
		must(operation_read(buf_view(&document), &op, &err) == 0);
	}
	return &op;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	const uint8_t *end = n == 0 ? NULL : memchr(data, '\n', n);
	struct view text = view_of(data, end == NULL ? n : (size_t)(end - data));
	struct condition_world w = {.tenant = view_str("acme"), .task = view_str("tk_1")};
	struct err err = {0};
	int e, checked;

	w.op = refund();
	w.arguments = view_str("{\"cents\":4200,\"order_id\":\"48221\",\"reason\":\"late\"}");
	w.facts = end == NULL ? view_of(NULL, 0) : view_skip(view_of(data, n), text.n + 1);
	checked = condition_check(w.op, text, &err);
	must(checked == 0 || checked == -22);
	e = conditions_hold(&w, &err);
	must(e <= 0);
	e = conditions_hold_text(&w, text, &err);
	must(e <= 0 && (e == 0 || err.text[0] != 0));
	return 0;
}
