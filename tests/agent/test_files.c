/* SPDX-License-Identifier: Apache-2.0 */
/* File jobs in a real agent behind a real relay: paths, links, what is no file, limits, trees. */
#include "world.h"

#include "lib/ustar/ustar.h"

#include <errno.h>
#include <stdio.h>

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static struct world world;

#define auto_result __attribute__((cleanup(result_done)))

static void
assert_ok(const struct result *r)
{
	if (r->end.end != JOB_END_EXITED || r->end.code != 0)
		fail_msg("ended %d, code %d (%s)", r->end.end, r->end.code, strerror(r->end.code));
}

static void
assert_errno(const struct result *r, int code)
{
	if (r->end.end != JOB_END_NOT_STARTED || r->end.code != code)
		fail_msg("ended %d, code %d, not %s", r->end.end, r->end.code, strerror(code));
}

static void
assert_shell(const char *command, const char *out)
{
	auto_result struct result r;

	world_shell(&world, command, &r);
	if (!view_is(buf_view(&r.out), out))
		fail_msg("%s: \"%.*s\"", command, VIEW_ARGS(buf_view(&r.out)));
}

static void
file_job(enum job_kind kind, const char *path, const struct view *in, struct result *r)
{
	struct msg_job_start m = start_file(&world, kind, path);

	world_run(&world, &m, in, r);
}

static int
file_errno(enum job_kind kind, const char *path)
{
	auto_result struct result r;
	struct view in = view_str("x");

	file_job(kind, path, kind == JOB_KIND_FILE_WRITE ? &in : NULL, &r);
	return r.end.end == JOB_END_EXITED ? 0 : r.end.code;
}

static void
write_and_read(void **state)
{
	static const size_t sizes[] = {0, 1, 65536, 5000001};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		auto_buf struct buf data = {.max = 6000000};
		auto_result struct result w, r;
		uint8_t digest[SHA256_BYTES];
		struct view in;

		for (size_t k = 0; k < sizes[i]; k++)
			buf_add_byte(&data, (uint8_t)(k * 31 + k / 257));
		in = buf_view(&data);
		file_job(JOB_KIND_FILE_WRITE, "/tmp/d/e/file", &in, &w);
		assert_ok(&w);
		file_job(JOB_KIND_FILE_READ, "/tmp/d/e/file", NULL, &r);
		assert_ok(&r);
		assert_true(view_eq(buf_view(&r.out), in));
		assert_int_equal(r.ngaps, 0);
		sha256_of(in, digest);
		assert_memory_equal(w.end.content, digest, SHA256_BYTES);
		assert_memory_equal(r.end.content, digest, SHA256_BYTES);
		assert_int_equal(w.end.stdin_bytes, sizes[i]);
		assert_int_equal(r.end.stdout_seen, sizes[i]);
	}
	assert_shell("stat -c '%u %a' /tmp/d/e/file /tmp/d/e; ls -A /tmp/d/e",
		"10001 644\n10001 755\nfile\n");
}

static void
modes(void **state)
{
	struct msg_job_start m = start_file(&world, JOB_KIND_FILE_WRITE, "/tmp/mode");
	struct view in = view_str("#!/bin/sh\necho ran\n");
	auto_result struct result a, b, c;

	(void)state;
	m.mode = 0755;
	world_run(&world, &m, &in, &a);
	assert_ok(&a);
	assert_shell("/tmp/mode; stat -c %a /tmp/mode", "ran\n755\n");
	file_job(JOB_KIND_FILE_WRITE, "/tmp/mode", &in, &b);
	assert_ok(&b);
	assert_shell("stat -c %a /tmp/mode", "755\n"); /* that of the file replaced */
	m = start_file(&world, JOB_KIND_FILE_MKDIR, "/tmp/made/deep");
	m.mode = 0700;
	world_run(&world, &m, NULL, &c);
	assert_ok(&c);
	assert_shell("stat -c %a /tmp/made /tmp/made/deep", "755\n700\n");
}

