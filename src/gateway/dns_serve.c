/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DNS for the programs of one sandbox, over UDP and TCP; see dns_serve.h. A name that a rule can lead to has its fake address, one that none
 * can does not exist and is recorded: whatever a program writes into a name reaches this process and the record, and nothing else.
 */
#include "dns_serve.h"

#include "accept.h"
#include "allotment.h"
#include "dns.h"
#include "limits.h"
#include "names.h"
#include "verdict.h"

#include "lib/base/fd.h"
#include "lib/loop/loop.h"

#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>

enum { TYPE_A = 1, TYPE_AAAA = 28, META_FIRST = 128, META_LAST = 255, LENGTH = 2 };

static void
dns_record(struct gateway *g, enum egress_reason reason, struct view name, struct view address)
{
	const struct verdict_of v = {.verdict = VERDICT_REFUSED,
		.reason = reason,
		.scheme = EGRESS_SCHEME_DNS,
		.rule = EGRESS_NO_RULE,
		.port = GATEWAY_DNS_PORT,
		.name = name,
		.address = address};

	verdict_tell(g, &v);
}

enum decision { HAS_ADDRESS, HAS_NONE, MUST_WAIT };

/* MUST_WAIT: more names were asked of the engine. */
static enum decision
dns_decide(
	struct gateway *g, const struct dns_asked *q, struct address *ret, enum dns_code *ret_code)
{
	struct view name = view_of(q->name, q->name_n);
	struct err err = {0};

	*ret_code = DNS_NOERROR;
	/* Transfers, ANY and other questions about questions. */
	if (q->type >= META_FIRST && q->type <= META_LAST) {
		*ret_code = DNS_NOTIMP;
		return HAS_NONE;
	}
	if (name.n == 0 || !rules_know(&g->policy, name)) {
		dns_record(g, EGRESS_REASON_NO_RULE, name, view_of(NULL, 0));
		*ret_code = DNS_NXDOMAIN;
		return HAS_NONE;
	}
	if (q->type != (g->policy.ipv6 ? TYPE_AAAA : TYPE_A))
		return HAS_NONE;
	if (allotment_name(g, name)) {
		if (names_address(g->names, name, ret, &err) == 0)
			return HAS_ADDRESS;
	} else if (allotment_coming(g)) {
		return MUST_WAIT;
	}
	dns_record(g, EGRESS_REASON_QUOTA, name, view_of(NULL, 0));
	*ret_code = DNS_SERVFAIL;
	return HAS_NONE;
}

/* 0; -ENOMSG: it is not answered; -EAGAIN: it is, when dns_wake() comes. */
static int
dns_reply(struct gateway *g, struct view message, struct buf *out)
{
	enum dns_code code = DNS_SERVFAIL;
	struct dns_asked q;
	struct address a;
	int r = dns_asked_read(message, &q, &code);
	enum decision d;

	if (r == -ENOMSG)
		return r;
	if (r < 0) {
		dns_error_write(out, message, code);
		return 0;
	}
	d = dns_decide(g, &q, &a, &code);
	if (d == MUST_WAIT)
		return -EAGAIN;
	dns_answer_write(out, &q, code, d == HAS_ADDRESS ? &a : NULL, (uint32_t)LIMIT_DNS_TTL_S);
	return 0;
}

bool
dns_is_asked_here(struct gateway *g, const struct address *to)
{
	static const uint8_t loopback[16] = {[15] = 1};
	char text[ADDRESS_TEXT];

	if (to->family == AF_INET ? to->b[0] == 127 : memcmp(to->b, loopback, 16) == 0)
		return true;
	address_text(to, text);
	dns_record(g, EGRESS_REASON_RAW_ADDRESS, view_of(NULL, 0), view_str(text));
	return false;
}

/* ---- UDP ---- */

union pktinfo {
	char room[CMSG_SPACE(sizeof(struct in6_pktinfo)) + CMSG_SPACE(sizeof(struct in_pktinfo))];
	struct cmsghdr align;
};

/* To what address it was sent. A socket of both families says it in the one form or in both. */
static bool
pktinfo_read(struct msghdr *m, struct address *ret)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c != NULL; c = CMSG_NXTHDR(m, c)) {
		if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO) {
			struct in_pktinfo in;

			memcpy(&in, CMSG_DATA(c), sizeof(in));
			*ret = (struct address){.family = AF_INET};
			memcpy(ret->b, &in.ipi_addr, 4);
			return true;
		}
		if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO) {
			struct in6_pktinfo in;

			memcpy(&in, CMSG_DATA(c), sizeof(in));
			*ret = address_of(AF_INET6, &in.ipi6_addr);
			return true;
		}
	}
	return false;
}

