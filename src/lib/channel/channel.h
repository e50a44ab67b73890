/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames of proto/channel.def on a byte stream: header reader and writer of both ends, relay and guest
 * agent. The reader believes nothing: a header with another direction, an unknown type, flags, or a body
 * longer than its row allows is an error before one byte of the body is waited for. What a frame means,
 * and in which order frames may come, is for the two ends.
 *
 * Neither side touches a descriptor but the one given; both may be empty and cost no memory then.
 */
#pragma once

#include "proto_gen.h"

enum {
	CHANNEL_VERSION = 1,
	CHANNEL_CREDIT = 256 << 10, /* bytes that each stream may send before the first CREDIT */
	CHANNEL_DATA_MAX = 32768,   /* bytes of STDIN, STDOUT, STDERR, SPEC in one frame */
	CHANNEL_IN_BYTES = 65536,   /* room of a reader: any frame fits */
	CHANNEL_DATA_HEAD = FRAME_HEADER_BYTES + 4,
};

struct frame {
	enum frame_type type;
	uint32_t stream;
	struct view body; /* borrowed from the reader, until its next fill */
};

struct channel_in {
	uint8_t *room; /* owned; NULL while nothing was read */
	size_t at, n;  /* bytes [at, n) of room were read and not yet given out */
	bool guest;    /* the other end is the guest */
};

void channel_in_init(struct channel_in *in, bool other_is_guest);
void channel_in_done(struct channel_in *in);

/* One read(2). The number of bytes; -EAGAIN; -EPIPE at the end of the stream; -ENOMEM; another error. */
int channel_in_fill(struct channel_in *in, int fd, struct err *err) MUST_CHECK;

/* Where bytes are put by someone who has no descriptor (fuzzing): room of *ret_n bytes, or NULL. */
uint8_t *channel_in_room(struct channel_in *in, size_t *ret_n);
void channel_in_grew(struct channel_in *in, size_t n);

/* 1 with the next frame, 0 when it is not complete, -EBADMSG. */
int channel_in_next(struct channel_in *in, struct frame *ret, struct err *err) MUST_CHECK;

/* Frames on their way out. */
struct channel_out {
	struct buf b;
	size_t at; /* bytes of b that were sent */
};

void channel_out_init(struct channel_out *out, size_t max);
void channel_out_done(struct channel_out *out);

static inline size_t
channel_out_left(const struct channel_out *out)
{
	return out->b.n - out->at;
}

/* Sends what it can. 0: all is sent; -EAGAIN; -EPIPE or another error: the channel is of no use. */
int channel_out_flush(struct channel_out *out, int fd, struct err *err) MUST_CHECK;

/*
 * Appends one frame; a frame that does not fit or finds no memory fails the buffer (buf_check(&out->b)), and
 * the channel is lost then.
 */
void channel_put(struct channel_out *out, enum frame_type type, uint32_t stream, struct view body);

/* A frame with one blob field. */
void channel_put_data(
	struct channel_out *out, enum frame_type type, uint32_t stream, struct view data);

/*
 * The same without a copy: room for at most n bytes (n <= CHANNEL_DATA_MAX), or NULL with the buffer not
 * failed; after n bytes were written there, commit makes the frame. Nothing may be put in between.
 */
uint8_t *channel_data_room(struct channel_out *out, size_t n);
void channel_data_commit(struct channel_out *out, enum frame_type type, uint32_t stream, size_t n);

/* CHANNEL_PUT(out, stream, ENDED, ended, {.code = 0}) */
#define CHANNEL_PUT(out, stream, NAME, name, ...)                              \
	do {                                                                   \
		const struct frame_##name m_ = __VA_ARGS__;                    \
		struct buf b_;                                                 \
		buf_init(&b_, FRAME_BODY_MAX);                                 \
		frame_##name##_put(&b_, &m_);                                  \
		if (buf_check(&b_) < 0)                                        \
			(out)->b.failed = true;                                \
		else                                                           \
			channel_put(out, FRAME_##NAME, stream, buf_view(&b_)); \
		buf_done(&b_);                                                 \
	} while (0)
