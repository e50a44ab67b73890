/* SPDX-License-Identifier: Apache-2.0 */
/* The journal; see journal.h. Its reader sees only a file that root alone can write, and still believes nothing. */
#include "supervisor/journal.h"

#include "lib/base/buf.h"
#include "lib/base/fd.h"
#include "lib/base/log.h"
#include "lib/base/num.h"
#include "supervisor/limits.h"
#include "supervisor/text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#define FILE_NAME "journal"
#define FILE_NEW  "journal.new"
#define HEAD      "demilune-journal 2 "
#define PARENT    "demilune-"

enum { CHUNK_BYTES = 2 * JOURNAL_LINE };

/* ---- reading ---- */

static struct journal_entry *
entry_find(struct journal_held *h, struct view name)
{
	for (size_t i = 0; i < h->n; i++)
		if (view_is(name, h->entries[i].name))
			return &h->entries[i];
	return NULL;
}

/* Room for one more entry. */
static int
entry_room(struct journal_held *h)
{
	struct journal_entry *more;

	if (h->n == LIMIT_JOURNAL_ENTRIES)
		return -E2BIG;
	more = reallocarray(h->entries, h->n + 1, sizeof(*more));
	if (more == NULL)
		return -ENOMEM;
	h->entries = more;
	return 0;
}

static bool
token_ok(struct view v, size_t max)
{
	if (v.n == 0 || v.n >= max)
		return false;
	for (size_t i = 0; i < v.n; i++)
		if (!((v.p[i] >= '0' && v.p[i] <= '9') || (v.p[i] >= 'a' && v.p[i] <= 'z') ||
			    v.p[i] == '-'))
			return false;
	return true;
}

/* Splits at single blanks; false unless there are exactly n words. */
static bool
words(struct view line, struct view *ret, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const uint8_t *blank = line.n == 0 ? NULL : memchr(line.p, ' ', line.n);
		bool last = i == n - 1;

		if (last != (blank == NULL))
			return false;
		ret[i] = last ? line : view_of(line.p, (size_t)(blank - line.p));
		line = view_skip(line, ret[i].n + 1);
	}
	return true;
}

static int
line_add(struct journal_held *h, struct view line)
{
	struct view w[3];
	uint64_t slot;
	struct journal_entry *e;
	int r;

	if (!words(line, w, 3) || !token_ok(w[1], JOURNAL_NAME) ||
		num_u64(w[2], UINT32_MAX, &slot) < 0 || entry_find(h, w[1]) != NULL)
		return -EBADMSG;
	r = entry_room(h);
	if (r < 0)
		return r;
	e = &h->entries[h->n++];
	*e = (struct journal_entry){.slot = (uint32_t)slot};
	memcpy(e->name, w[1].p, w[1].n);
	return 0;
}

static int
line_name(struct journal_held *h, struct view line)
{
	struct view w[4];
	struct journal_entry *e;

	if (!words(line, w, 4))
		return -EBADMSG;
	e = entry_find(h, w[1]);
	if (e == NULL || e->named || id_parse(w[2], ID_SANDBOX, &e->sandbox) < 0 ||
		id_parse(w[3], ID_TASK, &e->task) < 0)
		return -EBADMSG;
	e->named = true;
	return 0;
}

static int
line_drop(struct journal_held *h, struct view line)
{
	struct view w[2];
	struct journal_entry *e;

	if (!words(line, w, 2))
		return -EBADMSG;
	e = entry_find(h, w[1]);
	if (e == NULL)
		return -EBADMSG;
	*e = h->entries[--h->n];
	return 0;
}

/* A plain absolute path whose last part is a name that we give. */
static bool
parent_ok(struct view path)
{
	size_t last = 0;

	if (path.n == 0 || path.n > JOURNAL_PATH || path.p[0] != '/')
		return false;
	for (size_t i = 0; i < path.n; i++) {
		struct view rest = view_skip(path, i);

		if (path.p[i] < ' ' || path.p[i] == 127)
			return false;
		if (path.p[i] != '/')
			continue;
		if (rest.n == 1 || view_starts(rest, "//") || view_starts(rest, "/./") ||
			view_starts(rest, "/../"))
			return false;
		last = i + 1;
	}
	return view_starts(view_skip(path, last), PARENT);
}

