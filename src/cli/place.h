/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the daemon is and how we prove who we are. The Unix socket: the kernel tells the daemon our uid; a
 * token goes along only if DEMILUNE_TOKEN has one. A URL: plain HTTP on a loopback address (a token must
 * not cross a network in the clear), with a token from DEMILUNE_TOKEN or ~/.config/demilune/token, a file
 * that nobody else can read.
 */
#pragma once

#include "cli/limits.h"
#include "lib/base/err.h"

#include <stdbool.h>

enum { PLACE_SOCKET_MAX = 108 };

struct place {
	bool tcp;
	char socket[PLACE_SOCKET_MAX];
	bool ipv6;
	uint16_t port;
	char authority[64];                /* for the Host field */
	char token[LIMIT_TOKEN_BYTES + 1]; /* "": none */
};

/* What was asked on the command line or in the environment; any may be NULL. */
struct place_wish {
	const char *socket, *api; /* options */
	const char *env_socket, *env_api, *env_token;
	const char *home;
};

/* Options before environment, URL before socket. -EINVAL or -EACCES with what to do. */
int place_find(const struct place_wish *wish, struct place *ret, struct err *err) MUST_CHECK;

/* Non-blocking, connected within LIMIT_CONNECT_MS; -ECONNREFUSED and -ENOENT say that no daemon runs. */
int place_connect(const struct place *p, int *ret_fd, struct err *err) MUST_CHECK;
