/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pinned catalogue: operations as the configuration compiler wrote them, one canonical document each (the form stands in
 * docs/decisions/0003-actions.md). Engine, broker and CLI read the same bytes with this reader, so that they can never take one
 * operation for two. A document is read once and strictly; what does not fit its form is refused as a whole.
 */
#pragma once

#include "lib/base/err.h"
#include "lib/base/sha256.h"
#include "lib/base/view.h"
#include "proto_gen.h"

enum {
	OPERATIONS_MAX = 256,
	OPERATION_BYTES_MAX = 32768,
	CATALOGUE_BYTES_MAX = 4 << 20,
	OPERATION_NAME_MAX = 63,
	OPERATION_ROLES_MAX = 8,
	OPERATION_TIERS_MAX = 8,
	OPERATION_CODES_MAX = 16,
	OPERATION_QUORUM_MAX = 5,
};

/* Statuses of HTTP, ascending. */
struct codes {
	uint16_t code[OPERATION_CODES_MAX];
	size_t n;
};
bool codes_have(const struct codes *c, unsigned status);

enum lookup_by {
	LOOKUP_NONE,
	LOOKUP_KEY,
	LOOKUP_REFERENCE, /* of the receipt of an answer that was not final */
};

/* What a provider promises about a request that is sent twice; all zero = nothing. research/actions.md 3.9. */
struct capability {
	bool key;            /* it takes an idempotency key */
	bool key_structured; /* as a quoted Structured Field string, else raw */
	struct view key_header;
	uint64_t key_window_ms; /* how long it remembers a key; 0 = not known */
	struct codes concurrent, definite, not_processed;
	enum lookup_by lookup;
	struct view lookup_form; /* canonical bytes of the lookup object; for request.h */
	uint64_t consistency_ms; /* before that, not found proves nothing */
};

struct provider {
	struct view name, account, environment;
	struct view host; /* ASCII, lower case, without the port */
	uint16_t port;
	bool tls;
	struct view roots; /* NAME.pem of the trust directory; empty = those of the system */
	struct view credential_header, credential_prefix, credential_secret; /* empty = none */
	uint32_t response_max;
	uint32_t timeout_ms;
	struct capability capability;
};

struct tier {
	int64_t above; /* for amounts greater than this */
	uint32_t quorum;
	struct view role[OPERATION_ROLES_MAX];
	size_t nroles;
};

struct operation {
	struct view document; /* borrowed from the catalogue, as all views here */
	struct view name, describe;
	uint32_t version;
	enum effect effect;
	struct view parameters; /* canonical array; for schema.h */
	struct view request;    /* canonical object; for request.h */
	struct view verify;     /* the same; empty = nothing is read before */
	struct view
		conditions; /* canonical array of verify.require; empty when there is no verify */
	struct provider provider, verify_provider;
	struct codes success, pending;

	bool has_amount;
	struct view amount_argument, currency;
	uint32_t exponent;

	uint64_t decide_within_ms, dispatch_within_ms;
	struct tier base; /* above: INT64_MIN */
	struct tier tier[OPERATION_TIERS_MAX];
	size_t ntiers; /* ascending */

	/* 0 = no limit. */
	uint64_t task_uses, tenant_day_uses, task_amount, tenant_day_amount;

	uint8_t digest[SHA256_BYTES], schema[SHA256_BYTES], adapter[SHA256_BYTES],
		policy[SHA256_BYTES];
};

/* One document; views point into it. -EINVAL with what is wrong where. */
int operation_read(struct view document, struct operation *ret, struct err *err) MUST_CHECK;

/* Who must approve this: the last tier whose `above` is less than the amount, else the base. */
const struct tier *operation_tier(const struct operation *op, int64_t amount);

struct catalogue {
	uint8_t *bytes;       /* owned */
	struct operation *op; /* owned; ascending by name */
	size_t n;
	uint8_t digest[SHA256_BYTES];
};

/* From the sealed memfd of the configuration compiler. Seals (write, shrink, grow, seal) are tested, then all is read. */
int catalogue_read(int fd, struct catalogue *ret, struct err *err) MUST_CHECK;
void catalogue_done(struct catalogue *c);

/* NULL: there is none. */
const struct operation *catalogue_find(const struct catalogue *c, struct view name);

/* A document onto the end of a catalogue that is being written: u32 length, bytes. For the compiler and for tests. */
struct buf;
void catalogue_put(struct buf *b, struct view document);
