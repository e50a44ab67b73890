/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tree over all audit records, and what it is for: heads that the broker signs, proofs that anybody can verify, and that a store that is not the
 * one that was signed is found at the start. All hashes are computed here again from the records that the engine tells.
 */
#include "play.h"

#include "lib/audit/audit.h"
#include "lib/tlog/note.h"

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { LEAVES = 2048 };

static struct merkle_hash leaves[LEAVES];
static struct merkle tree;
/* Open until the end: a sandbox whose relay is lost makes records at a time of its own. */
static int open_relays[8];
static size_t n_relays;

static int
setup(void **state)
{
	static struct play play;

	play_open(&play);
	play_start(&play);
	play_broker(&play, false);
	/* It has read BROKER_READY. */
	for (int i = 0; i < 500 && (play_audit_of(&play, "host") == 0 ||
					   play_events(&play, "broker.ready") == 0);
		i++)
		(void)poll(NULL, 0, 10);
	*state = &play;
	return 0;
}

static int
teardown(void **state)
{
	while (n_relays > 0)
		(void)close(open_relays[--n_relays]);
	play_close(*state);
	return 0;
}

/* The leaves of one chain, at the places that the engine says. */
static uint64_t
read_chain(struct play *p, const char *name, bool *there)
{
	struct audit_chain chain = {0};
	bool more = true;

	while (more) {
		ASK(p, AUDIT_READ, audit_read,
			{.caller = as_root,
				.name = view_str(name),
				.after = chain.number,
				.limit = 200});
		for (;;) {
			struct audit_row r;
			struct msg_audit_row row;
			struct err err = {0};

			play_want_any(p, p->api);
			if (p->in.type == MSG_END)
				break;
			assert_int_equal(p->in.type, MSG_AUDIT_ROW);
			play_decoded(msg_audit_row_get(p->in.body, &row, &err), "AUDIT_ROW");
			r = (struct audit_row){.number = row.number, .record = row.record};
			memcpy(r.previous, row.previous, 32);
			memcpy(r.digest, row.record_digest, 32);
			assert_int_equal(audit_chain_add(&chain, &r, &err), 0);
			assert_true(row.leaf < LEAVES);
			assert_false(there[row.leaf]);
			there[row.leaf] = true;
			leaves[row.leaf] = merkle_leaf(view_of(r.digest, 32));
		}
		struct msg_end end;
		play_decoded(msg_end_get(p->in.body, &end, &(struct err){0}), "END");
		more = end.more;
	}
	return chain.number;
}

/* The tree of all records, made here. No leaf is missing or there twice. */
static void
build(struct play *p, const struct id *task)
{
	static bool there[LEAVES];
	char name[ID_TEXT];
	uint64_t n;

	memset(there, 0, sizeof(there));
	n = read_chain(p, "host", there);
	if (task != NULL) {
		id_text(task, ID_TASK, name);
		n += read_chain(p, name, there);
	}
	tree = (struct merkle){0};
	for (uint64_t i = 0; i < n; i++) {
		assert_true(there[i]);
		(void)merkle_add(&tree, &leaves[i]);
	}
}

/* A fresh head: the broker is asked, signs, and the api has it. */
static void
fresh(struct play *p)
{
	struct pollfd w[2] = {
		{.fd = p->broker, .events = POLLIN}, {.fd = p->api, .events = POLLIN}};

	ASK(p, CHECKPOINT_GET, checkpoint_get, {.caller = as_root, .fresh = true});
	p->heads_held = true;
	for (;;) {
		assert_true(poll(w, 2, 5000) > 0);
		if (w[1].revents != 0)
			break;
		play_want(p, p->broker, MSG_CHECKPOINT_ASK);
		play_head(p);
	}
	p->heads_held = false;
	ANSWER(p, CHECKPOINT_ROW, checkpoint_row, m);
	assert_int_equal(m.size, p->head_size);
	assert_true(view_is(m.note, p->head_note));
	assert_true(view_starts(m.audit_key, "play.test/audit+"));
}