static void
announced_size(void **state)
{
	static const struct {
		uint64_t size;
		int code;
	} cases[] = {{4, 0}, {5, EIO}, {3, EFBIG}, {0, EFBIG}};
	struct view in = view_str("four");

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct msg_job_start m = start_file(&world, JOB_KIND_FILE_WRITE, "/tmp/sized");
		auto_result struct result r;

		m.size_bytes = cases[i].size;
		world_run(&world, &m, &in, &r);
		if (cases[i].code == 0)
			assert_ok(&r);
		else
			assert_errno(&r, cases[i].code);
	}
	assert_shell("cat /tmp/sized; ls -A /tmp | grep -c part", "four0\n");
}

static void
read_limit(void **state)
{
	struct msg_job_start m = start_file(&world, JOB_KIND_FILE_READ, "/tmp/sized");
	auto_result struct result r, ok;

	(void)state;
	m.size_bytes = 3;
	world_run(&world, &m, NULL, &r);
	assert_errno(&r, EFBIG);
	m = start_file(&world, JOB_KIND_FILE_READ, "/tmp/sized");
	m.size_bytes = 4;
	world_run(&world, &m, NULL, &ok);
	assert_ok(&ok);
}

/* A caller that goes before it said that all is there leaves nothing behind. */
static void
half_a_file_is_none(void **state)
{
	struct msg_job_start m = start_file(&world, JOB_KIND_FILE_WRITE, "/tmp/half");
	auto_result struct result r;

	(void)state;
	world_begin(&world, &m, true, &r);
	SESSION_SEND(&r, IN, in, {.data = view_str("half of")});
	(void)usleep(50000);
	(void)close(r.session);
	r.session = -1;
	assert_true(world_until(&world, &r, is_ended, 3000));
	assert_true(r.end.cancelled);
	assert_int_equal(r.end.end, JOB_END_NOT_STARTED);
	assert_shell("ls -A /tmp | grep -cE 'half|part'", "0\n");
}

static void
refusals(void **state)
{
	static const struct {
		enum job_kind kind;
		const char *path;
		int code;
	} cases[] = {
		{JOB_KIND_FILE_READ, "/tmp/none", ENOENT},
		{JOB_KIND_FILE_READ, "/tmp", EISDIR},
		{JOB_KIND_FILE_READ, "", EISDIR},
		{JOB_KIND_FILE_READ, "/etc/shadow", EACCES},
		{JOB_KIND_FILE_READ, "/tmp/x/fifo", ENXIO},
		{JOB_KIND_FILE_READ, "/tmp/x/socket", ENXIO},
		{JOB_KIND_FILE_READ, "/dev/null", ENXIO},
		{JOB_KIND_FILE_READ, "/dev/zero", ENXIO},
		{JOB_KIND_FILE_READ, "/dev/tty", ENXIO},
		{JOB_KIND_FILE_READ, "/proc/self/environ", EACCES},
		{JOB_KIND_FILE_READ, "/proc/1/status", ENOENT},
		{JOB_KIND_FILE_READ, "/proc/self/fd/0", ELOOP},
		{JOB_KIND_FILE_READ, "/proc/self/root/etc/passwd", ELOOP},
		{JOB_KIND_FILE_READ, "/proc/self/cwd/etc/passwd", ELOOP},
		{JOB_KIND_FILE_READ, "/tmp/x/loop", ELOOP},
		{JOB_KIND_FILE_READ, "/tmp/x/file/below", ENOTDIR},
		{JOB_KIND_FILE_LIST, "/tmp/x/file", ENOTDIR},
		{JOB_KIND_FILE_LIST, "/proc/self", EACCES},
		{JOB_KIND_FILE_LIST, "/root", EACCES},
		{JOB_KIND_FILE_STAT, "/tmp/none", ENOENT},
		{JOB_KIND_FILE_WRITE, "/tmp/x", EISDIR},
		{JOB_KIND_FILE_WRITE, "/tmp/x/", EISDIR},
		{JOB_KIND_FILE_WRITE, "/", EISDIR},
		{JOB_KIND_FILE_WRITE, "/tmp/x/..", EISDIR},
		{JOB_KIND_FILE_WRITE, "/tmp/x/fifo", ENXIO},
		{JOB_KIND_FILE_WRITE, "/tmp/x/socket", ENXIO},
		{JOB_KIND_FILE_WRITE, "/dev/null", ENXIO},
		{JOB_KIND_FILE_WRITE, "/etc/new", EROFS},
		{JOB_KIND_FILE_WRITE, "/tmp/x/file/below", ENOTDIR},
		{JOB_KIND_FILE_MKDIR, "/tmp/x/file", ENOTDIR},
		{JOB_KIND_FILE_MKDIR, "/tmp/x/dangling/d", ENOENT},
		{JOB_KIND_FILE_DELETE, "/tmp/none", ENOENT},
		{JOB_KIND_FILE_DELETE, "/", EBUSY},
		{JOB_KIND_FILE_DELETE, "/tmp/..", EBUSY},
		{JOB_KIND_FILE_DELETE, "/etc/passwd", EROFS},
		{JOB_KIND_TREE_DOWN, "/tmp/none", ENOENT},
		{JOB_KIND_TREE_DOWN, "/proc/self/task", EACCES},
		{JOB_KIND_TREE_DOWN, "/tmp/x/fifo", ENXIO},
	};

	(void)state;
	assert_shell("mkdir /tmp/x; cd /tmp/x; mkfifo fifo; python3 -c 'import socket; "
		     "socket.socket(1).bind(\"socket\")'; "
		     "ln -s loop loop; ln -s none dangling; echo content >file",
		"");
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		int code = file_errno(cases[i].kind, cases[i].path);

		if (code != cases[i].code)
			fail_msg("%s %s: %d (%s), not %s", job_kind_text(cases[i].kind),
				cases[i].path, code, strerror(code), strerror(cases[i].code));
	}
}

