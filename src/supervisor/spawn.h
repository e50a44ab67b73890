/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process that becomes PID 1 of a sandbox, in two halves. First half, ahead of time: it is cloned into fresh
 * namespaces, enters its control groups, brings lo up, mounts what every sandbox has, says READY and waits. It is
 * nobody's then: no task, no input, no template has touched it. Second half, on an order: routes and sockets of
 * its gateway, root, places, pivot, user namespace, capabilities, filter, exec of the agent. It becomes one sandbox or it is killed.
 *
 * Both sides are this program; between them a socket pair that closes at exec. What comes back over it is trusted
 * until the exec: no byte of a guest was touched before.
 */
#pragma once

#include "lib/base/err.h"
#include "lib/base/id.h"
#include "supervisor/cgroup.h"
#include "supervisor/place.h"
#include "supervisor/plumbing.h"

#include <sys/types.h>

/* What the first half is given; descriptors borrowed, inherited by the clone. */
struct spawn_kit {
	int userns; /* joined at the very end */
	int dev;    /* detached mount: the device tree, shown through userns */
	int agent;  /* sealed memory file */
	const char *
		stage; /* path of a directory with root, dev, proc and vol to mount on: looked up in the clone's own mounts */
	int cgroup;    /* v2 group to be cloned into, or -1 */
	int entries[CGROUP_HIERARCHIES];
	size_t nentries;
	const char *const *masks; /* paths below /proc that this kernel has, without the "/proc/" */
	size_t nmasks;
	uint32_t ptys; /* terminals that it may have */
};

/* What the second half is told. */
struct spawn_order {
	char hostname[ID_TEXT];
	uint32_t uid_base;
	uint32_t open_files;
	uint32_t pids;
	struct places places;
	struct plumbing plumbing;
};

/* Descriptors that go with the order: root image (detached, shown through userns), tmpfs, channel. */
enum { SPAWN_FD_ROOT, SPAWN_FD_VOLUME, SPAWN_FD_CHANNEL, SPAWN_FDS };

enum spawn_step { SPAWN_READY, SPAWN_MOUNTED, SPAWN_STARTED, SPAWN_FAILED };

struct spawn_report {
	enum spawn_step step;
	uint64_t mono_us;
	struct err err; /* of SPAWN_FAILED */
	/* Of SPAWN_MOUNTED, as plumbing_sockets() made them: owned by the reader. */
	int sockets[PLUMBING_SOCKETS_MAX];
	size_t nsockets;
};

/* Closes the sockets. */
void spawn_report_done(struct spawn_report *r);

int spawn_report_send(int sock, const struct spawn_report *r, struct err *err) MUST_CHECK;

/*
 * Clones. *ret_sock (SOCK_SEQPACKET, non-blocking) tells one spawn_report each for the steps, then closes at exec;
 * *ret_pidfd is its process. Both owned by the caller. The pid, or negative.
 */
pid_t spawn_clone(
	const struct spawn_kit *kit, int *ret_sock, int *ret_pidfd, struct err *err) MUST_CHECK;

int spawn_order_send(int sock, const struct spawn_order *order, const int fds[SPAWN_FDS],
	struct err *err) MUST_CHECK;

/* 0; -EAGAIN; -EPIPE: closed (executed, or dead). */
int spawn_report_read(int sock, struct spawn_report *ret, struct err *err) MUST_CHECK;

/* The paths of masks.def that this kernel has; borrowed from a table. Returns their number, at most n. */
size_t spawn_masks(const char **ret, size_t n);

/* Every path at which a sandbox without places has a mount: for measuring. */
bool spawn_mounts_at(struct view path);
