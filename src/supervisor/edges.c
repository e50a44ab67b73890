/* SPDX-License-Identifier: Apache-2.0 */
/* Edges of gateways; see edges.h. Called by room.c when dialer or broker starts, and by sandboxes through serve.c. */
#include "supervisor/edges.h"

#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/base/log.h"
#include "supervisor/limits.h"

#include <errno.h>

static const struct {
	enum member_id member;
	enum sandbox_due due;
	enum msg_type told_gateway;
} rows[] = {
	{MEMBER_DIALER, DUE_DIALER, MSG_GATEWAY_DIALER},
	{MEMBER_BROKER, DUE_BROKER, MSG_GATEWAY_BROKER},
};

/* Their two messages are one. */
static int
member_gets(struct member *m, const struct sandbox *sb, const int fds[2], struct err *err)
{
	auto_buf struct buf body;

	buf_init(&body, IPC_MAX);
	if (m->id == MEMBER_DIALER) {
		struct msg_dialer_gateway to = {.sandbox = sb->id};

		memcpy(to.policy, sb->policy->is.policy, sizeof(to.policy));
		msg_dialer_gateway_put(&body, &to);
		return member_write(m, MSG_DIALER_GATEWAY, buf_view(&body), fds, 2, err);
	}
	struct msg_broker_gateway to = {.sandbox = sb->id};

	memcpy(to.policy, sb->policy->is.policy, sizeof(to.policy));
	msg_broker_gateway_put(&body, &to);
	return member_write(m, MSG_BROKER_GATEWAY, buf_view(&body), fds, 2, err);
}

/* A gateway that takes no edge is lost, and its sandbox with it. */
static void
gateway_gets(struct sandbox *sb, enum msg_type type, int fd)
{
	struct err err = {0};

	if (gateway_edge(&sb->gateway, type, fd, &err) == 0)
		return;
	if (sb->fault.code == 0)
		sb->fault = err;
	log_line("%s: its gateway does not take an edge: %s", sb->name, err.text);
	sandbox_kill(sb, sb->told ? SANDBOX_REASON_GATEWAY_LOST : SANDBOX_REASON_SPAWN_FAILED);
}

/* 0; -EAGAIN: later; else it is the member that is lost. */
static int
edge_give(struct member *m, struct sandbox *sb, enum msg_type told_gateway, struct err *err)
{
	auto_fd int one = -1, other = -1, policy = revision_open(sb->policy, err);
	int pair[2];
	int r = policy < 0 ? policy : ipc_pair(pair, err);

	if (r < 0)
		return -EAGAIN; /* too many files are open: there will be fewer */
	one = pair[0];
	other = pair[1];
	r = member_gets(m, sb, (const int[]){other, policy}, err);
	if (r == 0)
		gateway_gets(sb, told_gateway, one);
	return r;
}

static void
later(struct supervisor *sv, struct member *m, const struct err *why)
{
	if (sv->edges_since_ms == 0)
		sv->edges_since_ms = clock_mono_ms();
	if (clock_mono_ms() - sv->edges_since_ms > LIMIT_EDGES_MS) {
		log_line("edges to gateways are not taken: %s", why->text);
		child_kill(&m->child);
		sv->edges_since_ms = 0;
	}
	if (!ev_is_active(&sv->edges_timer))
		ev_timer_start(sv->loop, &sv->edges_timer);
}

static void
row_give(struct supervisor *sv, size_t row)
{
	struct member *m = &sv->members[rows[row].member];

	if (m->edge < 0)
		return; /* edges_renew() when there is one */
	list_each (sb, &sv->sandboxes.list, struct sandbox, link) {
		struct err err = {0};
		int r;

		if ((sb->due & rows[row].due) == 0 || sb->phase >= PHASE_KILLING)
			continue;
		r = edge_give(m, sb, rows[row].told_gateway, &err);
		if (r == 0) {
			sb->due &= ~(unsigned)rows[row].due;
			continue;
		}
		if (r == -EAGAIN) {
			later(sv, m, &err);
		} else {
			log_line("an edge to a gateway is not taken: %s", err.text);
			child_kill(&m->child);
		}
		return;
	}
}

void
edges_give(struct supervisor *sv)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		row_give(sv, i);
	if (!ev_is_active(&sv->edges_timer))
		sv->edges_since_ms = 0;
}

static void
on_timer(struct ev_loop *loop, ev_timer *w, int events)
{
	(void)loop, (void)events;
	edges_give(container_of(w, struct supervisor, edges_timer));
}

void
edges_init(struct supervisor *sv)
{
	ev_timer_init(&sv->edges_timer, on_timer, (double)LIMIT_EDGES_RETRY_MS / 1000, 0.0);
}

void
edges_renew(struct supervisor *sv, enum member_id id)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		if (rows[i].member != id)
			continue;
		list_each (sb, &sv->sandboxes.list, struct sandbox, link)
			sb->due |= sandbox_needs(sb) & (unsigned)rows[i].due;
	}
	edges_give(sv);
}

/* ---- ports ---- */

static void
ports_note(uint8_t *seen, const struct revision *r)
{
	for (size_t i = 0; i < ARRAY_LEN(r->is.ports); i++)
		seen[r->is.ports[i] / 8] |= (uint8_t)(1U << r->is.ports[i] % 8);
}

static bool
ports_tell(struct member *dialer, struct msg_dialer_ports *m, size_t n)
{
	auto_buf struct buf body;

	if (n == 0)
		return true;
	buf_init(&body, IPC_MAX);
	msg_dialer_ports_put(&body, m);
	*m = (struct msg_dialer_ports){0};
	return member_tell(dialer, MSG_DIALER_PORTS, buf_view(&body), -1);
}

bool
edges_ports_tell(struct supervisor *sv, struct member *dialer)
{
	static uint8_t seen[(UINT16_MAX + 1) / 8];
	struct msg_dialer_ports m = {0};
	size_t n = 0;

	memset(seen, 0, sizeof(seen));
	for (size_t i = 0; i < sv->policies.n; i++)
		ports_note(seen, sv->policies.row[i]);
	list_each (sb, &sv->sandboxes.list, struct sandbox, link)
		if (sb->policy != NULL)
			ports_note(seen, sb->policy);
	for (uint32_t port = 1; port <= UINT16_MAX; port++) {
		if ((seen[port / 8] >> port % 8 & 1) == 0)
			continue;
		m.ports[n++] = (uint16_t)port;
		if (n < ARRAY_LEN(m.ports))
			continue;
		if (!ports_tell(dialer, &m, n))
			return false;
		n = 0;
	}
	return ports_tell(dialer, &m, n);
}
