/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a program is told when something is refused: what, why, which rule would allow it, and that another way is refused too. JSON, for a
 * program or for the model that reads its output. Pure; no byte of the request is in it but the canonical name of the place.
 */
#pragma once

#include "lib/base/buf.h"
#include "lib/egress/rules.h"

struct refusal {
	enum egress_reason reason;
	unsigned status;           /* of the answer */
	struct egress_place place; /* name empty: not known */
	uint16_t rule;             /* that came nearest; EGRESS_NO_RULE */
	const char *text;          /* NULL, or what happened, in words of ours; no byte of a peer */
	bool head_only;            /* it answers HEAD */
};

/* Appends the whole answer, with Connection: close. */
void refuse_write(struct buf *out, const struct refusal *r);
