/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stand-in for engine, relay and supervisor, for tests of the api alone. It speaks the generated messages and does what
 * the text of a command says ("exit 7", "flood 100000"), so that each behaviour of a real host can be had on demand,
 * the bad ones too. Nothing of it is part of the system.
 */
#pragma once

#include "lib/ipc/local_bounds.h"
#include "lib/ipc/peer.h"

enum {
	FAKE_SANDBOXES = 64,
	FAKE_JOBS = 4096,
	FAKE_FILES = 256,
	FAKE_TOKENS = 32,
	FAKE_INPUTS = 16
};

struct fake_file {
	char path[4097];
	struct buf bytes;
	uint32_t mode;
	bool directory, used;
};

struct fake_sandbox {
	struct id id, task;
	uint8_t key[32], key_body[32];
	char template[64], policy[64];
	struct buf metadata;
	uint64_t ttl_ms, idle_ms, created_ms;
	bool persistent, paused, gone, used;
};

struct fake_job {
	struct fake *fake;
	struct id id, sandbox;
	uint64_t tag; /* of whom waits for the row; 0 = nobody */
	enum job_kind kind;
	enum job_reason reason;
	int code;
	bool holders, live, pty;
	bool out_ended; /* the session has all output */
	bool cell_open; /* CELL_BEGIN was answered with DONE and CELL_END has not come */
	char text[1024];
	char path[4097];
	struct buf out[OUTPUT_MAX], in;
	uint64_t sent[OUTPUT_MAX];
	uint64_t keep, timeout_ms, size;
	uint32_t mode;
	struct ipc_peer *session;
	ev_timer timer;
	pid_t child; /* python3: the real one */
	int child_in;
	ev_io child_out;
	bool used;
};

struct fake_token {
	uint8_t digest[32];
	char prefix[13], label[129];
	uint64_t expires_ms;
	bool used, revoked;
};

struct fake_input {
	char path[4097];
	uint64_t tag;
	int fd;
	bool used, complete;
};

struct fake {
	struct ev_loop *loop;
	struct ipc_peer *engine; /* our end of API_ENGINE */
	int supervisor;          /* our end of SUPERVISOR_API */
	uint32_t admin_uid;
	uint32_t locals[LOCAL_BOUND]; /* uid + 1; 0: no such caller */
	struct fake_sandbox sandboxes[FAKE_SANDBOXES];
	struct fake_job *jobs[FAKE_JOBS];
	size_t njobs, ncreated;
	struct fake_file files[FAKE_FILES];
	struct fake_token tokens[FAKE_TOKENS];
	struct fake_input inputs[FAKE_INPUTS];
	ev_timer restart;
};

/* fake_job.c */
struct fake_job *fake_job_new(struct fake *f, uint64_t tag, const struct msg_job_run *m);
void fake_job_attach(struct fake_job *j, uint64_t tag, uint64_t from_out, uint64_t from_err);
void fake_job_start(struct fake_job *j, struct view argv);
void fake_job_end(struct fake_job *j, enum job_reason reason, int code);
void fake_job_row(struct fake_job *j, uint64_t tag);

/* fake_engine.c */
void fake_crash(struct fake *f);
void fake_send_rubbish(struct fake *f);
void fake_hang_up(struct fake *f);
