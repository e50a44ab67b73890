/* SPDX-License-Identifier: Apache-2.0 */
/* The text of demilune.yaml in, settings or faults out; pure, for main.c, tests and fuzzing. */
#pragma once

#include "config/document.h"
#include "proto_gen.h"

/* Number of faults; *ret is complete when it is 0. */
unsigned compile(struct view text, struct settings *ret, const struct document_sink *sink);
