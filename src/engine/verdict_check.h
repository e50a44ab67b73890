/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a gateway says, field by field, against its policy: it reads hostile bytes all day and may be lying. Pure. What does not fit is no refusal but
 * the end of the gateway: an honest one cannot say it.
 */
#pragma once

#include "lib/base/err.h"
#include "lib/egress/policy.h"

int verdict_check(const struct policy *p, const struct msg_verdict *m, struct err *err) MUST_CHECK;
int flow_check(const struct policy *p, const struct msg_flow *m, struct err *err) MUST_CHECK;
int lease_check(const struct policy *p, const struct msg_lease_ask *m, struct err *err) MUST_CHECK;
