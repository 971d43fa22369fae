"""Public datasets of behaviour: read from a folder, or downloaded at the user's request. None comes with spie.

rats = spie.data.tartarus()                       # from $SPIE_DATA/tartarus, else ../shared/data/tartarus
mice = spie.data.labyrinth("my/copy", who="rewarded")
"""

import hashlib
import http.client
import itertools
import os
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from spie.behaviour.mazes import cell_maze, graph_maze
from spie.behaviour.paths import Paths
from spie.behaviour.reading import Trial
from spie.errors import unknown
from spie.files import write_whole

MOST_BYTES = 50_000_000  # of one file; those known here are far below


class File(NamedTuple):
    """A file of a dataset."""

    sha256: str
    path: str = ""  # at the source, below the dataset's `base`; empty: the source has it in another form


@dataclass(frozen=True)
class Dataset:
    """A public dataset: what it is, whose, and its files with their checksums."""

    name: str
    title: str
    licence: str
    source: str
    files: Mapping[str, File] = field(default_factory=dict)
    base: str = ""  # address that the files' paths continue
    groups: tuple[str, ...] = ()  # of its subjects, as `who` names them; the first is read where none is named


DATASETS = {
    "tartarus": Dataset(
        "tartarus",
        "Rats and people on a grid whose holes move: 25 mazes, one goal (de Cothi et al. 2022, Current Biology)",
        "none stated: for your own use",
        "https://github.com/willdecothi/Predictive-maps-in-rats-and-humans",
        {
            "mazes.mat": File(
                "7794b3e90a85c9b4b4db805a5c813b76970448903258041b605999ccfa4ccbdd",
                "Standard Functions (add to path)/mazes.mat",
            ),
            "rats.mat": File(
                "14dca51222c483f99d9f8a0ea8a6f517282632484a53fbf98f1913eab05fb460", "Analyses/Rats/rat.mat"
            ),
            "train_T.mat": File(
                "bf3899b492869a7159826f993293388bacc9b8df6052bcfc21deee9e04824ede", "Modelling/SR/train_T.mat"
            ),
            "rats_sr_params.mat": File(
                "4a0803129108ced07acaeb7dc7e2a14e0f5f66429525f31fffae364ae3298b8a", "Modelling/SR/rat_params.mat"
            ),
        },
        "https://raw.githubusercontent.com/willdecothi/Predictive-maps-in-rats-and-humans/0d1d4b33f96658010797088a7ffaacfc2a71af54/",
        groups=("rats", "people"),
    ),
    "labyrinth": Dataset(
        "labyrinth",
        "Mice in a labyrinth, a binary tree of 127 nodes, one night each (Rosenberg et al. 2021, eLife)",
        "MIT (the recordings)",
        "https://github.com/markusmeister/Rosenberg-2021-Repository",
        {
            "B1.tsv": File("159a6771533077899b65a6c494015c5a02cfef6519f9bfca9073b4c29e81117f"),
            "B2.tsv": File("8b93eb2983c9eec8e1023cb94ea3b2e3c3f5a93ca4e8f6b0e59b3f203fdf1f52"),
            "B3.tsv": File("18e3ae9930242fd70c15b1d79e51892030ddef34cfd8dcb54b756367c6ed00da"),
            "B5.tsv": File("9fa3c543ce3ee4ceeea97364e8d4231caa9dcb89a4b0426b24041b078ef3bdee"),
            "B6.tsv": File("32bd17a2ac3d78cc63b481c96e8a55ca76299a5238f2b70b07d0724c5d3075f0"),
            "C1.tsv": File("e4548c4ce5fe676ba333560cb00fde498182474b96298707bd130956ab059b83"),
            "C3.tsv": File("e331cb8e05d9eebaf68b9ac932abc1250a832fcb52e629f91b8c3c1cd2939fbc"),
            "D3.tsv": File("0e5eb950bf4638f0be1e8ddfc5172bd1c0a828f6879305088b62f9289e9aa5b8"),
            "D4.tsv": File("b9bb1d29dc77cb20ac72c0f30c462322b6e0706255fe61e0401ba0ba41075e92"),
        },
        groups=("all", "rewarded", "unrewarded"),
    ),
}


def dataset(name: str) -> Dataset:
    """The dataset known as `name`.

    Raises ValueError for names that are not there.

    >>> spie.data.dataset("labyrinth").name
    'labyrinth'
    """
    if name not in DATASETS:
        raise unknown("dataset", name, DATASETS)
    return DATASETS[name]


