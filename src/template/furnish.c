/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The last step before the image; build.c calls this on a tree that may be hostile (an
 * import), so all writes go through tree.c, which follows no link.
 */
#include "template/furnish.h"
#include "template/limits.h"

#include "lib/base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

/* One program under two names (guest/propose). */
#define PROPOSE_IN_IMAGE "/usr/local/bin/demilune-propose"
#define READ_IN_IMAGE    "/usr/local/bin/demilune-read"

/*
 * Where libraries look for what to trust in TLS, and where a sandbox has it (guest/agent/trust.c). What came with the system is kept beside:
 * it is what a sandbox without a policy trusts.
 */
static const struct {
	const char *path, *leads;
	const char *keep; /* NULL: nothing */
	bool only_if_there; /* else it is made: programs without a bundle of their own find this one */
} trust[] = {
	{"/etc/ssl/certs/ca-certificates.crt", "/run/demilune/trust/bundle.crt",
		"/usr/share/demilune/roots.crt", false},
	{"/usr/lib/ssl/cert.pem", "/run/demilune/trust/bundle.crt", NULL, false},
	{"/etc/ssl/cert.pem", "/run/demilune/trust/bundle.crt", NULL, true},
	{"/etc/ssl/certs/java/cacerts", "/run/demilune/trust/java.jks",
		"/usr/share/demilune/roots.jks", true},
};

/* Directories that the supervisor mounts something on; empty in the image. */
static const char *const mount_points[] = {"/dev", "/proc", "/sys"};

static int
read_file(int root, const char *path, struct buf *ret, struct err *err)
{
	int fd auto_fd = tree_open(root, path, O_RDONLY | O_NONBLOCK);
	uint8_t *room;
	size_t n;
	int r;

	if (fd < 0)
		return errno == ENOENT ? 0 : err_errno(err, "%s", path);
	room = buf_room(ret, ret->max);
	if (room == NULL)
		return err_set(err, -ENOMEM, "no memory");
	r = fd_read_upto(fd, room, ret->max, &n, err);
	if (r < 0)
		return r;
	buf_grew(ret, n);
	return 0;
}

/* True if `line` is the entry of `name` or of number `id` (third field of passwd and group). */
static bool
is_entry_of(struct view line, const char *name, uint32_t id)
{
	char text[16];
	struct view field = line;

	(void)snprintf(text, sizeof(text), "%u", id);
	for (int i = 0; i < 3; i++) {
		const uint8_t *colon = field.n != 0 ? memchr(field.p, ':', field.n) : NULL;
		size_t n = colon != NULL ? (size_t)(colon - field.p) : field.n;

		if ((i == 0 && view_is(view_of(field.p, n), name)) ||
			(i == 2 && view_is(view_of(field.p, n), text)))
			return true;
		field = view_skip(field, n + 1);
	}
	return false;
}

/* The users or groups that are there, without those that clash with `own`, and `own` behind. */
static int
accounts_write(int root, const char *path, const char *name, uint32_t id, const char *first,
	const char *own, struct err *err)
{
	struct buf old auto_buf = {0}, text auto_buf = {0};
	struct view rest;
	int r;

	buf_init(&old, 65536);
	buf_init(&text, 2 * 65536);
	r = read_file(root, path, &old, err);
	if (r < 0)
		return r;
	buf_add_str(&text, old.n == 0 ? first : "");
	rest = buf_view(&old);
	while (rest.n != 0) {
		const uint8_t *nl = memchr(rest.p, '\n', rest.n);
		size_t n = nl != NULL ? (size_t)(nl - rest.p) : rest.n;
		struct view line = view_of(rest.p, n);

		if (n != 0 && !is_entry_of(line, name, id)) {
			buf_add_view(&text, line);
			buf_add_byte(&text, '\n');
		}
		rest = view_skip(rest, n + 1);
	}
	buf_add_str(&text, own);
	if (buf_check(&text) < 0)
		return err_set(err, -EFBIG, "%s is too large", path);
	return tree_write(root, path, buf_view(&text), 0644, err);
}

static int
accounts(int root, const struct manifest *m, struct err *err)
{
	char *user auto_free = NULL, *group auto_free = NULL;
	int r;

	if (asprintf(&user, "%s:x:%u:%u:agent:%s:/bin/sh\n", m->user_name, m->uid, m->gid,
		    m->home) < 0 ||
		asprintf(&group, "%s:x:%u:\n", m->user_name, m->gid) < 0)
		return err_set(err, -ENOMEM, "no memory");
	r = accounts_write(root, "/etc/passwd", m->user_name, m->uid,
		"root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n",
		user, err);
	return r < 0 ? r
		     : accounts_write(root, "/etc/group", m->user_name, m->gid,
			       "root:x:0:\nnogroup:x:65534:\n", group, err);
}

