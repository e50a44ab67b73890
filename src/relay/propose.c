/* SPDX-License-Identifier: Apache-2.0 */
/* Proposals of the sandbox's programs; see propose.h. */
#include "relay.h"

#include "lib/json/canonical.h"
#include "lib/json/out.h"

#include <errno.h>

_Static_assert((int)PROPOSE_TEXT_BYTES == (int)PROPOSAL_TEXT_MAX, "one bound for a request");

static void
answer(struct relay *r, uint64_t number, struct view text)
{
	CHANNEL_PUT(&r->out, 0, PROPOSED, proposed, {.number = number, .answer = text});
	guest_flush(r);
}

/* {"code","denial","error"}; denial NONE leaves it out. */
static void
answer_refusal(
	struct relay *r, uint64_t number, const char *code, enum denial denial, struct view error)
{
	auto_buf struct buf text;
	struct json_out o;

	buf_init(&text, 4096);
	json_out_init(&o, &text, true);
	json_out_object_begin(&o);
	json_out_key_str(&o, "code", view_str(code));
	if (denial != DENIAL_NONE)
		json_out_key_str(&o, "denial", view_str(denial_text(denial)));
	json_out_key_str(&o, "error", error);
	json_out_object_end(&o);
	must(json_out_end(&o) == 0); /* 512 bytes of text at most, six each when escaped */
	buf_add_byte(&text, '\n');
	answer(r, number, buf_view(&text));
}

static bool
close_number(struct relay *r, uint64_t number)
{
	struct proposals *p = &r->proposals;

	for (size_t i = 0; i < p->n; i++)
		if (p->open[i] == number) {
			p->open[i] = p->open[--p->n];
			return true;
		}
	return false;
}

int
propose_ask(struct relay *r, const struct frame_propose *m, struct err *err)
{
	struct proposals *p = &r->proposals;
	auto_buf struct buf bytes;
	struct err why;

	for (size_t i = 0; i < p->n; i++)
		if (p->open[i] == m->number)
			return err_set(err, -EPROTO, "PROPOSE with a number that is open");
	if (p->n == PROPOSE_LIVE_MAX)
		return err_set(
			err, -EPROTO, "more than %u open PROPOSE", (unsigned)PROPOSE_LIVE_MAX);
	buf_init(&bytes, PROPOSAL_CANONICAL_MAX);
	if (canonical_proposal_parse(m->text, &bytes, &why) < 0) {
		answer_refusal(r, m->number, "bad_request", DENIAL_NONE, view_str(why.text));
		return 0;
	}
	if (r->engine == NULL) {
		answer_refusal(r, m->number, "unavailable", DENIAL_NONE,
			view_str("the host is busy with itself; ask again in a second"));
		return 0;
	}
	p->open[p->n++] = m->number;
	IPC_SEND(r->engine, m->number, PROPOSE, propose,
		{.read = m->read, .proposal = buf_view(&bytes)});
	return 0;
}

int
propose_answered(struct relay *r, uint64_t number, const struct msg_proposed *m, struct err *err)
{
	auto_buf struct buf text;
	struct json_out o;
	char id[ID_TEXT];

	if (!close_number(r, number))
		return err_set(err, -EPROTO, "PROPOSED for what nobody asked");
	if (m->denial != DENIAL_NONE) {
		answer_refusal(r, number, "denied", m->denial, m->text);
		return 0;
	}
	buf_init(&text, PROPOSE_ANSWER_BYTES);
	json_out_init(&o, &text, false);
	json_out_object_begin(&o);
	if (m->answer.n > 0) {
		json_out_key(&o, "answer");
		json_out_raw(&o, m->answer);
	} else {
		id_text(&m->proposal, ID_PROPOSAL, id);
		json_out_key_str(&o, "proposal", view_str(id));
		json_out_key_bool(&o, "duplicate", m->duplicate);
	}
	json_out_object_end(&o);
	must(json_out_end(&o) == 0);
	buf_add_byte(&text, '\n');
	answer(r, number, buf_view(&text));
	return 0;
}

void
propose_engine_lost(struct relay *r)
{
	struct proposals *p = &r->proposals;

	while (p->n > 0) {
		uint64_t number = p->open[--p->n];

		answer_refusal(r, number, "unavailable", DENIAL_NONE,
			view_str("the host was restarted; ask again, an action that was proposed "
				 "already is found again"));
	}
}
