/* SPDX-License-Identifier: Apache-2.0 */
/*
 * File operations, each in a process of its own with the job's uid and no capability: see file.h for what a
 * path may lead to. Answers are notes to PID 1; content goes through the pipes. Errors are errno.
 */
#include "child.h"
#include "file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>

enum { CHUNK = 65536 };

static int
op_read(int root, struct job *j)
{
	static uint8_t chunk[CHUNK];
	struct stat st;
	auto_fd int fd = file_open_checked(root, j->path, O_RDONLY, &st);
	ssize_t n;

	if (fd < 0)
		return fd;
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	if (j->start.size_bytes > 0 && (uint64_t)st.st_size > j->start.size_bytes)
		return -EFBIG;
	while ((n = read(fd, chunk, sizeof(chunk))) != 0) {
		int r = n < 0 ? -errno : file_put(1, chunk, (size_t)n);

		if (r < 0 && r != -EINTR)
			return r;
	}
	return 0;
}

/* Stdin to the new file; as many bytes as were announced, no more, no less. */
static int
fill(int fd, uint64_t announced)
{
	static uint8_t chunk[CHUNK];
	uint64_t done = 0;
	ssize_t n;

	while ((n = file_input(chunk, sizeof(chunk))) > 0) {
		int r;

		done += (uint64_t)n;
		if (done > announced)
			return -EFBIG;
		r = file_put(fd, chunk, (size_t)n);
		if (r < 0)
			return r;
	}
	if (n < 0)
		return (int)n;
	return announced != UINT64_MAX && done != announced ? -EIO : 0;
}

static int
op_write(int root, struct job *j)
{
	auto_fd int dir = -1;
	const char *name = NULL;
	struct file_new f;
	int r = file_parent(root, j->path, true, &dir, &name);

	if (r < 0)
		return r;
	r = file_new_open(&f, dir, name, j->start.mode & 07777);
	if (r < 0)
		return r;
	r = fill(f.fd, j->start.size_bytes);
	if (r < 0) {
		file_new_abandon(&f);
		return r;
	}
	return file_new_commit(&f, name);
}

static void
entry_send(struct view name, const struct stat *st)
{
	struct note n = {.kind = NOTE_ENTRY,
		.name_bytes = (uint8_t)name.n,
		.mode = st->st_mode & 07777,
		.size_bytes = st->st_size > 0 ? (uint64_t)st->st_size : 0,
		.mtime = st->st_mtim.tv_sec};
	enum file_kind kind = S_ISREG(st->st_mode)   ? FILE_KIND_REGULAR
			      : S_ISDIR(st->st_mode) ? FILE_KIND_DIRECTORY
			      : S_ISLNK(st->st_mode) ? FILE_KIND_SYMLINK
						     : FILE_KIND_OTHER;

	n.file_kind = (uint8_t)kind;
	memcpy(n.name, name.p, name.n);
	note_send(&n);
}

static void
dir_cleanup(DIR **d)
{
	if (*d != NULL)
		(void)closedir(*d); /* read only */
}
#define auto_dir __attribute__((cleanup(dir_cleanup)))

static int
op_list(int root, struct job *j)
{
	struct stat st;
	auto_fd int fd = file_open_checked(root, j->path, O_RDONLY | O_DIRECTORY, &st);
	auto_dir DIR *d = NULL;
	int owned;

	if (fd < 0)
		return fd;
	owned = take_fd(&fd);
	d = fdopendir(owned);
	if (d == NULL) {
		(void)close(owned);
		return -ENOMEM;
	}
	for (;;) {
		struct dirent *e;
		struct view name;

		errno = 0;
		e = readdir(d);
		if (e == NULL)
			return -errno;
		name = view_str(e->d_name);
		if (view_is(name, ".") || view_is(name, "..") || name.n > 255)
			continue;
		/* Gone since the directory was read: not an entry any more. */
		if (fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0)
			entry_send(name, &st);
	}
}

