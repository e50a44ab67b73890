/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each message of the table as a datagram: good, from the wrong end, on another edge, short, long,
 * with a false length, with one descriptor too few or too many. Refused descriptors are closed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/ipc/datagram.h"
#include "lib/ipc/wire.h"
#include "proto_samples.h"

#include <errno.h>
#include <fcntl.h>

struct pair {
	int fds[2];
	int extra; /* /dev/null, to send along */
};

static uint8_t room_bytes[IPC_MAX];

static int
open_fds(void)
{
	int n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static void
pair_open(struct pair *p)
{
	struct err err = {0};

	assert_int_equal(ipc_pair(p->fds, &err), 0);
	p->extra = open("/dev/null", O_RDONLY | O_CLOEXEC);
	assert_true(p->extra >= 0);
}

static void
pair_close(struct pair *p)
{
	(void)close(p->fds[0]);
	(void)close(p->fds[1]);
	(void)close(p->extra);
}

/* Sends a datagram with `nfds` descriptors and reads it as (edge, from). */
static int
send_and_read(struct pair *p, struct view packed, size_t nfds, enum edge edge, enum room from)
{
	int fds[IPC_FDS_MAX] = {p->extra, p->extra, p->extra};
	struct ipc_msg m;
	struct err err = {0};
	int r;

	assert_int_equal(ipc_write(p->fds[0], packed, fds, nfds, &err), 0);
	r = ipc_read(p->fds[1], edge, from, room_bytes, sizeof(room_bytes), &m, &err);
	if (r == 0)
		ipc_msg_done(&m);
	else
		assert_true(err.text[0] != '\0');
	return r;
}

static void
pack(struct buf *b, unsigned type, unsigned nfds, uint32_t length, struct view body)
{
	buf_clear(b);
	wire_put_u16(b, (uint16_t)type);
	wire_put_u16(b, (uint16_t)nfds);
	wire_put_u32(b, length);
	wire_put_u64(b, 7);
	buf_add_view(b, body);
}

static void
each_message(void **state)
{
	struct pair p;
	int before;

	(void)state;
	pair_open(&p);
	before = open_fds();
	for (unsigned i = 0; i < MSG_MAX; i++) {
		const struct msg_info *info = &msg_info[i];
		enum edge other_edge = info->edge == EDGE_API_ENGINE ? EDGE_API_RELAY
								     : EDGE_API_ENGINE;
		auto_buf struct buf body, b;
		uint32_t n;

		buf_init(&body, IPC_MAX);
		buf_init(&b, IPC_MAX);
		msg_samples[i].zero(&body);
		n = (uint32_t)body.n;
		pack(&b, i, info->fds, n, buf_view(&body));
		assert_int_equal(
			send_and_read(&p, buf_view(&b), info->fds, info->edge, info->from), 0);
		assert_int_equal(
			send_and_read(&p, buf_view(&b), info->fds, info->edge, info->to), -EBADMSG);
		assert_int_equal(send_and_read(&p, buf_view(&b), info->fds, other_edge, info->from),
			-EBADMSG);
		assert_int_equal(
			send_and_read(&p, buf_view(&b), info->fds + 1U, info->edge, info->from),
			-EBADMSG);
		if (info->fds > 0)
			assert_int_equal(send_and_read(&p, buf_view(&b), 0, info->edge, info->from),
				-EBADMSG);
		pack(&b, i, info->fds, n + 1, buf_view(&body));
		assert_int_equal(send_and_read(&p, buf_view(&b), info->fds, info->edge, info->from),
			-EBADMSG);
		if (n > 0) {
			pack(&b, i, info->fds, n - 1, buf_view(&body));
			assert_int_equal(
				send_and_read(&p, buf_view(&b), info->fds, info->edge, info->from),
				-EBADMSG);
		}
		pack(&b, MSG_MAX + i, info->fds, n, buf_view(&body));
		assert_int_equal(send_and_read(&p, buf_view(&b), info->fds, info->edge, info->from),
			-EBADMSG);
		pack(&b, i, info->fds, n, buf_view(&body));
		assert_int_equal(send_and_read(&p, view_of(b.p, IPC_HEADER_BYTES - 1), 0,
					 info->edge, info->from),
			-EBADMSG);
	}
	assert_int_equal(open_fds(), before);
	pair_close(&p);
}

static void
too_long_for_its_room(void **state)
{
	struct pair p;
	auto_buf struct buf b;
	struct ipc_msg m;
	struct err err = {0};
	size_t room = ipc_room_bytes(EDGE_SUPERVISOR_RELAY, ROOM_SUPERVISOR);

	(void)state;
	pair_open(&p);
	buf_init(&b, 4096);
	for (size_t i = 0; i < room + 1; i++)
		buf_add_byte(&b, 0);
	assert_int_equal(ipc_write(p.fds[0], buf_view(&b), NULL, 0, &err), 0);
	assert_int_equal(ipc_read(p.fds[1], EDGE_SUPERVISOR_RELAY, ROOM_SUPERVISOR, room_bytes,
				 room, &m, &err),
		-EBADMSG);
	pair_close(&p);
}

static void
closed_and_empty(void **state)
{
	struct pair p;
	struct ipc_msg m;
	struct err err = {0};

	(void)state;
	pair_open(&p);
	assert_int_equal(ipc_read(p.fds[1], EDGE_API_ENGINE, ROOM_API, room_bytes,
				 sizeof(room_bytes), &m, &err),
		-EAGAIN);
	(void)close(p.fds[0]);
	assert_int_equal(ipc_read(p.fds[1], EDGE_API_ENGINE, ROOM_API, room_bytes,
				 sizeof(room_bytes), &m, &err),
		-EPIPE);
	(void)close(p.fds[1]);
	(void)close(p.extra);
}

/* An end that closes with something unread: its own last word is read before its end is told. */
static void
last_word(void **state)
{
	struct pair p;
	struct ipc_msg m;
	struct err err = {0};
	auto_buf struct buf body, b;

	(void)state;
	pair_open(&p);
	buf_init(&body, IPC_MAX);
	buf_init(&b, IPC_MAX);
	msg_samples[MSG_RELAY_LOST].zero(&body);
	pack(&b, MSG_RELAY_LOST, 0, (uint32_t)body.n, buf_view(&body));
	assert_int_equal(ipc_write(p.fds[1], view_str("unread"), NULL, 0, &err), 0);
	assert_int_equal(ipc_write(p.fds[0], buf_view(&b), NULL, 0, &err), 0);
	(void)close(p.fds[0]);
	assert_int_equal(ipc_read(p.fds[1], EDGE_RELAY_ENGINE, ROOM_RELAY, room_bytes,
				 sizeof(room_bytes), &m, &err),
		0);
	assert_int_equal(m.type, MSG_RELAY_LOST);
	assert_int_equal(ipc_read(p.fds[1], EDGE_RELAY_ENGINE, ROOM_RELAY, room_bytes,
				 sizeof(room_bytes), &m, &err),
		-EPIPE);
	(void)close(p.fds[1]);
	(void)close(p.extra);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_message),
		cmocka_unit_test(too_long_for_its_room),
		cmocka_unit_test(closed_and_empty),
		cmocka_unit_test(last_word),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
