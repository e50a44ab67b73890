/* SPDX-License-Identifier: Apache-2.0 */
/* The file of approvers on disk; see trust.h. */
#include "cli/trust.h"

#include "cli/limits.h"
#include "lib/approval/split.h"
#include "lib/base/base64.h"
#include "lib/base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#define FILE_NAME "approvers"
#define NEW_NAME  "approvers.new"

/* A whole regular file; no link is followed at its end. */
static int
read_file(int dir, const char *name, size_t max, struct buf *out, struct err *err)
{
	int fd auto_fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	struct stat st;
	uint8_t *room;
	size_t n;

	if (fd < 0)
		return err_errno(err, "%.150s", name);
	if (fstat(fd, &st) < 0)
		return err_errno(err, "%.150s", name);
	if (!S_ISREG(st.st_mode))
		return err_set(err, -EINVAL, "%.150s is no regular file", name);
	buf_init(out, max + 1);
	room = buf_room(out, max + 1);
	if (room == NULL)
		return err_set(err, -ENOMEM, "no memory for %.150s", name);
	if (fd_read_upto(fd, room, max + 1, &n, err) < 0)
		return err->code;
	if (n > max)
		return err_set(err, -EFBIG, "%.150s is larger than %zu bytes", name, max);
	buf_grew(out, n);
	return 0;
}

static int
open_dir(struct trust *t, bool change, struct err *err)
{
	t->dir = open(t->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (t->dir < 0 && errno == ENOENT)
		return err_set(err, -ENOENT, "there is no directory %.100s%s", t->path,
			change ? "; as root: install -d makes it, --trust names another" : "");
	if (t->dir < 0)
		return err_errno(err, "the directory of trust %.150s", t->path);
	if (change && flock(t->dir, LOCK_EX) < 0)
		return err_errno(err, "cannot lock %.150s", t->path);
	return 0;
}

int
trust_open(const char *path, bool change, struct trust *ret, struct err *err)
{
	auto_trust struct trust t = {.dir = -1, .path = path == NULL ? TRUST_DIR : path};
	auto_buf struct buf file = {0};
	int r = open_dir(&t, change, err);

	if (r < 0)
		return r;
	r = read_file(t.dir, FILE_NAME, LIMIT_APPROVERS_BYTES, &file, err);
	if (r == -ENOENT)
		r = 0;
	if (r == 0)
		r = approvers_read(buf_view(&file), &t.now, err);
	if (r < 0)
		return err_context(err, "%.100s", t.path);
	*ret = t;
	t = (struct trust){.dir = -1};
	return 0;
}

void
trust_done(struct trust *t)
{
	if (t->dir >= 0)
		(void)close(t->dir);
	approvers_done(&t->now);
	t->dir = -1;
}

/* Complete and on disk under its temporary name. What an earlier one left there is of nobody: we hold the lock. */
static int
write_new(int dir, struct view file, struct err *err)
{
	int fd auto_fd = -1;

	if (unlinkat(dir, NEW_NAME, 0) < 0 && errno != ENOENT)
		return err_errno(err, "cannot remove " NEW_NAME);
	fd = openat(dir, NEW_NAME, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (fd < 0)
		return err_errno(err, "cannot write " NEW_NAME);
	if (fchmod(fd, 0644) < 0)
		return err_errno(err, "cannot give " NEW_NAME " its mode");
	if (fd_write_all(fd, file.p, file.n, err) < 0)
		return err->code;
	return fsync(fd) < 0 ? err_errno(err, "cannot store " NEW_NAME) : 0;
}

int
trust_replace(struct trust *t, struct view file, struct err *err)
{
	auto_approvers struct approvers checked = {0};
	int r = approvers_read(file, &checked, err);

	if (r == 0)
		r = write_new(t->dir, file, err);
	if (r < 0)
		return err_context(err, "%.100s stays as it is", t->path);
	if (renameat(t->dir, NEW_NAME, t->dir, FILE_NAME) < 0)
		return err_errno(err, "cannot replace %.100s/" FILE_NAME, t->path);
	return fsync(t->dir) < 0 ? err_errno(err, "cannot store %.100s", t->path) : 0;
}

int
trust_key(
	const char *path, struct buf *room, struct key_text *ret, struct buf *blob, struct err *err)
{
	struct view rest, line = {0};
	struct sshkey key;
	struct key_text k = {0};

	if (read_file(AT_FDCWD, path, LIMIT_KEY_FILE_BYTES, room, err) < 0)
		return err->code;
	rest = buf_view(room);
	if (!take_until(&rest, '\n', &line) || rest.n != 0 || !take_until(&line, ' ', &k.type) ||
		!take_until(&line, ' ', &k.text))
		return err_set(err, -EINVAL,
			"%.120s is not one line of a public key; ssh-keygen writes it as NAME.pub",
			path);
	k.comment = line;
	if (base64_decode(k.text, blob) < 0)
		return err_set(err, -EINVAL, "%.120s: the key is not in base 64", path);
	if (sshkey_read(buf_view(blob), &key, err) < 0)
		return err_context(err, "%.120s", path);
	if (!view_is(k.type, sshkey_type(key.kind)))
		return err_set(
			err, -EINVAL, "%.120s: the key is of another type than it says", path);
	*ret = k;
	return 0;
}
