/* SPDX-License-Identifier: Apache-2.0 */
/* A key store of Java (JKS, version 2) with one trusted certificate. Java's own default password, which protects nothing, is its password. */
#pragma once

#include "lib/base/buf.h"

/* made_ms: what it says about when it was made. False: no memory. */
bool jks_write(struct buf *out, const char *alias, struct view certificate, uint64_t made_ms);
