/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The decision about what a program of a sandbox asks for. Pure, one order, no shortcut; the gateway, `demilune policy try` and `replay`
 * call the same functions, the broker calls rules_request() again for what it is asked. Nothing is resolved or sent to decide.
 *
 * Every kind of rule names one place: (name, port). A place belongs to one kind and one way of speaking; a policy in which fetch of http and of
 * https, brokered, tcp and passthrough meet at one is refused. Of several rules for a place the first, in the order of the file, that takes the whole request decides; when
 * none does, the reason is that of the rule which came furthest in the order below.
 *
 * Path patterns: segments between slashes. A literal segment is compared byte for byte; "*" is one non-empty segment; "**", last only, is
 * whatever follows, nothing too: "**" behind "/help/" takes "/help/", "/help/a/b", and not "/help" or "/helpless".
 */
#pragma once

#include "lib/egress/policy.h"
#include "lib/http/query.h"

/* One row per step, in the order of step.def. */
enum egress_step {
#define EGRESS_STEP(NAME, text) EGRESS_STEP_##NAME,
#include "lib/egress/step.def"
#undef EGRESS_STEP
	EGRESS_STEPS
};
const char *egress_step_text(enum egress_step step);

/* Hears each step about each rule: for people. May be NULL. */
struct rules_trace {
	void (*step)(void *owner, size_t rule, enum egress_step step, bool holds);
	void *owner;
};

/* Can any rule lead to this canonical name: the question of DNS. */
bool rules_know(const struct policy *p, struct view name);

struct egress_place {
	enum egress_scheme scheme; /* of the connection: HTTP or HTTPS; NONE: not looked at yet */
	struct view name;          /* canonical */
	uint16_t port;
};

/* Rules as bits. */
typedef uint64_t rule_set;

/*
 * Which rules speak of this place. EGRESS_REASON_NONE with *ret; else NO_RULE (nobody names it), IP_LITERAL (an address that nobody names),
 * PORT (the name, at other ports) or SCHEME (name and port, spoken otherwise). With NONE every way of speaking is one of theirs: all of *ret
 * is of one kind in any case. tcp takes all that is spoken, passthrough what is not HTTP.
 */
enum egress_reason rules_place(const struct policy *p, const struct egress_place *at, rule_set *ret,
	const struct rules_trace *trace);

struct egress_request {
	enum http_method method;
	struct view path; /* as sent */
	bool has_query;
	const struct http_params *query; /* decoded; NULL without one */
	bool credential; /* a field that carries one: egress_field_is_credential(); parameters are looked at here */
	bool upgrade; /* to a WebSocket */
	bool body;
	uint64_t body_bytes; /* as announced; UINT64_MAX: not announced */
};

struct egress_decision {
	enum egress_reason reason;
	uint16_t rule;         /* the one that allows, or came furthest; EGRESS_NO_RULE */
	enum egress_step step; /* that did not hold; EGRESS_STEPS: all did, or there was no rule */
	unsigned status;       /* for the answer; 0 when it is allowed */
};

/* tcp and passthrough have no requests: they never allow one. */
void rules_request(const struct policy *p, rule_set candidates, const struct egress_request *r,
	const struct rules_trace *trace, struct egress_decision *ret);

/* Names of fields and of parameters by which programs send credentials (credential.def), any case; '-' and '_' are one. */
bool egress_field_is_credential(struct view name);
bool egress_parameter_is_credential(struct view name);

/*
 * SHA-256 over "demilune-request-v1", NUL, and for scheme word, name, port (decimal), method, path and each parameter (name, value) in the
 * order of their names: u32 length, bytes. The same for gateway, engine's record and broker.
 */
void egress_request_digest(const struct egress_place *at, const struct egress_request *r,
	uint8_t ret[static SHA256_BYTES]);

/* The query of BROKERED: name NUL value NUL, names ascending. -EINVAL: it is not in this form; *ret points into `bytes`. */
void egress_query_write(struct buf *out, const struct http_params *query);
int egress_query_read(struct view bytes, struct http_params *ret, struct err *err) MUST_CHECK;

/* Why a connection that the dialer was asked for is none; what is only between it and who asked is `otherwise`. */
enum egress_reason egress_reason_of_dial(enum dial dial, enum egress_reason otherwise);

/* reason.def: HTTP status (0: the connection is just closed) and one sentence. */
unsigned egress_reason_status(enum egress_reason reason);
const char *egress_reason_says(enum egress_reason reason);
