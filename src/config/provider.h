/* SPDX-License-Identifier: Apache-2.0 */
/* Providers of files of operations: read once, written into the document of each operation that names them. */
#pragma once

#include "config/section.h"

struct provider_source {
	const struct node *node; /* borrowed from its file */
	const char *file;
	struct section s, credential, capability, key, lookup; /* .node NULL: not there */
	struct view host, address;                             /* address: empty = none */
	uint16_t port;
	bool tls;
	struct statuses definite, not_processed, concurrent;
	uint64_t timeout_ms, response_max, key_window_ms, consistency_ms;
	unsigned key_format, lookup_by;
	bool good; /* no fault was found */
};

enum { LOOKUP_BY_KEY, LOOKUP_BY_REFERENCE };

void provider_source_read(struct builder *b, const struct node *n, struct provider_source *ret);

/* PROVIDER of the document, of one that is good. `b` tells faults of the lookup's path and query. */
void provider_write(struct builder *b, const struct provider_source *p, struct canon_writer *w);

/* NULL: there is none of this name, and that was told at `n`. */
const struct provider_source *provider_find(struct builder *b, const struct node *n);

/* {"origins": [...]} of all providers; two that disagree are a fault. Returns the number of rows. */
uint32_t origins_write(struct builder *b, struct buf *out);

/* For rules of policies too: the name of a request header that can carry a credential, and what stands before it there. */
void header_check(struct builder *b, const struct node *n);
void prefix_check(struct builder *b, const struct node *n);

/* The one text of an address, so that the same address is the same text everywhere. false: it is none. */
enum { CONFIG_ADDRESS_BYTES = 46 };
bool address_read(struct view v, char ret[static CONFIG_ADDRESS_BYTES], bool *ret_loopback);
