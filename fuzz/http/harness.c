/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzing of the HTTP reader. Byte 0 chooses the side and the kind of input, byte 1 where the reads
 * are cut; the rest is the message. Whole and cut runs must agree; what is accepted must be
 * writable, and must read the same when it is written again. Paths, queries and authorities are
 * fed too: what is accepted decodes, and an authority is its own canonical form.
 */
#include "lib/http/path.h"
#include "lib/http/query.h"
#include "lib/http/body.h"
#include "lib/http/write.h"

enum { DATA_MAX = 1 << 16 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

struct result {
	int head;
	enum http_reason reason;
	enum http_body_event body;
	size_t used;
	struct buf data;
	struct http_head h;
};

struct side {
	bool response;
	enum http_method asked;
};

static void
run(struct result *r, const struct side *side, struct view in, size_t first, size_t step)
{
	struct http_limits limits;
	struct http_scan scan;
	struct http_body body;

	http_limits_init(&limits);
	limits.host_flags = HTTP_AUTHORITY_IP | HTTP_AUTHORITY_UNDERSCORE;
	if (side->response)
		http_scan_response(&scan, &limits, side->asked, true);
	else
		http_scan_request(&scan, &limits);
	r->head = 0;
	r->reason = HTTP_FINE;
	r->body = HTTP_BODY_MORE;
	r->used = 0;
	buf_clear(&r->data);
	for (size_t have = first; r->head >= 0 && r->body == HTTP_BODY_MORE; have += step) {
		size_t upto = have < in.n ? have : in.n;
		struct view rest, piece;

		if (r->head == 0) {
			r->head = http_head_feed(&scan, view_of(in.p, upto), &r->h);
			r->reason = scan.reason;
			r->used = scan.pos;
			if (r->head == 1 && r->h.framing == HTTP_BODY_TUNNEL)
				return;
			if (r->head == 1)
				http_body_init(&body, &r->h, limits.body_bytes);
		}
		if (r->head == 1) {
			rest = view_of(in.p + r->used, upto - r->used);
			while ((r->body = http_body_next(&body, &rest, &piece)) == HTTP_BODY_DATA)
				buf_add_view(&r->data, piece);
			r->used = upto - rest.n;
			r->reason = body.reason;
		}
		if (upto == in.n)
			return;
	}
}

static void
same_head(const struct http_head *a, const struct http_head *b)
{
	must(a->side == b->side && a->status == b->status && a->method == b->method);
	must(view_eq(a->target_text, b->target_text) && view_eq(a->target.path, b->target.path));
	must(view_eq(a->target.query, b->target.query));
	must(http_authority_eq(&a->host, &b->host, 0));
	must(http_authority_eq(&a->target.authority, &b->target.authority, 0));
}

/* Without the fields that the writer makes itself. */
static bool
own(const struct http_field *f)
{
	return view_eq_nocase(f->name, view_str("content-length")) ||
	       view_eq_nocase(f->name, view_str("transfer-encoding"));
}

static void
same_fields(const struct http_head *a, const struct http_head *b)
{
	unsigned j = 0;

	for (unsigned i = 0; i < a->fields; i++) {
		if (own(&a->field[i]))
			continue;
		while (j < b->fields && own(&b->field[j]))
			j++;
		must(j < b->fields && view_eq(a->field[i].name, b->field[j].name));
		must(view_eq(a->field[i].value, b->field[j].value));
		j++;
	}
}

/* Writes an accepted message again, in canonical framing, and reads that. */
static void
rewrite(const struct result *r, const struct side *side)
{
	static struct result again;
	auto_buf struct buf out = {.max = 4 * DATA_MAX};
	bool bodyless = r->h.status < 200 || r->h.status == 204;
	struct http_write w;

	if (r->h.minor == 0 || r->h.framing == HTTP_BODY_TUNNEL)
		return; /* written as 1.1, these would mean something else */
	if (side->response)
		http_write_response(&w, &out, r->h.status);
	else
		http_write_request(&w, &out, r->h.method, r->h.target_text);
	for (unsigned i = 0; i < r->h.fields; i++)
		if (!own(&r->h.field[i]))
			http_write_field_view(&w, r->h.field[i].name, r->h.field[i].value);
	if (r->h.framing == HTTP_BODY_CHUNKED || r->h.framing == HTTP_BODY_UNTIL_CLOSE)
		http_write_chunked(&w);
	else if (side->response ? !bodyless : r->h.framing == HTTP_BODY_LENGTH)
		http_write_length(&w, r->h.length);
	must(http_write_end(&w) == 0);
	if (r->h.framing == HTTP_BODY_LENGTH)
		buf_add_view(&out, buf_view(&r->data));
	if (r->h.framing == HTTP_BODY_CHUNKED || r->h.framing == HTTP_BODY_UNTIL_CLOSE) {
		http_chunk_add(&out, buf_view(&r->data));
		http_chunk_end(&out);
	}
	again.data = (struct buf){.max = DATA_MAX};
	run(&again, side, buf_view(&out), out.n, 1);
	if (again.reason == HTTP_NO_HEAD_LONG || again.reason == HTTP_NO_FIELDS) {
		buf_done(&again.data); /* "X:y" grew by its blank, or by the coding */
		return;
	}
	must(again.head == 1 && again.body == HTTP_BODY_END && again.used == out.n);
	same_head(&r->h, &again.h);
	same_fields(&r->h, &again.h);
	must(view_eq(buf_view(&r->data), buf_view(&again.data)));
	buf_done(&again.data);
}

static void
message(const struct side *side, struct view in, size_t cut)
{
	static struct result whole, parts;

	whole.data = parts.data = (struct buf){.max = DATA_MAX};
	run(&whole, side, in, in.n, 1);
	for (unsigned i = 0; i < 2; i++) {
		run(&parts, side, in, i == 0 ? 1 : 1 + cut % in.n, i == 0 ? 1 : in.n);
		must(whole.head == parts.head && whole.reason == parts.reason &&
			whole.body == parts.body);
		must(whole.head < 1 || whole.used == parts.used);
		must(view_eq(buf_view(&whole.data), buf_view(&parts.data)));
	}
	if (whole.head == 1 &&
		(whole.body == HTTP_BODY_END ||
			(whole.body == HTTP_BODY_MORE && whole.h.framing == HTTP_BODY_UNTIL_CLOSE)))
		rewrite(&whole, side);
	buf_done(&whole.data);
	buf_done(&parts.data);
}

static void
authority(struct view in)
{
	struct http_authority a, b;
	auto_buf struct buf text = {.max = 1024};
	unsigned flags = HTTP_AUTHORITY_IP | HTTP_AUTHORITY_UNDERSCORE;

	if (http_authority_parse(in, flags, &a) != HTTP_FINE)
		return;
	must(strlen(a.host) == a.n);
	buf_addf(&text, a.kind == HTTP_HOST_IPV6 ? "[%s]" : "%s", a.host);
	if (a.port != 0)
		buf_addf(&text, ":%u", a.port);
	must(http_authority_parse(buf_view(&text), flags, &b) == HTTP_FINE &&
		http_authority_eq(&a, &b, 0));
}

static void
path(struct view in)
{
	struct view segments[64];
	size_t n, decoded_n;
	auto_free uint8_t *mem = malloc(in.n + 1);

	must(mem != NULL);
	if (http_path_judge(in, 0) != HTTP_FINE)
		return;
	/* What the judge lets through decodes, and no segment can climb. */
	if (http_path_split(in, segments, ARRAY_LEN(segments), &n) != HTTP_FINE)
		return;
	for (size_t i = 0; i < n; i++) {
		must(http_percent_decode(segments[i], 0, mem, &decoded_n));
		must(!view_is(view_of(mem, decoded_n), "..") &&
			!view_is(view_of(mem, decoded_n), "."));
		must(!view_has(view_of(mem, decoded_n), '/') &&
			!view_has(view_of(mem, decoded_n), '\0'));
	}
}

static void
query(struct view in)
{
	static struct http_params params;
	auto_free uint8_t *mem = malloc(in.n + 1);

	must(mem != NULL);
	if (http_query_parse(in, 0, mem, &params) != HTTP_FINE)
		return;
	for (unsigned i = 0; i < params.n; i++) {
		must(params.param[i].name.n > 0 && view_utf8(params.param[i].value));
		for (unsigned j = 0; j < i; j++)
			must(!view_eq(params.param[i].name, params.param[j].name));
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct view in = view_of(data + 2, n - 2);
	struct side side = {false, HTTP_GET};

	if (n < 3 || n > DATA_MAX / 2)
		return 0;
	switch (data[0] & 7) {
	case 0:
	case 1:
		message(&side, in, data[1]);
		break;
	case 2:
	case 3:
		side = (struct side){true, data[0] & 8 ? HTTP_HEAD : HTTP_GET};
		message(&side, in, data[1]);
		break;
	case 4:
		authority(in);
		break;
	case 5:
		path(in);
		break;
	default:
		query(in);
		break;
	}
	return 0;
}
