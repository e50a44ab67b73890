/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gateway of one sandbox: started unused beside a spare, with nothing but the edge over which it is told all that makes it that
 * sandbox's. Nothing that it says is ever read here.
 */
#pragma once

#include "lib/base/err.h"
#include "supervisor/plumbing.h"

#include <sys/types.h>

struct gateway {
	pid_t pid;
	int pidfd;  /* owned; -1: none */
	int edge;   /* owned: our end of SUPERVISOR_GATEWAY; only written */
	int engine; /* owned: the engine's end of GATEWAY_ENGINE, until it was given away */
};

#define GATEWAY_NONE ((struct gateway){.pidfd = -1, .edge = -1, .engine = -1})

int gateway_start(struct gateway *g, const char *program, uint32_t uid, struct err *err) MUST_CHECK;

/* Before it begins. The descriptors stay with the caller. */
int gateway_listener(
	struct gateway *g, const struct plumbing_socket *s, int fd, struct err *err) MUST_CHECK;
int gateway_roots(struct gateway *g, const char *name, int fd, struct err *err) MUST_CHECK;

/* A message without a body that brings it an end of an edge. */
int gateway_edge(struct gateway *g, enum msg_type type, int fd, struct err *err) MUST_CHECK;

/* A fresh GATEWAY_ENGINE edge: tells the gateway, returns the engine's end, owned by the caller. */
int gateway_engine_edge(struct gateway *g, struct err *err) MUST_CHECK;

/* Whose it will be; the descriptor stays with the caller. Then its sockets, then the beginning. */
int gateway_policy(struct gateway *g, const struct msg_gateway_policy *m, int policy,
	struct err *err) MUST_CHECK;
int gateway_begin(struct gateway *g, struct err *err) MUST_CHECK;

/* It is told to end by the end of its edge, or killed; its end is not waited for. */
void gateway_leave(struct gateway *g);
void gateway_kill(struct gateway *g);

/* Closes all; kills and waits for the process if it still runs. */
void gateway_end(struct gateway *g);
