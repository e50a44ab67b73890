/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzing of the channel: the reader of frames and every decoder behind it. The first byte chooses the end
 * that reads and the size of the pieces. What is accepted, written again, gives the same bytes.
 */
#include "lib/channel/channel.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void
check(bool good)
{
	if (!good)
		abort();
}

/* Decodes with the row's decoder; what it takes must be what its encoder writes. */
#define TRY(NAME, name)                                         \
	case FRAME_##NAME: {                                    \
		struct frame_##name m;                          \
		if (frame_##name##_get(f->body, &m, &err) == 0) \
			frame_##name##_put(&again, &m);         \
		else                                            \
			again.failed = true;                    \
		break;                                          \
	}

static void
check_frame(const struct frame *f)
{
	auto_buf struct buf again = {.max = FRAME_BODY_MAX};
	struct err err = {0};

	check(f->body.n <= frame_info[f->type].body_max);
	switch (f->type) {
		TRY(HELLO, hello)
		TRY(START, start)
		TRY(SPEC, spec)
		TRY(STDIN, stdin)
		TRY(STDIN_END, stdin_end)
		TRY(SIGNAL, signal)
		TRY(RESIZE, resize)
		TRY(CREDIT, credit)
		TRY(STDOUT, stdout)
		TRY(STDERR, stderr)
		TRY(ENTRY, entry)
		TRY(ENDED, ended)
		TRY(PING, ping)
		TRY(PONG, pong)
		TRY(PROPOSE, propose)
		TRY(PROPOSED, proposed)
		TRY(TRUST, trust)
	case FRAME_MAX:
		abort();
	}
	if (!again.failed)
		check(view_eq(buf_view(&again), f->body));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct view left = view_of(data, n);
	struct channel_in in;
	struct err err = {0};
	size_t piece;
	int r = 0;

	if (n == 0)
		return 0;
	channel_in_init(&in, (data[0] & 1) != 0);
	piece = (size_t)(data[0] >> 1) * 37 + 1;
	left = view_skip(left, 1);
	while (left.n > 0 && r >= 0) {
		struct frame f;
		size_t room_n = 0, take;
		uint8_t *room = channel_in_room(&in, &room_n);

		check(room != NULL && room_n > 0);
		take = piece < left.n ? piece : left.n;
		take = take < room_n ? take : room_n;
		memcpy(room, left.p, take);
		channel_in_grew(&in, take);
		left = view_skip(left, take);
		while ((r = channel_in_next(&in, &f, &err)) == 1) {
			check(in.guest ? frame_info[f.type].from_guest
				       : frame_info[f.type].from_host);
			check_frame(&f);
		}
	}
	channel_in_done(&in);
	return 0;
}
