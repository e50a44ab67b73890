/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A whole supervisor for tests: the real binary with a configuration of the test's, the stand-ins of fake/ beside it (or
 * the real relay and agent), and the test itself in the engine's place. Everything below one temporary directory.
 */
#pragma once

#include "lib/ipc/datagram.h"

#include <sys/types.h>

struct rig {
	char dir[64]; /* temporary */
	struct settings settings;
	pid_t pid;    /* of the supervisor; 0: not running */
	int listener; /* where the stand-in engine calls */
	int link;     /* to the stand-in engine process; closing it ends that */
	pid_t engine_pid;
	int edge;      /* ENGINE_SUPERVISOR */
	int api;       /* API_ENGINE */
	int broker;    /* ENGINE_BROKER */
	int catalogue; /* the compiled operations */
	int policies;  /* all compiled policies */
	uint8_t *room;
	uint64_t tag;
	char tags[32][16]; /* of the supervisors that ran: names of their control groups */
	size_t ntags;
	uint8_t image[32]; /* digest of the test's template */
	bool aside; /* the supervisor starts in a control group of its own, not in the test's */
};

struct box {
	struct id id, task;
	struct facts facts;
	struct timings timings;
	uint8_t policy[32]; /* zero: none */
	int gateway_edge;   /* GATEWAY_ENGINE, with a policy; -1 */
	int engine_edge;    /* RELAY_ENGINE */
	int channel;        /* to the agent, from the stand-in relay; -1 */
};

/* Makes directory, template image and default settings; starts nothing. */
void rig_init(struct rig *r);
/* Ends and removes all of it, also what a test that failed left: control groups too. */
void rig_done(struct rig *r);

/* Starts the supervisor; waits for its engine's call. `extra`: more arguments, NULL-terminated, may be NULL. */
void rig_start(struct rig *r);

/* The directory of operations has this text for the stand-in compiler; NULL: there is no such directory. */
void rig_operations(struct rig *r, const char *text);

/* The same for the directory of policies: a line each (fake/config.c). */
void rig_policies(struct rig *r, const char *text);

/* The next text that the stand-in broker says on its edge to the engine. */
void rig_broker_says(int edge, char *ret, size_t n);

/* Starts it and returns its exit status, for starts that must fail. */
int rig_start_fails(struct rig *r, const char *config_text);

/* The next engine's call (after the last one was lost). */
void rig_engine_accept(struct rig *r);

/* Takes the messages up to HELD_END; returns the numbers of HELD and LEFTOVER. HELD edges go to ret (n at most). */
struct held {
	struct msg_held m;
	int edge;
	int gateway; /* GATEWAY_EDGE; -1 */
};
struct greeting {
	struct held held[256];
	size_t nheld;
	struct msg_leftover left[256];
	size_t nleft;
	struct msg_settings settings;
};
void rig_greeting(struct rig *r, struct greeting *ret);

/* SIGTERM, plays the engine's part, waits; the exit status. */
int rig_stop(struct rig *r);
void rig_kill(struct rig *r); /* SIGKILL */

void rig_send(struct rig *r, enum msg_type type, const struct buf *body);
void rig_send_raw(struct rig *r, const void *p, size_t n, const int *fds, size_t nfds);

/* The next message; fails the test when it is of another type, or none comes in 10 s. */
void rig_expect(struct rig *r, enum msg_type type, struct ipc_msg *ret);
/* The next message of whatever type. False after timeout_ms or when the edge is closed. */
bool rig_next(struct rig *r, int timeout_ms, struct ipc_msg *ret);

/* TEMPLATE_PREPARE of the rig's image, TEMPLATE_READY. */
void rig_template(struct rig *r);

struct limits rig_limits(void);
void rig_spawn_ask(struct rig *r, struct box *b, const struct limits *l, uint64_t ttl_ms);
/* Waits for SPAWNED of this box. */
void rig_spawned(struct rig *r, struct box *b);
/* With the policy of this line; asked only, and with its answer. */
void rig_spawn_policy_ask(struct rig *r, struct box *b, const char *line);
void rig_spawn_policy(struct rig *r, struct box *b, const char *line);
void rig_spawn(struct rig *r, struct box *b);
void rig_kill_box(struct rig *r, struct box *b, struct msg_gone *ret);
void box_close(struct box *b);

/* One command to the stand-in agent. */
struct said {
	long long n;
	int code;
};
struct said box_say(struct box *b, const char *format, ...) PRINTF(2, 3);

/* What the host has: for leak checks. */
struct host {
	size_t processes, mounts, groups, namespaces;
};
struct host host_look(const struct rig *r);
/* Nothing of a sandbox is on the host any more: waited for, since namespaces of dead processes go a little later. */
void host_is_clean(const struct rig *r);
void proof_is_zero(const struct proof *p);
size_t process_fds(pid_t pid);
bool process_lives(pid_t pid);
void pause_ms(unsigned ms);
