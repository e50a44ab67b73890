/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The template store; main.c, build.c and import.c call this. The invariants stand in
 * store.h; the order of renames in store_add and store_point keeps them.
 */
#include "template/store.h"
#include "template/limits.h"
#include "template/progress.h"
#include "template/tree.h"

#include "lib/base/fd.h"
#include "lib/base/hex.h"
#include "lib/base/name.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DIR_FLAGS = O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW, LINE_BYTES = 128 };

static const struct store store_closed = {
	.templates = -1, .index = -1, .built = -1, .tmp = -1, .lock = -1};

void
store_done(struct store *s)
{
	int fds[] = {s->templates, s->index, s->built, s->tmp, s->lock};

	for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
		if (fds[i] >= 0)
			(void)close(fds[i]);
	}
	free(s->tmp_path);
	*s = store_closed;
}

static int
dir_open(int at, const char *name, bool make, mode_t mode, int *ret, struct err *err)
{
	if (make && mkdirat(at, name, mode) < 0 && errno != EEXIST)
		return err_errno(err, "make %s", name);
	*ret = openat(at, name, DIR_FLAGS);
	if (*ret < 0)
		return err_errno(err, "open %s", name);
	if (make && fchmod(*ret, mode) < 0) /* whatever the umask was */
		return err_errno(err, "mode of %s", name);
	return 0;
}

static int
store_lock(struct store *s, struct err *err)
{
	s->lock = openat(s->templates, ".", DIR_FLAGS);
	if (s->lock < 0)
		return err_errno(err, "open templates");
	if (flock(s->lock, LOCK_EX | LOCK_NB) == 0)
		return 0;
	if (errno != EWOULDBLOCK)
		return err_errno(err, "lock templates");
	progress("another template is being made; waiting for it");
	while (flock(s->lock, LOCK_EX) < 0) {
		if (errno != EINTR)
			return err_errno(err, "lock templates");
	}
	return 0;
}

/* What a killed run left. Its children may take a moment to die, and still write. */
static int
store_sweep(int tmp, struct err *err)
{
	const struct timespec moment = {.tv_nsec = 50000000};
	int r = -EBUSY;

	for (int tries = 0; r < 0 && tries < 40; tries++) {
		if (tries != 0)
			(void)nanosleep(&moment, NULL);
		r = tree_remove(tmp, "template", err);
	}
	return r;
}

static int
store_open_dirs(int state, bool make, struct store *s, struct err *err)
{
	int r = dir_open(state, "templates", make, 0755, &s->templates, err);

	if (r == 0)
		r = dir_open(s->templates, "index", make, 0755, &s->index, err);
	if (r == 0)
		r = dir_open(s->templates, "built", make, 0755, &s->built, err);
	return r;
}

