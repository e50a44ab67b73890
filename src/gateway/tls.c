/* SPDX-License-Identifier: Apache-2.0 */
/* See tls.h. */
#include "tls.h"

#include <errno.h>
#include <openssl/err.h>
#include <string.h>

enum {
	TLS_SECURITY_LEVEL = 2, /* 112 bits: RSA and DH of 2048, no SHA-1 */
	TLS_CHAIN_BYTES = 65536,
};

/* Of TLS 1.2; no ephemeral DH over integers, whose parameters a server could choose to cost much. */
static const char ciphers[] = "ECDHE+AESGCM:ECDHE+CHACHA20:ECDHE+AES:!aNULL:!PSK:!SRP";
static char groups[] = "X25519:P-256:P-384"; /* OpenSSL takes no pointer to const */
static const uint8_t http1[] = {8, 'h', 't', 't', 'p', '/', '1', '.', '1'};

/* Offers without HTTP/1.1 are refused, not ignored: what would follow could not be read. */
static int
choose_protocol(SSL *ssl, const unsigned char **ret, unsigned char *ret_n, const unsigned char *in,
	unsigned n, void *arg)
{
	(void)ssl, (void)arg;
	for (unsigned i = 0; i < n; i += in[i] + 1U)
		if (in[i] == http1[0] && n - i >= sizeof(http1) &&
			memcmp(in + i, http1, sizeof(http1)) == 0) {
			*ret = http1 + 1;
			*ret_n = http1[0];
			return SSL_TLSEXT_ERR_OK;
		}
	return SSL_TLSEXT_ERR_ALERT_FATAL;
}

static bool
set(SSL_CTX *ctx, bool server)
{
	(void)SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
					       SSL_OP_NO_TICKET |
					       SSL_OP_NO_SESSION_RESUMPTION_ON_RENEGOTIATION |
					       SSL_OP_CIPHER_SERVER_PREFERENCE);
	(void)SSL_CTX_clear_options(
		ctx, SSL_OP_IGNORE_UNEXPECTED_EOF | SSL_OP_LEGACY_SERVER_CONNECT);
	(void)SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_NO_AUTO_CHAIN);
	/* One record of the protocol's own, and others have their turn: a peer that sends KeyUpdates without end would have the process. */
	(void)SSL_CTX_clear_mode(ctx, SSL_MODE_AUTO_RETRY);
	(void)SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	(void)SSL_CTX_set_max_early_data(ctx, 0);
	SSL_CTX_set_security_level(ctx, TLS_SECURITY_LEVEL);
	SSL_CTX_set_max_cert_list(ctx, TLS_CHAIN_BYTES);
	if (SSL_CTX_set_num_tickets(ctx, 0) != 1 ||
		SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) != 1 ||
		SSL_CTX_set_cipher_list(ctx, ciphers) != 1 ||
		SSL_CTX_set1_groups_list(ctx, groups) != 1)
		return false;
	if (server)
		SSL_CTX_set_alpn_select_cb(ctx, choose_protocol, NULL);
	return server || SSL_CTX_set_alpn_protos(ctx, http1, sizeof(http1)) == 0;
}

SSL_CTX *
tls_context(bool server, struct err *err)
{
	SSL_CTX *ctx = NULL;

	/* Before anything else, else OpenSSL reads a file of the host for its defaults. */
	if (OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG, NULL) == 1)
		ctx = SSL_CTX_new(server ? TLS_server_method() : TLS_client_method());
	if (ctx == NULL || !set(ctx, server)) {
		SSL_CTX_free(ctx);
		ERR_clear_error();
		(void)err_set(err, -ENOMEM, "no context for TLS");
		return NULL;
	}
	return ctx;
}

/* The alerts by which a client says that it does not take our certificate. */
static bool
rejects_us(int reason)
{
	static const int reasons[] = {SSL_R_TLSV1_ALERT_UNKNOWN_CA,
		SSL_R_SSLV3_ALERT_BAD_CERTIFICATE, SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN,
		SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED, SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED,
		SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE};

	for (size_t i = 0; i < ARRAY_LEN(reasons); i++)
		if (reasons[i] == reason)
			return true;
	return false;
}

int
tls_fault(const SSL *ssl, int socket_fault, struct err *err)
{
	unsigned long code = ERR_peek_last_error();
	int reason = ERR_GET_LIB(code) == ERR_LIB_SSL ? ERR_GET_REASON(code) : 0;
	const char *text = ERR_reason_error_string(code);

	ERR_clear_error();
	if (SSL_is_server(ssl) && rejects_us(reason))
		return err_set(err, -ECONNABORTED,
			"the program does not accept our certificate: %s", text);
	if (reason == SSL_R_CERTIFICATE_VERIFY_FAILED)
		return err_set(err, -EKEYREJECTED, "the certificate is not accepted: %s",
			X509_verify_cert_error_string(SSL_get_verify_result(ssl)));
	if (socket_fault == -ENOBUFS)
		return err_set(err, -EPROTO, "the peer causes more answers than it takes");
	if (socket_fault < 0 || reason == SSL_R_UNEXPECTED_EOF_WHILE_READING || code == 0)
		return err_set(err, -ECONNRESET, "the TLS connection was cut off");
	return err_set(err, -EPROTO, "TLS: %s", text == NULL ? "it failed" : text);
}
