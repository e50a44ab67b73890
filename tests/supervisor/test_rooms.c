/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Broker and dialer beside engine and api: what each is given at its start and what not, new edges when one of them is started anew,
 * and the compiled operations: what is no catalogue, and SIGHUP. Stand-ins say what they got.
 */
#include "rig.h"

#include "lib/base/clock.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cmocka.h>

static struct rig rig;
static struct greeting greeting;

static int
setup(void **state)
{
	(void)state;
	rig_init(&rig);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	if (rig.pid != 0)
		rig_kill(&rig);
	rig_done(&rig);
	return 0;
}

static void
up(void)
{
	rig_start(&rig);
	rig_greeting(&rig, &greeting);
}

static const char *
path_of(const char *name)
{
	static char path[300];

	(void)snprintf(path, sizeof(path), "%s/%s", rig.dir, name);
	return path;
}

static void
make_dir(const char *name, mode_t mode)
{
	assert_int_equal(mkdir(path_of(name), mode), 0);
	assert_int_equal(chmod(path_of(name), mode), 0);
}

static void
make_file(const char *name, const char *text, mode_t mode)
{
	FILE *f = fopen(path_of(name), "we");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(chmod(path_of(name), mode), 0);
}

/* Exactly these words, of the broker on its edge to the engine; what the dialer said through it may come before and after. */
PRINTF(2, 3)
static void
broker_says(int edge, const char *format, ...)
{
	char want[1024], have[1024];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(want, sizeof(want), format, args);
	va_end(args);
	do
		rig_broker_says(edge, have, sizeof(have));
	while (strncmp(have, "dialer", 6) == 0);
	assert_string_equal(have, want);
}

static void
dialer_says(int edge, const char *origins)
{
	char want[256], have[1024];

	(void)snprintf(want, sizeof(want), "dialer uid=%u resolver=127.0.0.1:5300 origins=%s",
		rig.settings.dialer_uid, origins);
	do
		rig_broker_says(edge, have, sizeof(have));
	while (strncmp(have, "broker", 6) == 0);
	assert_string_equal(have, want);
}

static void
broker_says_plain(int edge)
{
	broker_says(edge, "broker uid=%u origin=test.local/audit operations= state=own trust=none",
		rig.settings.broker_uid);
}

/* A process of this uid; it may only just be started. */
static pid_t
pid_of_uid(uint32_t uid)
{
	for (int tries = 0; tries < 500; tries++, pause_ms(10)) {
		DIR *proc = opendir("/proc");
		struct dirent *e;
		unsigned found = 0;

		assert_non_null(proc);
		while (found == 0 && (e = readdir(proc)) != NULL) {
			struct stat st;

			if (fstatat(dirfd(proc), e->d_name, &st, 0) == 0 && st.st_uid == uid)
				(void)sscanf(e->d_name, "%u", &found);
		}
		(void)closedir(proc);
		if (found != 0 && process_lives((pid_t)found))
			return (pid_t)found;
	}
	fail_msg("no process of uid %u", uid);
	return 0;
}

/* ---- what they are given ---- */

static void
test_nothing_configured(void **state)
{
	(void)state;
	up();
	broker_says_plain(rig.broker);
	assert_int_equal(rig_stop(&rig), 0);
	assert_int_equal(access(rig.settings.run_dir, F_OK), -1);
}

