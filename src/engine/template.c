/* SPDX-License-Identifier: Apache-2.0 */
/* Templates; see template.h. */
#include "engine/template.h"

#include "engine/caller.h"
#include "engine/create.h"
#include "engine/limits.h"
#include "lib/base/fd.h"
#include "lib/base/hex.h"
#include "lib/base/log.h"
#include "lib/base/name.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ENV_BYTES = 8192, STRINGS_BYTES = 1024 };

static struct template *
template_new(void)
{
	struct template *t = calloc(1, sizeof(*t));

	if (t == NULL)
		return NULL;
	buf_init(&t->aliases, STRINGS_BYTES);
	buf_init(&t->places, STRINGS_BYTES);
	buf_init(&t->env, ENV_BYTES);
	list_init(&t->link);
	return t;
}

void
template_free(struct template *t)
{
	if (t == NULL)
		return;
	list_remove(&t->link);
	buf_done(&t->aliases);
	buf_done(&t->places);
	buf_done(&t->env);
	free(t);
}

static void
template_cleanup(struct template **t)
{
	template_free(*t);
}
#define auto_template __attribute__((cleanup(template_cleanup)))

struct template *
template_by_digest(struct engine *e, const uint8_t digest[static 32])
{
	list_each (t, &e->templates, struct template, link)
		if (memcmp(t->digest, digest, 32) == 0)
			return t;
	return NULL;
}

/* What who asked for a template that is not there can do next. */
#define TEMPLATE_NEXT                                                                         \
	"`demilune template list` (GET /v1/templates) has what there is, `demilune template " \
	"build` on the host makes more"

static struct template *
by_name(struct engine *e, struct view name)
{
	list_each (t, &e->templates, struct template, link) {
		struct view left = buf_view(&t->aliases);

		if (view_is(name, t->name))
			return t;
		while (left.n > 0) {
			size_t n = strlen((const char *)left.p);

			if (view_eq(name, view_of(left.p, n)))
				return t;
			left = view_skip(left, n + 1);
		}
	}
	return NULL;
}

void
template_prepare(struct engine *e, struct template *t)
{
	struct msg_template_prepare m = {0};
	struct view left = buf_view(&t->places);
	struct buf b;

	memcpy(m.template, t->digest, 32);
	for (size_t i = 0; left.n > 0 && i < ARRAY_LEN(m.places); i++) {
		size_t n = strlen((const char *)left.p);

		must(n < sizeof(m.places[i]));
		memcpy(m.places[i], left.p, n);
		left = view_skip(left, n + 1);
	}
	buf_init(&b, IPC_MAX);
	msg_template_prepare_put(&b, &m);
	must(buf_check(&b) == 0);
	ipc_peer_send(e->supervisor, MSG_TEMPLATE_PREPARE, 0, buf_view(&b), NULL, 0);
	buf_done(&b);
	t->state = TEMPLATE_ASKED;
}

/* ---- the index ---- */

