/* SPDX-License-Identifier: Apache-2.0 */
/* What gateway, dialer and broker hold against each other. A gateway waits by itself before it asks for more. One number for all, so it stands with none. */
#pragma once

enum {
	REACH_LIVE_MAX = 32,   /* connections of one gateway that are on their way */
	BROKERED_LIVE_MAX = 8, /* brokered requests of one gateway that wait for their answer */
};
