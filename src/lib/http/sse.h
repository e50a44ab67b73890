/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames of text/event-stream as existing clients can read them: bare LF, one data line, ASCII only
 * (one client decodes Latin-1 and cuts lines at U+0085, another loses CRLF), an empty line behind
 * every frame. Send them chunked, one chunk per frame, with "text/event-stream; charset=utf-8".
 */
#pragma once

#include "lib/base/buf.h"

/*
 * "event: name\ndata: ...\n\n"; name NULL: no event line. -EINVAL and nothing written when data
 * has a byte outside of 0x20 to 0x7e or name is not lower-case letters and '_'; -ENOBUFS.
 */
int sse_frame(struct buf *out, const char *name, struct view data) MUST_CHECK;

/* ": text\n\n", the heartbeat. */
int sse_comment(struct buf *out, struct view text) MUST_CHECK;
