/* SPDX-License-Identifier: Apache-2.0 */
/* Measuring a sandbox; see measure.h. Called by sandbox.c once per sandbox. */
#include "supervisor/measure.h"

#include "lib/base/num.h"
#include "supervisor/ns.h"
#include "supervisor/spawn.h"
#include "supervisor/text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/vfs.h>

enum { ROOM_BYTES = 65536 };

static int
hex_u64(struct view v, uint64_t *ret)
{
	uint64_t n = 0;

	if (v.n == 0 || v.n > 16)
		return -EBADMSG;
	for (size_t i = 0; i < v.n; i++) {
		uint8_t c = v.p[i];

		if (c >= '0' && c <= '9')
			n = n << 4 | (uint64_t)(c - '0');
		else if (c >= 'a' && c <= 'f')
			n = n << 4 | (uint64_t)(c - 'a' + 10);
		else
			return -EBADMSG;
	}
	*ret = n;
	return 0;
}

int
measure_status(struct view status, struct facts *f, struct err *err)
{
	struct {
		const char *key;
		uint64_t *into;
	} caps[] = {{"CapInh:", &f->cap_inheritable}, {"CapPrm:", &f->cap_permitted},
		{"CapEff:", &f->cap_effective}, {"CapBnd:", &f->cap_bounding},
		{"CapAmb:", &f->cap_ambient}};
	struct view value;
	uint64_t n;

	for (size_t i = 0; i < ARRAY_LEN(caps); i++)
		if (!text_key(status, caps[i].key, &value) || hex_u64(value, caps[i].into) < 0)
			return err_set(
				err, -EBADMSG, "no %s in the status of a process", caps[i].key);
	if (!text_key(status, "NoNewPrivs:", &value) || num_u64(value, 1, &n) < 0)
		return err_set(err, -EBADMSG, "no NoNewPrivs in the status of a process");
	f->no_new_privs = (uint8_t)n;
	if (!text_key(status, "Seccomp:", &value) || num_u64(value, 255, &n) < 0)
		return err_set(err, -EBADMSG, "no Seccomp in the status of a process");
	f->seccomp_mode = (uint8_t)n;
	return 0;
}

/* Exactly one range, from 0 on. */
int
measure_id_map(struct view map, uint32_t *ret_base, uint32_t *ret_count, struct err *err)
{
	struct view line, more;
	uint64_t inside, base, count;

	if (!text_line(&map, &line) || text_line(&map, &more) ||
		num_u64(text_word_at(line, 0), UINT32_MAX, &inside) < 0 || inside != 0 ||
		num_u64(text_word_at(line, 1), UINT32_MAX, &base) < 0 ||
		num_u64(text_word_at(line, 2), UINT32_MAX, &count) < 0)
		return err_set(err, -EBADMSG, "an id map that is not one range from 0 on");
	*ret_base = (uint32_t)base;
	*ret_count = (uint32_t)count;
	return 0;
}

/* The hard limit, behind the soft one and the name, which has blanks. */
static int
limit_at(struct view limits, const char *name, uint32_t *ret)
{
	struct view value;
	uint64_t n;

	if (!text_key(limits, name, &value))
		return -ENOENT;
	if (view_is(text_word_at(value, 1), "unlimited"))
		n = UINT64_MAX;
	else if (num_u64(text_word_at(value, 1), UINT64_MAX, &n) < 0)
		return -EBADMSG;
	*ret = n > UINT32_MAX ? UINT32_MAX : (uint32_t)n;
	return 0;
}

int
measure_limits(struct view limits, struct facts *f, struct err *err)
{
	if (limit_at(limits, "Max open files", &f->open_files) < 0 ||
		limit_at(limits, "Max pending signals", &f->pending_signals) < 0)
		return err_set(err, -EBADMSG, "the limits of a process are not as they were");
	return 0;
}

static bool
is_place(const struct places *places, struct view at)
{
	for (size_t i = 0; i < places->n; i++)
		if (view_is(at, places->place[i].path))
			return true;
	return false;
}

/* Stays at its end: more is as wrong as that. */
static void
count_if(uint16_t *n, bool yes)
{
	if (yes && *n < UINT16_MAX)
		(*n)++;
}

