/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One control group per sandbox; see cgroup.h for the contract and cgroup.def for the files. Called by the
 * sandbox's life only. Texts that are read here come from the kernel.
 */
#include "supervisor/cgroup.h"

#include "lib/base/num.h"
#include "supervisor/hierarchy.h"
#include "supervisor/members.h"
#include "supervisor/text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>

enum { PERIOD_US = 100000, FILE_MAX_BYTES = 65536 };

static const struct knob {
	enum cgroup_duty duty;
	bool needed;
	const char *file[2]; /* v1, v2 */
} knobs[] = {
#define KNOB(name, d, needed, v2, v1, prose) [KNOB_##name] = {DUTY_##d, needed, {v1, v2}},
#include "supervisor/cgroup.def"
#undef KNOB
};

static const struct hierarchy *
hierarchy_of(const struct cgroups *c, enum cgroup_duty duty)
{
	return &c->h[c->of[duty]];
}

/* "<name>/<file>" below the parent; NULL when this version has no such file. */
static const char *
knob_path(const struct cgroups *c, const char *name, enum cgroup_knob knob, char *room, size_t n)
{
	const char *file = knobs[knob].file[hierarchy_of(c, knobs[knob].duty)->version - 1];

	if (file[0] == '\0')
		return NULL;
	must((size_t)snprintf(room, n, "%s/%s", name, file) < n);
	return room;
}

