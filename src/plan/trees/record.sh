#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Records where the PCI functions of this machine sit, as a .tree: bash record.sh >NAME.tree. Reads /sys, needs no root.
# GPUs are named gpu:N in the order of their addresses: rename them to what strait calls them (cuda:0).
set -euo pipefail
echo "# SPDX-License-Identifier: Apache-2.0"
echo "# Recorded by record.sh: $(uname -m), Linux $(uname -r)."
echo "# gpu NAME PATH NUMA_NODE; nic NAME PATH NUMA_NODE; other - PATH NUMA_NODE. PATH below /sys/devices."
gpus=0
for function in /sys/bus/pci/devices/*; do
  [[ -e $function/class ]] || continue
  path=$(realpath "$function")
  kind=other name=-
  read -r class <"$function/class"
  case $class in
    0x03* | 0x12*) kind=gpu name=gpu:$gpus gpus=$((gpus + 1)) ;; # display controllers, processing accelerators
  esac
  for nic in "$function"/infiniband/*; do
    [[ -e $nic ]] && kind=nic name=${nic##*/}
  done
  read -r node <"$function/numa_node" || node=-1
  line="$kind $name ${path#/sys/devices/} $node"
  # "16.0 GT/s PCIe" and lanes, where both are known; of a NIC also the wire's rate ("400 Gb/sec (4X NDR)").
  if [[ $kind != other && -r $function/max_link_speed && -r $function/current_link_width ]]; then
    read -r speed _ <"$function/max_link_speed"
    read -r lanes <"$function/current_link_width"
    if [[ $speed =~ ^[0-9] && $lanes != 0 ]]; then
      line+=" ${speed%.*}x$lanes"
      rate=$function/infiniband/$name/ports/1/rate
      if [[ -r $rate ]]; then
        read -r wire _ <"$rate"
        line+=" $wire"
      fi
    fi
  fi
  echo "$line"
done
