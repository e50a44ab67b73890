/* SPDX-License-Identifier: Apache-2.0 */
/* See gate.h. */
#include "gate.h"

#include "lib/base/clock.h"
#include "lib/base/id.h"
#include "lib/base/sha256.h"
#include "lib/ipc/reach_bounds.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>

#include <cmocka.h>

const uint16_t told[] = {80, 443, PORT, FULL_PORT, SECOND_PORT, NOBODY_PORT, 0};
static uint8_t room[65536];
uint64_t tag;

/* ---- policies and gateways ---- */

#define BUDGETS                                                                     \
	"\"budgets\":{\"brokered\":200,\"bytes_in\":1000000,\"bytes_out\":1000000," \
	"\"connections\":1000,"                                                     \
	"\"handshakes\":1000,\"names\":100,\"requests\":1000}"

void
document_begin(struct document *d)
{
	*d = (struct document){0};
	buf_init(&d->text, 65536);
	buf_add_str(&d->text, "{" BUDGETS ",\"name\":\"test\",\"rules\":[");
}

/* Returns its index. */
uint16_t
document_rule(struct document *d, const char *rule)
{
	buf_add_str(&d->text, d->rules == 0 ? "" : ",");
	buf_add_str(&d->text, rule);
	return (uint16_t)d->rules++;
}

uint16_t
document_host(struct document *d, const char *host, uint16_t port)
{
	buf_addf(&d->text, "%s{\"host\":\"%s\",\"kind\":\"tcp\",\"port\":%u}",
		d->rules == 0 ? "" : ",", host, port);
	return (uint16_t)d->rules++;
}

const char *
document_end(struct document *d)
{
	buf_add_str(&d->text, "],\"v\":1}");
	buf_add_byte(&d->text, 0);
	assert_int_equal(buf_check(&d->text), 0);
	return (const char *)d->text.p;
}

void
digest_of(const char *document, uint8_t ret[static SHA256_BYTES])
{
	static const char domain[] = "demilune-egress-v1";
	auto_buf struct buf b;

	buf_init(&b, 1 << 20);
	buf_add(&b, domain, sizeof(domain));
	buf_add_str(&b, document);
	sha256_of(buf_view(&b), ret);
}

int
gateway_with(const char *document, int seals, const uint8_t digest[static SHA256_BYTES])
{
	struct msg_dialer_gateway m = {0};
	int mine, fds[2];

	id_new(&m.sandbox);
	memcpy(m.policy, digest, SHA256_BYTES);
	pair(&mine, &fds[0]);
	fds[1] = sealed(document, seals);
	SAY(world.supervisor, 0, DIALER_GATEWAY, dialer_gateway, fds, 2, m);
	(void)close(fds[0]);
	(void)close(fds[1]);
	return mine;
}

int
gateway_new(const char *document)
{
	uint8_t digest[SHA256_BYTES];

	digest_of(document, digest);
	return gateway_with(document, SEALS, digest);
}

/* The usual policy; its rules by name. */
static const char *const hosts[] = {"public.test", "private.test", "metadata.test", "loopback.test",
	"own.test", "mixed.test", "mixed6.test", "nat64.test", "to-private.test", "to-public.test",
	"loop.test", "other.test", "rebind.test", "truncated.test", "truncated-twice.test",
	"tcp-cut.test", "cut-short.test", "garbage.test", "too-many.test", "huge.test", "most.test",
	"nx.test", "nodata.test", "servfail.test", "refused.test", "silent.test", "spoofed.test",
	"localhost", "v6.test", "10.0.0.7", "93.184.216.99", "isatap.test", "own6.test",
	"pool.test", "azure.test"};
_Static_assert(ARRAY_LEN(hosts) == HOSTS, "rules count from there");
char usual[16384];
uint8_t usual_digest[SHA256_BYTES];
int gate; /* of a sandbox with the usual policy */

