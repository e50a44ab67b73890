/* SPDX-License-Identifier: Apache-2.0 */
/* Which name servers; see servers.h. Called by main.c. */
#include "servers.h"

#include "lib/base/fd.h"

#include <errno.h>
#include <fcntl.h>

enum { DNS_PORT = 53, CONF_BYTES = 8192 };

static bool
blank(uint8_t c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static void
conf_line(struct view line, struct servers *ret)
{
	static const char word[] = "nameserver";
	struct server s;
	size_t n = 0;

	if (!view_starts(line, word) || line.n == sizeof(word) - 1 ||
		!blank(line.p[sizeof(word) - 1]))
		return;
	line = view_skip(line, sizeof(word));
	while (line.n > 0 && blank(line.p[0]))
		line = view_skip(line, 1);
	while (n < line.n && !blank(line.p[n]))
		n++;
	if (ret->n < SERVERS_MAX && address_parse(view_of(line.p, n), &s.address) == 0) {
		s.port = DNS_PORT;
		ret->row[ret->n++] = s;
	}
}

void
servers_of_conf(struct view text, struct servers *ret)
{
	*ret = (struct servers){.n = 0};
	while (text.n > 0) {
		const uint8_t *end = memchr(text.p, '\n', text.n);
		size_t n = end == NULL ? text.n : (size_t)(end - text.p);

		conf_line(view_of(text.p, n), ret);
		text = view_skip(text, n + 1);
	}
}

static int
system_read(struct servers *ret, struct err *err)
{
	static uint8_t text[CONF_BYTES];
	auto_fd int fd = open("/etc/resolv.conf", O_RDONLY | O_CLOEXEC | O_NOCTTY);
	size_t n = 0;
	int r = 0;

	if (fd >= 0)
		r = fd_read_upto(fd, text, sizeof(text), &n, err);
	if (r == 0)
		servers_of_conf(view_of(text, n), ret);
	return r;
}

int
servers_find(const struct msg_dialer_begin *m, struct servers *ret, struct err *err)
{
	struct servers s = {.n = 0};

	if (strcmp(m->resolvers[0], "system") == 0)
		return system_read(ret, err);
	for (size_t i = 0; i < ARRAY_LEN(m->resolvers); i++) {
		if (m->resolvers[i][0] == '\0')
			continue;
		if (address_port_parse(view_str(m->resolvers[i]), DNS_PORT, &s.row[s.n].address,
			    &s.row[s.n].port) < 0)
			return err_set(err, -EINVAL, "name server %s is no ADDRESS or ADDRESS:PORT",
				m->resolvers[i]);
		s.n++;
	}
	*ret = s;
	return 0;
}
