"""Public datasets: read as they are described, and fetched with care. Those of others are looked for, never shipped."""

import hashlib
import http.client
import http.server
import io
import os
import shutil
import ssl
import subprocess
import threading
from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat

import spie
from spie import data

HOME = Path(os.environ.get("SPIE_DATA") or Path(__file__).parents[3] / "shared" / "data")
needs_data = pytest.mark.skipif(not HOME.is_dir(), reason="the public data is not here; see spie data")


@needs_data
def test_tartarus_holds_the_steps_that_its_authors_count():
    rats = spie.data.tartarus(HOME / "tartarus", who="rats")
    assert len(rats.subjects) == 9
    assert len(rats.mazes) == 25
    assert sum(len(trial.actions) for trial in rats.trials) == 48_361
    assert sum(map(rats.chance, rats.subjects)) == pytest.approx(-55_451.580430, rel=1e-8)
    assert rats.published["alpha"].shape == rats.published["gamma"].shape == (9,)
    np.testing.assert_allclose(rats.start_matrix.sum(axis=1), np.arange(100) != rats.goal)  # the goal ends a trial
    assert not any((trial.states[:-1] == rats.goal).any() for trial in rats.trials)


@needs_data
def test_the_labyrinth_is_a_tree_that_mice_walk_from_home_to_home():
    mice = spie.data.labyrinth(HOME / "labyrinth")
    assert sum(len(trial.actions) for trial in mice.trials) == 124_519
    assert all(trial.states[0] == 0 for trial in mice.trials)
    assert mice.goal is None
    assert spie.data.labyrinth(HOME / "labyrinth", who="rewarded").goal == data.WATER


@needs_data
def test_the_checksums_are_those_of_the_files():
    for name in data.DATASETS:
        assert set(data.check_files(name, HOME / name).values()) == {"as known"}


def made_up(folder, who):
    """Files of the form of Tartarus, two subjects in two mazes."""
    mazes, paths = np.empty((1, 2), object), np.empty((2, 2, 1), object)
    for i in range(2):
        mazes[0, i] = np.zeros((10, 10))
        mazes[0, i][3, 4 + i] = -1
        for j in range(2):
            paths[j, i, 0] = np.array([[1, 2, 3, 13, 23, 33, 34, 33]]) if i == 0 else np.zeros((0, 0))
    paths[1, 1, 0] = np.array([[5, 4, 14]])
    savemat(folder / "mazes.mat", {"mazes": mazes})
    savemat(folder / "train_T.mat", {"T": np.eye(100)})
    savemat(folder / f"{who}.mat", {"rat" if who == "rats" else "hum": paths, "other": np.zeros(3)})


def test_people_are_read_from_a_file_of_the_same_form(tmp_path):
    made_up(tmp_path, "humans")
    people = spie.data.tartarus(tmp_path, who="people")
    assert people.subjects == ("person 1", "person 2")
    assert people.of("person 1")[0].states.tolist() == [0, 1, 2, 12, 22, 32, 33]  # cut at the goal, from 0
    assert len(people.of("person 1")) == 1  # a missing trial is no trial
    assert people.of("person 2")[1].maze == 1
    assert people.published == {}


