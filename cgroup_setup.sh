#!/usr/bin/env bash
# cgroup_setup.sh - give one user a cgroup subtree of their own, so that tenants get slices without root.
#   ./cgroup_setup.sh [--user NAME] [--remove] [--dry-run]
#       --user NAME         whom it is for (default: who called sudo, else who calls)
#       --remove            undo it; refuses while a suite of that user runs
#       --dry-run           print what would be done, and do nothing
# What it makes: on cgroup v2 where systemd owns the cgroups a drop-in file, which delegates cpusets to that user's
# sessions from the next login on; elsewhere on v2 one directory cotenant.<login>, on v1 one in each hierarchy.
# Twice is as good as once. Nothing else is widened: no mode is changed, nothing is mounted, no process is moved.
# Exit status: 0 it is so now (or with --dry-run would be), 1 it cannot be had, 2 wrong usage.
# env: SUDO       what privileged steps are prefixed with (default: sudo, for root nothing; SUDO='' for none)
#      HOST_ROOT  another root directory than / to look at and to write below, for tests
set -euo pipefail

HOST_ROOT=${HOST_ROOT:-}
V1_CONTROLLERS=(cpuset memory cpu cpuacct freezer pids)
V2_NEEDED=(cpuset memory)
V2_WANTED=(pids cpu io) # The last two count, and limit nothing.
DROP_IN=('[Service]' 'Delegate=cpu cpuset io memory pids')
did='done' dry='' remove='' login=''

say() { printf '%s\n' "$*"; }

fail() { # STATUS SENTENCE
    say "cgroup_setup.sh: $2" >&2
    exit "$1"
}

# step COMMAND...: one privileged step, printed when it is done.
step() {
    local line="${prefix[*]:+${prefix[*]} }$*"
    [ -n "$dry" ] || "${prefix[@]}" "$@" || fail 1 "This failed, and nothing after it was done: $line"
    say "$did: $line"
}

# attempt FILE LINE...: write a file's text, printed when it is done; it leaves what it ran in `line`.
attempt() {
    local file=$1
    shift
    line="printf '%s\\n'$(printf " '%s'" "$@") | ${prefix[*]:+${prefix[*]} }tee $file"
    [ -n "$dry" ] || printf '%s\n' "$@" | "${prefix[@]}" tee "$file" >/dev/null || return
    say "$did: $line"
}

# write FILE LINE...: the same as a step, without which nothing after it is done.
write() {
    local line
    attempt "$@" || fail 1 "This failed, and nothing after it was done: $line"
}

arguments() {
    while [ $# -gt 0 ]; do
        case $1 in
            --user)
                [ -n "${2:-}" ] || fail 2 "--user needs a login name."
                login=$2
                shift
                ;;
            --remove) remove=yes ;;
            --dry-run) dry=yes did='would' ;;
            -h | --help)
                sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}"
                exit 0
                ;;
            *) fail 2 "There is no argument '$1'; --help lists them." ;;
        esac
        shift
    done
}

# whom: sets login, uid and the prefix of privileged steps.
whom() {
    local caller root_prefix=sudo
    caller=$(id -u)
    login=${login:-${SUDO_UID:-$caller}}
    uid=$(id -u -- "$login" 2>/dev/null) || fail 2 "There is no user '$login' on this machine; --user names one."
    login=$(id -un -- "$login")
    [ "$caller" -ne 0 ] || root_prefix=''
    read -ra prefix <<<"${SUDO-$root_prefix}"
}

# mount_of TYPE [CONTROLLER]: where that hierarchy is mounted; of several places the one that shows most of it.
mount_of() {
    awk -v type="$1" -v controller="${2:-}" '
        { for (i = 7; i <= NF && $i != "-"; i++); }
        $(i + 1) != type { next }
        controller != "" && index("," $(i + 3) ",", "," controller ",") == 0 { next }
        best == "" || length($4) < shown { best = $5; shown = length($4) }
        END { print best }' "$HOST_ROOT/proc/self/mountinfo" | sed "s|^/|$HOST_ROOT/|"
}

# own PATH: make it the user's.
own() {
    if [ "$(stat -c %u "$1" 2>/dev/null)" = "$uid" ]; then
        say "kept: $1 belongs to $login"
    else
        step chown "$login" "$1"
    fi
}

# is_alive PID-START-NAMESPACE: whether that runner still runs, as far as it can be seen from here.
is_alive() {
    local pid start stat
    IFS=- read -r pid start _ <<<"$1"
    stat=$(cat "/proc/$pid/stat" 2>/dev/null) || return 1
    read -ra stat <<<"${stat##*) }"
    [ "${stat[19]}" = "$start" ]
}

# drop DIRECTORY: remove a cgroup and the empty ones below it.
drop() {
    if [ ! -d "$1" ]; then
        say "kept: there is no $1"
        return
    fi
    local level pids
    for level in "$1"/*-*/; do
        level=${level%/}
        ! is_alive "${level##*/}" || fail 1 "A suite of $login runs in $level; end it first."
    done
    while read -r level; do
        pids=$(tr '\n' ' ' <"$level/cgroup.procs")
        [ -z "$pids" ] || fail 1 "Processes live in $level: ${pids% }; end them first."
    done < <(find "$1" -type d)
    while read -r level; do step rmdir "$level"; done < <(find "$1" -depth -type d)
}

