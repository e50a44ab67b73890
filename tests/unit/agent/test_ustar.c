/* SPDX-License-Identifier: Apache-2.0 */
/* Strict archives: what is taken, and one thing at a time that is not. */
#include "lib/base/buf.h"
#include "lib/ustar/ustar.h"

#include <errno.h>
#include <stdio.h>

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static const struct ustar_bounds wide = {.entries = 100, .bytes = 1 << 20, .links_out = true};

static struct ustar_entry
entry(enum ustar_kind kind, const char *path, const char *target, uint64_t size)
{
	struct ustar_entry e = {.kind = kind, .mode = 0644, .size = size, .mtime = 1};

	(void)snprintf(e.path, sizeof(e.path), "%s", path);
	(void)snprintf(e.target, sizeof(e.target), "%s", target);
	return e;
}

static void
put(struct buf *b, const struct ustar_entry *e)
{
	uint8_t block[USTAR_BLOCK], zero[USTAR_BLOCK] = {0};
	struct err err = {0};

	assert_int_equal(ustar_put(e, block, &err), 0);
	buf_add(b, block, sizeof(block));
	for (uint64_t i = 0; i < e->size; i++)
		buf_add_byte(b, (uint8_t)i);
	buf_add(b, zero, ustar_padding(e->size));
}

static void
put_zeros(struct buf *b, size_t n)
{
	for (size_t i = 0; i < n; i++)
		buf_add_byte(b, 0);
}

/* Reads all in pieces; 0 with the entries counted, or the error. */
static int
read_all(struct view in, const struct ustar_bounds *bounds, size_t piece, unsigned *ret_entries)
{
	struct ustar_reader r;
	struct err err = {0};
	uint64_t bytes = 0;

	*ret_entries = 0;
	ustar_reader_init(&r, bounds);
	while (in.n > 0) {
		struct view part = view_of(in.p, piece < in.n ? piece : in.n), data;

		in = view_skip(in, part.n);
		for (;;) {
			int event = ustar_next(&r, &part, &data, &err);

			if (event < 0)
				return event;
			if (event == USTAR_MORE)
				break;
			if (event == USTAR_ENTRY) {
				(*ret_entries)++;
				bytes = 0;
			}
			if (event == USTAR_DATA)
				for (size_t i = 0; i < data.n; i++)
					assert_int_equal(data.p[i], (uint8_t)bytes++);
			if (event == USTAR_CLOSE)
				assert_int_equal(bytes, r.entry.size);
		}
	}
	return ustar_reader_end(&r, &err);
}

static void
round_trip(void **state)
{
	static const size_t pieces[] = {1, 7, 511, 512, 513, 100000};
	char longest[USTAR_PATH_MAX + 1];
	auto_buf struct buf b = {.max = 1 << 20};
	struct ustar_entry entries[] = {
		entry(USTAR_REGULAR, "a", "", 0),
		entry(USTAR_REGULAR, "b", "", 1),
		entry(USTAR_REGULAR, "d/c", "", 512),
		entry(USTAR_DIRECTORY, "d/e", "", 0),
		entry(USTAR_SYMLINK, "d/f", "../a", 0),
		entry(USTAR_REGULAR, "g", "", 5000),
		entry(USTAR_REGULAR, "h", "", 3),
	};
	unsigned n = 0;

	(void)state;
	memset(longest, 'x', sizeof(longest));
	longest[155] = '/';
	longest[256] = '\0';
	memcpy(entries[6].path, longest, sizeof(longest));
	for (size_t i = 0; i < ARRAY_LEN(entries); i++)
		put(&b, &entries[i]);
	put_zeros(&b, 1024 + 8192);
	for (size_t i = 0; i < ARRAY_LEN(pieces); i++) {
		assert_int_equal(read_all(buf_view(&b), &wide, pieces[i], &n), 0);
		assert_int_equal(n, ARRAY_LEN(entries));
	}
}

static void
paths(void **state)
{
	static const char *const good[] = {
		"a", "a/b", "...", ".a", "a..", "..a", "a b", "\xff\xfe"};
	static const char *const bad[] = {
		"", "/", "/a", "a/", "a//b", ".", "..", "a/.", "a/..", "./a", "../a", "a/../b"};
	char text[300];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(good); i++)
		assert_true(ustar_path_ok(view_str(good[i])));
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_false(ustar_path_ok(view_str(bad[i])));
	assert_false(ustar_path_ok(view_of("a\0b", 3)));
	memset(text, 'a', sizeof(text));
	assert_false(ustar_path_ok(view_of(text, 257)));
	assert_false(ustar_path_ok(view_of(text, 256))); /* one part of more than 255 */
	text[100] = '/';
	assert_true(ustar_path_ok(view_of(text, 256)));
}

