/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What programs of a sandbox trust in TLS: files and variables of their jobs behind the real agent and relay, and each order in which it
 * must not be said.
 */
#include "world.h"

#include "lib/channel/channel.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

enum { AGENT_BAD_FRAME = 2 };

static struct world world;

#define auto_result __attribute__((cleanup(result_done)))

#define CERTIFICATE "-----BEGIN CERTIFICATE-----\nb3Vy\n-----END CERTIFICATE-----\n"
#define ROOTS       "-----BEGIN CERTIFICATE-----\ndGhlaXJz\n-----END CERTIFICATE-----\n"
#define TRUST_IN    "/run/demilune/trust/"

static const char keystore[] = "\xfe\xed\xfe\xed key store";

static void
open_with(const char *roots)
{
	world_start(&world, &(struct world_options){.roots = roots, .places = roots != NULL});
	world_open(&world);
}

static void
trust(const char *certificate, bool system_roots)
{
	SEND(&world, RELAY_TRUST, relay_trust, -1,
		{.certificate = view_str(certificate),
			.keystore = certificate[0] == '\0' ? view_of(NULL, 0) : view_str(keystore),
			.system_roots = system_roots});
}

static void
check_shell(const char *command, const char *out)
{
	auto_result struct result r;

	world_shell(&world, command, &r);
	if (!view_is(buf_view(&r.out), out))
		fail_msg("%s: \"%.*s\", not \"%s\"", command, VIEW_ARGS(buf_view(&r.out)), out);
}

static const char variables[] = "env | grep -E '_CERT|_CA|PIP_' | sed 's|" TRUST_IN
				"|@|' | LC_ALL=C sort";

static void
programs_find_the_certificate_and_where_it_is(void **state)
{
	(void)state;
	open_with(ROOTS);
	trust(CERTIFICATE, false);
	check_shell("cat " TRUST_IN "ca.crt", CERTIFICATE);
	check_shell("cat " TRUST_IN "bundle.crt", CERTIFICATE); /* in place of the image's */
	check_shell("cat " TRUST_IN "java.jks", keystore);
	check_shell("cd " TRUST_IN " && stat -c '%n %a %F' *",
		"bundle.crt 644 regular file\nca.crt 644 regular file\njava.jks 644 regular "
		"file\n");
	check_shell(variables, "AWS_CA_BUNDLE=@bundle.crt\nCARGO_HTTP_CAINFO=@bundle.crt\n"
			       "CURL_CA_BUNDLE=@bundle.crt\nDENO_CERT=@ca.crt\n"
			       "GIT_SSL_CAINFO=@bundle.crt\nNODE_EXTRA_CA_CERTS=@ca.crt\n"
			       "PIP_CERT=@bundle.crt\nREQUESTS_CA_BUNDLE=@bundle.crt\n"
			       "SSL_CERT_FILE=@bundle.crt\n");
	world_stop(&world);
}

static void
with_opaque_rules_the_image_s_roots_follow(void **state)
{
	(void)state;
	open_with(ROOTS);
	trust(CERTIFICATE, true);
	check_shell("cat " TRUST_IN "bundle.crt", CERTIFICATE ROOTS);
	check_shell("cat " TRUST_IN "ca.crt", CERTIFICATE);
	world_stop(&world);
	open_with(NULL); /* an image without roots */
	trust(CERTIFICATE, true);
	check_shell("cat " TRUST_IN "bundle.crt", CERTIFICATE);
	world_stop(&world);
}

static void
what_the_caller_says_of_a_variable_stays(void **state)
{
	auto_buf struct buf room = {.max = 1 << 17};
	auto_result struct result r;
	struct msg_job_start m;
	static const char env[] = "PATH=/usr/bin:/bin\0SSL_CERT_FILE=/mine\0PIP_CERT=\0"
				  "CURL_CA_BUNDLES=/else";

	(void)state;
	open_with(NULL);
	trust(CERTIFICATE, false);
	m = start_shell(&world, &room, "echo \"$SSL_CERT_FILE,$PIP_CERT,$CURL_CA_BUNDLE\"");
	m.env = view_of(env, sizeof(env));
	world_run(&world, &m, NULL, &r);
	assert_true(view_is(buf_view(&r.out), "/mine,," TRUST_IN "bundle.crt\n"));
	world_stop(&world);
}

