/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checkpoints of the audit: the broker signs a head of the engine's tree when it is proved to continue the last one that it signed, and
 * never two roots of one size. The key is made at the first start (audit.key) and never leaves the process; the newest checkpoint is a file
 * beside it, and one in each mirror.
 *
 * The epoch is in the origin line ("origin", from the second on "origin/EPOCH"): a log that was restored is another log.
 */
#pragma once

#include "broker/ledger.h"
#include "lib/tlog/sign.h"
#include "proto_gen.h"

struct broker;
struct ask;

struct audit {
	uint8_t seed[ED25519_BYTES]; /* secret */
	struct note_key key;
	char key_text[NOTE_KEY_TEXT];
	char origin[NOTE_NAME]; /* of this epoch */
	uint64_t epoch, size;   /* size 0: nothing is signed in this epoch */
	struct merkle_hash root;
	struct buf note;         /* owned: of this size */
	uint32_t mirrors_failed; /* at the last copy */
	int fd;                  /* owned: our own file */
	unsigned place;          /* of its two, the one with the newest */
	bool refused; /* the last head that was shown could not be signed: nothing is sent until one is */
};

/*
 * At start, after the ledger and before the jail. -EBADMSG and others: key or checkpoint cannot be used, the broker must not start. A state that
 * is older than a checkpoint of ours, wherever that stands, was restored: the host is contained and the next epoch begins, here and now.
 */
int checkpoint_open(struct broker *b, struct err *err) MUST_CHECK;
void checkpoint_done(struct broker *b);

/* The part of BROKER_READY. */
void checkpoint_ready(struct broker *b, struct msg_broker_ready *m);
/* The ledger has another epoch. */
void checkpoint_epoch(struct broker *b);

void checkpoint_ask(struct broker *b, struct ask ask, const struct msg_checkpoint_ask *m);
