/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gateways played against the real broker, with the engine's leases: the usual policy, one request, and what became of it. On top of play.h,
 * with TLS.
 */
#pragma once

#include "play.h"

#include "lib/egress/rules.h"

#include <fcntl.h>

enum { SEALS = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL };

/* Rules of the usual policy. */
enum {
	ORDERS,  /* provider.test, /v1/orders/{any}, parameters lang and number */
	FETCH,   /* docs.test */
	MISSING, /* a secret that is not there */
	SMALL,   /* answers of at most 60 bytes */
	WILD,    /* any name below "test"; roots that no operation names */
	RULES
};

struct gate {
	int fd; /* -1: none */
	struct id sandbox;
};

extern struct play play;
extern struct gate gate; /* of a sandbox with the usual policy */
extern char document[4096];
extern uint8_t policy[SHA256_BYTES];
extern uint64_t gate_tag;

void policy_make(void); /* of the provider's port */
struct gate gate_with(const char *text, int seals, const uint8_t digest[static SHA256_BYTES]);
struct gate gate_new(void);
void gate_end(struct gate *g);

struct wish {
	unsigned rule;
	const char *name, *path;
	const char *query; /* "name=value&name=value" */
};
#define ORDER ((struct wish){ORDERS, "provider.test", "/v1/orders/48221", ""})

/* The engine's answer to a lease with these words; the lease is *ret, made when it is zero. */
enum denial lease_try(
	const struct gate *g, const struct wish *w, uint32_t valid_ms, struct id *ret);
struct id leased(const struct gate *g, const struct wish *w);

/* Returns its tag. */
uint64_t send_wish(const struct gate *g, const struct id *lease, const struct wish *w);

struct said {
	enum egress_reason reason;
	unsigned status;
	uint64_t tag;
	char text[256];
	const char *answer; /* until the next one is heard */
};
struct said hear(const struct gate *g);
struct said with_lease(const struct gate *g, const struct id *lease, const struct wish *w);
struct said request(const struct gate *g, const struct wish *w);

/* The test fails with what came. */
void is(const struct said *s, enum egress_reason reason, unsigned status);
void answered(const struct wish *w, unsigned status, const char *answer);
/* Refused, and the provider had so many requests, the dialer so many in all. */
void refused(const struct said *s, enum egress_reason reason, unsigned requests, unsigned dialled);
void refused_wish(struct wish w, enum egress_reason reason);

/* How often the text stands in the headers that came to the provider. */
unsigned headers_with(const char *text);
