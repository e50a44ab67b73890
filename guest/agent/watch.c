/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors in the epoll instance; see watch.h. */
#include "watch.h"

bool
watch_for(const struct watches *ws, struct watch *w, uint32_t events)
{
	struct epoll_event ev = {.events = events, .data.ptr = w};
	int op = w->events == 0 ? EPOLL_CTL_ADD : events == 0 ? EPOLL_CTL_DEL : EPOLL_CTL_MOD;

	if (w->fd < 0 || w->events == events)
		return true;
	if (epoll_ctl(ws->epoll, op, w->fd, &ev) < 0)
		return false;
	w->events = events;
	return true;
}

int
watch_take(const struct watches *ws, struct watch *w)
{
	(void)watch_for(ws, w, 0); /* taking out cannot fail for a descriptor that is in */
	w->events = 0;
	return take_fd(&w->fd);
}

void
watch_close(const struct watches *ws, struct watch *w)
{
	int fd = watch_take(ws, w);

	if (fd >= 0)
		(void)close(fd); /* pipes and sockets: nothing is lost by a failing close */
}
