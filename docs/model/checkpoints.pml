/* Drivers that replace each other on one directory of checkpoints: lease, fence, publish, sweep, commit, retention,
 * and the fallback from a damaged checkpoint. README.md in this folder says how to run the model.
 *
 * -DDRIVERS=n   how many drivers start, each at any time: clocks may differ, so any lease may have expired
 * -DEPOCHS=n    how many epochs there are
 * -DFALLBACK    one checkpoint may be damaged; two checkpoints are retained
 * -DUNFENCED    the protocol before fences: a new driver sweeps at once, and publishes the plain name
 *
 * A driver that Spin never schedules again has crashed. A driver that Spin schedules late was frozen. Spin tries both
 * before each step. A put that was sent is independent of its driver: it succeeds at any later time, or it is refused, or
 * it succeeds and the driver never learns of it.
 */

#ifndef DRIVERS
#define DRIVERS 2
#endif
#ifndef EPOCHS
#define EPOCHS 2
#endif
#define RUNS (DRIVERS + 1)          /* numbers of runs: 1 to DRIVERS; 0 means the plain name */
#define OUTS (2 * RUNS)             /* staged outputs: run r has 2r and 2r + 1, one for each attempt of its tasks */
#define FENCE 100                   /* FENCE + r: the fence of run r; less: a checkpoint with that output */

#define file(e, s) files[(e) * RUNS + (s)]
#define staged(e, o) stagings[(e) * OUTS + (o)]

/* ---- the storage ---- */
byte owner;                         /* the highest number below runs/ */
bool settled[RUNS];                 /* the run has ended, and has no put in flight */
byte files[(EPOCHS + 2) * RUNS];    /* file(e, 0) is chk-e/_metadata, file(e, s) the name to which fence s points */
bool stagings[(EPOCHS + 2) * OUTS];
bool noted[EPOCHS + 2];             /* the sink's note of the epoch's commit */
bool damaged[EPOCHS + 2];           /* the checkpoint is unreadable */
byte replaced[EPOCHS + 2];          /* the output of a checkpoint that was dropped as damaged */

/* ---- puts in flight, at most one for each run ---- */
mtype = { NONE, SENT, DONE, EXISTS, LOST };
mtype put[RUNS] = NONE;
byte put_epoch[RUNS], put_name[RUNS], put_data[RUNS];

/* ---- replaced task attempts that still write: the epoch, by run ---- */
byte zombie[RUNS];

/* ---- for the assertions only: no driver reads these ---- */
byte published[EPOCHS + 2];         /* the output in the epoch's checkpoint; set once */
byte shown[EPOCHS + 2];             /* the output of an epoch that is visible */
bool swept[(EPOCHS + 2) * OUTS];
byte ended;                         /* how many drivers have ended */

/* The name and content of the last file in an epoch's chain of names; content 0 if there is none. */
inline seek(e, name, data) {
    name = RUNS; data = 0;
    do
    :: name > 0 && data == 0 -> name--; data = file(e, name)
    :: else -> break
    od
}

inline look_up(e, name, data) {
    d_step { seek(e, name, data) }
}

/* The last epoch with a checkpoint; 0 if there is none. */
inline find_latest(e) {
    d_step {
        e = EPOCHS + 2; data = 0;
        do
        :: e > 0 && (data == 0 || data > FENCE) -> e--; seek(e, i, data)
        :: else -> break
        od;
        i = 0; data = 0
    }
}

/* Sends a put that fails if the file exists. Its result appears in put[me]. */
inline send(e, n, d) {
    d_step { put_epoch[me] = e; put_name[me] = n; put_data[me] = d; put[me] = SENT }
}

inline stop() { goto over }

/* Checks the lease: the driver stops if another one has taken over. */
inline require() {
    if
    :: owner == me
    :: owner != me -> stop()
    fi
}

