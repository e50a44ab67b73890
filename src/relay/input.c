/* SPDX-License-Identifier: Apache-2.0 */
/* Stdin of a job: from its session or from a file that the engine gave, as far as the agent gave credit. */
#include "job.h"

#include <errno.h>
#include <unistd.h>

/* The next bytes at the front, without taking them; 0 when there are none now. */
static size_t
next_bytes(struct job *j, uint8_t *room, size_t n)
{
	ssize_t r;

	if (j->in.feed < 0) {
		n = n < j->in.wait.n ? n : j->in.wait.n;
		memcpy(room, j->in.wait.p, n);
		buf_drop(&j->in.wait, n);
		return n;
	}
	do
		r = read(j->in.feed, room, n);
	while (r < 0 && errno == EINTR);
	if (r > 0)
		return (size_t)r;
	(void)close(take_fd(&j->in.feed)); /* read only */
	if (r < 0) {
		/* The bytes are not what was announced: the operation must not be finished. */
		j->cancelled = true;
		job_stop(j);
	} else {
		j->in.end = true;
	}
	return 0;
}

static void
send_some(struct job *j)
{
	struct channel_out *out = &j->relay->out;
	size_t n = j->in.credit < CHANNEL_DATA_MAX ? (size_t)j->in.credit : CHANNEL_DATA_MAX;
	uint8_t *room = channel_data_room(out, n);

	if (room == NULL)
		return;
	n = next_bytes(j, room, n);
	if (n == 0)
		return;
	if (j->hashed)
		sha256_add(&j->hash, room, n);
	channel_data_commit(out, FRAME_STDIN, j->stream, n);
	j->in.credit -= n;
	j->in.bytes += n;
}

void
input_pump(struct job *j)
{
	while (j->state == JOB_RUNNING && j->in.credit > 0 &&
		(j->in.feed >= 0 || j->in.wait.n > 0) &&
		channel_out_left(&j->relay->out) < RELAY_BACKLOG_BYTES) {
		uint64_t before = j->in.bytes;

		send_some(j);
		if (j->in.bytes == before)
			break;
	}
	if (j->state == JOB_RUNNING && j->in.end && !j->in.end_sent && j->in.wait.n == 0 &&
		j->in.feed < 0) {
		CHANNEL_PUT(&j->relay->out, j->stream, STDIN_END, stdin_end, {0});
		j->in.end_sent = true;
	}
	if (j->session != NULL)
		ipc_peer_pause(j->session, j->in.wait.n >= RELAY_INPUT_BYTES && job_runs(j));
}
