/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Is an address public: the one question that stands between a name that somebody else's DNS answers and the host's own networks.
 * Pure but for own_learn(). Table: class.def.
 */
#pragma once

#include "lib/base/err.h"
#include "lib/base/host.h"

#include <netinet/in.h>
#include <sys/socket.h>

enum { OWN_MAX = 256 };

/* For connect(2), and from what getpeername(2) says; false: another family. */
socklen_t address_sock(const struct address *a, uint16_t port, struct sockaddr_storage *ret);
bool address_of_sock(const struct sockaddr_storage *at, struct address *ret, uint16_t *ret_port);

/* Networks that belong to this host or touch it. */
struct network {
	struct address first;
	unsigned bits;
};
struct own {
	struct network net[OWN_MAX];
	size_t n;
};

/* From the interfaces as they are now. More than OWN_MAX is an error: an address that is not known would count as public. */
int own_learn(struct own *ret, struct err *err) MUST_CHECK;

/* 0: public. -EACCES with what it is. */
int class_check(const struct address *a, const struct own *own, struct err *err) MUST_CHECK;
