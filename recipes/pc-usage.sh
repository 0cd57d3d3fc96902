#!/usr/bin/env bash
# A stand-in for somebody's use of a PC, made up: nobody was watched. Documents are saved again and again, archives are unpacked and thrown away,
# pictures are copied and sorted, mail is added to a box, and a browser keeps a cache of what it loads, in files and a database.
# Each activity is a program of its own. The documents are texts of this repository. Debian: python3, tar, gzip.
. "$(dirname "$0")/common.sh"
need python3 python3
need tar tar
need gzip gzip
if ! $inside; then
    mkdir -p "$work/texts"
    cp "$here"/../docs/guide/*.md "$here"/../*.md "$work/texts/"
    record "$here/pc_usage.py"
    exit
fi
cd "$work"
python3 -B -I recipe/pc_usage.py prepare "$(of 12 80)"
for ((day = 1; day <= $(of 6 40); day++)); do
    python3 -B -I recipe/pc_usage.py write "$day"
    python3 -B -I recipe/pc_usage.py browse "$day"
    cp -r camera "pictures-$day"
    ((day < 4)) || rm -rf "pictures-$((day - 3))"
    mkdir -p unpacked
    tar -xzf texts.tar.gz -C unpacked
    cp -r documents "unpacked/backup-$day"
    tar -czf "unpacked/backup-$day.tar.gz" documents
    ((day % 3)) || rm -rf unpacked
    sync
done
