/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Callers at the local socket. The engine asks the kernel who they are: it gets a duplicate of the connection before the
 * first request that comes without a token, and a number that stands for it from then on, until nothing that was begun
 * for this caller is left. What the api itself reads of a caller's uid is for its own counting only.
 */
#pragma once

#include "conn.h"

/* Makes `ret` the caller of this connection. */
int local_caller(struct conn *c, struct caller *ret, struct err *err) MUST_CHECK;

/* The connection has ended. */
void local_leave(struct conn *c);

/* What outlives a connection holds its caller, so that it can be ended in their name. Nothing for other callers. */
void local_hold(struct api *api, const struct caller *caller);
void local_drop(struct api *api, const struct caller *caller);

/* A new engine knows nobody. */
void local_tell_all(struct api *api);

/* The uid of a caller of this kind, else 0. */
uint32_t local_uid(const struct api *api, const struct caller *caller);
bool local_same(const struct api *api, const struct caller *a, const struct caller *b);
