/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `demilune sandbox cp`: a file, or with -r a directory, in or out. The name of a file that comes out is chosen by the person, never by the
 * sandbox; it arrives under a temporary name beside it, without execute bits, and is renamed when it is complete. What has
 * the name already is not replaced unless --force says so.
 */
#include "cli/answer.h"
#include "cli/request.h"
#include "cli/tree.h"
#include "lib/base/fd.h"
#include "lib/base/hex.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/stat.h>

enum { TARGET_BYTES = 16384, PATH_BYTES = 4096, RANDOM_BYTES = 8 };

struct side {
	char sandbox[ID_TEXT]; /* "": local */
	const char *path;
};

static int
read_side(const char *text, struct side *ret, struct err *err)
{
	const char *colon = strchr(text, ':');
	struct side s = {.path = text};
	int r;

	if (colon != NULL && strncmp(text, "sb_", 3) == 0 && strchr(text, '/') > colon) {
		if ((size_t)(colon - text) >= sizeof(s.sandbox))
			return err_set(err, -EINVAL, "%.40s is not SANDBOX:/PATH", text);
		memcpy(s.sandbox, text, (size_t)(colon - text));
		s.path = colon + 1;
		r = request_check_id(s.sandbox, "sb_", "sandbox", err);
		if (r < 0)
			return r;
		if (s.path[0] != '/')
			return err_set(err, -EINVAL, "the path in the sandbox must be absolute");
	}
	*ret = s;
	return 0;
}

/* `to`, or the file of the same name below it when it is a directory. */
static int
join(const char *to, bool is_directory, const char *from, char ret[static PATH_BYTES],
	struct err *err)
{
	const char *slash = strrchr(from, '/');
	const char *base = slash != NULL ? slash + 1 : from;
	size_t n = strlen(to);
	int len;

	if (is_directory && (base[0] == '\0' || strcmp(base, ".") == 0 || strcmp(base, "..") == 0))
		return err_set(err, -EINVAL, "%.100s names no file", from);
	len = is_directory ? snprintf(ret, PATH_BYTES, "%s%s%s", to,
				     n != 0 && to[n - 1] == '/' ? "" : "/", base)
			   : snprintf(ret, PATH_BYTES, "%s", to);
	if (len < 0 || len >= PATH_BYTES)
		return err_set(err, -ENAMETOOLONG, "the path is too long");
	return 0;
}

static void
fs_target(const struct side *s, const char *path, struct buf *ret)
{
	buf_init(ret, TARGET_BYTES);
	buf_addf(ret, "/v1/sandboxes/%s/fs?path=", s->sandbox);
	target_add(ret, path);
}

