/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzing of what an ssh-agent answers: lists of keys and signatures. What is taken lies inside the answer. */
#include "cli/agent.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void
inside(struct view v, const uint8_t *data, size_t n)
{
	must(v.p >= data && v.p + v.n <= data + n);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct agent_key keys[AGENT_KEYS_MAX];
	struct view answer = view_of(data, n), signature;
	struct err err;
	size_t count = 0;

	if (agent_read_keys(answer, keys, &count, &err) == 0) {
		must(count <= AGENT_KEYS_MAX);
		for (size_t i = 0; i < count; i++) {
			inside(keys[i].blob, data, n);
			inside(keys[i].comment, data, n);
		}
		must(agent_read_signature(answer, &signature, &err) < 0);
	} else if (agent_read_signature(answer, &signature, &err) == 0) {
		inside(signature, data, n);
		must(signature.n == n - 5);
	}
	return 0;
}
