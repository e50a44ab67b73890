/* SPDX-License-Identifier: Apache-2.0 */
/* The table of key kinds and the one thing that OpenSSL does for us: is this value a signature of these bytes. Inside lib/approval. */
#pragma once

#include "lib/approval/sshsig.h"

struct sshkey_row {
	const char *type, *curve, *group, *digest;
	size_t point, number;
	bool fido;
};
extern const struct sshkey_row sshkey_rows[];

/* Whether OpenSSL takes the point: on its curve and not at infinity; of Ed25519 only the length is known before a signature. */
bool sshkey_point_ok(const struct sshkey *key);

/* `value`: 64 bytes of Ed25519, or the two numbers r and s as SSH writes them. */
bool sshkey_signed(const struct sshkey *key, struct view message, struct view value);
