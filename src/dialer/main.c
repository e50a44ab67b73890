/* SPDX-License-Identifier: Apache-2.0 */
/*
 * demilune-dialer: the only process that connects to the outside. Descriptors as in proto/fds.def; no arguments, no environment. Reads
 * what it needs of the host, confines itself, then listens to the broker. Ends when the supervisor closes its edge.
 */
#include "confine.h"
#include "serve.h"

#include "lib/base/fd.h"
#include "lib/base/log.h"
#include "lib/loop/loop.h"

#include <signal.h>

enum { EXIT_NO_START = 1 };

static int
dialer_init(struct dialer *d, struct err *err)
{
	struct msg_dialer_begin begin;
	int r = origins_load(FD_DIALER_ORIGINS, &d->origins, err);

	(void)close(FD_DIALER_ORIGINS); /* it was read */
	if (r == 0)
		r = own_learn(&d->own, err);
	if (r == 0)
		r = serve_begin(FD_DIALER_SUPERVISOR, &begin, err);
	if (r == 0)
		r = servers_find(&begin, &d->servers, err);
	if (r < 0)
		return r;
	/* Before the jail: the C library reads its time zone at the first date. */
	log_line("%zu origins, %zu name servers, %zu networks of this host", d->origins.n,
		d->servers.n, d->own.n);
	list_init(&d->dials);
	d->loop = loop_new();
	r = confine(d, err);
	return r < 0 ? r : serve_start(d, FD_DIALER_BROKER, FD_DIALER_SUPERVISOR, err);
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
	dials_forget(&dialer);
	ipc_peer_close(dialer.broker);
	ipc_peer_close(dialer.supervisor);
	loop_free(dialer.loop);
	origins_done(&dialer.origins);
	return dialer.exit;
}