static void
signed_is_what_was_recorded(struct play *p, const struct id *task)
{
	struct merkle_hash root;

	fresh(p);
	build(p, task);
	assert_int_equal(tree.size, p->head_size);
	root = merkle_root(&tree);
	assert_memory_equal(root.b, p->head_root, 32);
}

/* Two records each. */
static struct id
many(struct play *p, unsigned jobs)
{
	struct id sandbox, task, job;
	int relay = play_create(p, &sandbox, &task);

	for (unsigned i = 0; i < jobs; i++) {
		play_run(p, relay, &sandbox, &job);
		play_end_job(p, relay, &job, 0);
		play_want(p, relay, MSG_JOB_RECORDED);
		play_want(p, p->api, MSG_JOB_ROW);
	}
	open_relays[n_relays++] = relay;
	return task;
}

static void
inclusion(struct play *p, const struct id *task, uint64_t size)
{
	struct merkle_hash root;
	char name[ID_TEXT];
	uint64_t at = 0;
	struct merkle part = {0};

	for (uint64_t i = 0; i < size; i++)
		(void)merkle_add(&part, &leaves[i]);
	root = merkle_root(&part);
	id_text(task, ID_TASK, name);
	/* The first records are of the host. */
	for (at = 8; at < size; at += 256) {
		uint64_t end = at + 256 < size ? at + 256 : size;
		auto_buf struct buf asked = {.max = 4096};

		for (uint64_t i = at; i < end; i++)
			for (int shift = 56; shift >= 0; shift -= 8)
				buf_add_byte(&asked, (uint8_t)(i >> shift));
		ASK(p, INCLUSION_GET, inclusion_get,
			{.caller = as_root,
				.task = view_str(name),
				.size = size,
				.leaves = buf_view(&asked)});
		for (uint64_t i = at; i < end; i++) {
			ANSWER(p, PROOF_ROW, proof_row, m);
			assert_int_equal(m.leaf, i);
			assert_int_equal(m.size, size);
			if (!merkle_inclusion_ok(&leaves[i], i, size, m.hashes, &root))
				fail_msg("leaf %lu is not in the tree of %lu", (unsigned long)i,
					(unsigned long)size);
			assert_true(m.hashes.n <= 11 * 32); /* logarithmic */
		}
		ANSWER(p, END, end, e);
		assert_false(e.more);
	}
}

static void
consistency(struct play *p, uint64_t size)
{
	struct merkle_hash root, was;
	struct merkle part = {0};

	root = merkle_root(&tree);
	for (uint64_t from = 0; from <= size; from++) {
		was = merkle_root(&part);
		if (from % 41 == 0 || from % 256 == 0 || from == size) {
			ASK(p, CONSISTENCY_GET, consistency_get,
				{.caller = as_root, .from = from, .size = size});
			ANSWER(p, PROOF_ROW, proof_row, m);
			assert_true(merkle_consistency_ok(from, &was, size, &root, m.hashes));
		}
		(void)merkle_add(&part, &leaves[from]);
	}
}

static void
test_every_record_is_proved(void **state)
{
	struct play *p = *state;
	struct id task = many(p, 320);

	signed_is_what_was_recorded(p, &task);
	assert_true(tree.size > 640);
	inclusion(p, &task, tree.size);
	inclusion(p, &task, 512);
	inclusion(p, &task, 300);
	consistency(p, tree.size);
}

