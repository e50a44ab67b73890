/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens: who there is, new ones, the end of one. Only digests are known here. */
#pragma once

#include "engine/audit.h"

int on_whoami(
	struct engine *e, struct reply to, const struct msg_whoami *m, struct err *err) MUST_CHECK;
int on_token_create(struct engine *e, struct reply to, const struct msg_token_create *m,
	struct err *err) MUST_CHECK;
int on_token_list(struct engine *e, struct reply to, const struct msg_token_list *m,
	struct err *err) MUST_CHECK;
int on_token_revoke(struct engine *e, struct reply to, const struct msg_token_revoke *m,
	struct err *err) MUST_CHECK;
