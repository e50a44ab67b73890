/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The person who signs: one key of ssh-agent and the name that it is enrolled under. For approve and reject, and for whatever else a person
 * signs (settlements, releases): open, put the name into the record, sign its bytes, put both into the request.
 *
 * The name comes from the file of approvers of this host, by the key; or from --name, when that file is on another host.
 */
#pragma once

#include "cli/verbs.h"
#include "lib/approval/approvers.h"
#include "lib/json/out.h"

struct signer {
	int agent;                        /* owned */
	struct buf key;                   /* owned: the public key */
	char name[APPROVER_NAME_MAX + 1]; /* `approver` of the record */
	char fingerprint[SSHKEY_FINGERPRINT];
	bool verify_required; /* as the file says */
};

/*
 * By --key, --name and --trust, whichever the verb has: the key that is named, or the only one of the agent that is an approver's. The sentence
 * of a failure says what to do: no agent, no key, several, nobody's.
 */
int signer_open(struct cli *cli, struct signer *ret, struct err *err) MUST_CHECK;
void signer_done(struct signer *s);

static inline void
signer_cleanup(struct signer *s)
{
	signer_done(s);
}
#define auto_signer __attribute__((cleanup(signer_cleanup)))

/* Appends the raw SSHSIG blob over a record's bytes. It is verified before it is given out. */
int signer_sign(
	struct signer *s, struct view record, struct buf *signature, struct err *err) MUST_CHECK;

/* Bytes as a member in base 64: `decision` and `signature` of a request. */
int signer_put(struct json_out *o, const char *key, struct view bytes, struct err *err) MUST_CHECK;
