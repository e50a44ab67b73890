/* SPDX-License-Identifier: Apache-2.0 */
/* The jail of the broker: its own directory, the trust directory to read, the mirrors, descriptors that it is given. */
#pragma once

#include "broker/broker.h"

int confine(const struct broker *b, struct err *err) MUST_CHECK;