void
measure_mounts(struct view mountinfo, const struct places *places, struct facts *f)
{
	struct view line;

	while (text_line(&mountinfo, &line)) {
		struct view at = text_word_at(line, 4), flags = text_word_at(line, 5);
		bool read_only = text_list_has(flags, ',', "ro");

		count_if(&f->mounts, true);
		count_if(&f->mounts_writable, !read_only);
		count_if(&f->mounts_without_nosuid, !text_list_has(flags, ',', "nosuid"));
		count_if(&f->mounts_without_nodev, !text_list_has(flags, ',', "nodev"));
		count_if(&f->mounts_unexpected, !spawn_mounts_at(at) && !is_place(places, at));
		if (view_is(at, "/")) {
			f->root_read_only = read_only;
			f->root_idmapped = text_list_has(flags, ',', "idmapped");
		}
	}
}

/* What lo has by itself (captured 0), and what leads to it for a gateway. */
struct route {
	const char *to, *length, *type;
	uint8_t captured;
};

static const struct route routes4[] = {
	{"127.0.0.0", "/8", "LOCAL", 0},
	{"127.0.0.1", "/32", "LOCAL", 0},
	{"127.0.0.0", "/32", "BROADCAST", 0}, /* before Linux 5.14 */
	{"127.255.255.255", "/32", "BROADCAST", 0},
	{"198.18.0.0", "/15", "LOCAL", CAPTURED_POOL4},
	{"192.0.0.8", "/32", "LOCAL", CAPTURED_DUMMY4},
	{"0.0.0.0", "/0", "LOCAL", CAPTURED_ALL4},
};

static const struct route routes6[] = {
	{"00000000000000000000000000000001", "80", "LOCAL", 0},
	{"00000000000000000000000000000000", "00", "REJECT", 0},
	{"fd005eed000000000000000000000000", "40", "LOCAL", CAPTURED_POOL6},
	{"01000000000000010000000000000001", "80", "LOCAL", CAPTURED_DUMMY6},
	{"00000000000000000000000000000000", "00", "LOCAL", CAPTURED_ALL6},
};

static void
route_count(const struct route *rows, size_t n, struct view to, struct view length,
	struct view type, struct facts *f)
{
	for (size_t i = 0; i < n; i++)
		if (view_is(to, rows[i].to) && view_is(length, rows[i].length) &&
			view_is(type, rows[i].type)) {
			f->captured |= rows[i].captured;
			return;
		}
	count_if(&f->routes, true);
}

/* All tables; where the kernel has not parted them it names what is in both twice. */
void
measure_routes4(struct view trie, struct facts *f)
{
	struct view line, to = {0};

	while (text_line(&trie, &line)) {
		struct view word = text_word_at(line, 0);

		if (view_is(word, "|--"))
			to = text_word_at(line, 1);
		else if (view_starts(word, "/"))
			route_count(
				routes4, ARRAY_LEN(routes4), to, word, text_word_at(line, 2), f);
	}
}

/* Flags of linux/ipv6_route.h and linux/route.h. */
static struct view
type6(struct view flags, struct view device)
{
	enum { REJECT = 0x200 };
	const uint64_t local = 0x80000000;
	uint64_t n;

	if (!view_is(device, "lo") || hex_u64(flags, &n) < 0)
		return view_str("");
	return view_str((n & REJECT) != 0 ? "REJECT" : (n & local) != 0 ? "LOCAL" : "");
}

void
measure_routes6(struct view table, struct facts *f)
{
	struct view line;

	while (text_line(&table, &line))
		route_count(routes6, ARRAY_LEN(routes6), text_word_at(line, 0),
			text_word_at(line, 1), type6(text_word_at(line, 8), text_word_at(line, 9)),
			f);
}

unsigned
measure_interfaces(struct view dev)
{
	struct view line;
	unsigned n = 0;

	for (size_t i = 0; text_line(&dev, &line); i++)
		n += i >= 2; /* two lines of heading */
	return n;
}

/* ---- reading ---- */

struct source {
	int proc; /* directory of the process */
	char *room;
};