static void
test_what_is_not_yours_is_not_proved(void **state)
{
	struct play *p = *state;
	struct id task = play_task(p, "acme");
	struct caller other = play_token(p, "other", "", 77);
	static const uint8_t host_leaf[8], last[8] = {0, 0, 0, 0, 0, 0, 9, 9}, none[7];
	char name[ID_TEXT];

	fresh(p);
	id_text(&task, ID_TASK, name);
	ASK(p, INCLUSION_GET, inclusion_get,
		{.caller = as_root,
			.task = view_str(name),
			.size = p->head_size,
			.leaves = view_of(host_leaf, 8)});
	play_refused(p, ERROR_NOT_FOUND);
	ASK(p, INCLUSION_GET, inclusion_get,
		{.caller = other,
			.task = view_str(name),
			.size = p->head_size,
			.leaves = view_of(host_leaf, 8)});
	play_refused(p, ERROR_NOT_FOUND);
	ASK(p, INCLUSION_GET, inclusion_get,
		{.caller = other,
			.task = view_str("host"),
			.size = p->head_size,
			.leaves = view_of(host_leaf, 8)});
	play_refused(p, ERROR_NOT_FOUND);
	ASK(p, INCLUSION_GET, inclusion_get,
		{.caller = as_root,
			.task = view_str(name),
			.size = p->head_size,
			.leaves = view_of(last, 8)});
	play_refused(p, ERROR_BAD_REQUEST);
	ASK(p, INCLUSION_GET, inclusion_get,
		{.caller = as_root, .task = view_str(name), .size = 1, .leaves = view_of(none, 7)});
	play_refused(p, ERROR_BAD_REQUEST);
	ASK(p, INCLUSION_GET, inclusion_get,
		{.caller = as_root,
			.task = view_str(name),
			.size = 100000,
			.leaves = view_of(host_leaf, 8)});
	play_refused(p, ERROR_BAD_REQUEST);
	ASK(p, CONSISTENCY_GET, consistency_get, {.caller = as_root, .from = 1, .size = 100000});
	play_refused(p, ERROR_BAD_REQUEST);
	ASK(p, CONSISTENCY_GET, consistency_get, {.caller = as_root, .from = 2, .size = 1});
	play_refused(p, ERROR_BAD_REQUEST);
	ASK(p, CHECKPOINT_GET, checkpoint_get, {.caller = {.kind = CALLER_KIND_TOKEN}});
	play_refused(p, ERROR_UNAUTHORIZED);
}

/* By itself: 2 s after a record, at 256 records, at the close of a task. */
static void
test_heads_come_by_themselves(void **state)
{
	struct play *p = *state;
	struct id task;
	uint64_t begun;

	p->heads_held = true;
	begun = clock_mono_ms();
	play_want(p, p->broker, MSG_CHECKPOINT_ASK);
	assert_in_range(clock_mono_ms() - begun, 500, 2600);
	play_head(p);
	task = play_task(p, "acme");
	begun = clock_mono_ms();
	ASK(p, TASK_CLOSE, task_close, {.caller = as_root, .task = task});
	ANSWER(p, TASK_ROW, task_row, row);
	assert_int_equal(row.state, TASK_STATE_CLOSED);
	play_want(p, p->broker, MSG_CHECKPOINT_ASK);
	assert_true(clock_mono_ms() - begun < 1000);
	play_head(p);
	begun = clock_mono_ms();
	(void)many(p, 140);
	play_want(p, p->broker, MSG_CHECKPOINT_ASK);
	play_head(p);
	p->heads_held = false;
}

/* A broker that does not sign: told to who asks, asked again, and what is asked goes on from what was signed. */
static void
test_a_head_that_is_refused(void **state)
{
	struct play *p = *state;

	p->heads_held = true;
	ASK(p, CHECKPOINT_GET, checkpoint_get, {.caller = as_root, .fresh = true});
	play_want(p, p->broker, MSG_CHECKPOINT_ASK);
	SAY_TAG(p->broker, p->in.tag, BROKER_REFUSED, broker_refused, -1,
		{.denial = DENIAL_AUDIT_UNAVAILABLE, .text = view_str("the disk is full")});
	play_refused(p, ERROR_UNAVAILABLE);
	ASK(p, CHECKPOINT_GET, checkpoint_get, {.caller = as_root, .fresh = true});
	play_want(p, p->broker, MSG_CHECKPOINT_ASK);
	play_head(p);
	ANSWER(p, CHECKPOINT_ROW, checkpoint_row, m);
	assert_int_equal(m.size, p->head_size);
	/* A note of another head is none. */
	(void)play_task(p, "acme");
	ASK(p, CHECKPOINT_GET, checkpoint_get, {.caller = as_root, .fresh = true});
	play_want(p, p->broker, MSG_CHECKPOINT_ASK);
	SAY_TAG(p->broker, p->in.tag, CHECKPOINT_IS, checkpoint_is, -1,
		{.size = p->head_size + 1, .note = view_str(p->head_note)});
	play_refused(p, ERROR_INTERNAL);
	p->heads_held = false;
}

