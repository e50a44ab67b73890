/* SPDX-License-Identifier: Apache-2.0 */
/* The certificates that providers are verified with, read once before the jail: the system's, and pinned ones of the trust directory. */
#pragma once

#include "lib/action/operation.h"

struct roots;
struct x509_store_st;

/*
 * Reads the system's bundle, which a policy may want later, and every NAME.pem that the catalogue names. A name without a good file stays without roots: its provider is
 * refused before anything is sent. `note` is told of each that could not be read.
 */
int roots_load(const struct catalogue *c, int trust, void (*note)(const char *text),
	struct roots **ret, struct err *err) MUST_CHECK;
/* One name more, of a policy; in the jail, which leaves the trust directory open. What was read once is not read again. */
void roots_want(struct roots *r, int trust, struct view name, void (*note)(const char *text));
void roots_free(struct roots *r);

/* Those of this name ("" is the system); NULL: there are none. */
struct x509_store_st *roots_find(const struct roots *r, struct view name);
