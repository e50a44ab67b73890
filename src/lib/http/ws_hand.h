/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The WebSocket handshake (RFC 6455, 4) for both sides, over heads that head.h accepted. Offers of
 * extensions and sub-protocols are ignored by the server, and an answer that names any is refused
 * by the client, which never offers one. No relaying before a validated 101.
 */
#pragma once

#include "lib/base/buf.h"
#include "lib/http/head.h"

enum { WS_NONCE_BYTES = 16, WS_KEY_TEXT = 25, WS_ACCEPT_TEXT = 29 }; /* with NUL */

/*
 * A request for a WebSocket: GET, HTTP/1.1, no body, one Upgrade: websocket and nothing else,
 * Connection: upgrade, version 13, one key of 16 bytes. Fills the text for Sec-WebSocket-Accept.
 * WEBSOCKET_VERSION is answered with 426 and Sec-WebSocket-Version: 13.
 */
enum http_reason ws_hand_check(
	const struct http_head *head, char ret_accept[static WS_ACCEPT_TEXT]) MUST_CHECK;

/* The 101 of the server. */
int ws_hand_answer(struct buf *out, const char *accept) MUST_CHECK;

/* The key that the client sends for 16 fresh random bytes. */
void ws_hand_key(const uint8_t nonce[static WS_NONCE_BYTES], char ret[static WS_KEY_TEXT]);

/* The answer that the client got to `key`. */
enum http_reason ws_hand_verify(const struct http_head *head, const char *key) MUST_CHECK;