static void
links(void **state)
{
	static const struct {
		const char *path, *target;
		bool stays;
	} cases[] = {
		{"l", "a", true},
		{"l", "a/b", true},
		{"l", "./a", true},
		{"l", ".", true},
		{"l", "..", false},
		{"l", "../a", false},
		{"l", "/", false},
		{"l", "/a", false},
		{"l", "", false},
		{"d/l", "..", true},
		{"d/l", "../a", true},
		{"d/l", "../../a", false},
		{"d/e/l", "../../a", true},
		{"d/e/l", ".//..//../a", true},
		{"d/e/l", "../../../a", false},
		{"d/l", "a/../b", false}, /* a may be a link itself */
		{"d/l", "a/..", false},
		{"d/l", "a/..b", true},
		{"d/l", "a/b..", true},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		if (ustar_link_stays(view_str(cases[i].path), view_str(cases[i].target)) !=
			cases[i].stays)
			fail_msg("%s -> %s", cases[i].path, cases[i].target);
}

static void
writer_refuses(void **state)
{
	uint8_t block[USTAR_BLOCK];
	struct err err = {0};
	struct ustar_entry e;
	char text[USTAR_PATH_MAX + 1];

	(void)state;
	e = entry(USTAR_REGULAR, "/a", "", 0);
	assert_int_equal(ustar_put(&e, block, &err), -EINVAL);
	e = entry(USTAR_SYMLINK, "a", "", 0);
	assert_int_equal(ustar_put(&e, block, &err), -EINVAL);
	e = entry(USTAR_REGULAR, "a", "b", 0);
	assert_int_equal(ustar_put(&e, block, &err), -EINVAL);
	e = entry(USTAR_DIRECTORY, "a", "", 1);
	assert_int_equal(ustar_put(&e, block, &err), -EINVAL);
	e = entry(USTAR_REGULAR, "a", "", USTAR_SIZE_MAX + 1);
	assert_int_equal(ustar_put(&e, block, &err), -EFBIG);
	e = entry(USTAR_REGULAR, "a", "", 0);
	e.mode = 010000;
	assert_int_equal(ustar_put(&e, block, &err), -EINVAL);
	memset(text, 'a', sizeof(text));
	text[101] = '\0';
	e = entry(USTAR_REGULAR, text, "", 0);
	assert_int_equal(ustar_put(&e, block, &err), -ENAMETOOLONG); /* no slash to split at */
}

/* The checksum made right again after a change. */
static void
seal(uint8_t *block)
{
	uint32_t sum = 0;

	memset(block + 148, ' ', 8);
	for (size_t i = 0; i < USTAR_BLOCK; i++)
		sum += block[i];
	(void)snprintf((char *)block + 148, 8, "%06o", sum);
	block[155] = ' ';
}

static void
one_wrong_thing(void **state)
{
	static const struct {
		const char *what;
		size_t at;
		const char *bytes;
		size_t n;
	} cases[] = {
		{"hard link", 156, "1", 1},
		{"character device", 156, "3", 1},
		{"block device", 156, "4", 1},
		{"FIFO", 156, "6", 1},
		{"contiguous", 156, "7", 1},
		{"pax", 156, "x", 1},
		{"global pax", 156, "g", 1},
		{"long name", 156, "L", 1},
		{"long link", 156, "K", 1},
		{"sparse", 156, "S", 1},
		{"symlink without target", 156, "2", 1},
		{"GNU magic", 257, "ustar  ", 8},
		{"no magic", 257, "\0\0\0\0\0", 5},
		{"version", 263, "01", 2},
		{"absolute", 0, "/a", 2},
		{"dot dot", 0, "..\0\0", 4},
		{"empty name", 0, "\0\0\0\0", 4},
		{"slash at the end of a file", 0, "fil/", 4},
		{"bytes behind the name", 0, "a\0b", 3},
		{"absolute by prefix", 345, "/a", 2},
		{"dot dot by prefix", 345, "..", 2},
		{"target of a file", 157, "t", 1},
		{"mode not octal", 100, "0000648", 8},
		{"mode too large", 100, "0010000", 8},
		{"mode of blanks", 100, "       ", 8},
		{"mode without end", 100, "00000644", 8},
		{"size negative", 124, "-0000000001", 12},
		{"size in base 256", 124, "\x80\0\0\0\0\0\0\0\0\0\0\1", 12},
		{"size not octal", 124, "0000000000x", 12},
		{"time not octal", 136, "9", 1},
		{"owner not octal", 108, "x", 1},
		{"group not octal", 116, "x", 1},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		auto_buf struct buf b = {.max = 1 << 16};
		struct ustar_entry e = entry(USTAR_REGULAR, "file", "", 0);
		unsigned n;

		put(&b, &e);
		put_zeros(&b, 1024);
		assert_int_equal(read_all(buf_view(&b), &wide, 4096, &n), 0);
		memcpy(b.p + cases[i].at, cases[i].bytes, cases[i].n);
		assert_int_equal(read_all(buf_view(&b), &wide, 4096, &n), -EBADMSG); /* checksum */
		seal(b.p);
		if (read_all(buf_view(&b), &wide, 4096, &n) != -EBADMSG)
			fail_msg("%s is taken", cases[i].what);
	}
}

static void
top_and_dot_slash(void **state)
{
	static const struct {
		const char *name, *path;
		char type;
	} cases[] = {{"./", "", '5'}, {".", "", '5'}, {"./a", "a", '0'}, {"./a/", "a", '5'},
		{"a/", "a", '5'}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct ustar_entry e = entry(USTAR_REGULAR, "xx", "", 0);
		struct ustar_reader r;
		struct err err = {0};
		struct view in, data;
		uint8_t block[USTAR_BLOCK];

		assert_int_equal(ustar_put(&e, block, &err), 0);
		memset(block, 0, 100);
		memcpy(block, cases[i].name, strlen(cases[i].name));
		block[156] = (uint8_t)cases[i].type;
		seal(block);
		in = view_of(block, sizeof(block));
		ustar_reader_init(&r, &wide);
		assert_int_equal(ustar_next(&r, &in, &data, &err), USTAR_ENTRY);
		assert_string_equal(r.entry.path, cases[i].path);
	}
}

static void
ends(void **state)
{
	auto_buf struct buf b = {.max = 1 << 16};
	struct ustar_entry e = entry(USTAR_REGULAR, "file", "", 600);
	unsigned n;
	size_t whole;

	(void)state;
	put(&b, &e);
	put_zeros(&b, 1024);
	whole = b.n;
	for (size_t cut = 0; cut < whole; cut++)
		assert_int_equal(read_all(view_of(b.p, cut), &wide, 4096, &n), -EBADMSG);
	assert_int_equal(read_all(buf_view(&b), &wide, 4096, &n), 0);
	buf_add_byte(&b, 1); /* behind the end */
	assert_int_equal(read_all(buf_view(&b), &wide, 4096, &n), -EBADMSG);
	b.n = whole;
	b.p[512 + 600] = 1; /* in the padding */
	assert_int_equal(read_all(buf_view(&b), &wide, 4096, &n), -EBADMSG);
	b.p[512 + 600] = 0;
	assert_true(b.p != NULL && b.n > 1024);
	memmove(b.p + 512, b.p, 512);
	memset(b.p, 0, 512); /* an entry behind a zero block */
	assert_int_equal(read_all(buf_view(&b), &wide, 4096, &n), -EBADMSG);
}

static void
bounds(void **state)
{
	auto_buf struct buf b = {.max = 1 << 16};
	struct ustar_entry f = entry(USTAR_REGULAR, "f", "", 100),
			   l = entry(USTAR_SYMLINK, "l", "/etc/passwd", 0);
	struct ustar_bounds tight = {.entries = 3, .bytes = 200, .links_out = true};
	unsigned n;

	(void)state;
	put(&b, &f);
	put(&b, &f);
	put(&b, &l);
	put_zeros(&b, 1024);
	assert_int_equal(read_all(buf_view(&b), &tight, 4096, &n), 0);
	tight.bytes = 199;
	assert_int_equal(read_all(buf_view(&b), &tight, 4096, &n), -E2BIG);
	tight.bytes = 200;
	tight.entries = 2;
	assert_int_equal(read_all(buf_view(&b), &tight, 4096, &n), -E2BIG);
	tight.entries = 3;
	tight.links_out = false;
	assert_int_equal(read_all(buf_view(&b), &tight, 4096, &n), -EBADMSG);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(round_trip),
		cmocka_unit_test(paths),
		cmocka_unit_test(links),
		cmocka_unit_test(writer_refuses),
		cmocka_unit_test(one_wrong_thing),
		cmocka_unit_test(top_and_dot_slash),
		cmocka_unit_test(ends),
		cmocka_unit_test(bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