static void
without_an_authority_there_is_what_the_image_has(void **state)
{
	(void)state;
	open_with(ROOTS);
	check_shell(variables, "");
	check_shell("cat " TRUST_IN "bundle.crt; ls " TRUST_IN, ROOTS "bundle.crt\njava.jks\n");
	world_stop(&world);
	open_with(ROOTS);
	trust("", true); /* a policy whose rules are all opaque */
	check_shell(variables, "");
	check_shell("cat " TRUST_IN "bundle.crt", ROOTS);
	world_stop(&world);
}

/* A new engine says it again. */
static void
said_twice_the_first_holds(void **state)
{
	(void)state;
	open_with(NULL);
	trust(CERTIFICATE, false);
	trust(ROOTS, false);
	check_shell("cat " TRUST_IN "ca.crt", CERTIFICATE);
	trust(ROOTS, false);
	check_shell("cat " TRUST_IN "ca.crt", CERTIFICATE);
	world_stop(&world);
}

/* An engine that says it too late is lost; the sandbox is not. */
static void
after_the_first_job_it_is_too_late(void **state)
{
	struct pollfd p;
	char byte;

	(void)state;
	open_with(NULL);
	check_shell("echo done", "done\n");
	trust(CERTIFICATE, false);
	p = (struct pollfd){.fd = world.engine, .events = POLLIN};
	assert_int_equal(poll(&p, 1, 5000), 1);
	assert_true(recv(world.engine, &byte, 1, MSG_DONTWAIT) <= 0);
	assert_int_equal(waitpid(world.agent, NULL, WNOHANG), 0);
	assert_int_equal(waitpid(world.relay, NULL, WNOHANG), 0);
	world_stop(&world);
}

/* It does not wait for the agent to be there: a job that comes at once finds it. */
static void
said_before_the_agent_lives(void **state)
{
	(void)state;
	world_start(&world, &(struct world_options){0});
	trust(CERTIFICATE, false);
	world_open(&world);
	check_shell("cat " TRUST_IN "ca.crt", CERTIFICATE);
	world_stop(&world);
}

/* ---- a relay that breaks the table of frames ---- */

static void
agent_alone(struct channel_out *out)
{
	world_start(&world, &(struct world_options){.no_relay = true});
	channel_out_init(out, 1 << 20);
}

static void
put_trust(struct channel_out *out, uint32_t stream, const char *certificate, const char *store)
{
	CHANNEL_PUT(out, stream, TRUST, trust,
		{.certificate = view_str(certificate), .keystore = view_str(store)});
}

static void
put_job(struct channel_out *out)
{
	CHANNEL_PUT(out, 1, START, start,
		{.kind = JOB_KIND_EXEC, .uid = 10001, .argv_bytes = 5, .path = view_str("/")});
}

/* The agent's end, which is the sandbox's. */
static void
check_end(struct channel_out *out)
{
	struct err err = {0};
	int status, waited = 0;

	assert_int_equal(channel_out_flush(out, world.channel, &err), 0);
	for (int i = 0; i < 1000 && waited == 0; i++) {
		waited = waitpid(world.agent, &status, WNOHANG);
		(void)poll(NULL, 0, 5);
	}
	assert_int_equal(waited, world.agent);
	world.agent = 0;
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), AGENT_BAD_FRAME);
	channel_out_done(out);
	world_stop(&world);
}

static void
an_order_that_must_not_be_ends_the_sandbox(void **state)
{
	struct channel_out out;

	(void)state;
	agent_alone(&out); /* twice */
	put_trust(&out, 0, CERTIFICATE, keystore);
	put_trust(&out, 0, CERTIFICATE, keystore);
	check_end(&out);
	agent_alone(&out); /* after a job, even one that only begins */
	put_job(&out);
	put_trust(&out, 0, CERTIFICATE, keystore);
	check_end(&out);
	agent_alone(&out); /* on a stream */
	put_trust(&out, 1, CERTIFICATE, keystore);
	check_end(&out);
	agent_alone(&out); /* half of it */
	put_trust(&out, 0, "", keystore);
	check_end(&out);
	agent_alone(&out);
	put_trust(&out, 0, CERTIFICATE, "");
	check_end(&out);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(programs_find_the_certificate_and_where_it_is),
		cmocka_unit_test(with_opaque_rules_the_image_s_roots_follow),
		cmocka_unit_test(what_the_caller_says_of_a_variable_stays),
		cmocka_unit_test(without_an_authority_there_is_what_the_image_has),
		cmocka_unit_test(said_twice_the_first_holds),
		cmocka_unit_test(after_the_first_job_it_is_too_late),
		cmocka_unit_test(said_before_the_agent_lives),
		cmocka_unit_test(an_order_that_must_not_be_ends_the_sandbox)};

	if (geteuid() != 0)
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
