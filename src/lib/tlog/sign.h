/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ed25519 for notes, by OpenSSL: linked by the broker, which signs, and by the CLI, which verifies; never by the engine.
 */
#pragma once

#include "lib/tlog/note.h"

/* A new private key (its seed) from the kernel's randomness. */
int ed25519_new(uint8_t ret_seed[static ED25519_BYTES], struct err *err) MUST_CHECK;
/* Fills `public` and the hash of a key whose name is set. */
int note_key_of(
	const uint8_t seed[static ED25519_BYTES], struct note_key *k, struct err *err) MUST_CHECK;
/* Appends the whole note: text, blank line, signature line. */
int note_sign(const uint8_t seed[static ED25519_BYTES], const struct note_key *k, struct view text,
	struct buf *out, struct err *err) MUST_CHECK;
/* Is it signed by this key? Whatever OpenSSL cannot do is a signature that does not hold. */
bool note_signed(const struct note *n, const struct note_key *k);
