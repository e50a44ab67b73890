/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every decoder of messages and frames: the first byte chooses which; what is accepted must encode to
 * the very same bytes.
 */
#include "proto_samples.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct sample *s;
	struct view body;
	struct buf again;
	struct err err = {0};

	if (size == 0)
		return 0;
	s = data[0] < 0x80 ? &msg_samples[data[0] % MSG_MAX] : &frame_samples[data[0] % FRAME_MAX];
	body = view_of(data + 1, size - 1);
	buf_init(&again, 1 << 20);
	if (s->again(body, &again, &err) == 0)
		must(buf_check(&again) == 0 && view_eq(body, buf_view(&again)));
	buf_done(&again);
	return 0;
}
