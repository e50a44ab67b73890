/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Manifest, directory or archive → tree in the store's tmp → image → store. main.c calls this. The
 * packages' own install scripts run as root here, in a chroot: they come from the signed
 * archive that the host itself trusts. Nothing of an imported tree is ever run.
 */
#include "template/build.h"
#include "template/apt.h"
#include "template/archive.h"
#include "template/beside.h"
#include "template/child.h"
#include "template/furnish.h"
#include "template/image.h"
#include "template/limits.h"
#include "template/progress.h"
#include "template/store.h"
#include "template/tree.h"

#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/base/hex.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

/* Counts with the manifest's digest: raise it when the same manifest must give another image. */
#define BUILD_VERSION "demilune-template 2\n"

/* Directories of a fresh Debian tree whose contents say nothing or differ from run to run. */
static const char *const debian_leftovers[] = {
	"/boot",
	"/etc/apt",
	"/var/cache",
	"/var/lib/apt",
	"/var/lib/dpkg/info",
	"/var/lib/dpkg/triggers",
	"/var/lib/dpkg/updates",
	"/var/log",
};

struct work {
	const struct manifest *m; /* borrowed */
	struct store store;       /* owned */
	struct buf json;          /* owned; the canonical manifest */
	struct buf propose;       /* owned; the program of guest/propose */
	char digest[SHA256_TEXT]; /* of the manifest */
	char *tree_path;          /* owned */
	char *image_path;         /* owned */
	struct strings versions;  /* owned */
};

static void
work_cleanup(struct work *w)
{
	struct err ignored;
	int left = 0;

	if (w->store.tmp >= 0 && w->tree_path != NULL)
		left = tree_clear(w->store.tmp, "", NULL, &ignored);
	(void)left; /* what could not be removed, the next run removes or complains about */
	store_done(&w->store);
	buf_done(&w->json);
	buf_done(&w->propose);
	free(w->tree_path);
	free(w->image_path);
	strings_done(&w->versions);
}
#define auto_work __attribute__((cleanup(work_cleanup)))

/* Every image gets it, so it counts with the manifest's digest. */
static int
propose_load(struct buf *ret, struct err *err)
{
	char path[PATH_MAX];
	uint8_t *room;
	size_t n;
	int r = beside_find("demilune-propose", "../../guest/propose", path, err);

	if (r < 0)
		return r;
	int fd auto_fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return err_errno(err, "open %s", path);
	room = buf_room(ret, ret->max);
	if (room == NULL)
		return err_set(err, -ENOMEM, "no memory");
	r = fd_read_upto(fd, room, ret->max, &n, err);
	if (r < 0)
		return r;
	if (n == ret->max)
		return err_set(err, -EFBIG, "%s is too large", path);
	buf_grew(ret, n);
	return 0;
}

static int
work_begin(struct work *w, const struct manifest *m, const char *state_dir, struct err *err)
{
	uint8_t digest[SHA256_BYTES];
	struct sha256 h;
	int r;

	*w = (struct work){.m = m, .store = {-1, -1, -1, -1, -1, NULL}};
	buf_init(&w->json, LIMIT_RECORD_BYTES);
	buf_init(&w->propose, LIMIT_PROGRAM_BYTES);
	r = manifest_json(m, &w->json, err);
	if (r == 0)
		r = propose_load(&w->propose, err);
	if (r < 0)
		return r;
	sha256_init(&h);
	sha256_add(&h, BUILD_VERSION, strlen(BUILD_VERSION));
	sha256_add(&h, w->json.p, w->json.n);
	sha256_add(&h, w->propose.p, w->propose.n);
	sha256_end(&h, digest);
	hex_encode(digest, sizeof(digest), w->digest);
	r = store_open(state_dir, &w->store, err);
	if (r < 0)
		return r;
	r = store_check_names(&w->store, m, err);
	if (r < 0)
		return r;
	if (asprintf(&w->tree_path, "%s/tree", w->store.tmp_path) < 0 ||
		asprintf(&w->image_path, "%s/image", w->store.tmp_path) < 0)
		return err_set(err, -ENOMEM, "no memory");
	return 0;
}

