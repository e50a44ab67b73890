/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzing of what the command reads of daemon, files and words. The first byte chooses where the rest is cut. Lines
 * and events are the same however they were cut; what is shown is printable UTF-8; a line of an export, base 64 and
 * units are taken in one form only.
 */
#include "lib/base/base64.h"
#include "cli/events.h"
#include "cli/export.h"
#include "cli/lines.h"
#include "cli/safe.h"
#include "cli/units.h"

enum { LINE_MAX_BYTES = 200, OUT_BYTES = 1 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void
feed_events(struct view text, size_t cut, struct buf *ret, int *ret_code)
{
	auto_events struct events e;
	struct err err = {0};
	int r = 0;

	events_init(&e);
	while (r >= 0 && text.n != 0) {
		struct view piece = view_of(text.p, text.n < cut ? text.n : cut);

		text = view_skip(text, cut);
		while ((r = events_next(&e, &piece, &err)) == 1) {
			must(strlen(e.name) <= EVENTS_NAME_MAX &&
				!view_has(buf_view(&e.data), '\n'));
			buf_addf(ret, "%s|", e.name);
			buf_add_view(ret, buf_view(&e.data));
		}
	}
	must(r >= 0 || err.text[0] != '\0');
	*ret_code = r;
}

static void
feed_lines(struct view text, size_t cut, struct buf *ret, int *ret_code)
{
	auto_lines struct lines l;
	struct err err = {0};
	struct view line;
	int r = 0;

	lines_init(&l, LINE_MAX_BYTES);
	while (r >= 0 && text.n != 0) {
		struct view piece = view_of(text.p, text.n < cut ? text.n : cut);

		text = view_skip(text, cut);
		while ((r = lines_next(&l, &piece, &line, &err)) == 1) {
			must(line.n <= LINE_MAX_BYTES && !view_has(line, '\n'));
			buf_add_view(ret, line);
			buf_add_byte(ret, '\n');
		}
	}
	*ret_code = r < 0 ? r : lines_end(&l, &err);
}

static void
check_cuts(void (*feed)(struct view, size_t, struct buf *, int *), struct view text, size_t cut)
{
	auto_buf struct buf whole = {.max = OUT_BYTES}, cut_up = {.max = OUT_BYTES};
	int r1, r2;

	feed(text, text.n + 1, &whole, &r1);
	feed(text, cut, &cut_up, &r2);
	must(r1 == r2 && view_eq(buf_view(&whole), buf_view(&cut_up)));
}

static void
check_shown(struct view text)
{
	auto_buf struct buf shown = {.max = OUT_BYTES}, short_form = {.max = OUT_BYTES};

	safe_add(&shown, text, 0);
	must(buf_check(&shown) == 0 && shown.n >= text.n / 4 && view_utf8(buf_view(&shown)));
	for (size_t i = 0; i < shown.n; i++)
		must(shown.p[i] >= 0x20 && shown.p[i] != 0x7f);
	safe_add(&short_form, text, 10);
	must(safe_width(buf_view(&short_form)) <= 10);
}

static void
check_forms(struct view text)
{
	static const char head[] = "{\"number\":";
	auto_buf struct buf bytes = {.max = OUT_BYTES};
	struct export_line l;
	struct err err = {0};
	int64_t v;

	if (base64_decode(text, &bytes) == 0)
		must(bytes.n <= text.n / 4 * 3 && bytes.n + 2 >= text.n / 4 * 3);
	if (export_read(text, &l, &err) == 0)
		must(view_starts(text, head) && l.record.p[0] == '{' &&
			l.record.p + l.record.n + 1 == text.p + text.n);
	if (units_duration(text, &v, &err) == 0)
		must(v >= 1 && text.n >= 2);
	if (units_bytes(text, &v, &err) == 0)
		must(v >= 1 << 20 && v % (1 << 20) == 0);
	if (units_cpu(text, &v, &err) == 0)
		must(v >= 1 && v <= 1024000);
	if (units_count(text, &v, &err) == 0)
		must(v >= 1 && v <= 1000000000);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct view text;

	if (n == 0 || n > 8192)
		return 0;
	text = view_of(data + 1, n - 1);
	check_cuts(feed_events, text, 1 + data[0] % 32u);
	check_cuts(feed_lines, text, 1 + data[0] % 32u);
	check_shown(text);
	check_forms(text);
	return 0;
}
