/* SPDX-License-Identifier: Apache-2.0 */
/* Values of options; see option.h and options.def. */
#include "config/option.h"

#include "config/confine.h"
#include "config/unit.h"
#include "lib/base/host.h"
#include "lib/base/name.h"
#include "lib/base/num.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>

enum type {
	PATH,
	ADDRESS,
	UID,
	COUNT,
	BYTES,
	DURATION,
	CPU,
	CGROUP,
	PATHS,
	ORIGIN,
	NAME,
	RESOLVERS
};

struct option {
	const char *path;
	enum type type;
	size_t offset, size; /* of the field in struct settings */
	const char *value;   /* default */
	uint64_t min, max;
	const char *prose;
};

static const struct option options[] = {
#define OPTION(path, type, field, value, min, max, prose)                                     \
	{path, type, offsetof(struct settings, field), sizeof(((struct settings *)0)->field), \
		value, min, max, prose},
#include "config/options.def"
#undef OPTION
};

static void
store(struct settings *s, const struct option *o, uint64_t value)
{
	uint8_t *field = (uint8_t *)s + o->offset;
	uint32_t u32 = (uint32_t)value;
	uint16_t u16 = (uint16_t)value;

	if (o->size == sizeof(value))
		memcpy(field, &value, sizeof(value));
	else if (o->size == sizeof(u32))
		memcpy(field, &u32, sizeof(u32));
	else
		memcpy(field, &u16, sizeof(u16));
}

static int
number_in_range(struct settings *s, const struct option *o, uint64_t value, struct err *err)
{
	if (value < o->min || value > o->max)
		return err_set(err, -EINVAL, "%s must be from %llu to %llu%s", o->path,
			(unsigned long long)o->min, (unsigned long long)o->max,
			o->type == BYTES      ? " bytes"
			: o->type == DURATION ? " milliseconds"
			: o->type == CPU      ? " thousandths of a processor"
					      : "");
	store(s, o, value);
	return 0;
}

static int
set_number(struct settings *s, const struct option *o, struct view v, struct err *err)
{
	uint64_t value;

	if (o->type == UID && o->min > 0 && view_is(v, "none") &&
		strcmp(o->path, "uids.admin") == 0) {
		store(s, o, OPTION_NONE_UID);
		return 0;
	}
	if (num_u64(v, UINT64_MAX, &value) < 0)
		return err_set(err, -EINVAL, "%s must be a whole number", o->path);
	return number_in_range(s, o, value, err);
}

static int
set_with_unit(struct settings *s, const struct option *o, struct view v,
	int (*read)(struct view, uint64_t *), const char *example, struct err *err)
{
	uint64_t value;

	if (read(v, &value) < 0)
		return err_set(err, -EINVAL, "%s must be a whole number and a unit, such as %s",
			o->path, example);
	return number_in_range(s, o, value, err);
}

static bool
path_ok(struct view v)
{
	if (v.n == 0 || v.p[0] != '/' || view_has(v, '\0') || !view_utf8(v))
		return false;
	for (size_t i = 0, start = 0; i <= v.n; i++) {
		struct view part;

		if (i < v.n && v.p[i] != '/')
			continue;
		part = view_of(v.p + start, i - start);
		if (view_is(part, ".") || view_is(part, "..") || (part.n == 0 && start > 0))
			return false;
		start = i + 1;
	}
	return true;
}

static int
set_path(struct settings *s, const struct option *o, struct view v, struct err *err)
{
	char *field = (char *)s + o->offset;

	if (!path_ok(v) || v.n < o->min || v.n > o->max || v.n >= o->size)
		return err_set(err, -EINVAL,
			"%s must be an absolute path of at most %llu bytes without . or .. parts "
			"or a / at the end",
			o->path, (unsigned long long)o->max);
	memset(field, 0, o->size);
	memcpy(field, v.p, v.n);
	return 0;
}

