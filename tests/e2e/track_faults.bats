#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# scale4d track: what must not harm the store, and what is not let in.

load lib.bash
load track.bash

# A line a case: what makes the record wrong, and the texts of the message.
wrong_cases() {
    cat << 'END'
r["iteration_time_s"] = float("nan") ## 'iteration_time_s': expected a number, found NaN
r["exposed_s"]["x"] = float("inf") ## 'x': expected a number, found Infinity
r["flops_per_s"] = float("-inf") ## 'flops_per_s': expected a number, found -Infinity
r["samples_s"][1] = -1 ## samples_s[1]: expected a number above 0, found -1
r["iteration_time_s"] = -0.5 ## iteration_time_s: expected a number above 0, found -0.5
r["exposed_s"]["z"] = -0.1 ## exposed_s.z: expected a number that is not negative, found -0.1
r["iteration_time_ms"] = 1e3 * r.pop("iteration_time_s") ## iteration_time_s: expected a number above 0, the key is missing ## there is 'iteration_time_ms'
r["iteration_time_s"] *= 1e3 ## iteration_time_s: expected flops_formula / flops_per_s, 1.01 s, found 1010 ## another unit
r["samples_s"] = [1e3 * s for s in r["samples_s"]] ## samples_s: expected the samples of iteration_time_s, 1.01 s, found 1000 to 1030 ## another unit
r["busbw_Bps"]["z-gather"] = "25 GB/s" ## busbw_Bps.z-gather: expected a number, found the text '25 GB/s' ## SI units
del r["gpus"] ## gpus: expected a number of them, the key is missing ## RECORD.md
r["gpus"] = 1e12 ## gpus: expected an integer from 1 to 1e+08, found 1e+12
r["gpus"] = 10**12 ## gpus: expected at most 1e+08, found 1000000000000
r["workload"]["name"] = 7 ## workload.name: expected a text, found 7
r["workload"]["name"] = "x" * 5000 ## workload.name: expected a text of at most 1000 bytes, found 5000
r["suite"]["night"] = "2024-02-30" ## suite.night: expected a date, 2026-11-30, found '2024-02-30'
r["suite"]["night"] = 20240301 ## suite.night: expected a text, found 20240301
r["provenance"]["time"] = "-1" ## provenance.time: expected a UTC time ## '-1'
del r["provenance"] ## provenance.time: expected a text, the key is missing
r["kind"] = "trian" ## kind: expected a kind that is followed from night to night, found 'trian' ## train
del r["kind"] ## kind: expected the kind of a record of scale4d, found nothing
r["samples_s"] = [] ## samples_s: expected a list of numbers, found an empty one
r["samples_s"] = [1.0] * 100001 ## samples_s: expected at most 100000 samples, found 100001
r["text"] = "x" * (5 << 20) ## expected a record of at most 4 MiB, this is 5.0
r["exposed_s"] = [0.1, 0.2] ## exposed_s: expected an object, found a list
r["suite"] = "nightly" ## suite: expected an object, found the text 'nightly'
END
}

@test "track: a wrong record is named, the others are added" {
    # In the case's folder a file of a good record, the wrong one, a good one.
    wrong_cases > "$dir/cases"
    nights 2 "if i == 1:
    lines = open('$dir/cases').read().splitlines()
    good = json.dumps(r)
    for n, line in enumerate(lines):
        r = json.loads(good)
        exec(line.split(' ## ')[0])
        with open('$dir/a%d' % n, 'w') as out:
            other = json.loads(good)
            other['gpus'] = 8
            out.write('%s\n%s\n%s\n' % (good, json.dumps(r), json.dumps(other)))
    r = json.loads(good)" > "$dir/out"
    local n=0 case text
    while read -r case; do
        rm -f "$SCALE4D_STORE"
        status=0
        "$s4d" track add "$dir/a$n" > "$dir/out" 2> "$dir/err" || status=$?
        [ "$status" -eq 65 ]
        grep -qxF "$dir/a$n: 2 added, 0 there already, 1 wrong" "$dir/out" || { echo "$case"; cat "$dir/out"; false; }
        while IFS= read -r text; do
            grep -qF -- "$text" "$dir/err" || { echo "lacks '$text':"; cat "$dir/err"; false; }
        done < <(echo "scale4d: $dir/a$n:2: "; echo "${case#* ## }" | sed 's/ ## /\n/g')
        n=$((n + 1))
    done < "$dir/cases"
    [ "$n" -eq 26 ]
}

