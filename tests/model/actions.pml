/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One proposal through approval, two consumers, the broker's ledger, crashes of engine and broker, a restored engine store and a restored host,
 * for spin. The steps and their order are those of docs/decisions/0003-actions.md; engine, broker and provider may be interleaved in any
 * way, every message may be the last, each process may die between any two steps that are durable by themselves.
 *
 * Not covered, and so not promised: an engine that lies on a host whose ledger is put back too.
 *
 * Each macro here removes one step of the design. `./run model` proves that the design holds and that each removal is found:
 *
 *	WITHOUT_LOCK         a consumer tests the state outside the transaction that changes it
 *	WITHOUT_LEDGER       the broker does not look whether the proposal was spent
 *	SPENT_AFTER_SEND     the broker writes `spent` after the first byte
 *	WITHOUT_SIGNATURE    the broker believes the engine that it was approved
 *	TIMEOUT_IS_FAILURE   no answer counts as failed
 *	LOST_IS_NOT_SENT     what the ledger has as spent without an end is taken for "not sent"
 *	INTENT_AFTER_SEND    the engine commits dispatching after it asked the broker
 *	UNSEEN_STAYS_OPEN    an execution that was answered as unseen can be carried out later
 *	REVOKE_FORGOTTEN     a revocation is not told to the broker
 *	WITHOUT_QUARANTINE   a restored store is taken as it is
 *	WITHOUT_MIRROR       a restored host (store and ledger together) is not compared with the copy of the checkpoint
 */

#define CONSUMERS 2

#ifdef UNSEEN_STAYS_OPEN
#define SHUT_OUT false
#else
#define SHUT_OUT true
#endif

mtype = {pending, approved, dispatching, succeeded, failed, unknown, expired, revoked}
mtype = {done, refused, lost, unseen}

/* durable: the engine's store, its backup; the broker's ledger, its backup; the copy of the newest checkpoint elsewhere */
mtype store = pending
mtype store_backup = pending
bool backed_up, restored
byte records, records_backup /* how long the audit is */
bool spent, spent_backup
mtype ended = lost /* lost: the ledger has no end */
bool void_epoch    /* the ledger: all that was made before is void */
bool withdrawn     /* the ledger: revoked */
byte mirror

/* the world */
bool by_person       /* the person really by_person */
byte effects      /* at the provider */
byte asked        /* EXECUTE messages of one store's life */
bool withdrawn_in_time /* the person was told that the revocation came before the dispatch */
bool quarantine
bool lied, host_restored

chan execute = [4] of {bool}     /* engine to broker: does the engine say that it is approved */
chan answer = [4] of {mtype}     /* broker to engine */
bool broker_works, engine_waits

inline record() { records++; if :: records > mirror -> mirror = records :: else fi }

/* A person signs and somebody may ask to take it back. */
active proctype person()
{
	if
	:: atomic { store == pending && !quarantine -> by_person = true; store = approved; record() }
	:: true
	fi
}

active proctype revoker()
{
	if
	:: true /* never */
	:: atomic { (store == approved || store == pending) && !quarantine ->
#ifndef REVOKE_FORGOTTEN
		withdrawn = true;
		if :: !spent -> withdrawn_in_time = true :: else fi;
#else
		withdrawn_in_time = !spent;
#endif
		store = revoked; record() }
	fi
}

/* The engine, or somebody who took it over, says once that a thing is approved which nobody signed. */
active proctype liar()
{
	if
	:: true
	:: atomic { !by_person -> lied = true; execute!true }
	fi
}

active [CONSUMERS] proctype consumer()
{
	bool go = false

#ifdef WITHOUT_LOCK
	go = (store == approved && !quarantine);
	if
	:: go -> atomic { store = dispatching; record() }
	:: else -> skip
	fi;
#elif defined(INTENT_AFTER_SEND)
	atomic { go = (store == approved && !quarantine && !engine_waits); engine_waits = engine_waits || go };
#else
	atomic {
		if
		:: store == approved && !quarantine -> store = dispatching; record(); go = true
		:: else -> skip
		fi
	};
#endif
	if
	:: go -> atomic { asked++; execute!true }
	:: else -> skip /* or the engine died here: the next one asks what became of it */
	fi;
#ifdef INTENT_AFTER_SEND
	if
	:: go -> atomic { if :: store == approved -> store = dispatching; record() :: else fi }
	:: go -> skip /* killed before it was written */
	:: else -> skip
	fi
#endif
}

