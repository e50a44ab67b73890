/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The exact request of an operation: built by the host from typed values, never from a URL or a piece of one that a sandbox wrote. Each
 * path segment and query value is percent-encoded here, so no value can make another segment, host or header. The engine writes it
 * into the record, the broker builds it again and compares the bytes.
 */
#pragma once

#include "lib/action/operation.h"
#include "lib/base/buf.h"

enum { REQUEST_URL_MAX = 4096, REQUEST_BODY_MAX = 49152, REQUEST_KEY_MAX = 63 };

struct request_values {
	struct view arguments;              /* canonical object, of schema_apply */
	struct view tenant, task, proposal; /* ids in text */
	struct view key;                    /* the idempotency key */
	struct view reference;              /* for a lookup by reference */
};

struct request {
	char method[8];
	char content_type[40]; /* empty = no body */
	struct buf url, body;  /* owned */
};
void request_done(struct request *r);

/* The request with the effect. -EINVAL: a value that a path or body cannot hold ("", ".", ".." or a slash in a segment, too large). */
int request_render(const struct operation *op, const struct request_values *v, struct request *ret,
	struct err *err) MUST_CHECK;
/* The read of `verify`, and the look-up of an execution by key or reference. */
int request_render_verify(const struct operation *op, const struct request_values *v,
	struct request *ret, struct err *err) MUST_CHECK;
int request_render_lookup(const struct operation *op, const struct request_values *v,
	struct request *ret, struct err *err) MUST_CHECK;

/*
 * How the answer of a look-up is read: `list` (empty = the answer itself) leads to the entries, `field` of an entry says its state, one of
 * `succeeded` or `failed` (canonical arrays of strings; failed may be empty). Any other state is not known yet. False: no look-up.
 */
struct lookup_rule {
	struct view list, field;
	struct view succeeded, failed;
};
bool request_lookup_rule(const struct operation *op, struct lookup_rule *ret);
/* Is the text (of a JSON string, without quotation marks in it) one of these words. */
bool lookup_rule_has(struct view words, struct view text);

/* The derived key: nothing in it can rotate. epoch and index are numbers, ret gets a NUL. */
struct id;
void request_key(uint64_t epoch, const struct id *proposal, uint32_t index,
	char ret[static REQUEST_KEY_MAX + 1]);

/* What is kept of an answer: stored name and dotted field of the provider's JSON. Returns the number of rows. */
struct answer_field {
	struct view name, field;
};
size_t request_receipt_fields(const struct operation *op, struct answer_field *ret, size_t max);
size_t request_fact_fields(const struct operation *op, struct answer_field *ret, size_t max);
/* Fields of the answer that must equal an argument: name is the argument. */
size_t request_echo_fields(const struct operation *op, struct answer_field *ret, size_t max);