static int
set_address(struct settings *s, const struct option *o, struct view v, struct err *err)
{
	const uint8_t *colon = v.n == 0 ? NULL : memrchr(v.p, ':', v.n);
	char host[INET_ADDRSTRLEN] = "";
	struct in_addr address;
	uint64_t port = 0;
	size_t n;

	if (view_is(v, "none")) {
		memset(s->tcp_address, 0, sizeof(s->tcp_address));
		s->tcp_port = 0;
		return 0;
	}
	n = colon == NULL ? 0 : (size_t)(colon - v.p);
	if (n > 0 && n < sizeof(host))
		memcpy(host, v.p, n);
	if (colon == NULL || inet_pton(AF_INET, host, &address) != 1 ||
		num_u64(view_skip(v, n + 1), 65535, &port) < 0 || port == 0)
		return err_set(err, -EINVAL,
			"%s must be an IPv4 address and a port, such as 127.0.0.1:7420, or none",
			o->path);
	if ((ntohl(address.s_addr) >> 24) != 127)
		return err_set(err, -EINVAL,
			"%s must be a loopback address: without TLS, tokens would cross the "
			"network in clear",
			o->path);
	memset(s->tcp_address, 0, sizeof(s->tcp_address));
	memcpy(s->tcp_address, host, n);
	s->tcp_port = (uint16_t)port;
	return 0;
}

static int
set_cgroup(struct settings *s, const struct option *o, struct view v, struct err *err)
{
	static const char *const modes[] = {"auto", "v1", "v2"};

	for (size_t i = 0; i < ARRAY_LEN(modes); i++)
		if (view_is(v, modes[i])) {
			store(s, o, i);
			return 0;
		}
	return err_set(err, -EINVAL, "%s must be auto, v1 or v2", o->path);
}

/* Takes what stands before the next comma off *rest; a comma at the end leaves one more, empty. */
static bool
take_part(struct view *rest, struct view *ret_part)
{
	const uint8_t *comma = rest->n == 0 ? NULL : memchr(rest->p, ',', rest->n);

	if (rest->p == NULL)
		return false;
	*ret_part = comma == NULL ? *rest : view_of(rest->p, (size_t)(comma - rest->p));
	*rest = comma == NULL ? view_of(NULL, 0) : view_skip(*rest, ret_part->n + 1);
	while (ret_part->n > 0 && ret_part->p[0] == ' ')
		*ret_part = view_skip(*ret_part, 1);
	return true;
}

/* A field of o->max texts, each of the same size; `ok` judges one. */
static bool
set_texts(struct settings *s, const struct option *o, struct view v, bool (*ok)(struct view))
{
	size_t each = o->size / o->max, n = 0;
	struct settings changed = *s;
	char *field = (char *)&changed + o->offset;
	struct view part;

	memset(field, 0, o->size);
	while (take_part(&v, &part)) {
		if (n == o->max || part.n >= each || !ok(part))
			return false;
		memcpy(field + each * n++, part.p, part.n);
	}
	*s = changed;
	return true;
}

static int
set_paths(struct settings *s, const struct option *o, struct view v, struct err *err)
{
	if (view_is(v, "none")) {
		memset((char *)s + o->offset, 0, o->size);
		return 0;
	}
	if (v.n == 0 || !set_texts(s, o, v, path_ok))
		return err_set(err, -EINVAL,
			"%s must be none, or at most %llu absolute paths separated by commas, "
			"each without . or .. parts or a / at the end",
			o->path, (unsigned long long)o->max);
	return 0;
}

static bool
resolver_ok(struct view v)
{
	struct address a;
	uint16_t port;

	return address_port_parse(v, 53, &a, &port) == 0;
}

static int
set_resolvers(struct settings *s, const struct option *o, struct view v, struct err *err)
{
	char *field = (char *)s + o->offset;

	if (view_is(v, "system")) {
		memset(field, 0, o->size);
		memcpy(field, v.p, v.n);
		return 0;
	}
	if (v.n == 0 || !set_texts(s, o, v, resolver_ok))
		return err_set(err, -EINVAL,
			"%s must be system, or at most %llu IP addresses separated by commas, such "
			"as 192.0.2.1 or 192.0.2.1:5353",
			o->path, (unsigned long long)o->max);
	return 0;
}

/* The origin line of a C2SP checkpoint; '+' and blanks would end the name of its key. */
static int
set_origin(struct settings *s, const struct option *o, struct view v, struct err *err)
{
	char *field = (char *)s + o->offset;
	bool ok = v.n >= o->min && v.n <= o->max && v.n < o->size;

	for (size_t i = 0; ok && i < v.n; i++)
		ok = v.p[i] > ' ' && v.p[i] < 0x7f && v.p[i] != '+';
	if (!ok)
		return err_set(err, -EINVAL,
			"%s must be at most %llu printable ASCII characters without blanks and +, "
			"such as demilune.example.org/audit",
			o->path, (unsigned long long)o->max);
	memset(field, 0, o->size);
	memcpy(field, v.p, v.n);
	return 0;
}

