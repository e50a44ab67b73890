/* SPDX-License-Identifier: Apache-2.0 */
/* WebSocket frames; see ws.h. */
#include "lib/http/ws.h"

#include <errno.h>

enum { FIN = 0x80, RSV = 0x70, OPCODE = 0x0f, MASKED = 0x80, LENGTH = 0x7f };

void
ws_init(struct ws *ws, enum ws_side side, uint64_t max_message)
{
	*ws = (struct ws){.side = side, .max = max_message};
}

static bool
is_control(uint8_t opcode)
{
	return (opcode & 8) != 0;
}

/* Codes that may stand in a close frame (RFC 6455, 7.4, and the registry: 1012 to 1014). */
static bool
close_code_ok(unsigned code)
{
	return (code >= 1000 && code <= 1003) || (code >= 1007 && code <= 1014) ||
	       (code >= 3000 && code <= 4999);
}

static bool
utf8_add(struct http_utf8 *u, struct view v)
{
	for (size_t i = 0; i < v.n; i++)
		if (!http_utf8_byte(u, v.p[i]))
			return false;
	return true;
}

/* Judges the first two bytes and says how long the frame head is; a close code refuses. */
static unsigned
head_start(struct ws *ws)
{
	uint8_t b0 = ws->head[0], b1 = ws->head[1], op = b0 & OPCODE, length = b1 & LENGTH;

	if (ws->closed || (b0 & RSV) != 0 || ((b1 & MASKED) != 0) != (ws->side == WS_SERVER))
		return WS_PROTOCOL;
	if (op > WS_PONG || (op > WS_BINARY && op < WS_CLOSE))
		return WS_PROTOCOL;
	if (is_control(op) && ((b0 & FIN) == 0 || length > WS_CONTROL_MAX))
		return WS_PROTOCOL;
	if (!is_control(op) && (op == WS_CONTINUATION) != (ws->message_op != 0))
		return WS_PROTOCOL;
	ws->head_want = (uint8_t)(2 +
				  (length == 126          ? 2
					  : length == 127 ? 8
							  : 0) +
				  ((b1 & MASKED) != 0 ? 4 : 0));
	return 0;
}

static unsigned
head_end(struct ws *ws)
{
	uint8_t length = ws->head[1] & LENGTH;
	unsigned bytes = length == 126 ? 2 : length == 127 ? 8 : 0;

	ws->left = bytes == 0 ? length : 0;
	for (unsigned i = 0; i < bytes; i++)
		ws->left = ws->left << 8 | ws->head[2 + i];
	if ((bytes == 2 && ws->left < 126) ||
		(bytes == 8 && (ws->left <= UINT16_MAX || ws->left >> 63 != 0)))
		return WS_PROTOCOL;
	ws->frame_op = ws->head[0] & OPCODE;
	ws->at = 0;
	ws->control_n = 0;
	ws->in_payload = true;
	if (is_control(ws->frame_op))
		return 0;
	if (ws->frame_op != WS_CONTINUATION) {
		ws->message_op = ws->frame_op;
		ws->total = 0;
	}
	return ws->left > ws->max - ws->total ? WS_TOO_BIG : 0;
}

/* Eats bytes of a frame head; true when it is complete. */
static bool
head_eat(struct ws *ws, uint8_t **p, size_t *n)
{
	while (*n > 0 && ws->reason == 0 && !ws->in_payload) {
		ws->head[ws->head_n++] = **p;
		(*p)++;
		(*n)--;
		if (ws->head_n == 2)
			ws->reason = head_start(ws);
		if (ws->reason == 0 && ws->head_n >= 2 && ws->head_n == ws->head_want)
			ws->reason = head_end(ws);
	}
	return ws->reason == 0 && ws->in_payload;
}

static void
unmask(const struct ws *ws, uint8_t *p, size_t n)
{
	const uint8_t *mask = ws->head + ws->head_want - 4;

	if (ws->side == WS_CLIENT)
		return;
	for (size_t i = 0; i < n; i++)
		p[i] ^= mask[(ws->at + i) & 3];
}

static void
frame_done(struct ws *ws)
{
	ws->in_payload = false;
	ws->head_n = ws->head_want = 0;
}

static bool
refuse(struct ws *ws, unsigned code)
{
	ws->reason = code;
	return false;
}

