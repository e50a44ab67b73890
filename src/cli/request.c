/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies of requests; see request.h. */
#include "cli/request.h"

#include "cli/answer.h"
#include "cli/safe.h"
#include "lib/base/id.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

enum { MIB = 1 << 20, SHORT_BODY = 65536, TARGET_BYTES = 16384 };

static void
number(const struct args *a, enum option option, const char *key, int64_t unit, struct json_out *o)
{
	const struct given *g = args_get(a, option);

	if (g != NULL)
		json_out_key_int(o, key, g->number / unit);
}

static void
text(const struct args *a, enum option option, const char *key, struct json_out *o)
{
	const char *t = args_text(a, option);

	if (t != NULL)
		json_out_key_str(o, key, view_str(t));
}

/* Seconds with three decimals, which the api takes. */
static void
seconds(const struct args *a, enum option option, const char *key, struct json_out *o)
{
	const struct given *g = args_get(a, option);

	if (g == NULL)
		return;
	json_out_key(o, key);
	json_out_fixed3(o, g->number);
}

void
request_shape(const struct args *a, struct json_out *o)
{
	seconds(a, OPT_TTL, "ttl_seconds", o);
	seconds(a, OPT_IDLE, "idle_limit_seconds", o);
	json_out_key(o, "limits");
	json_out_object_begin(o);
	number(a, OPT_MEMORY, "memory_mb", MIB, o);
	number(a, OPT_DISK, "disk_mb", MIB, o);
	number(a, OPT_PIDS, "pids", 1, o);
	number(a, OPT_CPU, "cpu_milli", 1, o);
	json_out_object_end(o);
}

void
request_owner(const struct args *a, struct json_out *o)
{
	text(a, OPT_TENANT, "tenant", o);
	text(a, OPT_TEMPLATE, "template", o);
	text(a, OPT_POLICY, "policy", o);
}

int
request_pairs(const struct args *a, enum option option, const char *key, struct json_out *o,
	struct err *err)
{
	if (!args_has(a, option))
		return 0;
	json_out_key(o, key);
	json_out_object_begin(o);
	for (size_t i = 0; i < a->n_given; i++) {
		const struct given *g = &a->given[i];
		size_t n = g->option == option ? strcspn(g->text, "=") : 0;

		if (g->option != option)
			continue;
		for (size_t j = 0; j < i; j++)
			if (a->given[j].option == option &&
				strncmp(a->given[j].text, g->text, n + 1) == 0)
				return err_set(err, -EINVAL, "%.*s was given twice",
					(int)(n > 60 ? 60 : n), g->text);
		if (json_out_key_view(o, view_of(g->text, n)) ||
			json_out_str(o, view_str(g->text + n + 1)))
			return err_set(err, -EILSEQ, "%s must be UTF-8", args_option(option)->name);
	}
	json_out_object_end(o);
	return 0;
}

int
request_end(struct json_out *o, struct err *err)
{
	json_out_object_end(o);
	if (json_out_end(o) < 0)
		return err_set(err, -E2BIG, "the request is larger than %zu bytes", o->b->max);
	return 0;
}

int
request_check_id(const char *name, const char *prefix, const char *what, struct err *err)
{
	struct id id;

	if (id_parse(view_str(name), prefix, &id) < 0)
		return err_set(err, -EINVAL, "%.40s is not the id of a %s (%s and %d characters)",
			name, what, prefix, ID_DIGITS);
	return 0;
}

int
request_task(struct cli *cli, json_t **ret, char ret_id[static ID_TEXT], struct err *err)
{
	auto_buf struct buf body;
	struct json_out o;
	int r;

	buf_init(&body, SHORT_BODY);
	json_out_init(&o, &body, false);
	json_out_object_begin(&o);
	request_owner(&cli->args, &o);
	request_shape(&cli->args, &o);
	r = request_pairs(&cli->args, OPT_LABEL, "labels", &o, err);
	if (r == 0)
		r = request_end(&o, err);
	if (r == 0)
		r = client_send(
			&cli->client, HTTP_POST, view_str("/v1/tasks"), buf_view(&body), ret, err);
	return r < 0 ? r : answer_id(*ret, ID_TASK, ret_id, err);
}

