#!/bin/sh
# Installs what the tests of the pages, the study's store and Spark need, where this is root with apt-get.
# What cannot be had is not an error here: the tests that need it are skipped and say so in the last lines.
# COGSTAGE_SYSTEM_PACKAGES=no leaves the system alone.
missing=""
command -v chromium >/dev/null 2>&1 || missing="$missing chromium"
command -v chromedriver >/dev/null 2>&1 || missing="$missing chromium-driver"
ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || missing="$missing postgresql"
command -v nginx >/dev/null 2>&1 || missing="$missing nginx-light"
command -v java >/dev/null 2>&1 || missing="$missing default-jre-headless"
[ -z "$missing" ] && exit 0
if [ "${COGSTAGE_SYSTEM_PACKAGES:-yes}" = no ]; then
    echo "not installed (COGSTAGE_SYSTEM_PACKAGES=no), tests that need it are skipped:$missing"
elif [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "installing system packages with apt-get (COGSTAGE_SYSTEM_PACKAGES=no prevents it):$missing"
    export DEBIAN_FRONTEND=noninteractive
    # shellcheck disable=SC2086
    (apt-get update -qq && apt-get install -y -qq $missing) >/dev/null 2>&1 || echo "could not install:$missing"
else
    echo "not installed (needs root and apt-get), tests that need it are skipped:$missing"
fi
exit 0
