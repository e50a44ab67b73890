/* SPDX-License-Identifier: Apache-2.0 */
/* Policies for the tests of this folder: documents from the text of their rules. */
#pragma once

#include "lib/egress/policy.h"

#define BUDGETS                                                             \
	"{\"brokered\":200,\"bytes_in\":2147483648,\"bytes_out\":67108864," \
	"\"connections\":10000,\"handshakes\":5000,\"names\":100,\"requests\":20000}"

/* One rule of each kind, with as few keys as it can have. */
#define FETCH(host, port, path, more)                                                      \
	"{\"host\":\"" host "\",\"kind\":\"fetch\",\"methods\":[\"GET\"],\"path\":\"" path \
	"\",\"port\":" port ",\"response_max\":8388608" more "}"
#define BROKERED(host, port, path)                                                            \
	"{\"credential\":{\"header\":\"Authorization\",\"prefix\":\"Bearer \","               \
	"\"secret\":\"carrier\"},\"fields\":[\"eta\",\"status\"],\"host\":\"" host            \
	"\",\"kind\":\"brokered\",\"methods\":[\"GET\"],\"path\":\"" path "\",\"port\":" port \
	",\"query\":[\"number\"],\"response_max\":262144}"
#define TCP(host, port)         "{\"host\":\"" host "\",\"kind\":\"tcp\",\"port\":" port "}"
#define PASSTHROUGH(host, port) "{\"host\":\"" host "\",\"kind\":\"passthrough\",\"port\":" port "}"

/* The document with these rules (comma between). Static: one at a time. */
struct view document_of(const char *rules);

/* Read, or the test has failed; static: one at a time. */
const struct policy *policy_of(const char *rules);
