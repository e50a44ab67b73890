/* SPDX-License-Identifier: Apache-2.0 */
/* What who asked for an action is told; see propose.h. The sentences of a denial are for a model: what, why, and to stop. */
#include "engine/propose.h"

#include "lib/action/check.h"
#include "lib/action/condition.h"
#include "lib/action/request.h"
#include "lib/base/log.h"

#include <errno.h>

struct principal
principal_sandbox(const struct id *sandbox)
{
	struct principal p = {.kind = CALLER_KIND_NONE};
	char id[ID_TEXT];

	id_text(sandbox, ID_SANDBOX, id);
	(void)snprintf(p.name, sizeof(p.name), PRINCIPAL_SANDBOX "%s", id);
	return p;
}

void
err_denied(struct err *err, enum denial denial, struct view text)
{
	size_t n = text.n < sizeof(err->text) - 1 ? text.n : sizeof(err->text) - 1;

	while (n < text.n && n > 0 && (text.p[n] & 0xc0) == 0x80)
		n--; /* not in the middle of a character */
	err->code = -(DENIAL_BASE + (int)denial);
	if (n > 0)
		memcpy(err->text, text.p, n);
	err->text[n] = '\0';
}

enum denial
denial_of(const struct err *why)
{
	return why->code < -DENIAL_BASE ? (enum denial)(-why->code - DENIAL_BASE)
					: DENIAL_AUDIT_UNAVAILABLE;
}

static const char *
advice(enum denial d)
{
	if (d == DENIAL_ARGUMENTS || d == DENIAL_RECORD_MALFORMED)
		return "Nothing was done. Correct the arguments and propose it again.";
	if (d == DENIAL_BROKER_UNAVAILABLE || d == DENIAL_VERIFY_UNAVAILABLE ||
		d == DENIAL_AUDIT_UNAVAILABLE)
		return "Nothing was done. Propose it again later; trying another way is refused "
		       "too.";
	return "Nothing was done. Trying another way is refused too: tell the person who gave you "
	       "the task.";
}

/* The relay of a sandbox that still waits; its question counts no more. */
static struct ipc_peer *
relay_of(const struct asker *a)
{
	struct sandbox *s = sandbox_live(a->engine, &a->sandbox);

	if (s == NULL)
		return NULL;
	if (s->proposing_n > 0)
		s->proposing_n--;
	return s->relay;
}

/*
 * The sentence without what systems outside say: a hostile program asks for anything, also for orders of other tenants, only to hear about
 * them. Which condition failed is in the catalogue and may be heard; values are for people (the row, the audit).
 */
static struct view
sentence(enum denial d, const struct err *why)
{
	struct view text = view_str(why->text);

	if (why->code >= -DENIAL_BASE)
		return view_str("the host cannot record this at the moment");
	if (d == DENIAL_VERIFY_FAILED || d == DENIAL_GRANT_CONDITION)
		text = condition_failed(text);
	if (d == DENIAL_VERIFY_UNAVAILABLE || d == DENIAL_PROVIDER_ANSWER ||
		d == DENIAL_DIAL_REFUSED || text.n == 0)
		return view_str(denial_sentence(d));
	return text;
}

void
asker_denied(const struct asker *a, const struct id *proposal, const struct err *why)
{
	static const struct id none;
	enum denial d = denial_of(why);
	struct ipc_peer *relay;
	struct view said;
	char text[513];

	if (id_is_zero(&a->sandbox)) {
		answer_refused(a->engine, a->to, why);
		return;
	}
	if (why->code >= -DENIAL_BASE)
		log_line("a proposal failed: %s", why->text);
	said = sentence(d, why);
	(void)snprintf(text, sizeof(text), "%.*s. %s", VIEW_ARGS(said), advice(d));
	relay = relay_of(a);
	if (relay != NULL)
		IPC_SEND(relay, a->tag, PROPOSED, proposed,
			{.denial = d,
				.proposal = proposal != NULL ? *proposal : none,
				.text = view_str(text)});
}

static const char *
what_now(enum proposal_state s)
{
	switch (s) {
	case PROPOSAL_STATE_PENDING:
		return "it waits for a person to decide; there is nothing more to do";
	case PROPOSAL_STATE_SUCCEEDED:
		return "it was carried out";
	case PROPOSAL_STATE_UNKNOWN:
	case PROPOSAL_STATE_MANUAL:
		return "it was sent, and a person looks into what became of it; do not ask for it "
		       "again";
	case PROPOSAL_STATE_PROPOSED:
	case PROPOSAL_STATE_APPROVED:
	case PROPOSAL_STATE_DISPATCHING:
		return "it is on its way; there is nothing more to do";
	case PROPOSAL_STATE_FAILED:
	case PROPOSAL_STATE_DENIED:
	case PROPOSAL_STATE_REJECTED:
	case PROPOSAL_STATE_EXPIRED:
	case PROPOSAL_STATE_REVOKED:
	case PROPOSAL_STATE_SUPERSEDED:
		return "it came to nothing";
	case PROPOSAL_STATE_MAX:
		break;
	}
	must(false);
}

void
asker_proposed(const struct asker *a, struct proposal *p, bool duplicate)
{
	struct ipc_peer *relay;
	struct err err;

	if (id_is_zero(&a->sandbox)) {
		if (proposal_answer(p, a->to, duplicate, &err) < 0)
			answer_refused(a->engine, a->to, &err);
		return;
	}
	relay = relay_of(a);
	if (relay != NULL)
		IPC_SEND(relay, a->tag, PROPOSED, proposed,
			{.proposal = p->id,
				.duplicate = duplicate,
				.text = view_str(what_now(p->state))});
}

void
asker_read(const struct asker *a, const struct id *proposal, struct view answer)
{
	struct ipc_peer *relay = relay_of(a);

	if (relay != NULL)
		IPC_SEND(relay, a->tag, PROPOSED, proposed,
			{.proposal = *proposal, .answer = answer, .text = view_str("")});
}

int
asked_settle(struct asked *a, uint32_t calls, uint64_t bytes, struct err *err)
{
	const struct budget_of of = {.task = a->task, .tenant = a->tenant, .day = a->day};

	if (a->bytes == 0)
		return 0; /* nothing was to be asked */
	return budget_call_settle(a->asker.engine, &of, a->bytes, calls, bytes, err);
}

void
request_values_of(struct engine *e, const char *tenant, const struct id *task,
	const struct id *proposal, struct view arguments, struct request_room *room,
	struct request_values *ret)
{
	id_text(task, ID_TASK, room->task);
	id_text(proposal, ID_PROPOSAL, room->proposal);
	request_key(e->broker.epoch, proposal, 0, room->key);
	*ret = (struct request_values){.arguments = arguments,
		.tenant = view_str(tenant),
		.task = view_str(room->task),
		.proposal = view_str(room->proposal),
		.key = view_str(room->key)};
}
