/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The world around the real dialer: a network namespace with loopback alone, a name server that lies and writes down each question, listeners
 * at public, private and loopback addresses. The test is the dialer's supervisor and its broker.
 */
#pragma once

#include "name_server.h"

#include "lib/base/buf.h"
#include "lib/ipc/datagram.h"

#include <sys/types.h>

enum { PORT = 4433, FULL_PORT = 4434, SECOND_PORT = 4435, NOBODY_PORT = 4436, UID = 77177 };

struct world {
	struct question_log *asked; /* shared with the name server */
	pid_t server;
	int listener, full, fillers[8]; /* [::]:PORT, and one whose queue is full */
	int second;                     /* 93.184.216.35:SECOND_PORT only */
	int broker, supervisor, pidfd;  /* of the dialer that runs */
	pid_t dialer;
};
extern struct world world;

int world_setup(void **state);
int world_teardown(void **state);

void pair(int *mine, int *theirs);
void say(int edge, enum msg_type type, uint64_t tag, const struct buf *body, const int *fds,
	size_t nfds);
#define SAY(edge, tag, NAME, name, fds, nfds, ...)          \
	do {                                                \
		const struct msg_##name m_ = __VA_ARGS__;   \
		auto_buf struct buf b_;                     \
		buf_init(&b_, IPC_MAX);                     \
		msg_##name##_put(&b_, &m_);                 \
		say(edge, MSG_##NAME, tag, &b_, fds, nfds); \
	} while (0)
int sealed(const char *text, int seals);
enum { SEALS = 15 }; /* all four */

/* With this table of origins; told these ports (0 behind the last; NULL: none) and name servers. */
void dialer_start(const char *origins, const uint16_t *ports, const char *first, const char *next);
void dialer_end(void);
int dialer_ended(void); /* its exit code when it ends by itself, or -signal */

int questions(const char *host, int type); /* type 0: any */
int connections(int fd);                   /* that came to the listener since the last look */
bool closed(int edge);
