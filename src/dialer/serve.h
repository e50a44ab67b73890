/* SPDX-License-Identifier: Apache-2.0 */
/* The message tables of the dialer towards broker and supervisor; that towards gateways stands in gateway.c. */
#pragma once

#include "dial.h"

enum dialer_state {
	DIALER_NEW,
	DIALER_LIVE
}; /* of the supervisor's peer: before and after DIALER_BEGIN */

int serve_supervisor(struct dialer *d, int fd, struct err *err) MUST_CHECK;
void broker_init(struct dialer *d); /* no edge yet */
int serve_broker(struct dialer *d, int fd, struct err *err) MUST_CHECK;