def data_folder(name: str, folder: str | os.PathLike[str] | None = None) -> Path:
    """The folder of the dataset `name`: `folder` as given, else below $SPIE_DATA, else below ../shared/data."""
    if folder is None:
        folder = Path(os.environ.get("SPIE_DATA") or Path("..") / "shared" / "data") / name
    folder = Path(folder)
    if not folder.is_dir():
        raise ValueError(
            f"no folder {folder}; put the files of {name} there ({', '.join(dataset(name).files)}; "
            f"source: {dataset(name).source}), or name a folder, or set SPIE_DATA"
        )
    return folder


def check_files(name: str, folder: Path) -> dict[str, str]:
    """Each file of the dataset `name` as it is found in `folder`: "as known", "differs" or "missing"."""
    found = {}
    for file, known in dataset(name).files.items():
        path = folder / file
        is_same = path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == known.sha256
        found[file] = "as known" if is_same else "differs" if path.is_file() else "missing"
    return found


def download(name: str, folder: str | os.PathLike[str]) -> list[Path]:
    """Download the files of dataset `name` that are not yet in `folder`: HTTPS only, checked, at most 50 MB each."""
    known, folder = dataset(name), Path(folder)
    if not known.base:
        raise ValueError(
            f"the files of {name} cannot be downloaded one by one; make them from {known.source} (a line `step node` "
            f"for each move, nodes 0-127) and put {', '.join(known.files)} into {folder}"
        )
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file; name a folder")
    written = []
    for file, status in check_files(name, folder).items():
        if status == "as known":
            continue
        if Path(file).name != file:
            raise ValueError(f'"{file}" would lie outside of {folder}')
        data = _fetch(known.base + urllib.parse.quote(known.files[file].path), file, folder)
        if (digest := hashlib.sha256(data).hexdigest()) != known.files[file].sha256:
            raise ValueError(
                f"{file} has checksum {digest[:12]}..., not {known.files[file].sha256[:12]}...: not written"
            )
        folder.mkdir(parents=True, exist_ok=True)  # not before there is something to put into it
        write_whole(folder / file, data)
        written.append(folder / file)
    return written