v1() {
    local controller top base file
    local -A seen=()
    for controller in "${V1_CONTROLLERS[@]}"; do
        top=$(mount_of cgroup "$controller")
        # Not mounted, or mounted together with one that came before.
        if [ -z "$top" ] || [ -n "${seen[$top]:-}" ]; then continue; fi
        seen[$top]=yes base=$top/cotenant.$login
        if [ -n "$remove" ]; then
            drop "$base"
            continue
        fi
        [ -d "$base" ] || step mkdir -m 755 "$base"
        own "$base"
        [ "$controller" = cpuset ] || continue
        for file in cpuset.cpus cpuset.mems; do # An empty set admits no process.
            [ -n "$(cat "$base/$file" 2>/dev/null)" ] || write "$base/$file" "$(cat "$top/$file")"
        done
    done
    [ -n "$remove" ] || say "Then $login can run with --isolation v1."
}

# has LIST WORD: whether the word stands in the list.
has() { [[ " $1 " == *" $2 "* ]]; }

systemd() {
    local folder="$HOST_ROOT/etc/systemd/system/user@$uid.service.d"
    local file=$folder/cotenant.conf session
    session=$(mount_of cgroup2)/user.slice/user-$uid.slice/user@$uid.service
    [ "$uid" -ne 0 ] || fail 2 "Under systemd root needs no delegation; --user names the user who does."
    if [ -n "$remove" ]; then
        if [ ! -e "$file" ]; then
            say "kept: there is no $file"
            return
        fi
        step rm "$file"
        [ -n "$(find "$folder" -mindepth 1 ! -path "$file")" ] || step rmdir "$folder"
        step systemctl daemon-reload
        say "$login keeps what is delegated until the last of their sessions ends."
        return
    fi
    if [ "$(cat "$file" 2>/dev/null)" = "$(printf '%s\n' "${DROP_IN[@]}")" ]; then
        say "kept: $file"
    else
        [ -d "$folder" ] || step mkdir -p -m 755 "$folder"
        # Lists add up: what systemd delegates by itself stays delegated.
        write "$file" "${DROP_IN[@]}"
        step systemctl daemon-reload
    fi
    if has "$(cat "$session/cgroup.controllers" 2>/dev/null)" cpuset; then
        say "$login can run with --isolation v2."
    else
        say "Now $login has to log in again: log out everywhere and in, or: systemctl restart user@$uid.service"
        say "(which ends their session). Then they can run with --isolation v2."
    fi
}

# lacks VERB CONTROLLER: say what slices lose with one that is wanted, and not needed.
lacks() {
    local lost='slices do without what it counts.'
    [ "$2" != pids ] || lost="the number of a user's processes will not be limited."
    say "The kernel $1 $2 controller in $top: $lost"
}

v2() {
    local top base offered enabled controller file line
    top=$(mount_of cgroup2) base=$top/cotenant.$login
    if [ -n "$remove" ]; then
        drop "$base"
        return
    fi
    offered=$(cat "$top/cgroup.controllers") enabled=$(cat "$top/cgroup.subtree_control")
    for controller in "${V2_NEEDED[@]}"; do
        has "$offered" "$controller" || fail 1 "The kernel offers no $controller controller in $top."
    done
    # Each by itself: of several in one write the kernel enables none where it refuses one.
    for controller in "${V2_NEEDED[@]}"; do
        has "$enabled" "$controller" || write "$top/cgroup.subtree_control" "+$controller"
    done
    for controller in "${V2_WANTED[@]}"; do
        if ! has "$offered" "$controller"; then
            lacks 'offers no' "$controller"
        elif ! has "$enabled" "$controller"; then
            attempt "$top/cgroup.subtree_control" "+$controller" || lacks 'refuses the' "$controller"
        fi
    done
    [ -d "$base" ] || step mkdir -m 755 "$base"
    # What the kernel's documentation of delegation names, and nothing else: limits stay with the host.
    for file in "" /cgroup.procs /cgroup.threads /cgroup.subtree_control; do own "$base$file"; done
    say "Only root can put a process of $login into it. So a suite is started as:"
    say "    sudo sh -c 'echo 0 > $base/cgroup.procs && exec setpriv --reuid $uid --regid $(id -g -- "$login")" \
        "--init-groups ./run.sh'"
}

main() {
    arguments "$@"
    whom
    if [ -n "$(mount_of cgroup cpuset)" ] && [ -n "$(mount_of cgroup memory)" ]; then
        v1
    elif [ -z "$(mount_of cgroup2)" ]; then
        fail 1 "No cgroups are mounted here."
    elif [ -d "$HOST_ROOT/run/systemd/system" ]; then
        systemd
    else
        v2
    fi
}

main "$@"
