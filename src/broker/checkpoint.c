/* SPDX-License-Identifier: Apache-2.0 */
/* See checkpoint.h. Own file first, mirrors then: so only a state that was put back is behind a mirror. */
#include "broker/broker.h"

#include "lib/base/base64.h"
#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/base/log.h"
#include "lib/base/num.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/mman.h>
#include <sys/stat.h>

enum { PLACE_BYTES = 4096 };

static const char key_file[] = "audit.key", note_file[] = "checkpoint";

/* ---- files ---- */

/* All of a small file; 0 with n 0: it is not there. */
static int
file_read(int dir, const char *name, struct buf *ret, struct err *err)
{
	auto_fd int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct stat st;
	uint8_t *room;
	size_t n = 0;

	if (fd < 0 && errno == ENOENT)
		return 0;
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_errno(err, "open %s", name);
	if (!S_ISREG(st.st_mode))
		return err_set(err, -EBADMSG, "%s is not a regular file", name);
	room = buf_room(ret, NOTE_MAX + 1);
	if (room == NULL)
		return err_set(err, -ENOMEM, "no memory to read %s", name);
	if (fd_read_upto(fd, room, NOTE_MAX + 1, &n, err) < 0)
		return err_context(err, "%s", name);
	if (n == 0)
		return err_set(err, -EBADMSG, "%s is empty", name);
	buf_grew(ret, n);
	return 0;
}

/* Whole under its name, or as it was; the name is on disk too when `durable`, which costs more than all the rest. */
static int
file_write(int dir, const char *name, mode_t mode, struct view bytes, bool durable, struct err *err)
{
	char new[32];
	auto_fd int fd = -1;

	(void)snprintf(new, sizeof(new), "%s.new", name);
	fd = openat(
		dir, new, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, mode);
	if (fd < 0 || fchmod(fd, mode) < 0)
		return err_errno(err, "make %s", new);
	if (fd_write_all(fd, bytes.p, bytes.n, err) < 0)
		return err_context(err, "%s", new);
	if (fdatasync(fd) < 0 || renameat(dir, new, dir, name) < 0 || (durable && fsync(dir) < 0))
		return err_errno(err, "write %s to disk", name);
	return 0;
}

/* ---- the key: "PRIVATE+KEY+name+hash+base64(0x01 || seed)" and a newline ---- */

static void
key_write(const struct audit *a, struct buf *out)
{
	uint8_t bytes[1 + ED25519_BYTES] = {1};

	memcpy(bytes + 1, a->seed, ED25519_BYTES);
	buf_addf(out, "PRIVATE+KEY+%s+%08" PRIx32 "+", a->key.name, a->key.hash);
	base64_encode(view_of(bytes, sizeof(bytes)), out);
	buf_add_byte(out, '\n');
	explicit_bzero(bytes, sizeof(bytes));
}

static void
wipe(struct buf *b)
{
	if (b->p != NULL)
		explicit_bzero(b->p, b->cap);
	buf_done(b);
}
#define auto_wiped __attribute__((cleanup(wipe)))

/* The one text of the key that it holds, and of the origin that is configured. */
static int
key_read(struct audit *a, struct view text, struct err *err)
{
	auto_wiped struct buf bytes = {.max = 256}, same = {.max = 1024};
	/* Behind the name, whose '+' are none, and the hash. */
	const size_t head = sizeof("PRIVATE+KEY+") - 1 + strlen(a->key.name) + 10;
	struct view tail = view_skip(text, head);

	if (tail.n < 2 || base64_decode(view_of(tail.p, tail.n - 1), &bytes) < 0 ||
		bytes.n != 1 + ED25519_BYTES || bytes.p[0] != 1)
		return err_set(err, -EBADMSG, "audit.key is damaged; put a true copy back");
	memcpy(a->seed, bytes.p + 1, ED25519_BYTES);
	if (note_key_of(a->seed, &a->key, err) < 0)
		return err->code;
	key_write(a, &same);
	if (buf_check(&same) < 0 || !view_eq(buf_view(&same), text))
		return err_set(err, -EBADMSG,
			"audit.key is damaged, or of another origin than %s: put a true copy or "
			"audit.origin back",
			a->key.name);
	return 0;
}