def test_what_is_missing_is_named_with_where_to_put_it(tmp_path, monkeypatch):
    made_up(tmp_path, "rats")
    with pytest.raises(ValueError, match=r"no humans.mat in"):
        spie.data.tartarus(tmp_path, who="people")
    monkeypatch.setenv("SPIE_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(ValueError, match=r"no folder .*nowhere/tartarus; put the files of tartarus there"):
        spie.data.tartarus()
    with pytest.raises(ValueError, match="no dataset"):
        data.dataset("atlantis")


def test_subjects_are_chosen_by_group_or_by_name(tmp_path):
    made_up(tmp_path, "rats")
    assert data.read("tartarus", tmp_path).subjects == ("rat 1", "rat 2")
    assert data.read("tartarus", tmp_path, "rats").subjects == ("rat 1", "rat 2")
    assert data.read("tartarus", tmp_path, " rat 2 ,rat 2").subjects == ("rat 2",)
    with pytest.raises(ValueError, match=r"^no subject rat 3; there are: rat 1, rat 2; or a group: rats, people$"):
        data.read("tartarus", tmp_path, "rat 1,rat 3")
    with pytest.raises(ValueError, match=r"^no subject is named; there are: rat 1, rat 2; or a group"):
        data.read("tartarus", tmp_path, ",")


def test_water_is_a_goal_for_the_mice_who_were_given_it(tmp_path):
    for mouse in ("B1", "B5"):
        (tmp_path / f"{mouse}.tsv").write_text("0 0\n1 1\n2 2\n3 1\n4 0\n")
    assert data.read("labyrinth", tmp_path).subjects == ("B1", "B5")
    assert data.read("labyrinth", tmp_path, "rewarded").subjects == ("B1",)
    assert data.read("labyrinth", tmp_path, "rewarded").goal == data.WATER
    assert data.read("labyrinth", tmp_path, "B1").goal is None  # as in "all", of whom not all know it


def fetched(monkeypatch, content, address="https://example.org/"):
    """A dataset of one file whose source gives this content."""
    known = data.Dataset(
        "toy", "", "", "", {"a.bin": data.File(hashlib.sha256(b"right").hexdigest(), "x y/a")}, address
    )
    monkeypatch.setitem(data.DATASETS, "toy", known)

    class Answer:
        def open(self, address, timeout):
            assert address == "https://example.org/x%20y/a"
            return self

        def __enter__(self):
            return self

        def __exit__(self, *_):
            return None

        def read(self, n):
            return content[:n]

    monkeypatch.setattr(data.urllib.request, "build_opener", lambda *_: Answer())


def test_a_download_is_checked_before_it_is_written(tmp_path, monkeypatch):
    fetched(monkeypatch, b"right")
    assert data.download("toy", tmp_path) == [tmp_path / "a.bin"]
    assert data.download("toy", tmp_path) == []  # it is there
    (tmp_path / "a.bin").unlink()
    fetched(monkeypatch, b"wrong")
    with pytest.raises(ValueError, match="checksum"):
        data.download("toy", tmp_path)
    monkeypatch.setattr(data, "MOST_BYTES", 3)
    with pytest.raises(ValueError, match="larger than"):
        data.download("toy", tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_only_https_is_followed_and_only_into_the_folder(tmp_path, monkeypatch):
    fetched(monkeypatch, b"right", "http://example.org/")
    with pytest.raises(ValueError, match="not HTTPS"):
        data.download("toy", tmp_path)
    request = data.urllib.request.Request("https://example.org/a")
    with pytest.raises(ValueError, match="not HTTPS"):
        data._HttpsOnly().redirect_request(request, io.BytesIO(), 302, "", {}, "http://example.org/b")
    known = data.Dataset("toy", "", "", "", {"../a": data.File("0", "a")}, "https://example.org/")
    monkeypatch.setitem(data.DATASETS, "toy", known)
    with pytest.raises(ValueError, match="outside"):
        data.download("toy", tmp_path)


@pytest.mark.parametrize("error", [data.urllib.error.URLError("no network"), http.client.BadStatusLine("no network")])
def test_without_a_network_one_line_says_where_to_put_the_file(tmp_path, monkeypatch, error):
    def refuse(*_, **__):
        raise error

    class Opener:
        open = refuse

    monkeypatch.setattr(data.urllib.request, "build_opener", lambda *_: Opener())
    with pytest.raises(
        ValueError, match=r"mazes.mat cannot be downloaded \(.*no network\); get https.* and save it as .*mazes.mat"
    ):
        data.download("tartarus", tmp_path / "new")
    assert list(tmp_path.iterdir()) == []  # no folder without files
    with pytest.raises(ValueError, match="cannot be downloaded one by one"):
        data.download("labyrinth", tmp_path)


class Site(http.server.BaseHTTPRequestHandler):
    """What a site may answer, by the path that is asked for."""

    def do_GET(self):
        self.send_response({"/x%20y/a": 200, "/wrong": 200, "/short": 200, "/away": 302}.get(self.path, 404))
        if self.path == "/away":
            self.send_header("Location", "http://localhost/x")
        self.send_header("Content-Length", "500" if self.path == "/short" else "5")
        self.end_headers()
        self.wfile.write({"/wrong": b"wrong", "/short": b"rig"}.get(self.path, b"right"))

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A site with HTTPS on this machine: its address, and the certificate that whoever trusts it must know."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl makes the certificate")
    folder = tmp_path_factory.mktemp("site")
    words = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost"
    subprocess.run(
        [*words.split(), "-addext", "subjectAltName=DNS:localhost", "-keyout", "key.pem", "-out", "cert.pem"],
        cwd=folder,
        check=True,
        capture_output=True,
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    with http.server.ThreadingHTTPServer(("localhost", 0), Site) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"https://localhost:{server.server_port}/", folder / "cert.pem"
        server.shutdown()


SITE = {
    "x y/a": None,
    "wrong": r"a.bin has checksum .*: not written",
    "missing": r"a.bin cannot be downloaded \(Not Found\); get https://localhost:.*/missing and save it as .*a.bin",
    "away": r"leads to http://localhost/x, which is not HTTPS",
    "short": r"a.bin has checksum .*: not written",  # the connection ends before the file
}


@pytest.mark.parametrize("path", SITE)
def test_a_download_from_a_real_site(site, tmp_path, monkeypatch, path):
    address, certificate = site
    known = data.Dataset("toy", "", "", "", {"a.bin": data.File(hashlib.sha256(b"right").hexdigest(), path)}, address)
    monkeypatch.setitem(data.DATASETS, "toy", known)
    monkeypatch.setenv("no_proxy", "localhost")
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    if SITE[path] is None:
        assert data.download("toy", tmp_path) == [tmp_path / "a.bin"]
        assert (tmp_path / "a.bin").read_bytes() == b"right"
    else:
        with pytest.raises(ValueError, match=SITE[path]) as error:
            data.download("toy", tmp_path)
        assert "\n" not in str(error.value)
        assert list(tmp_path.iterdir()) == []


def test_a_site_that_nobody_vouches_for_is_not_asked(site, tmp_path, monkeypatch):
    known = data.Dataset("toy", "", "", "", {"a.bin": data.File("0", "x y/a")}, site[0])
    monkeypatch.setitem(data.DATASETS, "toy", known)
    monkeypatch.setenv("no_proxy", "localhost")
    with pytest.raises(ValueError, match=r"a.bin cannot be downloaded \(.*certificate verify failed"):
        data.download("toy", tmp_path)
