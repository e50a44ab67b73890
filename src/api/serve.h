/* SPDX-License-Identifier: Apache-2.0 */
/* The edges to engine and supervisor. */
#pragma once

#include "api.h"

/* Takes both descriptors. */
int serve_start(struct api *api, int engine_fd, int supervisor_fd, struct err *err) MUST_CHECK;
void serve_stop(struct api *api);
