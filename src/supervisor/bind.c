/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A gateway and its sandbox; part of sandbox.h. It is started beside a spare, with the uid of the spare's slot, and is nobody's until it is
 * told one policy, when its sandbox is ordered, and the sockets of one namespace, when there are any: it makes its authority while the clone
 * makes the sandbox. Called by spare.c and sandbox.c. Opens files of certificates and reads none.
 */
#include "supervisor/sandbox.h"

#include "supervisor/limits.h"
#include "supervisor/start.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

int
bind_start(struct sandbox *sb, struct err *err)
{
	const struct sandboxes *all = sb->all;
	int r = gateway_start(&sb->gateway, all->programs->path[PROGRAM_GATEWAY],
		all->settings->gateway_uid_base + sb->slot, err);

	if (r < 0)
		return r;
	ev_io_set(&sb->gateway_died, sb->gateway.pidfd, EV_READ);
	ev_io_start(all->loop, &sb->gateway_died);
	return 0;
}

int
bind_order(struct sandbox *sb, struct plumbing *ret, struct err *err)
{
	*ret = (struct plumbing){0};
	if (sb->policy == NULL) {
		gateway_kill(&sb->gateway);
		return 0;
	}
	ret->wanted = true;
	ret->ipv6 = sb->all->ipv6;
	ret->capture = sb->policy->is.capture;
	memcpy(ret->ports, sb->policy->is.ports, sizeof(ret->ports));
	/* A spare may be older than the host's first policy. */
	return sb->gateway.pidfd >= 0 ? 0 : bind_start(sb, err);
}

unsigned
sandbox_needs(const struct sandbox *sb)
{
	if (!sb->named)
		return 0;
	return DUE_DIALER | (sb->policy->is.brokered ? (unsigned)DUE_BROKER : 0U);
}

/* ---- telling ---- */

/* Whom servers must lead to is decided by whoever may write this file. */
static int
roots_open(int dir, const char *path, int flags, struct err *err)
{
	auto_fd int fd = openat(dir, path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | flags);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_errno(err, "%.100s", path);
	if (!S_ISREG(st.st_mode) || st.st_uid != 0 || (st.st_mode & 022) != 0)
		return err_set(err, -EPERM,
			"%.100s is not a file that belongs to root and that nobody else may "
			"write to",
			path);
	if ((uint64_t)st.st_size > LIMIT_ROOTS_BYTES)
		return err_set(err, -EFBIG, "%.100s is too large for certificates", path);
	return take_fd(&fd);
}

static int
system_roots_tell(struct sandbox *sb, struct err *err)
{
	auto_fd int fd = roots_open(AT_FDCWD, sb->all->settings->roots, 0, err);

	if (fd < 0)
		return err_context(err, "certificates of servers (egress.roots)");
	return gateway_roots(&sb->gateway, "", fd, err);
}

static int
pinned_roots_tell(struct sandbox *sb, const char *name, struct err *err)
{
	const char *path = sb->all->settings->trust_dir;
	auto_fd int dir = root_dir_open(path, err);
	char file[80];
	auto_fd int fd = -1;

	if (dir < 0)
		return err_context(err, "pinned certificates");
	(void)snprintf(file, sizeof(file), "%s.pem", name);
	fd = roots_open(dir, file, O_NOFOLLOW, err);
	if (fd < 0)
		return err_context(err, "certificates that policy %s pins, in %.80s",
			sb->policy->is.name, path);
	return gateway_roots(&sb->gateway, name, fd, err);
}

static int
roots_tell(struct sandbox *sb, struct err *err)
{
	const struct msg_config_policy *is = &sb->policy->is;
	int r = system_roots_tell(sb, err);

	for (size_t i = 0; r == 0 && i < ARRAY_LEN(is->roots); i++)
		if (is->roots[i][0] != '\0')
			r = pinned_roots_tell(sb, is->roots[i], err);
	return r;
}

static int
listeners_tell(struct sandbox *sb, const struct spawn_report *report, struct err *err)
{
	struct plumbing p = {.wanted = true};
	int r = 0;

	memcpy(p.ports, sb->policy->is.ports, sizeof(p.ports));
	if (report->nsockets != plumbing_count(&p))
		return err_set(err, -EMFILE, "%zu of %zu sockets for its gateway came",
			report->nsockets, plumbing_count(&p));
	for (size_t i = 0; r == 0 && i < report->nsockets; i++) {
		const struct plumbing_socket s = plumbing_socket(&p, i);

		r = gateway_listener(&sb->gateway, &s, report->sockets[i], err);
	}
	return r;
}

static int
policy_tell(struct sandbox *sb, struct err *err)
{
	struct msg_gateway_policy m = {.sandbox = sb->id};
	auto_fd int policy = revision_open(sb->policy, err);

	if (policy < 0)
		return policy;
	memcpy(m.policy, sb->policy->is.policy, sizeof(m.policy));
	return gateway_policy(&sb->gateway, &m, policy, err);
}

/* Edges to dialer and broker come now if these two run, and else when they do. */
int
bind_named(struct sandbox *sb, struct err *err)
{
	int r = policy_tell(sb, err);

	if (r == 0)
		r = roots_tell(sb, err);
	if (r < 0)
		return r;
	sb->gateway.engine = gateway_engine_edge(&sb->gateway, err);
	if (sb->gateway.engine < 0)
		return sb->gateway.engine;
	sb->named = true;
	sb->due = sandbox_needs(sb);
	sb->all->tells->due(sb->all->owner);
	return 0;
}

int
bind_listening(struct sandbox *sb, const struct spawn_report *report, struct err *err)
{
	int r = listeners_tell(sb, report, err);

	if (r == 0)
		r = gateway_begin(&sb->gateway, err);
	sb->plumbed = r == 0;
	return r;
}