/* The digest in index/<name>. */
static int
read_index(int index, const char *name, char ret[SHA256_TEXT], struct err *err)
{
	auto_fd int fd = openat(index, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	char line[SHA256_TEXT + 1];
	uint8_t digest[32];
	size_t n = 0;

	if (fd < 0)
		return err_errno(err, "open");
	if (fd_read_upto(fd, line, sizeof(line), &n, err) < 0)
		return err->code;
	if (n != SHA256_TEXT || line[n - 1] != '\n' ||
		hex_decode(view_of(line, n - 1), digest, 32) < 0)
		return err_set(err, -EUCLEAN, "it holds no digest");
	memcpy(ret, line, n - 1);
	ret[n - 1] = '\0';
	return 0;
}

static int
read_record(struct engine *e, const char *digest, struct template *t, struct err *err)
{
	char name[SHA256_TEXT + 8];
	uint8_t *room;
	auto_buf struct buf b;
	struct stat st;
	size_t n = 0;

	(void)snprintf(name, sizeof(name), "%s.json", digest);
	auto_fd int fd = openat(e->templates_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	buf_init(&b, LIMIT_TEMPLATE_RECORD);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_errno(err, "open the record");
	if (st.st_size <= 0 || (uint64_t)st.st_size >= LIMIT_TEMPLATE_RECORD)
		return err_set(err, -E2BIG, "a record of %lld bytes", (long long)st.st_size);
	room = buf_room(&b, (size_t)st.st_size);
	if (room == NULL)
		return err_set(err, -ENOMEM, "no memory");
	if (fd_read_upto(fd, room, (size_t)st.st_size, &n, err) < 0)
		return err->code;
	buf_grew(&b, n);
	t->created_ms = (uint64_t)st.st_mtim.tv_sec * 1000;
	return template_parse(buf_view(&b), t, err);
}

/* One name of the index: known already, or read and asked for. */
static int
take_name(struct engine *e, int index, const char *name, struct err *err)
{
	char digest[SHA256_TEXT], own[SHA256_TEXT];
	auto_template struct template *t = NULL;
	struct template *old = by_name(e, view_str(name));
	int r = read_index(index, name, digest, err);

	if (r < 0)
		return r;
	if (old != NULL && strcmp(old->name, name) == 0) {
		hex_encode(old->digest, 32, own);
		if (strcmp(own, digest) == 0) {
			old->seen = true;
			buf_clear(&old->aliases);
			return 0;
		}
	}
	t = template_new();
	if (t == NULL)
		return err_set(err, -ENOMEM, "no memory");
	r = read_record(e, digest, t, err);
	if (r < 0)
		return r;
	hex_encode(t->digest, 32, own);
	if (strcmp(own, digest) != 0)
		return err_set(err, -EUCLEAN, "the record is of another image");
	(void)snprintf(t->name, sizeof(t->name), "%.*s", NAME_MAX_BYTES, name);
	t->seen = true;
	list_append(&e->templates, &t->link);
	if (e->ready)
		template_prepare(e, t);
	(void)take_ptr(t); /* the list has it */
	return 0;
}

static void
take_alias(struct engine *e, int index, const char *alias)
{
	char name[NAME_MAX_BYTES + 1];
	ssize_t n = readlinkat(index, alias, name, sizeof(name));
	struct template *t = n <= 0 ? NULL : by_name(e, view_of(name, (size_t)n));

	if (t == NULL)
		return; /* its template was removed or refused */
	buf_add_str(&t->aliases, alias);
	buf_add_byte(&t->aliases, 0);
}

/* Names first, so that the aliases find them. */
static void
take_entries(struct engine *e, DIR *dir, bool aliases)
{
	unsigned n = 0;

	rewinddir(dir);
	for (struct dirent *d = readdir(dir); d != NULL && n < LIMIT_TEMPLATES; d = readdir(dir)) {
		struct err err = {0};

		if (!name_ok(view_str(d->d_name)) || (d->d_type == DT_LNK) != aliases)
			continue;
		n++;
		if (aliases)
			take_alias(e, dirfd(dir), d->d_name);
		else if (take_name(e, dirfd(dir), d->d_name, &err) < 0)
			log_line("template %s is left out: %s", d->d_name, err.text);
	}
}

void
template_scan(struct engine *e)
{
	struct stat st;
	DIR *dir;
	int fd;

	if (e->templates_fd < 0)
		e->templates_fd = openat(
			e->state_fd, "templates", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	fd = e->templates_fd < 0
		     ? -1
		     : openat(e->templates_fd, "index", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return; /* nothing was built yet */
	if (fstat(fd, &st) < 0 || (dir = fdopendir(fd)) == NULL) {
		(void)close(fd); /* tried again at the next request */
		return;
	}
	e->index_changed = st.st_mtim;
	list_each (t, &e->templates, struct template, link)
		t->seen = false;
	take_entries(e, dir, false);
	/* Gone or replaced: live sandboxes keep their digest, they do not need the entry. */
	list_each (t, &e->templates, struct template, link)
		if (!t->seen)
			template_free(t);
	take_entries(e, dir, true);
	(void)closedir(dir); /* it was only read */
}

void
template_prepare_all(struct engine *e)
{
	list_each (t, &e->templates, struct template, link)
		if (t->state == TEMPLATE_KNOWN)
			template_prepare(e, t);
}

static bool
index_changed(struct engine *e)
{
	struct stat st;

	if (e->templates_fd < 0)
		return true;
	return fstatat(e->templates_fd, "index", &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       (st.st_mtim.tv_sec != e->index_changed.tv_sec ||
		       st.st_mtim.tv_nsec != e->index_changed.tv_nsec);
}

static int
look_up(struct engine *e, struct view name, struct template **ret, struct err *err)
{
	struct template *t;

	if (!name_ok(name))
		return REFUSE(err, BAD_REQUEST, "a template is a name of 1 to 63 of a-z 0-9 . _ -");
	if (index_changed(e))
		template_scan(e);
	t = by_name(e, name);
	if (t == NULL)
		return REFUSE(err, BAD_REQUEST,
			"%.*s is not in the template catalog; " TEMPLATE_NEXT, VIEW_ARGS(name));
	*ret = t;
	return 0;
}

int
template_find(struct engine *e, struct view asked, struct template **ret, struct err *err)
{
	struct template *t;

	/* Who names none gets the one that ./run bakes. */
	if (look_up(e, asked.n != 0 ? asked : view_str("python"), &t, err) < 0)
		return err->code;
	if (t->state == TEMPLATE_BROKEN) {
		template_prepare(e, t); /* the next one to ask may be luckier */
		return REFUSE(
			err, SPAWN, "the template %s cannot be used: %.120s", t->name, t->fault);
	}
	*ret = t;
	return 0;
}

int
template_named(struct engine *e, struct view name, char ret[static 64], struct err *err)
{
	struct template *t;

	if (look_up(e, name, &t, err) < 0)
		return err->code;
	memcpy(ret, t->name, sizeof(t->name));
	return 0;
}

/* ---- messages ---- */

int
on_template_ready(struct engine *e, const struct msg_template_ready *m, struct err *err)
{
	struct template *t = template_by_digest(e, m->template);

	(void)err;
	list_each (each, &e->templates, struct template, link)
		if (memcmp(each->digest, m->template, 32) == 0)
			each->state = TEMPLATE_MOUNTED;
	if (t != NULL)
		create_template_done(e, t);
	return 0;
}

int
on_template_failed(struct engine *e, const struct msg_template_failed *m, struct err *err)
{
	struct template *t = template_by_digest(e, m->template);

	(void)err;
	log_line("template %s: %s", t != NULL ? t->name : "?", m->text);
	list_each (each, &e->templates, struct template, link) {
		if (memcmp(each->digest, m->template, 32) != 0)
			continue;
		each->state = TEMPLATE_BROKEN;
		memcpy(each->fault, m->text, sizeof(each->fault));
	}
	if (t != NULL)
		create_template_done(e, t);
	return 0;
}

static void
send_row(struct engine *e, struct reply to, const struct template *t)
{
	struct msg_template_row row = {.name = view_str(t->name),
		.size_bytes = t->size_bytes,
		.created_ms = t->created_ms,
		.description = view_str(t->description),
		.aliases = buf_view(&t->aliases),
		.places = buf_view(&t->places),
		.mounted = t->state == TEMPLATE_MOUNTED};

	memcpy(row.digest, t->digest, 32);
	REPLY(e, to, TEMPLATE_ROW, template_row, row);
}

int
on_template_list(
	struct engine *e, struct reply to, const struct msg_template_list *m, struct err *err)
{
	struct principal p;
	int r = caller_find(e, &m->caller, &p, err);

	if (r < 0)
		return r;
	if (index_changed(e))
		template_scan(e);
	list_each (t, &e->templates, struct template, link)
		if (p.template[0] == '\0' || strcmp(p.template, t->name) == 0)
			send_row(e, to, t);
	REPLY(e, to, END, end, {.more = false});
	return 0;
}

int
on_template_get(
	struct engine *e, struct reply to, const struct msg_template_get *m, struct err *err)
{
	struct principal p;
	struct template *t;
	int r = caller_find(e, &m->caller, &p, err);

	if (r < 0)
		return r;
	if (index_changed(e))
		template_scan(e);
	t = name_ok(m->name) ? by_name(e, m->name) : NULL;
	if (t == NULL || (p.template[0] != '\0' && strcmp(p.template, t->name) != 0))
		return REFUSE(err, NOT_FOUND, "no such template; " TEMPLATE_NEXT);
	send_row(e, to, t);
	return 0;
}
