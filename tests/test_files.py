import csv
import io
import os
import signal
import subprocess
import sys
import time

import pytest

from spie.files import cell_text, csv_text, replacing, write_whole


@pytest.mark.parametrize("data", ["a line\r\nand ünïcode\n", b"\x00\xff\n", ""])
def test_what_is_written_is_in_the_file_and_nothing_else_is_in_the_folder(tmp_path, data):
    write_whole(tmp_path / "file", "what was there before")
    write_whole(tmp_path / "file", data)
    assert (tmp_path / "file").read_bytes() == (data.encode() if isinstance(data, str) else data)
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize("error", [OSError("no space left"), KeyboardInterrupt()])
def test_a_failure_leaves_what_was_there(tmp_path, error):
    write_whole(tmp_path / "file", "old")

    def fail():
        with replacing(tmp_path / "file") as file:
            file.write(b"half of the n")
            raise error

    with pytest.raises(type(error)):
        fail()
    assert (tmp_path / "file").read_text() == "old"
    assert os.listdir(tmp_path) == ["file"]


def test_a_path_that_cannot_be_written_is_noticed_before_the_work(tmp_path):
    begun = []
    with pytest.raises(FileNotFoundError), replacing(tmp_path / "no such folder" / "file"):
        begun.append(True)
    assert begun == []


def test_a_target_that_is_a_folder_is_refused_and_left(tmp_path):
    (tmp_path / "file" / "inner").mkdir(parents=True)
    with pytest.raises(OSError, match="file"):
        write_whole(tmp_path / "file", "x")
    assert os.listdir(tmp_path) == ["file"]
    assert os.listdir(tmp_path / "file") == ["inner"]


def test_a_writer_that_is_killed_leaves_the_old_file_or_the_new(tmp_path):
    file = tmp_path / "file"
    old, new = b"o" * 1_000_000, b"n" * 3_000_000
    program = f"from spie.files import write_whole\nwhile True:\n    write_whole({str(file)!r}, b'n' * 3_000_000)"
    for pause in (0.0, 0.003, 0.01):
        write_whole(file, old)
        process = subprocess.Popen([sys.executable, "-c", program])
        while len(os.listdir(tmp_path)) == 1 and process.poll() is None:
            time.sleep(0.0005)  # until it has begun to write
        time.sleep(pause)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert file.read_bytes() in (old, new)
        for left in tmp_path.glob(".file.*"):
            left.unlink()


def test_two_writers_of_one_file_do_not_mix(tmp_path):
    with replacing(tmp_path / "file") as one, replacing(tmp_path / "file") as other:
        one.write(b"one")
        other.write(b"other")
    assert (tmp_path / "file").read_bytes() == b"one"  # the last one to end
    assert os.listdir(tmp_path) == ["file"]


def test_a_new_file_has_the_permissions_that_the_user_gives_to_files(tmp_path):
    plain = tmp_path / "plain"
    plain.touch()
    write_whole(tmp_path / "whole", "x")
    assert (tmp_path / "whole").stat().st_mode == plain.stat().st_mode


def test_cells_that_a_spreadsheet_would_compute_are_marked_as_texts_and_come_back():
    cells = ["=1+1", "+cmd", "-x", "@a", "\tx", "plain", "-1.5", "a,b", '"', -3, 0.5]
    text = csv_text([cells])
    assert text == '\'=1+1,\'+cmd,\'-x,\'@a,\'\tx,plain,-1.5,"a,b","""",-3,0.5\n'
    (row,) = csv.reader(io.StringIO(text))
    assert [cell_text(cell) for cell in row] == list(map(str, cells))
