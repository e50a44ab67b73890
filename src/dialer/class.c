/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses and what they are; see class.h. Called by dial.c for each candidate, before anything is connected. */
#include "class.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <stdio.h>

static size_t
bytes_of(int family)
{
	return family == AF_INET ? 4 : 16;
}

socklen_t
address_sock(const struct address *a, uint16_t port, struct sockaddr_storage *ret)
{
	struct sockaddr_in *in = (struct sockaddr_in *)ret;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)ret;

	memset(ret, 0, sizeof(*ret));
	ret->ss_family = (sa_family_t)a->family;
	if (a->family == AF_INET) {
		in->sin_port = htons(port);
		memcpy(&in->sin_addr, a->b, 4);
		return sizeof(*in);
	}
	in6->sin6_port = htons(port);
	memcpy(&in6->sin6_addr, a->b, 16);
	return sizeof(*in6);
}

bool
address_of_sock(const struct sockaddr_storage *at, struct address *ret, uint16_t *ret_port)
{
	const struct sockaddr_in *in = (const struct sockaddr_in *)at;
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)at;

	*ret = (struct address){.family = at->ss_family};
	if (at->ss_family == AF_INET) {
		memcpy(ret->b, &in->sin_addr, 4);
		*ret_port = ntohs(in->sin_port);
		return true;
	}
	if (at->ss_family != AF_INET6)
		return false;
	memcpy(ret->b, &in6->sin6_addr, 16);
	*ret_port = ntohs(in6->sin6_port);
	return true;
}

/* ---- ranges ---- */

static bool
inside(const struct address *a, const uint8_t *first, unsigned bits)
{
	size_t whole = bits / 8;
	uint8_t mask = (uint8_t)(0xff00U >> bits % 8);

	if (memcmp(a->b, first, whole) != 0)
		return false;
	return bits % 8 == 0 || ((a->b[whole] ^ first[whole]) & mask) == 0;
}

struct range {
	const char *first;
	unsigned bits;
	const char *what;
};

static const struct range ranges4[] = {
#define RANGE4(first, bits, what) {first, bits, what},
#include "class.def"
#undef RANGE4
};
static const struct range ranges6[] = {
#define RANGE6(first, bits, what) {first, bits, what},
#include "class.def"
#undef RANGE6
};
static const struct {
	struct range range;
	size_t at;
	bool inverted;
} embeds[] = {
#define EMBED(first, bits, at, inverted, what) {{first, bits, what}, at, inverted},
#include "class.def"
#undef EMBED
};

static bool
in_range(const struct address *a, const struct range *r)
{
	uint8_t first[16];

	must(inet_pton(a->family, r->first, first) == 1);
	return inside(a, first, r->bits);
}

/* NULL: no row of the table. */
static const char *
range_of(const struct address *a, const struct range *rows, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (in_range(a, &rows[i]))
			return rows[i].what;
	return NULL;
}

static const char *
range4_of(const struct address *a)
{
	return range_of(a, ranges4, ARRAY_LEN(ranges4));
}

static int
refuse(const struct address *a, const char *what, struct err *err)
{
	char text[ADDRESS_TEXT];

	address_text(a, text);
	return err_set(err, -EACCES, "%s is no public address: %s", text, what);
}

static int
embedded_check(const struct address *a, struct err *err)
{
	for (size_t i = 0; i < ARRAY_LEN(embeds); i++) {
		struct address in = {.family = AF_INET};
		char text[ADDRESS_TEXT], what[128];
		const char *word;

		if (!in_range(a, &embeds[i].range))
			continue;
		for (size_t k = 0; k < 4; k++)
			in.b[k] = (uint8_t)(a->b[embeds[i].at + k] ^
					    (embeds[i].inverted ? 0xff : 0));
		address_text(&in, text);
		word = range4_of(&in);
		(void)snprintf(what, sizeof(what), "%s of %s (%s)", embeds[i].range.what, text,
			word == NULL ? "public" : word);
		return refuse(a, what, err);
	}
	return 0;
}

