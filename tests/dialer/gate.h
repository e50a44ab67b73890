/* SPDX-License-Identifier: Apache-2.0 */
/* Gateways played against the real dialer: policies, one request, and what became of it. On top of world.h. */
#pragma once

#include "world.h"

#include "lib/base/sha256.h"

/* Ports that the dialer is told, 0 behind the last. */
extern const uint16_t told[];

struct document {
	struct buf text; /* owned; open until document_end */
	unsigned rules;
};
void document_begin(struct document *d);
/* Each returns its index. */
uint16_t document_rule(struct document *d, const char *rule);
uint16_t document_host(struct document *d, const char *host, uint16_t port);
const char *document_end(struct document *d);
void digest_of(const char *document, uint8_t ret[static SHA256_BYTES]);

/* Our end of its edge. */
int gateway_with(const char *document, int seals, const uint8_t digest[static SHA256_BYTES]);
int gateway_new(const char *document);

/* Behind the rules of single names in the usual policy. */
enum {
	HOSTS = 35,
	RULE_WILD = HOSTS,   /* *.wild.test */
	RULE_DEEP,           /* **.deep.test */
	RULE_EXACT,          /* exact.test is 10.0.0.5 */
	RULE_BROKERED,       /* brokered.test */
	RULE_BROKERED_EXACT, /* brokered-exact.test is 10.0.0.6 */
	RULE_FULL,           /* full.test is 127.0.0.1 */
	RULE_SECOND,         /* two.test, another port */
	RULES
};
extern char usual[16384];
extern uint8_t usual_digest[SHA256_BYTES];
extern int gate; /* of a sandbox with the usual policy */
extern uint64_t tag;

/* Of each test: a dialer, and `gate`. */
int gate_setup(void **state);
int gate_teardown(void **state);

uint16_t rule_of(const char *host);

/* Returns its tag. */
uint64_t ask(int edge, unsigned rule, const char *host, uint16_t port, uint32_t timeout_ms);

struct said {
	enum dial reason;
	int fd;
	uint64_t tag;
	char text[224]; /* the address, or why not */
};
struct said hear(int edge, int timeout_ms);
struct said reach_at(int edge, unsigned rule, const char *host, uint16_t port);

/* `gate` asks for this name by its rule: refused with this sentence, and nothing was connected. */
void refused(const char *host, enum dial reason, const char *about);
void reached_by(int edge, unsigned rule, const char *host, const char *address);
void reached(const char *host, const char *address);
/* Refused before any packet. */
void not_listed(int edge, unsigned rule, const char *host, uint16_t port);

/* Of the broker; policy NULL: an origin of the catalogue. */
struct said broker_dials(const uint8_t *policy, unsigned rule, const char *host);

/* Open descriptors of the dialer; settled: when what was handed over is closed. */
size_t descriptors(void);
size_t settled(void);
