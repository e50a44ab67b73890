/* SPDX-License-Identifier: Apache-2.0 */
/* Whole steps of actions for the tests, with the catalogue of tests/actions/sample.h and a played broker. */
#pragma once

#include "play.h"

#include "lib/action/record.h"

/* A task of acme with a sandbox, its relay, and a broker that is ready. */
struct acts {
	struct play p;
	int relay;
	unsigned brokers; /* that were ready */
	struct id sandbox, task;
	char task_text[ID_TEXT];
};

void acts_open(struct acts *a);  /* the directory and the settings; then acts_start */
void acts_start(struct acts *a); /* all of it */
void acts_close(struct acts *a);

/* The engine is killed, if it was not yet, and started again; the supervisor still has the sandbox. */
void acts_restart(struct acts *a);

/* A new broker, and the engine knows it. */
void acts_broker_again(struct acts *a);

/* `where`: one condition, or NULL. */
struct id acts_grant(struct acts *a, const char *operation, const char *where, uint32_t uses);
void acts_grant_row(struct acts *a, const struct id *grant, struct msg_grant_row *ret);

/* PROPOSE on the relay with this tag. */
void acts_propose(struct acts *a, uint64_t tag, const char *canonical, bool read);
/* {"arguments":{...},"note":"","operation":"..."} */
void acts_ask(struct acts *a, uint64_t tag, const char *operation, const char *arguments);
/* Its answer: denied for this, with a sentence. */
void acts_denied(struct acts *a, uint64_t tag, enum denial denial);
/* Its answer: this proposal. */
struct id acts_proposed(struct acts *a, uint64_t tag, bool duplicate);

/* VERIFY_ASK comes; its tag. */
uint64_t acts_verify(struct acts *a);
#define FACTS_GOOD \
	"{\"order__paid_cents\":9000,\"order__status\":\"paid\",\"order__tenant\":\"acme\"}"
void acts_verified(struct acts *a, uint64_t tag, enum denial denial, const char *facts);

/* The whole way to pending: a refund of this order. */
struct id acts_pending(struct acts *a, const char *order, unsigned cents);

/* PROPOSAL_GET; the record is copied into `record`. */
void acts_row(struct acts *a, const struct id *proposal, struct msg_proposal_row *ret);
enum proposal_state acts_state(struct acts *a, const struct id *proposal);

/* PROPOSAL_DECIDE by this person, as root; DECISION_ASK comes to the broker: its tag. */
void acts_decide(struct acts *a, const struct id *proposal, const char *person, bool approve);
uint64_t acts_decision(struct acts *a);
void acts_decided(
	struct acts *a, uint64_t tag, enum denial denial, const char *person, uint32_t quorum);

/* EXECUTE comes; its tag. */
uint64_t acts_execute(struct acts *a);
void acts_executed(struct acts *a, uint64_t tag, enum attempt attempt);

/* A counter of the task or of its tenant today; the limit is UINT64_MAX when there is no such row. */
struct msg_budget_row acts_budget(
	struct acts *a, bool of_tenant, enum counter counter, const char *operation);
