/* SPDX-License-Identifier: Apache-2.0 */
/* What the supervisor asks of the kernel, piece by piece, as root: ways that this host does not take by itself. */
#include "rig.h"

#include "lib/base/hex.h"
#include "supervisor/cgroup.h"
#include "supervisor/image.h"
#include "supervisor/mount.h"
#include "supervisor/ns.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>

#include <cmocka.h>

/* How many loop devices show this file. */
static unsigned
loops_of(const char *about)
{
	unsigned n = 0;

	for (int i = 0; i < 64; i++) {
		char path[64], text[512] = "";
		FILE *f;

		(void)snprintf(path, sizeof(path), "/sys/block/loop%d/loop/backing_file", i);
		f = fopen(path, "re");
		if (f == NULL)
			continue;
		n += fgets(text, sizeof(text), f) != NULL && strstr(text, about) != NULL;
		(void)fclose(f);
	}
	return n;
}

static void
mounts_and_goes(int (*way)(int, struct err *), unsigned loops)
{
	char name[512], text[65];
	struct err err = {0};
	struct statfs fs;
	struct stat st;
	struct rig r;
	int image, fd;

	rig_init(&r);
	hex_encode(r.image, 32, text);
	(void)snprintf(name, sizeof(name), "%s/templates/%s.erofs", r.settings.state_dir, text);
	image = open(name, O_RDONLY | O_CLOEXEC);
	assert_true(image >= 0);
	fd = way(image, &err);
	if (fd < 0)
		fail_msg("%s", err.text);
	assert_int_equal(loops_of(r.dir), loops);
	assert_int_equal(fstatfs(fd, &fs), 0);
	assert_int_equal(
		fs.f_flags & (ST_RDONLY | ST_NOSUID | ST_NODEV), ST_RDONLY | ST_NOSUID | ST_NODEV);
	assert_int_equal(fstatat(fd, "bin/busybox", &st, 0), 0);
	(void)close(image);
	(void)close(fd);
	for (int i = 0; loops_of(r.dir) != 0 && i < 100; i++)
		pause_ms(20);
	assert_int_equal(loops_of(r.dir), 0); /* it went with the mount */
	rig_done(&r);
}

static void
test_image_by_file(void **state)
{
	(void)state;
	mounts_and_goes(image_mount, 0);
}

static void
test_image_by_loop(void **state)
{
	(void)state;
	mounts_and_goes(image_mount_loop, 1);
}

/* Without a hierarchy that can limit memory there is no start, and the sentence says what is missing. */
static void
test_no_memory_limit(void **state)
{
	struct cgroups c;
	struct err err = {0};

	(void)state;
	if (cgroups_find(&c, CGROUP_V2, &err) == 0) {
		cgroups_end(&c);
		skip(); /* a host with everything on version 2 */
	}
	assert_non_null(strstr(err.text, "memory limit"));
	assert_non_null(strstr(err.text, "controller memory"));
	cgroups_end(&c);
}

/* Swap that no control group limits is memory beside the limit. */
static void
test_swap(void **state)
{
	static const char none[] = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n";
	static const char some[] = "Filename\tType\tSize\tUsed\tPriority\n"
				   "/swapfile file 1048572 0 -2\n";
	struct err err = {0};

	(void)state;
	assert_int_equal(cgroup_swap_check(false, view_str(none), &err), 0);
	assert_int_equal(cgroup_swap_check(true, view_str(some), &err), 0);
	assert_int_equal(cgroup_swap_check(false, view_str(some), &err), -ENOTSUP);
	assert_non_null(strstr(err.text, "swapaccount"));
}

static void
test_user_namespace(void **state)
{
	struct err err = {0};
	int fd;

	(void)state;
	fd = ns_user_make(3000000000U, 65536, &err);
	if (fd < 0)
		fail_msg("%s", err.text);
	(void)close(fd);
	assert_true(ns_user_make(UINT32_MAX, 65536, &err) <
		    0); /* the kernel refuses, and nothing stays */
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_image_by_file),
		cmocka_unit_test(test_image_by_loop), cmocka_unit_test(test_no_memory_limit),
		cmocka_unit_test(test_swap), cmocka_unit_test(test_user_namespace)};

	if (geteuid() != 0)
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
