/* SPDX-License-Identifier: Apache-2.0 */
/* The processes beside us as they hang together: who gets which end of which edge when one is started. Tables: rooms.def. */
#pragma once

#include "supervisor/child.h"

#include "lib/base/view.h"
#include "proto_gen.h"

enum member_id {
#define MEMBER(NAME, name) MEMBER_##NAME,
#include "supervisor/rooms.def"
#undef MEMBER
	MEMBER_MAX
};

enum pair {
#define PAIR(ONE, one_told, OTHER, other_told) PAIR_##ONE##_##OTHER,
#include "supervisor/rooms.def"
#undef PAIR
	PAIR_MAX
};

struct member {
	enum member_id id;
	struct child child;
	int edge; /* owned: our end of its edge, only written; -1. That of the engine is a peer, see serve.c */
	int waiting[PAIR_MAX]; /* owned: ends of pairs that wait for it; -1 */
};

struct supervisor;

/* Sets them up; rooms_begin() starts them, rooms_end() ends them and closes what waited for them. */
void rooms_init(struct supervisor *sv);
void rooms_begin(struct supervisor *sv);
void rooms_end(struct supervisor *sv);

/* None that ends is started again. */
void rooms_stopping(struct supervisor *sv);

/* The broker is told to end, and gets its time for what it has sent: true when it is gone. To be asked again until then. */
bool rooms_last(struct supervisor *sv);

/* Ends in order those that hold a catalogue; the next ones start with what is there now. */
void rooms_renew(struct supervisor *sv);

/* 0; -EAGAIN: it has no room now; else it is of no use any more. */
int member_write(struct member *m, enum msg_type type, struct view body, const int *fds,
	size_t nfds, struct err *err) MUST_CHECK;

/* A message on an edge that is only written, with a descriptor or -1. A process that does not read is started anew: false. */
bool member_tell(struct member *m, enum msg_type type, struct view body, int fd);
