/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sockets of the sandbox's network namespace: connections come with the fake address that a program dialled, which says what name it meant.
 * Questions of DNS are answered here too (dns_serve.c).
 */
#pragma once

#include "gateway.h"

/* Takes fd. It is heard from gateway_begin() on. */
int listener_add(struct gateway *g, int fd, enum socket_kind kind, uint16_t port,
	struct err *err) MUST_CHECK;
void listeners_begin(struct gateway *g);
void listeners_end(struct gateway *g);

/* Of a socket address's bytes; one of IPv4 in the clothes of IPv6 is one of IPv4. */
struct address address_of(int family, const void *bytes);

/* At its cap of connections nothing is accepted; called again when there is room. */
void listeners_pause(struct gateway *g, bool paused);
