/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the broker signs of the audit: heads that continue the last one, never two roots of one size, over restarts, and that a state or a log
 * that was put back is found. The tree is the test's own.
 */
#include "play.h"

#include "lib/base/base64.h"
#include "lib/tlog/sign.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { LEAVES = 600 };

static struct play play;
static struct merkle_hash leaves[LEAVES], other[LEAVES];

static int
begin(void **state)
{
	(void)state;
	play_open(&play);
	play.mirrors = true;
	play_start(&play);
	for (uint32_t i = 0; i < LEAVES; i++) {
		uint32_t j = i + (i >= 100 ? 100000 : 0);

		leaves[i] = merkle_leaf(view_of(&i, sizeof(i)));
		other[i] = merkle_leaf(view_of(&j, sizeof(j))); /* the same first hundred */
	}
	return 0;
}

static int
end(void **state)
{
	(void)state;
	play_close(&play);
	return 0;
}

static int
node(void *arg, unsigned level, uint64_t index, struct merkle_hash *ret, struct err *err)
{
	const struct merkle_hash *from = arg;
	struct merkle part = {0};

	(void)err;
	for (uint64_t i = index << level; i < (index + 1) << level; i++)
		(void)merkle_add(&part, &from[i]);
	*ret = merkle_root(&part);
	return 0;
}

static struct merkle_hash
root_of(struct merkle_hash *log, uint64_t size)
{
	struct merkle_source s = {node, log};
	struct merkle_hash root;
	struct err err;

	assert_int_equal(merkle_root_at(&s, size, &root, &err), 0);
	return root;
}

static void
ask(struct merkle_hash *log, uint64_t from, uint64_t size)
{
	struct merkle_source s = {node, log};
	struct msg_checkpoint_ask m = {.size = size};
	struct merkle_hash root = root_of(log, size);
	struct merkle_proof p;
	struct err err;

	assert_int_equal(merkle_consistency(&s, from < size ? from : size, size, &p, &err), 0);
	memcpy(m.root, root.b, 32);
	m.proof = merkle_proof_view(&p);
	SAY_TAG(play.engine, ++play.tag, CHECKPOINT_ASK, checkpoint_ask, -1, m);
}

static struct note_key key;

static void
told_key(void)
{
	WANT(&play, BROKER_READY, broker_ready, m);
	play.epoch = m.epoch;
	assert_int_equal(note_key_read(m.audit_key, &key, &(struct err){0}), 0);
	play_want(&play, MSG_APPROVERS_LOADED);
}

/* The note in `text` is of this head, of this origin line, and signed. */
static void
is_head(struct view text, const char *origin, struct merkle_hash *log, uint64_t size)
{
	struct merkle_hash root = root_of(log, size);
	struct checkpoint c;
	struct note n;
	struct err err;

	if (note_read(text, &n, &err) < 0 || checkpoint_read(n.text, &c, &err) < 0)
		fail_msg("%s", err.text);
	assert_true(note_signed(&n, &key));
	assert_true(view_is(c.origin, origin));
	assert_int_equal(c.size, size);
	assert_memory_equal(c.root.b, root.b, 32);
}

static void
in_file(int dir, const char *origin, struct merkle_hash *log, uint64_t size)
{
	auto_buf struct buf b = {.max = 8192};

	play_read(&play, dir, "checkpoint", &b);
	if (dir != play.state) {
		is_head(buf_view(&b), origin, log, size);
		return;
	}
	/* Two places, the newest in one of them. */
	assert_int_equal(b.n, 8192);
	for (size_t i = 0; i < 2; i++) {
		struct view text = view_str((const char *)b.p + 4096 * i);
		struct checkpoint c;
		struct note n;
		struct err err;

		if (note_read(text, &n, &err) == 0 && checkpoint_read(n.text, &c, &err) == 0 &&
			c.size == size && view_is(c.origin, origin)) {
			is_head(text, origin, log, size);
			return;
		}
	}
	fail_msg("the checkpoint of %lu records is not on disk", (unsigned long)size);
}