/* "none" is an empty field. */
static int
set_name(struct settings *s, const struct option *o, struct view v, struct err *err)
{
	char *field = (char *)s + o->offset;
	bool none = view_is(v, "none");

	if (!name_ok(v) || v.n > o->max || v.n >= o->size)
		return err_set(err, -EINVAL,
			"%s must be none, or at most %llu of a-z, 0-9, '.', '_' and '-', a letter "
			"or digit first",
			o->path, (unsigned long long)o->max);
	memset(field, 0, o->size);
	if (!none)
		memcpy(field, v.p, v.n);
	return 0;
}

static int
set(struct settings *s, const struct option *o, struct view v, struct err *err)
{
	switch (o->type) {
	case PATH:
		return set_path(s, o, v, err);
	case ADDRESS:
		return set_address(s, o, v, err);
	case UID:
	case COUNT:
		return set_number(s, o, v, err);
	case BYTES:
		return set_with_unit(s, o, v, unit_bytes, "512MiB", err);
	case DURATION:
		return set_with_unit(s, o, v, unit_duration, "15m", err);
	case CPU:
		return set_with_unit(s, o, v, unit_cpu, "1000m", err);
	case CGROUP:
		return set_cgroup(s, o, v, err);
	case PATHS:
		return set_paths(s, o, v, err);
	case ORIGIN:
		return set_origin(s, o, v, err);
	case NAME:
		return set_name(s, o, v, err);
	case RESOLVERS:
		return set_resolvers(s, o, v, err);
	}
	must(false);
}

void
options_default(struct settings *ret)
{
	*ret = (struct settings){0};
	for (size_t i = 0; i < ARRAY_LEN(options); i++) {
		struct err err = {0};

		must(set(ret, &options[i], view_str(options[i].value), &err) == 0);
	}
}

int
option_set(struct settings *s, const char *path, struct view value, struct err *err)
{
	for (size_t i = 0; i < ARRAY_LEN(options); i++)
		if (strcmp(options[i].path, path) == 0)
			return set(s, &options[i], value, err);
	return err_set(err, -ENOENT, "there is no option %s; demilune.yaml(5) lists them", path);
}

bool
option_is_section(const char *path)
{
	size_t n = strlen(path);

	for (size_t i = 0; i < ARRAY_LEN(options); i++)
		if (strncmp(options[i].path, path, n) == 0 && options[i].path[n] == '.')
			return true;
	return false;
}

/* Rules between options. */
struct rule {
	bool (*holds)(const struct settings *);
	const char *text;
};

static bool
uids_apart(const struct settings *s)
{
	const uint32_t uids[] = {
		s->engine_uid, s->api_uid, s->relay_uid, s->broker_uid, s->dialer_uid};

	for (size_t i = 0; i < ARRAY_LEN(uids); i++)
		for (size_t j = 0; j < i; j++)
			if (uids[i] == uids[j])
				return false;
	return true;
}

static bool
uids_outside_ranges(const struct settings *s)
{
	const uint32_t uids[] = {s->engine_uid, s->api_uid, s->relay_uid, s->broker_uid,
		s->dialer_uid, s->admin_uid};
	uint64_t end = s->sandbox_uid_base + 65536ULL * s->sandbox_uid_slots;

	for (size_t i = 0; i < ARRAY_LEN(uids); i++)
		if (uids[i] != OPTION_NONE_UID && uids[i] >= s->sandbox_uid_base && uids[i] < end)
			return false;
	return end <= 0xfffffffeULL;
}

/* One uid for each range of a sandbox: none of them is anybody else's. */
static bool
gateways_apart(const struct settings *s)
{
	const uint32_t uids[] = {s->engine_uid, s->api_uid, s->relay_uid, s->broker_uid,
		s->dialer_uid, s->admin_uid, CONFIG_UID};
	uint64_t begin = s->gateway_uid_base, end = begin + s->sandbox_uid_slots;
	uint64_t sandboxes = s->sandbox_uid_base + 65536ULL * s->sandbox_uid_slots;

	for (size_t i = 0; i < ARRAY_LEN(uids); i++)
		if (uids[i] != OPTION_NONE_UID && uids[i] >= begin && uids[i] < end)
			return false;
	return end <= 0xfffffffeULL && (end <= s->sandbox_uid_base || begin >= sandboxes);
}

