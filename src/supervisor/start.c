/* SPDX-License-Identifier: Apache-2.0 */
/* Directories, locks, and the host's side of all sandboxes; see start.h. Called by main.c. */
#include "supervisor/start.h"

#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/base/hex.h"
#include "lib/base/log.h"
#include "supervisor/agent.h"
#include "supervisor/dev.h"
#include "supervisor/limits.h"
#include "supervisor/mount.h"
#include "supervisor/text.h"
#include "supervisor/text.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>

/* ---- directories ---- */

enum { RUN_TRIES = 16 };

static int
opened_by_root(int fd, const char *path, struct err *err)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return err_errno(err, "%s", path);
	if (st.st_uid != 0 || (st.st_mode & 022) != 0)
		return err_set(err, -EPERM,
			"%s must belong to root, and nobody else may write to it", path);
	return 0;
}

int
root_dir_open(const char *path, struct err *err)
{
	auto_fd int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int r;

	if (fd < 0)
		return err_errno(err, "%s", path);
	r = opened_by_root(fd, path, err);
	return r < 0 ? r : take_fd(&fd);
}

/*
 * All missing parts of the path; the last one opened. It must be root's, and nobody else may write to it. *ret_made:
 * the last one was not there.
 */
static int
dir_make(const char *path, bool *ret_made, struct err *err)
{
	bool made = false;
	char part[256];
	int fd;

	for (size_t n = 1; n <= strlen(path); n++) {
		if (path[n] != '/' && path[n] != '\0')
			continue;
		must((size_t)snprintf(part, sizeof(part), "%.*s", (int)n, path) < sizeof(part));
		made = mkdir(part, 0755) == 0;
		if (!made && errno != EEXIST)
			return err_errno(err, "%s", part);
	}
	fd = root_dir_open(path, err);
	if (fd >= 0)
		*ret_made = made;
	return fd;
}

static int
subdir_make(int dir, const char *name, uint32_t uid, mode_t mode, struct err *err)
{
	auto_fd int fd = -1;

	if (mkdirat(dir, name, mode) < 0 && errno != EEXIST)
		return err_errno(err, "%s", name);
	fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fchown(fd, uid, uid) < 0 || fchmod(fd, mode) < 0)
		return err_errno(err, "%s", name);
	return take_fd(&fd);
}

/*
 * Held as long as the process lives. Whoever holds the lock of a run directory removes it when it ends (run_remove), so the file
 * that was opened here may have lost its name before it was locked, or the directory is gone: -ESTALE, to be tried
 * again from the directory on. A file that has the name while it is locked keeps it: only its holder removes it.
 */
static int
lock_take(int dir, const char *path, struct err *err)
{
	auto_fd int fd = openat(dir, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

	struct stat locked, named;

	if (fd < 0 && errno == ENOENT)
		return err_set(err, -ESTALE, "%s was removed", path);
	if (fd < 0)
		return err_errno(err, "%s/lock", path);
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return err_set(err, -EBUSY,
			"another supervisor uses %s: stop it, or give this one run_dir and "
			"state_dir of its own",
			path);
	if (fstat(fd, &locked) < 0)
		return err_errno(err, "%s/lock", path);
	if (fstatat(dir, "lock", &named, AT_SYMLINK_NOFOLLOW) < 0 ||
		named.st_ino != locked.st_ino || named.st_dev != locked.st_dev)
		return err_set(err, -ESTALE, "%s/lock was removed", path);
	return take_fd(&fd);
}

static int
run_take(struct supervisor *sv, struct err *err)
{
	const char *path = sv->settings.run_dir;
	int r = -ESTALE;

	for (int i = 0; r == -ESTALE && i < RUN_TRIES; i++) {
		auto_fd int run = dir_make(path, &sv->run_made, err);

		if (run == -ENOENT)
			continue; /* it went between two steps */
		if (run < 0)
			return run;
		r = lock_take(run, path, err);
		if (r >= 0) {
			sv->run_lock = r;
			sv->run = take_fd(&run);
		}
	}
	return r < 0 ? r : 0;
}

/*
 * The lock goes last of all, by its holder. The directory goes with it when it was made here: one that stood ready is its
 * maker's, and one that another supervisor uses already is not empty.
 */
static void
run_remove(struct supervisor *sv)
{
	(void)unlinkat(sv->run, "lock", 0);
	if (sv->run_made)
		(void)rmdir(sv->settings.run_dir);
}

/* Everybody may connect; the engine asks the kernel who it is. */
static int
local_listen(struct supervisor *sv, struct err *err)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	auto_fd int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return err_errno(err, "socket");
	if ((size_t)snprintf(at.sun_path, sizeof(at.sun_path), "%s/api.sock",
		    sv->settings.run_dir) >= sizeof(at.sun_path))
		return err_set(err, -ENAMETOOLONG, "%s is too long for the name of a socket",
			sv->settings.run_dir);
	(void)unlinkat(
		sv->run, "api.sock", 0); /* of a supervisor that was killed; we hold the lock */
	if (bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0 ||
		fchmodat(sv->run, "api.sock", 0666, 0) < 0 || listen(fd, 256) < 0)
		return err_errno(err, "%s", at.sun_path);
	sv->local = take_fd(&fd);
	return 0;
}

