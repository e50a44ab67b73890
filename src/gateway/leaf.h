/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Certificates for one name each, made on demand by the authority of the sandbox (ca.c) and kept: at most LIMIT_LEAVES, the one that was not used
 * for longest goes. All have the same key. One that is past half of its life is made again.
 */
#pragma once

#include "lib/base/err.h"
#include "lib/base/view.h"

#include <openssl/ssl.h>
#include <time.h>

struct leaves;

/* Borrows all three. The authority needs its times and its signature before the first leaf, not before. NULL with the reason. */
struct leaves *leaves_new(
	X509 *authority, EVP_PKEY *authority_key, EVP_PKEY *leaf_key, struct err *err);
void leaves_free(struct leaves *l);

/* The certificate for this canonical name or address at this time (seconds since 1970). Borrowed until the next call. */
int leaves_get(
	struct leaves *l, struct view name, time_t now, X509 **ret, struct err *err) MUST_CHECK;
size_t leaves_count(const struct leaves *l);
