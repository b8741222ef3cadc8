#!/usr/bin/env bash
# slurm_once.sh FOLDER ARGUMENT…: runs `sbatch --wait ARGUMENT…` on a Slurm of one node that lives in FOLDER, with its own key
# and ports, and ends it again. Prints "SKIPPED: WHY" where a Slurm cannot be started here at all.
set -euo pipefail
folder=$1
shift
mkdir -p "$folder"/{state,spool,log}
folder=$(cd "$folder" && pwd)
host=$(hostname -s)
base=$((20000 + $$ % 20000))

pids=()
finish() {
  local pid
  for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
  wait 2>/dev/null || true
}
trap finish EXIT

skip() {
  printf 'SKIPPED: %s\n' "$1"
  tail -n 5 "$folder"/log/* >&2 || true
  exit 0
}

if [ "$(id -u)" -ne 0 ]; then skip "a Slurm of one's own wants root"; fi
dd if=/dev/urandom of="$folder/munge.key" bs=1024 count=1 status=none
chmod 400 "$folder/munge.key"
# The folder lies below one that everybody may write to: --force takes that.
munged --force --foreground --socket="$folder/munge.socket" --key-file="$folder/munge.key" --pid-file="$folder/munge.pid" \
  --log-file="$folder/log/munged" --seed-file="$folder/munge.seed" --num-threads=2 >"$folder/log/munged.out" 2>&1 &
pids+=($!)

cat >"$folder/slurm.conf" <<EOF
ClusterName=once
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$base
SlurmdPort=$((base + 1))
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$folder/munge.socket
CredType=cred/munge
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
SlurmctldLogFile=$folder/log/slurmctld
SlurmdLogFile=$folder/log/slurmd
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerType=sched/builtin
ReturnToService=2
MpiDefault=none
NodeName=$host NodeAddr=127.0.0.1 CPUs=2 State=UNKNOWN
PartitionName=all Nodes=$host Default=YES MaxTime=INFINITE State=UP
EOF
export SLURM_CONF=$folder/slurm.conf

for _ in $(seq 50); do
  if [ -S "$folder/munge.socket" ]; then break; fi
  sleep 0.2
done
if [ ! -S "$folder/munge.socket" ]; then skip "munged does not start"; fi
slurmctld -D -i >"$folder/log/slurmctld.out" 2>&1 &
pids+=($!)
slurmd -D -N "$host" >"$folder/log/slurmd.out" 2>&1 &
pids+=($!)
for _ in $(seq 150); do
  if scontrol show node "$host" 2>/dev/null | grep -q 'State=IDLE'; then break; fi
  sleep 0.2
done
scontrol show node "$host" 2>/dev/null | grep -q 'State=IDLE' || skip "the node of a Slurm of one's own does not come up"

sbatch --wait --export=ALL --output="$folder/log/task-%a" "$@" || {
  status=$?
  tail -n 20 "$folder"/log/* >&2
  exit "$status"
}
