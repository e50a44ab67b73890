/* SPDX-License-Identifier: Apache-2.0 */
/* Secrets, mirrors and trust for the broker; see broker.h. Called by room.c. */
#include "supervisor/broker.h"

#include "lib/base/log.h"
#include "supervisor/limits.h"
#include "supervisor/start.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

/* ---- trust ---- */

int
broker_prepare(struct supervisor *sv, struct err *err)
{
	int fd = root_dir_open(sv->settings.trust_dir, err);

	if (fd == -ENOENT)
		log_line("there is no directory %s: nobody can approve anything until root makes "
			 "it and `demilune approver enrol` writes to it",
			sv->settings.trust_dir);
	else if (fd < 0)
		log_line("nobody can approve anything: %s", err->text);
	if (fd < 0)
		fd = fcntl(sv->empty, F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		return err_errno(err, "the empty directory");
	if (sv->trust >= 0)
		(void)close(sv->trust); /* only a directory */
	sv->trust = fd;
	return 0;
}

/* ---- secrets ---- */

static bool
name_ok(const char *name)
{
	size_t n = strspn(
		name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-");

	return n >= 1 && n < 64 && name[n] == '\0';
}

/*
 * The file, or -1 with the reason. A link could show a file of root that is no secret of ours to the broker, and a file that
 * others may read is a secret no more.
 */
static int
secret_open(int dir, const char *name, uint32_t broker_uid, const char **ret_why)
{
	auto_fd int fd = -1;
	struct stat st;

	if (!name_ok(name)) {
		*ret_why =
			"its name is not 1 to 63 of letters, digits, '.', '_' and '-': rename it";
		return -1;
	}
	/* Not blocking: the other end of a pipe is not waited for. */
	fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0) {
		*ret_why = errno == ELOOP ? "it is a symbolic link: put the file itself there"
					  : "it cannot be opened";
		return -1;
	}
	if (!S_ISREG(st.st_mode))
		*ret_why = "it is not a regular file: remove it";
	else if (st.st_uid != 0 && st.st_uid != broker_uid)
		*ret_why = "its owner is neither root nor the broker: chown it to root";
	else if ((st.st_mode & 077) != 0)
		*ret_why = "others may open it: chmod it to 0600, and count it as known";
	else
		return take_fd(&fd);
	return -1;
}

static int
visible(const struct dirent *e)
{
	return strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
}

static bool
secret_tell(struct supervisor *sv, struct member *broker, int dir, const char *name)
{
	struct msg_secret m = {0};
	auto_buf struct buf body;
	const char *why = NULL;
	auto_fd int fd = secret_open(dir, name, sv->settings.broker_uid, &why);

	if (fd < 0) {
		log_line("secret %s/%.100s is not used: %s", sv->settings.secrets_dir, name, why);
		return true;
	}
	(void)snprintf(m.name, sizeof(m.name), "%.63s", name);
	buf_init(&body, IPC_MAX);
	msg_secret_put(&body, &m);
	return member_tell(broker, MSG_SECRET, buf_view(&body), fd);
}

/* In the order of their names, so that it does not depend on the file system which ones are too many. */
static bool
secrets_tell(struct supervisor *sv, struct member *broker)
{
	struct err err = {0};
	auto_fd int dir = root_dir_open(sv->settings.secrets_dir, &err);
	struct dirent **names = NULL;
	bool sent = true;
	int n;

	if (dir == -ENOENT)
		return true; /* a host without secrets */
	if (dir < 0) {
		log_line("no secret is used: %s", err.text);
		return true;
	}
	n = scandirat(dir, ".", &names, visible, alphasort);
	if (n < 0)
		log_line("no secret is used: %s cannot be listed", sv->settings.secrets_dir);
	if (n > (int)LIMIT_SECRETS)
		log_line("%s has %d files: only the first %d by name are used",
			sv->settings.secrets_dir, n, (int)LIMIT_SECRETS);
	for (int i = 0; i < n; i++) {
		if (sent && i < (int)LIMIT_SECRETS)
			sent = secret_tell(sv, broker, dir, names[i]->d_name);
		free(names[i]);
	}
	free(names);
	return sent;
}

/* ---- mirrors ---- */

static bool
mirrors_tell(struct supervisor *sv, struct member *broker)
{
	for (size_t i = 0; i < ARRAY_LEN(sv->settings.mirrors); i++) {
		struct msg_mirror m = {0};
		auto_buf struct buf body;
		auto_fd int dir = -1;

		if (sv->settings.mirrors[i][0] == '\0')
			continue;
		memcpy(m.path, sv->settings.mirrors[i], sizeof(m.path));
		dir = open(m.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (dir < 0) {
			log_line("no copy of checkpoints goes to %s: make it a directory that uid "
				 "%u may write to",
				m.path, sv->settings.broker_uid);
			continue;
		}
		buf_init(&body, IPC_MAX);
		msg_mirror_put(&body, &m);
		if (!member_tell(broker, MSG_MIRROR, buf_view(&body), dir))
			return false;
	}
	return true;
}

void
broker_greet(struct supervisor *sv, struct member *broker)
{
	struct msg_broker_begin m = {0};
	auto_buf struct buf body;

	memcpy(m.origin, sv->settings.origin, sizeof(m.origin));
	buf_init(&body, IPC_MAX);
	msg_broker_begin_put(&body, &m);
	if (secrets_tell(sv, broker) && mirrors_tell(sv, broker))
		(void)member_tell(broker, MSG_BROKER_BEGIN, buf_view(&body),
			-1); /* one that does not read is started anew */
}