@test "track: what is no record at all" {
    nights 1 > "$dir/good"
    for bad in '{"kind": "train"' 'no' '[1]' '"text"' '{"kind": "train", "kind": "train"}' '{"a": 1e999}'; do
        { echo; echo "$bad"; cat "$dir/good"; } > "$dir/a"
        status=0
        "$s4d" track add "$dir/a" > "$dir/out" 2> "$dir/err" || status=$?
        [ "$status" -eq 65 ]
        grep -qF "scale4d: $dir/a:2: expected a record" "$dir/err"
    done
    [ "$("$s4d" track export | wc -l)" -eq 1 ]
    ! grep -q "when a run was killed" "$dir/err"
    # A last line without its newline is a record, too; half of one was being written.
    head -c 300 "$dir/good" > "$dir/a"
    status=0
    "$s4d" track add "$dir/a" > "$dir/out" 2> "$dir/err" || status=$?
    [ "$status" -eq 65 ]
    grep -q "when a run was killed" "$dir/err"
    printf '%s' "$(nights 2 | tail -n 1)" > "$dir/a"
    "$s4d" track add "$dir/a" | grep -qF "1 added"
    # Of many wrong lines twenty are shown.
    yes no | head -n 1000 > "$dir/a"
    status=0
    "$s4d" track add "$dir/a" > "$dir/out" 2> "$dir/err" || status=$?
    [ "$status" -eq 65 ]
    [ "$(grep -c ':[0-9]*: expected' "$dir/err")" -eq 20 ]
    grep -qF "980 more lines are wrong" "$dir/err"
    refuses 65 "$dir/none" "No such file" -- track add "$dir/none"
}

@test "track: a run that was interrupted has what it has" {
    nights 1 'r["interrupted"] = True; r["samples_s"] = []; r["iteration_time_s"] = None; del r["flops_per_s"]' > "$dir/a"
    "$s4d" track add "$dir/a" | grep -qF "1 added"
    nights 1 'r["interrupted"] = False; r["iteration_time_s"] = None' > "$dir/a"
    refuses_add "iteration_time_s: expected a number, found null"
}
refuses_add() {
    status=0
    "$s4d" track add "$dir/a" > "$dir/out" 2> "$dir/err" || status=$?
    [ "$status" -eq 65 ] && grep -qF -- "$1" "$dir/err"
}

@test "track: a clock that went backwards, or is ahead, is said; the record is kept" {
    nights 3 > "$dir/a"
    nights 1 'r["provenance"]["time"] = "2024-02-27T15:00:00Z"; del r["suite"]' > "$dir/b"
    "$s4d" track add "$dir/a" 2> "$dir/err"
    [ ! -s "$dir/err" ]
    "$s4d" track add "$dir/b" > "$dir/out" 2> "$dir/err"
    grep -qF "1 added" "$dir/out"
    grep -qF "warning: $dir/b: 1 added are older than their series' last night was, by up to 4.5 days" "$dir/err"
    grep -qF "a clock went backwards ($dir/b:1)" "$dir/err"
    nights 1 'r["provenance"]["time"] = "9024-02-27T15:00:00Z"' > "$dir/b"
    "$s4d" track add "$dir/b" > "$dir/out" 2> "$dir/err"
    grep -qF "1 added are of the future" "$dir/err"
    [ "$("$s4d" track export | wc -l)" -eq 5 ]
    # Of the suite's date, too; it is the store's last night from now on, which no verdict passes over.
    nights 1 'r["suite"]["night"] = "8024-02-27"' > "$dir/b"
    "$s4d" track add "$dir/b" > "$dir/out" 2> "$dir/err"
    grep -qF "1 added are of the future" "$dir/err"
    for what in verdict report; do
        "$s4d" track $what > "$dir/out" 2> "$dir/err"
        grep -qF "warning: the store's last night, 8024-02-27, is of the future" "$dir/err"
        "$s4d" track $what --night 2024-03-03 > "$dir/out" 2> "$dir/err"
        [ ! -s "$dir/err" ]
    done
}

