/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests to the explicit proxy: CONNECT name:port, which is then as if that address had been dialled, and http:// in absolute form. Nothing
 * else is one. The same rules, the same pipeline; a proxy that is set in the environment gives a program nothing more.
 */
#pragma once

#include "exchange.h"

/* The head is complete. NONE: the place is known and the request is judged next, or *ret_tunnel: the connection leads there from now on. */
enum egress_reason proxy_place(struct conn *c, bool *ret_tunnel, unsigned *ret_status);
