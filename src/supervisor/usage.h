/* SPDX-License-Identifier: Apache-2.0 */
/* What a sandbox uses, as the kernel counts it. */
#pragma once

#include "proto_gen.h"
#include "supervisor/cgroup.h"

/* A counter that this kernel does not have is 0. `volume` is a descriptor on the sandbox's tmpfs, or -1. */
void usage_read(const struct cgroups *c, const char *group, int volume, struct usage *ret);
