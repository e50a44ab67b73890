/* SPDX-License-Identifier: Apache-2.0 */
/* See refuse.h. Texts that came with a message of a neighbour are cut down to plain printable ASCII before they are quoted. */
#include "refuse.h"

#include "lib/http/write.h"

enum { BODY_MAX = 2048 };

static void
add_text(struct buf *out, const char *text)
{
	for (; *text != '\0'; text++) {
		if (*text == '"' || *text == '\\')
			buf_add_byte(out, '\\');
		buf_add_byte(out, *text >= ' ' && *text <= '~' ? (uint8_t)*text : '?');
	}
}

static const char *
rule_key(enum egress_reason reason)
{
	static const char *const keys[EGRESS_REASON_MAX] = {
#define RULE(name, key) [EGRESS_REASON_##name] = (key),
#define HINT(name, text)
#include "refuse.def"
#undef RULE
#undef HINT
	};

	return keys[reason];
}

static const char *
hint_text(enum egress_reason reason)
{
	static const char *const texts[EGRESS_REASON_MAX] = {
#define RULE(name, key)
#define HINT(name, text) [EGRESS_REASON_##name] = (text),
#include "refuse.def"
#undef RULE
#undef HINT
	};

	return texts[reason] != NULL ? texts[reason] : "No rule would change this.";
}

/* "https://HOST:8443", with brackets around what has colons. */
static void
add_origin(struct buf *out, const struct egress_place *p)
{
	bool http = p->scheme == EGRESS_SCHEME_HTTP;
	bool six = view_has(p->name, ':');

	buf_add_str(out, http ? "http://" : "https://");
	buf_add_str(out, six ? "[" : "");
	buf_add_view(out, p->name);
	buf_add_str(out, six ? "]" : "");
	if (p->port != (http ? 80 : 443))
		buf_addf(out, ":%u", (unsigned)p->port);
}

static void
add_hint(struct buf *out, const struct refusal *r)
{
	/* A CONNECT has no scheme of its own; no rule lets it ask for another protocol. */
	bool never = r->reason == EGRESS_REASON_UPGRADE && r->place.scheme == EGRESS_SCHEME_NONE;
	const char *key = never ? NULL : rule_key(r->reason);

	if (key != NULL && r->place.name.n > 0) {
		buf_add_str(
			out, "A rule of this sandbox's policy would allow it: fetch: {url: \\\"");
		add_origin(out, &r->place);
		buf_add_str(out, "/**\\\"");
		if (key[0] == ' ') {
			buf_add_str(out, "}");
			add_text(out, key);
		} else {
			add_text(out, key);
			buf_add_str(out, "}");
		}
		buf_add_str(out, ". Only the owner of the host can add it; ask, or go on without.");
	} else {
		add_text(out, key != NULL ? "Only the owner of the host can add a rule for it; "
					    "ask, or go on without."
					  : hint_text(r->reason));
	}
	buf_add_str(out, " Do not try another way: it is refused too.");
}

void
refuse_write(struct buf *out, const struct refusal *r)
{
	struct http_answer a = {.status = r->status,
		.type = "application/json",
		.close = true,
		.head_only = r->head_only};
	auto_buf struct buf body;

	buf_init(&body, BODY_MAX);
	buf_add_str(&body, "{\"error\":\"The gateway of this sandbox refused it");
	if (r->place.name.n > 0) {
		buf_add_str(&body, " (");
		add_origin(&body, &r->place);
		buf_add_str(&body, ")");
	}
	buf_add_str(&body, ": ");
	add_text(&body, egress_reason_says(r->reason));
	if (r->text != NULL) {
		buf_add_str(&body, " (");
		add_text(&body, r->text);
		buf_add_str(&body, ")");
	}
	buf_addf(&body, ".\",\"code\":\"%s\",\"rule\":", egress_reason_text(r->reason));
	if (r->rule == EGRESS_NO_RULE)
		buf_add_str(&body, "null");
	else
		buf_addf(&body, "%u", (unsigned)r->rule + 1);
	buf_add_str(&body, ",\"hint\":\"");
	add_hint(&body, r);
	buf_add_str(&body, "\"}\n");
	must(buf_check(&body) == 0);
	a.body = buf_view(&body);
	if (http_write_answer(out, &a) < 0)
		return; /* the owner looks at the buffer */
}
