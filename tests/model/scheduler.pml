/* The life of a job: timer, queue entry, outcome; claim, lease, settle, rescue, cancel, retry; several workers, crashes.
 *
 * One atomic block is one transaction (of cancel: one statement of it, since each has its own snapshot). Whatever can go
 * wrong may go wrong at any moment and has a budget, so every execution ends: what has not ended then never will.
 * README.md says which step stands for which file. A variant (-DNO_FENCE, ...) leaves out one guard.
 */

#ifndef JOBS
#define JOBS 1
#endif
#ifndef DEATHS
#define DEATHS 1         /* of worker processes */
#endif
#ifndef LAPSES
#define LAPSES 1         /* of leases of living processes: frozen, or cut off from the database */
#endif
#ifndef LOST_REPLIES
#define LOST_REPLIES 1   /* of claims and settles that were committed */
#endif
#ifndef SERVER_CRASHES
#define SERVER_CRASHES 1
#endif
#ifndef RETURNS
#define RETURNS 1        /* snoozes, and claims given back before their bodies started */
#endif
#ifndef CANCELS
#define CANCELS 1
#endif
#ifndef RETRIES
#define RETRIES 1
#endif
#define WORKERS 2
#define MAX_ATTEMPTS 2
#define MAX_CRASHES 3
#ifndef LOOKS
#define LOOKS 3          /* of a cancel; a retry may carry a job backwards past one of them */
#endif
#define PROCESSES 8      /* ids from 1: one that expired never returns */

#define ALIVE 1
#define GONE 2

#define NONE 0
#define COMPLETED 1
#define FAILED 2
#define CANCELLED 3

#define OK 0
#define FAIL 1
#define RETURN 2
#define STOPPED 3

/* the tables */
bit timer[JOBS], entry[JOBS], flag[JOBS];
byte outcome[JOBS], token[JOBS], owner[JOBS], attempt[JOBS], most[JOBS], crashes[JOBS];
byte lease[PROCESSES];
bit unflushed[JOBS];     /* claimed by a commit that a crash of the server may still forget */

/* the processes' memory */
byte process[WORKERS];   /* its id */
byte held[WORKERS];      /* the token of its claim */
byte job[WORKERS];
byte running[WORKERS];   /* 1: a body; 2: it has ended, and nobody knows whether its result was written */

/* the world */
bit dead[PROCESSES];
byte next_process = 1, next_token = 1;
byte deaths = DEATHS, lapses = LAPSES, lost_replies = LOST_REPLIES, server_crashes = SERVER_CRASHES;
byte returns = RETURNS, cancels = CANCELS, retries = RETRIES;

/* ghosts: no transaction reads them */
byte rightful[JOBS];     /* the token of the claim that counts */
bit confirmed[JOBS];     /* a cancel was told that the job had not begun and never will */
bit asked[JOBS];         /* a cancel was told that the running job has been asked to stop */
bit forgotten[WORKERS];  /* the server has forgotten its claim */
bit ready;

byte k, i;               /* counters inside atomic blocks, zero outside */

/* whatever commits synchronously makes all that was committed before it durable */
#define FLUSH k = 0; do :: k < JOBS -> unflushed[k] = 0; k++ :: else -> break od; k = 0

#ifdef NO_FENCE
#define MINE(j, t) (entry[j])
#else
#define MINE(j, t) (entry[j] && token[j] == t)
#endif
#ifdef NO_EXPIRY
#define ORPHANED(j) (entry[j] && token[j] != 0)
#else
#define ORPHANED(j) (entry[j] && token[j] != 0 && lease[owner[j]] == GONE)
#endif
#ifdef NO_FLAG
#define FLAGGED(j) (false)
#else
#define FLAGGED(j) (flag[j])
#endif
#ifdef BLIND_CLAIM
#define FREE(j) (entry[j])
#else
#define FREE(j) (entry[j] && token[j] == 0)
#endif
#ifdef RETRY_ANY
#define RETRYABLE(j) (ready)
#else
#define RETRYABLE(j) (outcome[j] == FAILED || outcome[j] == CANCELLED)
#endif

/* complete.sql, end.sql */
inline finish(j, how) {
    entry[j] = 0; outcome[j] = how; token[j] = 0; owner[j] = 0; rightful[j] = 0; unflushed[j] = 0
}

/* put_back.sql */
inline put_back(j, back) {
    token[j] = 0; owner[j] = 0; attempt[j] = attempt[j] - back; rightful[j] = 0; unflushed[j] = 0
}