/* A text of a stranger that looks like the end of a record and another one stays a text in its own record. */
static void
test_H3_a_text_is_no_record(void **state)
{
	static const char labels[] =
		"ticket\0x\"}}\n{\"data\":{},\"event\":\"forged\",\"seq\":1}\n";
	struct play *p = *state;
	bool there[LEAVES] = {false};
	char name[ID_TEXT];

	ASK(p, TASK_CREATE, task_create,
		{.caller = as_root,
			.tenant = view_str("acme"),
			.template = view_str("python"),
			.labels = view_of(labels, sizeof(labels))});
	ANSWER(p, TASK_ROW, task_row, row);
	id_text(&row.task, ID_TASK, name);
	assert_int_equal(play_audit(p, &row.task), 1);
	assert_int_equal(play_events(p, "forged"), 0);
	assert_true(play_recorded("\\n{\\\"data\\\":{},\\\"event\\\":\\\"forged"));
	assert_int_equal(read_chain(p, name, there), 1);
	signed_is_what_was_recorded(p, &row.task);
}

/* ---- a store that is not what was signed ---- */

static void
edit(struct play *p, const char *sql)
{
	char path[96];
	char *why = NULL;
	sqlite3 *db;

	(void)snprintf(path, sizeof(path), "%s/engine/engine.db", p->dir);
	assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
	assert_int_equal(
		sqlite3_exec(db,
			"PRAGMA foreign_keys = OFF; DROP TRIGGER audit_no_update; DROP TRIGGER "
			"audit_no_delete;"
			"DROP TRIGGER audit_tile_no_update; DROP TRIGGER audit_tile_no_delete",
			NULL, NULL, NULL),
		SQLITE_OK);
	if (sqlite3_exec(db, sql, NULL, NULL, &why) != SQLITE_OK)
		fail_msg("%s", why);
	assert_true(sqlite3_changes(db) > 0);
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

/* The engine begins on this store with the broker of before: is it a quarantine? */
static bool
quarantined(struct play *p)
{
	play_start(p);
	play_broker(p, false);
	for (int i = 0; i < 4; i++) {
		struct pollfd w = {.fd = p->broker, .events = POLLIN};

		if (poll(&w, 1, 700) == 0)
			return false;
		p->heads_held = true;
		play_want_any(p, p->broker);
		p->heads_held = false;
		if (p->in.type == MSG_EPOCH_NEXT)
			return true;
		if (p->in.type == MSG_CHECKPOINT_ASK)
			play_head(p);
	}
	return false;
}

/* As it was: no quarantine, and the tree goes on where it was, with a proof that the played broker tests. */
static void
test_a_restart_goes_on(void **state)
{
	struct play *p = *state;
	struct id task = many(p, 130);

	for (int i = 0; i < 3; i++) {
		fresh(p);
		play_kill(p);
		assert_false(quarantined(p));
	}
	signed_is_what_was_recorded(p, &task);
	consistency(p, tree.size);
}

static void
changed(struct play *p, const char *sql, bool found)
{
	fresh(p);
	play_kill(p);
	if (sql != NULL)
		edit(p, sql);
	if (quarantined(p) != found)
		fail_msg("%s: %s", sql, found ? "it was not found" : "it is no quarantine");
}

static void
test_H1_the_tail_was_cut(void **state)
{
	changed(*state, "DELETE FROM audit WHERE seq >= (SELECT max(seq) - 1 FROM audit)", true);
}

static void
test_H1_the_last_records_are_others(void **state)
{
	changed(*state,
		"UPDATE audit SET digest = zeroblob(32) WHERE seq = (SELECT max(seq) FROM audit)",
		true);
}

static void
test_H1_records_changed_places(void **state)
{
	changed(*state,
		"UPDATE audit SET digest = (SELECT b.digest FROM audit b WHERE b.seq = 3 - "
		"audit.seq) WHERE seq <= 2",
		true);
}

static void
test_H1_everything_was_removed(void **state)
{
	struct play *p = *state;
	char path[96];

	fresh(p);
	play_kill(p);
	for (int i = 0; i < 3; i++) {
		(void)snprintf(path, sizeof(path), "%s/engine/engine.db%s", p->dir,
			(const char *const[]){"", "-wal", "-shm"}[i]);
		(void)unlink(path);
	}
	assert_true(quarantined(p));
}

static void
test_H1_a_full_tile_was_changed(void **state)
{
	struct play *p = *state;

	(void)many(p, 140);
	changed(p, "UPDATE audit_tile SET hashes = zeroblob(8192)", true);
}

/* The record beside its digest is not looked at when the engine starts: `audit verify` finds it, as any reader of the chain. */
static void
test_an_edit_beside_the_digest_is_found_by_readers(void **state)
{
	struct play *p = *state;
	struct audit_row r = {0};
	struct audit_chain chain = {0};
	struct msg_audit_row row;
	struct err err;

	changed(p,
		"UPDATE audit SET record = CAST(replace(CAST(record AS TEXT), 'engine.start', "
		"'engine.stops') AS BLOB) "
		"WHERE seq = 1",
		false);
	ASK(p, AUDIT_READ, audit_read, {.caller = as_root, .name = view_str("host"), .limit = 1});
	play_want(p, p->api, MSG_AUDIT_ROW);
	play_decoded(msg_audit_row_get(p->in.body, &row, &err), "AUDIT_ROW");
	r = (struct audit_row){.number = row.number, .record = row.record};
	memcpy(r.previous, row.previous, 32);
	memcpy(r.digest, row.record_digest, 32);
	assert_int_equal(audit_chain_add(&chain, &r, &err), -EBADMSG);
}

/* Holes and tiles that do not fit together: no store. */
static void
test_what_is_no_tree_is_refused(void **state)
{
	static const char *const sql[] = {"DELETE FROM audit WHERE seq = 2",
		"DELETE FROM audit_tile", "UPDATE audit_tile SET number = 7"};
	struct play *p = *state;

	(void)many(p, 140);
	for (size_t i = 0; i < ARRAY_LEN(sql); i++) {
		if (i != 0) {
			play_close(p);
			play_open(p);
			play_start(p);
			play_broker(p, false);
			(void)many(p, 140);
		}
		play_kill(p);
		edit(p, sql[i]);
		play_launch(p);
		assert_int_equal(WEXITSTATUS(play_wait(p)), 3);
	}
	play_close(p);
	play_open(p);
	play_start(p);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(every_record_is_proved),
		TEST(what_is_not_yours_is_not_proved),
		TEST(heads_come_by_themselves),
		TEST(a_head_that_is_refused),
		TEST(H3_a_text_is_no_record),
		TEST(a_restart_goes_on),
		TEST(H1_the_tail_was_cut),
		TEST(H1_the_last_records_are_others),
		TEST(H1_records_changed_places),
		TEST(H1_everything_was_removed),
		TEST(H1_a_full_tile_was_changed),
		TEST(an_edit_beside_the_digest_is_found_by_readers),
		TEST(what_is_no_tree_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
