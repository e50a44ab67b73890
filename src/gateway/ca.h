/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The certificate authority of one sandbox: P-256, its keys made while the gateway is nobody's yet and in this process only, its certificate
 * when the policy is known: as long as a sandbox can live (LIMIT_AUTHORITY_S), constrained to the names that intercepted rules can lead to. Leaves share one key; made for a name on demand (leaf.h). All
 * authorities have the subject "CN=Demilune sandbox authority", whose hash for directories of certificates is b674e9d2.
 */
#pragma once

#include "lib/base/buf.h"
#include "lib/egress/policy.h"

#include <openssl/ssl.h>

struct ca;

/* All that needs no policy, which takes longest. NULL with the reason. */
struct ca *ca_new(struct err *err);

/*
 * The certificate, once, before any leaf. ret_certificate: PEM; ret_keystore: the same as a Java key store (JKS, no password needed). At most 24576
 * bytes each. One that fails can only be freed.
 */
int ca_certify(struct ca *ca, const struct policy *p, struct buf *ret_certificate,
	struct buf *ret_keystore, struct err *err) MUST_CHECK;
void ca_free(struct ca *ca);

/* The context of all connections that are served; its cert_cb asks for the name that stream_serve_tls() was given. */
SSL_CTX *ca_context(struct ca *ca);
/* Sets leaf and key for this canonical name. */
int ca_leaf_use(struct ca *ca, SSL *ssl, struct view name, struct err *err) MUST_CHECK;