static void
long_paths(void **state)
{
	char path[4097];

	(void)state;
	memset(path, 'a', sizeof(path));
	memcpy(path, "/tmp/", 5);
	path[4096] = '\0';
	assert_int_equal(file_errno(JOB_KIND_FILE_READ, path), ENAMETOOLONG);
	assert_int_equal(file_errno(JOB_KIND_FILE_WRITE, path), ENAMETOOLONG);
	assert_int_equal(file_errno(JOB_KIND_FILE_MKDIR, path), ENAMETOOLONG);
	path[5 + 256] = '\0';
	assert_int_equal(file_errno(JOB_KIND_FILE_WRITE, path), ENAMETOOLONG);
	path[5 + 200] = '\0';
	assert_int_equal(file_errno(JOB_KIND_FILE_WRITE, path), 0);
	assert_int_equal(file_errno(JOB_KIND_FILE_DELETE, path), 0);
}

/* N58: links stay in the guest's root, are followed with the guest's own rights only, and are replaced, not written through. */
static void
n58_links(void **state)
{
	struct view in = view_str("new");
	auto_result struct result r, w, s, d;

	(void)state;
	assert_shell("mkdir /tmp/l; cd /tmp/l; echo data >real; ln -s /tmp/l/real abs; ln -s real "
		     "rel; ln -s /tmp/l dir; "
		     "ln -s /etc/shadow shadow; ln -s ../../../../../../tmp/l/real up; echo -- "
		     ">--version",
		"");
	file_job(JOB_KIND_FILE_READ, "/tmp/l/dir/abs", NULL, &r);
	assert_ok(&r);
	assert_true(view_is(buf_view(&r.out), "data\n"));
	assert_int_equal(file_errno(JOB_KIND_FILE_READ, "/tmp/l/up"), 0);
	assert_int_equal(file_errno(JOB_KIND_FILE_READ, "../../tmp/l/../l/rel"), 0);
	assert_int_equal(file_errno(JOB_KIND_FILE_READ, "/tmp/l/--version"), 0);
	assert_int_equal(file_errno(JOB_KIND_FILE_READ, "/tmp/l/shadow"), EACCES);
	file_job(JOB_KIND_FILE_WRITE, "/tmp/l/shadow", &in, &w);
	assert_ok(&w);
	assert_shell("cat /tmp/l/shadow; test -L /tmp/l/shadow || echo; test -s /etc/shadow && "
		     "echo kept",
		"new\nkept\n");
	file_job(JOB_KIND_FILE_STAT, "/tmp/l/abs", NULL, &s);
	assert_ok(&s);
	assert_int_equal(s.nentries, 1);
	assert_int_equal(s.entries[0].kind, FILE_KIND_SYMLINK);
	/* Deleting a link, or a directory with links, takes nothing behind them. */
	file_job(JOB_KIND_FILE_DELETE, "/tmp/l/dir", NULL, &d);
	assert_ok(&d);
	assert_shell("cat /tmp/l/real", "data\n");
	assert_shell("mkdir -p /tmp/m/a/b; ln -s /tmp/l /tmp/m/a/b/link; touch /tmp/m/a/x", "");
	assert_int_equal(file_errno(JOB_KIND_FILE_DELETE, "/tmp/m/"), 0);
	assert_shell("cat /tmp/l/real; ls /tmp/m 2>&1 | grep -c 'No such'", "data\n1\n");
}

