/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes on a connected socket, plain or inside TLS, in the event loop. One for the program's side, one for the server's. It knows nothing of
 * HTTP. Non-blocking; the owner is told when something can be read or written again, only from the loop, never from within a call.
 */
#pragma once

#include "lib/base/err.h"
#include "lib/base/view.h"

#include <ev.h>
#include <sys/types.h>

struct ca;
struct roots;
struct stream;

enum { STREAM_UNREAD_MAX = 64 * 1024 };

enum stream_state {
	STREAM_OPEN,    /* bytes may be read and written */
	STREAM_SHAKING, /* a handshake is under way: nothing can be read or written */
	STREAM_FAILED,  /* fault says why */
};

struct stream_events {
	void (*readable)(void *owner);
	void (*writable)(void *owner); /* only while stream_want_write() */
	void (*shaken)(void *owner);   /* the handshake succeeded */
	/*
	 * Once, whether a call found it or the loop; the owner closes it. -ECONNABORTED: the other end does not accept our certificate;
	 * -EKEYREJECTED: we do not accept its; -ECONNRESET: cut; -EPROTO: it breaks TLS.
	 */
	void (*failed)(void *owner, const struct err *why);
};

/* Takes fd (non-blocking, connected). Never NULL but for memory. Nothing is read before stream_want_read(). */
struct stream *stream_new(
	struct ev_loop *loop, int fd, const struct stream_events *events, void *owner);

/* Another owner hears the events from now on; nothing is wanted until it says so. */
void stream_give(struct stream *s, const struct stream_events *events, void *owner);

enum stream_state stream_state(const struct stream *s);

/*
 * Bytes that were read before are read again, before all that follows: by the handshake that begins after this (a ClientHello), or by
 * stream_read(). At most STREAM_UNREAD_MAX altogether.
 */
int stream_unread(struct stream *s, struct view bytes, struct err *err) MUST_CHECK;

/* As server, with a certificate for exactly this canonical name. The server name of the hello must be the same: it is tested here again. */
int stream_serve_tls(struct stream *s, struct ca *ca, struct view name, struct err *err) MUST_CHECK;

/* As client: server name, verification of the host name (or of the address, when name is one) against these roots (empty: the system's); TLS 1.2 at least. */
int stream_connect_tls(struct stream *s, struct roots *roots, struct view name, struct view pinned,
	struct err *err) MUST_CHECK;

/*
 * > 0 bytes; 0: a clean end (close_notify, or FIN on a plain one); -EAGAIN, after `readable` too; else the stream failed (a TLS connection that
 * is cut without close_notify too).
 */
ssize_t stream_read(struct stream *s, void *room, size_t n);
/* >= 1 bytes taken (of >= 1); -EAGAIN: wait for writable; else failed. After -EAGAIN other bytes may be given the next time. */
ssize_t stream_write(struct stream *s, struct view bytes);

void stream_want_read(struct stream *s, bool on);
void stream_want_write(struct stream *s, bool on);

/* Nothing follows from us: close_notify and FIN, behind all that was taken. */
void stream_shut(struct stream *s);
/*
 * abort: a reset, so that what was cut can never look complete. Else as stream_shut(), and what was taken is still sent, within LIMIT_LINGER_MS.
 * Frees it, at the end of the turn at the earliest; no event comes any more.
 */
void stream_close(struct stream *s, bool abort);
/* No stream of this process lingers any more (the end). */
void streams_end(void);

/* The socket itself, for splicing; -1 inside TLS, and while bytes are unread. Stays the stream's. */
int stream_fd(const struct stream *s);
/* The peer closed or sent what nobody asked for: an idle connection that must not be used again. */
bool stream_stale(struct stream *s);
