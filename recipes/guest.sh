#!/usr/bin/env bash
# A Linux guest in QEMU with a live drive as its virtio-blk and its NVMe disk: it makes a file system on the one, reads it on the other,
# and trims.
#
#     recipes/guest.sh URI [KERNEL]
#
# URI is that of a drive (`ftlab serve`) without anything worth keeping, KERNEL one like /boot/vmlinuz-6.1.0-cloud-amd64 with its modules
# in /lib/modules (the newest in /boot by default). Needs no root and no hardware virtualisation. Debian: qemu-system-x86, busybox-static,
# cpio, kmod, linux-image-cloud-amd64. Ends with 77 where one of them is missing.
set -euo pipefail
uri=${1:?expected the URI of a drive, as ftlab serve prints it}
kernel=${2:-$(ls -v /boot/vmlinuz-* 2>/dev/null | tail -n 1 || true)}
PATH=$PATH:/usr/sbin:/sbin
missing() { echo "guest: $1 is missing" >&2; exit 77; }
for program in qemu-system-x86_64 busybox cpio gzip modprobe; do
    command -v "$program" >/dev/null || missing "$program"
done
[ -n "$kernel" ] && [ -r "$kernel" ] || missing "a kernel that can be read"
version=${kernel##*/vmlinuz-}
[ -d "/lib/modules/$version" ] || missing "/lib/modules/$version"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root
mkdir -p "$root"/{bin,dev,proc,sys,mnt,modules}
cp "$(command -v busybox)" "$root/bin/busybox"
# Some kernels have one or the other built in; modules go in the order in which they need each other.
for module in virtio_pci virtio_blk nvme ext4; do
    modprobe --set-version "$version" --show-depends "$module"
done | awk '$1 == "insmod" && !seen[$2]++ { print $2 }' >"$work/modules"
number=100
while read -r module; do
    number=$((number + 1))
    case $module in
        *.ko) cp "$module" "$root/modules/$number.ko" ;;
        *.xz) xz -dc "$module" >"$root/modules/$number.ko" ;;
        *.zst) zstd -dcq "$module" >"$root/modules/$number.ko" ;;
    esac
done <"$work/modules"

cat >"$root/init" <<'GUEST'
#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/bin
mount -t devtmpfs none /dev; mount -t proc none /proc; mount -t sysfs none /sys
for module in /modules/*.ko; do [ ! -e "$module" ] || insmod "$module"; done
failed() { echo "GUEST: failed: $1"; poweroff -f; }
await() { for _ in 1 2 3 4 5 6 7 8 9 10; do [ -b "$1" ] && return; sleep 1; done; failed "no $1"; }
fresh() { echo 3 >/proc/sys/vm/drop_caches; }
virtio=/dev/vda nvme=/dev/nvme0n1
await $virtio; await $nvme
echo "GUEST: disks of $(($(cat /sys/block/vda/size) / 2048)) and $(($(cat /sys/block/nvme0n1/size) / 2048)) MiB"
mke2fs -F $virtio >/dev/null || failed mke2fs
mount -t ext4 -o discard $virtio /mnt || failed "mount of virtio-blk"
dd if=/dev/urandom of=/mnt/random bs=64k count=64 2>/dev/null
sum=$(sha256sum </mnt/random)
sync; umount /mnt; fresh
mount -t ext4 -o ro $nvme /mnt || failed "mount of NVMe"
[ "$(sha256sum </mnt/random)" = "$sum" ] || failed "NVMe reads something else than virtio-blk wrote"
umount /mnt
echo "GUEST: NVMe reads what virtio-blk wrote"
mount -t ext4 -o discard $nvme /mnt && rm /mnt/random && sync && umount /mnt || failed "rm through NVMe"
blkdiscard $virtio || failed blkdiscard
fresh
dd if=$nvme bs=64k count=64 2>/dev/null | tr -d '\0' | grep -q . && failed "data after a trim"
echo "GUEST: trims reach the drive"
echo "GUEST: done"
poweroff -f
GUEST
chmod +x "$root/init"
(cd "$root" && find . | cpio --quiet -o -H newc | gzip -1) >"$work/initramfs"

# One file each: QEMU locks what it opens, but not what a server has.
for disk in virtio nvme; do
    disks+=(-drive "id=$disk,file=$uri,format=raw,if=none,cache=none,discard=unmap")
done
timeout 300 qemu-system-x86_64 -accel tcg -m 256 -nodefaults -no-reboot -display none -serial "file:$work/console" \
    -kernel "$kernel" -initrd "$work/initramfs" -append "console=ttyS0 quiet panic=-1" \
    "${disks[@]}" -device virtio-blk-pci,drive=virtio,discard=on -device nvme,drive=nvme,serial=ftlab
grep -a "^GUEST" "$work/console" || tail -n 20 "$work/console" >&2
grep -aq "^GUEST: done" "$work/console"
