/* SPDX-License-Identifier: Apache-2.0 */
/* The jail of the dialer. */
#pragma once

#include "dial.h"

/* After the table, the name servers and the host's addresses were read, before the first byte of a peer. */
int confine(const struct dialer *d, struct err *err) MUST_CHECK;
