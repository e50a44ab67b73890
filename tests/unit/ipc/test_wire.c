/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every message and every frame of the tables: what an encoder wrote is read back the same; one byte
 * less, one byte more, and values outside their set are refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/ipc/wire.h"
#include "proto_samples.h"

#include <errno.h>

static void
check_sample(const struct sample *s, const char *name)
{
	auto_buf struct buf body, again;
	struct err err = {0};

	buf_init(&body, 1 << 18);
	buf_init(&again, 1 << 18);
	s->zero(&body);
	assert_int_equal(buf_check(&body), 0);
	assert_int_equal(s->again(buf_view(&body), &again, &err), 0);
	assert_true(view_eq(buf_view(&body), buf_view(&again)));
	/* every shorter body */
	for (size_t n = 0; n < body.n && n < 64; n++)
		if (s->again(view_of(body.p, body.n - 1 - n), &again, &err) != -EBADMSG)
			fail_msg("%s: accepted without its last %zu bytes", name, n + 1);
	/* one byte more */
	buf_add_byte(&body, 0);
	if (s->again(buf_view(&body), &again, &err) != -EBADMSG)
		fail_msg("%s: accepted a trailing byte", name);
}

static void
all_messages(void **state)
{
	(void)state;
	for (size_t i = 0; i < MSG_MAX; i++)
		check_sample(&msg_samples[i], msg_info[i].name);
}

static void
all_frames(void **state)
{
	(void)state;
	for (size_t i = 0; i < FRAME_MAX; i++)
		check_sample(&frame_samples[i], frame_info[i].name);
}

/* Each single byte set to 0xff either is refused or comes back the same: nothing is repaired. */
static void
no_byte_is_repaired(void **state)
{
	(void)state;
	for (size_t i = 0; i < MSG_MAX; i++) {
		auto_buf struct buf body;

		buf_init(&body, 1 << 18);
		msg_samples[i].zero(&body);
		for (size_t at = 0; at < body.n; at++) {
			auto_buf struct buf again;
			struct err err = {0};
			uint8_t was = body.p[at];

			buf_init(&again, 1 << 18);
			body.p[at] = 0xff;
			if (msg_samples[i].again(buf_view(&body), &again, &err) == 0)
				assert_true(view_eq(buf_view(&body), buf_view(&again)));
			body.p[at] = was;
		}
	}
}

static void
fields_keep_their_bounds(void **state)
{
	auto_buf struct buf b;
	struct wire w;
	struct err err = {0};
	char text[8];

	(void)state;
	buf_init(&b, 4096);
	wire_put_blob(&b, view_str("12345"), 4);
	assert_int_equal(buf_check(&b), -ENOBUFS);
	buf_clear(&b);
	wire_put_str(&b, view_of("a\0b", 3), 16);
	assert_int_equal(buf_check(&b), -ENOBUFS);
	buf_clear(&b);
	wire_put_blob(&b, view_str("12345"), 5);
	w = (struct wire){.at = buf_view(&b)};
	(void)wire_get_blob(&w, 4);
	assert_int_equal(wire_end(&w, "x", &err), -EBADMSG);
	/* a text needs its NUL and nothing behind it */
	w = (struct wire){.at = view_of("abcdefgh", 8)};
	wire_get_text(&w, text, 8);
	assert_int_equal(wire_end(&w, "x", &err), -EBADMSG);
	w = (struct wire){.at = view_of("abc\0\0x\0\0", 8)};
	wire_get_text(&w, text, 8);
	assert_int_equal(wire_end(&w, "x", &err), -EBADMSG);
	w = (struct wire){.at = view_of("abc\0\0\0\0\0", 8)};
	wire_get_text(&w, text, 8);
	assert_int_equal(wire_end(&w, "x", &err), 0);
	assert_string_equal(text, "abc");
	/* booleans and enums */
	w = (struct wire){.at = view_of("\2", 1)};
	(void)wire_get_u8_below(&w, 2);
	assert_int_equal(wire_end(&w, "x", &err), -EBADMSG);
}

static void
enum_texts(void **state)
{
	enum job_reason reason;

	(void)state;
	for (unsigned i = 0; i < JOB_REASON_MAX; i++) {
		assert_int_equal(
			job_reason_parse(view_str(job_reason_text((enum job_reason)i)), &reason),
			0);
		assert_int_equal(reason, i);
	}
	assert_int_equal(job_reason_parse(view_str("oom "), &reason), -EINVAL);
	assert_non_null(error_info(ERROR_NOT_FOUND));
	assert_null(error_info(0));
	assert_null(error_info(ERROR_MAX));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_messages),
		cmocka_unit_test(all_frames),
		cmocka_unit_test(no_byte_is_repaired),
		cmocka_unit_test(fields_keep_their_bounds),
		cmocka_unit_test(enum_texts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