static void
test_secrets(void **state)
{
	(void)state;
	make_dir("secrets", 0755);
	make_file("secrets/a.key", "alpha", 0600);
	make_file("secrets/b", "beta", 0400);
	assert_int_equal(chown(path_of("secrets/b"), rig.settings.broker_uid, 0), 0);
	make_file("secrets/group", "no", 0640);
	make_file("secrets/world", "no", 0604);
	make_file("secrets/stranger", "no", 0600);
	assert_int_equal(chown(path_of("secrets/stranger"), rig.settings.engine_uid, 0), 0);
	make_file("secrets/bad name", "no", 0600);
	make_file("shadow", "no", 0600);
	assert_int_equal(symlink("../shadow", path_of("secrets/link")), 0);
	assert_int_equal(mkfifo(path_of("secrets/pipe"), 0600), 0);
	make_dir("secrets/dir", 0700);
	up();
	broker_says(rig.broker,
		"broker uid=%u secret=a.key:alpha secret=b:beta origin=test.local/audit "
		"operations= state=own trust=none",
		rig.settings.broker_uid);
	assert_int_equal(rig_stop(&rig), 0);
}

static void
test_secrets_are_many(void **state)
{
	char have[1024], name[64];

	(void)state;
	make_dir("secrets", 0700);
	for (int i = 0; i < 70; i++) {
		(void)snprintf(name, sizeof(name), "secrets/%02d", i);
		make_file(name, "", 0600);
	}
	up();
	do /* what the dialer said comes through it too, before or after */
		rig_broker_says(rig.broker, have, sizeof(have));
	while (strncmp(have, "broker", 6) != 0);
	assert_non_null(strstr(have, "secret=63:"));
	assert_null(strstr(have, "secret=64:"));
	assert_int_equal(rig_stop(&rig), 0);
}

/* A directory in which others may rename: they would choose among root's files. */
static void
test_secrets_of_an_open_directory(void **state)
{
	(void)state;
	make_dir("secrets", 0777);
	make_file("secrets/a.key", "alpha", 0600);
	up();
	broker_says_plain(rig.broker);
	assert_int_equal(rig_stop(&rig), 0);
}

static void
test_trust_and_mirrors(void **state)
{
	(void)state;
	make_dir("trust", 0755);
	make_file("trust/approvers", "", 0644);
	make_dir("copy", 0700);
	(void)snprintf(
		rig.settings.mirrors[0], sizeof(rig.settings.mirrors[0]), "%s/copy", rig.dir);
	(void)snprintf(
		rig.settings.mirrors[1], sizeof(rig.settings.mirrors[1]), "%s/gone", rig.dir);
	up();
	broker_says(rig.broker,
		"broker uid=%u mirror=copy origin=test.local/audit operations= state=own "
		"trust=some",
		rig.settings.broker_uid);
	assert_int_equal(rig_stop(&rig), 0);
	assert_int_equal(chmod(path_of("trust"), 0777), 0);
	rig.settings.mirrors[0][0] = rig.settings.mirrors[1][0] = '\0';
	up();
	broker_says_plain(rig.broker);
	assert_int_equal(rig_stop(&rig), 0);
}

/* ---- one of them dies ---- */

static void
test_broker_killed(void **state)
{
	struct ipc_msg in;
	char have[64];

	(void)state;
	rig_operations(&rig, "alpha");
	up();
	broker_says(rig.broker,
		"broker uid=%u origin=test.local/audit operations=alpha state=own trust=none",
		rig.settings.broker_uid);
	/* Its files may be other ones now. */
	make_dir("secrets", 0755);
	make_file("secrets/new", "x", 0600);
	assert_int_equal(kill(pid_of_uid(rig.settings.broker_uid), SIGKILL), 0);
	rig_expect(&rig, MSG_BROKER_EDGE, &in);
	while (recv(rig.broker, have, sizeof(have), 0) > 0)
		; /* until the end of the old edge, which is seen */
	broker_says(in.fds[0],
		"broker uid=%u secret=new:x origin=test.local/audit operations=alpha state=own "
		"trust=none",
		rig.settings.broker_uid);
	dialer_says(in.fds[0], "alpha");
	ipc_msg_done(&in);
	assert_int_equal(rig_stop(&rig), 0);
}

