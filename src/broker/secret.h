/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The providers' credentials. A secret is opaque: it cannot be printed, copied out or compared, only put into the one header of a request that
 * names it, and looked for in text that is about to leave. It lies in memory of its own that is locked, in no core dump and in no child
 * (memfd_secret(2) where the kernel has it: then no other process reads it either, not even by ptrace), and is wiped at the end.
 */
#pragma once

#include "lib/base/err.h"
#include "lib/base/view.h"

struct secret;
struct vault;

int vault_new(struct vault **ret, struct err *err) MUST_CHECK;
void vault_free(struct vault *v);

/*
 * Reads a whole file into the vault: 8 to 8192 bytes, one newline at the end is dropped; no NUL, CR or LF, which a header cannot hold. `fd`
 * stays the caller's. -EEXIST: the name is there. -EINVAL: it is of no use as a secret, *v is as before.
 */
int vault_add(struct vault *v, const char *name, int fd, struct err *err) MUST_CHECK;
size_t vault_count(const struct vault *v);

/* NULL: there is none. */
const struct secret *vault_find(const struct vault *v, struct view name);

/* "Header: prefix secret", NUL-terminated, in memory that secret_header_free wipes. NULL: no memory. */
char *secret_header(const struct secret *s, struct view header, struct view prefix) MUST_CHECK;
void secret_header_free(char *header);

/*
 * Does the text have one of the secrets in it: as it is, in base 64 (both alphabets, at each of the three offsets), in hexadecimal,
 * percent-encoded, as a form value, or with the escapes of JSON.
 */
bool vault_leaks(struct vault *v, struct view text);