static int
read_proc(const struct source *s, const char *name, struct view *ret, struct err *err)
{
	int r = text_file(s->proc, name, s->room, ROOM_BYTES, ret);

	if (r == 0)
		return 0;
	errno = -r;
	return err_errno(err, "/proc/PID/%s of a sandbox", name);
}

static int
read_ids(const struct source *s, struct facts *f, struct err *err)
{
	uint32_t gid_base, gid_count;
	struct view text;
	int r = read_proc(s, "uid_map", &text, err);

	if (r == 0)
		r = measure_id_map(text, &f->uid_base, &f->uid_count, err);
	if (r == 0)
		r = read_proc(s, "gid_map", &text, err);
	if (r == 0)
		r = measure_id_map(text, &gid_base, &gid_count, err);
	if (r == 0 && (gid_base != f->uid_base || gid_count != f->uid_count))
		r = err_set(err, -EBADMSG, "uids and gids are mapped differently");
	return r;
}

static int
read_network(const struct source *s, struct facts *f, struct err *err)
{
	struct view text;
	int r = read_proc(s, "net/fib_trie", &text, err);

	if (r < 0)
		return r;
	measure_routes4(text, f);
	if (faccessat(s->proc, "net/ipv6_route", F_OK, 0) ==
		0) { /* a kernel without IPv6 has none */
		r = read_proc(s, "net/ipv6_route", &text, err);
		if (r < 0)
			return r;
		measure_routes6(text, f);
	}
	r = read_proc(s, "net/dev", &text, err);
	if (r == 0)
		f->interfaces = (uint16_t)measure_interfaces(text);
	return r;
}

static int
read_limits(const struct measure_of *of, const struct source *s, struct facts *f, struct err *err)
{
	struct statfs volume;
	struct view text;
	uint64_t pids;
	int r = read_proc(s, "limits", &text, err);

	if (r == 0)
		r = measure_limits(text, f, err);
	if (r < 0)
		return r;
	if (fstatfs(of->volume, &volume) < 0)
		return err_errno(err, "volume of a sandbox");
	if (cgroup_read(of->cgroups, of->group, KNOB_MEMORY_MAX, &f->memory_bytes) < 0 ||
		cgroup_read(of->cgroups, of->group, KNOB_PIDS_MAX, &pids) < 0 ||
		cgroup_socket_bytes(of->cgroups, of->group, &f->socket_bytes) < 0)
		return err_set(err, -EIO, "the limits of a control group cannot be read");
	f->disk_bytes = (uint64_t)volume.f_blocks * (uint64_t)volume.f_bsize;
	f->disk_inodes = (uint32_t)volume.f_files;
	f->pids = pids > UINT32_MAX ? UINT32_MAX : (uint32_t)pids;
	f->cpu_milli = cgroup_cpu_milli(of->cgroups, of->group);
	f->cgroup_version = (uint8_t)cgroups_version(of->cgroups);
	return 0;
}

int
measure(const struct measure_of *of, struct facts *ret, struct err *err)
{
	static char room[ROOM_BYTES];
	struct facts f = {.boundary = BOUNDARY_CONTAINER, .host_pid = (uint32_t)of->pid};
	auto_fd int proc = -1;
	struct source s = {.room = room};
	char path[32];
	struct view text;
	int r;

	(void)snprintf(path, sizeof(path), "/proc/%d", of->pid);
	proc = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (proc < 0)
		return err_errno(err, "%s", path);
	s.proc = proc;
	r = read_proc(&s, "status", &text, err);
	if (r == 0)
		r = measure_status(text, &f, err);
	if (r == 0)
		r = read_ids(&s, &f, err);
	if (r == 0)
		r = ns_look(of->pid, &f.namespaces_own, &f.namespaces_owner_host, err);
	if (r == 0)
		r = ns_user_owner(of->pid, &f.userns_owner, err);
	if (r == 0)
		r = read_proc(&s, "mountinfo", &text, err);
	if (r < 0)
		return r;
	measure_mounts(text, of->places, &f);
	r = read_network(&s, &f, err);
	if (r == 0)
		r = read_limits(of, &s, &f, err);
	if (r == 0)
		*ret = f;
	return r;
}