/* Somebody swaps what the path leads to while jobs run; never more than the guest's own rights. */
static void
n58_swaps(void **state)
{
	auto_buf struct buf room = {.max = 4096};
	auto_result struct result swapper;
	struct msg_job_start m = start_shell(&world, &room,
		"mkdir -p /tmp/s/real; echo mine >/tmp/s/real/file; ln -s /etc /tmp/s/link; cd "
		"/tmp/s; "
		"while :; do ln -sfn real cur; ln -sfn /etc cur; done");

	(void)state;
	world_begin(&world, &m, true, &swapper);
	for (int i = 0; i < 200; i++) {
		auto_result struct result w;
		struct view in = view_str("x");
		struct msg_job_start job = start_file(
			&world, JOB_KIND_FILE_WRITE, "/tmp/s/cur/file");

		world_run(&world, &job, &in, &w);
		if (w.end.end != JOB_END_EXITED)
			assert_true(w.end.code == EROFS || w.end.code == EACCES ||
				    w.end.code == ENOENT);
	}
	SEND(&world, JOB_SIGNAL, job_signal, -1, {.job = swapper.job});
	assert_true(world_until(&world, &swapper, is_complete, 5000));
	assert_shell("test -e /etc/file || echo clean", "clean\n");
}

static void
listing(void **state)
{
	auto_result struct result r, big;
	unsigned seen = 0;

	(void)state;
	assert_shell("mkdir /tmp/ls; cd /tmp/ls; printf 12345 >f; chmod 640 f; touch -d "
		     "@1000000000 f; mkdir d; ln -s d l; mkfifo p; touch .h",
		"");
	file_job(JOB_KIND_FILE_LIST, "/tmp/ls", NULL, &r);
	assert_ok(&r);
	assert_int_equal(r.nentries, 5);
	for (size_t i = 0; i < r.nentries; i++) {
		const struct entry *e = &r.entries[i];

		if (strcmp(e->name, "f") == 0) {
			assert_true(e->kind == FILE_KIND_REGULAR && e->size_bytes == 5 &&
				    e->mode == 0640 && e->mtime == 1000000000);
			seen |= 1;
		}
		if (strcmp(e->name, "d") == 0)
			seen |= e->kind == FILE_KIND_DIRECTORY ? 2 : 0;
		if (strcmp(e->name, "l") == 0)
			seen |= e->kind == FILE_KIND_SYMLINK ? 4 : 0;
		if (strcmp(e->name, "p") == 0)
			seen |= e->kind == FILE_KIND_OTHER ? 8 : 0;
		if (strcmp(e->name, ".h") == 0)
			seen |= 16;
	}
	assert_int_equal(seen, 31);
	/* More than the credit of a stream holds. */
	assert_shell("mkdir /tmp/big; cd /tmp/big; python3 -c 'for i in range(20000): "
		     "open(\"a-rather-long-name-%d\" % i, \"w\")'",
		"");
	file_job(JOB_KIND_FILE_LIST, "/tmp/big", NULL, &big);
	assert_ok(&big);
	assert_int_equal(big.nentries, 20000);
	assert_int_equal(file_errno(JOB_KIND_FILE_DELETE, "/tmp/big"), 0);
}

