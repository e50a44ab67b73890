/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Load of new connections, for bench/egress.py: each client connects, asks a proxy when there is one, makes a TLS 1.3 handshake that it verifies,
 * sends one GET, reads the answer to its end and closes; again until the time is over.
 *
 *     handshakes ADDRESS:PORT NAME CA.pem PATH CLIENTS SECONDS [NAME:PORT for a proxy]
 *
 * Prints "connections-per-second p50-microseconds p99-microseconds".
 */
#include <arpa/inet.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { TIMES_MAX = 200000 };

struct load {
	struct sockaddr_in at;
	char *name; /* not const: OpenSSL's macro casts it */
	const char *path, *proxied;
	uint16_t port; /* of the origin: for Host */
	SSL_CTX *context;
	uint64_t until_ns;
};

struct client {
	const struct load *load;
	pthread_t thread;
	uint32_t *us; /* owned */
	size_t n;
	const char *fault;
};

static uint64_t
now_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t); /* cannot fail */
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* What went wrong, or NULL. */
static const char *
proxy_ask(int fd, const char *place)
{
	char text[1024];
	int n = snprintf(
		text, sizeof(text), "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", place, place);
	size_t have = 0;

	if (write(fd, text, (size_t)n) != n)
		return "the proxy does not take the request";
	do {
		ssize_t got = read(fd, text + have, sizeof(text) - 1 - have);

		if (got <= 0)
			return "the proxy does not answer";
		have += (size_t)got;
		text[have] = '\0';
	} while (strstr(text, "\r\n\r\n") == NULL && have < sizeof(text) - 1);
	return strstr(text, " 200 ") != NULL ? NULL : "the proxy refuses";
}

static const char *
exchange(const struct load *load, int fd)
{
	SSL *ssl = SSL_new(load->context);
	const char *fault = NULL;
	char text[4096];
	int n;

	if (ssl == NULL)
		return "no memory";
	n = snprintf(text, sizeof(text),
		"GET %s HTTP/1.1\r\nHost: %s:%u\r\nConnection: close\r\n\r\n", load->path,
		load->name, load->port);
	if (SSL_set_fd(ssl, fd) != 1 || SSL_set_tlsext_host_name(ssl, load->name) != 1 ||
		SSL_set1_host(ssl, load->name) != 1 || SSL_connect(ssl) != 1)
		fault = "no handshake";
	else if (SSL_write(ssl, text, n) != n || SSL_read(ssl, text, sizeof(text)) <= 0 ||
		 strncmp(text, "HTTP/1.1 200", 12) != 0)
		fault = "no answer";
	else
		while (SSL_read(ssl, text, sizeof(text)) > 0)
			;
	SSL_free(ssl);
	return fault;
}

static void *
client_main(void *arg)
{
	struct client *c = arg;

	while (c->fault == NULL && now_ns() < c->load->until_ns && c->n < TIMES_MAX) {
		uint64_t began = now_ns();
		int fd = socket(AF_INET, SOCK_STREAM, 0);

		if (fd < 0 ||
			connect(fd, (const struct sockaddr *)&c->load->at, sizeof(c->load->at)) < 0)
			c->fault = "no connection";
		if (c->fault == NULL && c->load->proxied != NULL)
			c->fault = proxy_ask(fd, c->load->proxied);
		if (c->fault == NULL)
			c->fault = exchange(c->load, fd);
		if (fd >= 0)
			(void)close(fd); /* read to its end */
		c->us[c->n++] = (uint32_t)((now_ns() - began) / 1000);
	}
	return NULL;
}

static int
compare(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

int
main(int argc, char **argv)
{
	struct load load = {.at = {.sin_family = AF_INET}};
	struct client *clients;
	uint64_t began;
	uint32_t *all;
	size_t total = 0, n;
	char *colon;

	if (argc < 7 || (colon = strchr(argv[1], ':')) == NULL)
		return 2;
	*colon = '\0';
	load.at.sin_port = htons((uint16_t)atoi(colon + 1));
	if (inet_pton(AF_INET, argv[1], &load.at.sin_addr) != 1)
		return 2;
	load.name = argv[2];
	load.path = argv[4];
	load.proxied = argc > 7 ? argv[7] : NULL;
	load.port = (uint16_t)atoi(
		load.proxied != NULL ? strchr(load.proxied, ':') + 1 : colon + 1);
	load.context = SSL_CTX_new(TLS_client_method());
	if (load.context == NULL || SSL_CTX_load_verify_locations(load.context, argv[3], NULL) != 1)
		return 2;
	SSL_CTX_set_verify(load.context, SSL_VERIFY_PEER, NULL);
	SSL_CTX_set_session_cache_mode(load.context, SSL_SESS_CACHE_OFF);
	n = (size_t)atoi(argv[5]);
	clients = calloc(n, sizeof(*clients));
	if (clients == NULL)
		return 2;
	began = now_ns();
	load.until_ns = began + (uint64_t)(atof(argv[6]) * 1e9);
	for (size_t i = 0; i < n; i++) {
		clients[i] = (struct client){
			.load = &load, .us = calloc(TIMES_MAX, sizeof(uint32_t))};
		if (clients[i].us == NULL ||
			pthread_create(&clients[i].thread, NULL, client_main, &clients[i]) != 0)
			return 2;
	}
	for (size_t i = 0; i < n; i++) {
		(void)pthread_join(clients[i].thread, NULL); /* it was made */
		total += clients[i].n;
		if (clients[i].fault != NULL) {
			fprintf(stderr, "%s\n", clients[i].fault);
			return 1;
		}
	}
	all = calloc(total + 1, sizeof(*all));
	if (all == NULL)
		return 1;
	if (total == 0)
		return 1;
	n = 0;
	for (size_t i = 0; n < total; i++) {
		memcpy(all + n, clients[i].us, clients[i].n * sizeof(*all));
		n += clients[i].n;
	}
	qsort(all, total, sizeof(*all), compare);
	printf("%.1f %u %u\n", (double)total / ((double)(now_ns() - began) / 1e9), all[total / 2],
		all[total * 99 / 100]);
	return 0;
}
