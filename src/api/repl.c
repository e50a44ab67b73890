/* SPDX-License-Identifier: Apache-2.0 */
/* Code contexts; see repl.h. */
#include "repl.h"

#include "route.h"

void
repl_start(struct api *api)
{
	list_init(&api->repls);
}

void
repl_stop(struct api *api)
{
	must(list_empty(&api->repls));
}

static int
later(struct err *err)
{
	return refuse(err, NOT_BUILT, "code contexts are not in this release; run code with exec");
}

#define LATER(handler)                                    \
	int handler(struct request *req, struct err *err) \
	{                                                 \
		(void)req;                                \
		return later(err);                        \
	}
LATER(on_repl_languages)
LATER(on_repl_once)
LATER(on_repl_list)
LATER(on_repl_open)
LATER(on_repl_run)
LATER(on_repl_close)