@test "track: two writers at once, both succeed" {
    local pids=() pid
    for w in 1 2 3 4; do
        nights 40 "r['provenance']['host'] = 'w$w'; r['note'] = $w" > "$dir/a$w"
    done
    for w in 1 2 3 4; do
        "$s4d" track add "$dir/a$w" > "$dir/out$w" 2> "$dir/err$w" &
        pids+=($!)
    done
    for pid in "${pids[@]}"; do wait "$pid"; done
    cat "$dir"/out? | grep -c '40 added, 0 there already, 0 wrong' | grep -qx 4
    "$s4d" track check | grep -q '^# 160 records read  OK'
    sort "$dir"/a? > "$dir/want"
    "$s4d" track export | sort | cmp - "$dir/want"
    # One that holds it for long is waited for; a reader need not wait.
    python3 - "$SCALE4D_STORE" "$dir/go" <<'PY' &
import sqlite3, sys, time
c = sqlite3.connect(sys.argv[1], isolation_level=None)
c.execute("BEGIN IMMEDIATE")
open(sys.argv[2], "w").close()
time.sleep(1.5)
c.execute("COMMIT")
PY
    while [ ! -e "$dir/go" ]; do sleep 0.05; done
    "$s4d" track list | grep -q ' 160 '
    nights 41 | tail -n 1 > "$dir/b"
    "$s4d" track add "$dir/b" | grep -qF "1 added"
    wait
}

# The writer holds the store until it is told to let go, so nothing here hangs on how fast it is.
@test "track: a writer that does not end: the other waits, says so, exits 75; readers go on" {
    "$s4d" track add <(nights 2) > /dev/null
    mkfifo "$dir/go"
    timeout 60 python3 - "$SCALE4D_STORE" "$dir/held" "$dir/go" 3>&- <<'PY' &
import sqlite3, sys
c = sqlite3.connect(sys.argv[1], isolation_level=None)
c.execute("BEGIN IMMEDIATE")
open(sys.argv[2], "w").close()
open(sys.argv[3]).read()
c.execute("ROLLBACK")
PY
    while [ ! -e "$dir/held" ]; do sleep 0.05; done
    nights 3 | tail -n 1 > "$dir/b"
    export SCALE4D_STORE_WAIT="0.2 s"
    local began=${EPOCHREALTIME/./}
    refuses 75 "$SCALE4D_STORE: another process is writing it" -- track add "$dir/b"
    [ $((${EPOCHREALTIME/./} - began)) -ge 200000 ]
    [ "$("$s4d" track export | wc -l)" -eq 2 ]
    for wait in 5 "-1 s" "1 week" "2 d"; do
        SCALE4D_STORE_WAIT=$wait refuses 64 "SCALE4D_STORE_WAIT: expected a time" "'$wait'" -- track list
    done
    echo > "$dir/go"
    wait
    "$s4d" track add "$dir/b" | grep -qF "1 added"
}

