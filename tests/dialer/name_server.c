/* SPDX-License-Identifier: Apache-2.0 */
/* The name server of the tests; see name_server.h. Each way to answer is a row of `ways`. */
#include "name_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

enum { A = 1, CNAME = 5, AAAA = 28 };

struct answer {
	uint8_t b[70000];
	size_t n;
	uint16_t type; /* asked for */
	bool tcp;
	int times;  /* this name and type were asked so often before */
	bool none;  /* no answer at all */
	size_t cut; /* send only so many bytes; 0: all */
};

static void
put16(struct answer *a, unsigned v)
{
	a->b[a->n++] = (uint8_t)(v >> 8);
	a->b[a->n++] = (uint8_t)v;
}

static void
set16(struct answer *a, size_t at, unsigned v)
{
	a->b[at] = (uint8_t)(v >> 8);
	a->b[at + 1] = (uint8_t)v;
}

static void
put_name(struct answer *a, const char *name)
{
	if (name == NULL) { /* that of the question */
		put16(a, 0xc00c);
		return;
	}
	while (*name != '\0') {
		size_t n = strcspn(name, ".");

		a->b[a->n++] = (uint8_t)n;
		memcpy(a->b + a->n, name, n);
		a->n += n;
		name += n + (name[n] == '.');
	}
	a->b[a->n++] = 0;
}

static size_t
record_begin(struct answer *a, const char *owner, unsigned type)
{
	put_name(a, owner);
	put16(a, type);
	put16(a, 1);
	put16(a, 0);
	put16(a, 0);
	put16(a, 0);
	set16(a, 6, (unsigned)(a->b[6] << 8 | a->b[7]) + 1);
	return a->n;
}

static void
record_end(struct answer *a, size_t from)
{
	set16(a, from - 2, (unsigned)(a->n - from));
}

static void
four(struct answer *a, const char *owner, const char *address)
{
	size_t at;

	if (a->type != A)
		return;
	at = record_begin(a, owner, A);
	(void)inet_pton(AF_INET, address, a->b + a->n);
	a->n += 4;
	record_end(a, at);
}

static void
six(struct answer *a, const char *owner, const char *address)
{
	size_t at;

	if (a->type != AAAA)
		return;
	at = record_begin(a, owner, AAAA);
	(void)inet_pton(AF_INET6, address, a->b + a->n);
	a->n += 16;
	record_end(a, at);
}

static void
alias(struct answer *a, const char *owner, const char *target)
{
	size_t at = record_begin(a, owner, CNAME);

	put_name(a, target);
	record_end(a, at);
}

static void
code(struct answer *a, unsigned value)
{
	a->b[3] |= (uint8_t)value;
}

/* ---- ways ---- */

#define PUBLIC "93.184.216.34"

