#!/usr/bin/env bash
# Java: a small key-value store with a log, sorted tables and compaction (`Store.java`), through FileChannel and streams.
# Debian: default-jdk-headless.
. "$(dirname "$0")/common.sh"
need java default-jdk-headless
need javac default-jdk-headless
if ! $inside; then
    javac -d "$work/classes" "$here/Store.java"
    record
    exit
fi
java -Xshare:auto -XX:-UsePerfData -cp "$work/classes" Store "$work/store" "$(of 20000 600000 50000)" "$(of 256 4096 256)" $(of '' '' '1000 2000')