static void
no_space_is_told(void **state)
{
	auto_buf struct buf data = {.max = 80u << 20};
	auto_result struct result r;
	struct view in;

	(void)state;
	for (size_t i = 0; i < 70u << 20; i += 1 << 20) {
		uint8_t *p = buf_room(&data, 1 << 20);

		memset(p, 'x', 1 << 20);
		buf_grew(&data, 1 << 20);
	}
	in = buf_view(&data);
	file_job(JOB_KIND_FILE_WRITE, "/tmp/full", &in, &r);
	assert_errno(&r, ENOSPC);
	assert_shell("ls /tmp | grep -c full; ls -A /tmp | grep -c part", "0\n0\n");
}

static void
deep_trees(void **state)
{
	auto_result struct result r;

	(void)state;
	assert_shell("python3 -c 'import os\nos.chdir(\"/tmp\")\nfor i in range(200):\n  "
		     "os.mkdir(\"deep\"); os.chdir(\"deep\")'",
		"");
	assert_int_equal(file_errno(JOB_KIND_TREE_DOWN, "/tmp/deep"), ENAMETOOLONG);
	assert_int_equal(file_errno(JOB_KIND_FILE_DELETE, "/tmp/deep"), 0);
	assert_shell("python3 -c 'import os\nos.chdir(\"/tmp\")\nfor i in range(400):\n  "
		     "os.mkdir(\"deep\"); os.chdir(\"deep\")'",
		"");
	assert_int_equal(file_errno(JOB_KIND_FILE_DELETE, "/tmp/deep"), ELOOP);
	world_shell(&world, "rm -r /tmp/deep", &r);
}

static void
trees(void **state)
{
	auto_result struct result down, up, one;
	struct view archive;

	(void)state;
	assert_shell("mkdir -p /tmp/t/sub/empty; cd /tmp/t; printf hello >a; head -c 100000 "
		     "/dev/zero >sub/z; chmod 755 sub/z; "
		     "ln -s ../a sub/link; ln -s /nowhere out; mkfifo sub/p",
		"");
	file_job(JOB_KIND_TREE_DOWN, "/tmp/t", NULL, &down);
	assert_ok(&down);
	archive = buf_view(&down.out);
	file_job(JOB_KIND_TREE_UP, "/tmp/u/v", &archive, &up);
	assert_ok(&up);
	assert_memory_equal(up.end.content, down.end.content, SHA256_BYTES);
	assert_shell("cd /tmp/u/v; find . | sort | tr '\\n' ' '; cat a; stat -c ' %a %s' sub/z; "
		     "readlink sub/link out; cmp sub/z /tmp/t/sub/z",
		". ./a ./out ./sub ./sub/empty ./sub/link ./sub/z hello 755 "
		"100000\n../a\n/nowhere\n");
	/* What the system's own tar says of it, and a tree it made. */
	file_job(JOB_KIND_FILE_WRITE, "/tmp/archive.tar", &archive, &one);
	assert_ok(&one);
	assert_shell("tar tf /tmp/archive.tar | sort | tr '\\n' ' '",
		"a out sub sub/empty sub/link sub/z ");
}

static void
tree_of_another_tar(void **state)
{
	auto_result struct result made, up, single;
	struct view archive;

	(void)state;
	world_shell(&world, "cd /tmp/t; rm -f sub/p; tar --format=ustar -cf - .", &made);
	archive = buf_view(&made.out);
	file_job(JOB_KIND_TREE_UP, "/tmp/w", &archive, &up);
	assert_ok(&up);
	assert_shell("diff -r /tmp/t /tmp/w 2>&1 | grep -v 'No such' ; cat /tmp/w/a", "hello");
	file_job(JOB_KIND_TREE_DOWN, "/tmp/t/a", NULL, &single);
	assert_ok(&single);
	assert_int_equal(single.out.n, 512 * 4);
}

static void
put_entry(struct buf *b, enum ustar_kind kind, const char *path, const char *target,
	const char *content)
{
	struct ustar_entry e = {
		.kind = kind, .mode = 0644, .size = content == NULL ? 0 : strlen(content)};
	uint8_t block[USTAR_BLOCK], zero[USTAR_BLOCK] = {0};
	struct err err = {0};

	(void)snprintf(e.path, sizeof(e.path), "%s", path);
	(void)snprintf(e.target, sizeof(e.target), "%s", target == NULL ? "" : target);
	assert_int_equal(ustar_put(&e, block, &err), 0);
	buf_add(b, block, sizeof(block));
	if (content != NULL) {
		buf_add_str(b, content);
		buf_add(b, zero, ustar_padding(e.size));
	}
}

