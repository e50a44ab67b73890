/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The WebSocket handshake; see ws_hand.h. SHA-1 is what the protocol asks for; nothing is secret
 * here.
 */
#include "lib/http/ws_hand.h"

#include "lib/http/write.h"

#include <sha1.h>

enum { KEY_CHARS = WS_KEY_TEXT - 1, KEY_DATA_CHARS = 22 };

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* Base 64 (RFC 4648) with padding and a NUL. */
static void
base64(const uint8_t *p, size_t n, char *ret)
{
	for (size_t i = 0; i < n; i += 3) {
		uint32_t v = (uint32_t)p[i] << 16 | (i + 1 < n ? (uint32_t)p[i + 1] << 8 : 0) |
			     (i + 2 < n ? p[i + 2] : 0u);

		*ret++ = alphabet[v >> 18];
		*ret++ = alphabet[v >> 12 & 63];
		*ret++ = i + 1 < n ? alphabet[v >> 6 & 63] : '=';
		*ret++ = i + 2 < n ? alphabet[v & 63] : '=';
	}
	*ret = '\0';
}

/* The canonical text of 16 bytes: 22 digits, the last with four zero bits, and "==". */
static bool
key_ok(struct view key)
{
	const char *last;

	if (key.n != KEY_CHARS || key.p[KEY_DATA_CHARS] != '=' || key.p[KEY_DATA_CHARS + 1] != '=')
		return false;
	for (size_t i = 0; i < KEY_DATA_CHARS; i++)
		if (key.p[i] == '\0' || strchr(alphabet, key.p[i]) == NULL)
			return false;
	last = strchr(alphabet, key.p[KEY_DATA_CHARS - 1]);
	return last != NULL && ((last - alphabet) & 15) == 0;
}

static void
accept_of(struct view key, char ret[static WS_ACCEPT_TEXT])
{
	static const char guid[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
	uint8_t digest[SHA1_DIGEST_LENGTH];
	SHA1_CTX ctx;

	SHA1Init(&ctx);
	SHA1Update(&ctx, key.p, key.n);
	SHA1Update(&ctx, (const uint8_t *)guid, sizeof(guid) - 1);
	SHA1Final(digest, &ctx);
	base64(digest, sizeof(digest), ret);
}

/* Exactly one field of this name. */
static bool
one_field(const struct http_head *head, const char *name, struct view *ret)
{
	unsigned n;
	const struct http_field *f = http_head_field(head, name, &n);

	if (f != NULL)
		*ret = f->value;
	return f != NULL;
}

enum http_reason
ws_hand_check(const struct http_head *head, char ret_accept[static WS_ACCEPT_TEXT])
{
	struct view upgrade, version, key;

	if (head->side != HTTP_REQUEST || head->method != HTTP_GET || head->minor != 1 ||
		head->framing != HTTP_BODY_NONE || !head->upgrade)
		return HTTP_NO_WEBSOCKET;
	if (!one_field(head, "upgrade", &upgrade) ||
		!view_eq_nocase(upgrade, view_str("websocket")))
		return HTTP_NO_WEBSOCKET;
	if (!one_field(head, "sec-websocket-version", &version))
		return HTTP_NO_WEBSOCKET;
	if (!view_is(version, "13"))
		return HTTP_NO_WEBSOCKET_VERSION;
	if (!one_field(head, "sec-websocket-key", &key) || !key_ok(key))
		return HTTP_NO_WEBSOCKET;
	accept_of(key, ret_accept);
	return HTTP_FINE;
}

int
ws_hand_answer(struct buf *out, const char *accept)
{
	struct http_write w;

	http_write_response(&w, out, 101);
	http_write_field(&w, "Upgrade", view_str("websocket"));
	http_write_field(&w, "Connection", view_str("Upgrade"));
	http_write_field(&w, "Sec-WebSocket-Accept", view_str(accept));
	return http_write_end(&w);
}

void
ws_hand_key(const uint8_t nonce[static WS_NONCE_BYTES], char ret[static WS_KEY_TEXT])
{
	base64(nonce, WS_NONCE_BYTES, ret);
}

enum http_reason
ws_hand_verify(const struct http_head *head, const char *key)
{
	char want[WS_ACCEPT_TEXT];
	struct view upgrade, accept;
	unsigned extensions, protocols;

	if (head->side != HTTP_RESPONSE || head->status != 101 || !head->upgrade)
		return HTTP_NO_WEBSOCKET;
	if (!one_field(head, "upgrade", &upgrade) ||
		!view_eq_nocase(upgrade, view_str("websocket")))
		return HTTP_NO_WEBSOCKET;
	accept_of(view_str(key), want);
	if (!one_field(head, "sec-websocket-accept", &accept) || !view_is(accept, want))
		return HTTP_NO_WEBSOCKET;
	(void)http_head_field(head, "sec-websocket-extensions", &extensions);
	(void)http_head_field(head, "sec-websocket-protocol", &protocols);
	return extensions == 0 && protocols == 0 ? HTTP_FINE : HTTP_NO_WEBSOCKET;
}
