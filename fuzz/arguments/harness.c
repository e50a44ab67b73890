/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzing of arguments against the operations of the sample (the first byte chooses). What is accepted is canonical, is accepted again as it is,
 * and makes a request whose address has nothing but printable ASCII.
 */
#include "lib/action/request.h"
#include "lib/action/schema.h"
#include "lib/canon/read.h"
#include "tests/actions/sample.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void
accepted(const struct operation *op, struct view arguments)
{
	auto_buf struct buf again = {.max = 65536}, defaulted = {.max = 4096};
	struct request_values v = {.arguments = arguments,
		.tenant = view_str("acme"),
		.task = view_str("tk_0000000000000000"),
		.proposal = view_str("pr_0000000000000000"),
		.key = view_str("dml-0")};
	struct request r;
	struct err err;

	must(canon_check(arguments, true, &err) == 0);
	must(schema_apply(op, arguments, &again, &defaulted, &err) == 0);
	must(view_eq(buf_view(&again), arguments) && defaulted.n == 0);
	must(schema_amount(op, arguments) >= 0);
	if (request_render(op, &v, &r, &err) < 0)
		return;
	for (size_t i = 0; i < r.url.n; i++)
		must(r.url.p[i] > 0x20 && r.url.p[i] < 0x7f);
	request_done(&r);
}

/* Read once; lives as long as the process. */
static const struct operation *
sample(void)
{
	static struct catalogue c;
	struct err err;

	if (c.n == 0) {
		auto_fd int fd = sample_catalogue_fd(1);

		must(catalogue_read(fd, &c, &err) == 0);
	}
	return c.op;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	auto_buf struct buf out = {.max = 65536}, defaulted = {.max = 4096};
	const struct operation *op = sample();
	struct err err;

	if (n == 0)
		return 0;
	op += data[0] % SAMPLE_OPERATIONS;
	if (schema_apply(op, view_of(data + 1, n - 1), &out, &defaulted, &err) == 0)
		accepted(op, buf_view(&out));
	return 0;
}
