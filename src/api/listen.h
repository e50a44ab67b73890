/* SPDX-License-Identifier: Apache-2.0 */
/* The two listening sockets: who may come in, and how many. */
#pragma once

#include "api.h"

/* Binds and listens; "127.0.0.1:7420" or "[::1]:7420". Loopback only: the token would travel in clear. */
int listen_tcp_open(const char *address, int *ret_fd, struct err *err) MUST_CHECK;

/* Starts accepting; takes the descriptors, tcp_fd may be -1. */
int listen_start(struct api *api, int local_fd, int tcp_fd, struct err *err) MUST_CHECK;
void listen_stop(struct api *api);

/* A connection ended: there is room for another. */
void listen_closed(struct api *api, bool local);
