/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processes beside us; see room.h and rooms.def. The edge between two of them is made by whoever is started second:
 * the end for the one that runs is sent to it, the end for one that does not run yet waits for it.
 */
#include "supervisor/room.h"

#include "lib/base/fd.h"
#include "lib/base/log.h"
#include "supervisor/broker.h"
#include "supervisor/edges.h"
#include "supervisor/limits.h"
#include "supervisor/serve.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>

static const struct {
	const char *noun;
	enum program program;
	size_t uid_at;  /* in the settings */
	int supervisor; /* number of its edge to us */
} members[MEMBER_MAX] = {
#define MEMBER(NAME, name) \
	{#name, PROGRAM_##NAME, offsetof(struct settings, name##_uid), FD_##NAME##_SUPERVISOR},
#include "supervisor/rooms.def"
#undef MEMBER
};

/* [0] and [1]: the two ends. */
static const struct {
	enum member_id member[2];
	int fd[2];
	enum msg_type told[2];
} pairs[PAIR_MAX] = {
#define PAIR(ONE, one_told, OTHER, other_told)                                     \
	{{MEMBER_##ONE, MEMBER_##OTHER}, {FD_##ONE##_##OTHER, FD_##OTHER##_##ONE}, \
		{MSG_##one_told, MSG_##other_told}},
#include "supervisor/rooms.def"
#undef PAIR
};

enum { FIRST_FD = 3, START_FDS = 8, AGAIN = 2 };

/* What a process starts with by number, and the ends that others get once it runs. */
struct starting {
	int fds[START_FDS]; /* borrowed, of number FIRST_FD and up; -1 */
	size_t nfds;
	int mine, theirs; /* owned: its edge to us */
	int again[AGAIN]; /* owned: memory files, opened for it */
	size_t nagain;
	int own[PAIR_MAX];   /* owned: its ends */
	int other[PAIR_MAX]; /* owned: the other ends of pairs that are new; -1 */
};

static void
starting_done(struct starting *s)
{
	fd_close_kept(&s->mine);
	fd_close_kept(&s->theirs);
	while (s->nagain > 0)
		(void)close(s->again[--s->nagain]); /* it has its own */
	for (size_t i = 0; i < PAIR_MAX; i++) {
		fd_close_kept(&s->own[i]);
		fd_close_kept(&s->other[i]);
	}
}

#define auto_starting __attribute__((cleanup(starting_done)))

static void
starting_init(struct starting *s)
{
	*s = (struct starting){.mine = -1, .theirs = -1};
	for (size_t i = 0; i < START_FDS; i++)
		s->fds[i] = -1;
	for (size_t i = 0; i < PAIR_MAX; i++)
		s->own[i] = s->other[i] = -1;
}

static void
starting_give(struct starting *s, int number, int fd)
{
	size_t i = (size_t)(number - FIRST_FD);

	must(i < START_FDS);
	s->fds[i] = fd;
	if (s->nfds <= i)
		s->nfds = i + 1;
}

static int
starting_reopen(struct starting *s, int fd)
{
	char path[32];
	int again;

	must(s->nagain < AGAIN);
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	again = open(path, O_RDONLY | O_CLOEXEC);
	if (again >= 0)
		s->again[s->nagain++] = again;
	return again;
}

static int
starting_check(const struct starting *s, struct err *err)
{
	for (size_t i = 0; i < s->nfds; i++)
		if (s->fds[i] < 0)
			return err_set(
				err, -EBADF, "there is no descriptor for number %zu", i + FIRST_FD);
	return 0;
}

/* Which end of this pair is this member: 0, 1, or -1. */
static int
pair_end(size_t pair, enum member_id id)
{
	if (pairs[pair].member[0] == id)
		return 0;
	return pairs[pair].member[1] == id ? 1 : -1;
}

/* The edge to us, and for each pair the end that waited, or one of a new pair. */
static int
edges_make(struct member *m, struct starting *s, struct err *err)
{
	int both[2];
	int r = ipc_pair(both, err);

	if (r < 0)
		return r;
	s->mine = both[0];
	s->theirs = both[1];
	starting_give(s, members[m->id].supervisor, s->theirs);
	for (size_t i = 0; i < PAIR_MAX; i++) {
		int end = pair_end(i, m->id);

		if (end < 0)
			continue;
		s->own[i] = take_fd(&m->waiting[i]);
		if (s->own[i] < 0) {
			r = ipc_pair(both, err);
			if (r < 0)
				return r;
			s->own[i] = both[0];
			s->other[i] = both[1];
		}
		starting_give(s, pairs[i].fd[end], s->own[i]);
	}
	return 0;
}

int
member_write(struct member *m, enum msg_type type, struct view body, const int *fds, size_t nfds,
	struct err *err)
{
	auto_buf struct buf packed;

	buf_init(&packed, IPC_MAX);
	ipc_pack(&packed, type, 0, body);
	if (buf_check(&packed) < 0)
		return err_set(err, -ENOMEM, "no memory");
	return ipc_write(m->edge, buf_view(&packed), fds, nfds, err);
}

bool
member_tell(struct member *m, enum msg_type type, struct view body, int fd)
{
	struct err err = {0};

	if (member_write(m, type, body, &fd, fd >= 0, &err) == 0)
		return true;
	log_line("the %s does not take what it is told: %s", members[m->id].noun, err.text);
	child_kill(&m->child);
	return false;
}

/* Hands the other ends of new pairs over. Messages with an end have no body. */
static void
edges_tell(struct supervisor *sv, struct member *m, struct starting *s)
{
	for (size_t i = 0; i < PAIR_MAX; i++) {
		int end = pair_end(i, m->id);
		struct member *other;
		enum msg_type told;

		if (end < 0 || s->other[i] < 0)
			continue;
		other = &sv->members[pairs[i].member[!end]];
		told = pairs[i].told[!end];
		if (other->id == MEMBER_ENGINE && sv->engine_peer != NULL)
			ipc_peer_send(sv->engine_peer, told, 0, view_of(NULL, 0), &s->other[i], 1);
		else if (other->id != MEMBER_ENGINE && other->edge >= 0)
			(void)member_tell(other, told, view_of(NULL, 0),
				s->other[i]); /* one that fails is started anew */
		else
			other->waiting[i] = take_fd(&s->other[i]);
	}
}

/* The first words to one that runs now. */
static int
greet(struct supervisor *sv, struct member *m, struct starting *s, struct err *err)
{
	if (m->id == MEMBER_ENGINE)
		return serve_engine(sv, take_fd(&s->mine), err);
	m->edge = take_fd(&s->mine);
	if (m->id == MEMBER_BROKER)
		broker_greet(sv, m);
	if (m->id == MEMBER_DIALER && edges_ports_tell(sv, m)) {
		struct msg_dialer_begin begin = {0};
		auto_buf struct buf body;

		memcpy(begin.resolvers, sv->settings.resolvers, sizeof(begin.resolvers));
		buf_init(&body, IPC_MAX);
		msg_dialer_begin_put(&body, &begin);
		(void)member_tell(m, MSG_DIALER_BEGIN, buf_view(&body), -1); /* as above */
	}
	return 0;
}

static int
member_start(struct child *c, struct err *err)
{
	struct member *m = container_of(c, struct member, child);
	struct supervisor *sv = c->owner;
	auto_starting struct starting s;
	char address[96] = "none";
	int r;

	starting_init(&s);
	r = m->id == MEMBER_BROKER ? broker_prepare(sv, err) : 0;
	if (r == 0)
		r = edges_make(m, &s, err);
	if (r < 0)
		return r;
#define GIVEN(NAME, DESCRIPTOR, what) \
	if (m->id == MEMBER_##NAME)   \
		starting_give(&s, FD_##NAME##_##DESCRIPTOR, what);
#include "supervisor/rooms.def"
#undef GIVEN
	r = starting_check(&s, err);
	if (r < 0)
		return r;
	if (sv->settings.tcp_address[0] != '\0')
		(void)snprintf(address, sizeof(address), "%s:%u", sv->settings.tcp_address,
			sv->settings.tcp_port);
	const struct program_start start = {.path = sv->programs.path[members[m->id].program],
		.argument = m->id == MEMBER_API ? address : NULL,
		.uid = *(const uint32_t *)(const void *)((const char *)&sv->settings +
							 members[m->id].uid_at),
		.fds = s.fds,
		.nfds = s.nfds};

	c->pid = program_start(&start, &c->pidfd, err);
	if (c->pid < 0)
		return (int)c->pid;
	r = greet(sv, m, &s, err);
	if (r < 0) {
		program_end(&c->pidfd);
		return r;
	}
	edges_tell(sv, m, &s);
	edges_renew(sv, m->id);
	return 0;
}

static void
member_ended(struct child *c)
{
	struct member *m = container_of(c, struct member, child);
	struct supervisor *sv = c->owner;

	fd_close_kept(&m->edge);
	/* Ends for others of pairs that it was to have: they get new ones. */
	for (size_t i = 0; i < PAIR_MAX; i++) {
		int end = pair_end(i, m->id);

		if (end >= 0)
			fd_close_kept(&sv->members[pairs[i].member[!end]].waiting[i]);
	}
	if (m->id == MEMBER_ENGINE)
		serve_engine_lost(sv);
}

void
rooms_init(struct supervisor *sv)
{
	for (enum member_id i = 0; i < MEMBER_MAX; i++) {
		struct member *m = &sv->members[i];

		*m = (struct member){.id = i,
			.edge = -1,
			.child = {.noun = members[i].noun,
				.loop = sv->loop,
				.start = member_start,
				.ended = member_ended,
				.owner = sv,
				.end_ms = i == MEMBER_BROKER ? LIMIT_BROKER_END_MS : LIMIT_END_MS}};
		for (size_t k = 0; k < PAIR_MAX; k++)
			m->waiting[k] = -1;
		child_init(&m->child);
	}
}

void
rooms_begin(struct supervisor *sv)
{
	for (size_t i = 0; i < MEMBER_MAX; i++)
		child_begin(&sv->members[i].child);
}

void
rooms_stopping(struct supervisor *sv)
{
	for (size_t i = 0; i < MEMBER_MAX; i++)
		sv->members[i].child.stopping = true;
}

void
rooms_renew(struct supervisor *sv)
{
	child_end(&sv->members[MEMBER_ENGINE].child);
	child_end(&sv->members[MEMBER_BROKER].child);
	child_end(&sv->members[MEMBER_DIALER].child);
}

bool
rooms_last(struct supervisor *sv)
{
	struct child *broker = &sv->members[MEMBER_BROKER].child;

	child_end(broker);
	return broker->pidfd < 0;
}

/* From the api down, so that nobody asks one that is gone. */
void
rooms_end(struct supervisor *sv)
{
	for (size_t i = MEMBER_MAX; i-- > 0;)
		child_stop(&sv->members[i].child);
	ipc_peer_close(sv->engine_peer);
	sv->engine_peer = NULL;
	for (size_t i = 0; i < MEMBER_MAX; i++) {
		fd_close_kept(&sv->members[i].edge);
		for (size_t k = 0; k < PAIR_MAX; k++)
			fd_close_kept(&sv->members[i].waiting[k]);
	}
}
