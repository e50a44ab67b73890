/* SPDX-License-Identifier: Apache-2.0 */
/* Frames on a byte stream: every header that may not be, pieces of every size, a full channel. */
#include "lib/channel/channel.h"

#include "lib/ipc/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static void
feed(struct channel_in *in, const void *p, size_t n)
{
	size_t room_n = 0;
	uint8_t *room = channel_in_room(in, &room_n);

	assert_true(n <= room_n);
	memcpy(room, p, n);
	channel_in_grew(in, n);
}

static int
header(bool from_guest, uint32_t length, uint16_t type, uint16_t flags)
{
	auto_buf struct buf b = {.max = 64};
	struct channel_in in;
	struct err err = {0};
	struct frame f;
	int r;

	wire_put_u32(&b, length);
	wire_put_u16(&b, type);
	wire_put_u16(&b, flags);
	wire_put_u32(&b, 1);
	channel_in_init(&in, from_guest);
	feed(&in, b.p, b.n);
	r = channel_in_next(&in, &f, &err);
	channel_in_done(&in);
	return r;
}

static void
headers(void **state)
{
	(void)state;
	for (unsigned type = 0; type < FRAME_MAX; type++)
		for (int guest = 0; guest < 2; guest++) {
			const struct frame_info *info = &frame_info[type];
			bool may = guest ? info->from_guest : info->from_host;
			int empty = header(guest, 0, (uint16_t)type, 0);

			assert_int_equal(empty, may ? 1 : -EBADMSG);
			if (!may)
				continue;
			assert_int_equal(header(guest, info->body_max, (uint16_t)type, 0),
				info->body_max == 0 ? 1 : 0);
			assert_int_equal(
				header(guest, info->body_max + 1, (uint16_t)type, 0), -EBADMSG);
			assert_int_equal(header(guest, UINT32_MAX, (uint16_t)type, 0), -EBADMSG);
			for (unsigned bit = 0; bit < 16; bit++)
				assert_int_equal(
					header(guest, 0, (uint16_t)type, (uint16_t)(1u << bit)),
					-EBADMSG);
		}
	for (unsigned type = FRAME_MAX; type <= UINT16_MAX; type += 97)
		for (int guest = 0; guest < 2; guest++)
			assert_int_equal(header(guest, 0, (uint16_t)type, 0), -EBADMSG);
}

static void
pieces(void **state)
{
	struct channel_out out;

	(void)state;
	channel_out_init(&out, 1 << 20);
	for (uint32_t i = 1; i <= 50; i++) {
		uint8_t data[700];

		memset(data, (int)i, sizeof(data));
		channel_put_data(&out, FRAME_STDOUT, i, view_of(data, i * 14));
		CHANNEL_PUT(&out, i, ENDED, ended, {.code = (int32_t)i});
	}
	assert_int_equal(buf_check(&out.b), 0);
	for (size_t piece = 1; piece < 3000; piece += 41) {
		struct channel_in in;
		struct view left = buf_view(&out.b);
		uint32_t frames = 0;

		channel_in_init(&in, true);
		while (left.n > 0) {
			struct err err = {0};
			struct frame f;
			size_t n = piece < left.n ? piece : left.n;

			feed(&in, left.p, n);
			left = view_skip(left, n);
			while (channel_in_next(&in, &f, &err) == 1) {
				uint32_t i = frames / 2 + 1;

				assert_int_equal(f.stream, i);
				assert_int_equal(
					f.type, frames % 2 == 0 ? FRAME_STDOUT : FRAME_ENDED);
				if (frames % 2 == 0) {
					struct frame_stdout m;

					assert_int_equal(frame_stdout_get(f.body, &m, &err), 0);
					assert_int_equal(m.data.n, i * 14);
					assert_int_equal(m.data.p[m.data.n - 1], i);
				}
				frames++;
			}
		}
		assert_int_equal(frames, 100);
		channel_in_done(&in);
	}
	channel_out_done(&out);
}

static void
largest_frame_fits(void **state)
{
	static uint8_t data[CHANNEL_DATA_MAX];
	struct channel_out out;
	struct channel_in in;
	struct frame f;
	struct err err = {0};

	(void)state;
	channel_out_init(&out, 1 << 20);
	channel_put_data(&out, FRAME_STDOUT, 1, view_of(data, sizeof(data)));
	channel_in_init(&in, true);
	feed(&in, out.b.p, out.b.n - 1);
	assert_int_equal(channel_in_next(&in, &f, &err), 0);
	feed(&in, out.b.p + out.b.n - 1, 1);
	assert_int_equal(channel_in_next(&in, &f, &err), 1);
	assert_int_equal(f.body.n, 4 + CHANNEL_DATA_MAX);
	channel_in_done(&in);
	channel_out_done(&out);
}

static void
room_without_a_copy(void **state)
{
	struct channel_out out, copy;
	uint8_t *room;

	(void)state;
	channel_out_init(&out, 1000);
	channel_out_init(&copy, 1000);
	room = channel_data_room(&out, 100);
	memset(room, 'x', 30);
	channel_data_commit(&out, FRAME_STDERR, 9, 30);
	channel_put_data(&copy, FRAME_STDERR, 9, view_of("xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", 30));
	assert_true(view_eq(buf_view(&out.b), buf_view(&copy.b)));
	assert_null(channel_data_room(&out, 1000)); /* above the maximum: nothing is lost */
	assert_int_equal(buf_check(&out.b), 0);
	channel_out_done(&out);
	channel_out_done(&copy);
}

static void
over_a_socket(void **state)
{
	struct channel_out out;
	struct channel_in in;
	struct err err = {0};
	struct frame f;
	uint64_t sum = 0;
	int fds[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
	channel_out_init(&out, 4 << 20);
	channel_in_init(&in, false);
	for (uint64_t i = 0; i < 100000; i++)
		CHANNEL_PUT(&out, 0, PING, ping, {.value = i});
	assert_int_equal(channel_out_flush(&out, fds[0], &err), -EAGAIN);
	while (channel_out_left(&out) > 0) {
		while (channel_in_fill(&in, fds[1], &err) > 0)
			while (channel_in_next(&in, &f, &err) == 1) {
				struct frame_ping m;

				assert_int_equal(frame_ping_get(f.body, &m, &err), 0);
				assert_int_equal(m.value, sum++);
			}
		assert_int_equal(err.code, -EAGAIN);
		assert_true(channel_out_flush(&out, fds[0], &err) <= 0);
	}
	while (channel_in_fill(&in, fds[1], &err) > 0)
		while (channel_in_next(&in, &f, &err) == 1)
			sum++;
	assert_int_equal(sum, 100000);
	assert_true(out.b.cap <= 16384); /* given back */
	(void)close(fds[0]);
	assert_int_equal(channel_in_fill(&in, fds[1], &err), -EPIPE);
	(void)close(fds[1]);
	channel_in_done(&in);
	channel_out_done(&out);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(headers),
		cmocka_unit_test(pieces),
		cmocka_unit_test(largest_frame_fits),
		cmocka_unit_test(room_without_a_copy),
		cmocka_unit_test(over_a_socket),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
