/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A signed head of the audit tree, as the daemon or a file tells it, and proofs against it. Nothing is believed: the signature is verified with a
 * key that the person holds (--key), or with the one that came along, and then the output says so.
 */
#pragma once

#include "cli/verbs.h"
#include "lib/tlog/sign.h"

struct head {
	struct note_key key;
	bool key_held; /* of --key, not of who told the head */
	char origin[NOTE_NAME];
	uint64_t size;
	struct merkle_hash root;
	struct buf note; /* owned: its bytes */
};

void head_init(struct head *h);
void head_done(struct head *h);

static inline void
head_cleanup(struct head *h)
{
	head_done(h);
}
#define auto_head __attribute__((cleanup(head_cleanup)))

/* --key: a verifier key, or a file with one; -ENOENT without an error when it was not given. */
int head_key(const struct args *a, struct note_key *ret, struct err *err) MUST_CHECK;

/* The note, signed by the key of --key, else by `told` ("" = only --key will do). -EBADMSG, -EKEYREJECTED. */
int head_read(struct head *ret, const struct args *a, struct view told, struct view note,
	struct err *err) MUST_CHECK;

/* The newest of the daemon, over all records that it has now. */
int head_fetch(struct cli *cli, struct head *ret, struct err *err) MUST_CHECK;

/* Does `now` continue the head in the file of --checkpoint? Asks the daemon for the proof when cli is not NULL. */
int head_continues(
	struct cli *cli, const struct args *a, const struct head *now, struct err *err) MUST_CHECK;

/* A file or standard input's worth of small text; the bytes without limit checks of what is in it. */
int head_file(const char *path, struct buf *ret, struct err *err) MUST_CHECK;

/* 32 bytes each, of a JSON array of hexadecimal texts; -EBADMSG. */
int head_hashes(const json_t *list, struct buf *ret, struct err *err) MUST_CHECK;