static void
put_end(struct buf *b)
{
	static const uint8_t zeros[2 * USTAR_BLOCK];

	buf_add(b, zeros, sizeof(zeros));
}

/* B59 and its like: a link of the tree, or one that was there, is never gone through. */
static void
trees_do_not_follow_links(void **state)
{
	auto_buf struct buf own = {.max = 65536}, there = {.max = 65536}, replaced = {.max = 65536};
	auto_result struct result a, b, c, d;
	struct view in;

	(void)state;
	assert_shell("mkdir -p /tmp/victim /tmp/dest; ln -s /tmp/victim /tmp/dest/there; echo kept "
		     ">/tmp/victim/f; ln -s /tmp/victim/f /tmp/dest/g",
		"");
	put_entry(&own, USTAR_SYMLINK, "l", "/tmp/victim", NULL);
	put_entry(&own, USTAR_REGULAR, "l/f", NULL, "bad");
	put_end(&own);
	in = buf_view(&own);
	file_job(JOB_KIND_TREE_UP, "/tmp/dest", &in, &a);
	assert_errno(&a, ENOTDIR);
	put_entry(&there, USTAR_REGULAR, "there/f", NULL, "bad");
	put_end(&there);
	in = buf_view(&there);
	file_job(JOB_KIND_TREE_UP, "/tmp/dest", &in, &b);
	assert_errno(&b, ENOTDIR);
	put_entry(&replaced, USTAR_REGULAR, "g", NULL, "mine");
	put_end(&replaced);
	in = buf_view(&replaced);
	file_job(JOB_KIND_TREE_UP, "/tmp/dest", &in, &c);
	assert_ok(&c);
	assert_shell("cat /tmp/victim/f /tmp/dest/g; ls -A /tmp/victim", "kept\nminef\n");
	in = view_of(replaced.p, replaced.n - 1024);
	file_job(JOB_KIND_TREE_UP, "/tmp/dest", &in, &d);
	assert_errno(&d, EBADMSG);
}

static void
as_root(void **state)
{
	struct msg_job_start m = start_file(&world, JOB_KIND_FILE_WRITE, "/tmp/root-file");
	struct view in = view_str("x");
	auto_result struct result r, no;

	(void)state;
	m.uid = 0;
	world_run(&world, &m, &in, &r);
	assert_ok(&r);
	assert_shell("stat -c %u /tmp/root-file", "0\n");
	/* Root without capabilities has no way around modes. */
	assert_shell("mkdir -m 700 /tmp/private; echo x >/tmp/private/f", "");
	m = start_file(&world, JOB_KIND_FILE_READ, "/tmp/private/f");
	m.uid = 0;
	world_run(&world, &m, NULL, &no);
	assert_errno(&no, EACCES);
}

static int
open_world(void **state)
{
	(void)state;
	world_start(&world, &(struct world_options){.pids = 400});
	world_open(&world);
	return 0;
}

static int
close_world(void **state)
{
	(void)state;
	world_stop(&world);
	return 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(write_and_read),
		cmocka_unit_test(modes),
		cmocka_unit_test(announced_size),
		cmocka_unit_test(read_limit),
		cmocka_unit_test(half_a_file_is_none),
		cmocka_unit_test(refusals),
		cmocka_unit_test(long_paths),
		cmocka_unit_test(n58_links),
		cmocka_unit_test(n58_swaps),
		cmocka_unit_test(listing),
		cmocka_unit_test(no_space_is_told),
		cmocka_unit_test(deep_trees),
		cmocka_unit_test(trees),
		cmocka_unit_test(tree_of_another_tar),
		cmocka_unit_test(trees_do_not_follow_links),
		cmocka_unit_test(as_root),
	};

	if (getuid() != 0)
		return 77; /* skipped: namespaces and uids need root */
	return cmocka_run_group_tests(tests, open_world, close_world);
}