/* The answer comes from the address that was asked: resolvers test it. */
static void
pktinfo_write(struct msghdr *m, sa_family_t family, const struct address *from)
{
	struct cmsghdr *c = m->msg_control;

	if (family == AF_INET) {
		struct in_pktinfo in = {0};

		memcpy(&in.ipi_spec_dst, from->b, 4);
		c->cmsg_level = IPPROTO_IP;
		c->cmsg_type = IP_PKTINFO;
		c->cmsg_len = CMSG_LEN(sizeof(in));
		memcpy(CMSG_DATA(c), &in, sizeof(in));
		m->msg_controllen = CMSG_SPACE(sizeof(in));
	} else {
		struct in6_pktinfo in = {0};

		if (from->family == AF_INET) {
			memset(in.ipi6_addr.s6_addr + 10, 0xff, 2);
			memcpy(in.ipi6_addr.s6_addr + 12, from->b, 4);
		} else {
			memcpy(&in.ipi6_addr, from->b, 16);
		}
		c->cmsg_level = IPPROTO_IPV6;
		c->cmsg_type = IPV6_PKTINFO;
		c->cmsg_len = CMSG_LEN(sizeof(in));
		memcpy(CMSG_DATA(c), &in, sizeof(in));
		m->msg_controllen = CMSG_SPACE(sizeof(in));
	}
}

/* A datagram: where it came from, and to. */
struct datagram {
	struct sockaddr_storage from;
	socklen_t from_n;
	struct address to;
	struct view message;
};

/* One that waits for the engine. */
struct held {
	struct link link; /* of gateway.held, oldest first */
	int fd;           /* borrowed: a listener's, which lives as long */
	struct datagram d;
	uint8_t bytes[];
};

static void
held_free(struct gateway *g, struct held *h)
{
	list_remove(&h->link);
	g->nheld--;
	free(h);
}

/* Of too many the oldest is forgotten: its program asks again. */
static void
hold(struct gateway *g, int fd, const struct datagram *d)
{
	struct held *h = malloc(sizeof(*h) + d->message.n);

	if (h == NULL)
		return;
	if (g->nheld >= LIMIT_DNS_HELD)
		held_free(g, container_of(g->held.next, struct held, link));
	h->fd = fd;
	h->d = *d;
	memcpy(h->bytes, d->message.p, d->message.n);
	h->d.message = view_of(h->bytes, d->message.n);
	list_append(&g->held, &h->link);
	g->nheld++;
}