/* The record: what the image is, and the manifest that stands in it. */
static int
record_write(
	const struct work *w, const char *digest, uint64_t bytes, struct buf *ret, struct err *err)
{
	struct canon_writer doc;
	char now[CLOCK_TEXT];

	clock_text(clock_real_ms(), now);
	canon_begin(&doc, ret);
	canon_object_begin(&doc);
	canon_key(&doc, view_str("created"));
	canon_str(&doc, view_str(now));
	canon_key(&doc, view_str("digest"));
	canon_str(&doc, view_str(digest));
	canon_key(&doc, view_str("format"));
	canon_u64(&doc, 1);
	canon_key(&doc, view_str("image_bytes"));
	canon_u64(&doc, bytes);
	canon_key(&doc, view_str("manifest"));
	manifest_write(w->m, &doc);
	canon_key(&doc, view_str("manifest_digest"));
	canon_str(&doc, view_str(w->digest));
	canon_key(&doc, view_str("versions"));
	strings_write(&doc, &w->versions);
	canon_object_end(&doc);
	return canon_end(&doc, err);
}

/* Tree → image → store. */
static int
work_finish(struct work *w, int root, const char *verb, struct err *err)
{
	struct tree_count count = {0};
	struct buf record auto_buf = {0};
	char digest[SHA256_TEXT];
	uint64_t bytes;
	int r;

	r = furnish(root, w->m, buf_view(&w->json), buf_view(&w->propose), &count, err);
	if (r < 0)
		return r;
	if (count.stripped != 0)
		progress("setuid and setgid taken from %llu files",
			(unsigned long long)count.stripped);
	progress("writing the image of %llu files, %llu MB", (unsigned long long)count.entries,
		(unsigned long long)(count.bytes / 1000000));
	r = image_make(w->tree_path, w->image_path, err);
	if (r < 0)
		return r;
	r = image_digest(w->store.tmp, "image", digest, &bytes, err);
	if (r < 0)
		return r;
	buf_init(&record, LIMIT_RECORD_BYTES);
	r = record_write(w, digest, bytes, &record, err);
	if (r == 0)
		r = store_add(&w->store, "image", digest, buf_view(&record), w->digest, err);
	if (r == 0)
		r = store_point(&w->store, w->m, digest, err);
	if (r == 0)
		progress("%s %s %s %llu", verb, w->m->name, digest, (unsigned long long)bytes);
	return r;
}

/* What mmdebstrap sees: enough to fetch and to be repeatable. */
static void
bootstrap_env(const struct work *w, struct strings *ret)
{
	static const char *const proxies[] = {"http_proxy", "https_proxy", "no_proxy"};

	strings_addf(ret, "PATH=/usr/sbin:/usr/bin:/sbin:/bin");
	strings_addf(ret, "LC_ALL=C.UTF-8");
	strings_addf(ret, "SOURCE_DATE_EPOCH=" IMAGE_EPOCH);
	strings_addf(ret, "TMPDIR=%s", w->store.tmp_path);
	for (size_t i = 0; i < ARRAY_LEN(proxies); i++) {
		const char *value = getenv(proxies[i]);

		if (value != NULL)
			strings_addf(ret, "%s=%s", proxies[i], value);
	}
}

static int
bootstrap_args(const struct work *w, struct strings *ret, struct err *err)
{
	struct strings sources auto_strings = {0};
	int r = apt_sources(w->m->suite, &sources, err);

	if (r < 0)
		return r;
	strings_addf(ret, "/usr/bin/mmdebstrap");
	strings_addf(ret, "--mode=root");
	strings_addf(ret, "--format=directory");
	strings_addf(ret, "--variant=essential");
	strings_addf(ret, "--aptopt=APT::Install-Recommends \"false\"");
	strings_addf(ret, "--dpkgopt=force-unsafe-io"); /* the image is fsynced as a whole */
	for (size_t i = 0; i < w->m->exclude.n; i++)
		strings_addf(ret, "--dpkgopt=path-exclude=%s", w->m->exclude.v[i]);
	for (size_t i = 0; i < w->m->packages.n; i++)
		strings_addf(ret, "--include=%s", w->m->packages.v[i]);
	strings_addf(ret, "%s", w->m->suite);
	strings_addf(ret, "%s", w->tree_path);
	for (size_t i = 0; i < sources.n; i++)
		strings_addf(ret, "%s", sources.v[i]);
	return ret->failed ? err_set(err, -E2BIG, "too many packages and patterns") : 0;
}

