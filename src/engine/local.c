/* SPDX-License-Identifier: Apache-2.0 */
/* Who is at the local socket; see local.h. */
#include "engine/local.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

static bool
option_is(int fd, int name, int want)
{
	int value = 0;
	socklen_t n = sizeof(value);

	return getsockopt(fd, SOL_SOCKET, name, &value, &n) == 0 && value == want;
}

/* A connection has the name of the socket that it was accepted from. */
static bool
name_is(int fd, const char *run_dir)
{
	struct sockaddr_un at = {0};
	char path[sizeof(at.sun_path) + 16];
	socklen_t n = sizeof(at);
	int want = snprintf(path, sizeof(path), "%s/api.sock", run_dir);

	return getsockname(fd, (struct sockaddr *)&at, &n) == 0 && at.sun_family == AF_UNIX &&
	       want > 0 && (size_t)want < sizeof(at.sun_path) &&
	       n == offsetof(struct sockaddr_un, sun_path) + (size_t)want + 1 &&
	       memcmp(at.sun_path, path, (size_t)want + 1) == 0;
}

/* Bytes of the peer's name: 0 is none; negative when there is no peer. */
static int
peer_name(int fd)
{
	struct sockaddr_un at;
	socklen_t n = sizeof(at);

	if (getpeername(fd, (struct sockaddr *)&at, &n) < 0)
		return -errno;
	return (int)(n - offsetof(struct sockaddr_un, sun_path));
}

static bool
peer_left(int fd)
{
	struct pollfd p = {.fd = fd};

	return poll(&p, 1, 0) < 0 || (p.revents & (POLLHUP | POLLNVAL)) != 0;
}

static int
connection_check(const struct engine *e, int fd, struct err *err)
{
	struct stat st;

	if (!option_is(fd, SO_DOMAIN, AF_UNIX) || !option_is(fd, SO_TYPE, SOCK_STREAM))
		return err_set(err, -EPROTO, "a local connection that is no Unix stream");
	if (!option_is(fd, SO_ACCEPTCONN, 0))
		return err_set(err, -EPROTO, "a local connection that is a listener");
	if (fstat(fd, &st) < 0 || st.st_uid != e->settings.api_uid)
		return err_set(err, -EPROTO, "a local connection that the api did not accept");
	if (!name_is(fd, e->settings.run_dir))
		return err_set(err, -EPROTO, "a connection of another socket");
	if (peer_name(fd) < 0)
		return err_set(err, -EPROTO, "a local connection without a peer");
	return 0;
}

int
on_local_open(struct engine *e, struct ipc_msg *in, const struct msg_local_open *m, struct err *err)
{
	auto_fd int fd = ipc_msg_take(in, 0);
	struct ucred cred;
	socklen_t n = sizeof(cred);
	struct local *l;
	int r;

	if (m->local >= ARRAY_LEN(e->locals) || e->locals[m->local].open)
		return err_set(err, -EPROTO, "the number of a local caller is taken");
	r = connection_check(e, fd, err);
	if (r < 0)
		return r;
	l = &e->locals[m->local];
	l->open = true;
	if (peer_name(fd) != 0 || peer_left(fd) ||
		getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &n) < 0)
		return 0;
	l->known = true;
	l->uid = cred.uid;
	return 0;
}

int
on_local_close(struct engine *e, const struct msg_local_close *m, struct err *err)
{
	if (m->local >= ARRAY_LEN(e->locals) || !e->locals[m->local].open)
		return err_set(err, -EPROTO, "no such local caller");
	e->locals[m->local] = (struct local){0};
	return 0;
}

void
locals_forget(struct engine *e)
{
	memset(e->locals, 0, sizeof(e->locals));
}

bool
local_find(const struct engine *e, uint16_t local, uint32_t *ret_uid)
{
	if (local >= ARRAY_LEN(e->locals) || !e->locals[local].known)
		return false;
	*ret_uid = e->locals[local].uid;
	return true;
}
