/* SPDX-License-Identifier: Apache-2.0 */
/* Whole numbers with a unit, as configurations have them. 0, or -EINVAL: another form, or it does not fit into 64 bits. */
#pragma once

#include "lib/base/attr.h"
#include "lib/base/view.h"

/* Milliseconds, of s, m, h or d. */
int unit_duration(struct view v, uint64_t *ret) MUST_CHECK;

/* Bytes, of KiB, MiB or GiB. */
int unit_bytes(struct view v, uint64_t *ret) MUST_CHECK;

/* Thousandths of a processor, of m. */
int unit_cpu(struct view v, uint64_t *ret) MUST_CHECK;
