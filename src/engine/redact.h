/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A command as text for people: bounded, valid UTF-8 on one line, and without what looks like a
 * secret. Best effort by patterns, for the reader of a table; the record's digest of the argv is
 * what is exact. Pure.
 *
 * Blotted out: values of Authorization-like headers, Bearer and Basic tokens, name=value and name: value
 * and --name value where the name speaks of a password, secret, token or key; the user part of URLs; -u name:value;
 * the password options of some programs;
 * PEM private keys; tokens with the known shapes of AWS, GitHub, Slack, Stripe, OpenAI-like sk-, JWTs and our own dml_
 * and pds_.
 */
#pragma once

#include "lib/base/buf.h"

/* argv: strings with NUL; at most max bytes into *ret (cut at a whole character, with "..." at the end). */
void redact_argv(struct view argv, size_t max, struct buf *ret);

/* The same for one text. */
void redact_text(struct view text, size_t max, struct buf *ret);
