/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What TLS and tunnels of the gateway cost, in CPU time of the gateway's own side: `gateway_measure` prints one number a line. The far ends are
 * processes of their own.
 */
#include "ends.h"

#include "gateway/ca.h"
#include "gateway/leaf.h"
#include "gateway/roots.h"
#include "gateway/tunnel.h"
#include "gateway/x509.h"

#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/loop/loop.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { CONNECTIONS = 200, LEAVES = 1000 };
#define STREAM_BYTES (UINT64_C(1) << 30)

static struct ev_loop *loop;
static struct err err;

static double
cpu_us(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void
say(const char *what, double value, const char *unit)
{
	(void)printf("%-40s %10.1f %s\n", what, value, unit);
	(void)fflush(stdout);
}

static void
measure_leaves(void)
{
	EVP_PKEY *keys[2] = {x509_key_new(), x509_key_new()};
	time_t now = (time_t)(clock_real_ms() / 1000);
	EVP_MD *sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
	X509 *cert = x509_new(keys[0], now, now + 86400);
	size_t before, after;
	struct leaves *l;
	X509 *leaf;
	char name[64];
	double t;

	must(X509_sign(cert, keys[0], sha256) > 0);
	l = leaves_new(cert, keys[0], keys[1], &err);
	before = mallinfo2().uordblks;
	t = cpu_us();
	for (int i = 0; i < LEAVES; i++) {
		(void)snprintf(name, sizeof(name), "host-%d.allowed.test", i);
		must(leaves_get(l, view_str(name), now, &leaf, &err) == 0);
	}
	say("leaf, made", (cpu_us() - t) / LEAVES, "us");
	after = mallinfo2().uordblks;
	say("leaf, kept", (double)(after - before) / LEAVES, "bytes");
	t = cpu_us();
	for (int i = 0; i < LEAVES; i++)
		must(leaves_get(l, view_str("host-7.allowed.test"), now, &leaf, &err) == 0);
	say("leaf, found", (cpu_us() - t) / LEAVES, "us");
	leaves_free(l);
	X509_free(cert);
	EVP_MD_free(sha256);
	EVP_PKEY_free(keys[0]);
	EVP_PKEY_free(keys[1]);
}

/* ---- connections ---- */

static int near[2][CONNECTIONS], far[2][CONNECTIONS];

static void
blocking(int fd)
{
	must(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK) == 0);
}

/* A program behind each first connection, a server behind each second one: a handshake, a question, an answer, and they wait. */
NORETURN static void
play(SSL_CTX *server)
{
	SSL_CTX *client = SSL_CTX_new(TLS_client_method());
	char room[1000], name[] = "allowed.test";

	for (int k = 0; k < 2; k++)
		for (int i = 0; i < CONNECTIONS; i++) {
			SSL *ssl = SSL_new(k == 0 ? client : server);

			blocking(far[k][i]);
			(void)SSL_set_fd(ssl, far[k][i]);
			if (k == 0)
				must(SSL_set_tlsext_host_name(ssl, name) == 1 &&
					SSL_connect(ssl) == 1);
			else
				must(SSL_accept(ssl) == 1);
			must(SSL_write(ssl, room, sizeof(room)) > 0);
			must(SSL_read(ssl, room, sizeof(room)) > 0);
		}
	(void)pause();
	_exit(0);
}

static void
run_until(const int *flag)
{
	while (*flag == 0)
		(void)ev_run(loop, EVRUN_ONCE);
}

static void
question_and_answer(struct stream *s, struct heard *h)
{
	static uint8_t room[16384];
	ssize_t r;

	stream_want_read(s, true);
	do {
		h->readable = 0;
		run_until(&h->readable);
		r = stream_read(s, room, sizeof(room));
	} while (r == -EAGAIN);
	must(r > 0 && stream_write(s, view_of(room, 1000)) == 1000);
}

