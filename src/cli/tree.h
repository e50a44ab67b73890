/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trees of `cp -r` on the person's side, as strict ustar. Going in, the directory is read without following a
 * link. Coming out, the archive is a stranger's: everything is made below one directory descriptor, no link is
 * followed, neither one that the archive made nor one that was there; files get no execute bits, nothing gets a set-id bit,
 * and links that lead out of the tree are left out and told. What is there already is not replaced unless the person says
 * so: a sandbox that names .bashrc or .git/config gets neither.
 */
#pragma once

#include "cli/client.h"

/* Sends what is in the directory: the feed of an ask, `arg` is its path (char *). */
int tree_send(struct exchange *x, void *arg, struct err *err) MUST_CHECK;

/*
 * Unpacks the answer into the directory; *ret_left counts what was left out. -EEXIST at the first file or link whose name is
 * taken, unless `force`; what came before it stays.
 */
int tree_receive(
	struct exchange *x, int dir, bool force, unsigned *ret_left, struct err *err) MUST_CHECK;
