/* SPDX-License-Identifier: Apache-2.0 */
/* What agent, relay and engine hold against each other when programs ask for actions. One number for both, so it stands with neither. */
#pragma once

enum {
	PROPOSE_LIVE_MAX = 8,         /* requests of a sandbox that wait for their answer */
	PROPOSE_TEXT_BYTES = 32768,   /* of a request, as the program wrote it */
	PROPOSE_ANSWER_BYTES = 60000, /* of an answer */
};
