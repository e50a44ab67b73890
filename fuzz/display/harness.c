/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzing of displays, both ways. A text that is taken is exactly what its record is shown as; a record that is shown reads back to its
 * bytes; and no byte of a display but the line end is a control character.
 */
#include "lib/approval/display.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static const struct operation op = {
	.name = {.p = (const uint8_t *)"refund", .n = 6},
	.amount_argument = {.p = (const uint8_t *)"cents", .n = 5},
	.currency = {.p = (const uint8_t *)"EUR", .n = 3},
	.has_amount = true,
	.exponent = 2,
};

static void
check_text(struct view text)
{
	for (size_t i = 0; i < text.n; i++)
		must((text.p[i] >= ' ' && text.p[i] != 0x7f) || text.p[i] == '\n');
	must(view_utf8(text));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	auto_buf struct buf record = {.max = DISPLAY_BYTES_MAX}, text = {.max = DISPLAY_BYTES_MAX},
			    again = {.max = DISPLAY_BYTES_MAX};
	struct view in = view_of(data, n);
	struct err err;

	if (display_parse(in, &op, &record, &err) == 0) {
		must(display_render(buf_view(&record), &op, &text, &err) == 0);
		must(view_eq(buf_view(&text), in));
		check_text(in);
	} else if (display_render(in, &op, &text, &err) == 0) {
		must(display_parse(buf_view(&text), &op, &again, &err) == 0);
		must(view_eq(buf_view(&again), in));
		check_text(buf_view(&text));
	}
	display_escape(in, &again);
	if (!again.failed && record.n == 0 && text.n == 0)
		check_text(buf_view(&again));
	return 0;
}
