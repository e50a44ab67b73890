/* SPDX-License-Identifier: Apache-2.0 */
/* The end of the host; see stopping.h. */
#include "engine/stopping.h"

int
on_stopping(struct engine *e, struct err *err)
{
	(void)err;
	e->stopping = true;
	stopping_check(e);
	return 0;
}

void
stopping_check(struct engine *e)
{
	if (!e->stopping || e->stopped || !list_empty(&e->sandboxes))
		return;
	e->stopped = true;
	store_sync(e->store);
	IPC_SEND(e->supervisor, 0, STOPPED, stopped, {0});
}