inline commit(e, out) {
    if
    :: noted[e] -> skip
    :: !noted[e] ->
        k = e + 1;                  /* a later note: another run has continued from here */
        do
        :: k > EPOCHS + 1 || noted[k] -> break
        :: else -> k++
        od;
        if
        :: k <= EPOCHS + 1 -> skip
        :: else ->
#ifndef UNFENCED
            assert(staged(e, out) || noted[e]);  /* otherwise the job fails, and the error names the files */
#endif
            noted[e] = true
        fi
    fi;
    atomic {
        if
        :: staged(e, out) ->
            assert(published[e] == out);         /* only output of a checkpoint is committed */
            assert(shown[e] == 0);               /* and only once */
            staged(e, out) = false; shown[e] = out
        :: else
        fi
    }
}

proctype Driver() {
    byte me, latest, e, name, data, i, k, out, before;
    bool is_settled, is_last, was_dropped;
    int listed;

    /* run_lease.py: the next number, by a put that fails if it exists */
    before = owner;
    is_settled = (before == 0 || settled[before]);
    atomic {
        if
        :: owner == before -> owner++; me = owner; is_last = (me == DRIVERS)
        :: else -> goto refused
        fi
    };
#ifndef UNFENCED
    /* epoch_files.py: fence the next epoch, unless the previous run has ended cleanly */
    if
    :: is_settled
    :: else ->
        do
        :: require();
            find_latest(latest);
            e = latest + 1;
            look_up(e, name, data);
            if
            :: data == FENCE + me -> break
            :: data != 0 && data != FENCE + me && data > FENCE + me -> skip  /* the next require() stops this run */
            :: data != 0 && data < FENCE -> skip                             /* it was completed meanwhile */
            :: else ->
                if
                :: data > FENCE -> name = data - FENCE
                :: else -> name = 0
                fi;
                send(e, name, FENCE + me);
                if
                :: put[me] == DONE -> put[me] = NONE; break
                :: put[me] == EXISTS -> put[me] = NONE
                :: put[me] == LOST -> stop()
                fi
            fi
        od;
        is_settled = true
    fi;
#endif
    find_latest(latest);
#ifdef FALLBACK
    /* fall_back.py: resume from the previous checkpoint; a fence replaces the damaged one */
    if
    :: latest > 1 && damaged[latest] ->
        require();
        look_up(latest - 1, name, data);
        if
        :: data == 0 || data > FENCE -> latest = 0; goto refused  /* no earlier checkpoint is retained: the job does not start */
        :: else
        fi;
        look_up(latest, name, data);
        if
        :: data == 0 || data > FENCE -> stop()           /* another run is replacing it */
        :: else
        fi;
        replaced[latest] = data;
        require();
        file(latest, name) = FENCE + me;                 /* an ordinary write, in one step */
        latest--
    :: else
    fi;
#endif
    /* epochs.py: commit the last checkpoint again, and sweep */
    look_up(latest, name, out);
    if
    :: latest > 0 && out != 0 && out < FENCE -> commit(latest, out)
    :: else
    fi;
#ifdef FALLBACK
    /* the output of dropped checkpoints: their drivers may have died before they committed it */
    e = latest + 1;
    do
    :: e > EPOCHS -> break
    :: else ->
        out = replaced[e];
        if
        :: out != 0 -> commit(e, out)
        :: else
        fi;
        e++
    od;
#endif
    skip;
    d_step {
        listed = 0; i = 0;
        do
        :: i == (EPOCHS + 2) * OUTS -> break
        :: else ->
            if
            :: stagings[i] -> listed = listed | (1 << i)
            :: else
            fi;
            i++
        od
    };
    require();
    i = 0;
    do
    :: i == (EPOCHS + 2) * OUTS -> break
    :: else ->
        atomic {
            if
            :: (listed >> i) & 1 && stagings[i] ->
                assert(published[i / OUTS] != i % OUTS);  /* swept output is in no checkpoint */
                stagings[i] = false; swept[i] = true
            :: else
            fi;
            i++
        }
    od;
    listed = 0; i = 0;

    do
    :: latest == EPOCHS -> break
    :: latest < EPOCHS ->
        e = latest + 1;
        require();
        /* the tasks stage their output; a replaced attempt may continue to write */
        if
        :: out = 2 * me
        :: out = 2 * me + 1; zombie[me] = e
        fi;
        staged(e, out) = true;
        was_dropped = (replaced[e] != 0);
        if
        :: was_dropped -> out = replaced[e]              /* sinks have committed this output */
        :: else
        fi;
        /* coordinator.py: _publish */
        require();
        is_settled = false;
        do
        ::
#ifdef UNFENCED
            name = 0;
#else
            look_up(e, name, data);
            if
            :: data > FENCE && data - FENCE <= me -> name = data - FENCE
            :: else                                      /* the name is free, or the put fails */
            fi;
#endif
            send(e, name, out);
            if
            :: put[me] == DONE -> put[me] = NONE; break
            :: put[me] == EXISTS ->
                put[me] = NONE;
                look_up(e, name, data);
                if
                :: data > FENCE && data - FENCE < me     /* the fence of an earlier run came late: use the next name */
                :: else ->
                    assert(!is_last);                    /* progress: no driver follows the last one */
                    stop()
                fi
            :: put[me] == LOST -> stop()                 /* is_settled stays false */
            fi
        od;
        is_settled = true;
        /* _require_still */
        if
        :: owner == me
        :: owner != me ->
            find_latest(k);
            if
            :: k > e -> file(e, name) = 0
            :: else
            fi;
            stop()
        fi;
        commit(e, out);
        if
        :: was_dropped -> replaced[e] = 0
        :: else
        fi;
        /* coordinator.py */
        latest = e;
#ifdef FALLBACK
        k = e - 1;
#else
        k = e;
#endif
        if
        :: k > 1 ->
            name = 0;
            do
            :: name == RUNS -> break
            :: else -> file(k - 1, name) = 0; name++
            od
        :: else
        fi;
        if
        :: latest < EPOCHS -> skip
        :: is_last || latest == EPOCHS -> skip
        :: !is_last -> break                             /* the user stops the job */
        fi
    od;
    settled[me] = is_settled && owner == me;
    goto refused;
over:
    assert(!is_last || put[me] == LOST);                 /* progress */
    settled[me] = is_settled && owner == me;
refused:
    atomic {
        if
        :: is_last && latest == EPOCHS ->
            e = 1;
            do
            :: e > EPOCHS -> break
            :: else ->
                assert(published[e] != 0 && shown[e] == published[e]);  /* nothing is lost */
                e++
            od
        :: else
        fi;
        ended++
    }
}

