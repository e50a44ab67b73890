/* SPDX-License-Identifier: Apache-2.0 */
/* Where the daemon is; see place.h. */
#include "cli/place.h"

#include "lib/base/fd.h"
#include "lib/base/num.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

static const char default_socket[] = "/run/demilune/api.sock";

/* ---- the token ---- */

static int
take_token(struct view v, const char *from, struct place *p, struct err *err)
{
	while (v.n != 0 && (v.p[v.n - 1] == '\n' || v.p[v.n - 1] == '\r'))
		v.n--;
	if (v.n == 0 || v.n > LIMIT_TOKEN_BYTES)
		return err_set(err, -EINVAL, "%s holds no token", from);
	for (size_t i = 0; i < v.n; i++)
		if (v.p[i] <= 0x20 || v.p[i] > 0x7e)
			return err_set(err, -EINVAL, "%s holds more than a token alone", from);
	memcpy(p->token, v.p, v.n);
	p->token[v.n] = '\0';
	return 0;
}

static int
read_token_file(const char *home, struct place *p, struct err *err)
{
	char path[4096], text[LIMIT_TOKEN_BYTES + 3];
	struct stat st;
	size_t n = 0;
	int fd auto_fd = -1;
	int r;

	if (home == NULL || home[0] != '/')
		return err_set(err, -ENOENT,
			"a URL needs a token: set DEMILUNE_TOKEN (demilune token create makes "
			"one)");
	(void)snprintf(path, sizeof(path), "%s/.config/demilune/token", home);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0 && errno == ENOENT)
		return err_set(err, -ENOENT,
			"a URL needs a token: set DEMILUNE_TOKEN or put one into %.100s (mode "
			"0600)",
			path);
	if (fd < 0)
		return err_errno(err, "cannot read %.120s", path);
	if (fstat(fd, &st) < 0)
		return err_errno(err, "%.120s", path);
	if (!S_ISREG(st.st_mode) || st.st_uid != geteuid())
		return err_set(err, -EACCES, "%.120s must be a file of your own", path);
	if ((st.st_mode & 077) != 0)
		return err_set(
			err, -EACCES, "others can read your token; say: chmod 600 %.120s", path);
	r = fd_read_upto(fd, text, sizeof(text), &n, err);
	return r < 0 ? r : take_token(view_of(text, n), path, p, err);
}

/* ---- the address ---- */

static int
read_url(const char *url, struct place *p, struct err *err)
{
	static const struct {
		const char *prefix, *authority;
		bool ipv6;
	} hosts[] = {
		{"http://127.0.0.1:", "127.0.0.1", false},
		{"http://localhost:", "localhost", false},
		{"http://[::1]:", "[::1]", true},
	};
	uint64_t port;

	for (size_t i = 0; i < ARRAY_LEN(hosts); i++) {
		struct view rest = view_str(url);

		if (!view_starts(rest, hosts[i].prefix))
			continue;
		rest = view_skip(rest, strlen(hosts[i].prefix));
		if (rest.n != 0 && rest.p[rest.n - 1] == '/')
			rest.n--;
		if (num_u64(rest, 65535, &port) < 0 || port == 0)
			break;
		p->tcp = true;
		p->ipv6 = hosts[i].ipv6;
		p->port = (uint16_t)port;
		(void)snprintf(p->authority, sizeof(p->authority), "%s:%u", hosts[i].authority,
			(unsigned)p->port);
		return 0;
	}
	return err_set(err, -EINVAL,
		"%.60s is not http://127.0.0.1:PORT or http://[::1]:PORT; a token must not cross a "
		"network in the clear, use a tunnel to another host",
		url);
}

int
place_find(const struct place_wish *wish, struct place *ret, struct err *err)
{
	struct place p = {0};
	const char *url = wish->api, *path = wish->socket;
	int r = 0;

	if (url != NULL && path != NULL)
		return err_set(err, -EINVAL, "--api and --socket name two daemons; give one");
	if (url == NULL && path == NULL) {
		url = wish->env_api;
		path = wish->env_socket;
		if (url != NULL && url[0] == '\0')
			url = NULL;
	}
	if (url != NULL) {
		r = read_url(url, &p, err);
	} else {
		if (path == NULL || path[0] == '\0')
			path = default_socket;
		if (strlen(path) >= sizeof(p.socket))
			return err_set(err, -ENAMETOOLONG, "the path of the socket is too long");
		(void)snprintf(p.socket, sizeof(p.socket), "%s", path);
		(void)snprintf(p.authority, sizeof(p.authority), "localhost");
	}
	if (r == 0 && wish->env_token != NULL && wish->env_token[0] != '\0')
		r = take_token(view_str(wish->env_token), "DEMILUNE_TOKEN", &p, err);
	else if (r == 0 && p.tcp)
		r = read_token_file(wish->home, &p, err);
	if (r == 0)
		*ret = p;
	return r;
}

/* ---- the connection ---- */

static int
open_socket(const struct place *p, int *ret_fd, int *ret_connect)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(p->port)};
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons(p->port)};
	const void *addr = &un;
	socklen_t n = sizeof(un);
	int family = AF_UNIX;

	memcpy(un.sun_path, p->socket, sizeof(p->socket));
	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	in6.sin6_addr = in6addr_loopback;
	if (p->tcp) {
		family = p->ipv6 ? AF_INET6 : AF_INET;
		addr = p->ipv6 ? (const void *)&in6 : (const void *)&in;
		n = p->ipv6 ? sizeof(in6) : sizeof(in);
	}
	*ret_fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (*ret_fd < 0)
		return -1;
	*ret_connect = connect(*ret_fd, addr, n) == 0 ? 0 : errno;
	return 0;
}

int
place_connect(const struct place *p, int *ret_fd, struct err *err)
{
	const char *name = p->tcp ? p->authority : p->socket;
	int fd auto_fd = -1;
	int failed = 0;
	socklen_t n = sizeof(failed);

	if (open_socket(p, &fd, &failed) < 0)
		return err_errno(err, "cannot make a socket");
	if (failed == EINPROGRESS) {
		struct pollfd wait = {.fd = fd, .events = POLLOUT};

		if (poll(&wait, 1, LIMIT_CONNECT_MS) != 1)
			failed = ETIMEDOUT;
		else if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &failed, &n) < 0)
			failed = errno;
	}
	if (failed == ENOENT || failed == ECONNREFUSED)
		return err_set(err, -failed,
			"no daemon at %.100s; is demilune serve running? (--socket PATH or --api "
			"URL name another)",
			name);
	if (failed == EACCES)
		return err_set(err, -failed, "you may not use %.100s", name);
	if (failed != 0) {
		errno = failed;
		return err_errno(err, "cannot connect to %.100s", name);
	}
	*ret_fd = take_fd(&fd);
	return 0;
}