static int
bootstrap(const struct work *w, struct err *err)
{
	struct strings args auto_strings = {0}, env auto_strings = {0};
	struct child c = {.network = true};
	int r = bootstrap_args(w, &args, err);

	if (r < 0)
		return r;
	bootstrap_env(w, &env);
	if (env.failed)
		return err_set(err, -ENOMEM, "no memory");
	c.argv = (const char *const *)args.v;
	c.envp = (const char *const *)env.v;
	progress("installing %zu packages of Debian %s and what they need", w->m->packages.n,
		w->m->suite);
	return child_run(&c, err);
}

static int
finish_commands(const struct work *w, struct err *err)
{
	const char *const envp[] = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C.UTF-8",
		"HOME=/root", "SOURCE_DATE_EPOCH=" IMAGE_EPOCH, NULL};

	for (size_t i = 0; i < w->m->n_finish; i++) {
		const char *const *argv = (const char *const *)w->m->finish[i].v;
		const struct child c = {.argv = argv, .envp = envp, .root = w->tree_path};
		int r;

		progress("running %s", argv[0]);
		r = child_run(&c, err);
		if (r < 0)
			return r;
	}
	return 0;
}

static int
debian_tree(struct work *w, struct err *err)
{
	struct tree_count ignored = {0};
	int r = bootstrap(w, err);

	if (r == 0)
		r = finish_commands(w, err);
	if (r < 0)
		return r;
	int root auto_fd = openat(w->store.tmp, "tree", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return err_errno(err, "open the tree");
	r = apt_versions(root, &w->versions, err);
	for (size_t i = 0; r == 0 && i < ARRAY_LEN(debian_leftovers); i++)
		r = tree_clear(root, debian_leftovers[i], &ignored, err);
	return r == 0 ? work_finish(w, root, "built", err) : r;
}

static int
manifest_load(const char *manifest_dir, struct manifest *ret, struct buf *problems, struct err *err)
{
	char *path auto_free = NULL;
	uint8_t *text auto_free = malloc(LIMIT_MANIFEST_BYTES + 1);
	size_t n;
	int r;

	if (text == NULL || asprintf(&path, "%s/template.yaml", manifest_dir) < 0)
		return err_set(err, -ENOMEM, "no memory");
	int fd auto_fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return err_errno(err, "open %s", path);
	r = fd_read_upto(fd, text, LIMIT_MANIFEST_BYTES + 1, &n, err);
	return r < 0 ? r : manifest_parse(view_of(text, n), path, ret, problems, err);
}

int
template_build(
	const char *manifest_dir, const char *state_dir, struct buf *problems, struct err *err)
{
	struct manifest m auto_manifest = {0};
	struct work w auto_work = {0};
	char digest[SHA256_TEXT];
	int r;

	r = manifest_load(manifest_dir, &m, problems, err);
	if (r == 0)
		r = work_begin(&w, &m, state_dir, err);
	if (r == 0)
		r = store_find_built(&w.store, w.digest, digest, err);
	if (r < 0)
		return r;
	if (r == 0)
		return debian_tree(&w, err);
	r = store_point(&w.store, &m, digest, err);
	if (r == 0)
		progress("cached %s %s", m.name, digest);
	return r;
}

int
template_import(const struct manifest *m, const char *tree, const char *state_dir, struct err *err)
{
	struct work w auto_work = {0};
	struct tree_count count = {0};
	struct stat st;
	int r;

	int from auto_fd = open(tree, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (from < 0 || fstat(from, &st) < 0)
		return err_errno(err, "open %s", tree);
	if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode))
		return err_set(err, -EINVAL, "%s is no directory and no archive", tree);
	r = work_begin(&w, m, state_dir, err);
	if (r < 0)
		return r;
	if (mkdirat(w.store.tmp, "tree", 0700) < 0)
		return err_errno(err, "make the tree");
	int root auto_fd = openat(w.store.tmp, "tree", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return err_errno(err, "open the tree");
	progress("%s %s", S_ISDIR(st.st_mode) ? "copying" : "unpacking", tree);
	r = S_ISDIR(st.st_mode) ? tree_copy(from, root, &count, err)
				: archive_unpack(from, tree, root, &count.stripped, err);
	if (r < 0)
		return r;
	if (count.stripped != 0)
		progress("setuid and setgid left out of %llu files",
			(unsigned long long)count.stripped);
	return work_finish(&w, root, "imported", err);
}