static void
test_dialer_killed(void **state)
{
	pid_t old;

	(void)state;
	rig_operations(&rig, "alpha");
	up();
	dialer_says(rig.broker, "alpha");
	old = pid_of_uid(rig.settings.dialer_uid);
	assert_int_equal(kill(old, SIGKILL), 0);
	dialer_says(rig.broker, "alpha"); /* the same broker, over its new edge */
	assert_int_not_equal(pid_of_uid(rig.settings.dialer_uid), old);
	assert_int_equal(rig_stop(&rig), 0);
}

static void
test_engine_killed(void **state)
{
	pid_t broker;

	(void)state;
	up();
	broker_says_plain(rig.broker);
	broker = pid_of_uid(rig.settings.broker_uid);
	assert_int_equal(kill(rig.engine_pid, SIGKILL), 0);
	rig_engine_accept(&rig);
	rig_greeting(&rig, &greeting);
	broker_says_plain(rig.broker);
	assert_int_equal(pid_of_uid(rig.settings.broker_uid), broker);
	assert_int_equal(rig_stop(&rig), 0);
}

/* Restarts leave no descriptor behind. */
static void
test_descriptors(void **state)
{
	size_t before;

	(void)state;
	make_dir("secrets", 0755);
	make_file("secrets/a", "x", 0600);
	up();
	pause_ms(300);
	before = process_fds(rig.pid);
	for (int i = 0; i < 4; i++) {
		struct ipc_msg in;

		assert_int_equal(kill(pid_of_uid(rig.settings.broker_uid), SIGKILL), 0);
		rig_expect(&rig, MSG_BROKER_EDGE, &in);
		ipc_msg_done(&in);
		assert_int_equal(kill(pid_of_uid(rig.settings.dialer_uid), SIGKILL), 0);
		pause_ms(50);
	}
	(void)pid_of_uid(rig.settings.dialer_uid);
	pause_ms(1500);
	assert_int_equal(process_fds(rig.pid), before);
	assert_int_equal(rig_stop(&rig), 0);
}

/* ---- the operations ---- */

static void
test_catalogue(void **state)
{
	char text[16] = "";
	const int seals = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

	(void)state;
	rig_operations(&rig, "alpha");
	up();
	assert_int_equal(fcntl(rig.catalogue, F_GET_SEALS), seals);
	assert_int_equal(fcntl(rig.catalogue, F_GETFL) & O_ACCMODE, O_RDONLY);
	/* The broker read its own to the end. */
	broker_says(rig.broker,
		"broker uid=%u origin=test.local/audit operations=alpha state=own trust=none",
		rig.settings.broker_uid);
	assert_int_equal(read(rig.catalogue, text, sizeof(text) - 1), 5);
	assert_string_equal(text, "alpha");
	assert_int_equal(rig_stop(&rig), 0);
}

static void
test_no_catalogue(void **state)
{
	static const char *const words[] = {"faults", "die", "unsealed", "large", "plain", "twice"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		rig_operations(&rig, words[i]);
		if (rig_start_fails(&rig, NULL) != 3)
			fail_msg("%s was taken", words[i]);
		assert_int_equal(access(rig.settings.run_dir, F_OK), -1);
	}
	rig_operations(&rig, "alpha");
	assert_int_equal(chmod(path_of("operations"), 0777), 0);
	assert_int_equal(rig_start_fails(&rig, NULL), 3);
}

static void
test_uids(void **state)
{
	const struct settings good = rig.settings;

	(void)state;
	rig.settings.broker_uid = good.engine_uid;
	assert_int_equal(rig_start_fails(&rig, NULL), 3);
	rig.settings = good;
	rig.settings.dialer_uid = good.broker_uid;
	assert_int_equal(rig_start_fails(&rig, NULL), 3);
	rig.settings = good;
	rig.settings.dialer_uid = 0;
	assert_int_equal(rig_start_fails(&rig, NULL), 3);
	rig.settings = good;
}

