/* SPDX-License-Identifier: Apache-2.0 */
/* Whom servers' certificates must lead to: files of the supervisor, read when a rule first needs them. */
#pragma once

#include "lib/base/err.h"
#include "lib/base/view.h"

#include <openssl/ssl.h>

struct roots;

struct roots *roots_new(void);
void roots_free(struct roots *r);
/* Takes fd; name empty: the system's. */
int roots_add(struct roots *r, const char *name, int fd, struct err *err) MUST_CHECK;
/* A client's context that verifies against them; read and kept at the first use. NULL with the reason. */
SSL_CTX *roots_context(struct roots *r, struct view name, struct err *err);
