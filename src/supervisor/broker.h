/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the broker gets beside its edges: the directory of trust, the files of the secrets directory and the mirrors, opened anew for
 * each broker that starts. The supervisor opens them and never reads them. What cannot be given is logged with what to do, and not given:
 * the broker denies what needs it.
 */
#pragma once

#include "supervisor/supervisor.h"

/* Before its start: sv->trust. */
int broker_prepare(struct supervisor *sv, struct err *err) MUST_CHECK;

/* After it: SECRET..., MIRROR..., BROKER_BEGIN. */
void broker_greet(struct supervisor *sv, struct member *broker);