static int
line_parent(struct journal_held *h, struct view path)
{
	char **more;

	if (!parent_ok(path))
		return -EBADMSG;
	if (h->nparents == LIMIT_JOURNAL_PARENTS)
		return -E2BIG;
	more = reallocarray(h->parents, h->nparents + 1, sizeof(*more));
	if (more == NULL)
		return -ENOMEM;
	h->parents = more;
	more[h->nparents] = strndup((const char *)path.p, path.n);
	if (more[h->nparents] == NULL)
		return -ENOMEM;
	h->nparents++;
	return 0;
}

static int
line_head(struct journal_held *h, struct view line)
{
	struct view boot = view_skip(line, strlen(HEAD));

	if (!view_starts(line, HEAD) || !token_ok(boot, JOURNAL_BOOT))
		return -EBADMSG;
	memcpy(h->boot, boot.p, boot.n);
	return 0;
}

static int
line_read(struct journal_held *h, struct view line)
{
	if (h->boot[0] == '\0')
		return line_head(h, line);
	if (view_starts(line, "+ "))
		return line_add(h, line);
	if (view_starts(line, "= "))
		return line_name(h, line);
	if (view_starts(line, "@ "))
		return line_parent(h, view_skip(line, 2));
	return view_starts(line, "- ") ? line_drop(h, line) : -EBADMSG;
}

/* The whole lines at the front of *text, which becomes what is behind them. */
static int
lines_read(struct journal_held *h, struct view *text, size_t *number, struct err *err)
{
	struct view line;
	int r = 0;

	while (text->n != 0 && memchr(text->p, '\n', text->n) != NULL && r == 0) {
		(void)text_line(text, &line); /* there is one */
		(*number)++;
		r = line_read(h, line);
	}
	return r == 0 ? 0
		      : err_set(err, r,
				"line %zu of the journal cannot have been written by a supervisor",
				*number);
}

int
journal_parse(struct view text, struct journal_held *ret, struct err *err)
{
	struct journal_held h = {0};
	size_t number = 0;
	int r = lines_read(&h, &text, &number, err); /* behind them: cut when its writer died */

	if (r < 0)
		journal_held_done(&h);
	else
		*ret = h;
	return r;
}

void
journal_held_done(struct journal_held *h)
{
	for (size_t i = 0; i < h->nparents; i++)
		free(h->parents[i]);
	free(take_ptr(h->parents));
	free(take_ptr(h->entries));
	*h = (struct journal_held){0};
}

int
journal_held_parent(struct journal_held *h, const char *path, struct err *err)
{
	int r = line_parent(h, view_str(path));

	return r < 0 ? err_set(err, r, "the journal cannot name the control group %s", path) : 0;
}

/* A file of any length in little memory: what lives is what counts. */
static int
stream_read(int fd, struct journal_held *h, struct err *err)
{
	auto_free char *room = malloc(CHUNK_BYTES);
	size_t n = 0, number = 0;

	if (room == NULL)
		return err_set(err, -ENOMEM, "no memory for the journal");
	for (;;) {
		ssize_t got = read(fd, room + n, CHUNK_BYTES - n);
		struct view text;
		int r;

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return err_errno(err, "the journal");
		if (got == 0)
			return 0; /* what is left was cut when its writer died */
		text = view_of(room, n + (size_t)got);
		r = lines_read(h, &text, &number, err);
		if (r < 0)
			return r;
		if (text.n > JOURNAL_LINE)
			return err_set(err, -EBADMSG,
				"line %zu of the journal is longer than a supervisor writes",
				number + 1);
		n = text.n;
		memmove(room, text.p, n);
	}
}

