/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Edges between gateways and dialer or broker: made for each new gateway, and for all when one of those two was started anew. What one of them
 * has no room for is given again a little later: of a host with many sandboxes it gets many at its start.
 */
#pragma once

#include "supervisor/supervisor.h"

void edges_init(struct supervisor *sv);

/* Gives what is due (sandbox.h). */
void edges_give(struct supervisor *sv);

/* This process is a new one: all gateways that need it are due. */
void edges_renew(struct supervisor *sv, enum member_id id);

/* The ports of all policies that are held: before DIALER_BEGIN. False: it does not read, and is started anew. */
bool edges_ports_tell(struct supervisor *sv, struct member *dialer);
