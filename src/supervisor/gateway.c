/* SPDX-License-Identifier: Apache-2.0 */
/* Gateways; see gateway.h. Called by spare.c, sandbox.c, edges.c and teardown.c. */
#include "supervisor/gateway.h"

#include "lib/base/fd.h"
#include "lib/ipc/datagram.h"
#include "supervisor/program.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>

int
gateway_start(struct gateway *g, const char *program, uint32_t uid, struct err *err)
{
	auto_fd int theirs = -1;
	int pair[2];
	int r = ipc_pair(pair, err);

	*g = GATEWAY_NONE;
	if (r < 0)
		return r;
	g->edge = pair[0];
	theirs = pair[1];
	const int fds[] = {[FD_GATEWAY_SUPERVISOR - 3] = theirs};
	const struct program_start start = {
		.path = program, .uid = uid, .fds = fds, .nfds = ARRAY_LEN(fds)};

	g->pid = program_start(&start, &g->pidfd, err);
	if (g->pid >= 0)
		return 0;
	gateway_end(g);
	return err->code;
}

/* A gateway that does not read its edge is as good as lost. fd: -1 for none. */
static int
tell(struct gateway *g, enum msg_type type, const struct buf *body, int fd, struct err *err)
{
	auto_buf struct buf packed;

	if (g->edge < 0)
		return err_set(err, -EPIPE, "its gateway is gone");
	buf_init(&packed, IPC_MAX);
	ipc_pack(&packed, type, 0, buf_view(body));
	if (buf_check(body) < 0 || buf_check(&packed) < 0)
		return err_set(err, -ENOMEM, "no memory");
	return ipc_write(g->edge, buf_view(&packed), &fd, fd >= 0 ? 1 : 0, err);
}

int
gateway_listener(struct gateway *g, const struct plumbing_socket *s, int fd, struct err *err)
{
	const struct msg_listener m = {.kind = s->kind, .port = s->port};
	auto_buf struct buf body;

	buf_init(&body, IPC_MAX);
	msg_listener_put(&body, &m);
	return tell(g, MSG_LISTENER, &body, fd, err);
}

int
gateway_roots(struct gateway *g, const char *name, int fd, struct err *err)
{
	struct msg_roots m = {0};
	auto_buf struct buf body;

	(void)snprintf(m.name, sizeof(m.name), "%s", name);
	buf_init(&body, IPC_MAX);
	msg_roots_put(&body, &m);
	return tell(g, MSG_ROOTS, &body, fd, err);
}

int
gateway_edge(struct gateway *g, enum msg_type type, int fd, struct err *err)
{
	auto_buf struct buf body;

	buf_init(&body, 0);
	return tell(g, type, &body, fd, err);
}

int
gateway_engine_edge(struct gateway *g, struct err *err)
{
	auto_fd int mine = -1, theirs = -1;
	int pair[2];
	int r = ipc_pair(pair, err);

	if (r < 0)
		return r;
	mine = pair[0];
	theirs = pair[1];
	r = gateway_edge(g, MSG_GATEWAY_ENGINE, theirs, err);
	return r < 0 ? r : take_fd(&mine);
}

int
gateway_policy(struct gateway *g, const struct msg_gateway_policy *m, int policy, struct err *err)
{
	auto_buf struct buf body;

	buf_init(&body, IPC_MAX);
	msg_gateway_policy_put(&body, m);
	return tell(g, MSG_GATEWAY_POLICY, &body, policy, err);
}

int
gateway_begin(struct gateway *g, struct err *err)
{
	auto_buf struct buf body;

	buf_init(&body, 0);
	return tell(g, MSG_GATEWAY_BEGIN, &body, -1, err);
}

void
gateway_leave(struct gateway *g)
{
	fd_close_kept(&g->edge);
	fd_close_kept(&g->engine);
}

void
gateway_kill(struct gateway *g)
{
	gateway_leave(g);
	if (g->pidfd >= 0)
		(void)syscall(
			SYS_pidfd_send_signal, g->pidfd, SIGKILL, NULL, 0); /* it may have ended */
}

void
gateway_end(struct gateway *g)
{
	gateway_leave(g);
	program_end(&g->pidfd);
}