class _HttpsOnly(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        if not newurl.startswith("https://"):
            fp.close()
            raise ValueError(f"{req.full_url} leads to {newurl}, which is not HTTPS")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _fetch(address: str, file: str, folder: Path) -> bytes:
    if not address.startswith("https://"):
        raise ValueError(f"{address} is not HTTPS")
    try:
        with urllib.request.build_opener(_HttpsOnly).open(address, timeout=30) as answer:
            data: bytes = answer.read(MOST_BYTES + 1)
    except (OSError, http.client.HTTPException) as error:  # an URLError is an OSError
        reason = error.reason if isinstance(error, urllib.error.URLError) else f"{type(error).__name__} {error}".strip()
        if isinstance(error, urllib.error.HTTPError):
            error.close()
        raise ValueError(
            f"{file} cannot be downloaded ({reason}); get {address} and save it as {folder / file}"
        ) from None
    if len(data) > MOST_BYTES:
        raise ValueError(f"{file} is larger than {MOST_BYTES:,} bytes: not written")
    return data


# The datasets themselves


def read(name: str, folder: str | os.PathLike[str] | None = None, who: str | None = None) -> Paths:
    """The paths of the dataset `name`.

    folder: where the files are, as for `data_folder`. who: a group of its subjects, such as "rewarded", or subjects by
    name, such as "B1,B3"; None: its first group. Raises ValueError for names that are not there.
    """
    groups = dataset(name).groups
    readers: dict[str, Callable[..., Paths]] = {"tartarus": tartarus, "labyrinth": labyrinth}
    if who is None or who in groups:
        return readers[name](folder, who or groups[0])
    everybody = readers[name](folder)
    try:
        return everybody.only(who)
    except ValueError as error:
        raise ValueError(f"{error}; or a group: {', '.join(groups)}") from None


def _mat(folder: Path, file: str, key: str) -> Any:
    from scipy.io import loadmat

    path = folder / file
    if not path.is_file():
        raise ValueError(f"no {file} in {folder}; it is a file of {DATASETS['tartarus'].source}")
    try:
        return loadmat(path)[key]
    except (KeyError, ValueError, TypeError, NotImplementedError) as error:
        raise ValueError(f"{path} is no MATLAB 5 file that holds `{key}`") from error


def tartarus(folder: str | os.PathLike[str] | None = None, who: Literal["rats", "people"] = "rats") -> Paths:
    """The Tartarus maze: 25 mazes of ten trials, learning carries on throughout; a session is a maze.

    A path is cut at the first arrival at the goal. The first state of a trial is given, not predicted. `start_matrix`
    is the chain of the training phase; `published` are the SR's learning rate and discount of each rat.

    folder: where the files are, as for `data_folder`. who: rats or people. Raises ValueError where files are missing.
    """
    if who not in DATASETS["tartarus"].groups:
        raise unknown("group of subjects", who, DATASETS["tartarus"].groups)
    where = data_folder("tartarus", folder)
    letters = [np.asarray(maze) for maze in _mat(where, "mazes.mat", "mazes").reshape(-1)]
    recorded = _recorded(where, who)
    goal = 33  # state 34 of 1-100
    mazes = []
    for i, cells in enumerate(letters):
        starts = np.flatnonzero(cells.reshape(-1) > 0)
        mazes.append(cell_maze(f"maze {i + 1}", cells != -1, goal, [int(s) for s in starts if s != goal]))
    trials = []
    for i, session, trial in np.ndindex(recorded.shape):
        states = np.asarray(recorded[i, session, trial]).astype(np.int32).reshape(-1) - 1
        ends = np.flatnonzero(states == goal)
        states = states[: ends[0] + 1] if len(ends) else states
        if len(states) > 1:
            name = f"{'rat' if who == 'rats' else 'person'} {i + 1}"
            unknown_actions = np.full(len(states) - 1, -1, np.int32)
            trials.append(Trial(name, str(session + 1), str(trial + 1), session, states, unknown_actions))
    published: dict[str, Any] = {}
    if who == "rats" and (where / "rats_sr_params.mat").is_file():
        alpha, gamma = np.asarray(_mat(where, "rats_sr_params.mat", "ppt_params")).T
        published = {"alpha": alpha.copy(), "gamma": gamma.copy()}
    chain = np.asarray(_mat(where, "train_T.mat", "T"), np.float64)
    return Paths(tuple(mazes), tuple(trials), goal=goal, start_matrix=chain, published=published)


def _recorded(folder: Path, who: str) -> Any:
    """Lists of states [subjects, mazes, trials]: `rat` of rats.mat, or the one such array of humans.mat."""
    if who == "rats":
        return _mat(folder, "rats.mat", "rat")
    from scipy.io import loadmat

    path = folder / "humans.mat"
    if not path.is_file():
        raise ValueError(f"no humans.mat in {folder}; it is a file of {DATASETS['tartarus'].source}")
    arrays = [
        value for key, value in loadmat(path).items() if isinstance(value, np.ndarray) and not key.startswith("_")
    ]
    lists = [value for value in arrays if value.dtype == object and value.ndim == 3]
    if len(lists) != 1:
        raise ValueError(f"{path} holds {len(lists)} arrays of paths [subjects, mazes, trials], not one")
    return lists[0]


WATER = 117  # the end at which the rewarded mice were given water
REWARDED = ("B1", "B2", "B3", "C1", "C3")


def labyrinth(
    folder: str | os.PathLike[str] | None = None, who: Literal["all", "rewarded", "unrewarded"] = "all"
) -> Paths:
    """Mice in a labyrinth: a binary tree of nodes 1-127 and the home cage, 0. A session is a bout from home to home.

    Actions: 0 towards home, 1 and 2 to the two children. The water is a goal only where all subjects can find it,
    who="rewarded"; it does not end a bout, and when it paid is not recorded.

    folder: where the files are, as for `data_folder`. who: which mice. Raises ValueError where files are missing.
    """
    groups = {"all": None, "rewarded": True, "unrewarded": False}
    if who not in groups:
        raise unknown("group of subjects", who, groups)
    where = data_folder("labyrinth", folder)
    files = [path for path in sorted(where.glob("*.tsv")) if groups[who] in (None, path.stem in REWARDED)]
    if not files:
        raise ValueError(f"no .tsv files of {who} mice in {where}; they are made from {DATASETS['labyrinth'].source}")
    neighbours = [[1]] + [[k // 2, 2 * k, 2 * k + 1] if k < 64 else [k // 2] for k in range(1, 128)]
    tree = graph_maze("labyrinth", neighbours)
    trials = []
    for path in files:
        try:
            nodes = np.loadtxt(path, dtype=np.int32, ndmin=2)[:, 1]
        except (ValueError, IndexError) as error:
            raise ValueError(f"{path} is not lines of `step node`") from error
        homes = np.unique(np.append(np.flatnonzero(nodes == 0), [0, len(nodes) - 1])).tolist()
        for bout, (a, b) in enumerate(itertools.pairwise(homes), start=1):
            unknown_actions = np.full(b - a, -1, np.int32)
            trials.append(Trial(path.stem, str(bout), "1", 0, nodes[a : b + 1], unknown_actions))
    return Paths((tree,), tuple(trials), goal=WATER if who == "rewarded" else None)
