/* SPDX-License-Identifier: Apache-2.0 */
/*
 * WebSocket frames (RFC 6455) for both sides, after the handshake of ws_hand.h. No extensions, so
 * every reserved bit is refused.
 *
 * The decoder eats from the front of the caller's bytes, unmasks in place, and hands out pieces
 * of messages (borrowed). Refused: frames masked on the wrong side, unknown opcodes, control
 * frames that are long or fragmented, lengths in a longer form than needed, a fragment without a
 * start, a start inside of a message, messages above the maximum, text that is not UTF-8, illegal
 * close codes, anything behind a close frame. The verdict does not depend on how bytes were cut
 * into reads.
 */
#pragma once

#include "lib/base/buf.h"
#include "lib/http/utf8.h"

enum ws_opcode {
	WS_CONTINUATION = 0,
	WS_TEXT = 1,
	WS_BINARY = 2,
	WS_CLOSE = 8,
	WS_PING = 9,
	WS_PONG = 10,
};

enum ws_side { WS_SERVER, WS_CLIENT }; /* who we are */

enum {
	WS_CONTROL_MAX = 125,
	WS_HEAD_MAX = 14,
	WS_GOING_AWAY = 1001,
	WS_NORMAL = 1000,
	WS_PROTOCOL = 1002,
	WS_NO_CODE = 1005, /* a close frame without code; never sent */
	WS_NOT_UTF8 = 1007,
	WS_POLICY = 1008,
	WS_TOO_BIG = 1009,
};

struct ws {
	enum ws_side side;
	uint64_t max; /* bytes of one message */
	uint8_t head[WS_HEAD_MAX];
	uint8_t head_n;    /* bytes of the frame head so far */
	uint8_t head_want; /* 0: its size is not known yet */
	bool in_payload;
	bool closed;
	uint8_t frame_op;   /* of the current frame */
	uint8_t message_op; /* of the message under way; 0: none */
	uint8_t control[WS_CONTROL_MAX];
	uint8_t control_n;
	uint64_t left;  /* payload bytes of the current frame */
	uint64_t at;    /* payload bytes seen of it: the place in the mask */
	uint64_t total; /* bytes of the message so far */
	struct http_utf8 utf8;
	unsigned reason; /* the close code to send after a refusal */
};

void ws_init(struct ws *ws, enum ws_side side, uint64_t max_message);

enum ws_event_kind {
	WS_EVENT_MORE, /* all bytes are eaten */
	WS_EVENT_DATA, /* a piece of a text or binary message; may be empty when `end` */
	WS_EVENT_PING, /* answer with a pong of the same data */
	WS_EVENT_PONG,
	WS_EVENT_CLOSE,   /* code (WS_NO_CODE: none given) and reason text */
	WS_EVENT_REFUSED, /* send a close frame with `code`, then close; stays so */
};

struct ws_event {
	enum ws_event_kind kind;
	enum ws_opcode opcode; /* WS_EVENT_DATA: WS_TEXT or WS_BINARY */
	bool end;              /* WS_EVENT_DATA: the message is complete */
	unsigned code;
	struct view data; /* borrowed: from the bytes for DATA, else from *ws until the next call */
};

/* *p and *n move forward over what was eaten; bytes are changed in place. */
void ws_next(struct ws *ws, uint8_t **p, size_t *n, struct ws_event *ret);

/*
 * Appends one frame. mask: four fresh random bytes on the client side, NULL on the server side.
 * -EINVAL for a control frame that is long or not final, -ENOBUFS; then nothing is appended.
 */
int ws_frame_add(struct buf *out, enum ws_opcode opcode, bool fin, const uint8_t *mask,
	struct view payload) MUST_CHECK;

/* A close frame; the code must be one that may be sent, the text UTF-8 of at most 123 bytes. */
int ws_close_add(struct buf *out, const uint8_t *mask, unsigned code, struct view text) MUST_CHECK;