static bool
slots_enough(const struct settings *s)
{
	return s->sandbox_uid_slots >= s->max_sandboxes;
}

static bool
defaults_within(const struct settings *s)
{
	const struct limits *d = &s->default_limits, *m = &s->max_limits;

	return d->memory_bytes <= m->memory_bytes && d->disk_bytes <= m->disk_bytes &&
	       d->disk_inodes <= m->disk_inodes && d->pids <= m->pids &&
	       d->cpu_milli <= m->cpu_milli && d->open_files <= m->open_files &&
	       m->memory_bytes <= s->max_memory_bytes;
}

static bool
ttl_within(const struct settings *s)
{
	return s->default_ttl_ms <= s->max_ttl_ms;
}

/* Whether `path` is `dir` or stands below it. */
static bool
is_in(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	return strncmp(path, dir, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

static bool
directories_apart(const struct settings *s)
{
	return !is_in(s->state_dir, s->run_dir) && !is_in(s->run_dir, s->state_dir);
}

/* What processes of the daemon can write must not decide what they may do. */
static bool
authority_outside(const struct settings *s)
{
	const char *const dirs[] = {
		s->operations_dir, s->secrets_dir, s->trust_dir, s->policies_dir, s->roots};

	for (size_t i = 0; i < ARRAY_LEN(dirs); i++)
		if (is_in(dirs[i], s->state_dir) || is_in(dirs[i], s->run_dir))
			return false;
	return true;
}

static bool
authority_apart(const struct settings *s)
{
	const char *const dirs[] = {
		s->operations_dir, s->secrets_dir, s->trust_dir, s->policies_dir};

	for (size_t i = 0; i < ARRAY_LEN(dirs); i++)
		for (size_t j = 0; j < i; j++)
			if (is_in(dirs[i], dirs[j]) || is_in(dirs[j], dirs[i]))
				return false;
	return true;
}

static bool
mirrors_apart(const struct settings *s)
{
	for (size_t i = 0; i < ARRAY_LEN(s->mirrors) && s->mirrors[i][0] != '\0'; i++) {
		if (is_in(s->mirrors[i], s->state_dir) || is_in(s->mirrors[i], s->run_dir))
			return false;
		for (size_t j = 0; j < i; j++)
			if (strcmp(s->mirrors[i], s->mirrors[j]) == 0)
				return false;
	}
	return true;
}

static const struct rule rules[] = {
	{uids_apart, "uids.engine, uids.api, uids.relay, uids.broker and uids.dialer must all be "
		     "different"},
	{uids_outside_ranges, "uids.sandbox_base with uids.sandbox_slots ranges of 65536 must end "
			      "below 4294967294 and hold none of the other uids"},
	{gateways_apart,
		"uids.gateway_base and the uids.sandbox_slots numbers from it on must end "
		"below 4294967294 and hold none of the other uids, 64104 and the ranges of "
		"sandboxes"},
	{slots_enough, "uids.sandbox_slots must be at least limits.sandboxes"},
	{defaults_within, "every default must be at most its limits.sandbox_* and those at most "
			  "limits.memory"},
	{ttl_within, "defaults.ttl must be at most limits.ttl"},
	{directories_apart, "state_dir and run_dir must not contain each other"},
	{authority_outside,
		"actions.operations, actions.secrets, actions.trust, egress.policies and "
		"egress.roots must stand outside of state_dir and run_dir, which processes of the "
		"daemon write"},
	{authority_apart,
		"actions.operations, actions.secrets, actions.trust and egress.policies must not "
		"contain each other"},
	{mirrors_apart, "audit.mirrors must all be different and outside of state_dir and run_dir"},
};

int
options_check(const struct settings *s, unsigned n, struct err *err)
{
	for (size_t i = 0; i < ARRAY_LEN(rules); i++)
		if (!rules[i].holds(s) && n-- == 0)
			return err_set(err, -EINVAL, "%s", rules[i].text);
	return 0;
}