/* The tasks that have this ticket, newest first: all of them, or those of --tenant. */
static int
tasks_with(struct cli *cli, const char *ticket, json_t **ret, struct err *err)
{
	const char *tenant = args_text(&cli->args, OPT_TENANT);
	json_t *list auto_json = NULL;
	auto_buf struct buf target;
	int r;

	buf_init(&target, TARGET_BYTES);
	buf_add_str(&target, "/v1/tasks?label=ticket%3D");
	target_add(&target, ticket);
	r = answer_pages(&cli->client, buf_view(&target), true, "id", &list, err);
	for (size_t i = r < 0 || tenant == NULL ? 0 : json_array_size(list); i-- != 0;)
		if (!view_is(answer_text(json_array_get(list, i), "tenant"), tenant) &&
			json_array_remove(list, i) < 0)
			return err_set(err, -ENOMEM, "no memory");
	if (r == 0)
		*ret = take_ptr(list);
	return r;
}

static int
tenant_task(struct cli *cli, const char *ticket, char ret[static ID_TEXT], struct err *err)
{
	json_t *list auto_json = NULL;
	int r = tasks_with(cli, ticket, &list, err);

	if (r < 0)
		return r;
	if (json_array_size(list) == 0)
		return err_set(err, -ENOENT,
			"no task of tenant %.63s has the ticket %.60s; see demilune task list",
			args_text(&cli->args, OPT_TENANT), ticket);
	return answer_id(json_array_get(list, 0), ID_TASK, ret, err);
}

int
request_task_id(struct cli *cli, const char *name, char ret[static ID_TEXT], struct err *err)
{
	json_t *task auto_json = NULL;
	auto_buf struct buf target;
	struct id id;
	int r;

	if (id_parse(view_str(name), ID_TASK, &id) == 0) {
		(void)snprintf(ret, ID_TEXT, "%s", name);
		return 0;
	}
	if (args_has(&cli->args, OPT_TENANT))
		return tenant_task(cli, name, ret, err);
	buf_init(&target, TARGET_BYTES);
	buf_add_str(&target, "/v1/tasks/");
	target_add(&target, name);
	r = client_get(&cli->client, buf_view(&target), &task, err);
	return r < 0 ? r : answer_id(task, ID_TASK, ret, err);
}

static void
say_others(const json_t *list, const char *name, const char *id)
{
	if (json_array_size(list) > 1)
		safe_say("%zu tasks have this ticket, this is the newest: %s; demilune task list "
			 "--label ticket=%.60s shows all, --tenant or an id chooses",
			json_array_size(list), id, name);
}

int
request_record_id(struct cli *cli, const char *name, char ret[static ID_TEXT], struct err *err)
{
	json_t *list auto_json = NULL;
	struct id id;
	int r = request_task_id(cli, name, ret, err);

	if (r < 0 || id_parse(view_str(name), ID_TASK, &id) == 0)
		return r;
	r = tasks_with(cli, name, &list, err);
	if (r == 0)
		say_others(list, name, ret);
	return r;
}

void
request_say_others(struct cli *cli, const char *name, const char *task)
{
	json_t *list auto_json = NULL;
	struct err unused = {0};
	struct id id;

	if (id_parse(view_str(name), ID_TASK, &id) < 0 &&
		tasks_with(cli, name, &list, &unused) == 0)
		say_others(list, name, task);
}

int
request_export(struct client *c, const char *task, struct exchange *ret, struct err *err)
{
	char target[128];

	(void)snprintf(target, sizeof(target), "/v1/audit/%s?format=ndjson", task);
	return exchange_open(c,
		&(struct ask){.method = HTTP_GET,
			.target = view_str(target),
			.accept = "application/x-ndjson"},
		ret, err);
}

