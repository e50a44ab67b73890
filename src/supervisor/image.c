/* SPDX-License-Identifier: Apache-2.0 */
/* Image files; see image.h. Called by template.c. */
#include "supervisor/image.h"

#include "lib/base/fd.h"
#include "lib/base/hex.h"
#include "supervisor/limits.h"
#include "supervisor/mount.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

enum { ATTRS = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, LOOP_TRIES = 16 };

int
image_open(int templates, const uint8_t digest[SHA256_BYTES], uint64_t *ret_bytes, struct err *err)
{
	char text[SHA256_TEXT], name[SHA256_TEXT + 8];
	auto_fd int fd = -1;
	struct stat st;

	hex_encode(digest, SHA256_BYTES, text);
	(void)snprintf(name, sizeof(name), "%s.erofs", text);
	fd = openat(templates, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_errno(err, "the image %s", name);
	if (!S_ISREG(st.st_mode) || st.st_uid != 0 || (st.st_mode & 022) != 0)
		return err_set(
			err, -EPERM, "%s is not a file of root that nobody else may write", name);
	if (st.st_size <= 0 || (uint64_t)st.st_size > LIMIT_IMAGE_MAX_BYTES)
		return err_set(err, -EFBIG, "%s has %lld bytes", name, (long long)st.st_size);
	*ret_bytes = (uint64_t)st.st_size;
	return take_fd(&fd);
}

bool
image_is(int image, const uint8_t digest[SHA256_BYTES])
{
	static uint8_t room[1 << 16], found[SHA256_BYTES];
	struct sha256 h;
	off_t at = 0;

	sha256_init(&h);
	for (;;) {
		ssize_t n = pread(image, room, sizeof(room), at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return false;
		if (n == 0)
			break;
		sha256_add(&h, room, (size_t)n);
		at += n;
	}
	sha256_end(&h, found);
	return memcmp(found, digest, SHA256_BYTES) == 0;
}

static int
mount_source(const char *source, struct err *err)
{
	/* "ro" is about the device, which would else be opened for writing. */
	const struct mount_option options[] = {{"source", source}, {"ro", NULL}};

	return mount_new("erofs", options, ARRAY_LEN(options), ATTRS, err);
}

/* A free loop device that shows the image and disappears with its last user; its number, or negative. */
static int
loop_take(int image, int *ret_fd, struct err *err)
{
	auto_fd int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
	const struct loop_config config = {.fd = (uint32_t)image,
		.info = {.lo_flags = LO_FLAGS_READ_ONLY | LO_FLAGS_AUTOCLEAR}};

	if (control < 0)
		return err_errno(err, "/dev/loop-control");
	for (int i = 0; i < LOOP_TRIES; i++) {
		int number = ioctl(control, LOOP_CTL_GET_FREE);
		char path[32];
		auto_fd int fd = -1;

		if (number < 0)
			return err_errno(err, "a free loop device");
		(void)snprintf(path, sizeof(path), "/dev/loop%d", number);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			return err_errno(err, "%s", path);
		if (ioctl(fd, LOOP_CONFIGURE, &config) == 0) {
			*ret_fd = take_fd(&fd);
			return number;
		}
		if (errno != EBUSY) /* somebody else was faster */
			return err_errno(err, "%s", path);
	}
	return err_set(err, -EBUSY, "no loop device is free");
}

int
image_mount_loop(int image, struct err *err)
{
	auto_fd int loop = -1;
	char source[32];
	int number = loop_take(image, &loop, err);

	if (number < 0)
		return number;
	(void)snprintf(source, sizeof(source), "/dev/loop%d", number);
	return mount_source(source, err);
}

int
image_mount(int image, struct err *err)
{
	char source[32];
	int r;

	/* Not by name: this is the file that was checked, and mount tables show no path of the host. */
	(void)snprintf(source, sizeof(source), "/proc/self/fd/%d", image);
	r = mount_source(source, err);
	return r == -ENOTBLK ? image_mount_loop(image, err) : r;
}
