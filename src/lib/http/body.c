/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies; see body.h. The chunk grammar is a machine over single bytes, so no cut can change it. */
#include "lib/http/body.h"

#include "lib/http/chars.h"

enum { SIZE_DIGITS = 16, EXTENSION_MAX = 64, EXTENSIONS_MAX = 4096, TRAILER_MAX = 4096 };

enum state {
	SIZE,            /* hex digits */
	EXTENSION_START, /* first byte of a name or value */
	EXTENSION,       /* further bytes */
	SIZE_LF,
	DATA,
	DATA_CR,
	DATA_LF,
	TRAILER_START, /* first byte of a trailer line, or CR of the end */
	TRAILER_NAME,
	TRAILER_VALUE,
	TRAILER_LF,
	END_LF,
	END,
};

void
http_body_init(struct http_body *b, const struct http_head *head, uint64_t max)
{
	must(head->framing != HTTP_BODY_TUNNEL);
	*b = (struct http_body){.framing = head->framing, .max = max, .state = DATA};
	switch (head->framing) {
	case HTTP_BODY_LENGTH:
		b->left = head->length;
		if (head->length > max)
			b->reason = HTTP_NO_BODY_LONG;
		break;
	case HTTP_BODY_CHUNKED:
		b->state = SIZE;
		break;
	case HTTP_BODY_UNTIL_CLOSE:
		b->left = UINT64_MAX;
		break;
	case HTTP_BODY_NONE:
	case HTTP_BODY_TUNNEL:
		b->state = END;
		break;
	}
}

/* A chunk line or trailer line begins anew. */
static enum http_reason
size_done(struct http_body *b)
{
	b->digits = 0;
	b->extension = 0;
	if (b->left > b->max - b->total)
		return HTTP_NO_BODY_LONG;
	b->state = b->left == 0 ? TRAILER_START : DATA;
	return HTTP_FINE;
}

static enum http_reason
size_byte(struct http_body *b, uint8_t c)
{
	if (char_is(c, CHAR_HEX)) {
		b->left = b->left << 4 | char_hex(c);
		return ++b->digits > SIZE_DIGITS ? HTTP_NO_CHUNK : HTTP_FINE;
	}
	if (b->digits == 0)
		return HTTP_NO_CHUNK;
	if (c != ';' && c != '\r')
		return HTTP_NO_CHUNK;
	b->state = c == ';' ? EXTENSION_START : SIZE_LF;
	b->extension = c == ';';
	b->extensions += b->extension;
	b->extension_value = false;
	return HTTP_FINE;
}

/* *( ";" token [ "=" token ] ): no quotes, no blanks. */
static enum http_reason
extension_byte(struct http_body *b, uint8_t c)
{
	bool first = b->state == EXTENSION_START;

	b->odd = true;
	if (c == '\r' && !first) {
		b->state = SIZE_LF;
		return HTTP_FINE;
	}
	if (++b->extension > EXTENSION_MAX || ++b->extensions > EXTENSIONS_MAX)
		return HTTP_NO_CHUNK;
	if (char_is(c, CHAR_TOKEN)) {
		b->state = EXTENSION;
		return HTTP_FINE;
	}
	if (first || (c != ';' && (c != '=' || b->extension_value)))
		return HTTP_NO_CHUNK;
	b->extension_value = c == '=';
	b->state = EXTENSION_START;
	return HTTP_FINE;
}

static enum http_reason
trailer_byte(struct http_body *b, uint8_t c)
{
	enum state state = (enum state)b->state;

	if (state == TRAILER_START && c == '\r') {
		b->state = END_LF;
		return HTTP_FINE;
	}
	b->odd = true;
	if (++b->trailer > TRAILER_MAX)
		return HTTP_NO_TRAILER;
	if (state == TRAILER_VALUE) {
		b->state = c == '\r' ? TRAILER_LF : TRAILER_VALUE;
		return c == '\r' || char_is(c, CHAR_LINE) ? HTTP_FINE : HTTP_NO_TRAILER;
	}
	if (state == TRAILER_NAME && c == ':') {
		b->state = TRAILER_VALUE;
		return HTTP_FINE;
	}
	b->state = TRAILER_NAME;
	return char_is(c, CHAR_TOKEN) ? HTTP_FINE : HTTP_NO_TRAILER;
}

