/* SPDX-License-Identifier: Apache-2.0 */
/* libcurl in the event loop. One for the process; made before the jail, since it asks the system about sockets once. */
#pragma once

#include "lib/base/err.h"

#include <ev.h>

struct http;

/* Once per process, before threads and jail: libcurl with memory that is wiped when it is freed. */
int http_library(struct err *err) MUST_CHECK;

int http_new(struct ev_loop *loop, struct http **ret, struct err *err) MUST_CHECK;
void http_free(struct http *h);