/* settle.py: what becomes of the job, decided under the entry's lock */
inline settle(j, t, result) {
    if
    :: MINE(j, t) ->
        assert(t == rightful[j]);                       /* a stale settle changes nothing */
        FLUSH;
        if
        :: result == OK -> finish(j, COMPLETED)
        :: result == STOPPED || (result != OK && FLAGGED(j)) -> finish(j, CANCELLED)
        :: result == FAIL && !FLAGGED(j) && attempt[j] >= most[j] -> finish(j, FAILED)
        :: result == FAIL && !FLAGGED(j) && attempt[j] < most[j] -> put_back(j, 0)
        :: result == RETURN && !FLAGGED(j) -> put_back(j, 1)
        fi
    :: else -> skip                                     /* fenced, or settled by us before: nothing is written */
    fi
}

inline let_go(w) { held[w] = 0; job[w] = 0; running[w] = 0; forgotten[w] = 0 }

inline begin_process(w) { process[w] = next_process; next_process++; lease[process[w]] = ALIVE }

/* claim.sql */
#define CLAIM(j) \
    :: atomic { \
        held[w] == 0 && FREE(j) && lease[process[w]] == ALIVE -> \
        assert(!confirmed[j] && !asked[j]); /* what was cancelled is never claimed again */ \
        token[j] = next_token; owner[j] = process[w]; rightful[j] = next_token; \
        attempt[j]++; unflushed[j] = 1; next_token++; \
        if \
        :: held[w] = token[j]; job[w] = j \
        :: lost_replies > 0 -> lost_replies-- /* committed, and nobody told us */ \
        fi \
    }

/* watch.py: a claim of ours that we do not know */
#define RECONCILE(j) \
    :: atomic { \
        held[w] == 0 && entry[j] && token[j] != 0 && owner[j] == process[w] && lease[process[w]] == ALIVE -> \
        settle(j, token[j], RETURN) \
    }

proctype Worker(byte w) {
    byte result;
end:
    do
    CLAIM(0)
#if JOBS > 1
    CLAIM(1)
#endif
    /* bodies.py: two bodies of one job only when the lease of one has ended, or the server has forgotten a claim */
    :: atomic {
        held[w] != 0 && running[w] == 0 ->
        assert(!(running[1 - w] == 1 && job[1 - w] == job[w] && lease[process[1 - w]] == ALIVE
            && lease[process[w]] == ALIVE && !forgotten[w] && !forgotten[1 - w]));
        running[w] = 1
    }
    /* the body ends and its result is settled; when the reply is lost it is settled again */
    :: atomic {
        held[w] != 0 && running[w] == 1 ->
        if
        :: result = OK
        :: result = FAIL
        :: returns > 0 -> returns--; result = RETURN
        :: flag[job[w]] && token[job[w]] == held[w] -> result = STOPPED
        fi;
        settle(job[w], held[w], result);
        if
        :: result = 0; let_go(w)
        :: lost_replies > 0 -> lost_replies--; running[w] = 2
        fi
    }
    :: atomic {
        held[w] != 0 && running[w] == 2 ->
        settle(job[w], held[w], result); result = 0; let_go(w)
    }
    /* what has not started is given back: a deploy, or it has waited for too long */
    :: atomic {
        held[w] != 0 && running[w] == 0 && returns > 0 -> returns--;
        settle(job[w], held[w], RETURN); let_go(w)
    }
#ifndef NO_RECONCILE
    RECONCILE(0)
#if JOBS > 1
    RECONCILE(1)
#endif
#endif
    /* supervisor.py: a process found expired never returns under its id */
    :: atomic { lease[process[w]] == GONE && held[w] == 0 -> begin_process(w) }
    /* kill -9: its supervisor gives back what it held, or dies with it and the lease runs out */
    :: atomic {
        deaths > 0 && lease[process[w]] == ALIVE -> deaths--;
        dead[process[w]] = 1;
        if
        :: i = 0;
            do
            :: i < JOBS ->
                if
                :: entry[i] && token[i] != 0 && owner[i] == process[w] ->
                    if
                    :: running[w] != 0 && job[w] == i -> result = FAIL
                    :: else -> result = RETURN
                    fi;
                    settle(i, token[i], result)
                :: else -> skip
                fi;
                i++
            :: else -> break
            od;
            i = 0; result = 0;
            lease[process[w]] = GONE
        :: skip
        fi;
        let_go(w); begin_process(w)
    }
    od
}

/* schedule_timer.sql or schedule_entry.sql, in one transaction with the job */
init {
    atomic {
        i = 0;
        do
        :: i < JOBS ->
            most[i] = MAX_ATTEMPTS;
            if :: timer[i] = 1 :: entry[i] = 1 fi;
            run Dispatcher(i); run Rescuer(i); run Canceller(i); run Retrier(i); run Server(i);
            i++
        :: else -> break
        od;
        i = 0;
        do
        :: i < WORKERS -> begin_process(i); run Worker(i); i++
        :: else -> break
        od;
        i = 0;
        ready = 1
    }
}

