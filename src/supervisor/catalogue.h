/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The compiled operations and policies: made once at the start and again when SIGHUP asks for it, both or none. The supervisor passes them on and looks at
 * seals and sizes only.
 */
#pragma once

#include "supervisor/supervisor.h"

void catalogue_init(struct supervisor *sv);

/* Compiles and waits. Faults are logged with file and line, and are an error. */
int catalogue_start(struct supervisor *sv, struct err *err) MUST_CHECK;

/*
 * Compiles beside the loop. Without a fault broker, engine and dialer are renewed with what came out; else all stays as it is.
 */
void catalogue_reload(struct supervisor *sv);

/* Ends a compiler that runs, and gives up what was compiled. */
void catalogue_end(struct supervisor *sv);