int
journal_read(int dir, struct journal_held *ret, struct err *err)
{
	auto_fd int fd = openat(dir, FILE_NAME, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	struct journal_held h = {0};
	int r;

	if (fd < 0 && errno == ENOENT) {
		*ret = h;
		return 0;
	}
	if (fd < 0)
		return err_errno(err, "the journal");
	r = stream_read(fd, &h, err);
	if (r < 0)
		journal_held_done(&h);
	else
		*ret = h;
	return r;
}

/* ---- writing ---- */

static void
entry_put(struct buf *b, const struct journal_entry *e)
{
	char sandbox[ID_TEXT], task[ID_TEXT];

	buf_addf(b, "+ %s %u\n", e->name, e->slot);
	if (!e->named)
		return;
	id_text(&e->sandbox, ID_SANDBOX, sandbox);
	id_text(&e->task, ID_TASK, task);
	buf_addf(b, "= %s %s %s\n", e->name, sandbox, task);
}

/* A new file with what lives, in place of the old one; on failure the old one stays in use. */
static int
file_renew(struct journal *j, struct err *err)
{
	auto_fd int fd = openat(j->dir, FILE_NEW,
		O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_APPEND | O_CLOEXEC, 0600);
	auto_buf struct buf b;
	int r;

	buf_init(&b, LIMIT_JOURNAL_RENEW_BYTES);
	buf_addf(&b, HEAD "%s\n", j->held.boot);
	for (size_t i = 0; i < j->held.nparents; i++)
		buf_addf(&b, "@ %s\n", j->held.parents[i]);
	for (size_t i = 0; i < j->held.n; i++)
		entry_put(&b, &j->held.entries[i]);
	if (fd < 0)
		return err_errno(err, "the journal");
	if (buf_check(&b) < 0)
		return err_set(err, -ENOMEM, "no memory for the journal");
	r = fd_write_all(fd, b.p, b.n, err);
	if (r < 0)
		return err_context(err, "the journal");
	if (renameat(j->dir, FILE_NEW, j->dir, FILE_NAME) < 0)
		return err_errno(err, "the journal");
	if (j->fd >= 0)
		(void)close(take_fd(&j->fd)); /* every line was written when it was added */
	j->fd = take_fd(&fd);
	j->lines = 0;
	return 0;
}

int
journal_begin(struct journal *j, int dir, struct journal_held *held, struct err *err)
{
	int r;

	*j = (struct journal){.dir = dir, .fd = -1, .held = *held};
	*held = (struct journal_held){0};
	r = file_renew(j, err);
	if (r < 0)
		journal_held_done(&j->held);
	return r;
}

/* One write: a line is there whole or was cut at the end of the file. */
static int
line_write(struct journal *j, const char *text, struct err *err)
{
	size_t n = strlen(text);
	ssize_t r = write(j->fd, text, n);

	if (r == (ssize_t)n) {
		j->lines++;
		return 0;
	}
	if (r < 0)
		return err_errno(err, "the journal");
	/* The disk is full: take back what was written, or the next line would be appended to it. */
	if (lseek(j->fd, 0, SEEK_END) >= r && ftruncate(j->fd, lseek(j->fd, 0, SEEK_END) - r) < 0)
		return err_errno(err, "the journal is cut");
	return err_set(err, -ENOSPC, "the journal: no space left on the device");
}

int
journal_add(struct journal *j, const char *name, uint32_t slot, struct err *err)
{
	struct journal_entry *e;
	char text[64];
	int r = entry_room(&j->held);

	if (r < 0)
		return err_set(err, r, "the journal has no room for one more");
	(void)snprintf(text, sizeof(text), "+ %s %u\n", name, slot);
	r = line_write(j, text, err);
	if (r < 0)
		return r;
	e = &j->held.entries[j->held.n++];
	*e = (struct journal_entry){.slot = slot};
	must((size_t)snprintf(e->name, sizeof(e->name), "%s", name) < sizeof(e->name));
	return 0;
}

int
journal_name(struct journal *j, const char *name, const struct id *sandbox, const struct id *task,
	struct err *err)
{
	char text[128], sandbox_text[ID_TEXT], task_text[ID_TEXT];
	struct journal_entry *e = entry_find(&j->held, view_str(name));
	int r;

	must(e != NULL && !e->named);
	id_text(sandbox, ID_SANDBOX, sandbox_text);
	id_text(task, ID_TASK, task_text);
	(void)snprintf(text, sizeof(text), "= %s %s %s\n", name, sandbox_text, task_text);
	r = line_write(j, text, err);
	if (r < 0)
		return r;
	e->named = true;
	e->sandbox = *sandbox;
	e->task = *task;
	return 0;
}

int
journal_drop(struct journal *j, const char *name, struct err *err)
{
	char text[64];
	struct journal_entry *e = entry_find(&j->held, view_str(name));
	struct err why = {0};
	int r;

	must(e != NULL);
	(void)snprintf(text, sizeof(text), "- %s\n", name);
	r = line_write(j, text, err);
	if (r < 0)
		return r;
	*e = j->held.entries[--j->held.n];
	/* The line stands in the old file too: what cannot be renewed now is, at a later one. */
	if (j->lines > LIMIT_JOURNAL_LINES + 2 * j->held.n && file_renew(j, &why) < 0)
		log_line("%s; it grows until that works", why.text);
	return 0;
}

void
journal_end(struct journal *j)
{
	bool clean = j->held.n == 0;

	journal_held_done(&j->held);
	if (j->fd < 0)
		return;
	(void)close(take_fd(&j->fd)); /* every line was written when it was added */
	if (clean)
		(void)unlinkat(j->dir, FILE_NAME,
			0); /* an old one only makes the next start look for nothing */
}