int
start_dirs(struct supervisor *sv, struct err *err)
{
	bool made;
	int engine, r;

	sv->state = dir_make(sv->settings.state_dir, &made, err);
	if (sv->state < 0)
		return sv->state;
	sv->lock = lock_take(sv->state, sv->settings.state_dir, err);
	if (sv->lock < 0)
		return sv->lock;
	r = run_take(sv, err);
	if (r < 0)
		return r;
	engine = subdir_make(sv->state, "engine", sv->settings.engine_uid, 0700, err);
	if (engine < 0)
		return engine;
	(void)close(engine); /* only its owner was wanted */
	sv->templates_dir = subdir_make(sv->state, "templates", 0, 0755, err);
	if (sv->templates_dir < 0)
		return sv->templates_dir;
	sv->broker_state = subdir_make(sv->state, "broker", sv->settings.broker_uid, 0700, err);
	if (sv->broker_state < 0)
		return sv->broker_state;
	sv->stage = subdir_make(sv->run, "stage", 0, 0700, err);
	if (sv->stage < 0)
		return sv->stage;
	sv->empty = subdir_make(sv->run, "empty", 0, 0755, err);
	if (sv->empty < 0)
		return sv->empty;
	r = local_listen(sv, err);
	return r;
}

/* ---- the host ---- */

static int
files_raise(const struct settings *s, struct err *err)
{
	uint64_t needed = (s->max_sandboxes + LIMIT_SPARES) * LIMIT_FILES_PER_SANDBOX + 192;
	struct rlimit l;

	if (getrlimit(RLIMIT_NOFILE, &l) < 0)
		return err_errno(err, "limit of open files");
	if (l.rlim_max < needed) {
		struct rlimit more = {(rlim_t)LIMIT_FILES, (rlim_t)LIMIT_FILES};

		if (setrlimit(RLIMIT_NOFILE, &more) < 0)
			return err_set(err, -EMFILE,
				"%u sandboxes need %llu open files, the limit is %llu: raise it, "
				"or lower limits.sandboxes",
				s->max_sandboxes, (unsigned long long)needed,
				(unsigned long long)l.rlim_max);
		return 0;
	}
	l.rlim_cur = l.rlim_max < LIMIT_FILES ? l.rlim_max : LIMIT_FILES;
	return setrlimit(RLIMIT_NOFILE, &l) < 0 ? err_errno(err, "limit of open files") : 0;
}

/*
 * A program that crashes under a limit of 0 starts the host's handler where core_pattern is a pipe; under 1 it does not
 * (lib/jail/kernel.c). Raising a hard limit needs a right that we are about to give up.
 */
static int
core_raise(struct err *err)
{
	const struct rlimit one = {1, 1};
	struct view text;
	struct rlimit l;
	char room[512];

	if (getrlimit(RLIMIT_CORE, &l) < 0)
		return err_errno(err, "limit of core dumps");
	if (l.rlim_max != 0 || setrlimit(RLIMIT_CORE, &one) == 0)
		return 0;
	if (text_file(AT_FDCWD, "/proc/sys/kernel/core_pattern", room, sizeof(room), &text) < 0 ||
		view_starts(text, "|"))
		return err_set(err, -EPERM,
			"the hard limit of core dumps is 0 and cannot be raised, and "
			"kernel.core_pattern is a program: a crash in a sandbox would start it; "
			"start with a limit of 1");
	return 0;
}