static void public(struct answer *a)
{
	four(a, NULL, PUBLIC);
}
static void private(struct answer *a)
{
	four(a, NULL, "10.0.0.5");
}
static void
metadata(struct answer *a)
{
	four(a, NULL, "169.254.169.254");
}
static void
loopback(struct answer *a)
{
	four(a, NULL, "127.0.0.1");
}
static void
mixed(struct answer *a)
{
	four(a, NULL, PUBLIC), four(a, NULL, "10.0.0.5");
}
static void
mixed6(struct answer *a)
{
	four(a, NULL, PUBLIC), six(a, NULL, "::1");
}
static void
nat64(struct answer *a)
{
	four(a, NULL, PUBLIC), six(a, NULL, "64:ff9b::a00:5");
}
static void
v6(struct answer *a)
{
	six(a, NULL, "2606:4700::1");
}
static void
two(struct answer *a)
{
	four(a, NULL, PUBLIC), four(a, NULL, "93.184.216.35");
}
static void
own(struct answer *a)
{
	four(a, NULL, "140.82.112.200");
}
static void
own6(struct answer *a)
{
	six(a, NULL, "2606:4700:99::a00:1");
}
static void
isatap(struct answer *a)
{
	six(a, NULL, "2607:f8b0::5efe:a00:1");
}
static void
pool(struct answer *a)
{
	four(a, NULL, PUBLIC), four(a, NULL, "198.18.0.5"), six(a, NULL, "fd00:5eed::5");
}
static void
azure(struct answer *a)
{
	four(a, NULL, "168.63.129.16");
}
static void
rebind(struct answer *a)
{
	four(a, NULL, a->times == 0 ? PUBLIC : "127.0.0.1");
}
static void
to_private(struct answer *a)
{
	alias(a, NULL, "x.test"), four(a, "x.test", "10.0.0.5");
}
static void
to_public(struct answer *a)
{
	alias(a, NULL, "x.test"), four(a, "x.test", PUBLIC);
}
static void
loop(struct answer *a)
{
	alias(a, NULL, "x.test"), alias(a, "x.test", "loop.test");
}
static void
other(struct answer *a)
{
	four(a, "x.test", PUBLIC);
}
static void
nothing(struct answer *a)
{
	(void)a;
}
static void
no_name(struct answer *a)
{
	code(a, 3);
}
static void
servfail(struct answer *a)
{
	code(a, 2);
}
static void
refused(struct answer *a)
{
	code(a, 5);
}
static void
silent(struct answer *a)
{
	a->none = true;
}
static void
wrong_id(struct answer *a)
{
	four(a, NULL, PUBLIC), a->b[0] ^= 0x55;
}
static void
garbage(struct answer *a)
{
	four(a, NULL, PUBLIC), a->b[a->n++] = 0;
}
static void
flat(struct answer *a) /* all letters in lower case */
{
	for (size_t i = 12; a->b[i] != 0; i++)
		a->b[i] = (uint8_t)(a->b[i] >= 'A' && a->b[i] <= 'Z' ? a->b[i] | 0x20 : a->b[i]);
	four(a, NULL, PUBLIC);
}

static void
cut_short(struct answer *a)
{
	four(a, NULL, PUBLIC);
	a->cut = a->n - 3;
}

static void
truncated(struct answer *a)
{
	if (a->tcp)
	public(a);
	else a->b[2] |= 2;
}

static void
truncated_twice(struct answer *a)
{
	a->b[2] |= 2;
}

static void
tcp_cut(struct answer *a)
{
	truncated(a);
	if (a->tcp)
		a->cut = 20;
}

static void
many(struct answer *a, int n)
{
	if (!a->tcp) {
		a->b[2] |= 2;
		return;
	}
	for (int i = 0; i < n; i++)
		four(a, NULL, PUBLIC);
}

static void
most(struct answer *a)
{
	many(a, 64);
}
static void
too_many(struct answer *a)
{
	many(a, 65);
}
static void
huge(struct answer *a)
{
	many(a, 4000);
}

static const struct {
	const char *label;
	void (*write)(struct answer *a);
} ways[] = {{"public", public}, {"private", private}, {"metadata", metadata},
	{"loopback", loopback}, {"localhost", public}, {"mixed", mixed}, {"mixed6", mixed6},
	{"nat64", nat64}, {"v6", v6}, {"two", two}, {"own", own}, {"own6", own6},
	{"isatap", isatap}, {"pool", pool}, {"azure", azure}, {"rebind", rebind},
	{"to-private", to_private}, {"to-public", to_public}, {"loop", loop}, {"other", other},
	{"nodata", nothing}, {"nx", no_name}, {"servfail", servfail}, {"refused", refused},
	{"silent", silent}, {"wrong-id", wrong_id}, {"spoofed", public}, {"garbage", garbage},
	{"flat", flat}, {"cut-short", cut_short}, {"truncated", truncated},
	{"truncated-twice", truncated_twice}, {"tcp-cut", tcp_cut}, {"most", most},
	{"too-many", too_many}, {"huge", huge}};

/* ---- questions ---- */

/* The name in text; where the question ends. */
static size_t
name_of(const uint8_t *q, size_t n, char *ret)
{
	size_t i = 12, k = 0;

	while (i < n && q[i] != 0 && i + q[i] < n) {
		if (k > 0)
			ret[k++] = '.';
		memcpy(ret + k, q + i + 1, q[i]);
		k += q[i];
		i += 1U + q[i];
	}
	ret[k] = '\0';
	return i + 5;
}

static void
answer(struct question_log *log, const uint8_t *q, size_t n, bool tcp, uint16_t port,
	struct answer *ret)
{
	char name[256];
	size_t end;

