/* SPDX-License-Identifier: Apache-2.0 */
/* Which fields of a head are not passed on (hop.def). Pure. */
#pragma once

#include "lib/base/view.h"
#include "lib/http/reason.h"

bool hop_drops(struct view name, enum http_side side);
