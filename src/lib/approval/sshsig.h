/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signatures of people: SSHSIG of OpenSSH (PROTOCOL.sshsig), made by ssh-agent or a hardware key, and the public keys that they are made
 * with. The broker verifies with this, the CLI composes with it. Every length is exact, nothing may stand behind, numbers have one form;
 * what is refused is never repaired. Ed25519, ECDSA on the three NIST curves, and the first two as FIDO keys (`sk-`); RSA is refused.
 *
 * A signature by one of these keys for another purpose never passes: the namespace is inside the signed bytes and is compared.
 */
#pragma once

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/base/sha256.h"
#include "lib/base/view.h"

#define SSHSIG_NAMESPACE "demilune-approval"

enum {
	SSHSIG_BYTES_MAX = 4096,
	SSHKEY_BYTES_MAX = 1024,
	SSHKEY_FINGERPRINT = 52 /* "SHA256:", 43 digits, NUL, and one more */,
};

enum sshkey_kind {
	SSHKEY_ED25519,
	SSHKEY_ECDSA_256,
	SSHKEY_ECDSA_384,
	SSHKEY_ECDSA_521,
	SSHKEY_SK_ED25519,
	SSHKEY_SK_ECDSA_256,
};

struct sshkey {
	enum sshkey_kind kind;
	struct view blob;        /* all of it, borrowed as all views here */
	struct view point;       /* the raw key or the uncompressed point */
	struct view application; /* of FIDO keys: begins with "ssh:" */
};

/* "ssh-ed25519" and so on. */
const char *sshkey_type(enum sshkey_kind kind);

/* A public key as it stands in files and signatures. -EINVAL: not exactly one; -ENOTSUP: of a kind that is not taken. */
int sshkey_read(struct view blob, struct sshkey *ret, struct err *err) MUST_CHECK;

/* "SHA256:..." as ssh-keygen -l prints it. */
void sshkey_fingerprint(struct view blob, char ret[static SSHKEY_FINGERPRINT]);

enum sshsig_hash {
	SSHSIG_SHA256,
	SSHSIG_SHA512,
};

struct sshsig {
	struct sshkey key;
	struct view name_space;
	enum sshsig_hash hash;
	struct view
		signature; /* the blob inside: type, value, and for FIDO keys flags and counter */
};

/* A raw blob (no armour), at most SSHSIG_BYTES_MAX. */
int sshsig_read(struct view blob, struct sshsig *ret, struct err *err) MUST_CHECK;

/*
 * Did the key sign this message in this namespace? 0, or -EKEYREJECTED with what is wrong. A FIDO key must have been touched;
 * `user_verified`: its owner must have been verified too (PIN or finger), so other keys are refused.
 */
int sshsig_verify(const struct sshsig *s, struct view message, const char *name_space,
	bool user_verified, struct err *err) MUST_CHECK;

/* The bytes that a key signs for a message: what an agent is asked for. */
void sshsig_signed(
	const char *name_space, enum sshsig_hash hash, struct view message, struct buf *out);

/* A raw blob of the agent's answer, with sha512. */
void sshsig_write(
	struct view key_blob, const char *name_space, struct view signature, struct buf *out);

/* The armoured text of ssh-keygen -Y, for files; the broker never sees it. */
void sshsig_armour(struct view blob, struct buf *out);
int sshsig_dearmour(struct view text, struct buf *out, struct err *err) MUST_CHECK;
