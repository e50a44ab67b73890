/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Displays; see display.h. Neither way is taken on trust: what was written is read back and must give the record's bytes, what was read is
 * written again and must give the text. So a line that the writer forgets or cuts is a refusal, not a lie.
 */
#include "lib/approval/display.h"

#include "lib/approval/display_part.h"

#include <errno.h>

int
display_render(struct view record, const struct operation *op, struct buf *out, struct err *err)
{
	auto_buf struct buf text, again;
	int e;

	buf_init(&text, DISPLAY_BYTES_MAX);
	buf_init(&again, PROPOSAL_RECORD_MAX);
	if (record.n > PROPOSAL_RECORD_MAX)
		return err_set(err, -EINVAL, "the record is too large");
	e = display_write(record, op, &text, err);
	if (e == 0)
		e = display_read(buf_view(&text), &again, err);
	if (e == 0 && (again.failed || !view_eq(buf_view(&again), record)))
		e = err_set(err, -EINVAL, "the record says something that cannot be shown");
	if (e < 0)
		return e;
	buf_add_view(out, buf_view(&text));
	return buf_check(out) < 0 ? err_set(err, -ENOBUFS, "no room for the display") : 0;
}

int
display_parse(struct view text, const struct operation *op, struct buf *ret_record, struct err *err)
{
	auto_buf struct buf record, again;
	int e;

	buf_init(&record, PROPOSAL_RECORD_MAX);
	buf_init(&again, DISPLAY_BYTES_MAX);
	if (text.n > DISPLAY_BYTES_MAX)
		return err_set(err, -EINVAL, "the display is too large");
	e = display_read(text, &record, err);
	if (e == 0 && record.failed)
		e = err_set(err, -EINVAL, "the record is too large");
	if (e == 0)
		e = display_write(buf_view(&record), op, &again, err);
	if (e == 0 && !view_eq(buf_view(&again), text))
		e = err_set(err, -EINVAL, "the text is not what this record is shown as");
	if (e < 0)
		return err->code = e == -ENOMEM ? e : -EINVAL;
	buf_add_view(ret_record, buf_view(&record));
	return buf_check(ret_record) < 0 ? err_set(err, -ENOBUFS, "no room for the record") : 0;
}

void
display_digest(struct view text, uint8_t ret[static SHA256_BYTES])
{
	sha256_of(text, ret);
}
