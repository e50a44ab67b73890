/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decisions: what a person signed about the bytes that they were shown. The engine knows nobody's key: whether it is authentic and by somebody
 * who may decide is the broker's answer, and the broker tests it again before anything leaves. Here: the state, the digest that was
 * shown, the clock after the lock, and that of two who race one is late and hears of the other.
 */
#pragma once

#include "engine/proposal.h"

int on_proposal_decide(struct engine *e, struct reply to, const struct msg_proposal_decide *m,
	struct err *err) MUST_CHECK;
