/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes both ways between a program and a server, not looked at: tcp and passthrough, and a WebSocket after its 101. What is between two plain
 * sockets stays in the kernel. What each end had unread (stream_unread) goes first. A side that says that nothing follows is told to the other,
 * which may go on.
 */
#pragma once

#include "stream.h"

struct tunnel;

enum tunnel_way { TUNNEL_OUT /* from the program */, TUNNEL_IN };

enum tunnel_may {
	TUNNEL_PASS,
	TUNNEL_HOLD, /* this way stands still until tunnel_go_on(), then it is asked again */
	TUNNEL_STOP,
};

enum tunnel_end {
	TUNNEL_CLEAN, /* both sides said that nothing follows, and all was passed on */
	TUNNEL_CUT,   /* one of them failed: text says how */
	TUNNEL_IDLE,
	TUNNEL_LIFE,
	TUNNEL_STOPPED, /* `pass` said so */
};

struct tunnel_events {
	/* n bytes came and would be passed on now; each byte is told once (but after TUNNEL_HOLD again). Must not free the tunnel. */
	enum tunnel_may (*pass)(void *owner, enum tunnel_way way, size_t n);
	/* Once, from the loop, as the last event: the tunnel and both streams are gone. All but TUNNEL_CLEAN were resets. */
	void (*done)(void *owner, enum tunnel_end end, const char *text);
};

struct tunnel_limits {
	uint64_t idle_ms; /* no byte passed on in either way for so long; 0: for ever */
	uint64_t life_ms; /* altogether; 0: for ever */
};

/* Takes both streams, always: open ones, whose events come here from now on. NULL: no memory, they are closed. */
struct tunnel *tunnel_new(struct ev_loop *loop, struct stream *program, struct stream *server,
	const struct tunnel_limits *limits, const struct tunnel_events *events, void *owner);

/* There is room again: ways that were held ask. */
void tunnel_go_on(struct tunnel *t);

/* Both sides are reset; no event comes any more. */
void tunnel_abort(struct tunnel *t);
