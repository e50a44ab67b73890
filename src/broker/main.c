/* SPDX-License-Identifier: Apache-2.0 */
/*
 * demilune-broker: holds every secret, verifies every approval, sends each approved request once. Descriptors as in proto/fds.def; no
 * arguments, no environment. The order of the start is the point: not dumpable before the first secret is read, everything that needs a
 * file or a socket before the jail, the jail before the first byte of engine, dialer or provider.
 */
#include "broker/confine.h"
#include "broker/gateway.h"
#include "broker/lease.h"

#include "lib/base/fd.h"
#include "lib/base/log.h"
#include "lib/jail/jail.h"
#include "lib/json/parse.h"
#include "lib/loop/loop.h"

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>

static void
note(const char *text)
{
	log_line("%s; providers that need it are refused", text);
}

static void
on_approvers(struct ev_loop *loop, ev_timer *t, int events)
{
	(void)loop, (void)events;
	approvers_look(container_of(t, struct broker, approvers));
}

static void
broker_init(struct broker *b)
{
	*b = (struct broker){
		.loop = loop_new(), .state = FD_BROKER_STATE, .trust = FD_BROKER_TRUST};
	list_init(&b->calls);
	list_init(&b->works);
	list_init(&b->gateways);
	list_init(&b->policies);
	b->approval.trust = b->trust;
	ev_timer_init(&b->approvers, on_approvers, (double)LIMIT_APPROVERS_MS / 1000.0,
		(double)LIMIT_APPROVERS_MS / 1000.0);
}

/* No core, no ptrace by others of the same uid, before there is anything to see. */
static int
hide(struct err *err)
{
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return err_errno(err, "PR_SET_DUMPABLE");
	return jail_rlimits_set(NULL, 0, err);
}

static int
load(struct broker *b, struct err *err)
{
	if (json_start(err) < 0 || http_library(err) < 0 || vault_new(&b->vault, err) < 0 ||
		serve_supervisor(b, FD_BROKER_SUPERVISOR, err) < 0)
		return err->code;
	(void)ev_run(b->loop, 0); /* until BROKER_BEGIN */
	if (b->supervisor == NULL || b->supervisor->state != BROKER_LIVE)
		return err_set(err, -EPIPE, "the supervisor does not say how to start");
	if (catalogue_read(FD_BROKER_CATALOGUE, &b->catalogue, err) < 0)
		return err_context(err, "catalogue");
	b->leases = calloc(1, sizeof(*b->leases));
	if (b->leases == NULL)
		return err_set(err, -ENOMEM, "no memory for leases");
	if (roots_load(&b->catalogue, b->trust, note, &b->roots, err) < 0 ||
		http_new(b->loop, &b->http, err) < 0)
		return err->code;
	return 0;
}

static void
broker_done(struct broker *b)
{
	/* Nothing is answered any more; what was sent without an end is `unknown` for the next one. */
	gateways_free(b);
	free(b->leases);
	vault_free(b->vault);
	checkpoint_done(b);
	ledger_close(b->ledger);
	roots_free(b->roots);
}

int
main(void)
{
	static struct broker broker;
	struct err err = {0};
	uint64_t cut = 0;

	log_name("broker");
	if (signal(SIGPIPE, SIG_IGN) == SIG_ERR || signal(SIGXFSZ, SIG_IGN) == SIG_ERR)
		log_exit(EXIT_NO_START, "cannot ignore SIGPIPE and SIGXFSZ");
	(void)umask(077);
	if (hide(&err) < 0)
		log_exit(EXIT_NO_START, "%s", err.text);
	broker_init(&broker);
	if (load(&broker, &err) < 0)
		log_exit(EXIT_NO_START, "%s", err.text);
	if (ledger_open(broker.state, &broker.ledger, &cut, &err) < 0)
		log_exit(EXIT_LEDGER, "%s", err.text);
	if (cut != 0)
		log_line("cut %llu bytes of an unfinished entry off the end of the ledger",
			(unsigned long long)cut);
	if (checkpoint_open(&broker, &err) < 0)
		log_exit(EXIT_LEDGER, "%s", err.text);
	ending_init(&broker);
	if (confine(&broker, &err) < 0)
		log_exit(EXIT_NO_JAIL, "cannot be confined: %s", err.text);
	(void)approval_refresh(&broker.approval);
	if (broker.approval.fault[0] != '\0')
		log_line("%s; everything is denied", broker.approval.fault);
	if (serve_dialer(&broker, FD_BROKER_DIALER, &err) < 0 ||
		serve_engine(&broker, FD_BROKER_ENGINE, &err) < 0)
		log_exit(EXIT_NO_START, "%s", err.text);
	ipc_peer_pause(broker.supervisor, false);
	ev_timer_start(broker.loop, &broker.approvers);
	(void)ev_run(broker.loop, 0);
	broker_done(&broker);
	return EXIT_CLOSED;
}
