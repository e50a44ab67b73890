/* SPDX-License-Identifier: Apache-2.0 */
/* The processes of a control group; see members.h. Texts that are read here come from the kernel. */
#include "supervisor/members.h"

#include "lib/base/fd.h"
#include "lib/base/num.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { ROOM = 4096, DIGITS = 10, BATCH = 64 };

struct members {
	int fd; /* owned by whoever has the struct */
	size_t at, n;
	uint8_t room[ROOM];
};

struct held {
	pid_t pid;
	int fd; /* owned */
	bool in;
};

struct batch {
	size_t n;
	struct held of[BATCH];
};

/* Opened anew for each look: version 1 keeps the list that it made at the first read. */
static int
members_open(struct members *m, int dir, const char *path)
{
	m->at = m->n = 0;
	m->fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
	return m->fd < 0 ? -errno : 0;
}

/* More bytes behind the rest of a line. 1, 0 at the end, or negative. */
static int
members_fill(struct members *m)
{
	ssize_t r;

	m->n -= m->at;
	memmove(m->room, m->room + m->at, m->n);
	m->at = 0;
	if (m->n > DIGITS)
		return -EBADMSG;
	do
		r = read(m->fd, m->room + m->n, sizeof(m->room) - m->n);
	while (r < 0 && errno == EINTR);
	if (r < 0)
		return -errno;
	m->n += (size_t)r;
	if (r > 0)
		return 1;
	return m->n == 0 ? 0 : -EBADMSG;
}

/* 1 with the next one, 0 at the end, or negative. */
static int
members_next(struct members *m, pid_t *ret)
{
	const uint8_t *line, *end;
	uint64_t pid;
	int r;

	for (;;) {
		line = m->room + m->at;
		end = memchr(line, '\n', m->n - m->at);
		if (end != NULL)
			break;
		r = members_fill(m);
		if (r <= 0)
			return r;
	}
	m->at += (size_t)(end - line) + 1;
	if (num_u64(view_of(line, (size_t)(end - line)), INT32_MAX, &pid) < 0)
		return -EBADMSG;
	*ret = (pid_t)pid;
	return 1;
}

unsigned
members_count(int dir, const char *path)
{
	struct members m;
	unsigned n = 0;
	pid_t pid;
	int r = members_open(&m, dir, path);

	if (r < 0)
		return r == -ENOENT ? 0 : MEMBERS_UNKNOWN;
	while ((r = members_next(&m, &pid)) > 0)
		n++;
	(void)close(m.fd); /* only read */
	if (r == -ENODEV)
		return 0; /* removed since it was opened, which needs that nobody is in it */
	return r < 0 ? MEMBERS_UNKNOWN : n;
}

static void
batch_see(struct batch *b, int dir, const char *path)
{
	struct members m;
	pid_t pid;

	if (members_open(&m, dir, path) < 0)
		return;
	while (members_next(&m, &pid) > 0)
		for (size_t i = 0; i < b->n; i++)
			b->of[i].in = b->of[i].in || b->of[i].pid == pid;
	(void)close(m.fd); /* only read */
}

/*
 * A held process that lives has kept its number, so the number in the list is that process; one that ended takes
 * no signal, whoever has its number now.
 */
static void
batch_kill(struct batch *b, int dir, const char *path)
{
	if (b->n > 0)
		batch_see(b, dir, path);
	for (size_t i = 0; i < b->n; i++) {
		if (b->of[i].in)
			(void)syscall(SYS_pidfd_send_signal, b->of[i].fd, SIGKILL, NULL,
				0);       /* it may have ended */
		(void)close(b->of[i].fd); /* the process does not depend on it */
	}
	b->n = 0;
}

void
members_kill(int dir, const char *path)
{
	struct batch b = {.n = 0};
	struct members m;
	pid_t pid;

	if (members_open(&m, dir, path) < 0)
		return;
	while (members_next(&m, &pid) > 0) {
		int fd = pid > 1 ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;

		if (fd < 0)
			continue;
		b.of[b.n++] = (struct held){.pid = pid, .fd = fd};
		if (b.n == BATCH)
			batch_kill(&b, dir, path);
	}
	batch_kill(&b, dir, path);
	(void)close(m.fd); /* only read */
}