int
store_open(const char *state_dir, struct store *ret, struct err *err)
{
	struct store s auto_store = store_closed;
	char *path auto_free = NULL;
	int r;

	if (mkdir(state_dir, 0755) < 0 && errno != EEXIST)
		return err_errno(err, "make %s", state_dir);
	int state auto_fd = open(state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	path = realpath(state_dir, NULL);
	if (state < 0 || path == NULL)
		return err_errno(err, "open %s", state_dir);
	if (asprintf(&s.tmp_path, "%s/tmp/template", path) < 0)
		return err_set(err, -ENOMEM, "no memory");
	r = store_open_dirs(state, true, &s, err);
	if (r == 0)
		r = store_lock(&s, err);
	if (r < 0)
		return r;
	if (mkdirat(state, "tmp", 0711) < 0 && errno != EEXIST)
		return err_errno(err, "make tmp");
	int tmp auto_fd = openat(state, "tmp", DIR_FLAGS);
	if (tmp < 0)
		return err_errno(err, "open tmp");
	r = store_sweep(tmp, err);
	if (r == 0)
		r = dir_open(tmp, "template", true, 0700, &s.tmp, err);
	if (r < 0)
		return r;
	*ret = s;
	s = store_closed;
	return 0;
}

int
store_open_read(const char *state_dir, struct store *ret, struct err *err)
{
	struct store s auto_store = store_closed;
	int state auto_fd = open(state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r;

	if (state < 0)
		return err_errno(err, "open %s", state_dir);
	r = store_open_dirs(state, false, &s, err);
	if (r < 0)
		return err_context(err, "no template was built in %s", state_dir);
	*ret = s;
	s = store_closed;
	return 0;
}

/* Reads a small file. 1, 0 when there is none, or an error. */
static int
small_read(int dir, const char *name, char *ret, size_t size, size_t *ret_n, struct err *err)
{
	int fd auto_fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	int r;

	if (fd < 0)
		return errno == ENOENT ? 0 : err_errno(err, "%s", name);
	r = fd_read_upto(fd, ret, size, ret_n, err);
	return r < 0 ? r : 1;
}

/* "digest\n" of a file. 1, 0 when there is none, or an error. */
static int
digest_read(int dir, const char *name, char ret_digest[SHA256_TEXT], struct err *err)
{
	char line[LINE_BYTES];
	uint8_t bytes[SHA256_BYTES];
	size_t n = 0;
	int r = small_read(dir, name, line, sizeof(line), &n, err);

	if (r <= 0)
		return r;
	if (n != SHA256_TEXT || line[n - 1] != '\n' ||
		hex_decode(view_of(line, n - 1), bytes, sizeof(bytes)) < 0)
		return err_set(err, -EUCLEAN, "%s holds no digest", name);
	hex_encode(bytes, sizeof(bytes), ret_digest);
	return 1;
}

/* A whole new file under its final name, or the old state. */
static int
file_put(const struct store *s, int dir, const char *name, struct view text, struct err *err)
{
	int fd auto_fd = openat(s->tmp, "put", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0444);
	int r;

	if (fd < 0)
		return err_errno(err, "write %s", name);
	r = fd_write_all(fd, text.p, text.n, err);
	if (r < 0)
		return r;
	if (fchmod(fd, 0444) < 0 || fsync(fd) < 0 || renameat(s->tmp, "put", dir, name) < 0 ||
		fsync(dir) < 0)
		return err_errno(err, "write %s", name);
	return 0;
}

static int
digest_put(const struct store *s, int dir, const char *name, const char *digest, struct err *err)
{
	char line[SHA256_TEXT + 1];

	(void)snprintf(line, sizeof(line), "%s\n", digest);
	return file_put(s, dir, name, view_str(line), err);
}

/* 1 and the name that an alias points to, 0 when it is no alias, or an error. */
static int
alias_read(const struct store *s, const char *alias, char ret[NAME_MAX_BYTES + 1], struct err *err)
{
	char target[NAME_MAX_BYTES + 1];
	ssize_t n = readlinkat(s->index, alias, target, sizeof(target));

	if (n < 0)
		return errno == ENOENT || errno == EINVAL ? 0 : err_errno(err, "%s", alias);
	if (!name_ok(view_of(target, (size_t)n)))
		return err_set(err, -EUCLEAN, "the alias %s points to no name", alias);
	(void)snprintf(ret, NAME_MAX_BYTES + 1, "%.*s", (int)n, target);
	return 1;
}

int
store_check_names(const struct store *s, const struct manifest *m, struct err *err)
{
	char owner[NAME_MAX_BYTES + 1];
	int r = alias_read(s, m->name, owner, err);

	if (r != 0)
		return r < 0 ? r
			     : err_set(err, -EEXIST, "%s is an alias of the template %s", m->name,
				       owner);
	for (size_t i = 0; i < m->aliases.n; i++) {
		const char *alias = m->aliases.v[i];

		r = alias_read(s, alias, owner, err);
		if (r < 0)
			return r;
		if (r == 1 && strcmp(owner, m->name) != 0)
			return err_set(
				err, -EEXIST, "%s is an alias of the template %s", alias, owner);
		if (r == 0 && faccessat(s->index, alias, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
			return err_set(err, -EEXIST, "%s is a template of its own", alias);
	}
	return 0;
}

static void
file_name(const char *digest, const char *suffix, char ret[LINE_BYTES])
{
	(void)snprintf(ret, LINE_BYTES, "%s%s", digest, suffix);
}

int
store_find_built(const struct store *s, const char *manifest_digest, char ret_digest[SHA256_TEXT],
	struct err *err)
{
	char image[LINE_BYTES], record[LINE_BYTES];
	int r = digest_read(s->built, manifest_digest, ret_digest, err);

	if (r <= 0)
		return r;
	file_name(ret_digest, ".erofs", image);
	file_name(ret_digest, ".json", record);
	return faccessat(s->templates, image, F_OK, 0) == 0 &&
	       faccessat(s->templates, record, F_OK, 0) == 0;
}

int
store_add(const struct store *s, const char *image_name, const char *digest, struct view record,
	const char *manifest_digest, struct err *err)
{
	char image[LINE_BYTES], json[LINE_BYTES];
	int r;

	file_name(digest, ".erofs", image);
	file_name(digest, ".json", json);
	int fd auto_fd = openat(s->tmp, image_name, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fchmod(fd, 0444) < 0 || fsync(fd) < 0)
		return err_errno(err, "finish the image");
	if (faccessat(s->templates, json, F_OK, 0) < 0) {
		r = file_put(s, s->templates, json, record, err);
		if (r < 0)
			return r;
	}
	if (renameat(s->tmp, image_name, s->templates, image) < 0 || fsync(s->templates) < 0)
		return err_errno(err, "move the image in");
	return digest_put(s, s->built, manifest_digest, digest, err);
}

static int
alias_put(const struct store *s, const char *alias, const char *name, struct err *err)
{
	if (unlinkat(s->tmp, "link", 0) < 0 && errno != ENOENT)
		return err_errno(err, "alias %s", alias);
	if (symlinkat(name, s->tmp, "link") < 0 || renameat(s->tmp, "link", s->index, alias) < 0)
		return err_errno(err, "alias %s", alias);
	return 0;
}

static bool
is_alias_of(const struct manifest *m, const char *name)
{
	for (size_t i = 0; i < m->aliases.n; i++) {
		if (strcmp(m->aliases.v[i], name) == 0)
			return true;
	}
	return false;
}

static void
dir_cleanup(DIR **d)
{
	if (*d != NULL)
		(void)closedir(*d);
}

/* Names in the index, sorted. */
static int
index_names(const struct store *s, struct strings *ret, struct err *err)
{
	DIR *d __attribute__((cleanup(dir_cleanup))) = NULL;
	int copy auto_fd = openat(s->index, ".", DIR_FLAGS);
	const struct dirent *e;

	d = copy < 0 ? NULL : fdopendir(copy);
	if (d == NULL)
		return err_errno(err, "open the index");
	(void)take_fd(&copy);
	while ((e = readdir(d)) != NULL) {
		if (!name_ok(view_str(e->d_name)))
			continue;
		if (strings_add(ret, view_str(e->d_name)) < 0)
			return err_set(err, -E2BIG, "too many templates, or no memory");
	}
	strings_sort(ret);
	return 0;
}

/* Removes aliases that the manifest no longer names. */
static int
aliases_prune(
	const struct store *s, const struct manifest *m, struct strings *names, struct err *err)
{
	char owner[NAME_MAX_BYTES + 1];

	for (size_t i = 0; i < names->n; i++) {
		int r = alias_read(s, names->v[i], owner, err);

		if (r < 0)
			return r;
		if (r == 0 || strcmp(owner, m->name) != 0 || is_alias_of(m, names->v[i]))
			continue;
		if (unlinkat(s->index, names->v[i], 0) < 0)
			return err_errno(err, "remove the alias %s", names->v[i]);
	}
	return 0;
}

int
store_point(const struct store *s, const struct manifest *m, const char *digest, struct err *err)
{
	struct strings names auto_strings = {0};
	int r = digest_put(s, s->index, m->name, digest, err);

	for (size_t i = 0; r == 0 && i < m->aliases.n; i++)
		r = alias_put(s, m->aliases.v[i], m->name, err);
	if (r == 0)
		r = index_names(s, &names, err);
	if (r == 0)
		r = aliases_prune(s, m, &names, err);
	if (r == 0 && fsync(s->index) < 0)
		return err_errno(err, "write the index");
	return r;
}

int
store_resolve(
	const struct store *s, const char *name, char ret_digest[SHA256_TEXT], struct err *err)
{
	int r;

	if (!name_ok(view_str(name)))
		return err_set(err, -EINVAL, "\"%.64s\" is no template name", name);
	r = digest_read(s->index, name, ret_digest, err);
	if (r == 0)
		return err_set(err, -ENOENT, "there is no template %s", name);
	return r < 0 ? r : 0;
}

int
store_record(const struct store *s, const char *digest, struct buf *ret, struct err *err)
{
	char name[LINE_BYTES];
	uint8_t *room = buf_room(ret, LIMIT_RECORD_BYTES);
	size_t n = 0;
	int r;

	if (room == NULL)
		return err_set(err, -ENOMEM, "no memory");
	file_name(digest, ".json", name);
	r = small_read(s->templates, name, (char *)room, LIMIT_RECORD_BYTES, &n, err);
	if (r < 0)
		return r;
	if (r == 0)
		return err_set(err, -EUCLEAN, "the record of %s is gone; build it again", digest);
	buf_grew(ret, n);
	return 0;
}

static int
list_one(const struct store *s, const struct strings *names, const char *name, struct err *err)
{
	char owner[NAME_MAX_BYTES + 1], digest[SHA256_TEXT], image[LINE_BYTES];
	const char *comma = "";
	struct stat st;
	int r = alias_read(s, name, owner, err);

	if (r != 0)
		return r < 0 ? r : 0;
	r = store_resolve(s, name, digest, err);
	if (r < 0)
		return r;
	file_name(digest, ".erofs", image);
	if (fstatat(s->templates, image, &st, 0) < 0)
		return err_errno(err, "the image of %s", name);
	(void)printf("%s\t%s\t%lld\t", name, digest, (long long)st.st_size);
	for (size_t i = 0; i < names->n; i++) {
		if (alias_read(s, names->v[i], owner, err) == 1 && strcmp(owner, name) == 0) {
			(void)printf("%s%s", comma, names->v[i]);
			comma = ",";
		}
	}
	(void)printf("\n");
	return 0;
}

int
store_list(const struct store *s, struct err *err)
{
	struct strings names auto_strings = {0};
	int r = index_names(s, &names, err);

	for (size_t i = 0; r == 0 && i < names.n; i++)
		r = list_one(s, &names, names.v[i], err);
	return r;
}