static void
udp_answer(struct gateway *g, int fd, const struct datagram *d)
{
	struct sockaddr_storage from = d->from;
	union pktinfo info = {0};
	uint8_t bytes[DNS_UDP_ANSWER_MAX];
	struct iovec io = {.iov_base = bytes};
	struct msghdr m = {.msg_name = &from,
		.msg_namelen = d->from_n,
		.msg_iov = &io,
		.msg_iovlen = 1,
		.msg_control = &info};
	auto_buf struct buf out;
	int r;

	buf_init(&out, sizeof(bytes));
	r = dns_reply(g, d->message, &out);
	if (r == -EAGAIN)
		hold(g, fd, d);
	if (r < 0)
		return;
	must(buf_check(&out) == 0);
	memcpy(bytes, out.p, out.n);
	io.iov_len = out.n;
	pktinfo_write(&m, from.ss_family, &d->to);
	/* One that cannot be sent now is lost, as datagrams are; it is asked again. */
	(void)sendmsg(fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
}

void
dns_udp_ready(struct gateway *g, int fd)
{
	for (size_t i = 0; i < LIMIT_ACCEPTS; i++) {
		uint8_t bytes[DNS_MESSAGE_MAX];
		union pktinfo info;
		struct datagram d;
		struct iovec io = {.iov_base = bytes, .iov_len = sizeof(bytes)};
		struct msghdr m = {.msg_name = &d.from,
			.msg_namelen = sizeof(d.from),
			.msg_iov = &io,
			.msg_iovlen = 1,
			.msg_control = &info,
			.msg_controllen = sizeof(info)};
		ssize_t n = recvmsg(fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

		if (n < 0 && errno != EINTR)
			return;
		if (n < 0 || (m.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0 ||
			!pktinfo_read(&m, &d.to) || !dns_is_asked_here(g, &d.to))
			continue;
		d.from_n = m.msg_namelen;
		d.message = view_of(bytes, (size_t)n);
		udp_answer(g, fd, &d);
	}
}

/* ---- TCP ---- */

struct asker {
	struct link link;  /* of gateway.askers, oldest first */
	struct gateway *g; /* borrowed */
	int fd;            /* owned */
	ev_io readable, writable;
	ev_timer late;
	bool waits; /* its first question does, for the engine; nothing more is read */
	size_t n;   /* of in */
	uint8_t in[LENGTH + DNS_MESSAGE_MAX];
	struct buf out;
};

static void
asker_close(struct asker *a)
{
	struct ev_loop *loop = a->g->loop;

	ev_io_stop(loop, &a->readable);
	ev_io_stop(loop, &a->writable);
	ev_timer_stop(loop, &a->late);
	list_remove(&a->link);
	a->g->naskers--;
	buf_done(&a->out);
	fd_close_kept(&a->fd);
	loop_free_later(loop, a);
}

/* False: it was closed. */
static bool
asker_flush(struct asker *a)
{
	while (a->out.n != 0) {
		ssize_t n = send(a->fd, a->out.p, a->out.n, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno == EAGAIN)
			break;
		if (n <= 0) {
			asker_close(a);
			return false;
		}
		buf_drop(&a->out, (size_t)n);
		ev_timer_again(a->g->loop, &a->late);
	}
	if (a->out.n == 0)
		ev_io_stop(a->g->loop, &a->writable);
	else
		ev_io_start(a->g->loop, &a->writable);
	if (a->waits || a->out.n >= LIMIT_DNS_TCP_OUT)
		ev_io_stop(a->g->loop, &a->readable);
	else
		ev_io_start(a->g->loop, &a->readable);
	return true;
}

/* Each message that is there whole is judged by itself. False: this is not DNS. */
static bool
asker_answer(struct asker *a)
{
	size_t at = 0;

	a->waits = false;
	while (a->n - at >= LENGTH) {
		size_t n = (size_t)a->in[at] << 8 | a->in[at + 1];
		size_t begin = a->out.n;
		int r;

		if (n > DNS_MESSAGE_MAX)
			return false;
		if (a->n - at - LENGTH < n)
			break;
		buf_add(&a->out, (const uint8_t[LENGTH]){0}, LENGTH);
		r = dns_reply(a->g, view_of(a->in + at + LENGTH, n), &a->out);
		a->waits = r == -EAGAIN;
		if (a->waits) {
			a->out.n = begin; /* those behind it wait too */
			break;
		}
		if (r < 0 || buf_check(&a->out) < 0)
			return false;
		a->out.p[begin] = (uint8_t)((a->out.n - begin - LENGTH) >> 8);
		a->out.p[begin + 1] = (uint8_t)(a->out.n - begin - LENGTH);
		at += LENGTH + n;
		ev_timer_again(a->g->loop, &a->late); /* part of a question is no sign of life */
	}
	memmove(a->in, a->in + at, a->n - at);
	a->n -= at;
	return true;
}

static void
on_asker_readable(struct ev_loop *loop, ev_io *w, int events)
{
	struct asker *a = container_of(w, struct asker, readable);
	ssize_t n = recv(a->fd, a->in + a->n, sizeof(a->in) - a->n, MSG_DONTWAIT);

	(void)loop, (void)events;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n > 0)
		a->n += (size_t)n;
	if (n <= 0 || !asker_answer(a)) {
		asker_close(a);
		return;
	}
	(void)asker_flush(a);
}

static void
on_asker_writable(struct ev_loop *loop, ev_io *w, int events)
{
	(void)loop, (void)events;
	(void)asker_flush(container_of(w, struct asker, writable));
}

static void
on_asker_late(struct ev_loop *loop, ev_timer *w, int events)
{
	(void)loop, (void)events;
	asker_close(container_of(w, struct asker, late));
}

void
dns_tcp_new(struct gateway *g, int fd)
{
	struct asker *a;

	if (g->naskers >= LIMIT_DNS_TCP)
		asker_close(container_of(g->askers.next, struct asker, link));
	a = calloc(1, sizeof(*a));
	if (a == NULL) {
		(void)close(fd);
		return;
	}
	a->g = g;
	a->fd = fd;
	/* Of what is read at once at most so many answers are made: no message is shorter than 14 bytes, no answer longer than 512. */
	buf_init(&a->out, (size_t)LIMIT_DNS_TCP_OUT + (sizeof(a->in) / 14) * DNS_UDP_ANSWER_MAX);
	ev_io_init(&a->readable, on_asker_readable, fd, EV_READ);
	ev_io_init(&a->writable, on_asker_writable, fd, EV_WRITE);
	ev_init(&a->late, on_asker_late);
	a->late.repeat = (double)LIMIT_DNS_TCP_MS / 1000;
	list_append(&g->askers, &a->link);
	g->naskers++;
	ev_timer_again(g->loop, &a->late);
	ev_io_start(g->loop, &a->readable);
}

void
dns_wake(struct gateway *g)
{
	/* Those that must wait on go behind the last of now. */
	for (size_t n = g->nheld; n > 0; n--) {
		struct held *h = container_of(g->held.next, struct held, link);

		list_remove(&h->link);
		g->nheld--;
		udp_answer(g, h->fd, &h->d);
		free(h);
	}
	list_each (a, &g->askers, struct asker, link)
		if (a->waits) {
			if (asker_answer(a))
				(void)asker_flush(a);
			else
				asker_close(a);
		}
}

void
dns_end(struct gateway *g)
{
	list_each (h, &g->held, struct held, link)
		held_free(g, h);
	list_each (a, &g->askers, struct asker, link)
		asker_close(a);
}