#define BROKERED_OF(host, address)                                                       \
	"{" address "\"credential\":{\"header\":\"Authorization\",\"prefix\":\"Bearer "  \
	"\",\"secret\":\"carrier\"},\"fields\":[\"status\"],\"host\":\"" host            \
	"\",\"kind\":\"brokered\",\"methods\":[\"GET\"],\"path\":\"/**\",\"port\":4433," \
	"\"response_max\":1000}"

static void
usual_make(void)
{
	struct document d;

	document_begin(&d);
	for (size_t i = 0; i < ARRAY_LEN(hosts); i++)
		assert_int_equal(document_host(&d, hosts[i], PORT), i);
	(void)document_rule(
		&d, "{\"host\":\"wild.test\",\"kind\":\"tcp\",\"labels\":\"one\",\"port\":4433}");
	(void)document_rule(
		&d, "{\"host\":\"deep.test\",\"kind\":\"tcp\",\"labels\":\"many\",\"port\":4433}");
	(void)document_rule(&d,
		"{\"address\":\"10.0.0.5\",\"host\":\"exact.test\",\"kind\":\"tcp\","
		"\"port\":4433}");
	(void)document_rule(&d, BROKERED_OF("brokered.test", ""));
	(void)document_rule(&d, BROKERED_OF("brokered-exact.test", "\"address\":\"10.0.0.6\","));
	(void)document_rule(&d,
		"{\"address\":\"127.0.0.1\",\"host\":\"full.test\",\"kind\":\"tcp\","
		"\"port\":4434}");
	assert_int_equal(document_host(&d, "two.test", SECOND_PORT), RULE_SECOND);
	(void)snprintf(usual, sizeof(usual), "%s", document_end(&d));
	buf_done(&d.text);
	digest_of(usual, usual_digest);
}

uint16_t
rule_of(const char *host)
{
	for (size_t i = 0; i < ARRAY_LEN(hosts); i++)
		if (strcmp(hosts[i], host) == 0)
			return (uint16_t)i;
	fail_msg("%s", host);
	return 0;
}

int
gate_setup(void **state)
{
	(void)state;
	if (usual[0] == '\0')
		usual_make();
	world.asked->n = 0;
	(void)connections(world.listener);
	(void)connections(world.second);
	dialer_start("{\"origins\":[{\"host\":\"public.test\",\"port\":4433}]}", told,
		"127.0.0.1:5300", "");
	gate = gateway_new(usual);
	return 0;
}

int
gate_teardown(void **state)
{
	(void)state;
	if (gate >= 0)
		(void)close(take_fd(&gate));
	dialer_end();
	return 0;
}

/* ---- one request ---- */

uint64_t
ask(int edge, unsigned rule, const char *host, uint16_t port, uint32_t timeout_ms)
{
	struct msg_reach m = {.rule = (uint16_t)rule, .port = port, .timeout_ms = timeout_ms};

	(void)snprintf(m.host, sizeof(m.host), "%s", host);
	SAY(edge, ++tag, REACH, reach, NULL, 0, m);
	return tag;
}

struct said
hear(int edge, int timeout_ms)
{
	struct pollfd p = {.fd = edge, .events = POLLIN};
	struct said s = {.reason = DIAL_CONNECTED, .fd = -1};
	struct msg_reach_failed failed;
	struct msg_reached reached;
	struct ipc_msg in;
	struct err err = {0};

	assert_int_equal(poll(&p, 1, timeout_ms), 1);
	if (ipc_read(edge, EDGE_GATEWAY_DIALER, ROOM_DIALER, room, sizeof(room), &in, &err) < 0)
		fail_msg("%s", err.text);
	s.tag = in.tag;
	if (in.type == MSG_REACHED) {
		assert_int_equal(msg_reached_get(in.body, &reached, &err), 0);
		(void)snprintf(s.text, sizeof(s.text), "%s", reached.address);
		s.fd = ipc_msg_take(&in, 0);
	} else {
		assert_int_equal(msg_reach_failed_get(in.body, &failed, &err), 0);
		s.reason = failed.reason;
		(void)snprintf(s.text, sizeof(s.text), "%s", failed.text);
	}
	return s;
}

