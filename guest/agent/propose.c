/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that ask for an action; see propose.h. Their number is bounded by the relay: it answers all, or the channel is gone. */
#include "agent.h"

#include "lib/base/clock.h"
#include "lib/base/propose_bounds.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/fsuid.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static const char directory[] = "/run/demilune";
static const char *const socket_path[PROPOSE_SOCKETS] = {
	"/run/demilune/propose", "/run/demilune/read"};

static const char too_large[] =
	"{\"code\":\"too_large\",\"error\":\"a request has at most 32 KiB\"}\n";
static const char nothing[] = "{\"code\":\"bad_request\",\"error\":\"the request is empty\"}\n";

struct asker {
	struct link link;
	struct watch w; /* WATCH_ASKER */
	enum { ASKER_WRITES, ASKER_WAITS, ASKER_READS } state;
	bool read; /* which socket it came on */
	uint64_t number;
	uint64_t due_ms; /* UINT64_MAX while it waits */
	struct buf text; /* the request, then the answer */
	size_t at;       /* bytes of the answer that it took */
};

static int
listener_make(const char *path)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	auto_fd int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	memcpy(at.sun_path, path, strlen(path) + 1);
	if (fd < 0 || bind(fd, (const struct sockaddr *)&at, sizeof(at)) < 0 ||
		chmod(path, 0666) < 0 || listen(fd, PROPOSE_LIVE_MAX) < 0)
		return -1;
	return take_fd(&fd);
}

/* Places belong to the sandbox's user; 0 inside has no right over files of others. */
enum { PLACES_UID = 10001 };

static bool
directory_make(void)
{
	bool made = mkdir(directory, 0755) == 0;

	if (!made && errno == EACCES) {
		(void)setfsuid(PLACES_UID); /* has no error; the next line then has one */
		made = mkdir(directory, 0755) == 0;
	}
	return made;
}

void
propose_open(struct agent *a)
{
	struct propose *p = &a->propose;

	list_init(&p->askers);
	list_init(&p->dead);
	for (size_t i = 0; i < PROPOSE_SOCKETS; i++)
		p->listener[i] = (struct watch){.kind = WATCH_LISTENER, .fd = -1};
	/* Without the directory (not writable) there are no sockets, and demilune-propose says so. */
	for (size_t i = 0; i < PROPOSE_SOCKETS && (i > 0 || directory_make()); i++) {
		p->listener[i].fd = listener_make(socket_path[i]);
		if (!watch_for(&a->watches, &p->listener[i], EPOLLIN))
			watch_close(&a->watches, &p->listener[i]);
	}
	(void)setfsuid(0); /* back to what it was: always allowed */
}

/* More programs wait in the backlog until one is done. */
static void
listeners_watch(struct agent *a)
{
	uint32_t events = a->propose.n < PROPOSE_LIVE_MAX ? EPOLLIN : 0;

	for (size_t i = 0; i < PROPOSE_SOCKETS; i++)
		(void)watch_for(&a->watches, &a->propose.listener[i],
			events); /* tried again with the next asker that ends */
}

static void
asker_end(struct agent *a, struct asker *k)
{
	watch_close(&a->watches, &k->w);
	list_remove(&k->link);
	list_append(&a->propose.dead, &k->link);
	a->propose.n--;
	listeners_watch(a);
}

void
propose_accept(struct agent *a, struct watch *listener)
{
	struct propose *p = &a->propose;
	struct asker *k;
	int fd = accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0)
		return;
	k = calloc(1, sizeof(*k));
	if (k == NULL) {
		(void)close(fd); /* the program sees it, and may ask again */
		return;
	}
	k->w = (struct watch){.kind = WATCH_ASKER, .fd = fd};
	k->read = listener == &p->listener[1];
	k->due_ms = clock_mono_ms() + AGENT_ASK_MS;
	buf_init(&k->text, PROPOSE_ANSWER_BYTES);
	list_append(&p->askers, &k->link);
	p->n++;
	listeners_watch(a);
	if (!watch_for(&a->watches, &k->w, EPOLLIN))
		asker_end(a, k);
}

static void
asker_write(struct agent *a, struct asker *k)
{
	while (k->at < k->text.n) {
		ssize_t n = send(k->w.fd, k->text.p + k->at, k->text.n - k->at, MSG_NOSIGNAL);

		if (n < 0 && errno == EAGAIN && watch_for(&a->watches, &k->w, EPOLLOUT))
			return;
		if (n < 0)
			break; /* it went away */
		k->at += (size_t)n;
	}
	asker_end(a, k);
}

static void
asker_answer(struct agent *a, struct asker *k, struct view answer)
{
	k->state = ASKER_READS;
	k->due_ms = clock_mono_ms() + AGENT_ASK_MS;
	buf_clear(&k->text);
	buf_add_view(&k->text, answer);
	asker_write(a, k);
}

static void
asker_ask(struct agent *a, struct asker *k)
{
	k->state = ASKER_WAITS;
	k->due_ms = UINT64_MAX;
	k->number = ++a->propose.last_number;
	(void)watch_for(&a->watches, &k->w, 0); /* taking out cannot fail */
	CHANNEL_PUT(&a->out, 0, PROPOSE, propose,
		{.number = k->number, .read = k->read, .text = buf_view(&k->text)});
}

void
asker_ready(struct agent *a, struct watch *w)
{
	struct asker *k = container_of(w, struct asker, w);
	uint8_t *room;
	ssize_t n;

	if (k->state == ASKER_READS) {
		asker_write(a, k);
		return;
	}
	room = buf_room(&k->text, PROPOSE_TEXT_BYTES + 1 - k->text.n);
	if (room == NULL) {
		asker_end(a, k);
		return;
	}
	n = read(w->fd, room, PROPOSE_TEXT_BYTES + 1 - k->text.n);
	if (n > 0)
		buf_grew(&k->text, (size_t)n);
	if (n < 0 && errno != EAGAIN && errno != EINTR)
		asker_end(a, k);
	else if (k->text.n > PROPOSE_TEXT_BYTES)
		asker_answer(a, k, view_str(too_large));
	else if (n == 0 && k->text.n == 0)
		asker_answer(a, k, view_str(nothing));
	else if (n == 0)
		asker_ask(a, k);
}

bool
propose_answered(struct agent *a, uint64_t number, struct view answer)
{
	list_each (k, &a->propose.askers, struct asker, link)
		if (k->state == ASKER_WAITS && k->number == number) {
			asker_answer(a, k, answer);
			return true;
		}
	return false;
}

void
propose_due(struct agent *a, uint64_t now_ms)
{
	list_each (k, &a->propose.askers, struct asker, link)
		if (k->due_ms <= now_ms)
			asker_end(a, k);
}

uint64_t
propose_next_due_ms(const struct agent *a)
{
	uint64_t due = UINT64_MAX;

	list_each (k, (struct link *)(uintptr_t)&a->propose.askers, struct asker, link)
		due = k->due_ms < due ? k->due_ms : due;
	return due;
}

void
propose_sweep(struct agent *a)
{
	list_each (k, &a->propose.dead, struct asker, link) {
		list_remove(&k->link);
		buf_done(&k->text);
		free(k);
	}
}
