/* SPDX-License-Identifier: Apache-2.0 */
/*
 * demilune-api: reads its arguments, binds, confines itself, runs the loop. Started by the supervisor with the descriptors
 * of proto/fds.def: demilune-api ADDRESS:PORT (or none)
 */
#include "conn.h"
#include "confine.h"
#include "lib/base/log.h"
#include "lib/json/parse.h"
#include "lib/loop/loop.h"
#include "listen.h"
#include "repl.h"
#include "serve.h"

#include <signal.h>
#include <string.h>

enum { EXIT_USAGE = 2, EXIT_START = 3 };

static void
on_signal(struct ev_loop *loop, ev_signal *w, int events)
{
	(void)w, (void)events;
	ev_break(loop, EVBREAK_ALL);
}

static void
signals_start(struct api *api)
{
	ev_signal_init(&api->term, on_signal, SIGTERM);
	ev_signal_init(&api->intr, on_signal, SIGINT);
	ev_signal_start(api->loop, &api->term);
	ev_signal_start(api->loop, &api->intr);
}

int
main(int argc, char **argv)
{
	static struct api api = {.next_tag = 1};
	struct err err = {0};
	int tcp = -1;

	log_name("api");
	if (argc != 2)
		log_exit(EXIT_USAGE,
			"one argument: the loopback address to listen on, ADDRESS:PORT, or none");
	list_init(&api.asks);
	list_init(&api.conns);
	list_init(&api.repls);
	list_init(&api.held);
	api.loop = loop_new();
	if (json_start(&err) < 0 ||
		(strcmp(argv[1], "none") != 0 && listen_tcp_open(argv[1], &tcp, &err) < 0))
		log_exit(EXIT_START, "%s", err.text);
	signals_start(&api);
	log_line(
		"starting"); /* before the jail: the C library reads its time zone file at the first date */
	if (confine(&err) < 0)
		log_exit(EXIT_START, "%s", err.text);
	if (serve_start(&api, FD_API_ENGINE, FD_API_SUPERVISOR, &err) < 0 ||
		listen_start(&api, FD_API_LOCAL, tcp, &err) < 0)
		log_exit(EXIT_START, "%s", err.text);
	repl_start(&api);
	log_line("serving");
	ev_run(api.loop, 0);
	list_each (c, &api.conns, struct conn, link)
		conn_close(c); /* which lets the listeners accept again: they go afterwards */
	listen_stop(&api);
	repl_stop(&api);
	serve_stop(&api);
	loop_free(api.loop);
	log_line("ended");
	return api.status;
}
