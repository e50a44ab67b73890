/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who is at the local socket. The engine does not take the api's word: the api hands it a duplicate of the connection
 * that it accepted, and the kernel says whose it is. After that the api names the caller by the number it chose.
 *
 * A connection of the local socket is: a stream that does not listen (a listener's credentials are its maker's), made by a
 * process of the api's uid (whatever the supervisor made, edges above all, has the credentials of root, and was made by
 * root), with the name of the local socket, and with a peer that has no name: that of somebody's connection to a
 * listener has one, and its credentials are the listener's.
 *
 * A number stands until LOCAL_CLOSE or the end of the edge, so an api that is taken over can act for each local caller
 * that it had since the edge was made, and for nobody else.
 */
#pragma once

#include "engine/engine.h"

/* A descriptor that cannot be one of these connections ends the api; a connection whose caller left already, or gave its own end a name, is nobody's. */
int on_local_open(struct engine *e, struct ipc_msg *in, const struct msg_local_open *m,
	struct err *err) MUST_CHECK;
int on_local_close(struct engine *e, const struct msg_local_close *m, struct err *err) MUST_CHECK;

/* There is another api. */
void locals_forget(struct engine *e);

/* True with the uid of this caller. */
bool local_find(const struct engine *e, uint16_t local, uint32_t *ret_uid);
