/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hosts in text: names of DNS and IP addresses, each in one form only. What reads like an address to somebody and like
 * a name to somebody else ("127.1", "0x7f.1", "010.0.0.1") is neither.
 */
#pragma once

#include "lib/base/attr.h"
#include "lib/base/view.h"

enum { ADDRESS_TEXT = 64, HOST_NAME_MAX_BYTES = 253, HOST_LABEL_MAX = 63 };

struct address {
	int family;    /* AF_INET or AF_INET6 */
	uint8_t b[16]; /* network order; 4 bytes of AF_INET */
};

/* Only the text that address_text writes; zones are -EINVAL too. */
int address_parse(struct view text, struct address *ret) MUST_CHECK;
void address_text(const struct address *a, char ret[static ADDRESS_TEXT]);
bool address_eq(const struct address *a, const struct address *b);

/* "192.0.2.1", "192.0.2.1:5353", "2001:db8::1", "[2001:db8::1]:5353"; without a port the one given. */
int address_port_parse(
	struct view text, uint16_t port, struct address *ret, uint16_t *ret_port) MUST_CHECK;

/*
 * A name of DNS: at most 253 bytes of labels of 1 to 63 of [a-z0-9-], none of which begins or ends with '-', without a dot at the end; the
 * last one has a letter and is no "0x" with hexadecimal digits.
 */
bool host_name_ok(struct view name);
