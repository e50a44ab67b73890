/* SPDX-License-Identifier: Apache-2.0 */
/* Relays; see relay.h. Nothing a relay says is ever read here. */
#include "supervisor/relay.h"

#include "lib/base/fd.h"
#include "lib/ipc/datagram.h"
#include "supervisor/program.h"

#include <errno.h>
#include <sys/socket.h>

int
relay_start(struct relay *r, const char *program, uint32_t uid, struct err *err)
{
	int channel[2] = {-1, -1}, engine[2] = {-1, -1}, edge[2] = {-1, -1};
	int code = 0;

	*r = RELAY_NONE;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, channel) < 0)
		code = err_errno(err, "socketpair");
	if (code == 0)
		code = ipc_pair(engine, err);
	if (code == 0)
		code = ipc_pair(edge, err);
	r->channel = channel[1];
	r->engine = engine[1];
	r->edge = edge[1];
	if (code == 0) {
		const int fds[] = {[FD_RELAY_CHANNEL - 3] = channel[0],
			[FD_RELAY_ENGINE - 3] = engine[0],
			[FD_RELAY_SUPERVISOR - 3] = edge[0]};
		const struct program_start start = {
			.path = program, .uid = uid, .fds = fds, .nfds = ARRAY_LEN(fds)};

		r->pid = program_start(&start, &r->pidfd, err);
		code = r->pid < 0 ? (int)r->pid : 0;
	}
	fd_close_kept(&channel[0]);
	fd_close_kept(&engine[0]);
	fd_close_kept(&edge[0]);
	if (code < 0)
		relay_end(r);
	return code;
}

/* A relay that does not read its edge is as good as lost. */
static int
tell(struct relay *r, enum msg_type type, const struct buf *body, const int *fds, size_t nfds,
	struct err *err)
{
	auto_buf struct buf packed;

	buf_init(&packed, IPC_MAX);
	ipc_pack(&packed, type, 0, buf_view(body));
	if (buf_check(body) < 0 || buf_check(&packed) < 0)
		return err_set(err, -ENOMEM, "no memory");
	return ipc_write(r->edge, buf_view(&packed), fds, nfds, err);
}

int
relay_agent_starts(struct relay *r, struct err *err)
{
	const struct msg_agent_starts m = {0};
	auto_buf struct buf body;

	(void)close(take_fd(&r->channel)); /* the agent has its own */
	buf_init(&body, IPC_MAX);
	msg_agent_starts_put(&body, &m);
	return tell(r, MSG_AGENT_STARTS, &body, NULL, 0, err);
}

int
relay_engine_edge(struct relay *r, struct err *err)
{
	const struct msg_engine_edge m = {0};
	auto_fd int mine = -1, theirs = -1;
	auto_buf struct buf body;
	int pair[2];
	int code = ipc_pair(pair, err);

	buf_init(&body, IPC_MAX);
	if (code < 0)
		return code;
	mine = pair[0];
	theirs = pair[1];
	msg_engine_edge_put(&body, &m);
	code = tell(r, MSG_ENGINE_EDGE, &body, &theirs, 1, err);
	return code < 0 ? code : take_fd(&mine);
}

void
relay_end(struct relay *r)
{
	fd_close_kept(&r->channel);
	fd_close_kept(&r->engine);
	fd_close_kept(&r->edge);
	program_end(&r->pidfd);
}
