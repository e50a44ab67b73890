/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Is an address public: the one question that stands between a name that somebody else's DNS answers and the host's own networks.
 * Pure but for own_learn(). Table: class.def.
 */
#pragma once

#include "lib/base/err.h"
#include "lib/base/view.h"

#include <netinet/in.h>
#include <sys/socket.h>

enum { ADDRESS_TEXT = 64, OWN_MAX = 256 };

struct address {
	int family;    /* AF_INET or AF_INET6 */
	uint8_t b[16]; /* network order; 4 bytes of AF_INET */
};

/* The canonical text of an address and no other: "127.1", "010.0.0.1", "::ffff:a00:1" and zones are -EINVAL. */
int address_parse(struct view text, struct address *ret) MUST_CHECK;
void address_text(const struct address *a, char ret[static ADDRESS_TEXT]);
bool address_eq(const struct address *a, const struct address *b);

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
