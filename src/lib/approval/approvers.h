/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file of approvers (docs/decisions/0003-actions.md): which key belongs to which person, and what that person may decide. The broker
 * reads it, `demilune approver` writes it and reads its own result before it replaces anything. Bytes in, tables out; no file is opened
 * here. One line that is not exactly of the form spoils the file: nothing of it is used.
 *
 * The checks are separate functions in the order of check.def, so that a refusal has one name.
 */
#pragma once

#include "lib/approval/sshsig.h"

enum {
	APPROVERS_BYTES_MAX = 262144,
	APPROVERS_MAX = 256, /* lines, comments too */
	APPROVER_LINE_MAX = 4096,
	APPROVER_WORD_MAX = 63, /* operations and arguments */
	APPROVER_PRINCIPAL_MAX = 96,
	APPROVER_NAME_MAX = 63,  /* [a-z][a-z0-9._-]* */
	APPROVER_LIST_MAX = 64,  /* entries of may=, role=, tenant= and principal= */
	APPROVER_LIMITS_MAX = 8, /* entries of up-to= */
};

/* The role of whoever may give authority back. */
#define APPROVER_ROLE_RELEASE "release"

struct approver_limit {
	struct view argument;
	int64_t most; /* of its absolute value */
};

/* One key. Views point into struct approvers. */
struct approver {
	struct view name;
	struct view may, role, tenant, principal; /* lists with commas between */
	struct approver_limit limit[APPROVER_LIMITS_MAX];
	size_t nlimits;
	uint64_t valid_until_ms; /* 0: always; at this millisecond it is over */
	bool verify_required;
	struct sshkey key;
	struct view line; /* without its end */
};

struct approvers {
	struct approver *a; /* owned, in the order of the file */
	size_t n;
	size_t people;                /* distinct names */
	uint8_t digest[SHA256_BYTES]; /* SHA-256 of the file */
	struct view file;             /* owned */
	struct buf keys;              /* owned: the decoded keys */
};

/* -EINVAL with the number of the line and what is wrong. *ret is untouched on failure. */
int approvers_read(struct view file, struct approvers *ret, struct err *err) MUST_CHECK;
void approvers_done(struct approvers *a);

static inline void
approvers_cleanup(struct approvers *a)
{
	approvers_done(a);
}
#define auto_approvers __attribute__((cleanup(approvers_cleanup)))

/* By the bytes of the public key; NULL: it belongs to nobody. */
const struct approver *approvers_find(const struct approvers *a, struct view key_blob);

/* Is `entry` in a list with commas? */
bool approver_lists(struct view list, struct view entry);

bool approver_name_ok(struct view name);
bool approver_valid(const struct approver *a, uint64_t now_ms);
bool approver_may(const struct approver *a, struct view operation);
/* One of the roles: an array of texts, of the operation's tier; true when it asks for none. */
bool approver_has_role(const struct approver *a, const struct view *role, size_t n);

/* Whose actions the person decides about: without tenant=, everybody's. */
bool approver_for(const struct approver *a, struct view tenant);

/* Is `who` ("uid:1000", "token:PREFIX", ...) this person, by principal= or by name? */
bool approver_is(const struct approver *a, struct view who);

/*
 * Are the arguments (a canonical object) within up-to=? Each limit names an integer of the operation or is not about it; where the
 * operation has an amount, someone with limits must have one for it.
 */
bool approver_within(const struct approver *a, struct view arguments, struct view amount_argument);

/* "2026-11-29T16:13:04Z" */
int approver_time(struct view text, uint64_t *ret_ms) MUST_CHECK;
