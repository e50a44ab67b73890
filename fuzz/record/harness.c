/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzing of the records. The first byte chooses the kind: proposal, decision, settlement, release, or the list of approvals. Bytes that are
 * accepted as a record are the bytes that writing it gives.
 */
#include "lib/action/record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

#define TRY(name)                                                        \
	static void try_##name(struct view bytes)                        \
	{                                                                \
		auto_buf struct buf room = {.max = PROPOSAL_RECORD_MAX}, \
				    out = {.max = PROPOSAL_RECORD_MAX};  \
		struct name##_record r;                                  \
		struct err err;                                          \
                                                                         \
		if (name##_record_read(bytes, &room, &r, &err) < 0)      \
			return;                                          \
		must(name##_record_write(&r, &out, &err) == 0);          \
		must(view_eq(buf_view(&out), bytes));                    \
	}
TRY(proposal)
TRY(decision)
TRY(settlement)
TRY(release)

static void
try_approvals(struct view all)
{
	auto_buf struct buf again = {.max = 1 << 20};
	struct view rest = all, d = {0}, s = {0};
	int e;

	while ((e = approvals_take(&rest, &d, &s)) == 1)
		approvals_put(&again, d, s);
	must(e < 0 || view_eq(buf_view(&again), all));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static void (*const kinds[])(struct view) = {
		try_proposal, try_decision, try_settlement, try_release, try_approvals};

	if (n > 0)
		kinds[data[0] % ARRAY_LEN(kinds)](view_of(data + 1, n - 1));
	return 0;
}
