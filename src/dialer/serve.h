/* SPDX-License-Identifier: Apache-2.0 */
/* The message tables of the dialer towards broker and supervisor. */
#pragma once

#include "dial.h"

/* The first message of the supervisor, waited for before the jail. */
int serve_begin(int fd, struct msg_dialer_begin *ret, struct err *err) MUST_CHECK;

int serve_start(struct dialer *d, int broker, int supervisor, struct err *err) MUST_CHECK;
