/* SPDX-License-Identifier: Apache-2.0 */
/* The host stops: no new work; when the last sandbox is gone and recorded, STOPPED. */
#pragma once

#include "engine/engine.h"

int on_stopping(struct engine *e, struct err *err) MUST_CHECK;
void stopping_check(struct engine *e);