static void
signs(struct merkle_hash *log, uint64_t from, uint64_t size, uint32_t mirrors_failed)
{
	ask(log, from, size);
	WANT(&play, CHECKPOINT_IS, checkpoint_is, m);
	assert_int_equal(play.in.tag, play.tag);
	assert_int_equal(m.size, size);
	assert_int_equal(m.mirrors_failed, mirrors_failed);
	is_head(m.note, play.origin != NULL ? play.origin : "play.test/audit", log, size);
	in_file(play.state, "play.test/audit", log, size);
}

static void
refuses(struct merkle_hash *log, uint64_t from, uint64_t size, enum denial denial)
{
	ask(log, from, size);
	WANT(&play, BROKER_REFUSED, broker_refused, m);
	assert_int_equal(m.denial, denial);
}

static void
again(void)
{
	play_kill(&play);
	play_launch(&play);
	told_key();
}

static void
it_signs_what_continues(void **state)
{
	struct stat st;

	(void)state;
	again();
	signs(leaves, 0, 1, 0);
	signs(leaves, 1, 100, 0);
	signs(leaves, 100, 100, 0); /* the same again is the same */
	signs(leaves, 100, 357, 0);
	in_file(play.mirror[0], "play.test/audit", leaves, 357);
	in_file(play.mirror[1], "play.test/audit", leaves, 357);
	assert_int_equal(fstatat(play.state, "audit.key", &st, 0), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	/* The key and the head survive. */
	struct note_key was = key;
	play_kill(&play);
	play_launch(&play);
	WANT(&play, BROKER_READY, broker_ready, m);
	struct merkle_hash root = root_of(leaves, 357);
	assert_int_equal(m.checkpoint_size, 357);
	assert_memory_equal(m.checkpoint_root, root.b, 32);
	is_head(m.note, "play.test/audit", leaves, 357);
	assert_int_equal(m.epoch, 1);
	assert_int_equal(note_key_read(m.audit_key, &key, &(struct err){0}), 0);
	assert_memory_equal(key.public, was.public, 32);
	play_want(&play, MSG_APPROVERS_LOADED);
	signs(leaves, 357, 358, 0);
}

/* 5.1: a cut tail, another history, a proof for another head, no proof: nothing of it is signed, and what was signed stays. */
static void
it_never_signs_two_histories(void **state)
{
	(void)state;
	again();
	signs(leaves, 0, 200, 0);
	refuses(leaves, 100, 199, DENIAL_RESTORED); /* smaller */
	refuses(other, 200, 200, DENIAL_RESTORED);  /* another root of the same size */
	refuses(other, 200, 300, DENIAL_RESTORED);  /* written anew from the hundredth on */
	refuses(other, 100, 300,
		DENIAL_RESTORED); /* with a true proof, from where both are the same */
	refuses(leaves, 0, 300, DENIAL_RESTORED); /* as if it were the first */
	refuses(leaves, 199, 300, DENIAL_RESTORED);
	in_file(play.state, "play.test/audit", leaves, 200);
	again();
	refuses(other, 200, 300, DENIAL_RESTORED);
	signs(leaves, 200, 300, 0);
}

/* No audit, no effect: until a head is signed again. */
static void
after_a_refused_head_nothing_is_sent(void **state)
{
	struct msg_executed m;
	struct action a;

	(void)state;
	again();
	signs(leaves, 0, 200, 0);
	action_refund(&play, &a);
	refuses(other, 200, 300, DENIAL_RESTORED);
	action_send(&play, &a);
	WANT(&play, BROKER_REFUSED, broker_refused, r);
	assert_int_equal(r.denial, DENIAL_AUDIT_UNAVAILABLE);
	assert_int_equal(provider_effects(&play), 0);
	signs(leaves, 200, 300, 0);
	m = action_execute(&play, &a);
	action_is(&m, ATTEMPT_SUCCEEDED, DENIAL_NONE);
	assert_int_equal(provider_effects(&play), 1);
	/* What was sent is told. */
	refuses(other, 300, 400, DENIAL_RESTORED);
	m = action_execute(&play, &a);
	action_is(&m, ATTEMPT_SUCCEEDED, DENIAL_NONE);
	assert_int_equal(provider_effects(&play), 1);
	action_done(&a);
}

static void
the_next_epoch_is_another_log(void **state)
{
	(void)state;
	again();
	signs(leaves, 0, 200, 0);
	ASK(&play, EPOCH_NEXT, epoch_next, {0});
	WANT(&play, EPOCH_IS, epoch_is, m);
	assert_int_equal(m.epoch, 2);
	refuses(other, 50, 120, DENIAL_RESTORED); /* the first head continues nothing */
	ask(other, 0, 120);
	WANT(&play, CHECKPOINT_IS, checkpoint_is, c);
	is_head(c.note, "play.test/audit/2", other, 120);
	in_file(play.state, "play.test/audit/2", other, 120);
	in_file(play.mirror[1], "play.test/audit/2", other, 120);
	play_kill(&play);
	play_launch(&play);
	WANT(&play, BROKER_READY, broker_ready, r);
	assert_int_equal(r.epoch, 2);
	assert_int_equal(r.checkpoint_size, 120);
}

/* Before the first head of an epoch nothing of the last one is told. */
static void
an_epoch_begins_with_nothing(void **state)
{
	(void)state;
	again();
	signs(leaves, 0, 200, 0);
	ASK(&play, EPOCH_NEXT, epoch_next, {0});
	play_want(&play, MSG_EPOCH_IS);
	play_kill(&play);
	play_launch(&play);
	WANT(&play, BROKER_READY, broker_ready, m);
	assert_int_equal(m.epoch, 2);
	assert_int_equal(m.checkpoint_size, 0);
	assert_int_equal(m.note.n, 0);
}

/* ---- a state that was put back ---- */

static void
copy(int from, const char *name, int to, const char *as)
{
	auto_buf struct buf b = {.max = 1 << 20};
	int fd = openat(to, as, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	play_read(&play, from, name, &b);
	assert_true(fd >= 0 && write(fd, b.p, b.n) == (ssize_t)b.n && fchmod(fd, 0600) == 0);
	(void)close(fd);
}

static void
owner(int dir, const char *name)
{
	struct stat st;

	assert_int_equal(fstat(dir, &st), 0);
	assert_int_equal(fchownat(dir, name, st.st_uid, st.st_gid, 0), 0);
}

/* The whole state of the broker of yesterday, while a mirror has today: contained, the next epoch, what was approved is void. */
static void
H2_a_mirror_that_is_ahead(void **state)
{
	static const char *const files[] = {"ledger", "audit.key", "checkpoint"};
	struct msg_executed m;
	struct action a;
	struct stat st;

	(void)state;
	again();
	signs(leaves, 0, 200, 0);
	action_refund(&play, &a);
	assert_int_equal(mkdirat(play.provider_dir, "old", 0700), 0);
	int old = openat(play.provider_dir, "old", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (size_t i = 0; i < ARRAY_LEN(files); i++)
		copy(play.state, files[i], old, files[i]);
	m = action_execute(&play, &a);
	action_is(&m, ATTEMPT_SUCCEEDED, DENIAL_NONE);
	signs(leaves, 200, 203, 0);
	play_kill(&play);
	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		copy(old, files[i], play.state, files[i]);
		owner(play.state, files[i]);
	}
	(void)close(old);
	assert_int_equal(
		unlinkat(play.mirror[0], "checkpoint", 0), 0); /* one that remembers is enough */
	assert_int_equal(fstatat(play.mirror[1], "checkpoint", &st, 0), 0);
	play_launch(&play);
	WANT(&play, BROKER_READY, broker_ready, r);
	assert_int_equal(r.epoch, 2);
	assert_int_equal(r.checkpoint_size, 0);
	play_want(&play, MSG_APPROVERS_LOADED);
	m = action_execute(&play, &a);
	assert_int_equal(m.attempt, ATTEMPT_DENIED);
	assert_int_equal(provider_effects(&play), 1);
	action_done(&a);
	/* Once: the mirror is not ahead of the new epoch. */
	again();
	assert_int_equal(play.epoch, 2);
}

static void
a_mirror_with_another_root(void **state)
{
	auto_buf struct buf text = {.max = 4096}, note = {.max = 4096}, file = {.max = 4096},
			    seed = {.max = 64};
	struct checkpoint c = {
		.origin = view_str("play.test/audit"), .size = 200, .root = root_of(other, 200)};
	struct err err;
	int fd;

	(void)state;
	again();
	signs(leaves, 0, 200, 0);
	play_kill(&play);
	/* Signed with our own key, by a copy of us. */
	play_read(&play, play.state, "audit.key", &file);
	buf_add_byte(&file, 0);
	struct view tail = view_of(file.p, file.n - 2);
	tail = view_skip(tail, strlen("PRIVATE+KEY+play.test/audit+01234567+"));
	assert_int_equal(base64_decode(tail, &seed), 0);
	checkpoint_write(&c, &text);
	assert_int_equal(note_sign(seed.p + 1, &key, buf_view(&text), &note, &err), 0);
	fd = openat(play.mirror[1], "checkpoint", O_WRONLY | O_TRUNC | O_CLOEXEC);
	assert_true(fd >= 0 && write(fd, note.p, note.n) == (ssize_t)note.n);
	(void)close(fd);
	play_launch(&play);
	WANT(&play, BROKER_READY, broker_ready, r);
	assert_int_equal(r.epoch, 2);
}

/* Everything of the broker is gone, a mirror knows that there was something. */
static void
H2_a_state_that_is_gone(void **state)
{
	(void)state;
	again();
	signs(leaves, 0, 200, 0);
	play_kill(&play);
	assert_int_equal(unlinkat(play.state, "ledger", 0), 0);
	assert_int_equal(unlinkat(play.state, "audit.key", 0), 0);
	assert_int_equal(unlinkat(play.state, "checkpoint", 0), 0);
	play_launch(&play);
	WANT(&play, BROKER_READY, broker_ready, r);
	assert_int_equal(r.epoch, 2);
}

/* The checkpoint is of a later epoch than the ledger: that was put back alone. */
static void
a_ledger_that_is_behind(void **state)
{
	(void)state;
	again();
	copy(play.state, "ledger", play.provider_dir, "ledger");
	ASK(&play, EPOCH_NEXT, epoch_next, {0});
	play_want(&play, MSG_EPOCH_IS);
	ask(leaves, 0, 9);
	play_want(&play, MSG_CHECKPOINT_IS);
	play_kill(&play);
	copy(play.provider_dir, "ledger", play.state, "ledger");
	owner(play.state, "ledger");
	play_launch(&play);
	WANT(&play, BROKER_READY, broker_ready, r);
	assert_int_equal(r.epoch, 3);
	assert_int_equal(r.checkpoint_size, 0);
}

/* ---- what it does not start with ---- */

static void
does_not_start(void)
{
	int status;

	play_launch(&play);
	status = play_wait(&play);
	assert_int_equal(WEXITSTATUS(status), 2);
}

static void
put(const char *name, const char *text)
{
	(void)unlinkat(play.state, name, 0);
	play_write(play.state, name, text);
	assert_int_equal(fchmodat(play.state, name, 0600, 0), 0);
	owner(play.state, name);
}

static void
a_broken_key_or_checkpoint_is_no_start(void **state)
{
	static const char *const keys[] = {"x", "PRIVATE+KEY+play.test/audit+00000000+AQ==\n",
		"PRIVATE+KEY+play.test/"
		"audit+00000000+AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\n",
		"PRIVATE+KEY+other.test/"
		"audit+00000000+AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\n"};
#define HEAD "play.test/audit\n1\nAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n\n"
	static const char unsigned_head[] = HEAD,
			  other_key[] = HEAD "\xe2\x80\x94 play.test/audit AAAAAAAA\n";
	const char *const notes[] = {"x", unsigned_head, other_key};

	(void)state;
	again();
	signs(leaves, 0, 200, 0);
	play_kill(&play);
	copy(play.state, "audit.key", play.provider_dir, "key");
	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		put("audit.key", keys[i]);
		does_not_start();
	}
	(void)unlinkat(play.state, "audit.key", 0); /* the checkpoint of nobody */
	does_not_start();
	copy(play.provider_dir, "key", play.state, "audit.key");
	owner(play.state, "audit.key");
	assert_int_equal(fchmodat(play.state, "audit.key", 0640, 0), 0);
	does_not_start();
	assert_int_equal(fchmodat(play.state, "audit.key", 0600, 0), 0);
	copy(play.state, "checkpoint", play.provider_dir, "note");
	for (size_t i = 0; i < ARRAY_LEN(notes); i++) {
		put("checkpoint", notes[i]);
		does_not_start();
	}
	copy(play.provider_dir, "note", play.state, "checkpoint");
	owner(play.state, "checkpoint");
	play.origin = "other.test/audit";
	does_not_start();
	play.origin = NULL;
	play_launch(&play);
	told_key();
	signs(leaves, 200, 201, 0);
}

/* What a crash leaves of the write of a checkpoint: the one before it holds. Both torn is no crash. */
static void
a_torn_checkpoint_is_the_one_before(void **state)
{
	char bytes[8192];
	int fd = openat(play.state, "checkpoint", O_RDWR | O_CLOEXEC);

	(void)state;
	again();
	play.mirrors = false;
	signs(leaves, 0, 100, 0);
	signs(leaves, 100, 200, 0);
	play_kill(&play);
	assert_int_equal(pread(fd, bytes, sizeof(bytes), 0), sizeof(bytes));
	size_t newest = strstr(bytes, "\n200\n") != NULL ? 0 : 4096;
	assert_non_null(strstr(bytes + newest, "\n200\n"));
	assert_int_equal(pwrite(fd, "torn", 4, (off_t)newest + 60), 4);
	play_launch(&play);
	WANT(&play, BROKER_READY, broker_ready, r);
	assert_int_equal(r.checkpoint_size, 100);
	play_want(&play, MSG_APPROVERS_LOADED);
	signs(leaves, 100, 300, 0); /* into the torn place */
	play_kill(&play);
	assert_int_equal(pwrite(fd, "torn", 4, 60), 4);
	assert_int_equal(pwrite(fd, "torn", 4, 4096 + 60), 4);
	(void)close(fd);
	play_launch(&play);
	assert_int_equal(WEXITSTATUS(play_wait(&play)), 2);
}

static void
a_mirror_that_fails_is_told(void **state)
{
	(void)state;
	again();
	signs(leaves, 0, 10, 0);
	assert_int_equal(fchmod(play.mirror[0], 0555), 0);
	assert_int_equal(fchown(play.mirror[0], 0, 0), 0);
	signs(leaves, 10, 20, 1);
	signs(leaves, 20, 30, 1);
	in_file(play.mirror[1], "play.test/audit", leaves, 30);
	assert_int_equal(fchmod(play.mirror[0], 0777), 0);
	signs(leaves, 30, 40, 0);
	in_file(play.mirror[0], "play.test/audit", leaves, 40);
	/* What is not ours is left alone, until the next head. */
	play_kill(&play);
	put("x", "");
	(void)unlinkat(play.mirror[0], "checkpoint", 0);
	play_write(play.mirror[0], "checkpoint", "somebody else's\n");
	play_launch(&play);
	told_key();
	assert_int_equal(play.epoch, 1);
	signs(leaves, 40, 41, 0);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		TEST(it_signs_what_continues),
		TEST(it_never_signs_two_histories),
		TEST(after_a_refused_head_nothing_is_sent),
		TEST(the_next_epoch_is_another_log),
		TEST(an_epoch_begins_with_nothing),
		TEST(H2_a_mirror_that_is_ahead),
		TEST(a_mirror_with_another_root),
		TEST(H2_a_state_that_is_gone),
		TEST(a_ledger_that_is_behind),
		TEST(a_broken_key_or_checkpoint_is_no_start),
		TEST(a_torn_checkpoint_is_the_one_before),
		TEST(a_mirror_that_fails_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