/* dispatch.sql: one statement; two dispatchers at once are one, since each skips what the other has locked */
proctype Dispatcher(byte j) {
end:
    do
#ifdef TWO_TRANSACTIONS
    :: atomic { timer[j] -> timer[j] = 0; FLUSH };
        if
        :: atomic { entry[j] = 1; FLUSH }
        :: deaths > 0 -> deaths--
        fi
#else
    :: atomic { timer[j] -> timer[j] = 0; entry[j] = 1; FLUSH }
#endif
    od
}

/* orphans.sql, and the settle in its transaction */
proctype Rescuer(byte j) {
end:
    do
#ifndef NO_RESCUE
    :: atomic {
        ORPHANED(j) -> FLUSH;
        crashes[j]++;
        if
        :: FLAGGED(j) -> finish(j, CANCELLED)
        :: !FLAGGED(j) && (attempt[j] >= most[j] || crashes[j] >= MAX_CRASHES) -> finish(j, FAILED)
        :: !FLAGGED(j) && attempt[j] < most[j] && crashes[j] < MAX_CRASHES -> put_back(j, 1)
        fi
    }
#endif
    :: false
    od
}

/* time: the lease of a dead process runs out; that of a living one may, when its renewal is held up */
#define EXPIRE(p) \
    :: atomic { lease[p] == ALIVE && dead[p] -> lease[p] = GONE } \
    :: atomic { lease[p] == ALIVE && !dead[p] && lapses > 0 -> lapses--; lease[p] = GONE }

active proctype Clock() {
end:
    do
    EXPIRE(1)
    EXPIRE(2)
    EXPIRE(3)
    EXPIRE(4)
    EXPIRE(5)
    EXPIRE(6)
    EXPIRE(7)
    od
}

/* PostgreSQL crashes: a claim, committed asynchronously, may be forgotten; nothing else is */
proctype Server(byte j) {
end:
    do
    :: atomic {
        server_crashes > 0 && entry[j] && token[j] != 0 && unflushed[j] -> server_crashes--;
        if :: held[0] == token[j] -> forgotten[0] = 1 :: held[1] == token[j] -> forgotten[1] = 1 :: else fi;
        put_back(j, 1)
    }
    od
}

/* verbs.py: cancel_timers.sql, cancel_entries.sql, the outcome: one statement each, in this order */
#define IN_TIMER \
    :: atomic { timer[j] -> timer[j] = 0; outcome[j] = CANCELLED; confirmed[j] = 1; FLUSH; goto done }
#define IN_ENTRY \
    :: atomic { entry[j] && token[j] == 0 -> finish(j, CANCELLED); confirmed[j] = 1; FLUSH; goto done } \
    :: atomic { entry[j] && token[j] != 0 -> flag[j] = 1; asked[j] = 1; FLUSH; goto done }
#define IN_OUTCOME \
    :: atomic { outcome[j] != NONE -> goto done }

proctype Canceller(byte j) {
    byte looks;
end:
    do
    :: atomic { cancels > 0 -> cancels-- };
again:
#ifdef BACKWARDS
        if IN_OUTCOME :: else fi;
        if IN_ENTRY :: else fi;
        if IN_TIMER :: else fi;
#else
        if IN_TIMER :: else fi;
        if IN_ENTRY :: else fi;
        if IN_OUTCOME :: else fi;
#endif
        looks++;
        assert(looks < LOOKS);                          /* a job that exists is found */
        goto again;
done:
        looks = 0
    od
}

/* retry.sql: an operator wants another run */
proctype Retrier(byte j) {
end:
    do
    :: atomic {
        retries > 0 && RETRYABLE(j) -> retries--;
        outcome[j] = NONE; entry[j] = 1; token[j] = 0; flag[j] = 0; crashes[j] = 0;
        most[j] = attempt[j] + MAX_ATTEMPTS; confirmed[j] = 0; asked[j] = 0; FLUSH
    }
    od
}

/* exactly one place, at every moment */
#define PLACES(j) (timer[j] + entry[j] + (outcome[j] != NONE -> 1 : 0))

active proctype Invariant() {
end:
    do
    :: atomic { ready && PLACES(0) != 1 -> assert(false) }
#if JOBS > 1
    :: atomic { ready && PLACES(1) != 1 -> assert(false) }
#endif
    od
}

/* never lost: when nothing can happen any more, every job has ended */
active proctype Judge() {
end:
    atomic {
        timeout ->
        i = 0;
        do
        :: i < JOBS -> assert(outcome[i] != NONE); i++
        :: else -> break
        od;
        i = 0
    }
}

#ifdef LIVENESS
ltl ends { <> [] (outcome[0] != NONE) }
#endif
