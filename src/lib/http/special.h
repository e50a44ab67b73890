/* SPDX-License-Identifier: Apache-2.0 */
/* Inside lib/http only: what the fields of a complete head mean together. See special.c. */
#pragma once

#include "lib/http/head.h"

/*
 * Fills host, framing, length, keep_alive, expect_continue and upgrade of a head whose first line
 * and fields are read, or says why they contradict each other. asked and switch_asked as in
 * http_scan_response; ignored for requests.
 */
enum http_reason http_special_judge(struct http_head *head, const struct http_limits *limits,
	enum http_method asked, bool switch_asked) MUST_CHECK;
