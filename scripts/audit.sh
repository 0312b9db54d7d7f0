#!/bin/sh
# Looks up the versions of lock files in the advisory database of PyPI. Exit 1 if one has a known vulnerability.
# Without the network it is skipped, with the reason: a lookup that fails says nothing about the versions.
status=0
for file in "$@"; do
    echo "$file"
    output=$(pip-audit --progress-spinner off --require-hashes --disable-pip --requirement "$file" 2>&1)
    result=$?
    echo "$output"
    missed=$(echo "$output" | grep -c "could not be audited")
    [ "$missed" -gt 0 ] && echo "skipped: $missed packages are not known to the advisory database"
    [ $result -eq 0 ] && continue
    if echo "$output" | grep -qE "Found [0-9]+ known vulnerabilit"; then
        status=1
    elif echo "$output" | grep -qiE "connection|resolve|timed out|proxy|unreachable|HTTPError|ServiceError"; then
        echo "skipped: the advisory database cannot be reached"
    else
        status=1
    fi
done
exit $status
