#!/usr/bin/env bash
# Run the tests of safety as a normal user: root reads and writes whatever the modes of files say.
# Run by root it becomes `nobody`, with copies of whatever that user may not read, such as a Python below /root.
set -euo pipefail
cd "$(dirname "$0")/.."
tests=(tests/workspace/test_listing.py tests/workspace/sandbox tests/store/test_trust.py
  tests/workspace/namespaces tests/workspace/checkpoints/test_unkept.py tests/app/test_settling.py
  tests/app/test_exact_rights.py tests/app/test_without_copies.py tests/app/test_unlisted.py tests/app/test_left_out.py tests/app/test_host_decisions.py tests/app/test_own_ports.py
  tests/web/service/test_isolation.py)
# These take long, and who the user is makes no difference to them: what a line may say, and any bytes and names.
alike=(tests/workspace/sandbox/test_switching.py::test_no_word_of_a_line_is_an_option_of_the_git_that_looks
  tests/store/test_trust.py::test_any_bytes_and_names_can_be_judged)
options=(-q "${alike[@]/#/--deselect=}" -n "${JOBS:-4}" --dist worksteal -p no:cacheprovider "$@")
if [ "$(id -u)" != 0 ]; then
  exec .venv/bin/python -m pytest "${options[@]}" "${tests[@]}"
fi
if ! command -v setpriv >/dev/null 2>&1; then
  echo "Skipped: setpriv is not installed, so root cannot become a normal user."
  exit 0
fi
as_user() { setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all -- sh -c 'umask 022; exec "$@"' sh "$@"; }

mkdir -p /opt  # commands in the sandbox have a /tmp of their own: they would not see copies there
work=$(mktemp -d /opt/treadle-user.XXXXXX)
trap 'chmod -R u+rwx "$work"; rm -rf "$work"' EXIT
chmod 755 "$work"
install -d -o 65534 -g 65534 "$work/home" "$work/examples"
repository=$PWD
read -r base version packages < <(.venv/bin/python -c 'import sys, sysconfig
print(sys.base_prefix, "%d.%d" % sys.version_info[:2], sysconfig.get_path("purelib"))')

python="$base/bin/python$version"
if ! as_user "$python" -c "import encodings" 2>/dev/null; then
  mkdir "$work/python"
  tar -C "$base" --exclude=site-packages --exclude=test --exclude='*.a' -cf - bin lib | tar -C "$work/python" -xf -
  python="$work/python/bin/python$version"
  export LD_LIBRARY_PATH="$work/python/lib"
fi
if ! as_user test -r "$repository/pyproject.toml" || ! as_user test -r "$packages/pytest/__init__.py"; then
  mkdir "$work/repository" "$work/packages"
  tar -cf - src tests bench pyproject.toml | tar -C "$work/repository" -xf -
  tar -C "$packages" --exclude='*.gguf' --exclude=playwright -cf - . | tar -C "$work/packages" -xf -
  repository="$work/repository" packages="$work/packages"
fi
chmod -R a+rX "$work"
cd "$repository"
as_user env -i PATH="$PATH" HOME="$work/home" LANG=C.UTF-8 PYTHONDONTWRITEBYTECODE=1 HYPOTHESIS_STORAGE_DIRECTORY="$work/examples" \
  LD_LIBRARY_PATH="${LD_LIBRARY_PATH:-}" PYTHONPATH="$repository/src:$packages" \
  "$python" -m pytest "${options[@]}" "${tests[@]}"
