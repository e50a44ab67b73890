/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration, from the compiler's mouth (compile.h), and a range check of ours; part of start.h. */
#include "supervisor/start.h"

#include "supervisor/limits.h"

#include <errno.h>
#include <fcntl.h>

/* The compiler has checked all of it; these are the ones that could hurt the host. */
static int
settings_check(const struct settings *s, struct err *err)
{
	const uint32_t uids[] = {
		s->engine_uid, s->api_uid, s->relay_uid, s->broker_uid, s->dialer_uid};
	uint64_t end = (uint64_t)s->sandbox_uid_base +
		       (uint64_t)s->sandbox_uid_slots * LIMIT_UIDS_PER_SANDBOX;
	uint64_t gateway_end = (uint64_t)s->gateway_uid_base + s->sandbox_uid_slots;

	for (size_t i = 0; i < ARRAY_LEN(uids); i++) {
		if (uids[i] == 0 || uids[i] == UINT32_MAX ||
			(uids[i] >= s->sandbox_uid_base && uids[i] < end) ||
			(uids[i] >= s->gateway_uid_base && uids[i] < gateway_end))
			return err_set(err, -EINVAL,
				"uid %u is root, nobody or one of the sandboxes' or gateways'",
				uids[i]);
		for (size_t k = 0; k < i; k++)
			if (uids[k] == uids[i])
				return err_set(err, -EINVAL,
					"two processes of the daemon have the uid %u", uids[i]);
	}
	if (gateway_end > UINT32_MAX || s->gateway_uid_base == 0 ||
		(s->gateway_uid_base < end && gateway_end > s->sandbox_uid_base))
		return err_set(err, -EINVAL,
			"the uids of gateways, %u from %u on, are root's, nobody's or sandboxes'",
			s->sandbox_uid_slots, s->gateway_uid_base);
	if (s->state_dir[0] != '/' || s->run_dir[0] != '/')
		return err_set(err, -EINVAL, "state_dir and run_dir are absolute paths");
	if (s->sandbox_uid_slots < s->max_sandboxes)
		return err_set(err, -EINVAL, "%u uid ranges are too few for %u sandboxes",
			s->sandbox_uid_slots, s->max_sandboxes);
	return 0;
}

int
start_config(struct supervisor *sv, const char *file, struct err *err)
{
	const char *name = file == NULL ? "defaults" : file;
	auto_fd int input = open(
		file == NULL ? "/dev/null" : file, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	struct compile c;
	int r;

	if (input < 0)
		return err_errno(err, "the configuration file %s", name);
	r = compile_begin(&c, &sv->programs, name, COMPILE_SETTINGS, input, err);
	if (r == 0)
		r = compile_wait(&c, err);
	compile_end(&c);
	if (r == 0)
		r = settings_check(&c.settings, err);
	if (r == 0)
		sv->settings = c.settings;
	return r;
}
