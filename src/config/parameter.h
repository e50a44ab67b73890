/* SPDX-License-Identifier: Apache-2.0 */
/* Parameters of operations as people write them, into the document. */
#pragma once

#include "config/section.h"

/* The array of PARAMETER of a mapping name: parameter; `depth` from 0. One value is written, whatever is refused. */
void parameters_write(
	struct builder *b, const struct node *all, unsigned depth, struct canon_writer *w);