static enum http_reason
expect_byte(struct http_body *b, uint8_t c, uint8_t want, enum state next, enum http_reason no)
{
	b->state = next;
	return c == want ? HTTP_FINE : no;
}

static enum http_reason
chunk_byte(struct http_body *b, uint8_t c)
{
	switch ((enum state)b->state) {
	case SIZE:
		return size_byte(b, c);
	case EXTENSION_START:
	case EXTENSION:
		return extension_byte(b, c);
	case SIZE_LF:
		return c == '\n' ? size_done(b) : HTTP_NO_CHUNK;
	case DATA_CR:
		return expect_byte(b, c, '\r', DATA_LF, HTTP_NO_CHUNK);
	case DATA_LF:
		return expect_byte(b, c, '\n', SIZE, HTTP_NO_CHUNK);
	case TRAILER_START:
	case TRAILER_NAME:
	case TRAILER_VALUE:
		return trailer_byte(b, c);
	case TRAILER_LF:
		return expect_byte(b, c, '\n', TRAILER_START, HTTP_NO_TRAILER);
	case END_LF:
		return expect_byte(b, c, '\n', END, HTTP_NO_TRAILER);
	case DATA:
	case END:
		break;
	}
	must(false);
}

/* A piece of data: as much as there is, up to the end of the chunk or body. */
static enum http_body_event
data_next(struct http_body *b, struct view *in, struct view *ret_data)
{
	size_t n = in->n < b->left ? in->n : (size_t)b->left;

	if (n > b->max - b->total) /* only where no length was announced */
		n = (size_t)(b->max - b->total);
	if (n == 0) {
		b->reason = HTTP_NO_BODY_LONG;
		return HTTP_BODY_REFUSED;
	}
	*ret_data = view_of(in->p, n);
	*in = view_skip(*in, n);
	b->total += n;
	if (b->framing != HTTP_BODY_UNTIL_CLOSE)
		b->left -= n;
	if (b->left == 0)
		b->state = b->framing == HTTP_BODY_CHUNKED ? DATA_CR : END;
	return HTTP_BODY_DATA;
}

enum http_body_event
http_body_next(struct http_body *b, struct view *in, struct view *ret_data)
{
	while (b->reason == HTTP_FINE && b->state != END && in->n > 0) {
		if (b->state == DATA)
			return data_next(b, in, ret_data);
		b->reason = chunk_byte(b, in->p[0]);
		*in = view_skip(*in, 1);
	}
	if (b->reason != HTTP_FINE)
		return HTTP_BODY_REFUSED;
	return b->state == END ? HTTP_BODY_END : HTTP_BODY_MORE;
}

enum http_reason
http_body_close(struct http_body *b)
{
	if (b->reason == HTTP_FINE && b->framing == HTTP_BODY_UNTIL_CLOSE)
		b->state = END;
	else if (b->reason == HTTP_FINE && b->state != END)
		b->reason = HTTP_NO_TRUNCATED;
	return b->reason;
}

size_t
http_chunk_head(size_t n, char ret[static HTTP_CHUNK_HEAD])
{
	static const char digits[] = "0123456789abcdef";
	size_t len = 1;

	must(n > 0);
	while (len < 2 * sizeof(n) && n >> (4 * len) != 0)
		len++;
	for (size_t i = 0; i < len; i++)
		ret[i] = digits[n >> (4 * (len - 1 - i)) & 15];
	ret[len] = '\r';
	ret[len + 1] = '\n';
	return len + 2;
}

void
http_chunk_add(struct buf *out, struct view data)
{
	char head[HTTP_CHUNK_HEAD];
	size_t n;

	if (data.n == 0)
		return;
	n = http_chunk_head(data.n, head);
	buf_add(out, head, n);
	buf_add_view(out, data);
	buf_add_str(out, "\r\n");
}

void
http_chunk_end(struct buf *out)
{
	buf_add_str(out, "0\r\n\r\n");
}