/* B18: an interface id of ISATAP, below any prefix, carries an IPv4 address to which a router may bring it. */
static bool
is_isatap(const struct address *a)
{
	return (a->b[8] == 0x00 || a->b[8] == 0x02) && a->b[9] == 0 && a->b[10] == 0x5e &&
	       a->b[11] == 0xfe;
}

static int
class6_check(const struct address *a, struct err *err)
{
	const char *word;
	int r = embedded_check(a, err);

	if (r < 0)
		return r;
	word = range_of(a, ranges6, ARRAY_LEN(ranges6));
	if (word == NULL && (a->b[0] & 0xe0) != 0x20)
		word = "outside of 2000::/3";
	if (word == NULL && is_isatap(a))
		word = "ISATAP";
	return word == NULL ? 0 : refuse(a, word, err);
}

int
class_check(const struct address *a, const struct own *own, struct err *err)
{
	const char *word;

	if (a->family == AF_INET6) {
		int r = class6_check(a, err);

		if (r < 0)
			return r;
	} else {
		word = range4_of(a);
		if (word != NULL)
			return refuse(a, word, err);
	}
	for (size_t i = 0; i < own->n; i++)
		if (own->net[i].first.family == a->family &&
			inside(a, own->net[i].first.b, own->net[i].bits))
			return refuse(a, "of this host or of a network that it is on", err);
	return 0;
}

/* ---- this host ---- */

/* Leading ones; a mask with a hole counts up to it, which refuses more. */
static unsigned
mask_bits(const struct address *mask)
{
	unsigned bits = 0;

	while (bits < bytes_of(mask->family) * 8 && (mask->b[bits / 8] & (0x80 >> bits % 8)) != 0)
		bits++;
	return bits;
}

static int
own_add(struct own *own, const struct sockaddr *at, const struct sockaddr *mask, struct err *err)
{
	struct sockaddr_storage copy = {0};
	struct address a, m;
	uint16_t port;
	unsigned bits;

	if (at == NULL || (at->sa_family != AF_INET && at->sa_family != AF_INET6))
		return 0;
	if (own->n == OWN_MAX)
		return err_set(err, -E2BIG, "this host has more than %d addresses", OWN_MAX);
	memcpy(&copy, at,
		at->sa_family == AF_INET ? sizeof(struct sockaddr_in)
					 : sizeof(struct sockaddr_in6));
	must(address_of_sock(&copy, &a, &port));
	bits = (unsigned)bytes_of(a.family) * 8;
	if (mask != NULL) {
		memcpy(&copy, mask,
			a.family == AF_INET ? sizeof(struct sockaddr_in)
					    : sizeof(struct sockaddr_in6));
		copy.ss_family = (sa_family_t)a.family; /* that of a mask is not always filled in */
		must(address_of_sock(&copy, &m, &port));
		bits = mask_bits(&m);
	}
	/* A link without an own prefix (0 bits) is known by its address alone. */
	if (bits == 0)
		bits = (unsigned)bytes_of(a.family) * 8;
	own->net[own->n++] = (struct network){.first = a, .bits = bits};
	return 0;
}

int
own_learn(struct own *ret, struct err *err)
{
	struct ifaddrs *all = NULL;
	struct own own = {.n = 0};
	int r = 0;

	if (getifaddrs(&all) < 0)
		return err_errno(err, "the addresses of this host");
	for (const struct ifaddrs *i = all; r == 0 && i != NULL; i = i->ifa_next) {
		r = own_add(&own, i->ifa_addr, i->ifa_netmask, err);
		if (r == 0 && (i->ifa_flags & 0x10 /* IFF_POINTOPOINT */) != 0)
			r = own_add(&own, i->ifa_dstaddr, NULL, err);
	}
	freeifaddrs(all);
	if (r == 0)
		*ret = own;
	return r;
}