# Adds files one after another; each is acknowledged by a line when it is on the disk.
@test "track: 200 kills at any moment: nothing lost that was acknowledged, nothing half" {
    python3 - "$s4d" "$dir" <<'PY'
import json, os, random, signal, subprocess, sys, time
s4d, folder = sys.argv[1:]
store = os.path.join(folder, "store.sqlite")
os.environ["SCALE4D_STORE"] = store
rng = random.Random(1)
night = {"kind": "failure", "exit": 75, "host_class": "n", "backend": "host",
         "provenance": {"host": "n", "time": "2024-03-01T00:00:00Z", "commit": "c"}}
def lines(k):
    return [json.dumps({**night, "k": k, "x": x, "y": rng.random()}) + "\n" for x in range(5)]
asked, sure = {}, set()
k = kills = 0
longest = 0.03
while kills < 200:
    files = []
    for _ in range(2):
        name = os.path.join(folder, "k%d" % k)
        asked[name] = lines(k)
        open(name, "w").writelines(asked[name])
        files.append(name)
        k += 1
    p = subprocess.Popen([s4d, "track", "add"] + files, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, close_fds=False)
    began = time.monotonic()
    try:
        p.wait(rng.random() * longest)
        longest = time.monotonic() - began
    except subprocess.TimeoutExpired:
        pass
    p.send_signal(signal.SIGKILL)
    out, err = p.communicate()
    kills += p.returncode == -signal.SIGKILL
    longest *= 1.02 if p.returncode else 1
    assert p.returncode in (0, -signal.SIGKILL) and err == "", (p.returncode, err)
    for line in out.splitlines(True):
        if line.endswith("5 added, 0 there already, 0 wrong\n"):
            sure.add(line.split(": ")[0])
    assert k < 9000, "hardly any was killed in time"
kept = subprocess.run([s4d, "track", "export"], stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines(True)
there = set(kept)
assert len(kept) == len(there)
whole = 0
for name, wrote in asked.items():
    n = sum(line in there for line in wrote)
    assert n in (0, 5), (name, n)
    assert n == 5 or name not in sure, name
    whole += n == 5
assert len(kept) == 5 * whole
check = subprocess.run([s4d, "track", "check"], stdout=subprocess.PIPE, text=True)
assert check.returncode == 0, check.stdout
print("# %d files, %d acknowledged, %d there" % (k, len(sure), whole))
assert 0 < whole < k
PY
}

@test "track: a full disk: said so, and what was there is whole" {
    nights 3 > "$dir/a"
    "$s4d" track add "$dir/a"
    nights 400 'r["note"] = str((i + 1) * 7919 ** 800)' > "$dir/b" # 3 kB of digits each
    status=0
    (
        ulimit -f 300 # KiB: bash counts 1,024 bytes
        exec "$s4d" track add "$dir/b"
    ) > "$dir/out" 2> "$dir/err" || status=$?
    [ "$status" -eq 74 ]
    [ ! -s "$dir/out" ]
    grep -qF "$SCALE4D_STORE: the disk is full" "$dir/err"
    grep -qF "hint: " "$dir/err"
    "$s4d" track check | grep -q '^# 3 records read  OK'
    "$s4d" track add "$dir/b" | grep -qF "400 added, 0 there already"
}

@test "track: a full disk, a small tmpfs" {
    mkdir "$dir/small"
    mount -t tmpfs -o size=400k none "$dir/small" 2> "$dir/err" || skip "mounting is not allowed here"
    nights 3 > "$dir/a"
    nights 400 'r["note"] = str((i + 1) * 7919 ** 800)' > "$dir/b" # 3 kB of digits each
    status=0
    "$s4d" track add --store "$dir/small/s.sqlite" "$dir/a" > "$dir/out" || status=$?
    [ "$status" -eq 0 ] && { "$s4d" track add --store "$dir/small/s.sqlite" "$dir/b" > "$dir/out" 2> "$dir/err" || status=$?; }
    "$s4d" track check --store "$dir/small/s.sqlite" > "$dir/check" || true
    umount "$dir/small"
    [ "$status" -eq 74 ]
    grep -qF "the disk is full" "$dir/err"
    grep -q '^# 3 records read  OK' "$dir/check"
}

# damaged WHERE: bytes from there on are noise; add refuses, and the file is as it was.
damaged() {
    cp "$dir/whole" "$SCALE4D_STORE"
    head -c 6000 /dev/zero | tr '\0' "${2-\252}" | dd of="$SCALE4D_STORE" bs=1 seek="$1" conv=notrunc status=none
    cp "$SCALE4D_STORE" "$dir/before"
    refuses 65 "$SCALE4D_STORE" -- track add "$dir/b"
    cmp "$SCALE4D_STORE" "$dir/before"
}

@test "track: a damaged store is refused, nothing is overwritten, and what can be read is saved" {
    nights 300 'r["note"] = "%d" % (i * 7919 ** 9)' > "$dir/a"
    nights 301 | tail -n 1 > "$dir/b"
    "$s4d" track add "$dir/a"
    cp "$SCALE4D_STORE" "$dir/whole"
    damaged 0
    grep -qF "is no SQLite database" "$dir/err"
    for at in 3000 8192 16384 40000 80000 100000; do
        damaged $at
        grep -qF "the store is damaged" "$dir/err"
        grep -qF "hint: nothing was written. Save what can be read" "$dir/err"
        grep -qF ".recover" "$dir/err"
    done
    # Cut off.
    head -c 50000 "$dir/whole" > "$SCALE4D_STORE"
    refuses 65 "damaged" -- track add "$dir/b"
    [ "$(stat -c %s "$SCALE4D_STORE")" -eq 50000 ]
    # The last page but two holds some of the records: the others come back.
    cp "$dir/whole" "$SCALE4D_STORE"
    size=$(stat -c %s "$dir/whole")
    tr '\0' '\252' < /dev/zero | head -c 6000 |
        dd of="$SCALE4D_STORE" bs=1 seek=$((size - 3 * 8192)) conv=notrunc status=none
    status=0
    "$s4d" track export > "$dir/out" 2> "$dir/err" || status=$?
    [ "$status" -eq 65 ]
    grep -qF "pages of records cannot be read" "$dir/err"
    n=$(wc -l < "$dir/out")
    [ "$n" -ge 200 ] && [ "$n" -lt 300 ]
    [ "$(sort "$dir/out" | comm -23 - <(sort "$dir/a") | wc -l)" -eq 0 ]
    status=0 # what can be read is worth a file, too
    "$s4d" track export --output "$dir/file" 2> "$dir/err" || status=$?
    [ "$status" -eq 65 ]
    cmp "$dir/file" "$dir/out"
    # The hint's two ways: export says what it leaves out, .recover makes a store again.
    cp "$dir/whole" "$SCALE4D_STORE"
    python3 - "$SCALE4D_STORE" <<'PY'
import sqlite3, sys
c = sqlite3.connect(sys.argv[1])
c.execute("UPDATE record SET text = x'00' WHERE id = 5")
c.commit()
PY
    status=0
    "$s4d" track export > "$dir/out" 2> "$dir/err" || status=$?
    [ "$status" -eq 65 ]
    [ "$(wc -l < "$dir/out")" -eq 299 ]
    grep -qF "1 records could not be read" "$dir/err"
    "$s4d" track add --store "$dir/new.sqlite" - < "$dir/out" | grep -qF "299 added"
    status=0
    "$s4d" track check > "$dir/out" 2> "$dir/err" || status=$?
    [ "$status" -eq 65 ]
    grep -qF "2024-03-05 cannot be read as it was added" "$dir/out"
    # Debian 12's sqlite3 cannot .recover anything.
    if sqlite3 "$dir/whole" .recover > "$dir/sql" 2> "$dir/err"; then
        sqlite3 "$dir/whole" .recover | sqlite3 "$dir/again.sqlite"
        "$s4d" track check --store "$dir/again.sqlite" | grep -q '^# 300 records read  OK'
    fi
}

@test "track: a schema of the future, and other databases and files" {
    nights 1 > "$dir/a"
    "$s4d" track add "$dir/a"
    python3 -c '
import sqlite3, sys
c = sqlite3.connect(sys.argv[1]); c.execute("PRAGMA user_version = 99"); c.commit()
c = sqlite3.connect(sys.argv[2]); c.execute("CREATE TABLE record (a)"); c.commit()' "$SCALE4D_STORE" "$dir/other"
    cp "$SCALE4D_STORE" "$dir/before"
    refuses 65 "of version 99" "newer scale4d" -- track add "$dir/a"
    refuses 65 "of version 99" -- track list
    cmp "$SCALE4D_STORE" "$dir/before"
    cp "$dir/other" "$dir/before"
    refuses 65 "$dir/other: is a SQLite database, but no store" -- track add --store "$dir/other" "$dir/a"
    refuses 65 "no store" -- track list --store "$dir/other"
    cmp "$dir/other" "$dir/before"
    cp "$dir/a" "$dir/text"
    refuses 65 "$dir/text: is no SQLite database" "nothing was written" -- track add --store "$dir/text" "$dir/a"
    cmp "$dir/text" "$dir/a"
    # An empty file is what a killed writer may leave behind before anything was acknowledged.
    : > "$dir/empty"
    refuses 65 "$dir/empty" -- track list --store "$dir/empty"
    "$s4d" track add --store "$dir/empty" "$dir/a" | grep -qF "1 added"
    # One of records is what a killed run leaves: nothing is wrong with it, but it is said.
    : > "$dir/nothing"
    "$s4d" track add --store "$dir/empty" "$dir/nothing" "$dir/a" 2>&1 > /dev/null | grep -c . | grep -qx 1
    "$s4d" track add --store "$dir/empty" "$dir/nothing" 2>&1 | grep -qF "nothing: there is no record in it"
}

@test "track: a store that is not there, a folder, and folders that take no files" {
    nights 1 > "$dir/a"
    for sub in list "show 1" export check "annotate --list" "prune --older-than 1d"; do
        refuses 65 "$dir/store.sqlite: there is no store" "track add FILE makes it" -- track $sub
        [ ! -e "$SCALE4D_STORE" ]
    done
    refuses 74 "$dir/no" -- track add --store "$dir/no/where.sqlite" "$dir/a"
    refuses 74 "this is a folder" -- track add --store "$dir" "$dir/a"
    refuses 65 "this is a folder" -- track list --store "$dir"
    refuses 74 "no ordinary file" -- track add --store /dev/null "$dir/a"
    refuses 64 "--store" "HOME must be set" -- track add --store "" "$dir/a"
    HOME= XDG_DATA_HOME= SCALE4D_STORE= refuses 64 "HOME must be set" -- track list
    (cd "$dir" && "$s4d" track add --store :memory: "$dir/a" && [ -s :memory: ])
    "$s4d" track add "$dir/a"
    mkdir "$dir/closed"
    cp "$SCALE4D_STORE" "$dir/closed/s.sqlite"
    chmod 444 "$dir/closed/s.sqlite"
    chmod 555 "$dir/closed"
    as=()
    if [ "$(id -u)" -eq 0 ]; then
        command -v setpriv || skip "root may write everywhere"
        as=(setpriv --reuid 65534 --regid 65534 --clear-groups)
        chmod a+x "$dir" "$BATS_RUN_TMPDIR" "$BATS_RUN_TMPDIR/test" "$BATS_TEST_TMPDIR" 2> /dev/null || true
        cp "$s4d" "$dir/scale4d"
        cp "$dir/a" "$dir/closed-a"
        s4d=$dir/scale4d
        "${as[@]}" test -r "$dir/closed/s.sqlite" || skip "the test's folder is closed to others"
    fi
    "${as[@]}" "$s4d" track list --store "$dir/closed/s.sqlite" | grep -q '^ *1 '
    status=0
    "${as[@]}" "$s4d" track add --store "$dir/closed/s.sqlite" "$dir/a" > "$dir/out" 2> "$dir/err" || status=$?
    [ "$status" -eq 74 ]
    grep -qF "cannot be written" "$dir/err"
    chmod 755 "$dir/closed"
    rm "$dir/closed/s.sqlite"
    chmod 555 "$dir/closed"
    status=0
    "${as[@]}" "$s4d" track add --store "$dir/closed/s.sqlite" "$dir/a" > "$dir/out" 2> "$dir/err" || status=$?
    [ "$status" -eq 74 ]
}
