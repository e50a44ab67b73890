/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The victim: runs on the host and in another sandbox, and makes under one name all that another process could reach:
 * System V and POSIX IPC, Unix and TCP sockets, a file. Says "ready", then one line for every contact, until stdin
 * ends; then "intact" if nothing of it changed.
 */
#include "probe.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { SHM_BYTES = 4096 };

struct victim {
	char queue_name[64], file[128];
	int shm, msg, sem, queue, memory;
	struct pollfd watched[5];
	char *shared;
};

uint32_t
victim_key(const char *mark)
{
	uint32_t h = 2166136261U;

	for (; *mark != '\0'; mark++)
		h = (h ^ (uint8_t)*mark) * 16777619U;
	return h | 1;
}

uint16_t
victim_port(const char *mark)
{
	return (uint16_t)(20000 + victim_key(mark) % 10000);
}

static int
unix_listen(const char *mark, const char *suffix, int type)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int n = snprintf(a.sun_path + 1, sizeof(a.sun_path) - 1, "%s%s", mark, suffix);
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);

	if (bind(fd, (struct sockaddr *)&a,
		    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n)) < 0)
		return -1;
	return type == SOCK_STREAM && listen(fd, 16) < 0 ? -1 : fd;
}

static int
tcp_listen(uint16_t port)
{
	const struct sockaddr_in a = {AF_INET, htons(port), {htonl(INADDR_LOOPBACK)}, {0}};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)); /* only saves a wait */
	if (bind(fd, (const struct sockaddr *)&a, sizeof(a)) < 0 || listen(fd, 16) < 0)
		return -1;
	return fd;
}

static int
signals_watch(void)
{
	sigset_t all;

	(void)sigfillset(&all);
	(void)sigprocmask(SIG_BLOCK, &all, NULL);
	return signalfd(-1, &all, SFD_CLOEXEC);
}

static bool
victim_make(struct victim *v, const char *mark, const char *canary)
{
	key_t key = (key_t)victim_key(mark);
	FILE *f;

	(void)snprintf(v->queue_name, sizeof(v->queue_name), "/%s", mark);
	(void)snprintf(v->file, sizeof(v->file), "/tmp/%s", mark);
	v->shm = shmget(key, SHM_BYTES, IPC_CREAT | 0666);
	v->msg = msgget(key, IPC_CREAT | 0666);
	v->sem = semget(key, 1, IPC_CREAT | 0666);
	v->queue = mq_open(v->queue_name, O_RDWR | O_CREAT, 0666, NULL);
	v->memory = shm_open(v->queue_name, O_RDWR | O_CREAT, 0666);
	v->shared = shmat(v->shm, NULL, 0);
	v->watched[0] = (struct pollfd){.fd = STDIN_FILENO, .events = POLLIN};
	v->watched[1] = (struct pollfd){.fd = signals_watch(), .events = POLLIN};
	v->watched[2] = (struct pollfd){.fd = unix_listen(mark, "", SOCK_STREAM), .events = POLLIN};
	v->watched[3] = (struct pollfd){
		.fd = unix_listen(mark, "-datagram", SOCK_DGRAM), .events = POLLIN};
	v->watched[4] = (struct pollfd){.fd = tcp_listen(victim_port(mark)), .events = POLLIN};
	f = fopen(v->file, "we");
	if (f == NULL || fprintf(f, "%s\n", canary) < 0 || fclose(f) != 0)
		return false;
	for (size_t i = 0; i < 5; i++)
		if (v->watched[i].fd < 0)
			return false;
	if (v->shm < 0 || v->msg < 0 || v->sem < 0 || v->queue < 0 || v->memory < 0 ||
		v->shared == (char *)-1)
		return false;
	(void)snprintf(v->shared, SHM_BYTES, "%s", canary);
	return true;
}

static bool
victim_intact(const struct victim *v, const char *canary)
{
	struct msqid_ds queue;
	struct shmid_ds memory;
	char line[256] = "";
	FILE *f = fopen(v->file, "re");

	if (f == NULL || fgets(line, sizeof(line), f) == NULL || fclose(f) != 0)
		return false;
	line[strcspn(line, "\n")] = '\0';
	return strcmp(line, canary) == 0 && strcmp(v->shared, canary) == 0 &&
	       msgctl(v->msg, IPC_STAT, &queue) == 0 && queue.msg_qnum == 0 &&
	       shmctl(v->shm, IPC_STAT, &memory) == 0 && memory.shm_nattch == 1 &&
	       semctl(v->sem, 0, GETVAL) == 0;
}

static void
victim_remove(struct victim *v)
{
	(void)shmdt(v->shared);
	(void)shmctl(v->shm, IPC_RMID, NULL);
	(void)msgctl(v->msg, IPC_RMID, NULL);
	(void)semctl(v->sem, 0, IPC_RMID);
	(void)mq_unlink(v->queue_name);
	(void)shm_unlink(v->queue_name);
	(void)unlink(v->file);
}

/* Takes what came, so that it is told once. */
static void
contact(struct pollfd *p)
{
	struct signalfd_siginfo s;
	char byte;

	if (p->events == 0 || p->revents == 0)
		return;
	if (read(p->fd, &s, sizeof(s)) == (ssize_t)sizeof(s))
		printf("contact: signal %u\n", s.ssi_signo);
	else if (accept(p->fd, NULL, NULL) >= 0 || recv(p->fd, &byte, 1, MSG_DONTWAIT) >= 0)
		printf("contact: connection\n");
}

int
victim_run(const char *mark, const char *canary)
{
	struct victim v = {0};
	char byte;

	if (!victim_make(&v, mark, canary)) {
		printf("cannot be a victim: %s\n", strerror(errno));
		return 1;
	}
	printf("ready\n");
	(void)fflush(stdout);
	for (;;) {
		if (poll(v.watched, 5, -1) < 0)
			break;
		for (size_t i = 1; i < 5; i++)
			contact(&v.watched[i]);
		(void)fflush(stdout);
		if (v.watched[0].revents != 0 && read(STDIN_FILENO, &byte, 1) <= 0)
			break;
	}
	printf("%s\n", victim_intact(&v, canary) ? "intact" : "changed");
	victim_remove(&v);
	return 0;
}
