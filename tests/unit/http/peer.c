/* SPDX-License-Identifier: Apache-2.0 */
/* See peer.h. */
#include "peer.h"

#include "lib/base/attr.h"

#include <http_parser.h>

struct run {
	struct peer *ret;
	bool no_body;
};

static int
on_headers(http_parser *p)
{
	struct run *run = p->data;

	return run->no_body || p->status_code == 304 ? 1 : 0; /* its users must know that */
}

static int
on_body(http_parser *p, const char *at, size_t n)
{
	struct run *run = p->data;

	must(n <= PEER_BODY - run->ret->body_n);
	memcpy(run->ret->body + run->ret->body_n, at, n);
	run->ret->body_n += n;
	return 0;
}

static int
on_complete(http_parser *p)
{
	struct run *run = p->data;

	run->ret->complete = true;
	run->ret->keep_alive = http_should_keep_alive(p) != 0;
	http_parser_pause(p, 1);
	return 0;
}

void
peer_run(struct peer *ret, bool response, bool no_body, bool closed, struct view input)
{
	static const http_parser_settings settings = {.on_headers_complete = on_headers,
		.on_body = on_body,
		.on_message_complete = on_complete};
	struct run run = {.ret = ret, .no_body = no_body};
	http_parser p;

	*ret = (struct peer){0};
	http_parser_init(&p, response ? HTTP_RESPONSE : HTTP_REQUEST);
	p.data = &run;
	ret->used = http_parser_execute(&p, &settings, (const char *)input.p, input.n);
	if (closed && !ret->complete && HTTP_PARSER_ERRNO(&p) == HPE_OK)
		(void)http_parser_execute(&p, &settings, (const char *)input.p, 0);
	ret->refused = HTTP_PARSER_ERRNO(&p) != HPE_OK && HTTP_PARSER_ERRNO(&p) != HPE_PAUSED;
	ret->trailing = (p.flags & F_TRAILING) != 0;
	ret->method_or_status = response ? p.status_code : p.method;
}

const char *
peer_method(const struct peer *peer)
{
	return http_method_str((enum http_method)peer->method_or_status);
}
