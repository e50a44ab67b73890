/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A policy: what the sandboxes of a task may reach. One canonical document, made by the configuration compiler (its form:
 * docs/decisions/0004-egress.md), read by gateway, dialer, broker, engine and CLI with this reader, so that they can never take one rule for
 * two. Read once and strictly; what does not fit its form is refused as a whole. Pure. All views point into the document.
 *
 * This half has no HTTP but the names of methods: the dialer links it. What a request means to a rule: rules.h.
 */
#pragma once

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/base/host.h"
#include "lib/base/sha256.h"
#include "lib/http/method.h"
#include "proto_gen.h"

enum {
	POLICIES_MAX = 64,
	POLICY_BYTES_MAX = 65536,
	POLICY_NAME_MAX = 63,
	POLICY_RULES_MAX = 64,
	POLICY_PORTS_MAX = 16,
	POLICY_QUERY_MAX = 16,  /* parameters of a rule */
	POLICY_FIELDS_MAX = 16, /* fields of a brokered answer */
	POLICY_ROOTS_MAX = 8,
	POLICY_TENANTS_MAX = 64,
	POLICY_PATH_MAX = 1024,
	POLICY_PARAMETER_MAX = 64, /* bytes of its name */
	POLICY_FIELD_MAX = 96,     /* bytes of one */
	POLICY_BROKERED_BYTES_MAX = 1 << 20,
	POLICY_USES_MAX = 1000000,
	EGRESS_NO_RULE = 0xffff,
	GATEWAY_PROXY_PORT = 3128,
	GATEWAY_DNS_PORT = 53,
};

#define POLICY_BODY_MAX (INT64_C(1) << 40)

/* Of a name pattern: "docs.example", "*.docs.example" (one label more), "**.docs.example" (one or more); labels that begin with "xn--" are taken by no wildcard. */
enum rule_labels { LABELS_NONE, LABELS_ONE, LABELS_MANY };

struct rule {
	enum rule_kind kind;
	enum rule_labels labels;
	struct view host; /* canonical name behind the "*.", or canonical text of an address */
	bool literal;     /* host is an address: only this one, no name */
	bool exact; /* `address` is the owner's own word: dialled whatever its class, nothing is resolved */
	struct address address; /* with literal or exact */
	uint16_t port;
	bool tls; /* of fetch; brokered always; tcp and passthrough: false, the gateway does not look inside */

	/* fetch and brokered */
	struct view path; /* pattern, see rules.h */
	unsigned methods; /* bit 1 << HTTP_x */
	struct view query
		[POLICY_QUERY_MAX]; /* parameters that may be there, ascending; none: no query at all */
	size_t nquery;
	uint64_t response_max; /* bytes of one answer's body */
	uint64_t request_max;  /* fetch: bytes of one request's body; 0: none */
	bool websocket;        /* fetch */
	struct view roots;     /* NAME.pem of the trust directory; empty: those of the system */

	/* brokered */
	struct view credential_header, credential_prefix, credential_secret;
	struct view field[POLICY_FIELDS_MAX]; /* dotted, as in operations */
	size_t nfields;
	uint32_t uses; /* of one task; 0: as the budget says */
};

struct policy {
	struct view document, name;
	uint8_t digest[SHA256_BYTES]; /* over "demilune-egress-v1", NUL, document */
	bool ipv6;    /* fake addresses are of the ULA pool, and AAAA is answered in place of A */
	bool capture; /* every address is captured, to be refused and recorded; else unreachable */
	struct egress budgets;
	struct view tenant[POLICY_TENANTS_MAX]; /* who may use it, ascending; none: everybody */
	size_t ntenants;
	struct rule rule[POLICY_RULES_MAX]; /* in the order of the file */
	size_t nrules;
	uint16_t ports
		[POLICY_PORTS_MAX]; /* of all rules, and with capture those below; ascending, 0 behind the last */
	size_t nports;
};

/* Where a program that is to be watched (capture) most likely goes, whatever rules there are. */
static const uint16_t policy_capture_ports[] UNUSED = {80, 443};

/* -EINVAL with what is wrong where; nothing holds then. *ret is large (some 40 KiB): not for a stack. */
int policy_read(struct view document, struct policy *ret, struct err *err) MUST_CHECK;

/* From a sealed memory file with one document: seals (write, shrink, grow, seal) are tested, then all is read. *ret_bytes is owned by the caller. */
int policy_load(int fd, uint8_t **ret_bytes, struct policy *ret, struct err *err) MUST_CHECK;

/* All policies of a host: u32 length, document, ...; ascending by name. */
struct policies {
	uint8_t *bytes;     /* owned */
	struct policy *row; /* owned */
	size_t n;
};
int policies_load(int fd, struct policies *ret, struct err *err) MUST_CHECK;
void policies_done(struct policies *p);
const struct policy *policies_find(const struct policies *p, struct view name);

/* Appends a document as policies_load() wants it. */
void policies_put(struct buf *b, struct view document);

/* May this rule lead to this name and port, whatever is asked there. `name` is canonical. The dialer asks nothing else. */
bool rule_names(const struct rule *r, struct view name, uint16_t port);

/* The same at any port. */
bool rule_hosts(const struct rule *r, struct view name);

/* Is there a name and port that both lead to. */
bool rule_overlaps(const struct rule *a, const struct rule *b);

/* They do, and are of different kinds, or http and https: no policy has such two. */
bool rule_conflicts(const struct rule *a, const struct rule *b);

/*
 * A field of a brokered answer: form_field_ok(), and with "__" for its dots a key of canonical JSON that no other field makes: a letter first, no
 * '-', no "__", no '_' beside a dot.
 */
bool rule_field_ok(struct view field);

/* A pattern of paths (rules.h): strict characters, no "." and "..", "*" and "**" only as whole segments, "**" only as the last. */
bool rule_path_ok(struct view path);