/* Names resolve on loopback only; nothing of the host shows. */
static int
fixed_files(int root, const struct manifest *m, struct view json, struct err *err)
{
	char *hosts auto_free = NULL, *hostname auto_free = NULL;
	int r;

	if (asprintf(&hosts, "127.0.0.1 localhost %s\n::1 localhost\n", m->hostname) < 0 ||
		asprintf(&hostname, "%s\n", m->hostname) < 0)
		return err_set(err, -ENOMEM, "no memory");
	const struct {
		const char *path;
		struct view text;
	} files[] = {
		{"/etc/hosts", view_str(hosts)},
		{"/etc/hostname", view_str(hostname)},
		{"/etc/resolv.conf",
			view_str("nameserver 127.0.0.1\noptions attempts:1 timeout:2\n")},
		{"/etc/machine-id", view_str("")},
		{MANIFEST_IN_IMAGE, json},
	};
	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		r = tree_write(root, files[i].path, files[i].text, 0644, err);
		if (r < 0)
			return r;
	}
	return accounts(root, m, err);
}

/* The link itself, when it is one. */
static bool
is_there(int root, const char *path, mode_t *ret_mode)
{
	int fd auto_fd = tree_open(root, path, O_PATH | O_NOFOLLOW);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return false;
	*ret_mode = st.st_mode;
	return true;
}

/* A file of the tree under a second name. One that is a link, ours of an earlier image too, is nothing to keep. */
static int
trust_keep(int root, const char *path, const char *as, struct err *err)
{
	struct buf text auto_buf = {0};
	int r;

	buf_init(&text, LIMIT_ROOTS_BYTES + 1);
	r = read_file(root, path, &text, err);
	if (r < 0)
		return r;
	if (text.n > LIMIT_ROOTS_BYTES)
		return err_set(err, -EFBIG, "%s is too large", path);
	return tree_write(root, as, buf_view(&text), 0644, err);
}

static int
trust_links(int root, struct err *err)
{
	for (size_t i = 0; i < ARRAY_LEN(trust); i++) {
		mode_t mode = 0;
		bool there = is_there(root, trust[i].path, &mode);
		int r = 0;

		if (!there && trust[i].only_if_there)
			continue;
		if (there && S_ISREG(mode) && trust[i].keep != NULL)
			r = trust_keep(root, trust[i].path, trust[i].keep, err);
		if (r == 0)
			r = tree_link(root, trust[i].path, trust[i].leads, err);
		if (r < 0)
			return r;
	}
	return 0;
}

static int
empty_dir(int root, const char *path, struct tree_count *count, struct err *err)
{
	int r = tree_mkdir(root, path, err);

	return r < 0 ? r : tree_clear(root, path, count, err);
}

static bool
sticky(const char *path)
{
	return strcmp(path, "/tmp") == 0 || strcmp(path, "/var/tmp") == 0;
}

/* After everything went to root: modes of places, owner of the home. */
static int
dir_own(int root, const char *path, uint32_t uid, uint32_t gid, mode_t mode, struct err *err)
{
	int fd auto_fd = tree_open(root, path, O_RDONLY | O_DIRECTORY);

	if (fd < 0 || fchown(fd, uid, gid) < 0 || fchmod(fd, mode) < 0)
		return err_errno(err, "owner of %s", path);
	return 0;
}

int
furnish(int root, const struct manifest *m, struct view json, struct view propose,
	struct tree_count *count, struct err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_LEN(mount_points); i++)
		r = empty_dir(root, mount_points[i], count, err);
	for (size_t i = 0; r == 0 && i < m->places.n; i++)
		r = empty_dir(root, m->places.v[i], count, err);
	if (r == 0)
		r = tree_mkdir(root, m->home, err);
	if (r == 0)
		r = fixed_files(root, m, json, err);
	if (r == 0)
		r = tree_write(root, PROPOSE_IN_IMAGE, propose, 0755, err);
	if (r == 0)
		r = tree_link(root, READ_IN_IMAGE, "demilune-propose", err);
	if (r == 0)
		r = trust_links(root, err);
	if (r == 0)
		r = tree_settle(root, count, err);
	for (size_t i = 0; r == 0 && i < m->places.n; i++)
		r = dir_own(root, m->places.v[i], 0, 0, sticky(m->places.v[i]) ? 01777 : 0755, err);
	return r == 0 ? dir_own(root, m->home, m->uid, m->gid, 0755, err) : r;
}
