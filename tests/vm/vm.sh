#!/usr/bin/env bash
# vm.sh - run a command inside a throw-away Debian 12 VM: systemd as PID 1, pure cgroup v2, 2 NUMA nodes, SMT siblings;
# users get the controllers that systemd delegates by itself, without cpusets.
#   vm.sh setup                       install what this script needs: qemu-system-x86, mmdebstrap, e2fsprogs     (once; root)
#   vm.sh check                       exit status 0 if that is there
#   vm.sh build                       build $VMDIR/{vmlinuz,initrd,root.img} from Debian packages, unless those of this
#                                     script are there                                                           (root)
#   vm.sh run -i DIR [-s SHARE] [-t SEC] -- CMD...    DIR is packed into the guest at /guest, where root runs CMD;
#                                     SHARE is read there at /share (virtiofs)
#   exit status = CMD's (124: guest timed out, 125: VM did not report).
# env: VMDIR  SMP="4,sockets=2,cores=1,threads=2"  MEM=4096 (MiB, split over 2 nodes)  ACCEL=auto|kvm|tcg  CMDLINE="..."
#      at build: MIRROR (default: this host's own), SUITE, KPKG, PKGS
set -euo pipefail
VMDIR=${VMDIR:-${XDG_CACHE_HOME:-$HOME/.cache}/cotenant-vm}
MEM=${MEM:-4096}
SMP=${SMP:-4,sockets=2,cores=1,threads=2}
ACCEL=${ACCEL:-auto}
SUITE=${SUITE:-bookworm}
KPKG=${KPKG:-linux-image-cloud-amd64}
PKGS=${PKGS:-systemd-sysv,dbus,dbus-user-session,libpam-systemd,udev,kmod,procps,python3,util-linux,numactl,$KPKG}
MASKED=(getty@tty1.service serial-getty@ttyS0.service apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer
    e2scrub_all.timer e2scrub_reap.service fstrim.timer systemd-timesyncd.service)

setup() {
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq
    local -a names=(qemu-system-x86 e2fsprogs)
    # In Debian 12 it is part of qemu.
    if apt-cache show virtiofsd >/dev/null 2>&1; then names+=(virtiofsd); fi
    # Of qemu the rest is windows and firmware; of mmdebstrap it is what unpacks.
    apt-get install -y -qq --no-upgrade --no-install-recommends "${names[@]}" >/dev/null
    apt-get install -y -qq --no-upgrade mmdebstrap >/dev/null
}

check() {
    local program
    for program in qemu-system-x86_64 mmdebstrap mke2fs; do
        PATH=$PATH:/usr/sbin:/sbin command -v "$program" >/dev/null || return
    done
    virtiofsd >/dev/null
}

