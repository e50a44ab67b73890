/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzing of an operation's document. What is accepted is canonical, and everything that later reads its parts finds them: the request of some
 * arguments is built or refused, never more.
 */
#include "lib/action/request.h"
#include "lib/canon/read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void
use(const struct operation *op)
{
	struct request_values v = {.arguments = view_str("{}"),
		.tenant = view_str("acme"),
		.task = view_str("tk_0000000000000000"),
		.proposal = view_str("pr_0000000000000000"),
		.key = view_str("dml-0"),
		.reference = view_str("re_1")};
	struct answer_field f[16];
	struct lookup_rule rule;
	struct request r;
	struct err err;

	if (request_render(op, &v, &r, &err) == 0)
		request_done(&r);
	if (request_render_verify(op, &v, &r, &err) == 0)
		request_done(&r);
	if (request_render_lookup(op, &v, &r, &err) == 0)
		request_done(&r);
	must(request_receipt_fields(op, f, 16) <= 16);
	must(request_fact_fields(op, f, 16) <= 16);
	must(request_echo_fields(op, f, 16) <= 16);
	if (request_lookup_rule(op, &rule))
		must(!lookup_rule_has(rule.succeeded, view_str("\"")));
	must(operation_tier(op, INT64_MAX)->quorum >= operation_tier(op, 0)->quorum);
	must(op->effect != EFFECT_IRREVERSIBLE || (op->verify.n > 0 && op->base.quorum > 0));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct operation op;
	struct err err = {0};

	if (operation_read(view_of(data, n), &op, &err) == 0) {
		must(canon_check(view_of(data, n), true, &err) == 0);
		use(&op);
	} else {
		must(err.code < 0 && err.text[0] != 0);
	}
	return 0;
}