static void
test_hangup(void **state)
{
	struct msg_gone gone;
	struct box b;
	pid_t api, broker, engine;

	(void)state;
	rig_operations(&rig, "alpha");
	up();
	rig_template(&rig);
	rig_spawn(&rig, &b);
	dialer_says(rig.broker, "alpha");
	api = pid_of_uid(rig.settings.api_uid);
	broker = pid_of_uid(rig.settings.broker_uid);
	engine = rig.engine_pid;
	/* With faults all stays as it is, and a start that is asked for anew gets the old ones. */
	rig_operations(&rig, "faults");
	assert_int_equal(kill(rig.pid, SIGHUP), 0);
	rig_operations(&rig, "unsealed");
	assert_int_equal(kill(rig.pid, SIGHUP), 0);
	pause_ms(500);
	assert_true(process_lives(engine));
	assert_int_equal(pid_of_uid(rig.settings.broker_uid), broker);
	/* Without, the three that hold them are started with the new ones. */
	rig_operations(&rig, "beta");
	assert_int_equal(kill(rig.pid, SIGHUP), 0);
	rig_engine_accept(&rig);
	rig_greeting(&rig, &greeting);
	assert_int_equal(greeting.nheld, 1);
	for (int i = 0; i < 200 && process_lives(broker); i++)
		pause_ms(10);
	assert_false(process_lives(broker));
	assert_false(process_lives(engine));
	assert_int_equal(pid_of_uid(rig.settings.api_uid), api);
	(void)pid_of_uid(rig.settings.broker_uid);
	assert_int_equal(box_say(&b, "pid").n, 1);
	rig_kill_box(&rig, &b, &gone);
	assert_int_equal(rig_stop(&rig), 0);
}

/* One that does not end when it is told to is killed, and the others do not wait for it. */
static void
test_hangup_of_a_deaf_one(void **state)
{
	uint64_t began;
	pid_t dialer;

	(void)state;
	rig_operations(&rig, "deaf");
	up();
	dialer_says(rig.broker, "deaf");
	dialer = pid_of_uid(rig.settings.dialer_uid);
	began = clock_mono_ms();
	assert_int_equal(kill(rig.pid, SIGHUP), 0);
	rig_engine_accept(&rig);
	rig_greeting(&rig, &greeting);
	assert_true(clock_mono_ms() - began < 4000);
	assert_true(process_lives(dialer));
	while (process_lives(dialer) && clock_mono_ms() - began < 10000)
		pause_ms(10);
	assert_false(process_lives(dialer));
	assert_true(clock_mono_ms() - began >= 4900);
	assert_int_not_equal(pid_of_uid(rig.settings.dialer_uid), dialer);
	assert_int_equal(rig_stop(&rig), 0);
}

/* The host's end waits for what the broker has sent. */
static void
test_stop_waits_for_the_broker(void **state)
{
	uint64_t began;

	(void)state;
	make_dir("secrets", 0755);
	make_file("secrets/slow", "x", 0600);
	up();
	broker_says(rig.broker,
		"broker uid=%u secret=slow:x origin=test.local/audit operations= state=own "
		"trust=none",
		rig.settings.broker_uid);
	began = clock_mono_ms();
	assert_int_equal(rig_stop(&rig), 0);
	assert_in_range(clock_mono_ms() - began, 1000, 2500);
}

int
main(int argc, char **argv)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {TEST(test_nothing_configured), TEST(test_secrets),
		TEST(test_secrets_are_many), TEST(test_secrets_of_an_open_directory),
		TEST(test_trust_and_mirrors), TEST(test_broker_killed), TEST(test_dialer_killed),
		TEST(test_engine_killed), TEST(test_descriptors), TEST(test_catalogue),
		TEST(test_no_catalogue), TEST(test_uids), TEST(test_hangup),
		TEST(test_hangup_of_a_deaf_one), TEST(test_stop_waits_for_the_broker)};

	if (geteuid() != 0)
		return 77;
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
