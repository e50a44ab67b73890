/* SPDX-License-Identifier: Apache-2.0 */
/* Every status from 100 to 599 against what the capability record says of it; G1 to G9. */
#include "broker/classify.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const struct operation bare = {
	.success = {.code = {200, 201}, .n = 2}, .pending = {.code = {202}, .n = 1}};

static struct operation
rich(void)
{
	struct operation op = bare;

	op.provider.capability.key = true;
	op.provider.capability.definite = (struct codes){.code = {400, 404}, .n = 2};
	op.provider.capability.not_processed = (struct codes){.code = {425, 429}, .n = 2};
	op.provider.capability.concurrent = (struct codes){.code = {409}, .n = 1};
	return op;
}

static enum answer_class
expected(unsigned status, bool capability)
{
	if (status == 200 || status == 201)
		return CLASS_SUCCEEDED;
	if (capability && (status == 400 || status == 404))
		return CLASS_FAILED;
	if (capability && (status == 425 || status == 429))
		return CLASS_NOT_PROCESSED;
	return CLASS_UNKNOWN;
}

static void
G_every_status_means_what_the_record_says(void **state)
{
	struct operation op = rich();

	(void)state;
	for (unsigned status = 0; status < 1000; status++) {
		assert_int_equal(classify(&bare, status, true).class, expected(status, false));
		assert_false(classify(&bare, status, true).incident);
		assert_int_equal(classify(&op, status, true).class, expected(status, true));
		/* G7: a key that belongs to another request. */
		assert_int_equal(classify(&op, status, true).incident, status == 422);
		/* G2: an answer that is not whole says nothing. */
		assert_int_equal(classify(&op, status, false).class, CLASS_UNKNOWN);
	}
}

static void
B8_a_redirection_is_unknown_whatever_lists_it(void **state)
{
	struct operation op = rich();

	(void)state;
	op.success = (struct codes){.code = {303}, .n = 1};
	op.provider.capability.definite = (struct codes){.code = {302}, .n = 1};
	op.provider.capability.not_processed = (struct codes){.code = {307}, .n = 1};
	assert_int_equal(classify(&op, 303, true).class, CLASS_UNKNOWN);
	assert_int_equal(classify(&op, 302, true).class, CLASS_UNKNOWN);
	assert_int_equal(classify(&op, 307, true).class, CLASS_UNKNOWN);
}

static void
G7_a_definite_422_is_a_refusal(void **state)
{
	struct operation op = rich();

	(void)state;
	op.provider.capability.definite = (struct codes){.code = {422}, .n = 1};
	assert_int_equal(classify(&op, 422, true).class, CLASS_FAILED);
	assert_false(classify(&op, 422, true).incident);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(G_every_status_means_what_the_record_says),
		cmocka_unit_test(B8_a_redirection_is_unknown_whatever_lists_it),
		cmocka_unit_test(G7_a_definite_422_is_a_refusal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