static void
measure_connections(void)
{
	static struct policy policy = {.nrules = 1};
	static struct stream *streams[2][CONNECTIONS];
	static struct heard heard[2][CONNECTIONS];
	const struct wanted wanted = {.dns = {"allowed.test"}};
	auto_buf struct buf pem = {.max = 65536}, jks = {.max = 65536};
	SSL_CTX *server = wanted_server(&wanted);
	struct roots *roots = roots_new();
	size_t before;
	struct ca *ca;
	pid_t child;
	double t;

	policy.rule[0] = (struct rule){
		.kind = RULE_KIND_FETCH, .tls = true, .host = view_str("allowed.test")};
	ca = ca_new(&err);
	must(ca != NULL && ca_certify(ca, &policy, &pem, &jks, &err) == 0);
	must(roots_add(roots, "", wanted_roots(), &err) == 0);
	must(roots_context(roots, view_str(""), &err) != NULL);
	for (int k = 0; k < 2; k++)
		for (int i = 0; i < CONNECTIONS; i++) {
			int fds[2];

			ends_pair(fds);
			near[k][i] = fds[0];
			far[k][i] = fds[1];
		}
	child = fork();
	if (child == 0)
		play(server);
	before = mallinfo2().uordblks;
	for (int k = 0; k < 2; k++) {
		t = cpu_us();
		for (int i = 0; i < CONNECTIONS; i++) {
			struct heard *h = &heard[k][i];
			struct stream *s = stream_new(loop, near[k][i], &heard_events, h);

			streams[k][i] = s;
			if (k == 0)
				must(stream_serve_tls(s, ca, view_str("allowed.test"), &err) == 0);
			else
				must(stream_connect_tls(s, roots, view_str("allowed.test"),
					     view_str(""), &err) == 0);
			run_until(&h->shaken);
			question_and_answer(s, h);
		}
		say(k == 0 ? "handshake and one answer, as server"
			   : "handshake and one question, as client",
			(cpu_us() - t) / CONNECTIONS, "us");
	}
	for (int i = 0; i < 10; i++)
		(void)ev_run(loop, EVRUN_NOWAIT);
	say("idle intercepted connection, both sides",
		(double)(mallinfo2().uordblks - before) / CONNECTIONS, "bytes");
	(void)kill(child, SIGKILL);
	(void)waitpid(child, NULL, 0);
	for (int k = 0; k < 2; k++)
		for (int i = 0; i < CONNECTIONS; i++) {
			stream_close(streams[k][i], true);
			(void)close(far[k][i]);
		}
	(void)ev_run(loop, EVRUN_NOWAIT);
	ca_free(ca);
	roots_free(roots);
	SSL_CTX_free(server);
}

/* ---- tunnels ---- */

static int done_n;

static enum tunnel_may
pass(void *owner, enum tunnel_way way, size_t n)
{
	(void)owner, (void)way, (void)n;
	return TUNNEL_PASS;
}

static void
done(void *owner, enum tunnel_end end, const char *text)
{
	(void)owner, (void)text;
	must(end == TUNNEL_CLEAN);
	done_n = 1;
}

static pid_t
pump(int fd, bool out)
{
	static uint8_t room[256 * 1024];
	pid_t child = fork();

	if (child != 0)
		return child;
	blocking(fd);
	for (uint64_t n = 0; n < STREAM_BYTES;) {
		size_t want = STREAM_BYTES - n < sizeof(room) ? (size_t)(STREAM_BYTES - n)
							      : sizeof(room);
		ssize_t r = out ? send(fd, room, want, 0) : recv(fd, room, sizeof(room), 0);

		must(r > 0);
		n += (uint64_t)r;
	}
	(void)shutdown(fd, SHUT_WR);
	while (read(fd, room, sizeof(room)) > 0)
		continue;
	_exit(0);
}

/* Seconds. */
static double
measure_tunnel(const char *what)
{
	static const struct tunnel_events events = {pass, done};
	struct heard h;
	int a, b;
	struct stream *program = ends_stream(loop, &h, &a), *server = ends_stream(loop, &h, &b);
	pid_t from = pump(a, true), to = pump(b, false);
	double cpu = cpu_us();
	uint64_t t = clock_mono_us();

	(void)close(a);
	(void)close(b);
	must(tunnel_new(loop, program, server, &(struct tunnel_limits){0}, &events, NULL) != NULL);
	done_n = 0;
	run_until(&done_n);
	t = clock_mono_us() - t;
	(void)printf("%-40s %10.2f GB/s %8.0f us CPU per GiB\n", what,
		(double)STREAM_BYTES / 1e3 / (double)t, cpu_us() - cpu);
	(void)fflush(stdout);
	(void)waitpid(from, NULL, 0);
	(void)waitpid(to, NULL, 0);
	return (double)t;
}

int
main(void)
{
	struct rlimit was, now;
	double copied, spliced;

	(void)signal(SIGPIPE, SIG_IGN);
	(void)OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG, NULL);
	loop = loop_new();
	must(getrlimit(RLIMIT_NOFILE, &was) == 0);
	now = was;
	now.rlim_cur = was.rlim_max < 4096 ? was.rlim_max : 4096;
	must(setrlimit(RLIMIT_NOFILE, &now) == 0);
	measure_leaves();
	measure_connections();
	/* Without room for a pipe it copies; so this one comes first. */
	now.rlim_cur = 9;
	must(setrlimit(RLIMIT_NOFILE, &now) == 0);
	copied = measure_tunnel("tunnel, copying");
	now.rlim_cur = 256;
	must(setrlimit(RLIMIT_NOFILE, &now) == 0);
	spliced = measure_tunnel("tunnel, in the kernel");
	say("in the kernel, as a multiple of copying", copied / spliced, "x");
	loop_free(loop);
	return 0;
}
