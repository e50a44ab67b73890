/* SPDX-License-Identifier: Apache-2.0 */
/*
 * demilune-dialer: the only process that connects to the outside. Descriptors as in proto/fds.def; no arguments, no environment. Reads
 * what it needs of the host, confines itself, then listens to the broker and to gateways. Ends when the supervisor closes its edge.
 */
#include "confine.h"
#include "gateway.h"
#include "serve.h"

#include "lib/base/fd.h"
#include "lib/base/log.h"
#include "lib/loop/loop.h"

#include <signal.h>

enum { EXIT_NO_START = 1 };

/* Nothing was read of the broker or of a name server yet. */
static int
dialer_begin(struct dialer *d, const struct msg_dialer_begin *m, struct err *err)
{
	int r = servers_find(m, &d->servers, err);

	if (r < 0)
		return r;
	/* Before the jail: the C library reads its time zone at the first date. */
	log_line("%zu origins, %zu name servers, %zu networks of this host", d->origins.n,
		d->servers.n, d->own.n);
	r = confine(d, err);
	return r < 0 ? r : serve_broker(d, FD_DIALER_BROKER, err);
}

static int
dialer_init(struct dialer *d, struct err *err)
{
	int r = origins_load(FD_DIALER_ORIGINS, &d->origins, err);

	(void)close(FD_DIALER_ORIGINS); /* it was read */
	if (r == 0)
		r = own_learn(&d->own, err);
	if (r < 0)
		return r;
	list_init(&d->gateways);
	list_init(&d->policies);
	broker_init(d);
	d->begin = dialer_begin;
	d->loop = loop_new();
	return serve_supervisor(d, FD_DIALER_SUPERVISOR, err);
}

int
main(int argc, char **argv)
{
	static struct dialer dialer;
	struct err err = {0};

	(void)argv;
	log_name("dialer");
	if (argc != 1)
		log_exit(EXIT_NO_START, "no arguments; the supervisor starts this program");
	(void)signal(SIGPIPE, SIG_IGN); /* a write to a closed edge is an error like others */
	if (fd_close_from(FD_DIALER_ORIGINS + 1, &err) < 0 || dialer_init(&dialer, &err) < 0)
		log_exit(EXIT_NO_START, "%s", err.text);
	ev_run(dialer.loop, 0);
	gateways_free(&dialer);
	dials_forget(&dialer.broker);
	ipc_peer_close(dialer.broker.peer);
	ipc_peer_close(dialer.supervisor);
	loop_free(dialer.loop);
	origins_done(&dialer.origins);
	return dialer.exit;
}
