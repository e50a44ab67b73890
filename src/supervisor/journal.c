/* SPDX-License-Identifier: Apache-2.0 */
/* The journal; see journal.h. Its reader sees only a file that root alone can write, and still believes nothing. */
#include "supervisor/journal.h"

#include "lib/base/buf.h"
#include "lib/base/fd.h"
#include "lib/base/num.h"
#include "supervisor/limits.h"
#include "supervisor/text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#define FILE_NAME "journal"
#define FILE_NEW  "journal.new"
#define HEAD      "demilune-journal 1 "

/* ---- reading ---- */

static struct journal_entry *
entry_find(struct journal_found *f, struct view name)
{
	for (size_t i = 0; i < f->n; i++)
		if (view_is(name, f->entries[i].name))
			return &f->entries[i];
	return NULL;
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
line_add(struct journal_found *f, struct view line)
{
	struct view w[3];
	uint64_t slot;
	struct journal_entry *more, *e;

	if (!words(line, w, 3) || !token_ok(w[1], JOURNAL_NAME) ||
		num_u64(w[2], UINT32_MAX, &slot) < 0 || entry_find(f, w[1]) != NULL)
		return -EBADMSG;
	more = reallocarray(f->entries, f->n + 1, sizeof(*more));
	if (more == NULL)
		return -ENOMEM;
	f->entries = more;
	e = &f->entries[f->n++];
	*e = (struct journal_entry){.slot = (uint32_t)slot};
	memcpy(e->name, w[1].p, w[1].n);
	return 0;
}

static int
line_name(struct journal_found *f, struct view line)
{
	struct view w[4];
	struct journal_entry *e;

	if (!words(line, w, 4))
		return -EBADMSG;
	e = entry_find(f, w[1]);
	if (e == NULL || e->named || id_parse(w[2], ID_SANDBOX, &e->sandbox) < 0 ||
		id_parse(w[3], ID_TASK, &e->task) < 0)
		return -EBADMSG;
	e->named = true;
	return 0;
}

static int
line_drop(struct journal_found *f, struct view line)
{
	struct view w[2];
	struct journal_entry *e;

	if (!words(line, w, 2))
		return -EBADMSG;
	e = entry_find(f, w[1]);
	if (e == NULL)
		return -EBADMSG;
	*e = f->entries[--f->n];
	return 0;
}

static int
line_read(struct journal_found *f, struct view line)
{
	if (view_starts(line, "+ "))
		return line_add(f, line);
	if (view_starts(line, "= "))
		return line_name(f, line);
	return view_starts(line, "- ") ? line_drop(f, line) : -EBADMSG;
}

int
journal_parse(struct view text, struct journal_found *ret, struct err *err)
{
	struct journal_found f = {0};
	struct view line, tag;
	size_t number = 1;
	int r = 0;

	while (text.n != 0 && text.p[text.n - 1] != '\n')
		text.n--; /* being written when its writer died */
	if (text_line(&text, &line)) {
		tag = view_skip(line, strlen(HEAD));
		if (!view_starts(line, HEAD) || !token_ok(tag, JOURNAL_TAG))
			return err_set(err, -EBADMSG, "the first line of the journal is not one");
		memcpy(f.tag, tag.p, tag.n);
	}
	while (r == 0 && text_line(&text, &line)) {
		number++;
		r = line_read(&f, line);
	}
	if (r < 0) {
		journal_found_done(&f);
		return err_set(err, r,
			"line %zu of the journal cannot have been written by a supervisor", number);
	}
	*ret = f;
	return 0;
}

void
journal_found_done(struct journal_found *f)
{
	free(take_ptr(f->entries));
	f->n = 0;
}

int
journal_read(int dir, struct journal_found *ret, struct err *err)
{
	auto_fd int fd = openat(dir, FILE_NAME, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	auto_free char *room = malloc(LIMIT_JOURNAL_MAX_BYTES);
	size_t n = 0;
	int r;

	if (fd < 0 && errno == ENOENT) {
		*ret = (struct journal_found){0};
		return 0;
	}
	if (fd < 0)
		return err_errno(err, "the journal");
	if (room == NULL)
		return err_set(err, -ENOMEM, "no memory for the journal");
	r = fd_read_upto(fd, room, LIMIT_JOURNAL_MAX_BYTES, &n, err);
	if (r < 0)
		return r;
	if (n == LIMIT_JOURNAL_MAX_BYTES)
		return err_set(err, -EFBIG, "the journal is larger than a supervisor writes");
	return journal_parse(view_of(room, n), ret, err);
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

int
journal_begin(struct journal *j, int dir, const char *tag, const struct journal_entry *entries,
	size_t n, struct err *err)
{
	auto_fd int fd = openat(dir, FILE_NEW,
		O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_APPEND | O_CLOEXEC, 0600);
	auto_buf struct buf b;
	int r;

	buf_init(&b, LIMIT_JOURNAL_MAX_BYTES);
	buf_addf(&b, HEAD "%s\n", tag);
	for (size_t i = 0; i < n; i++)
		entry_put(&b, &entries[i]);
	if (fd < 0)
		return err_errno(err, "the journal");
	if (buf_check(&b) < 0)
		return err_set(err, -ENOMEM, "no memory for the journal");
	r = fd_write_all(fd, b.p, b.n, err);
	if (r < 0)
		return err_context(err, "the journal");
	if (renameat(dir, FILE_NEW, dir, FILE_NAME) < 0)
		return err_errno(err, "the journal");
	*j = (struct journal){.dir = dir, .fd = take_fd(&fd), .lines = 1 + 2 * n};
	(void)snprintf(j->tag, sizeof(j->tag), "%s", tag);
	return 0;
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
	char text[64];

	(void)snprintf(text, sizeof(text), "+ %s %u\n", name, slot);
	return line_write(j, text, err);
}

int
journal_name(struct journal *j, const char *name, const struct id *sandbox, const struct id *task,
	struct err *err)
{
	char text[128], sandbox_text[ID_TEXT], task_text[ID_TEXT];

	id_text(sandbox, ID_SANDBOX, sandbox_text);
	id_text(task, ID_TASK, task_text);
	(void)snprintf(text, sizeof(text), "= %s %s %s\n", name, sandbox_text, task_text);
	return line_write(j, text, err);
}

int
journal_drop(struct journal *j, const char *name, struct err *err)
{
	char text[64];

	(void)snprintf(text, sizeof(text), "- %s\n", name);
	return line_write(j, text, err);
}

void
journal_end(struct journal *j, bool clean)
{
	if (j->fd < 0)
		return;
	(void)close(take_fd(&j->fd)); /* every line was written when it was added */
	if (clean)
		(void)unlinkat(j->dir, FILE_NAME,
			0); /* an old one only makes the next start look for nothing */
}
