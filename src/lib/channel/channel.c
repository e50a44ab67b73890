/* SPDX-License-Identifier: Apache-2.0 */
/* Frames on a byte stream; see channel.h. */
#include "lib/channel/channel.h"

#include "lib/ipc/wire.h"

#include <errno.h>
#include <unistd.h>

/* A buffer that grew above this is given back when it is empty: an idle channel costs little. */
enum { KEEP_BYTES = 16384 };

void
channel_in_init(struct channel_in *in, bool other_is_guest)
{
	*in = (struct channel_in){.guest = other_is_guest};
}

void
channel_in_done(struct channel_in *in)
{
	free(in->room);
	*in = (struct channel_in){.guest = in->guest};
}

uint8_t *
channel_in_room(struct channel_in *in, size_t *ret_n)
{
	if (in->room == NULL)
		in->room = malloc(CHANNEL_IN_BYTES);
	if (in->room == NULL)
		return NULL;
	if (in->at == in->n) {
		in->at = in->n = 0;
	} else if (in->at > 0) {
		memmove(in->room, in->room + in->at, in->n - in->at);
		in->n -= in->at;
		in->at = 0;
	}
	*ret_n = CHANNEL_IN_BYTES - in->n;
	return in->room + in->n;
}

void
channel_in_grew(struct channel_in *in, size_t n)
{
	must(n <= CHANNEL_IN_BYTES - in->n);
	in->n += n;
}

int
channel_in_fill(struct channel_in *in, int fd, struct err *err)
{
	size_t n = 0;
	uint8_t *room = channel_in_room(in, &n);
	ssize_t r;

	if (room == NULL)
		return err_set(err, -ENOMEM, "no memory for the channel");
	must(n > 0); /* any frame fits: whoever asks for more has taken the complete ones */
	do
		r = read(fd, room, n);
	while (r < 0 && errno == EINTR);
	if (r < 0 && errno == EAGAIN)
		return err_set(err, -EAGAIN, "nothing to read");
	if (r < 0 && errno != ECONNRESET)
		return err_errno(err, "read the channel");
	if (r <= 0)
		return err_set(err, -EPIPE, "the other end closed the channel");
	in->n += (size_t)r;
	return (int)r;
}

int
channel_in_next(struct channel_in *in, struct frame *ret, struct err *err)
{
	struct view have = view_of(in->room + in->at, in->n - in->at);
	struct wire w = {.at = have};
	const struct frame_info *info;
	uint32_t length, stream;
	uint16_t type, flags;

	if (have.n < FRAME_HEADER_BYTES)
		return 0;
	length = wire_get_u32(&w);
	type = wire_get_u16(&w);
	flags = wire_get_u16(&w);
	stream = wire_get_u32(&w);
	if (type >= FRAME_MAX)
		return err_set(err, -EBADMSG, "unknown frame type %u", type);
	info = &frame_info[type];
	if (in->guest ? !info->from_guest : !info->from_host)
		return err_set(err, -EBADMSG, "%s comes from the wrong end", info->name);
	if (flags != 0)
		return err_set(err, -EBADMSG, "%s with flags %u", info->name, flags);
	if (length > info->body_max)
		return err_set(err, -EBADMSG, "%s with a body of %u bytes", info->name, length);
	if (have.n - FRAME_HEADER_BYTES < length)
		return 0;
	*ret = (struct frame){.type = (enum frame_type)type,
		.stream = stream,
		.body = view_of(have.p + FRAME_HEADER_BYTES, length)};
	in->at += FRAME_HEADER_BYTES + (size_t)length;
	return 1;
}

void
channel_out_init(struct channel_out *out, size_t max)
{
	buf_init(&out->b, max);
	out->at = 0;
}

void
channel_out_done(struct channel_out *out)
{
	buf_done(&out->b);
	out->at = 0;
}

int
channel_out_flush(struct channel_out *out, int fd, struct err *err)
{
	while (channel_out_left(out) > 0) {
		ssize_t r = write(fd, out->b.p + out->at, channel_out_left(out));

		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0 && errno == EAGAIN) {
			buf_drop(&out->b, out->at);
			out->at = 0;
			return err_set(err, -EAGAIN, "the channel is full");
		}
		if (r < 0)
			return err_errno(err, "write the channel");
		out->at += (size_t)r;
	}
	out->at = 0;
	if (out->b.cap > KEEP_BYTES)
		buf_done(&out->b);
	else
		out->b.n = 0;
	return 0;
}

static void
put_head(struct buf *b, enum frame_type type, uint32_t stream, size_t n)
{
	wire_put_u32(b, (uint32_t)n);
	wire_put_u16(b, (uint16_t)type);
	wire_put_u16(b, 0);
	wire_put_u32(b, stream);
}

void
channel_put(struct channel_out *out, enum frame_type type, uint32_t stream, struct view body)
{
	must(body.n <= frame_info[type].body_max);
	if (buf_room(&out->b, FRAME_HEADER_BYTES + body.n) == NULL)
		return;
	put_head(&out->b, type, stream, body.n);
	buf_add_view(&out->b, body);
}

void
channel_put_data(struct channel_out *out, enum frame_type type, uint32_t stream, struct view data)
{
	must(data.n <= CHANNEL_DATA_MAX);
	if (buf_room(&out->b, CHANNEL_DATA_HEAD + data.n) == NULL)
		return;
	put_head(&out->b, type, stream, 4 + data.n);
	wire_put_blob(&out->b, data, CHANNEL_DATA_MAX);
}

uint8_t *
channel_data_room(struct channel_out *out, size_t n)
{
	uint8_t *p;

	must(n <= CHANNEL_DATA_MAX);
	if (out->b.failed || CHANNEL_DATA_HEAD + n > out->b.max - out->b.n)
		return NULL;
	p = buf_room(&out->b, CHANNEL_DATA_HEAD + n);
	if (p == NULL) {
		out->b.failed = false; /* nothing is lost: the caller reads later */
		return NULL;
	}
	return p + CHANNEL_DATA_HEAD;
}

void
channel_data_commit(struct channel_out *out, enum frame_type type, uint32_t stream, size_t n)
{
	put_head(&out->b, type, stream, 4 + n);
	wire_put_u32(&out->b, (uint32_t)n);
	buf_grew(&out->b, n);
}
