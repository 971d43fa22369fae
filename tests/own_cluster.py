"""Ray as spie starts it, and what its ports answer to a stranger; for test_ray.py, as a process of its own.

Prints one JSON object: the addresses on which processes of this session listen, and the answers on their ports.
"""

import http.client
import json
import os
import sys
from pathlib import Path

import spie
from spie.runs.backends import execute
from spie.runs.run import Run
from spie.runs.store import Store

# One call of each service that Ray's processes offer, with which a stranger could read or run something
CALLS = (
    "NodeInfoGcsService/GetAllNodeInfo",
    "NodeManagerService/GetNodeStats",
    "ObjectManagerService/Pull",
    "CoreWorkerService/PushTask",
)
LISTENS = "0A"  # the state in /proc/net/tcp


def listening() -> list[tuple[str, int]]:
    """Host and port of every socket on which a process of this session listens."""
    sockets = {}
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == LISTENS:
                host, port = fields[1].split(":")
                sockets[f"socket:[{fields[9]}]"] = (host, int(port, 16))
    mine = os.getsid(0)
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if os.getsid(int(process.name)) == mine:
                found |= {
                    sockets[link] for file in (process / "fd").iterdir() if (link := os.readlink(file)) in sockets
                }
        except OSError:  # it has ended
            continue
    return sorted(found)


def answers(port: int) -> list[str]:
    """What a client without the token hears on a port: of HTTP a status, of gRPC one for each call."""
    import grpc

    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("POST", "/get_or_create_runtime_env", b"")
        return [str(connection.getresponse().status)]
    except (http.client.HTTPException, OSError):
        pass  # gRPC
    said = []
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        for call in CALLS:
            try:
                channel.unary_unary(f"/ray.rpc.{call}")(b"", timeout=5)
                said.append("OK")
            except grpc.RpcError as error:
                said.append(error.code().name)
    return said


def use_ray_before() -> None:
    """What a program that uses Ray itself leaves behind: Ray imported, and a token of the program's in its memory."""
    os.environ["RAY_AUTH_TOKEN"] = "0" * 64
    import ray

    loader = ray._raylet.AuthenticationTokenLoader.instance()
    assert loader.has_token(ignore_auth_mode=True)


def main(folder: Path) -> None:
    use_ray_before()
    seen: dict[str, object] = {}

    def look(run: Run, share: float) -> None:
        if not seen:
            sockets = listening()
            seen["hosts"] = [host for host, _ in sockets]
            seen["answers"] = [answers(port) for _, port in sockets]

    runs = [
        Run("riverswim", "", spie.Sarsa(reward="none", alpha=alpha), spie.riverswim(), 500, 4) for alpha in (0.1, 0.2)
    ]
    with Store(folder / "ray.db") as store:
        for done in execute(runs, store, "ray", progress=look):
            look(done, 1.0)
    (folder / "seen.json").write_text(json.dumps(seen))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
