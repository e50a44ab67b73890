/* SPDX-License-Identifier: Apache-2.0 */
/*
 * demilune-gateway: one per sandbox with a policy. Descriptors as in proto/fds.def; no arguments, no environment. It is started beside a
 * spare, confined before anything is read, and waits to become one sandbox's. Ends when the supervisor closes its edge.
 */
#include "begin.h"
#include "ca.h"
#include "confine.h"
#include "serve.h"

#include "lib/base/fd.h"
#include "lib/base/log.h"

#include <errno.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <time.h>

enum { EXIT_NO_START = 1, WARM_BYTES = 8192 };

/* What OpenSSL would look for outside is not looked for; what it makes once is made here. */
static int
tls_start(struct err *err)
{
	uint8_t byte;

	tzset(); /* OpenSSL's dates read the time zone's file, once */
	if (OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG, NULL) != 1 ||
		RAND_bytes(&byte, sizeof(byte)) != 1)
		return err_set(err, -ENOMEM, "OpenSSL does not start");
	return 0;
}

/*
 * What OpenSSL prepares at its first use takes longer than the use: it is done while nobody waits, with an authority of no policy that
 * nobody gets. The keys of the one that its sandbox gets are others (gateway_init).
 */
static int
tls_warm(struct err *err)
{
	static const struct policy none;
	auto_buf struct buf certificate, keystore;
	struct ca *ca;
	int r;

	buf_init(&certificate, WARM_BYTES);
	buf_init(&keystore, WARM_BYTES);
	ca = ca_new(err);
	if (ca == NULL)
		return err->code;
	r = ca_certify(ca, &none, &certificate, &keystore, err);
	ca_free(ca);
	return r;
}

int
main(void)
{
	static struct gateway gateway;
	struct err err = {0};

	log_name("gateway");
	(void)signal(SIGPIPE, SIG_IGN); /* a write to a closed socket is an error like others */
	if (fd_close_from(FD_GATEWAY_SUPERVISOR + 1, &err) < 0 || tls_start(&err) < 0 ||
		confine(&err) < 0 || tls_warm(&err) < 0 || gateway_init(&gateway, &err) < 0 ||
		serve_supervisor(&gateway, FD_GATEWAY_SUPERVISOR, &err) < 0)
		log_exit(EXIT_NO_START, "%s", err.text);
	(void)ev_run(gateway.loop, 0);
	gateway_done(&gateway);
	return gateway.exit;
}
