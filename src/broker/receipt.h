/* SPDX-License-Identifier: Apache-2.0 */
/* What is made of the answer to a request that was sent: its class, the fields that are kept, and whether it contradicts what was asked. */
#pragma once

#include "broker/classify.h"
#include "broker/work.h"

#include <jansson.h>

struct receipt {
	struct answer_means means;
	unsigned status;
	uint8_t response[SHA256_BYTES]; /* digest of the body as it came */
	char text[512];                 /* has no secret */
	struct buf kept;                /* owned: canonical object */
};

/* r is zero. */
void receipt_read(struct work *w, const struct call *c, struct receipt *r);

/* The same for the JSON of an effect that was found: class SUCCEEDED on entry, perhaps not on return. */
void receipt_judge(struct work *w, const json_t *found, struct receipt *r);
void receipt_done(struct receipt *r);
