/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzing of the WebSocket decoder. Byte 0 chooses our side, byte 1 where the reads are cut, the
 * rest is what the peer sent. Whole and cut runs must see the same messages and the same verdict;
 * what is seen is encoded again and must decode to the same.
 */
#include "lib/http/ws.h"

enum { DATA_MAX = 1 << 16, MESSAGE_MAX = 4096 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* The run as one text: marks and payloads, and the frames that would have caused it. */
struct result {
	struct buf seen, frames, message;
	unsigned code;
};

static const uint8_t mask[4] = {0xa5, 1, 0x80, 0xff};

static void
event(struct result *r, const struct ws_event *e, const uint8_t *m)
{
	switch (e->kind) {
	case WS_EVENT_DATA:
		buf_add_view(&r->message, e->data);
		if (!e->end)
			return;
		buf_addf(&r->seen, "%u:%zu:", e->opcode, r->message.n);
		buf_add_view(&r->seen, buf_view(&r->message));
		must(r->message.n <= MESSAGE_MAX);
		must(e->opcode != WS_TEXT || view_utf8(buf_view(&r->message)));
		must(ws_frame_add(&r->frames, e->opcode, true, m, buf_view(&r->message)) == 0);
		buf_clear(&r->message);
		return;
	case WS_EVENT_PING:
	case WS_EVENT_PONG:
		buf_addf(&r->seen, "%u:%zu:", e->kind, e->data.n);
		buf_add_view(&r->seen, e->data);
		must(ws_frame_add(&r->frames, e->kind == WS_EVENT_PING ? WS_PING : WS_PONG, true, m,
			     e->data) == 0);
		return;
	case WS_EVENT_CLOSE:
		buf_addf(&r->seen, "c%u:", e->code);
		buf_add_view(&r->seen, e->data);
		if (e->code == WS_NO_CODE)
			must(ws_frame_add(&r->frames, WS_CLOSE, true, m, e->data) == 0);
		else
			must(ws_close_add(&r->frames, m, e->code, e->data) == 0);
		return;
	case WS_EVENT_REFUSED:
		must(e->code == WS_PROTOCOL || e->code == WS_NOT_UTF8 || e->code == WS_TOO_BIG);
		r->code = e->code;
		return;
	case WS_EVENT_MORE:
		return;
	}
}

static void
run(struct result *r, enum ws_side side, struct view in, size_t first, size_t step)
{
	struct ws ws;
	size_t had = 0;
	struct ws_event e;

	r->seen = r->frames = r->message = (struct buf){.max = 4 * DATA_MAX};
	r->code = 0;
	ws_init(&ws, side, MESSAGE_MAX);
	for (size_t have = first; had < in.n && r->code == 0; have += step) {
		size_t upto = have < in.n ? have : in.n, n = upto - had;
		auto_free uint8_t *copy = malloc(n + 1);
		uint8_t *p = copy;

		must(copy != NULL);
		memcpy(copy, in.p + had, n);
		had = upto;
		do {
			ws_next(&ws, &p, &n, &e);
			event(r, &e, side == WS_SERVER ? mask : NULL);
		} while (e.kind != WS_EVENT_MORE && e.kind != WS_EVENT_REFUSED);
		must(r->code != 0 || n == 0);
	}
}

static void
done(struct result *r)
{
	buf_done(&r->seen);
	buf_done(&r->frames);
	buf_done(&r->message);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct result whole, parts, again;
	struct view in;
	enum ws_side side;

	if (n < 3 || n > DATA_MAX)
		return 0;
	in = view_of(data + 2, n - 2);
	side = data[0] & 1 ? WS_CLIENT : WS_SERVER;
	run(&whole, side, in, in.n, 1);
	for (unsigned i = 0; i < 2; i++) {
		run(&parts, side, in, i == 0 ? 1 : 1 + data[1] % in.n, i == 0 ? 1 : in.n);
		must(whole.code == parts.code &&
			view_eq(buf_view(&whole.seen), buf_view(&parts.seen)));
		done(&parts);
	}
	run(&again, side, buf_view(&whole.frames), whole.frames.n, 1);
	must(again.code == 0 && view_eq(buf_view(&whole.seen), buf_view(&again.seen)));
	done(&again);
	done(&whole);
	return 0;
}
