/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The relay itself: its channel, its edges, its jobs. One object, made by main.c, handed to all.
 */
#pragma once

#include "limits.h"
#include "propose.h"
#include "store.h"

#include "lib/base/list.h"
#include "lib/channel/channel.h"
#include "lib/ipc/peer.h"

enum relay_state {
	RELAY_WAITING, /* for HELLO */
	RELAY_LIVE,
	RELAY_LOST,
};

enum relay_exit {
	EXIT_CLOSED = 0,
	EXIT_NO_START = 1,
	EXIT_PROTOCOL = 2,
	EXIT_SILENT = 3,
};

struct relay {
	struct ev_loop *loop;
	enum relay_state state;
	enum relay_exit exit;
	struct ipc_peer *engine; /* NULL while the engine is away; peer->state is `state` */
	struct ipc_peer *supervisor;
	int channel; /* owned */
	ev_io readable, writable;
	ev_timer hello, sweep, ping, told;
	struct channel_in in;
	struct channel_out out;
	struct link jobs;   /* of struct job, oldest first */
	size_t live, ended; /* jobs that run; jobs that are recorded and can still be attached */
	uint32_t last_stream;
	uint32_t agent_version;
	uint64_t ping_value;
	bool ping_open; /* no answer yet */
	bool frozen;
	bool trusts; /* the agent was told what its programs are to trust */
	struct store_budget budget;
	struct proposals proposals;
};

/* serve.c */
struct ipc_peer *serve_engine(struct relay *r, int fd, struct err *err) MUST_CHECK;
struct ipc_peer *serve_supervisor(struct relay *r, int fd, struct err *err) MUST_CHECK;

/* guest.c: the agent's side. */
void guest_start(struct relay *r);

/* An agent has the channel now: its first frame comes in time, or it is lost. */
void guest_due(struct relay *r);

/* Sends what was put into r->out; called once after it was. */
void guest_flush(struct relay *r);

/* The agent broke the protocol, or is silent: tells the engine, once, and ends the loop. */
void guest_lost(struct relay *r, enum relay_exit how, const struct err *why);

/* While jobs run it must answer. */
void guest_watch(struct relay *r);
