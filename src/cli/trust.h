/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The directory of trust on this host, whose file `approvers` says whose keys may decide. Written by whoever may write there, through a
 * temporary file and a rename, and only when the whole result holds; the daemon reads it again by itself.
 */
#pragma once

#include "lib/approval/approvers.h"

#define TRUST_DIR "/etc/demilune/trust"

struct trust {
	int dir;              /* owned, locked while it is open for a change */
	const char *path;     /* borrowed */
	struct approvers now; /* what the file says; nobody when there is none */
};

/* --trust or the usual place. `change`: others who change it wait. -ENOENT: no such directory. */
int trust_open(const char *path, bool change, struct trust *ret, struct err *err) MUST_CHECK;
void trust_done(struct trust *t);

static inline void
trust_cleanup(struct trust *t)
{
	trust_done(t);
}
#define auto_trust __attribute__((cleanup(trust_cleanup)))

/* Puts this file in place of the one that is there, mode 0644. -EINVAL: it does not hold, and nothing changed. */
int trust_replace(struct trust *t, struct view file, struct err *err) MUST_CHECK;

/* The one key of a file of ssh-keygen: its type, its text in base 64 and its comment, borrowed from `room`. */
struct key_text {
	struct view type, text, comment;
};
int trust_key(const char *path, struct buf *room, struct key_text *ret, struct buf *blob,
	struct err *err) MUST_CHECK;
