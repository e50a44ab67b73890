/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ssh-agent, as far as signing needs it (draft-miller-ssh-agent): which keys it has, and a signature by one of them. The private key, its
 * passphrase, the touch of a hardware key are the agent's; nothing of them comes here. What it answers is read strictly.
 */
#pragma once

#include "lib/base/buf.h"
#include "lib/base/err.h"

enum { AGENT_KEYS_MAX = 64 };

struct agent_key {
	struct view blob, comment; /* borrowed from the answer */
};

/* The answers, without their length: for agent.c and for tests. -EACCES: the agent says no; -EBADMSG: it says anything else. */
int agent_read_keys(struct view answer, struct agent_key ret[static AGENT_KEYS_MAX], size_t *ret_n,
	struct err *err) MUST_CHECK;
int agent_read_signature(struct view answer, struct view *ret, struct err *err) MUST_CHECK;

/* Connects to SSH_AUTH_SOCK; the sentence says what to do when there is none. */
int agent_open(int *ret_fd, struct err *err) MUST_CHECK;

/* The keys, borrowed from `room`. */
int agent_keys(int fd, struct buf *room, struct agent_key ret[static AGENT_KEYS_MAX], size_t *ret_n,
	struct err *err) MUST_CHECK;

/* Appends the signature blob of these bytes. Waits until a hardware key was touched. */
int agent_sign(int fd, struct view key_blob, struct view bytes, struct buf *out,
	struct err *err) MUST_CHECK;
