/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gateway of one sandbox, as the dialer sees it: its edge and its table, which is the rules of the policy that the supervisor told with
 * it. Its messages are those of a process that reads hostile bytes: taken over, it may send any of them, and reaches what its rules name.
 * The end of the edge is the end of table and dials.
 */
#pragma once

#include "dial.h"

/*
 * Takes both descriptors. A policy that cannot be used, or has a port that was not told before the jail, is logged and the edge closed: that
 * sandbox reaches nothing.
 */
void gateway_add(struct dialer *d, const struct msg_dialer_gateway *m, int edge, int policy);
void gateways_free(struct dialer *d);

/* The brokered rule that the broker names, of a policy that a sandbox has; false: there is none, or it does not name this. */
bool gateways_origin(struct dialer *d, const struct msg_dial *m, struct origin *ret);
