/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `demilune sandbox shell`: this terminal on a shell in a sandbox, over a WebSocket. What the shell prints goes to the
 * terminal as it is, which is what a terminal is for. Keys go as binary messages, sizes as {"resize":...}; the
 * end is {"exit":n} and a close frame.
 */
#include "cli/answer.h"
#include "cli/exec.h"
#include "cli/request.h"
#include "cli/terminal.h"
#include "lib/base/fd.h"
#include "lib/http/ws.h"
#include "lib/http/ws_hand.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/socket.h>

enum { KEYS_READ_BYTES = 4096, TEXT_MAX_BYTES = 4096 };

struct shell {
	struct client *client; /* borrowed */
	struct exchange *x;    /* borrowed */
	struct ws ws;
	struct buf out;  /* frames on their way to the daemon */
	struct buf text; /* of a text message under way */
	int code;        /* that the daemon told, or -1 */
	bool keys_ended, closed;
};

/* ---- sending ---- */

static int
queue(struct shell *s, enum ws_opcode opcode, struct view data, struct err *err)
{
	uint8_t mask[4];

	if (getrandom(mask, sizeof(mask), 0) != (ssize_t)sizeof(mask))
		return err_errno(err, "no random numbers");
	if (ws_frame_add(&s->out, opcode, true, mask, data) < 0)
		return err_set(err, -ENOBUFS, "the daemon does not take what it is sent");
	return 0;
}

static int
queue_size(struct shell *s, struct err *err)
{
	unsigned rows, columns;
	char text[64];

	terminal_size(&rows, &columns);
	(void)snprintf(text, sizeof(text), "{\"resize\":{\"rows\":%u,\"cols\":%u}}", rows, columns);
	return queue(s, WS_TEXT, view_str(text), err);
}

static int
flush(struct shell *s, struct err *err)
{
	while (s->out.n != 0) {
		ssize_t n = send(s->x->fd, s->out.p, s->out.n, MSG_NOSIGNAL);

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return 0;
		if (n < 0)
			return err_errno(err, "the connection to the daemon broke");
		buf_drop(&s->out, (size_t)n);
	}
	return 0;
}

static int
read_keys(struct shell *s, struct err *err)
{
	uint8_t keys[KEYS_READ_BYTES];
	ssize_t n = read(STDIN_FILENO, keys, sizeof(keys));

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n <= 0) {
		s->keys_ended = true; /* the terminal went away; SIGHUP says so too */
		return queue(s, WS_CLOSE, view_of("\x03\xe8", 2), err);
	}
	return queue(s, WS_BINARY, view_of(keys, (size_t)n), err);
}

/* ---- receiving ---- */

static int
take_text(struct shell *s, struct err *err)
{
	static const struct json_limits limits = {.max_bytes = TEXT_MAX_BYTES, .max_depth = 4};
	json_t *json auto_json = NULL;
	int64_t code;
	int r = json_parse(buf_view(&s->text), &limits, &json, err);

	if (r < 0)
		return err_context(err, "a message of the daemon");
	code = answer_int(json, "exit", -1);
	if (code >= 0 && code <= 255)
		s->code = (int)code;
	return 0;
}

static int
take_data(struct shell *s, const struct ws_event *e, struct err *err)
{
	if (e->opcode == WS_BINARY)
		return fd_write_all(STDOUT_FILENO, e->data.p, e->data.n, err);
	buf_add_view(&s->text, e->data);
	if (buf_check(&s->text) < 0)
		return err_set(err, -EMSGSIZE, "a message of the daemon is too large");
	if (!e->end)
		return 0;
	if (take_text(s, err) < 0)
		return err->code;
	buf_clear(&s->text);
	return 0;
}

static int
take(struct shell *s, uint8_t *p, size_t n, struct err *err)
{
	int r = 0;

	while (r == 0 && !s->closed) {
		struct ws_event e;

		ws_next(&s->ws, &p, &n, &e);
		switch (e.kind) {
		case WS_EVENT_MORE:
			return 0;
		case WS_EVENT_DATA:
			r = take_data(s, &e, err);
			break;
		case WS_EVENT_PING:
			r = queue(s, WS_PONG, e.data, err);
			break;
		case WS_EVENT_PONG:
			break;
		case WS_EVENT_CLOSE:
			s->closed = true;
			if (s->code < 0 && e.code != WS_NORMAL)
				r = err_set(
					err, -EIO, "the session ended: %.*s", VIEW_ARGS(e.data));
			break;
		case WS_EVENT_REFUSED:
			r = err_set(err, -EBADMSG, "the daemon broke the protocol of the session");
			break;
		}
	}
	return r;
}

