/* SPDX-License-Identifier: Apache-2.0 */
/* Verdicts and flows in the store: an audit record, and sums for people and for replay (net, egress). */
#pragma once

#include "engine/said.h"

/* Inside the open transaction. Not kept: d->result says why; that is no failure. */
int verdict_write(struct said *d, struct err *err) MUST_CHECK;
int flow_write(struct said *d, struct err *err) MUST_CHECK;

/* After the commit. */
void verdict_written(struct said *d);
void flow_written(struct said *d);
/* It was not committed. */
void flow_undone(struct said *d);

/* The flows that have no record yet, inside the open transaction of the end of the sandbox. */
int untold_audit(struct gate *g, struct err *err) MUST_CHECK;