static int
write_text(int dir, const char *path, const char *text)
{
	auto_fd int fd = openat(dir, path, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	return write(fd, text, strlen(text)) < 0 ? -errno : 0;
}

int
cgroup_write(const struct cgroups *c, const char *name, enum cgroup_knob knob, const char *text,
	struct err *err)
{
	char room[CGROUP_NAME + 64];
	const char *path = knob_path(c, name, knob, room, sizeof(room));
	int r;

	if (path == NULL)
		return 0; /* this version needs none */
	r = write_text(hierarchy_of(c, knobs[knob].duty)->parent, path, text);
	if (r == 0)
		return 0;
	if (r == -ENOENT && !knobs[knob].needed)
		return 0;
	errno = -r;
	return err_errno(err, "cgroup file %s", path);
}

/* The file's text in room. */
static int
read_text(const struct cgroups *c, const char *name, enum cgroup_knob knob, char *room, size_t n,
	struct view *ret)
{
	char path_room[CGROUP_NAME + 64];
	const char *path = knob_path(c, name, knob, path_room, sizeof(path_room));

	return path == NULL
		       ? -ENOENT
		       : text_file(hierarchy_of(c, knobs[knob].duty)->parent, path, room, n, ret);
}

/* A number, or "max"; v1 says -1 for a quota that is none. */
static int
number(struct view v, uint64_t *ret)
{
	if (view_is(v, "max") || view_is(v, "-1")) {
		*ret = UINT64_MAX;
		return 0;
	}
	return num_u64(v, UINT64_MAX, ret);
}

int
cgroup_read(const struct cgroups *c, const char *name, enum cgroup_knob knob, uint64_t *ret)
{
	char room[512];
	struct view text, line;
	int r = read_text(c, name, knob, room, sizeof(room), &text);

	if (r < 0)
		return r;
	return text_line(&text, &line) ? number(text_word_at(line, 0), ret) : -EBADMSG;
}

int
cgroup_read_key(const struct cgroups *c, const char *name, enum cgroup_knob knob, const char *key,
	uint64_t *ret)
{
	char room[4096];
	struct view text, value;
	int r = read_text(c, name, knob, room, sizeof(room), &text);

	if (r < 0)
		return r;
	return text_key(text, key, &value) ? number(value, ret) : -ENOENT;
}

/* All limits but the share of processors: of one sandbox, or "." for all. */
static int
size_limit(const struct cgroups *c, const char *name, uint64_t memory_bytes, uint32_t pids,
	struct err *err)
{
	bool v2_memory = hierarchy_of(c, DUTY_MEMORY)->version == 2;
	char memory[32], sockets[32], number_of[32];
	int r;

	(void)snprintf(memory, sizeof(memory), "%llu", (unsigned long long)memory_bytes);
	(void)snprintf(sockets, sizeof(sockets), "%llu",
		(unsigned long long)memory_bytes / CGROUP_SOCKET_SHARE);
	(void)snprintf(number_of, sizeof(number_of), "%u", pids);
	r = cgroup_write(c, name, KNOB_MEMORY_MAX, memory, err);
	if (r == 0)
		r = cgroup_write(c, name, KNOB_SWAP_MAX, v2_memory ? "0" : memory, err);
	if (r == 0)
		r = cgroup_write(c, name, KNOB_SOCKET_MAX, sockets, err);
	return r == 0 ? cgroup_write(c, name, KNOB_PIDS_MAX, number_of, err) : r;
}

/* ---- finding ---- */

/* Index of the hierarchy whose own group is this directory; adds it when it is new. */
static int
hierarchy_add(struct cgroups *c, const char *dir, int version, struct err *err)
{
	auto_fd int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct stat st, other;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_errno(err, "%s", dir);
	for (size_t i = 0; i < c->n; i++)
		if (fstat(c->h[i].own, &other) == 0 && other.st_dev == st.st_dev)
			return (int)i;
	must(c->n < CGROUP_HIERARCHIES);
	c->h[c->n] = (struct hierarchy){.version = version, .own = take_fd(&fd), .parent = -1};
	return (int)c->n++;
}

struct sources {
	struct view mounts, groups;
	enum cgroup_mode mode;
};

/* The directory of our own group where this controller can be used, or false. */
static bool
find_v2(const struct sources *s, const char *controller, char *ret, size_t n)
{
	char room[512], path[4096 + 32];
	struct view text, line;

	if (s->mode == CGROUP_V1 || hierarchy_find(s->mounts, s->groups, NULL, ret, n) < 0)
		return false;
	if (controller[0] == '\0')
		return true;
	(void)snprintf(path, sizeof(path), "%.4000s/cgroup.controllers", ret);
	return text_file(AT_FDCWD, path, room, sizeof(room), &text) == 0 &&
	       text_line(&text, &line) && text_list_has(line, ' ', controller);
}

static int
duty_find(struct cgroups *c, const struct sources *s, enum cgroup_duty duty, struct err *err)
{
	static const struct {
		const char *v2, *v1, *prose;
	} rows[] = {
#define DUTY(name, needed, v2, v1, prose) {v2, v1, prose},
#include "supervisor/cgroup.def"
#undef DUTY
	};
	char dir[4096];
	int version = 2, i;

	if (!find_v2(s, rows[duty].v2, dir, sizeof(dir))) {
		version = 1;
		if (s->mode == CGROUP_V2 ||
			hierarchy_find(s->mounts, s->groups, rows[duty].v1, dir, sizeof(dir)) < 0)
			return err_set(err, -ENOTSUP,
				"no %s here: the kernel's cgroup controller %s is not mounted or "
				"not given to us",
				rows[duty].prose, rows[duty].v1);
	}
	i = hierarchy_add(c, dir, version, err);
	if (i < 0)
		return i;
	c->of[duty] = (size_t)i;
	return 0;
}

int
cgroups_find(struct cgroups *c, enum cgroup_mode mode, struct err *err)
{
	auto_free char *mounts = malloc(FILE_MAX_BYTES), *groups = malloc(FILE_MAX_BYTES);
	struct sources s = {.mode = mode};
	int r = 0;

	*c = (struct cgroups){0};
	if (mounts == NULL || groups == NULL)
		return err_set(err, -ENOMEM, "no memory");
	if (text_file(AT_FDCWD, "/proc/self/mountinfo", mounts, FILE_MAX_BYTES, &s.mounts) < 0 ||
		text_file(AT_FDCWD, "/proc/self/cgroup", groups, FILE_MAX_BYTES, &s.groups) < 0)
		return err_set(err, -EIO, "cannot read /proc/self/mountinfo and /proc/self/cgroup");
	for (enum cgroup_duty d = 0; r == 0 && d < DUTY_MAX; d++)
		r = duty_find(c, &s, d, err);
	return r;
}

int
cgroups_version(const struct cgroups *c)
{
	return hierarchy_of(c, DUTY_MEMORY)->version;
}

/* ---- the parents ---- */

/*
 * Version 2 gives controllers to children only when the group itself holds no process (but the root
 * may): then the supervisor moves to a leaf of its own, "<parent>.host".
 */
static int
controllers_give(int own, const char *controllers, const char *parent, struct err *err)
{
	char leaf[CGROUP_NAME + 32], procs[CGROUP_NAME + 64];
	int r = write_text(own, "cgroup.subtree_control", controllers);

	if (r != -EBUSY) {
		errno = -r;
		return r < 0 ? err_errno(err, "cgroup.subtree_control") : 0;
	}
	(void)snprintf(leaf, sizeof(leaf), "%s.host", parent);
	(void)snprintf(procs, sizeof(procs), "%s/cgroup.procs", leaf);
	if (mkdirat(own, leaf, 0755) < 0 && errno != EEXIST)
		return err_errno(err, "cgroup %s", leaf);
	r = write_text(own, procs, "0");
	if (r == 0)
		r = write_text(own, "cgroup.subtree_control", controllers);
	errno = -r;
	return r < 0 ? err_errno(err, "giving cgroup controllers to sandboxes") : 0;
}

static void
parent_name(const char *tag, char *ret, size_t n)
{
	must((size_t)snprintf(ret, n, "demilune-%s", tag) < n);
}

/* "+memory +pids +cpu" as far as this v2 hierarchy does them; "" when it has none. */
static void
controllers_of(const struct cgroups *c, size_t h, char *ret, size_t n)
{
	static const char *const names[] = {
#define DUTY(name, needed, v2, v1, prose) v2,
#include "supervisor/cgroup.def"
#undef DUTY
	};
	size_t used = 0;

	ret[0] = '\0';
	for (size_t d = 0; d < DUTY_MAX; d++)
		if (c->of[d] == h && names[d][0] != '\0')
			used += (size_t)snprintf(ret + used, n - used, "+%s ", names[d]);
}

static int
parent_make(struct cgroups *c, size_t i, struct err *err)
{
	struct hierarchy *h = &c->h[i];
	char name[CGROUP_NAME + 16], controllers[128];

	parent_name(c->tag, name, sizeof(name));
	controllers_of(c, i, controllers, sizeof(controllers));
	if (h->version == 2 && controllers[0] != '\0') {
		int r = controllers_give(h->own, controllers, name, err);

		if (r < 0)
			return r;
	}
	if (mkdirat(h->own, name, 0755) < 0)
		return err_errno(err, "cgroup %s", name);
	h->parent = openat(h->own, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (h->parent < 0)
		return err_errno(err, "cgroup %s", name);
	if (h->version == 2 && controllers[0] != '\0') {
		int r = write_text(h->parent, "cgroup.subtree_control", controllers);

		errno = -r;
		return r < 0 ? err_errno(err, "cgroup.subtree_control of %s", name) : 0;
	}
	return 0;
}

int
cgroup_swap_check(bool limited, struct view swaps, struct err *err)
{
	struct view line;

	(void)text_line(&swaps, &line); /* the heading */
	if (limited || !text_line(&swaps, &line))
		return 0;
	return err_set(err, -ENOTSUP,
		"this host has swap, and its control groups cannot limit it: start the kernel with "
		"swapaccount=1, or switch swap off");
}

static int
swap_prove(const struct cgroups *c, const char *probe, struct err *err)
{
	char room[FILE_MAX_BYTES / 16];
	struct view swaps;
	uint64_t value;
	bool limited = cgroup_read(c, probe, KNOB_SWAP_MAX, &value) == 0;

	if (text_file(AT_FDCWD, "/proc/swaps", room, sizeof(room), &swaps) < 0)
		return 0; /* a kernel without swap */
	return cgroup_swap_check(limited, swaps, err);
}

/* Every file that is needed is there and takes what sandboxes will need. */
static int
prove(const struct cgroups *c, struct err *err)
{
	static const char probe[] = "probe";
	int r = cgroup_make(c, probe, err);
	uint64_t value;

	if (r < 0)
		return r;
	r = cgroup_limit(c, probe, 16 << 20, 16, 500, err);
	for (enum cgroup_knob k = 0; r == 0 && k < KNOB_MAX; k++) {
		char room[4096];
		struct view text;

		if (knobs[k].file[hierarchy_of(c, knobs[k].duty)->version - 1][0] == '\0')
			continue;
		if (knobs[k].needed && read_text(c, probe, k, room, sizeof(room), &text) < 0)
			r = err_set(err, -ENOTSUP, "the cgroup file %s cannot be read",
				knobs[k].file[hierarchy_of(c, knobs[k].duty)->version - 1]);
	}
	if (r == 0 && (cgroup_read(c, probe, KNOB_MEMORY_MAX, &value) < 0 || value != 16 << 20))
		r = err_set(err, -ENOTSUP, "the kernel does not keep a memory limit that it took");
	if (r == 0)
		r = swap_prove(c, probe, err);
	if (cgroup_remove(c, probe) != 0 && r == 0)
		r = err_set(err, -EBUSY, "a cgroup cannot be removed again");
	return r;
}

int
cgroups_begin(
	struct cgroups *c, const char *tag, uint64_t memory_bytes, uint32_t pids, struct err *err)
{
	int r = 0;

	must((size_t)snprintf(c->tag, sizeof(c->tag), "%s", tag) < sizeof(c->tag) - 16);
	for (size_t i = 0; r == 0 && i < c->n; i++)
		r = parent_make(c, i, err);
	if (r == 0)
		r = size_limit(c, ".", memory_bytes, pids, err);
	return r == 0 ? prove(c, err) : r;
}

void
cgroups_end(struct cgroups *c)
{
	char name[CGROUP_NAME + 16], host[CGROUP_NAME + 32];

	parent_name(c->tag, name, sizeof(name));
	(void)snprintf(host, sizeof(host), "%s.host", name);
	for (size_t i = 0; i < c->n; i++) {
		struct hierarchy *h = &c->h[i];

		if (h->parent >= 0) {
			(void)close(take_fd(&h->parent)); /* only read */
			(void)unlinkat(h->own, name,
				AT_REMOVEDIR); /* what is left is swept at the next start */
			/* Its leaf holds ourselves: it can go only when nobody is in it; the next start takes it. */
			(void)unlinkat(h->own, host, AT_REMOVEDIR);
		}
		(void)close(take_fd(&h->own)); /* only read */
	}
	c->n = 0;
}

/* ---- one group ---- */

int
cgroup_make(const struct cgroups *c, const char *name, struct err *err)
{
	for (size_t i = 0; i < c->n; i++)
		if (mkdirat(c->h[i].parent, name, 0755) < 0) {
			int code = err_errno(err, "cgroup %s", name);

			(void)cgroup_remove(c, name);
			return code;
		}
	return 0;
}

unsigned
cgroup_remove(const struct cgroups *c, const char *name)
{
	unsigned left = 0;

	for (size_t i = 0; i < c->n; i++)
		if (unlinkat(c->h[i].parent, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
			left++;
	return left;
}

int
cgroup_open_v2(const struct cgroups *c, const char *name)
{
	for (size_t i = 0; i < c->n; i++)
		if (c->h[i].version == 2)
			return openat(c->h[i].parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return -1;
}

int
cgroup_open_entries(const struct cgroups *c, const char *name, int ret[CGROUP_HIERARCHIES],
	size_t *ret_n, struct err *err)
{
	char path[CGROUP_NAME + 16];
	size_t n = 0;

	(void)snprintf(path, sizeof(path), "%s/tasks", name);
	for (size_t i = 0; i < c->n; i++) {
		if (c->h[i].version != 1)
			continue;
		ret[n] = openat(c->h[i].parent, path, O_WRONLY | O_CLOEXEC);
		if (ret[n] < 0) {
			int code = err_errno(err, "cgroup file %s", path);

			while (n > 0)
				(void)close(ret[--n]); /* nothing was written */
			return code;
		}
		n++;
	}
	*ret_n = n;
	return 0;
}

static const char *
procs_path(const char *name, char room[CGROUP_NAME + 64])
{
	(void)snprintf(room, CGROUP_NAME + 64, "%s/cgroup.procs", name);
	return room;
}

unsigned
cgroup_processes(const struct cgroups *c, const char *name)
{
	char room[CGROUP_NAME + 64];
	unsigned most = 0;

	for (size_t i = 0; i < c->n; i++) {
		unsigned n = members_count(c->h[i].parent, procs_path(name, room));

		most = n > most ? n : most;
	}
	return most;
}

static void
group_kill(int dir, const char *name, int version)
{
	char path[CGROUP_NAME + 64];

	if (version == 1) {
		/* A frozen process takes no SIGKILL in version 1. */
		(void)snprintf(path, sizeof(path), "%s/freezer.state", name);
		(void)write_text(dir, path, "THAWED"); /* other hierarchies have no such file */
	} else {
		(void)snprintf(path, sizeof(path), "%s/cgroup.kill", name);
		if (write_text(dir, path, "1") == 0) /* Linux 5.14 */
			return;
	}
	members_kill(dir, procs_path(name, path));
}

void
cgroup_kill(const struct cgroups *c, const char *name)
{
	for (size_t i = 0; i < c->n; i++)
		group_kill(c->h[i].parent, name, c->h[i].version);
}

/* ---- what an earlier run left ---- */

int
cgroup_parent_path(
	const struct cgroups *c, size_t i, const char *tag, char *ret, size_t n, struct err *err)
{
	char link[64], name[CGROUP_NAME + 16];
	ssize_t r;

	parent_name(tag, name, sizeof(name));
	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", c->h[i].own);
	r = readlink(link, ret, n);
	if (r < 0)
		return err_errno(err, "%s", link);
	if ((size_t)r + strlen(name) + 2 > n)
		return err_set(err, -ENAMETOOLONG, "our control group has too long a path");
	if (r == 1)
		r = 0; /* "/" */
	(void)snprintf(ret + r, n - (size_t)r, "/%s", name);
	return 0;
}

/* 1 or 2, or 0: the directory is not part of a hierarchy. */
static int
version_of(int dir)
{
	struct statfs fs;

	if (fstatfs(dir, &fs) < 0)
		return 0;
	return fs.f_type == CGROUP2_SUPER_MAGIC ? 2 : fs.f_type == CGROUP_SUPER_MAGIC;
}

/* There is no such group: true if its hierarchy is mounted there, so that we would see it. */
static bool
hierarchy_seen(const char *path)
{
	auto_free char *up = strdup(path);
	char *cut;

	while (up != NULL && (cut = strrchr(up, '/')) != NULL && cut != up) {
		*cut = '\0';
		auto_fd int dir = open(up, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		if (dir >= 0)
			return version_of(dir) != 0;
		if (errno != ENOENT)
			return false;
	}
	return false;
}

/* The groups in it that are still there. */
static unsigned
children_sweep(int dir, int version)
{
	DIR *list = fdopendir(dir);
	struct dirent *entry;
	unsigned left = 0;

	if (list == NULL) {
		(void)close(dir); /* only read */
		return 1;
	}
	while ((entry = readdir(list)) != NULL) {
		if (entry->d_type != DT_DIR || entry->d_name[0] == '.')
			continue;
		if (strlen(entry->d_name) < CGROUP_NAME)
			group_kill(dir, entry->d_name, version);
		if (unlinkat(dir, entry->d_name, AT_REMOVEDIR) < 0)
			left++;
	}
	(void)closedir(list); /* only read */
	return left;
}

unsigned
cgroup_parent_sweep(const char *path)
{
	auto_fd int dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	auto_free char *host = malloc(strlen(path) + sizeof(".host"));
	int version = dir < 0 ? 0 : version_of(dir);
	unsigned left;

	if (dir < 0)
		return errno == ENOENT && hierarchy_seen(path) ? 0 : 1;
	if (version == 0 || host == NULL)
		return 1;
	left = children_sweep(take_fd(&dir), version);
	if (left == 0 && rmdir(path) < 0)
		left++;
	(void)snprintf(host, strlen(path) + sizeof(".host"), "%s.host", path);
	(void)rmdir(host); /* most have none */
	return left;
}

/* ---- limits and counters ---- */

int
cgroup_limit(const struct cgroups *c, const char *name, uint64_t memory_bytes, uint32_t pids,
	uint32_t cpu_milli, struct err *err)
{
	bool v2_cpu = hierarchy_of(c, DUTY_CPU)->version == 2;
	uint64_t quota = (uint64_t)cpu_milli * PERIOD_US / 1000;
	char cpu[64];
	int r = size_limit(c, name, memory_bytes, pids, err);

	(void)snprintf(cpu, sizeof(cpu), v2_cpu ? "%llu %d" : "%llu", (unsigned long long)quota,
		PERIOD_US);
	return r == 0 ? cgroup_write(c, name, KNOB_CPU_MAX, cpu, err) : r;
}

int
cgroup_socket_bytes(const struct cgroups *c, const char *name, uint64_t *ret)
{
	bool together = hierarchy_of(c, DUTY_MEMORY)->version == 2;

	return cgroup_read(c, name, together ? KNOB_MEMORY_MAX : KNOB_SOCKET_MAX, ret);
}

uint32_t
cgroup_cpu_milli(const struct cgroups *c, const char *name)
{
	uint64_t quota;

	if (cgroup_read(c, name, KNOB_CPU_MAX, &quota) < 0 || quota == UINT64_MAX)
		return 0;
	return (uint32_t)(quota * 1000 / PERIOD_US);
}

uint64_t
cgroup_cpu_us(const struct cgroups *c, const char *name)
{
	uint64_t used = 0;

	if (hierarchy_of(c, DUTY_ACCOUNT)->version == 2)
		return cgroup_read_key(c, name, KNOB_CPU_USED, "usage_usec", &used) < 0 ? 0 : used;
	return cgroup_read(c, name, KNOB_CPU_USED, &used) < 0 ? 0 : used / 1000;
}

int
cgroup_freeze(const struct cgroups *c, const char *name, bool frozen, struct err *err)
{
	bool v2 = hierarchy_of(c, DUTY_FREEZE)->version == 2;

	return cgroup_write(c, name, KNOB_FREEZE,
		v2 ? (frozen ? "1" : "0") : (frozen ? "FROZEN" : "THAWED"), err);
}

bool
cgroup_is_frozen(const struct cgroups *c, const char *name)
{
	char room[512];
	struct view text, value;

	if (read_text(c, name, KNOB_FROZEN, room, sizeof(room), &text) < 0)
		return false;
	if (hierarchy_of(c, DUTY_FREEZE)->version == 2)
		return text_key(text, "frozen", &value) && view_is(value, "1");
	return view_starts(text, "FROZEN");
}