static int
read_socket(struct shell *s, struct err *err)
{
	ssize_t n = recv(s->x->fd, s->x->room, EXCHANGE_READ_BYTES, 0);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n < 0)
		return err_errno(err, "the connection to the daemon broke");
	if (n == 0)
		return err_set(err, -EIO, "the daemon closed the session");
	return take(s, s->x->room, (size_t)n, err);
}

/* 0, or negative: a signal that ends us. */
static int
read_signal(struct shell *s, struct err *err)
{
	struct signalfd_siginfo info;

	if (read(s->client->signals, &info, sizeof(info)) != (ssize_t)sizeof(info))
		return 0;
	if (info.ssi_signo == SIGWINCH)
		return queue_size(s, err);
	s->client->signalled = (int)info.ssi_signo;
	return err_set(err, -EINTR, "interrupted");
}

static int
converse(struct shell *s, struct err *err)
{
	int r = take(s, s->x->room, s->x->left.n, err);

	while (r == 0 && !s->closed) {
		bool take_keys = !s->keys_ended && s->out.n < LIMIT_KEYS_BYTES;
		struct pollfd wait[] = {
			{.fd = s->x->fd, .events = (short)(POLLIN | (s->out.n != 0 ? POLLOUT : 0))},
			{.fd = take_keys ? STDIN_FILENO : -1, .events = POLLIN},
			{.fd = s->client->signals, .events = POLLIN},
		};
		int n = poll(wait, ARRAY_LEN(wait), LIMIT_STALL_MS);

		if (n == 0)
			return err_set(err, -ETIMEDOUT, "the daemon says nothing any more");
		if (n < 0 && errno != EINTR)
			return err_errno(err, "cannot wait");
		if (n < 0)
			continue;
		if (wait[2].revents != 0)
			r = read_signal(s, err);
		if (r == 0 && wait[1].revents != 0)
			r = read_keys(s, err);
		if (r == 0 && wait[0].revents != 0)
			r = read_socket(s, err);
		if (r == 0)
			r = flush(s, err);
	}
	return r;
}

static int
shell_signals(struct client *c, struct err *err)
{
	sigset_t set;
	int r = exec_signals(c, err);

	if (r < 0)
		return r;
	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGINT);
	(void)sigaddset(&set, SIGTERM);
	(void)sigaddset(&set, SIGHUP);
	(void)sigaddset(&set, SIGWINCH);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0 || signalfd(c->signals, &set, 0) < 0)
		return err_errno(err, "cannot take signals");
	return 0;
}

static int
open_session(struct cli *cli, struct exchange *x, struct err *err)
{
	uint8_t nonce[WS_NONCE_BYTES];
	char key[WS_KEY_TEXT], target[192];
	unsigned rows, columns;
	enum http_reason reason;
	int r;

	if (getrandom(nonce, sizeof(nonce), 0) != (ssize_t)sizeof(nonce))
		return err_errno(err, "no random numbers");
	ws_hand_key(nonce, key);
	terminal_size(&rows, &columns);
	(void)snprintf(target, sizeof(target), "/v1/sandboxes/%s/exec/pty?rows=%u&cols=%u&exit=1",
		cli->args.rest[0], rows, columns);
	r = exchange_open(&cli->client,
		&(struct ask){.method = HTTP_GET, .target = view_str(target), .ws_key = key}, x,
		err);
	if (r < 0)
		return r;
	reason = ws_hand_verify(&x->head, key);
	if (reason != HTTP_FINE)
		return err_set(err, -EBADMSG, "the daemon's answer is not understood: %s",
			http_reason_text(reason));
	return 0;
}

int
verb_sandbox_shell(struct cli *cli, struct err *err)
{
	struct shell s = {.client = &cli->client, .code = -1};
	auto_terminal struct terminal terminal = {0};
	auto_exchange struct exchange x = {0};
	int r = request_check_id(cli->args.rest[0], "sb_", "sandbox", err);

	if (r == 0)
		r = terminal_check(err);
	if (r == 0)
		r = shell_signals(&cli->client, err);
	if (r == 0)
		r = open_session(cli, &x, err);
	if (r == 0)
		r = terminal_raw(&terminal, err);
	if (r < 0)
		return r;
	s.x = &x;
	ws_init(&s.ws, WS_CLIENT, LIMIT_MESSAGE_BYTES);
	buf_init(&s.out, 4 * LIMIT_KEYS_BYTES);
	buf_init(&s.text, TEXT_MAX_BYTES);
	r = converse(&s, err);
	buf_done(&s.out);
	buf_done(&s.text);
	if (r < 0)
		return r;
	return s.code < 0 ? 0 : s.code;
}