static int
copy_in(struct cli *cli, const char *from, const struct side *to, struct err *err)
{
	struct ask ask = {.method = HTTP_PUT, .type = "application/octet-stream"};
	json_t *answer auto_json = NULL;
	auto_buf struct buf target = {0};
	char path[PATH_BYTES];
	struct stat st;
	int fd auto_fd = open(from, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	int r;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_errno(err, "%.120s", from);
	if (!S_ISREG(st.st_mode))
		return err_set(err, -EINVAL, "%.120s is not a file", from);
	r = join(to->path, to->path[strlen(to->path) - 1] == '/', from, path, err);
	if (r < 0)
		return r;
	fs_target(to, path, &target);
	buf_addf(&target, "&mode=%o", (unsigned)(st.st_mode & 0777));
	ask.target = buf_view(&target);
	ask.body_fd = fd;
	ask.body_bytes = (uint64_t)st.st_size;
	return client_json(&cli->client, &ask, &answer, err);
}

/* The body to a new file; the directory is open, so that a rename stays in it. */
static int
receive(struct exchange *x, int fd, struct err *err)
{
	struct view piece;
	uint64_t total = 0;
	int r;

	while ((r = exchange_next(x, &piece, err)) == 1) {
		total += piece.n;
		if (total > LIMIT_COPY_BYTES)
			return err_set(
				err, -EFBIG, "the file is larger than %d bytes", LIMIT_COPY_BYTES);
		r = fd_write_all(fd, piece.p, piece.n, err);
		if (r < 0)
			return err_context(err, "cannot write the local file");
	}
	return r;
}

static int
is_there(const char *path, struct err *err)
{
	return err_set(err, -EEXIST, "%.120s is there already; replace it with --force", path);
}

/* Gives the complete file its name; where the file system cannot rename without replacing, by a second link. */
static int
name_it(const char *name, const char *path, bool force, struct err *err)
{
	int r = renameat2(AT_FDCWD, name, AT_FDCWD, path, force ? 0 : RENAME_NOREPLACE);

	if (r < 0 && errno == EINVAL && !force) {
		r = link(name, path);
		if (r == 0)
			r = unlink(name);
	}
	if (r == 0)
		return 0;
	return errno == EEXIST && !force ? is_there(path, err)
					 : err_errno(err, "cannot make %.100s", path);
}

static int
receive_as(struct exchange *x, const char *path, bool force, struct err *err)
{
	uint8_t salt[RANDOM_BYTES];
	char name[PATH_BYTES + 64], digits[2 * RANDOM_BYTES + 1];
	int fd auto_fd = -1;
	int r;

	if (getrandom(salt, sizeof(salt), 0) != (ssize_t)sizeof(salt))
		return err_errno(err, "no random numbers");
	hex_encode(salt, sizeof(salt), digits);
	(void)snprintf(name, sizeof(name), "%s.%s.part", path, digits);
	fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
	if (fd < 0)
		return err_errno(err, "cannot make %.100s", path);
	r = receive(x, fd, err);
	if (r == 0)
		r = name_it(name, path, force, err);
	if (r < 0)
		(void)unlink(name);
	return r;
}

/*
 * "-" is standard output, and what is neither a file nor a directory (/dev/stdout, a pipe) is written into and never
 * replaced: renaming a file over a device would take it away from the whole host. NO_STREAM for anything else; -1 is a fault.
 */
enum { NO_STREAM = -2 };

static int
stream_open(const char *to, struct stat *st, struct err *err)
{
	int fd = NO_STREAM;

	if (strcmp(to, "-") == 0)
		fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
	else if (stat(to, st) == 0 && !S_ISREG(st->st_mode) && !S_ISDIR(st->st_mode))
		fd = open(to, O_WRONLY | O_NOCTTY | O_CLOEXEC);
	if (fd == -1)
		(void)err_errno(err, "cannot write to %.100s", to);
	return fd;
}

static int
copy_out(struct cli *cli, const struct side *from, const char *to, struct err *err)
{
	auto_exchange struct exchange x = {0};
	auto_buf struct buf target = {0};
	char path[PATH_BYTES];
	struct stat st;
	bool force = args_has(&cli->args, OPT_FORCE);
	bool is_directory = stat(to, &st) == 0 && S_ISDIR(st.st_mode);
	int stream auto_fd = NO_STREAM;
	int r;

	if (!is_directory && to[0] != '\0' && to[strlen(to) - 1] == '/')
		return err_set(err, -ENOTDIR, "%.120s is not a directory", to);
	stream = stream_open(to, &st, err);
	if (stream == -1)
		return err->code;
	r = join(to, is_directory, from->path, path, err);
	if (r == 0 && stream < 0 && !force && lstat(path, &st) == 0)
		r = is_there(path, err); /* before anything is asked; decided when it is named */
	if (r < 0)
		return r;
	fs_target(from, from->path, &target);
	r = exchange_open(&cli->client,
		&(struct ask){.method = HTTP_GET, .target = buf_view(&target)}, &x, err);
	if (r < 0)
		return r;
	return stream >= 0 ? receive(&x, stream, err) : receive_as(&x, path, force, err);
}

/* ---- trees: what is in one directory goes into the other, which is made if it is not there ---- */

static void
tree_target(const struct side *s, const char *what, struct buf *ret)
{
	buf_init(ret, TARGET_BYTES);
	buf_addf(ret, "/v1/sandboxes/%s/fs/%s?path=", s->sandbox, what);
	target_add(ret, s->path);
}

static int
tree_in(struct cli *cli, const char *from, const struct side *to, struct err *err)
{
	json_t *made auto_json = NULL, *answer auto_json = NULL;
	auto_buf struct buf mkdir = {0}, target = {0};
	struct stat st;
	struct ask ask = {.method = HTTP_PUT,
		.type = "application/x-tar",
		.feed = tree_send,
		.arg = (void *)(uintptr_t)from};
	int r;

	if (stat(from, &st) < 0)
		return err_errno(err, "%.120s", from);
	if (!S_ISDIR(st.st_mode))
		return err_set(err, -ENOTDIR, "%.120s is not a directory; leave -r out", from);
	tree_target(to, "mkdir", &mkdir);
	tree_target(to, "tree", &target);
	r = client_send(&cli->client, HTTP_POST, buf_view(&mkdir), view_of(NULL, 0), &made, err);
	if (r < 0)
		return r;
	ask.target = buf_view(&target);
	return client_json(&cli->client, &ask, &answer, err);
}

static int
tree_out(struct cli *cli, const struct side *from, const char *to, struct err *err)
{
	auto_exchange struct exchange x = {0};
	auto_buf struct buf target = {0};
	unsigned left = 0;
	int dir auto_fd = -1;
	int r;

	tree_target(from, "tree", &target);
	r = exchange_open(&cli->client,
		&(struct ask){.method = HTTP_GET, .target = buf_view(&target)}, &x, err);
	if (r < 0)
		return r;
	if (mkdir(to, 0777) < 0 && errno != EEXIST)
		return err_errno(err, "cannot make %.120s", to);
	dir = open(to, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return err_errno(err, "%.120s", to);
	r = tree_receive(&x, dir, args_has(&cli->args, OPT_FORCE), &left, err);
	return r < 0 ? r : left != 0;
}

int
verb_sandbox_cp(struct cli *cli, struct err *err)
{
	struct side from, to;
	int r = read_side(cli->args.rest[0], &from, err);

	if (r == 0)
		r = read_side(cli->args.rest[1], &to, err);
	if (r < 0)
		return r;
	if ((from.sandbox[0] != '\0') == (to.sandbox[0] != '\0'))
		return err_set(err, -EINVAL,
			"one side must be in a sandbox (SANDBOX:/PATH) and one local");
	if (args_has(&cli->args, OPT_TREE))
		return from.sandbox[0] != '\0' ? tree_out(cli, &from, to.path, err)
					       : tree_in(cli, from.path, &to, err);
	return from.sandbox[0] != '\0' ? copy_out(cli, &from, to.path, err)
				       : copy_in(cli, from.path, &to, err);
}
