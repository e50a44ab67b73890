/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What both sides of this room want of OpenSSL: one way to make a context, and its error queue as one sentence. TLS 1.2 at least, HTTP/1.1 only,
 * no session is ever taken up again (so no name is served that was not judged in this handshake), no renegotiation, no compression, no early
 * data; an end without close_notify is an error.
 */
#pragma once

#include "lib/base/err.h"

#include <openssl/ssl.h>
#include <stdbool.h>

/* NULL with the reason. Owned by the caller. Without certificates: ca.c and roots.c set them. */
SSL_CTX *tls_context(bool server, struct err *err);

/*
 * Why a call failed with SSL_ERROR_SSL or SSL_ERROR_SYSCALL, and empties the queue. socket_fault: negative errno of the socket, or 0. The code
 * is one of those of stream_events.failed (stream.h). No byte of the peer is in the text.
 */
int tls_fault(const SSL *ssl, int socket_fault, struct err *err);
