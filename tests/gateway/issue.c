/* SPDX-License-Identifier: Apache-2.0 */
/*
 * issue FOLDER NAME SERVED...: the authority of a gateway whose one rule names NAME (ca.crt, java.jks), and what it would serve each SERVED with
 * (SERVED.pem: certificate and key), also where no gateway would: so that real clients can be asked what they take of whoever had its key.
 */
#include "gateway/ca.h"

#include <openssl/pem.h>
#include <stdio.h>

static void
put(const char *folder, const char *name, const struct buf *b)
{
	char path[512];
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/%s", folder, name);
	f = fopen(path, "wb");
	must(f != NULL && fwrite(b->p, 1, b->n, f) == b->n && fclose(f) == 0);
}

int
main(int argc, char **argv)
{
	static struct policy policy = {.nrules = 1};
	auto_buf struct buf pem = {.max = 65536}, jks = {.max = 65536};
	struct err err = {0};
	struct ca *ca;

	must(argc > 3);
	policy.rule[0] = (struct rule){
		.kind = RULE_KIND_FETCH, .tls = true, .host = view_str(argv[2])};
	ca = ca_new(&err);
	must(ca != NULL && ca_certify(ca, &policy, &pem, &jks, &err) == 0);
	put(argv[1], "ca.crt", &pem);
	put(argv[1], "java.jks", &jks);
	for (int i = 3; i < argc; i++) {
		SSL *ssl = SSL_new(ca_context(ca));
		char path[512];
		FILE *f;

		must(ca_leaf_use(ca, ssl, view_str(argv[i]), &err) == 0);
		(void)snprintf(path, sizeof(path), "%s/%s.pem", argv[1], argv[i]);
		f = fopen(path, "wb");
		must(f != NULL && PEM_write_X509(f, SSL_get_certificate(ssl)) == 1 &&
			PEM_write_PrivateKey(
				f, SSL_get_privatekey(ssl), NULL, NULL, 0, NULL, NULL) == 1 &&
			fclose(f) == 0);
		SSL_free(ssl);
	}
	ca_free(ca);
	return 0;
}