static bool
control_event(struct ws *ws, struct ws_event *ret)
{
	struct view data = view_of(ws->control, ws->control_n);

	frame_done(ws);
	ret->data = data;
	if (ws->frame_op != WS_CLOSE) {
		ret->kind = ws->frame_op == WS_PING ? WS_EVENT_PING : WS_EVENT_PONG;
		return true;
	}
	ret->kind = WS_EVENT_CLOSE;
	ret->code = WS_NO_CODE;
	if (data.n > 0) {
		if (data.n == 1)
			return refuse(ws, WS_PROTOCOL);
		ret->code = (unsigned)data.p[0] << 8 | data.p[1];
		ret->data = view_skip(data, 2);
		if (!close_code_ok(ret->code))
			return refuse(ws, WS_PROTOCOL);
		if (!view_utf8(ret->data))
			return refuse(ws, WS_NOT_UTF8);
	}
	ws->closed = true;
	return true;
}

/* Eats payload; true when *ret is an event. */
static bool
payload_eat(struct ws *ws, uint8_t **p, size_t *n, struct ws_event *ret)
{
	size_t take = *n < ws->left ? *n : (size_t)ws->left;
	uint8_t *piece = *p;

	if (take > 0)
		unmask(ws, piece, take);
	*p += take;
	*n -= take;
	ws->at += take;
	ws->left -= take;
	if (is_control(ws->frame_op)) {
		if (take > 0)
			memcpy(ws->control + ws->control_n, piece, take);
		ws->control_n = (uint8_t)(ws->control_n + take);
		return ws->left == 0 && control_event(ws, ret);
	}
	ret->kind = WS_EVENT_DATA;
	ret->opcode = (enum ws_opcode)ws->message_op;
	ret->data = view_of(piece, take);
	ret->end = ws->left == 0 && (ws->head[0] & FIN) != 0;
	ws->total += take;
	if (ret->opcode == WS_TEXT &&
		(!utf8_add(&ws->utf8, ret->data) || (ret->end && ws->utf8.n > 0)))
		return refuse(ws, WS_NOT_UTF8);
	if (ws->left == 0)
		frame_done(ws);
	if (ret->end)
		ws->message_op = 0;
	return take > 0 || ret->end;
}

void
ws_next(struct ws *ws, uint8_t **p, size_t *n, struct ws_event *ret)
{
	while (ws->reason == 0 && (ws->in_payload || *n > 0)) {
		if (!head_eat(ws, p, n) || (*n == 0 && ws->left > 0))
			break;
		*ret = (struct ws_event){0};
		if (payload_eat(ws, p, n, ret))
			return;
	}
	*ret = (struct ws_event){
		.kind = ws->reason != 0 ? WS_EVENT_REFUSED : WS_EVENT_MORE, .code = ws->reason};
}

int
ws_frame_add(
	struct buf *out, enum ws_opcode opcode, bool fin, const uint8_t *mask, struct view payload)
{
	uint8_t head[WS_HEAD_MAX], *body;
	size_t n = 2, length_bytes = payload.n < 126 ? 0 : payload.n <= UINT16_MAX ? 2 : 8;
	size_t start = out->n;

	if (is_control((uint8_t)opcode) && (!fin || payload.n > WS_CONTROL_MAX))
		return -EINVAL;
	head[0] = (uint8_t)((fin ? FIN : 0) | (uint8_t)opcode);
	head[1] = (uint8_t)((mask != NULL ? MASKED : 0) | (length_bytes == 0          ? payload.n
								  : length_bytes == 2 ? 126u
										      : 127u));
	for (size_t i = length_bytes; i-- > 0;)
		head[n++] = (uint8_t)((uint64_t)payload.n >> (8 * i));
	for (size_t i = 0; mask != NULL && i < 4; i++)
		head[n++] = mask[i];
	buf_add(out, head, n);
	buf_add_view(out, payload);
	if (buf_check(out) < 0) {
		out->n = start;
		return -ENOBUFS;
	}
	body = out->p + start + n;
	for (size_t i = 0; mask != NULL && i < payload.n; i++)
		body[i] ^= mask[i & 3];
	return 0;
}

int
ws_close_add(struct buf *out, const uint8_t *mask, unsigned code, struct view text)
{
	uint8_t payload[WS_CONTROL_MAX] = {(uint8_t)(code >> 8), (uint8_t)code};

	if (!close_code_ok(code) || text.n > WS_CONTROL_MAX - 2 || !view_utf8(text))
		return -EINVAL;
	if (text.n > 0)
		memcpy(payload + 2, text.p, text.n);
	return ws_frame_add(out, WS_CLOSE, true, mask, view_of(payload, text.n + 2));
}
