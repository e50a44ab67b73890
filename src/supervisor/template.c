/* SPDX-License-Identifier: Apache-2.0 */
/* Templates; see template.h. Called by serve.c and sandbox.c. */
#include "supervisor/template.h"

#include "lib/base/fd.h"
#include "lib/base/hex.h"
#include "supervisor/image.h"
#include "supervisor/limits.h"
#include "supervisor/mount.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

void
templates_init(struct templates *all, struct ev_loop *loop, int stage)
{
	*all = (struct templates){.loop = loop, .dir = -1, .stage = stage};
	list_init(&all->list);
}

/* Sandboxes made from it keep their copies. */
static void
template_free(struct template *t)
{
	ev_io_stop(t->all->loop, &t->checked);
	if (t->pidfd >= 0) {
		(void)syscall(
			SYS_pidfd_send_signal, t->pidfd, SIGKILL, NULL, 0); /* it may have ended */
		(void)waitid(
			P_PIDFD, (id_t)t->pidfd, &(siginfo_t){0}, WEXITED); /* our child, killed */
		(void)close(take_fd(&t->pidfd));
	}
	if (t->image >= 0)
		(void)close(take_fd(&t->image)); /* only read */
	if (t->name[0] != '\0') {
		auto_fd int at = openat(t->all->stage, t->name, O_PATH | O_CLOEXEC);
		char path[64];

		(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", at);
		(void)umount2(path,
			MNT_DETACH); /* nothing more can be done; the namespace ends with us */
		(void)unlinkat(t->all->stage, t->name, AT_REMOVEDIR);
	}
	list_remove(&t->link);
	t->all->n--;
	free(t);
}

void
templates_done(struct templates *all)
{
	list_each (t, &all->list, struct template, link)
		template_free(t);
	if (all->dir >= 0)
		(void)close(take_fd(&all->dir)); /* only read */
}

static struct template *
find(struct templates *all, const uint8_t digest[SHA256_BYTES])
{
	list_each (t, &all->list, struct template, link)
		if (memcmp(t->digest, digest, SHA256_BYTES) == 0)
			return t;
	return NULL;
}

struct template *
template_find(struct templates *all, const uint8_t digest[SHA256_BYTES])
{
	struct template *t = find(all, digest);

	if (t == NULL || t->name[0] == '\0')
		return NULL;
	list_remove(&t->link);
	list_append(&all->list, &t->link);
	return t;
}

/* Mounts the checked image on the stage and reads the places in it. */
static int
template_mount(struct template *t, struct err *err)
{
	auto_fd int root = image_mount(t->image, err);
	char text[SHA256_TEXT], name[24];
	int r;

	if (root < 0)
		return root;
	r = places_read((const char(*)[PLACE_BYTES])t->wanted, PLACE_MAX, root, &t->places, err);
	if (r < 0)
		return r;
	hex_encode(t->digest, SHA256_BYTES, text);
	(void)snprintf(name, sizeof(name), "t-%.16s", text);
	if (mkdirat(t->all->stage, name, 0700) < 0 && errno != EEXIST)
		return err_errno(err, "directory for a template");
	r = mount_attach(root, t->all->stage, name, err);
	if (r < 0)
		return r;
	memcpy(t->name, name, sizeof(name));
	(void)close(take_fd(&t->image)); /* only read; the mount holds it */
	return 0;
}

static void
on_checked(struct ev_loop *loop, ev_io *w, int events)
{
	struct template *t = container_of(w, struct template, checked);
	struct templates *all = t->all;
	siginfo_t info = {0};
	struct err err = {0};
	int r;

	(void)events;
	ev_io_stop(loop, w);
	if (waitid(P_PIDFD, (id_t)t->pidfd, &info, WEXITED) < 0)
		info.si_status = -1;
	(void)close(take_fd(&t->pidfd)); /* waited for */
	if (info.si_code != CLD_EXITED || info.si_status != 0)
		r = err_set(&err, -EBADMSG,
			"the image is not what its name says: its digest is another");
	else
		r = template_mount(t, &err);
	all->on_done(all->owner, t, t->tag, r < 0 ? &err : NULL);
	if (r < 0)
		template_free(t);
}

/* In its own process: reads the image, with no rights at all. 0 = it is the one. */
static NORETURN void
check_main(int image, const uint8_t digest[SHA256_BYTES])
{
	struct err err;

	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || fd_arrange(&image, 1, 0, &err) < 0)
		_exit(2);
	_exit(image_is(0, digest) ? 0 : 1);
}

static int
check_start(struct template *t, struct err *err)
{
	pid_t pid = fork();

	if (pid == 0)
		check_main(t->image, t->digest);
	if (pid < 0)
		return err_errno(err, "a process to check an image");
	t->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (t->pidfd < 0) {
		int code = err_errno(err, "pidfd");

		(void)kill(pid, SIGKILL); /* our child */
		(void)waitpid(pid, NULL, 0);
		return code;
	}
	ev_io_init(&t->checked, on_checked, t->pidfd, EV_READ);
	ev_io_start(t->all->loop, &t->checked);
	return 0;
}

/* The places may be named anew for a template that is mounted: for sandboxes ordered from now on. */
static int
again(struct template *t, const char (*places)[PLACE_BYTES], uint64_t tag, struct err *err)
{
	auto_fd int root = -1;
	int r;

	if (t->name[0] == '\0')
		return err_set(err, -EALREADY, "the template is being prepared");
	root = openat(t->all->stage, t->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return err_errno(err, "the mounted template");
	r = places_read(places, PLACE_MAX, root, &t->places, err);
	if (r == 0)
		t->all->on_done(t->all->owner, t, tag, NULL);
	return r;
}

int
template_prepare(struct templates *all, const uint8_t digest[SHA256_BYTES],
	const char (*places)[PLACE_BYTES], uint64_t tag, struct err *err)
{
	struct template *t = find(all, digest);
	int r;

	if (t != NULL)
		return again(t, places, tag, err);
	if (all->n >= LIMIT_TEMPLATES) {
		struct template *oldest = container_of(all->list.next, struct template, link);

		if (oldest->name[0] == '\0')
			return err_set(err, -EBUSY, "too many templates are being prepared");
		template_free(oldest);
	}
	t = calloc(1, sizeof(*t));
	if (t == NULL)
		return err_set(err, -ENOMEM, "no memory for a template");
	t->all = all;
	t->tag = tag;
	t->pidfd = -1;
	ev_init(&t->checked, on_checked);
	memcpy(t->digest, digest, SHA256_BYTES);
	memcpy(t->wanted, places, sizeof(t->wanted));
	list_append(&all->list, &t->link);
	all->n++;
	t->image = image_open(all->dir, digest, &t->size_bytes, err);
	r = t->image < 0 ? t->image : check_start(t, err);
	if (r < 0)
		template_free(t);
	return r;
}

int
template_copy(const struct template *t, int userns, struct err *err)
{
	auto_fd int fd = mount_copy(t->all->stage, t->name, err);
	struct err why;

	if (fd < 0)
		return fd;
	/* A kernel that cannot (erofs: before 5.19) shows root's files as nobody's; facts say so. */
	return mount_change(fd, 0, userns, &why) == -ENOMEM ? err_set(err, why.code, "%s", why.text)
							    : take_fd(&fd);
}