/* Where sandboxes put themselves together. */
static const char *const stage_dirs[] = {"root", "dev", "proc", "vol", "tree"};

/* Mounts of ours are seen by nobody else and end with us; those of the host still arrive. */
static int
stage_make(struct supervisor *sv, struct err *err)
{
	auto_fd int again = -1;
	char path[sizeof(sv->settings.run_dir) + 8];
	int r;

	if (unshare(CLONE_NEWNS) < 0)
		return err_errno(err, "a mount namespace of our own");
	r = mount_propagation(MS_SLAVE, err);
	if (r < 0)
		return r;
	/* By name: the descriptor that we have is of a mount of the host's namespace. */
	(void)snprintf(path, sizeof(path), "%s/stage", sv->settings.run_dir);
	again = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (again < 0)
		return err_errno(err, "stage");
	for (size_t i = 0; i < ARRAY_LEN(stage_dirs); i++)
		if (mkdirat(again, stage_dirs[i], 0700) < 0 && errno != EEXIST)
			return err_errno(err, "stage");
	(void)close(sv->stage); /* only a directory */
	sv->stage = take_fd(&again);
	return dev_make(sv->stage, "tree", err);
}

static void
pause_ms(long ms)
{
	const struct timespec t = {.tv_nsec = ms * 1000000};

	(void)nanosleep(&t, NULL); /* shorter does no harm */
}

/* One look at every parent; those of which nothing is left are forgotten. The number of groups still there. */
static unsigned
parents_sweep(struct journal_held *h)
{
	unsigned left = 0;
	size_t n = 0;

	for (size_t i = 0; i < h->nparents; i++) {
		unsigned here = cgroup_parent_sweep(h->parents[i]);

		left += here;
		if (here != 0)
			h->parents[n++] = h->parents[i];
		else
			free(take_ptr(h->parents[i]));
	}
	h->nparents = n;
	return left;
}

/*
 * Ends what the journal of an earlier run names, and notes it for the engine; *held is empty when nothing is left.
 * Nothing outlives the kernel that ran it: after a start of the machine there is nothing to look for.
 */
static void
reconcile(struct supervisor *sv, struct journal_held *held, const char *boot)
{
	uint64_t began = clock_mono_us();
	bool same = strcmp(held->boot, boot) == 0;
	unsigned left = same ? parents_sweep(held) : 0;

	while (left != 0 && clock_mono_us() - began < LIMIT_RECONCILE_MS * 1000) {
		pause_ms(2);
		left = parents_sweep(held);
	}
	for (size_t i = 0; i < held->n; i++) {
		const struct journal_entry *e = &held->entries[i];

		if (!e->named)
			continue;
		sv->leftovers[sv->nleftovers++] = (struct leftover){.sandbox = e->sandbox,
			.task = e->task,
			.proof = {.cgroups = left > UINT16_MAX ? UINT16_MAX : (uint16_t)left,
				.journal = left != 0,
				.teardown_us = (uint32_t)(clock_mono_us() - began)}};
	}
	if (held->n != 0)
		log_line("%zu sandboxes and spares of an earlier run were taken down, %u control "
			 "groups are left",
			held->n, left);
	if (left == 0)
		journal_held_done(held);
}

static int
boot_read(char *ret, size_t n, struct err *err)
{
	char room[64];
	struct view text, line;

	if (text_file(AT_FDCWD, "/proc/sys/kernel/random/boot_id", room, sizeof(room), &text) < 0 ||
		!text_line(&text, &line) || line.n == 0 || line.n >= n)
		return err_set(err, -EIO, "the boot id of the kernel cannot be read");
	(void)snprintf(ret, n, "%.*s", VIEW_ARGS(line));
	return 0;
}

/*
 * Where something is left, its entries and the paths of its parents stay in the journal and its uid ranges stay taken,
 * so that the next start finds it again.
 */