/* Answers, and after a loss the question what became of it. */
active proctype engine()
{
	mtype a

	do
	:: answer?a ->
		atomic {
			if
			:: store == dispatching || store == unknown ->
				if
				:: a == done -> store = succeeded
				:: a == refused -> store = failed
#ifdef TIMEOUT_IS_FAILURE
				:: a == lost -> store = failed
#else
				:: a == lost -> store = unknown
#endif
				:: a == unseen -> store = failed
				fi;
				record()
			:: else -> skip
			fi
		}
	/*
	 * Restarted, either of the two: the ledger is asked. The broker may be at it, or the request may still be on its way, so what is
	 * not spent yet is shut out in the same turn.
	 */
	:: atomic { store == dispatching && empty(answer) ->
		if
		:: !spent -> store = failed; withdrawn = withdrawn || SHUT_OUT
#ifdef LOST_IS_NOT_SENT
		:: spent && ended == lost -> store = failed
#else
		:: spent && ended == lost -> store = unknown
#endif
		:: spent && ended == done -> store = succeeded
		:: spent && ended == refused -> store = failed
		fi;
		record() }
	/* Killed: what was on the edge is gone. */
	:: atomic { do :: answer?_ -> skip :: empty(answer) -> break od; engine_waits = false }
	:: timeout -> break
	od
}

active proctype broker()
{
	bool says

	do
	:: atomic { execute?says -> broker_works = true };
		if
#ifdef WITHOUT_SIGNATURE
		:: !says -> goto rest
#else
		:: !by_person -> goto rest /* the signature does not hold */
#endif
		:: void_epoch -> goto rest
		:: withdrawn -> goto rest
#ifndef WITHOUT_LEDGER
		:: spent -> goto rest
#endif
		:: else -> skip
		fi;
		if :: goto dead :: skip fi; /* killed while it verifies and dials */
#ifndef SPENT_AFTER_SEND
		/* checks and entry are one turn of a single thread */
		atomic {
			if
#ifndef WITHOUT_LEDGER
			:: spent || withdrawn || void_epoch -> goto rest
#endif
			:: else -> spent = true
			fi
		};
		if :: goto dead :: skip fi;
#endif
		/* the first byte leaves */
		if
		:: effects++ ; /* executed, answered */
#ifdef SPENT_AFTER_SEND
			if :: goto dead :: skip fi;
			spent = true;
#endif
			if :: goto dead :: skip fi;
			ended = done;
			answer!done
		:: effects++ ; /* executed, the answer is lost */
#ifdef SPENT_AFTER_SEND
			spent = true;
#endif
			answer!lost
		::  /* never arrived, and nobody knows */
#ifdef SPENT_AFTER_SEND
			spent = true;
#endif
			answer!lost
		::  /* the provider says a definite no */
#ifdef SPENT_AFTER_SEND
			spent = true;
#endif
			ended = refused;
			answer!refused
		fi;
rest:
dead:		broker_works = false
	:: timeout -> break
	od
}

/* Somebody keeps backups and once uses one: of the engine's store, or of the whole host. */
active proctype operator()
{
	if
	:: true
	:: atomic { store_backup = store; records_backup = records; spent_backup = spent; backed_up = true };
		if
		:: true
		:: atomic { !broker_works -> /* the daemon is stopped, the store replaced */
			do :: execute?_ -> skip :: empty(execute) -> break od;
			do :: answer?_ -> skip :: empty(answer) -> break od;
			store = store_backup; records = records_backup; asked = 0; restored = true;
			if
			:: true -> skip
			:: true -> spent = spent_backup; ended = lost; host_restored = true /* the ledger with it */
#ifdef WITHOUT_MIRROR
				; mirror = records
#endif
			fi;
#ifndef WITHOUT_QUARANTINE
			if
			:: records < mirror ->
				quarantine = true; void_epoch = true;
				if
				:: store == approved || store == pending -> store = expired
				:: store == dispatching -> store = unknown
				:: else -> skip
				fi
			:: else -> skip
			fi
#endif
		}
		fi
	fi
}

/* What must be so in every state. A restored store may know less than happened, so what it says is judged only without one. */
active proctype monitor()
{
	do
	:: atomic { effects > 1 && !(lied && host_restored) -> assert(false) }
	:: atomic { effects > 0 && !by_person -> assert(false) }
	:: atomic { asked > 1 -> assert(false) }
	:: atomic { store == failed && effects > 0 && !restored -> assert(false) }
	:: atomic { store == succeeded && effects == 0 && !restored -> assert(false) }
	:: atomic { withdrawn_in_time && effects > 0 && !restored -> assert(false) }
	:: atomic { restored && quarantine && store == approved -> assert(false) }
	:: timeout -> break
	od
}