	*ret = (struct answer){.none = true, .tcp = tcp};
	if (n < 17 || n > 300)
		return;
	end = name_of(q, n, name);
	if (end != n)
		return;
	memcpy(ret->b, q, n);
	ret->n = n;
	set16(ret, 2, 0x8180);
	ret->type = (uint16_t)(q[n - 4] << 8 | q[n - 3]);
	for (int i = 0; i < log->n; i++)
		ret->times += strcasecmp(log->row[i].name, name) == 0 &&
			      log->row[i].type == ret->type;
	if (log->n < QUESTIONS_MAX) {
		(void)snprintf(log->row[log->n].name, sizeof(log->row[0].name), "%s", name);
		log->row[log->n].type = ret->type;
		log->row[log->n].id = (uint16_t)(q[0] << 8 | q[1]);
		log->row[log->n].port = port;
		log->row[log->n].tcp = tcp;
		log->n++;
	}
	ret->none = false;
	for (size_t i = 0; i < ARRAY_LEN(ways); i++)
		if (strncasecmp(name, ways[i].label, strcspn(name, ".")) == 0 &&
			ways[i].label[strcspn(name, ".")] == '\0') {
			ways[i].write(ret);
			return;
		}
	code(ret, 3);
}

static void
on_datagram(struct question_log *log, int udp)
{
	static struct answer a;
	struct sockaddr_in from;
	socklen_t len = sizeof(from);
	uint8_t q[512];
	ssize_t n = recvfrom(udp, q, sizeof(q), 0, (struct sockaddr *)&from, &len);
	char name[256];

	if (n <= 0)
		return;
	answer(log, q, (size_t)n, false, ntohs(from.sin_port), &a);
	if (a.none)
		return;
	(void)name_of(q, (size_t)n, name);
	/* Somebody else is faster, and does not know the id. */
	for (int i = 0; strncasecmp(name, "spoofed.", 8) == 0 && i < 5; i++) {
		static struct answer other;

		other = a;
		other.b[0] ^= (uint8_t)(i + 1);
		memcpy(other.b + other.n - 4, "\x0a\0\0\5", 4);
		(void)sendto(udp, other.b, other.n, 0, (struct sockaddr *)&from, len);
	}
	(void)sendto(udp, a.b, a.cut != 0 ? a.cut : a.n, 0, (struct sockaddr *)&from, len);
}

static void
on_stream(struct question_log *log, int listener)
{
	static struct answer a;
	int fd = accept(listener, NULL, NULL);
	uint8_t q[512], head[2];
	size_t got = 0;

	if (fd < 0)
		return;
	while (got < 2 || got < 2U + (size_t)(q[0] << 8 | q[1])) {
		ssize_t n = recv(fd, q + got, sizeof(q) - got, 0);

		if (n <= 0)
			break;
		got += (size_t)n;
	}
	if (got > 2) {
		answer(log, q + 2, got - 2, true, 0, &a);
		head[0] = (uint8_t)(a.n >> 8);
		head[1] = (uint8_t)a.n;
		if (!a.none) {
			(void)send(fd, head, 1, MSG_NOSIGNAL); /* in pieces */
			(void)send(fd, head + 1, 1, MSG_NOSIGNAL);
			(void)send(fd, a.b, a.cut != 0 ? a.cut : a.n, MSG_NOSIGNAL);
		}
	}
	(void)close(fd);
}

void
name_server_run(struct question_log *log)
{
	struct sockaddr_in at = {.sin_family = AF_INET,
		.sin_port = htons(SERVER_PORT),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int udp = socket(AF_INET, SOCK_DGRAM, 0), tcp = socket(AF_INET, SOCK_STREAM, 0), on = 1;

	(void)setsockopt(tcp, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(udp, (struct sockaddr *)&at, sizeof(at)) < 0 ||
		bind(tcp, (struct sockaddr *)&at, sizeof(at)) < 0 || listen(tcp, 64) < 0)
		_exit(1);
	log->n = 0;
	for (;;) {
		struct pollfd p[] = {{.fd = udp, .events = POLLIN}, {.fd = tcp, .events = POLLIN}};

		if (poll(p, 2, -1) < 0 && errno != EINTR)
			_exit(1);
		if (p[0].revents != 0)
			on_datagram(log, udp);
		if (p[1].revents != 0)
			on_stream(log, tcp);
	}
}