static int
op_stat(int root, struct job *j)
{
	auto_fd int fd = file_open(root, j->path, O_PATH | O_NOFOLLOW);
	struct stat st;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	entry_send(view_str(""), &st);
	return 0;
}

/* Everything below dir/name and it; links are removed, never followed. */
static int
delete_below(int dir, const char *name, unsigned depth)
{
	auto_dir DIR *d = NULL;
	int fd;

	if (unlinkat(dir, name, 0) == 0)
		return 0;
	if (errno != EISDIR)
		return -errno;
	if (unlinkat(dir, name, AT_REMOVEDIR) == 0)
		return 0;
	if (errno != ENOTEMPTY && errno != EEXIST)
		return -errno;
	if (depth >= AGENT_DELETE_DEPTH)
		return -ELOOP;
	fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	d = fdopendir(fd);
	if (d == NULL) {
		(void)close(fd);
		return -ENOMEM;
	}
	for (;;) {
		struct dirent *e;
		int r;

		errno = 0;
		e = readdir(d);
		if (e == NULL && errno != 0)
			return -errno;
		if (e == NULL)
			break;
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		r = delete_below(dirfd(d), e->d_name, depth + 1);
		if (r < 0 && r != -ENOENT)
			return r;
	}
	return unlinkat(dir, name, AT_REMOVEDIR) < 0 ? -errno : 0;
}

/* "dir/" is the directory. */
static void
trim(char *path)
{
	size_t n = strlen(path);

	while (n > 1 && path[n - 1] == '/')
		path[--n] = '\0';
}

static int
op_delete(int root, struct job *j)
{
	auto_fd int dir = -1;
	const char *name = NULL;
	int r;

	trim(j->path);
	r = file_parent(root, j->path, false, &dir, &name);
	if (r == -EISDIR)
		return -EBUSY; /* "/", or a path that ends in . or .. */
	return r < 0 ? r : delete_below(dir, name, 0);
}

static int
op_mkdir(int root, struct job *j)
{
	mode_t mode = j->start.mode & 07777;
	bool made = false;
	auto_fd int fd = file_make_dir(root, j->path, 0755, &made);
	auto_fd int real = -1;

	if (fd < 0)
		return fd;
	if (!made || mode == 0)
		return 0;
	real = file_open(root, j->path, O_RDONLY | O_DIRECTORY);
	if (real < 0)
		return real;
	return fchmod(real, mode) < 0 ? -errno : 0;
}

static int
operate(struct job *j)
{
	auto_fd int root = file_root();

	if (root < 0)
		return root;
	switch (j->start.kind) {
	case JOB_KIND_FILE_READ:
		return op_read(root, j);
	case JOB_KIND_FILE_WRITE:
		return op_write(root, j);
	case JOB_KIND_FILE_LIST:
		return op_list(root, j);
	case JOB_KIND_FILE_STAT:
		return op_stat(root, j);
	case JOB_KIND_FILE_DELETE:
		return op_delete(root, j);
	case JOB_KIND_FILE_MKDIR:
		return op_mkdir(root, j);
	case JOB_KIND_TREE_DOWN:
		return tree_down(root, j->path);
	case JOB_KIND_TREE_UP:
		return tree_up(root, j->path, j->start.size_bytes);
	case JOB_KIND_EXEC:
	case JOB_KIND_MAX:
		break;
	}
	must(false);
}

void
file_main(const struct job *job)
{
	struct job j = *job;
	struct note n = {.kind = NOTE_ENDED};
	struct rusage usage;
	int r = drop_all(&j.agent->drop, j.start.uid);

	if (r == 0)
		r = operate(&j);
	if (getrusage(RUSAGE_SELF, &usage) == 0) {
		n.cpu_us = (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000u +
			   (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
		n.memory_peak_bytes = (uint64_t)usage.ru_maxrss * 1024u;
	}
	n.end = r < 0 ? JOB_END_NOT_STARTED : JOB_END_EXITED;
	n.code = -r;
	note_send(&n);
	_exit(0);
}
