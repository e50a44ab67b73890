/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signed notes and checkpoints in the text forms of C2SP (signed-note, tlog-checkpoint), strictly: what is read is what would be written.
 *
 *	origin line               name of the log
 *	size                      leaves, decimal
 *	root                      base64
 *	                          (blank)
 *	— name base64             per signature: 4 bytes of key hash, then the signature
 *
 * A verifier key is "name+hash+base64(0x01 || public key)", hash = the first 4 bytes of SHA-256(name, newline, 0x01, public key), in hex.
 * Ed25519 itself stands in sign.h, so that who only reads links no OpenSSL.
 */
#pragma once

#include "lib/base/buf.h"
#include "lib/tlog/merkle.h"

enum {
	NOTE_MAX = 2048,
	NOTE_SIGNATURES = 8,
	NOTE_NAME = 128,
	NOTE_KEY_TEXT = 256, /* of a verifier key, with NUL */
	ED25519_BYTES = 32,
	ED25519_SIGNATURE = 64
};

/* Whose signature. */
struct note_key {
	char name[NOTE_NAME];
	uint32_t hash;
	uint8_t public[ED25519_BYTES];
};

/* A name: 1 to 127 bytes of printable ASCII without blank and '+'. */
bool note_name_ok(struct view name);
/* Sets the hash from name and public key. */
void note_key_seal(struct note_key *k);
int note_key_read(struct view text, struct note_key *ret, struct err *err) MUST_CHECK;
void note_key_write(const struct note_key *k, char ret[static NOTE_KEY_TEXT]);

struct note_signature {
	struct view name;
	uint32_t hash;
	uint8_t bytes[ED25519_SIGNATURE];
	size_t n; /* of `bytes`; one of another kind of key is longer or shorter, and then not kept */
};

struct note {
	struct view text; /* with its last newline: what is signed */
	struct note_signature signature[NOTE_SIGNATURES];
	size_t n;
};

/* Borrows from `bytes`. -EBADMSG. */
int note_read(struct view bytes, struct note *ret, struct err *err) MUST_CHECK;
/* One signature line. */
void note_line_add(struct buf *out, const struct note_key *k,
	const uint8_t signature[static ED25519_SIGNATURE]);
/* The signature that claims to be of this key, or NULL: none, or not of its kind. */
const struct note_signature *note_find(const struct note *n, const struct note_key *k);

struct checkpoint {
	struct view origin; /* borrowed */
	uint64_t size;
	struct merkle_hash root;
};

/* The text, without a signature. */
void checkpoint_write(const struct checkpoint *c, struct buf *out);
/* The text of a note. Extension lines are refused: we write none. */
int checkpoint_read(struct view text, struct checkpoint *ret, struct err *err) MUST_CHECK;