/* Puts succeed in any order, at any time. Puts of the last driver are not lost, so that it can complete all epochs. */
proctype Network(byte r) {
    byte s;
end:
    do
    :: atomic {
        put[r] == SENT ->
        if
        :: file(put_epoch[r], put_name[r]) != 0 -> put[r] = EXISTS
        :: else ->
            file(put_epoch[r], put_name[r]) = put_data[r];
            if
            :: put_data[r] < FENCE ->
                damaged[put_epoch[r]] = false;
                /* One checkpoint per epoch. No run uses a checkpoint that appears after its epoch was dropped (_require_still). */
                if
                :: published[put_epoch[r]] == 0 ->
                    published[put_epoch[r]] = put_data[r];
                    assert(!swept[put_epoch[r] * OUTS + put_data[r]])   /* swept output is never published */
                :: else ->
                    s = put_epoch[r] + 1;
                    do
                    :: s > EPOCHS || published[s] != 0 -> break
                    :: else -> s++
                    od;
                    assert(published[put_epoch[r]] == put_data[r] || s <= EPOCHS);
                    s = 0
                fi
            :: else
            fi;
            if
            :: put[r] = DONE
            :: r != DRIVERS -> put[r] = LOST             /* it succeeds, but its driver never learns of it */
            fi
        fi
       }
    :: atomic { put[r] == SENT && r != DRIVERS -> put[r] = LOST }    /* refused: a full disk, no network */
    :: atomic { zombie[r] != 0 -> staged(zombie[r], 2 * r) = true; zombie[r] = 0 }
    od
}

#ifdef FALLBACK
proctype Damage() {
    byte e, i, data;
    atomic {
        find_latest(e);
        if
        :: e > 1 -> damaged[e] = true
        :: else
        fi
    }
}
#endif

init {
    byte n;
    atomic {
#ifdef FALLBACK
        run Damage();
#endif
        do
        :: n == DRIVERS -> break
        :: else -> n++; run Network(n); run Driver()
        od
    }
}
