/* SPDX-License-Identifier: Apache-2.0 */
/* What the supervisor tells first, read before the jail and blocking: secrets, mirrors, the origin line. */
#pragma once

#include "broker/broker.h"

/* Until BROKER_BEGIN. A secret that is of no use is logged and left out: its operations are denied. */
int start_read(struct broker *b, int supervisor, struct err *err) MUST_CHECK;
