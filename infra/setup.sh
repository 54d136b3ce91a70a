#!/bin/sh
# Makes a clone ready for tests, demo and benchmark. Says what it does, does nothing that is done already.
#   sh infra/setup.sh             Node's packages, redis-server
#   sh infra/setup.sh --browser   also a Chromium for the tests of the dashboard
set -eu
cd "$(dirname "$0")/.."

browser=no
for argument in "$@"; do
  case $argument in
    --browser) browser=yes ;;
    *)
      echo "usage: sh infra/setup.sh [--browser]" >&2
      exit 2
      ;;
  esac
done

say() {
  echo "setup: $*" >&2
}

has() {
  command -v "$1" >/dev/null 2>&1
}

# Installs Debian packages without leaving a service of theirs running.
install_packages() {
  say "installing $*"
  refuse_services=
  if [ ! -e /usr/sbin/policy-rc.d ]; then
    refuse_services=/usr/sbin/policy-rc.d
    printf '#!/bin/sh\nexit 101\n' >"$refuse_services"
    chmod 755 "$refuse_services"
    trap 'rm -f "$refuse_services"' EXIT
    trap 'exit 1' HUP INT TERM
  fi
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -q </dev/null >&2
  RUNLEVEL=1 apt-get install -y -q --no-install-recommends "$@" </dev/null >&2
  if [ -n "$refuse_services" ]; then
    rm -f "$refuse_services"
    trap - EXIT HUP INT TERM
  fi
}

# need PURPOSE PACKAGE COMMAND...: one of the commands has to be there.
need() {
  purpose=$1 package=$2
  shift 2
  for name in "$@"; do
    if has "$name"; then return 0; fi
  done
  if [ "$(id -u)" = 0 ] && has apt-get; then
    install_packages "$package"
    return 0
  fi
  say "$1 is missing, $purpose need it. Install it (Debian, Ubuntu: apt-get install $package) and run this again"
  missing=yes
}
missing=no

if ! has node || ! has npm; then
  say "Node.js 20 or newer with npm is needed to begin with: https://nodejs.org/en/download"
  exit 1
fi
major=$(node -p 'process.versions.node.split(".")[0]')
if [ "$major" -lt 20 ]; then
  say "Node.js 20 or newer is needed to begin with, here is $(node --version): https://nodejs.org/en/download"
  exit 1
fi

# npm writes this file last, so an installation that was broken off is done again.
installed=node_modules/.package-lock.json
if [ ! -e "$installed" ] || [ -n "$(find package-lock.json -newer "$installed")" ]; then
  say "npm ci (package-lock.json is newer than what is installed, or nothing is)"
  npm ci --no-audit --no-fund --no-update-notifier --loglevel=error </dev/null >&2
  touch "$installed"
fi
if ! node_modules/.bin/node --version >/dev/null 2>&1; then
  say "the Node.js that the package 'node' brings does not run here: was npm ci told to ignore scripts?"
  exit 1
fi

# tap comes built with its TypeScript compiler, which .taprc leaves out: Node runs the tests as they are.
if grep -q '@tapjs/typescript' node_modules/@tapjs/test/test-built/dist/esm/index.js; then
  say "tap build"
  PATH="$PWD/node_modules/.bin:$PATH" tap build </dev/null >&2
fi

need "tests, demo and benchmark" redis-server redis-server
if [ "$browser" = yes ]; then
  need "the tests of the dashboard" chromium chromium chromium-browser google-chrome google-chrome-stable
fi
if [ "$missing" = yes ]; then exit 1; fi

if ! has go; then
  say "no Go here, and none is installed by this: tests on the real kube-apiserver, which is built with Go 1.26 or newer, are left out"
fi