int
request_input(struct cli *cli, const char *task, const char *files, struct err *err)
{
	struct ask ask = {.method = HTTP_PUT, .type = "application/octet-stream"};
	char here[4096];
	const char *there;
	json_t *answer auto_json = NULL;
	auto_buf struct buf target;
	struct view local;
	struct stat st;
	int fd auto_fd = -1;
	int r = args_files(files, &local, &there, err);

	if (r < 0)
		return r;
	(void)snprintf(here, sizeof(here), "%.*s", VIEW_ARGS(local));
	fd = open(here, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_errno(err, "%.120s", here);
	if (!S_ISREG(st.st_mode))
		return err_set(err, -EINVAL, "%.120s is not a file", here);
	buf_init(&target, TARGET_BYTES);
	buf_addf(&target, "/v1/tasks/%s/inputs?mode=%o&path=", task, (unsigned)(st.st_mode & 0777));
	target_add(&target, there);
	ask.target = buf_view(&target);
	ask.body_fd = fd;
	ask.body_bytes = (uint64_t)st.st_size;
	r = client_json(&cli->client, &ask, &answer, err);
	return r;
}

/* The task that --task names or, with --input, a new one with its inputs; "" when the sandbox shall make its own. */
static int
find_task(struct cli *cli, char ret[static ID_TEXT], struct err *err)
{
	const char *name = args_text(&cli->args, OPT_TASK);
	json_t *task auto_json = NULL;
	int r = 0;

	ret[0] = '\0';
	if (name != NULL) {
		r = request_task_id(cli, name, ret, err);
	} else if (args_has(&cli->args, OPT_INPUT)) {
		r = request_task(cli, &task, ret, err);
	}
	for (size_t i = 0; r == 0 && i < cli->args.n_given; i++)
		if (cli->args.given[i].option == OPT_INPUT)
			r = request_input(cli, ret, cli->args.given[i].text, err);
	return r;
}

void
request_kill(struct cli *cli, const char *sandbox)
{
	json_t *answer auto_json = NULL;
	struct err why = {0};
	char target[128];

	(void)snprintf(target, sizeof(target), "/v1/sandboxes/%s", sandbox);
	if (client_send(&cli->client, HTTP_DELETE, view_str(target), view_of(NULL, 0), &answer,
		    &why) < 0 &&
		(why.code != -EREMOTEIO || cli->client.refusal_status != 404))
		safe_say("sandbox %s could not be killed (%s); its time to live will end it, or: "
			 "demilune sandbox kill %s",
			sandbox, why.text, sandbox);
}

int
request_made(struct cli *cli, struct view target, struct view body, json_t **ret,
	char ret_id[static ID_TEXT], struct err *err)
{
	struct client *c = &cli->client;
	int r;

	c->lingers = true;
	r = client_send(c, HTTP_POST, target, body, ret, err);
	c->lingers = false;
	if (r == 0)
		r = answer_id(*ret, ID_SANDBOX, ret_id, err);
	if (c->signalled == 0 || r == -EREMOTEIO)
		return r;
	if (r == 0)
		request_kill(cli, ret_id);
	else
		safe_say("a sandbox may be left; its time to live ends it, demilune sandbox list "
			 "shows it");
	return err_set(err, -EINTR, "interrupted");
}

int
request_sandbox(struct cli *cli, json_t **ret, char ret_id[static ID_TEXT], struct err *err)
{
	char task[ID_TEXT];
	auto_buf struct buf body;
	struct json_out o;
	int r = find_task(cli, task, err);

	if (r < 0)
		return r;
	buf_init(&body, SHORT_BODY);
	json_out_init(&o, &body, false);
	json_out_object_begin(&o);
	request_owner(&cli->args, &o);
	if (task[0] != '\0')
		json_out_key_str(&o, "task", view_str(task));
	request_shape(&cli->args, &o);
	r = request_pairs(&cli->args, OPT_LABEL, "metadata", &o, err);
	if (r == 0)
		r = request_end(&o, err);
	return r < 0 ? r
		     : request_made(
			       cli, view_str("/v1/sandboxes"), buf_view(&body), ret, ret_id, err);
}

int
request_print(struct cli *cli, const json_t *made, const char *id, struct err *err)
{
	if (args_has(&cli->args, OPT_JSON))
		return answer_print(made, err);
	(void)printf("%s\n", id);
	return answer_done(err);
}
