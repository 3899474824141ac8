#!/usr/bin/env bash
# The first process of a real node's own namespaces, in which everything that the node does stays: addresses, rules,
# mounts, processes, cgroups. When it ends, the kernel ends all of them. Run by box.py, as:
#   box.sh FOLDER ADDRESS CGROUP-FOLDER ...
set -euo pipefail
if [ "$$" != 1 ]; then
  for cgroup in "${@:3}"; do echo "$$" >"$cgroup/cgroup.procs"; done
  # the namespace of cgroups begins where a process is when it is made
  exec unshare --cgroup --mount --net --pid --uts --ipc --fork --kill-child --mount-proc --propagation private "$0" "$@"
fi
folder=$1 address=$2
rm -f "$folder/ready"

if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
  umount --lazy /sys/fs/cgroup
  mount -t cgroup2 cgroup2 /sys/fs/cgroup
  # a cgroup that hands controllers down may hold no process itself
  mkdir /sys/fs/cgroup/init && echo 1 >/sys/fs/cgroup/init/cgroup.procs
  sed 's/\</+/g' /sys/fs/cgroup/cgroup.controllers >/sys/fs/cgroup/cgroup.subtree_control
else
  umount --lazy /sys/fs/cgroup
  mount -t tmpfs tmpfs /sys/fs/cgroup
  while IFS=: read -r _ controllers _; do
    [ -n "$controllers" ] || continue # version 2 beside version 1 has no controllers that matter
    name=${controllers#name=}
    mkdir "/sys/fs/cgroup/$name"
    options=$controllers && [ "$name" = "$controllers" ] || options=none,$controllers
    mount -t cgroup -o "$options" cgroup "/sys/fs/cgroup/$name"
  done </proc/self/cgroup
fi

# The programs' usual places, and none of this machine's.
mount -t tmpfs -o mode=755 tmpfs /run
for place in /var/lib/kubelet /var/lib/containerd /var/lib/cni /var/log/pods /var/log/containers /etc/cni/net.d; do
  mkdir -p "$folder/root$place" "$place"
  mount --bind "$folder/root$place" "$place"
done

hostname real
ip link set lo up
# a bridge without ports carries the node's address; the route is never used, but decides before rules do
ip link add node type bridge
ip address add "$address/24" dev node
ip link set node up
ip route add default dev node
echo 1 >/proc/sys/net/ipv4/ip_forward
touch "$folder/ready"
# bash waits for processes whose parent ended, as a first process must
while :; do sleep 3600 & wait "$!"; done
