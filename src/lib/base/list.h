/* SPDX-License-Identifier: Apache-2.0 */
/* Doubly linked lists with the links inside the object. A list head is a link too. */
#pragma once

#include "lib/base/attr.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct link {
	struct link *next, *prev;
};

static inline void
list_init(struct link *head)
{
	head->next = head->prev = head;
}

static inline bool
list_empty(const struct link *head)
{
	return head->next == head;
}

static inline void
list_append(struct link *head, struct link *l)
{
	l->prev = head->prev;
	l->next = head;
	head->prev->next = l;
	head->prev = l;
}

/* Leaves l linked to itself, so that removing it again does no harm. */
static inline void
list_remove(struct link *l)
{
	l->prev->next = l->next;
	l->next->prev = l->prev;
	list_init(l);
}

/* Safe against removal of the current element. */
#define list_each(var, head, type, member)                                                         \
	for (struct link *l_ = (head)->next, *n_ = l_->next; l_ != (head); l_ = n_, n_ = l_->next) \
		for (type *var = container_of(l_, type, member); var != NULL; var = NULL)
