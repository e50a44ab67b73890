/* SPDX-License-Identifier: Apache-2.0 */
/* Answers of an ssh-agent; see agent.h. Pure, so that any bytes can be tried. */
#include "cli/agent.h"
#include "lib/approval/sshwire.h"

enum { KEYS_ANSWER = 12, SIGN_RESPONSE = 14, FAILURE = 5 };

/* The type in front; *ret is what follows. */
static int
take_type(struct view answer, uint8_t type, struct view *ret, struct err *err)
{
	if (answer.n == 1 && answer.p[0] == FAILURE)
		return err_set(err, -EACCES, "ssh-agent refused");
	if (answer.n == 0 || answer.p[0] != type)
		return err_set(err, -EBADMSG, "ssh-agent gave another answer than to the question");
	*ret = view_skip(answer, 1);
	return 0;
}

int
agent_read_keys(struct view answer, struct agent_key ret[static AGENT_KEYS_MAX], size_t *ret_n,
	struct err *err)
{
	struct view rest = {0};
	uint32_t n;
	int r = take_type(answer, KEYS_ANSWER, &rest, err);

	if (r < 0)
		return r;
	if (ssh_take_u32(&rest, &n) < 0)
		return err_set(err, -EBADMSG, "the keys of ssh-agent are cut off");
	if (n > AGENT_KEYS_MAX)
		return err_set(err, -EBADMSG, "ssh-agent has more than %d keys", AGENT_KEYS_MAX);
	for (uint32_t i = 0; i < n; i++)
		if (ssh_take(&rest, &ret[i].blob) < 0 || ssh_take(&rest, &ret[i].comment) < 0)
			return err_set(err, -EBADMSG, "the keys of ssh-agent are cut off");
	if (rest.n != 0)
		return err_set(err, -EBADMSG, "something stands behind the keys of ssh-agent");
	*ret_n = n;
	return 0;
}

int
agent_read_signature(struct view answer, struct view *ret, struct err *err)
{
	struct view rest = {0}, signature = {0};
	int r = take_type(answer, SIGN_RESPONSE, &rest, err);

	if (r < 0)
		return r;
	if (ssh_take(&rest, &signature) < 0 || rest.n != 0 || signature.n == 0)
		return err_set(err, -EBADMSG, "the signature of ssh-agent has a wrong length");
	*ret = signature;
	return 0;
}