static int
key_open(struct broker *b, bool *ret_new, struct err *err)
{
	auto_wiped struct buf text = {.max = 2 * NOTE_MAX};
	struct audit *a = &b->audit;
	struct stat st;

	if (!note_name_ok(view_str(b->origin)) || strlen(b->origin) + 21 >= NOTE_NAME)
		return err_set(err, -EINVAL, "audit.origin is no name for a log: %s", b->origin);
	(void)snprintf(a->key.name, sizeof(a->key.name), "%s", b->origin);
	if (file_read(b->state, key_file, &text, err) < 0)
		return err->code;
	*ret_new = text.n == 0;
	if (text.n != 0) {
		if (fstatat(b->state, key_file, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
			(st.st_mode & 077) != 0)
			return err_set(err, -EPERM,
				"others may read audit.key: chmod it to 0600, and count it as "
				"known");
		return key_read(a, buf_view(&text), err);
	}
	if (ed25519_new(a->seed, err) < 0 || note_key_of(a->seed, &a->key, err) < 0)
		return err->code;
	key_write(a, &text);
	return file_write(b->state, key_file, 0600, buf_view(&text), true, err);
}

/* ---- checkpoints that are there ---- */

/* One of ours, with its epoch. */
struct found {
	uint64_t epoch, size;
	struct merkle_hash root;
};

static bool
after(const struct found *a, const struct found *b)
{
	return a->epoch > b->epoch || (a->epoch == b->epoch && a->size > b->size);
}

/* Two roots of one size: somebody else signs with our key, or this state is a copy that went another way. */
static bool
forks(const struct found *a, const struct found *b)
{
	return a->epoch == b->epoch && a->size == b->size && !merkle_eq(&a->root, &b->root);
}

static void
origin_of(const struct broker *b, uint64_t epoch, char ret[static NOTE_NAME])
{
	int n = epoch == 1 ? snprintf(ret, NOTE_NAME, "%s", b->origin)
			   : snprintf(ret, NOTE_NAME, "%s/%" PRIu64, b->origin, epoch);

	must(n > 0 && n < NOTE_NAME);
}

static int
epoch_of(const struct broker *b, struct view origin, uint64_t *ret)
{
	size_t n = strlen(b->origin);

	if (view_is(origin, b->origin)) {
		*ret = 1;
		return 0;
	}
	if (!view_starts(origin, b->origin) || origin.n < n + 2 || origin.p[n] != '/' ||
		num_u64(view_skip(origin, n + 1), INT64_MAX, ret) < 0 || *ret < 2)
		return -EBADMSG;
	return 0;
}

/* -EBADMSG: it is none; -EKEYREJECTED: of our origin, but signed by another key. */
static int
found_read(const struct broker *b, struct view bytes, struct found *ret, struct err *err)
{
	struct checkpoint c;
	struct found f = {0};
	struct note note;

	if (note_read(bytes, &note, err) < 0 || checkpoint_read(note.text, &c, err) < 0)
		return err->code;
	if (epoch_of(b, c.origin, &f.epoch) < 0)
		return err_set(err, -EBADMSG, "it is of the log %.*s", VIEW_ARGS(c.origin));
	if (!note_signed(&note, &b->audit.key))
		return err_set(err, -EKEYREJECTED, "it is not signed by our key");
	f.size = c.size;
	f.root = c.root;
	*ret = f;
	return 0;
}

/*
 * Our own file has two places of 4 KiB, note and zeros, written in turn: what a crash can tear is the older one, and a write that changes neither
 * size nor name is one quick wait for the disk.
 */
static int
own_open(struct broker *b, struct err *err)
{
	struct audit *a = &b->audit;
	static const uint8_t zeros[2 * PLACE_BYTES];
	uint8_t bytes[2 * PLACE_BYTES] = {0};
	struct stat st;

	a->fd = openat(
		b->state, note_file, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
	if (a->fd < 0 || fstat(a->fd, &st) < 0)
		return err_errno(err, "open the checkpoint");
	if (st.st_size == sizeof(zeros))
		return 0;
	/* A crash came while it was made. */
	if (!S_ISREG(st.st_mode) || st.st_size > (off_t)sizeof(zeros) ||
		pread(a->fd, bytes, sizeof(bytes), 0) != st.st_size ||
		memcmp(bytes, zeros, sizeof(zeros)) != 0)
		return err_set(err, -EBADMSG, "the checkpoint is damaged, put a true copy back");
	if (pwrite(a->fd, zeros, sizeof(zeros), 0) != sizeof(zeros) || fsync(a->fd) < 0 ||
		fsync(b->state) < 0)
		return err_errno(err, "make the checkpoint");
	return 0;
}

static int
own_read(struct broker *b, bool new_key, struct found *ret, struct err *err)
{
	static uint8_t bytes[2 * PLACE_BYTES];
	struct audit *a = &b->audit;
	struct found best = {0};
	unsigned there = 0, good = 0;

	if (own_open(b, err) < 0)
		return err->code;
	if (pread(a->fd, bytes, sizeof(bytes), 0) != sizeof(bytes))
		return err_errno(err, "read the checkpoint");
	for (unsigned i = 0; i < 2; i++) {
		const uint8_t *p = bytes + (size_t)i * PLACE_BYTES;
		struct view text = view_of(p, strnlen((const char *)p, PLACE_BYTES));
		struct found f;

		if (text.n == 0)
			continue;
		there++;
		if (found_read(b, text, &f, err) < 0)
			continue;
		good++;
		if (good == 2 && !after(&f, &best))
			continue;
		best = f;
		a->place = i;
		buf_clear(&a->note);
		buf_add_view(&a->note, text);
	}
	if (there != 0 && new_key)
		return err_set(err, -EBADMSG,
			"there is a checkpoint, but no audit.key any more: put a true copy back");
	if (there != 0 && good == 0)
		return err_context(err, "the checkpoint is damaged, put a true copy back");
	if (there != good)
		log_line("a checkpoint was not written to its end; the one before it holds");
	*ret = best;
	return buf_check(&a->note) < 0 ? err_set(err, -ENOMEM, "no memory for a checkpoint") : 0;
}

static int
own_write(struct audit *a, struct view note, struct err *err)
{
	uint8_t bytes[PLACE_BYTES] = {0};

	must(note.n < sizeof(bytes));
	memcpy(bytes, note.p, note.n);
	if (pwrite(a->fd, bytes, sizeof(bytes), (off_t)(a->place ^ 1) * PLACE_BYTES) !=
			sizeof(bytes) ||
		fdatasync(a->fd) < 0)
		return err_errno(err, "write the checkpoint to disk");
	a->place ^= 1;
	return 0;
}

/*
 * What a mirror has of us. One that cannot be read counts as failed; what is not ours is told. Behind a new key, a checkpoint of our origin means that
 * the whole state is gone.
 */
static bool
mirror_read(struct broker *b, size_t i, bool new_key, struct found *ret)
{
	auto_buf struct buf text = {.max = 2 * NOTE_MAX};
	struct err err = {0};
	int r = file_read(b->mirrors[i], note_file, &text, &err);

	if (r == 0 && text.n == 0)
		return false;
	if (r == 0)
		r = found_read(b, buf_view(&text), ret, &err);
	if (r == 0)
		return true;
	log_line("mirror %zu: the checkpoint in it is not used: %s", i + 1, err.text);
	if (r == -EKEYREJECTED && new_key) {
		*ret = (struct found){.epoch = 1, .size = INT64_MAX};
		return true;
	}
	return false;
}

/* ---- start ---- */

/* Containment first: between the two nothing may be sent under either epoch. */
static int
epochs_until(struct broker *b, uint64_t epoch, struct err *err)
{
	struct entry e = {
		.kind = ENTRY_CONTAINED, .ms = clock_real_ms(), .scope = view_str("host")};

	if (!ledger_scope_contained(b->ledger, e.scope) && ledger_add(b->ledger, &e, err) < 0)
		return err->code;
	while (ledger_epoch(b->ledger) < epoch) {
		e = (struct entry){.kind = ENTRY_EPOCH,
			.ms = clock_real_ms(),
			.epoch = ledger_epoch(b->ledger) + 1};
		if (ledger_add(b->ledger, &e, err) < 0)
			return err->code;
	}
	return 0;
}

static int
restored(struct broker *b, const struct found *own, const struct found *newest, struct err *err)
{
	uint64_t epoch = ledger_epoch(b->ledger);

	log_line("this state was restored: it has epoch %" PRIu64 " and a checkpoint of %" PRIu64
		 " records, but one of epoch %" PRIu64 " and %" PRIu64
		 " records was signed. The host is contained until a signed release, and the next "
		 "epoch begins",
		epoch, own->size, newest->epoch, newest->size);
	if (newest->epoch > epoch)
		epoch = newest->epoch;
	if (epoch - ledger_epoch(b->ledger) > LIMIT_EPOCHS)
		return err_set(err, -EBADMSG,
			"a checkpoint of epoch %" PRIu64
			" was signed, the ledger is in epoch %" PRIu64,
			epoch, ledger_epoch(b->ledger));
	return epochs_until(b, epoch + 1, err);
}

/* The line of the ledger's epoch; nothing of it is signed. */
static void
line_begin(struct broker *b)
{
	struct audit *a = &b->audit;

	a->epoch = ledger_epoch(b->ledger);
	a->size = 0;
	a->root = merkle_empty();
	a->refused = false;
	origin_of(b, a->epoch, a->origin);
}

int
checkpoint_open(struct broker *b, struct err *err)
{
	struct audit *a = &b->audit;
	struct found own = {0}, mine, newest;
	bool new_key = false, fork = false;

	a->note.max = 2 * NOTE_MAX;
	a->fd = -1;
	if (mlock(a, sizeof(*a)) < 0)
		return err_errno(err, "lock the memory of the audit key");
	if (key_open(b, &new_key, err) < 0 || own_read(b, new_key, &own, err) < 0)
		return err->code;
	note_key_write(&a->key, a->key_text);
	/* An epoch that began and has nothing signed yet is ahead of all before it. */
	mine = own.epoch >= ledger_epoch(b->ledger)
		       ? own
		       : (struct found){.epoch = ledger_epoch(b->ledger)};
	newest = mine;
	for (size_t i = 0; i < b->nmirrors; i++) {
		struct found f;

		if (!mirror_read(b, i, new_key, &f))
			continue;
		fork = fork || (f.size != 0 && forks(&f, &mine));
		if (after(&f, &newest))
			newest = f;
	}
	if ((fork || after(&newest, &mine) || own.epoch > ledger_epoch(b->ledger)) &&
		restored(b, &mine, &newest, err) < 0)
		return err->code;
	line_begin(b);
	if (own.epoch == a->epoch && own.size != 0) {
		a->size = own.size;
		a->root = own.root;
		return 0;
	}
	buf_clear(&a->note);
	return 0;
}

void
checkpoint_done(struct broker *b)
{
	explicit_bzero(b->audit.seed, sizeof(b->audit.seed));
	fd_close_kept(&b->audit.fd);
	buf_done(&b->audit.note);
}

void
checkpoint_epoch(struct broker *b)
{
	line_begin(b);
	buf_clear(&b->audit.note);
}

void
checkpoint_ready(struct broker *b, struct msg_broker_ready *m)
{
	const struct audit *a = &b->audit;

	m->checkpoint_size = a->size;
	memcpy(m->checkpoint_root, a->root.b, SHA256_BYTES);
	m->audit_key = view_str(a->key_text);
	m->note = buf_view(&a->note);
}

/* ---- signing ---- */

static void
copy_to_mirrors(struct broker *b)
{
	struct audit *a = &b->audit;
	uint32_t failed = 0;

	for (size_t i = 0; i < b->nmirrors; i++) {
		struct err err = {0};

		if (file_write(b->mirrors[i], note_file, 0644, buf_view(&a->note), false, &err) ==
			0)
			continue;
		if (failed++ == a->mirrors_failed)
			log_line("mirror %zu does not take checkpoints: %s", i + 1, err.text);
	}
	if (failed < a->mirrors_failed)
		log_line("%" PRIu32 " mirrors do not take checkpoints, %" PRIu32 " did not before",
			failed, a->mirrors_failed);
	a->mirrors_failed = failed;
}

/* Does it continue what was signed? */
static bool
continues(const struct audit *a, const struct merkle_hash *root, const struct msg_checkpoint_ask *m)
{
	return m->size >= a->size && m->size != 0 &&
	       merkle_consistency_ok(a->size, &a->root, m->size, root, m->proof);
}

static int
sign(struct broker *b, uint64_t size, const struct merkle_hash *root, struct err *err)
{
	struct audit *a = &b->audit;
	const struct checkpoint c = {.origin = view_str(a->origin), .size = size, .root = *root};
	auto_buf struct buf text = {.max = NOTE_MAX};
	struct buf note = {.max = 2 * NOTE_MAX};
	int r = 0;

	checkpoint_write(&c, &text);
	if (buf_check(&text) < 0)
		return err_set(err, -ENOMEM, "no memory for a checkpoint");
	r = note_sign(a->seed, &a->key, buf_view(&text), &note, err);
	if (r == 0)
		r = own_write(a, buf_view(&note), err);
	if (r < 0) {
		buf_done(&note);
		return r;
	}
	buf_done(&a->note);
	a->note = note;
	a->size = size;
	a->root = *root;
	return 0;
}

void
checkpoint_ask(struct broker *b, struct ask ask, const struct msg_checkpoint_ask *m)
{
	struct audit *a = &b->audit;
	struct merkle_hash root;
	struct err err = {0};

	memcpy(root.b, m->root, SHA256_BYTES);
	a->refused = true;
	if (!continues(a, &root, m)) {
		log_line("the engine showed a head of %" PRIu64
			 " records that does not continue the one of %" PRIu64 " that was signed",
			m->size, a->size);
		tell_refused(b, ask, DENIAL_RESTORED,
			"this head does not continue the one that was signed");
		return;
	}
	if (m->size != a->size && sign(b, m->size, &root, &err) < 0) {
		log_line("a checkpoint cannot be signed: %s", err.text);
		tell_refused(b, ask, DENIAL_AUDIT_UNAVAILABLE, err.text);
		return;
	}
	a->refused = false;
	copy_to_mirrors(b);
	TELL(b, ask, CHECKPOINT_IS, checkpoint_is,
		{.size = a->size, .note = buf_view(&a->note), .mirrors_failed = a->mirrors_failed});
}
