/* SPDX-License-Identifier: Apache-2.0 */
/* Hosts in text; see host.h. */
#include "lib/base/host.h"

#include "lib/base/num.h"

#include <arpa/inet.h>
#include <errno.h>

int
address_parse(struct view text, struct address *ret)
{
	struct address a = {0};
	char copy[ADDRESS_TEXT], again[ADDRESS_TEXT];

	if (text.n == 0 || text.n >= sizeof(copy) || view_has(text, 0))
		return -EINVAL;
	memcpy(copy, text.p, text.n);
	copy[text.n] = '\0';
	a.family = view_has(text, ':') ? AF_INET6 : AF_INET;
	if (inet_pton(a.family, copy, a.b) != 1)
		return -EINVAL;
	address_text(&a, again);
	if (strcmp(again, copy) != 0)
		return -EINVAL;
	*ret = a;
	return 0;
}

void
address_text(const struct address *a, char ret[static ADDRESS_TEXT])
{
	must(inet_ntop(a->family, a->b, ret, ADDRESS_TEXT) != NULL);
}

bool
address_eq(const struct address *a, const struct address *b)
{
	return a->family == b->family && memcmp(a->b, b->b, a->family == AF_INET ? 4 : 16) == 0;
}

int
address_port_parse(struct view text, uint16_t port, struct address *ret, uint16_t *ret_port)
{
	struct address a;
	struct view host;
	uint64_t number;
	size_t i = text.n;

	if (address_parse(text, ret) == 0) {
		*ret_port = port;
		return 0;
	}
	while (i > 0 && text.p[i - 1] != ':')
		i--;
	if (i == 0 || num_u64(view_skip(text, i), UINT16_MAX, &number) < 0 || number == 0)
		return -EINVAL;
	host = view_of(text.p, i - 1);
	if (view_starts(host, "[") && host.p[host.n - 1] == ']')
		host = view_of(host.p + 1, host.n - 2);
	else if (view_has(host, ':'))
		return -EINVAL;
	/* Brackets are for IPv6 and IPv6 is in brackets. */
	if (address_parse(host, &a) < 0 || (a.family == AF_INET6) != (text.p[0] == '['))
		return -EINVAL;
	*ret = a;
	*ret_port = (uint16_t)number;
	return 0;
}

static bool
is_letter(uint8_t c)
{
	return c >= 'a' && c <= 'z';
}

/* "0x", "0x7f": a number to the resolvers of some libraries. */
static bool
is_hex_number(struct view label)
{
	if (!view_starts(label, "0x"))
		return false;
	for (size_t i = 2; i < label.n; i++)
		if ((label.p[i] < '0' || label.p[i] > '9') &&
			(label.p[i] < 'a' || label.p[i] > 'f'))
			return false;
	return true;
}

bool
host_name_ok(struct view name)
{
	bool letter = false;
	size_t label = 0, last = 0;

	if (name.n == 0 || name.n > HOST_NAME_MAX_BYTES)
		return false;
	for (size_t i = 0; i <= name.n; i++) {
		if (i == name.n || name.p[i] == '.') {
			if (label == 0 || label > HOST_LABEL_MAX || name.p[i - 1] == '-')
				return false;
			if (i < name.n) {
				letter = false;
				last = i + 1;
			}
			label = 0;
			continue;
		}
		if (!is_letter(name.p[i]) && (name.p[i] < '0' || name.p[i] > '9') &&
			(name.p[i] != '-' || label == 0))
			return false;
		letter |= is_letter(name.p[i]);
		label++;
	}
	return letter && !is_hex_number(view_skip(name, last));
}
