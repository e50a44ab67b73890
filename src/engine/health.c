/* SPDX-License-Identifier: Apache-2.0 */
/* HEALTH; see health.h. */
#include "engine/health.h"

#include "engine/template.h"

static const char *
what(struct engine *e)
{
	if (e->stopping)
		return "the host is stopping";
	if (list_empty(&e->templates))
		template_scan(e);
	if (list_empty(&e->templates))
		return "no template was built yet: demilune template build";
	list_each (t, &e->templates, struct template, link)
		if (t->state == TEMPLATE_MOUNTED)
			return "";
	return "no template is mounted yet";
}

int
on_health(struct engine *e, struct reply to, const struct msg_health *m, struct err *err)
{
	const char *text = what(e);

	(void)m, (void)err;
	REPLY(e, to, HEALTH_ROW, health_row, {.ready = text[0] == '\0', .text = view_str(text)});
	return 0;
}
