/* SPDX-License-Identifier: Apache-2.0 */
/* Talking to ssh-agent; see agent.h. One question, one answer; every wait has an end. */
#include "cli/agent.h"

#include "cli/limits.h"
#include "lib/approval/sshwire.h"
#include "lib/base/clock.h"
#include "lib/base/fd.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

enum { REQUEST_KEYS = 11, SIGN_REQUEST = 13 };

int
agent_open(int *ret_fd, struct err *err)
{
	const char *path = getenv("SSH_AUTH_SOCK");
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	int fd auto_fd = -1;

	if (path == NULL || path[0] == '\0')
		return err_set(err, -ENOENT,
			"there is no ssh-agent: SSH_AUTH_SOCK is not set; start one with ssh-agent "
			"and give it the key with ssh-add");
	if (strlen(path) >= sizeof(un.sun_path))
		return err_set(err, -EINVAL, "SSH_AUTH_SOCK is too long for a socket");
	memcpy(un.sun_path, path, strlen(path) + 1);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return err_errno(err, "cannot make a socket");
	if (connect(fd, (const struct sockaddr *)&un, sizeof(un)) < 0)
		return err_errno(err, "no ssh-agent answers at SSH_AUTH_SOCK=%.100s", path);
	*ret_fd = take_fd(&fd);
	return 0;
}

/* Exactly n more bytes of the answer. */
static int
receive(int fd, struct buf *b, size_t n, uint64_t until_ms, struct err *err)
{
	while (n > 0) {
		struct pollfd p = {.fd = fd, .events = POLLIN};
		uint64_t now = clock_mono_ms();
		uint8_t *room = buf_room(b, n);
		ssize_t got;

		if (room == NULL)
			return err_set(err, -ENOMEM, "no memory for the answer of ssh-agent");
		if (now >= until_ms || poll(&p, 1, (int)(until_ms - now)) == 0)
			return err_set(err, -ETIMEDOUT, "ssh-agent does not answer");
		got = recv(fd, room, n, MSG_DONTWAIT);
		if (got < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (got < 0)
			return err_errno(err, "ssh-agent");
		if (got == 0)
			return err_set(err, -EBADMSG, "ssh-agent hung up");
		buf_grew(b, (size_t)got);
		n -= (size_t)got;
	}
	return 0;
}

/* Sends a question and takes the answer, without its length, into `answer`. */
static int
ask(int fd, struct view question, uint64_t wait_ms, struct buf *answer, struct err *err)
{
	uint64_t until_ms = clock_mono_ms() + wait_ms;
	auto_buf struct buf out, length;
	struct view head;
	uint32_t n;

	buf_init(&out, LIMIT_AGENT_BYTES);
	buf_init(&length, 4);
	ssh_put(&out, question);
	if (buf_check(&out) < 0)
		return err_set(err, -E2BIG, "too much to be signed");
	if (fd_write_all(fd, out.p, out.n, err) < 0)
		return err_context(err, "ssh-agent");
	if (receive(fd, &length, 4, until_ms, err) < 0)
		return err->code;
	head = buf_view(&length);
	if (ssh_take_u32(&head, &n) < 0 || n == 0 || n > LIMIT_AGENT_BYTES)
		return err_set(err, -EBADMSG, "an answer of ssh-agent has a wrong length");
	buf_clear(answer);
	return receive(fd, answer, n, until_ms, err);
}

int
agent_keys(int fd, struct buf *room, struct agent_key ret[static AGENT_KEYS_MAX], size_t *ret_n,
	struct err *err)
{
	const uint8_t question[] = {REQUEST_KEYS};
	int r = ask(fd, view_of(question, 1), LIMIT_AGENT_MS, room, err);

	return r < 0 ? r : agent_read_keys(buf_view(room), ret, ret_n, err);
}

int
agent_sign(int fd, struct view key_blob, struct view bytes, struct buf *out, struct err *err)
{
	auto_buf struct buf question, answer;
	struct view signature;
	int r;

	buf_init(&question, LIMIT_AGENT_BYTES);
	buf_init(&answer, LIMIT_AGENT_BYTES);
	buf_add_byte(&question, SIGN_REQUEST);
	ssh_put(&question, key_blob);
	ssh_put(&question, bytes);
	ssh_put_u32(&question, 0); /* no flags: they are about RSA */
	if (buf_check(&question) < 0)
		return err_set(err, -E2BIG, "too much to be signed");
	r = ask(fd, buf_view(&question), LIMIT_AGENT_SIGN_MS, &answer, err);
	if (r == 0)
		r = agent_read_signature(buf_view(&answer), &signature, err);
	if (r < 0)
		return r;
	buf_add_view(out, signature);
	return buf_check(out) < 0 ? err_set(err, -EBADMSG, "the signature is too long") : 0;
}
