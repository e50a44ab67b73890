/* SPDX-License-Identifier: Apache-2.0 */
/* demilune.yaml: values, places of faults, all faults at once, rules between options. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "config/compile.h"
#include "config/option.h"

#include <errno.h>
#include <stdio.h>

struct faults {
	char text[4096];
	size_t n;
};

static void
note(void *ctx, struct place at, const char *text)
{
	struct faults *f = ctx;

	f->n += (size_t)snprintf(
		f->text + f->n, sizeof(f->text) - f->n, "%u:%u %s\n", at.line, at.column, text);
}

static unsigned
run(const char *text, struct settings *ret, struct faults *f)
{
	const struct document_sink sink = {.ctx = f, .on_fault = note};

	*f = (struct faults){.n = 0};
	return compile(view_str(text), ret, &sink);
}

static void
defaults_are_complete(void **state)
{
	struct settings s;
	struct faults f;

	(void)state;
	assert_int_equal(run("", &s, &f), 0);
	assert_string_equal(s.state_dir, "/var/lib/demilune");
	assert_string_equal(s.tcp_address, "127.0.0.1");
	assert_int_equal(s.tcp_port, 7420);
	assert_int_equal(s.default_limits.memory_bytes, 512 << 20);
	assert_int_equal(s.default_ttl_ms, 900000);
	assert_true(s.admin_uid == (uint32_t)OPTION_NONE_UID);
	assert_int_equal(s.broker_uid, 64106);
	assert_int_equal(s.dialer_uid, 64107);
	assert_string_equal(s.operations_dir, "/etc/demilune/operations.d");
	assert_string_equal(s.secrets_dir, "/etc/demilune/secrets");
	assert_string_equal(s.trust_dir, "/etc/demilune/trust");
	assert_string_equal(s.mirrors[0], "");
	assert_string_equal(s.origin, "demilune.local/audit");
	assert_string_equal(s.resolvers[0], "system");
	assert_string_equal(s.resolvers[1], "");
	assert_string_equal(s.policies_dir, "/etc/demilune/policy.d");
	assert_string_equal(s.roots, "/etc/ssl/certs/ca-certificates.crt");
	assert_string_equal(s.default_policy, "");
	assert_int_equal(s.gateway_uid_base, 2130706432);
	assert_int_equal(s.actions.pending_max, 20);
	assert_int_equal(s.actions.grant_max_ttl_ms, 86400000);
	assert_int_equal(s.actions.task.attempts, 100);
	assert_int_equal(s.actions.tenant_day.broker_bytes, 4LL << 30);
	assert_int_equal(run("# only a comment\n", &s, &f), 0);
}

static void
values_are_read(void **state)
{
	struct settings s;
	struct faults f;

	(void)state;
	assert_int_equal(run("state_dir: /srv/demilune\n"
			     "listen:\n  tcp: none\n"
			     "uids: {admin: 1000}\n"
			     "limits:\n  ttl: 2h\n  sandbox_cpu: 2500m\n"
			     "defaults: {memory: \"64MiB\", idle: 90s, policy: support}\n"
			     "egress: {policies: /srv/policy, roots: /srv/roots.pem}\n"
			     "actions: {operations: /srv/ops, pending: 3, grant_ttl: 10m}\n"
			     "audit:\n  mirrors: /a/b, /c\n  origin: audit.example.org/x\n"
			     "dialer: {resolvers: \"192.0.2.1,[2001:db8::1]:5353\"}\n"
			     "task: {broker_bytes: 1MiB}\ntenant: {proposals_per_day: 7}\n"
			     "cgroup: v1\n",
				 &s, &f),
		0);
	assert_string_equal(s.state_dir, "/srv/demilune");
	assert_int_equal(s.tcp_port, 0);
	assert_int_equal(s.admin_uid, 1000);
	assert_int_equal(s.max_ttl_ms, 7200000);
	assert_int_equal(s.max_limits.cpu_milli, 2500);
	assert_int_equal(s.default_limits.memory_bytes, 64 << 20);
	assert_int_equal(s.default_idle_ms, 90000);
	assert_int_equal(s.cgroup_mode, CGROUP_V1);
	assert_string_equal(s.operations_dir, "/srv/ops");
	assert_string_equal(s.default_policy, "support");
	assert_string_equal(s.policies_dir, "/srv/policy");
	assert_string_equal(s.roots, "/srv/roots.pem");
	assert_int_equal(s.actions.pending_max, 3);
	assert_int_equal(s.actions.grant_max_ttl_ms, 600000);
	assert_string_equal(s.mirrors[0], "/a/b");
	assert_string_equal(s.mirrors[1], "/c");
	assert_string_equal(s.mirrors[2], "");
	assert_string_equal(s.origin, "audit.example.org/x");
	assert_string_equal(s.resolvers[0], "192.0.2.1");
	assert_string_equal(s.resolvers[1], "[2001:db8::1]:5353");
	assert_string_equal(s.resolvers[2], "");
	assert_int_equal(s.actions.task.broker_bytes, 1 << 20);
	assert_int_equal(s.actions.tenant_day.proposals, 7);
}

static void
every_fault_is_told_with_its_place(void **state)
{
	struct settings s;
	struct faults f;

	(void)state;
	assert_int_equal(run("state_dir: relative\n"
			     "nonsense: 1\n"
			     "limits:\n  ttl: 5\n  nothing: 1\n"
			     "listen: {tcp: \"0.0.0.0:80\"}\n",
				 &s, &f),
		5);
	assert_non_null(strstr(f.text, "1:12 state_dir must be an absolute path"));
	assert_non_null(strstr(f.text, "2:11 there is no option nonsense"));
	assert_non_null(strstr(f.text, "4:8 limits.ttl must be a whole number and a unit"));
	assert_non_null(strstr(f.text, "5:12 there is no option limits.nothing"));
	assert_non_null(strstr(f.text, "6:15 listen.tcp must be a loopback address"));
}

static void
refused_values(void **state)
{
	static const char *const bad[] = {
		"state_dir: /a/../b",
		"state_dir: /a//b",
		"state_dir: /a/",
		"state_dir: [/a]",
		"state_dir: &x /a",
		"state_dir: !!str /a",
		"state_dir: {a: b}",
		"limits: 5",
		"limits: {ttl: {x: 1}}",
		"cgroup: v3",
		"audit: {mirrors: a}",
		"audit: {mirrors: \"/a,\"}",
		"audit: {mirrors: \"\"}",
		"audit: {mirrors: \"/a,none\"}",
		"audit: {mirrors: \"/a,/b,/c,/d,/e\"}",
		"audit: {mirrors: \"/a,/a\"}",
		"audit: {mirrors: /var/lib/demilune/x}",
		"audit: {mirrors: [/a]}",
		"audit: {origin: \"\"}",
		"audit: {origin: a+b}",
		"audit: {origin: a b}",
		"audit: {origin: \"a\\nb\"}",
		"audit: {origin: \"\u00e9\"}",
		"dialer: {resolvers: none}",
		"dialer: {resolvers: \"\"}",
		"dialer: {resolvers: localhost}",
		"dialer: {resolvers: \"192.0.2.1:0\"}",
		"dialer: {resolvers: \"2001:DB8::1\"}",
		"dialer: {resolvers: \"system,192.0.2.1\"}",
		"dialer: {resolvers: \"192.0.2.1,192.0.2.2,192.0.2.3,192.0.2.4\"}",
		"dialer: {resolvers: \"192.0.2.1 ,192.0.2.2\"}",
		"dialer: {resolvers: \"fe80::1%eth0\"}",
		"actions: {pending: 0}",
		"actions: {operations: x}",
		"actions: {trust: /var/lib/demilune/engine/trust}",
		"actions: {secrets: /run/demilune}",
		"actions: {secrets: /etc/demilune/trust/secrets}",
		"actions: {grant_ttl: 31d}",
		"uids: {broker: 64107}",
		"uids: {dialer: 0}",
		"limits: {ttl: 18446744073709551615d}",
		"limits: {ttl: -1s}",
		"limits: {ttl: 1.5h}",
		"limits: {ttl: 031s}",
		"limits: {sandboxes: 0}",
		"limits: {sandboxes: 1e3}",
		"limits: {sandboxes: ''}",
		"uids: {engine: 0}",
		"uids: {engine: none}",
		"uids: {engine: 64102}",
		"uids: {gateway_base: none}",
		"uids: {gateway_base: 65535}",
		"uids: {gateway_base: 64104, sandbox_slots: 1024}",
		"uids: {engine: 2130706432}",
		"uids: {engine: 2130707455}",
		"uids: {admin: 2130707000}",
		"uids: {gateway_base: 2147483648}",
		"uids: {gateway_base: 2147482625}",
		"uids: {gateway_base: 2214592511}",
		"uids: {sandbox_base: 2130707455}",
		"uids: {gateway_base: 4200000001}",
		"defaults: {policy: \"\"}",
		"defaults: {policy: Support}",
		"defaults: {policy: a/b}",
		"defaults: {policy: [support]}",
		"defaults: {policy: -a}",
		"egress: {policies: x}",
		"egress: {policies: /var/lib/demilune/policy}",
		"egress: {policies: /run/demilune}",
		"egress: {policies: /etc/demilune}",
		"egress: {policies: /etc/demilune/operations.d/policy.d}",
		"egress: {roots: /var/lib/demilune/roots.pem}",
		"egress: {rules: []}",
		"listen: {tcp: 127.0.0.1}",
		"listen: {tcp: 127.0.0.1:0}",
		"listen: {tcp: 127.1:80}",
		"listen: {tcp: '127.0.0.1:070'}",
		"listen: {tcp: localhost:80}",
		"uids: {sandbox_base: 4200000000, sandbox_slots: 16384}",
		"uids: {sandbox_slots: 4}",
		"defaults: {memory: 16GiB}",
		"limits: {ttl: 1m}",
		"run_dir: /var/lib/demilune/run",
		"uids: {sandbox_base: 65536}\nuids2: 1",
		"a: 1\n---\nb: 2",
		"- list",
		"scalar",
		"a: *x",
		"? {a: b}\n: c",
		"cgroup: v1\ncgroup: v2",
		"listen.tcp: none",
		"a: \"unterminated",
		"\x01: 1",
		"<<: {cgroup: v1}",
		"a: {b: {c: {d: {e: 1}}}}",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct settings s;
		struct faults f;

		if (run(bad[i], &s, &f) == 0)
			fail_msg("accepted: %s", bad[i]);
		assert_true(f.n > 0);
	}
}

static void
rules_between_options(void **state)
{
	struct settings s;
	struct faults f;

	(void)state;
	assert_int_equal(run("uids: {engine: 64102}", &s, &f), 1);
	assert_non_null(strstr(f.text, "must all be different"));
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(
			run(i == 0 ? "uids: {broker: 64101}" : "uids: {dialer: 64103}", &s, &f), 1);
		assert_non_null(strstr(f.text, "must all be different"));
	}
	assert_int_equal(run("limits: {ttl: 1m}", &s, &f), 1);
	assert_non_null(strstr(f.text, "defaults.ttl must be at most limits.ttl"));
	assert_int_equal(run("uids: {sandbox_base: 65536, sandbox_slots: 300}\n", &s, &f), 0);
	assert_int_equal(
		run("uids: {sandbox_base: 65536, sandbox_slots: 300, engine: 70000}\n", &s, &f), 1);
	assert_non_null(strstr(f.text, "hold none of the other uids"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(defaults_are_complete),
		cmocka_unit_test(values_are_read),
		cmocka_unit_test(every_fault_is_told_with_its_place),
		cmocka_unit_test(refused_values),
		cmocka_unit_test(rules_between_options),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
