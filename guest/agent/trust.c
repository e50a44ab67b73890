/* SPDX-License-Identifier: Apache-2.0 */
/* See trust.h. Runs before anything hostile does, in a directory that is as new as the sandbox. */
#include "trust.h"

#include "agent.h"

#include "lib/base/fd.h"
#include "lib/base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/fsuid.h>
#include <sys/stat.h>

#define HERE     "/run/demilune"
#define TRUST_IN HERE "/trust/"
#define IMAGE    "/usr/share/demilune/"

static const char certificate_path[] = TRUST_IN "ca.crt", bundle_path[] = TRUST_IN "bundle.crt",
		  keystore_path[] = TRUST_IN "java.jks";
static const char image_roots[] = IMAGE "roots.crt", image_keystore[] = IMAGE "roots.jks";

const char *const trust_environment[TRUST_VARIABLES + 1] = {
#define TRUST(variable, file) #variable "=" TRUST_IN file,
#include "trust.def"
#undef TRUST
	NULL};

/* Whose the directory is: 0 inside has no right over files of others. */
static void
owner_become(void)
{
	struct stat st;

	if (stat(HERE, &st) == 0)
		(void)setfsuid(st.st_uid); /* has no error; what follows then has one */
}

static void
owner_leave(void)
{
	(void)setfsuid(0); /* back to what it was: always allowed */
}

void
trust_open(void)
{
	owner_become();
	/* What the image does not have leads nowhere, as it would without us. */
	if (mkdir(TRUST_IN, 0755) == 0 && (symlink(image_roots, bundle_path) < 0 ||
						  symlink(image_keystore, keystore_path) < 0))
		log_line("%s: %s", TRUST_IN, strerror(errno));
	owner_leave();
}

static int
file_make(const char *path, struct view text, struct err *err)
{
	auto_fd int fd = -1;

	if (unlink(path) < 0 && errno != ENOENT)
		return err_errno(err, "%s", path);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (fd < 0 || fchmod(fd, 0644) < 0)
		return err_errno(err, "%s", path);
	return fd_write_all(fd, text.p, text.n, err);
}

/* What the image trusts, behind the certificate. One without roots adds none. */
static int
roots_add(struct buf *b, struct err *err)
{
	auto_fd int fd = open(image_roots, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;
	uint8_t *room;
	size_t n;

	if (fd < 0 && errno == ENOENT)
		return 0;
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_errno(err, "%s", image_roots);
	if (!S_ISREG(st.st_mode) || st.st_size > AGENT_ROOTS_BYTES)
		return err_set(err, -EFBIG, "%s is no file, or too large", image_roots);
	room = buf_room(b, (size_t)st.st_size);
	if (room == NULL)
		return err_set(err, -ENOMEM, "no memory");
	if (fd_read_upto(fd, room, (size_t)st.st_size, &n, err) < 0)
		return err->code;
	buf_grew(b, n);
	return 0;
}

static int
files_make(const struct frame_trust *m, struct err *err)
{
	auto_buf struct buf bundle;

	buf_init(&bundle, AGENT_ROOTS_BYTES + 2 * FRAME_BODY_MAX);
	buf_add_view(&bundle, m->certificate);
	if (m->certificate.p[m->certificate.n - 1] != '\n')
		buf_add_byte(&bundle, '\n');
	if (m->system_roots && roots_add(&bundle, err) < 0)
		return err->code;
	if (buf_check(&bundle) < 0)
		return err_set(err, -ENOMEM, "no memory");
	if (file_make(certificate_path, m->certificate, err) < 0 ||
		file_make(bundle_path, buf_view(&bundle), err) < 0)
		return err->code;
	return file_make(keystore_path, m->keystore, err);
}

void
trust_take(struct agent *a, const struct frame_trust *m)
{
	struct err err = {0};
	int r;

	owner_become();
	r = files_make(m, &err);
	owner_leave();
	if (r < 0)
		log_exit(AGENT_NO_START, "%s", err.text);
	a->trusts = true;
}