build() {
    local d=$VMDIR/rootfs begin=$SECONDS mirror=${MIRROR:-} made
    made="$(sha256sum <"${BASH_SOURCE[0]}") $SUITE $KPKG $PKGS"
    [ "$(cat "$VMDIR/made" 2>/dev/null)" != "$made" ] || return 0
    mirror=${mirror:-$(apt-get indextargets --format '$(SITE) $(RELEASE)' | awk -v s="$SUITE" '$2 == s { print $1; exit }')}
    [ -n "$mirror" ] || { echo "vm.sh: apt knows no mirror of Debian $SUITE; name one in MIRROR." >&2 && exit 2; }
    mkdir -p "$VMDIR"
    rm -rf "$d" "$VMDIR/made"
    mmdebstrap --quiet --variant=minbase --include="$PKGS" --dpkgopt=force-unsafe-io \
        --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
        --dpkgopt='path-exclude=/usr/share/man/*' "$SUITE" "$d" "$mirror" "deb $mirror $SUITE-updates main"
    install_guest "$d"
    cp "$d"/boot/vmlinuz-* "$VMDIR/vmlinuz"
    cp "$d"/boot/initrd.img-* "$VMDIR/initrd"
    rm -rf "$d"/boot/* "$d"/var/cache/apt/* "$d"/var/lib/apt/lists/* "$VMDIR/root.img"
    truncate -s 2G "$VMDIR/root.img"
    mke2fs -q -t ext4 -O ^has_journal -E lazy_itable_init=1,root_owner=0:0 -d "$d" "$VMDIR/root.img"
    rm -rf "$d"
    echo "$made" >"$VMDIR/made"
    echo "image: $((SECONDS - begin)) s, $(du -h "$VMDIR/root.img" | cut -f1) on disk"
}

install_guest() { # ROOTFS
    local d=$1 units=$1/etc/systemd/system unit
    cat >"$d/usr/local/sbin/vmrun" <<'G'
#!/bin/bash
# guest side: unpack input tar (vdb), run /guest/.vmcmd, write result tar (vdc), power off
exec </dev/null >/dev/console 2>&1
mkdir -p /guest /out
for a in $(cat /proc/cmdline); do case $a in vmin=*) IN=${a#*=};; vmout=*) OUTD=${a#*=};; esac; done
tar -xf "$IN" -C /guest
case " $(cat /proc/cmdline) " in *" vmshare "*) mkdir -p /share && mount -t virtiofs -o ro share /share ;; esac
export HOME=/root; cd /guest
echo "VM-READY $(cut -d' ' -f1 /proc/uptime)"
timeout -k 5 "$(cat .vmtimeout)" bash /guest/.vmcmd; rc=$?
echo $rc > /out/.vmrc; tar -cf "$OUTD" -C /out . ; sync
echo "VM-EXIT $rc"; systemctl poweroff --force --force
G
    chmod 755 "$d/usr/local/sbin/vmrun"
    cat >"$units/vmrun.service" <<'G'
[Unit]
Description=run the command given on vdb
After=basic.target dbus.service systemd-logind.service
[Service]
Type=exec
ExecStart=/usr/local/sbin/vmrun
Delegate=yes
[Install]
WantedBy=multi-user.target
G
    mkdir -p "$units/multi-user.target.wants"
    ln -sf ../vmrun.service "$units/multi-user.target.wants/vmrun.service"
    for unit in "${MASKED[@]}"; do ln -sf /dev/null "$units/$unit"; done
    echo vm >"$d/etc/hostname"
    : >"$d/etc/fstab"
}

virtiofsd() { # Where it is: its place has changed with Debian 13.
    local place
    for place in /usr/lib/qemu/virtiofsd /usr/libexec/virtiofsd; do
        if [ -x "$place" ]; then echo "$place" && return; fi
    done
    return 1
}

kvm_ok() { # /dev/kvm may exist and still be unusable (nested/PVM): believe only a boot that prints within 10 s
    [ -w /dev/kvm ] || return 1
    [ -f "$VMDIR/.kvm" ] && return "$(cat "$VMDIR/.kvm")"
    local rc=1
    timeout 10 qemu-system-x86_64 -accel kvm -cpu host -m 512 -nodefaults -display none -no-reboot -serial stdio \
        -kernel "$VMDIR/vmlinuz" -append 'console=ttyS0 panic=-1' </dev/null 2>/dev/null |
        grep -q 'Run /init\|Unable to mount root\|VFS:' && rc=0
    echo $rc >"$VMDIR/.kvm"
    return $rc
}

run() {
    local in='' to=600 share=''
    while [ $# -gt 0 ]; do
        case $1 in
            -i) in=$2 && shift 2 ;;
            -s) share=$2 && shift 2 ;;
            -t) to=$2 && shift 2 ;;
            --) shift && break ;;
            *) break ;;
        esac
    done
    work=$(mktemp -d "$VMDIR/run.XXXX")
    trap 'jobs -p | xargs -r kill 2>/dev/null || true; rm -rf "$work"' EXIT
    mkdir "$work/x"
    printf 'cd /guest\n%s\n' "$*" >"$work/x/.vmcmd"
    echo "$to" >"$work/x/.vmtimeout"
    tar -cf "$work/in.tar" -C "$work/x" .vmcmd .vmtimeout
    tar -rf "$work/in.tar" -C "$in" .
    truncate -s 256M "$work/out.tar"
    boot "$to" "$share"
    tar -xf "$work/out.tar" -C "$work" ./.vmrc 2>/dev/null || return 125
    return "$(cat "$work/.vmrc")"
}

boot() { # SECONDS SHARE
    local -a shared=()
    if [ -n "$2" ]; then
        "$(virtiofsd)" "--socket-path=$work/share" -o "source=$2" -o cache=auto >"$work/virtiofsd" 2>&1 &
        until [ -S "$work/share" ]; do
            kill -0 $! 2>/dev/null || { cat "$work/virtiofsd" >&2 && return 1; }
            sleep 0.05
        done
        shared=(-chardev "socket,id=share,path=$work/share" -device vhost-user-fs-pci,chardev=share,tag=share)
        CMDLINE="vmshare ${CMDLINE:-}"
    fi
    local accel=(-accel "tcg,thread=multi,tb-size=512" -cpu "max,vendor=GenuineIntel")
    if [ "$ACCEL" = kvm ] || { [ "$ACCEL" = auto ] && kvm_ok; }; then accel=(-accel kvm -cpu host); fi
    local processors=${SMP%%,*} half=$((MEM / 2))
    timeout "$(($1 + 180))" qemu-system-x86_64 "${accel[@]}" -M q35 -smp "$SMP" -m "${MEM}M" \
        -object "memory-backend-memfd,share=on,id=m0,size=${half}M" -object "memory-backend-memfd,share=on,id=m1,size=${half}M" \
        -numa "node,nodeid=0,memdev=m0,cpus=0-$((processors / 2 - 1))" \
        -numa "node,nodeid=1,memdev=m1,cpus=$((processors / 2))-$((processors - 1))" \
        -nodefaults -no-user-config -display none -no-reboot -serial stdio -device virtio-rng-pci "${shared[@]}" \
        -drive "file=$VMDIR/root.img,format=raw,if=virtio,snapshot=on,cache=unsafe" \
        -drive "file=$work/in.tar,format=raw,if=virtio,readonly=on" \
        -drive "file=$work/out.tar,format=raw,if=virtio,cache=unsafe" \
        -kernel "$VMDIR/vmlinuz" -initrd "$VMDIR/initrd" \
        -append "root=/dev/vda rw console=ttyS0 quiet panic=-1 mitigations=off audit=0 nowatchdog \
systemd.unified_cgroup_hierarchy=1 psi=1 vmin=/dev/vdb vmout=/dev/vdc ${CMDLINE:-}" </dev/null || true
}

case ${1:-} in
    setup) setup ;;
    check) check ;;
    build) build ;;
    run) shift && run "$@" ;;
    *) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0" && exit 2 ;;
esac
