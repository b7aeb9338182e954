#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Sourced by the scripts that ask tshark. It guesses by a payload's first bytes what protocol the payload is, and calls the
# rest of the guess malformed: some random payload is a Fibre Channel frame or an RPC. Nothing is guessed here.
no_guessing=(-o infiniband.identify_payload:FALSE) # by what would be an Ethernet type
guessed=$(tshark -G heuristic-decodes 2>/dev/null | sed -n 's/^infiniband\.payload\t\([^\t]*\).*/\1/p')
[[ $guessed == *fcoib* ]] || { echo "tshark -G heuristic-decodes names no protocol that is guessed"; exit 1; }
for protocol in $guessed; do no_guessing+=(--disable-protocol "$protocol"); done
