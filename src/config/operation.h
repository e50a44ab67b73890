/* SPDX-License-Identifier: Apache-2.0 */
/* One operation as people write it, into its document of the catalogue. */
#pragma once

#include "config/section.h"

/* Appends the document to *out (which may be left with half of one when there are faults); lib/action has read it then. */
void operation_compile(struct builder *b, const struct node *n, struct buf *out);