struct said
reach_at(int edge, unsigned rule, const char *host, uint16_t port)
{
	uint64_t of = ask(edge, rule, host, port, 10000);
	struct said s = hear(edge, 12000);

	assert_int_equal(s.tag, of);
	return s;
}

void
refused(const char *host, enum dial reason, const char *about)
{
	struct said s = reach_at(gate, rule_of(host), host, PORT);

	if (s.reason != reason || strstr(s.text, about) == NULL)
		fail_msg("%s: %d %s", host, (int)s.reason, s.text);
	assert_int_equal(s.fd, -1);
	assert_int_equal(connections(world.listener), 0);
}

/* What the kernel holds of it does not grow: a socket that nobody asked for has another room. */
static void
assert_bounded(int fd)
{
	const int names[] = {SO_RCVBUF, SO_SNDBUF};
	int plain = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(plain >= 0);
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		int bytes = 0, any = 0;
		socklen_t n = sizeof(bytes), m = sizeof(any);

		assert_int_equal(getsockopt(fd, SOL_SOCKET, names[i], &bytes, &n), 0);
		assert_int_equal(getsockopt(plain, SOL_SOCKET, names[i], &any, &m), 0);
		assert_true(bytes <= 2 * 262144 && bytes != any);
	}
	(void)close(plain);
}

void
reached_by(int edge, unsigned rule, const char *host, const char *address)
{
	struct said s = reach_at(edge, rule, host, PORT);

	if (s.reason != DIAL_CONNECTED || strcmp(s.text, address) != 0)
		fail_msg("%s: %d %s", host, (int)s.reason, s.text);
	assert_int_equal(connections(world.listener), 1);
	assert_bounded(s.fd);
	(void)close(s.fd);
}

void
reached(const char *host, const char *address)
{
	reached_by(gate, rule_of(host), host, address);
}

/* Refused before any packet. */
void
not_listed(int edge, unsigned rule, const char *host, uint16_t port)
{
	int before = world.asked->n;
	struct said s = reach_at(edge, rule, host, port);

	if (s.reason != DIAL_NOT_LISTED)
		fail_msg("%u %s %u: %d %s", rule, host, port, (int)s.reason, s.text);
	assert_int_equal(s.fd, -1);
	assert_int_equal(world.asked->n, before);
	assert_int_equal(connections(world.listener), 0);
}

struct said
broker_dials(const uint8_t *policy, unsigned rule, const char *host)
{
	struct msg_dial m = {.port = PORT, .timeout_ms = 5000, .rule = (uint16_t)rule};
	struct pollfd p = {.fd = world.broker, .events = POLLIN};
	struct said s = {.reason = DIAL_CONNECTED, .fd = -1};
	struct msg_dial_failed failed;
	struct ipc_msg in;
	struct err err = {0};

	(void)snprintf(m.host, sizeof(m.host), "%s", host);
	if (policy != NULL)
		memcpy(m.policy, policy, SHA256_BYTES);
	SAY(world.broker, ++tag, DIAL, dial, NULL, 0, m);
	assert_int_equal(poll(&p, 1, 6000), 1);
	assert_int_equal(ipc_read(world.broker, EDGE_BROKER_DIALER, ROOM_DIALER, room, sizeof(room),
				 &in, &err),
		0);
	assert_int_equal(in.tag, tag);
	if (in.type == MSG_DIALED) {
		s.fd = ipc_msg_take(&in, 0);
	} else {
		assert_int_equal(msg_dial_failed_get(in.body, &failed, &err), 0);
		s.reason = failed.reason;
	}
	return s;
}

size_t
descriptors(void)
{
	char path[64];
	size_t n = 0;
	DIR *d;

	(void)snprintf(path, sizeof(path), "/proc/%d/fd", world.dialer);
	d = opendir(path);
	assert_non_null(d);
	while (readdir(d) != NULL)
		n++;
	(void)closedir(d);
	return n - 2;
}

/* A connection that was handed over is closed a moment after it was told. */
size_t
settled(void)
{
	size_t now = descriptors(), last = 0;

	while (now != last) {
		(void)poll(NULL, 0, 30);
		last = now;
		now = descriptors();
	}
	return now;
}
