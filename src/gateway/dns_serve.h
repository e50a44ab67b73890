/* SPDX-License-Identifier: Apache-2.0 */
/* Questions of the sandbox's programs, answered from the policy alone: there is nobody to pass one on to. For accept.c. */
#pragma once

#include "gateway.h"

/* Something can be read from this UDP socket, which tells to what address each datagram was sent. */
void dns_udp_ready(struct gateway *g, int fd);

/* Takes fd: an accepted connection. */
void dns_tcp_new(struct gateway *g, int fd);

/* The engine lent more names, or is gone: questions that wait for it are decided again. */
void dns_wake(struct gateway *g);
void dns_end(struct gateway *g);

/* Programs ask at an address of lo; what was sent to another one was meant for somebody else, and is recorded. */
bool dns_is_asked_here(struct gateway *g, const struct address *to);
