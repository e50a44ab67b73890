/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keys and signatures for the tests, made by others than the code under test: ssh-keygen for the keys that it can make without hardware,
 * OpenSSL's own signing for FIDO keys, whose device is played here with every flag as the test wants it.
 */
#pragma once

#include "lib/base/buf.h"

#include <stdbool.h>

enum { KEYS_PATH = 256 };

/* A directory that is removed at the end; NUL-terminated path. */
void keys_dir_make(char ret[static KEYS_PATH]);
void keys_dir_remove(const char *dir);

/* DIR/NAMEend */
void keys_path(char ret[static KEYS_PATH], const char *dir, const char *name, const char *end);

void file_write(const char *path, struct view v);
void file_read(const char *path, struct buf *out);

/* Runs a program with this input file (NULL: none) and takes what it prints; the exit code. */
int program_run(const char *const *argv, const char *input, struct buf *out);

/* `ssh-keygen -t TYPE [-b BITS]` into DIR/NAME and DIR/NAME.pub; appends the blob of the public key. */
void keys_generate(
	const char *dir, const char *name, const char *type, const char *bits, struct buf *blob);

/* `ssh-keygen -Y sign` by DIR/NAME; appends the raw blob. hash: "sha256" or "sha512". */
void keys_sign(const char *dir, const char *name, const char *name_space, const char *hash,
	struct view message, struct buf *blob);

/* `ssh-keygen -Y verify` with DIR/NAME.pub; the armour is written by the code under test. */
bool keys_verify(const char *dir, const char *name, const char *name_space, struct view message,
	struct view blob);

/* A FIDO key that lives in this process. */
struct fido;
struct fido *fido_new(bool ecdsa, const char *application);
void fido_free(struct fido *f);
void fido_blob(const struct fido *f, struct buf *out);
/* An SSHSIG of it over the message: with these flags in what it signs, and `told` in what it says. */
void fido_sign(const struct fido *f, const char *name_space, struct view message, uint8_t flags,
	uint8_t told, uint32_t counter, struct buf *out);
