"""Write requirements.lock: what constraints.txt names, torch apart, with the hashes of its files: `make lock`.

The hashes are those of all files that the package index has of a version, so that the lock fits every platform that
spie is tested on. torch is left out, because its builds differ by platform and come from several indexes.
"""

import re
import subprocess
import sys
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parents[1]
HEAD = """\
# Written by `make lock` out of constraints.txt: the same versions with the hashes of their files.
# torch is not in it, because its builds differ by platform: `make setup` installs it by its exact version.
"""


def index_address() -> str:
    """The package index that pip asks: as configured, else its own default."""
    said = subprocess.run(
        [sys.executable, "-m", "pip", "config", "get", "global.index-url"], capture_output=True, text=True
    ).stdout.strip()
    if said:
        return said.rstrip("/")
    from pip._internal.models.index import PyPI

    return PyPI.simple_url.rstrip("/")


def hashes(name: str, version: str, address: str) -> list[str]:
    """SHA-256 of every wheel of a version for Pythons that spie runs on, as the index has them."""
    with urllib.request.urlopen(f"{address}/{name}/", timeout=60) as answer:
        page = answer.read().decode()
    files = re.findall(r"([^\"/]+\.whl)#sha256=([0-9a-f]{64})", page)
    return sorted({digest for file, digest in files if _fits(file, name, version)})


def _fits(file: str, name: str, version: str) -> bool:
    """Whether a wheel is of this version, and for CPython 3.11 or later."""
    distribution, of_version, *_, python, abi, _ = file.removesuffix(".whl").split("-")
    alike = [re.sub(r"[-_.]+", "-", each).lower() for each in (distribution, name)]
    if alike[0] != alike[1] or of_version != version:
        return False
    return python.startswith("py") or abi == "abi3" or bool(re.match(r"cp3(1[1-9]|[2-9]\d)", python))


def main() -> None:
    pins = [line.strip() for line in (ROOT / "constraints.txt").read_text().splitlines()]
    locked = [tuple(pin.split("==")) for pin in pins if "==" in pin and not pin.startswith(("#", "torch=="))]
    address = index_address()
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda pin: hashes(*pin, address), locked))
    lines = []
    for (name, version), digests in zip(locked, found, strict=True):
        if not digests:
            sys.exit(f"lock: the index has no wheel of {name} {version}")
        lines.append(" \\\n".join([f"{name}=={version}", *(f"    --hash=sha256:{digest}" for digest in digests)]))
    (ROOT / "requirements.lock").write_text(HEAD + "\n".join(lines) + "\n")
    print(f"requirements.lock: {len(locked)} packages, {sum(map(len, found))} files")


if __name__ == "__main__":
    main()