static int
journal_start(struct supervisor *sv, struct err *err)
{
	struct journal_held held = {0};
	char boot[JOURNAL_BOOT], path[JOURNAL_PATH + 1];
	int r = boot_read(boot, sizeof(boot), err);

	if (r == 0)
		r = journal_read(sv->state, &held, err);
	if (r < 0)
		return r;
	sv->leftovers = calloc(held.n + 1, sizeof(*sv->leftovers));
	if (sv->leftovers == NULL)
		r = err_set(err, -ENOMEM, "no memory");
	if (r == 0 && held.boot[0] != '\0')
		reconcile(sv, &held, boot);
	for (size_t i = 0; i < held.n; i++)
		if (held.entries[i].slot < sv->slots.n)
			sv->slots.used[held.entries[i].slot] = 1;
	(void)snprintf(held.boot, sizeof(held.boot), "%s", boot);
	for (size_t i = 0; r == 0 && i < sv->cgroups.n; i++) {
		r = cgroup_parent_path(&sv->cgroups, i, sv->tag, path, sizeof(path), err);
		if (r == 0)
			r = journal_held_parent(&held, path, err);
	}
	if (r == 0)
		r = journal_begin(&sv->journal, sv->state, &held, err);
	journal_held_done(&held);
	return r;
}

int
start_host(struct supervisor *sv, struct err *err)
{
	const struct settings *s = &sv->settings;
	int r = budget_find(&sv->settings, &sv->sandboxes.budget, err);

	if (r == 0)
		r = files_raise(s, err);
	if (r == 0)
		r = core_raise(err);
	if (r == 0)
		r = stage_make(sv, err);
	if (r == 0)
		r = cgroups_find(&sv->cgroups, (enum cgroup_mode)s->cgroup_mode, err);
	if (r == 0)
		r = slots_init(&sv->slots, s->sandbox_uid_base, s->sandbox_uid_slots, err);
	if (r == 0)
		r = journal_start(sv, err);
	if (r == 0)
		r = cgroups_begin(&sv->cgroups, sv->tag,
			s->max_memory_bytes + LIMIT_SPARES * LIMIT_SPARE_MEMORY,
			s->max_pids + (uint32_t)LIMIT_SPARES, err);
	if (r < 0)
		return r;
	sv->sandboxes.agent = agent_load(sv->programs.path[PROGRAM_AGENT], err);
	return sv->sandboxes.agent < 0 ? sv->sandboxes.agent : 0;
}

/* ---- the end ---- */

static void
stage_remove(struct supervisor *sv)
{
	char path[64];
	auto_fd int tree = openat(sv->stage, "tree", O_PATH | O_CLOEXEC);

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", tree);
	(void)umount2(path, MNT_DETACH); /* it may never have been mounted */
	for (size_t i = 0; i < ARRAY_LEN(stage_dirs); i++)
		(void)unlinkat(sv->stage, stage_dirs[i], AT_REMOVEDIR);
	(void)unlinkat(sv->run, "stage", AT_REMOVEDIR);
}

void
start_undo(struct supervisor *sv)
{
	if (sv->cgroups.n != 0)
		cgroups_end(&sv->cgroups);
	journal_end(&sv->journal);
	slots_done(&sv->slots);
	free(take_ptr(sv->leftovers));
	fd_close_kept(&sv->sandboxes.agent);
	if (sv->stage >= 0)
		stage_remove(sv);
	if (sv->local >= 0)
		(void)unlinkat(sv->run, "api.sock", 0);
	if (sv->empty >= 0)
		(void)unlinkat(sv->run, "empty", AT_REMOVEDIR);
	if (sv->run_lock >= 0)
		run_remove(sv);
	/* The state directory's lock stays, as what it guards does. */
	fd_close_kept(&sv->local);
	fd_close_kept(&sv->stage);
	fd_close_kept(&sv->empty);
	fd_close_kept(&sv->trust);
	fd_close_kept(&sv->broker_state);
	fd_close_kept(&sv->run_lock);
	fd_close_kept(&sv->run);
	fd_close_kept(&sv->lock);
	fd_close_kept(&sv->state);
}
