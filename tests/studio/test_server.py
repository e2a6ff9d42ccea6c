"""The studio's server ends when nobody is there; its folder is ours alone, and one studio at a time has it."""

import os
import stat
import threading
import time

import pytest

from hedgerow.studio.project import Project
from hedgerow.studio.server import Serving
from refusals import refused

SECONDS = 30


def test_it_ends_when_nobody_is_there(people, capfd):
    serving = Serving(Project(str(people)), idle=0.2)
    served = threading.Thread(target=serving.run)
    served.start()
    served.join(SECONDS)
    assert not served.is_alive()
    said = capfd.readouterr()
    assert "nobody was here" in said.err
    assert serving.gate.address not in said.out + said.err
    Project(str(people)).close()  # and its folder is free


def test_it_does_not_end_while_a_command_is_at_work(people):
    serving = Serving(Project(str(people)), idle=0.2)
    served = threading.Thread(target=serving.run)
    type(serving.studio).at_work, kept = property(lambda studio: True), type(serving.studio).at_work
    try:
        served.start()
        time.sleep(1)
        assert served.is_alive()
    finally:
        type(serving.studio).at_work = kept
    served.join(SECONDS)
    assert not served.is_alive()


def test_one_studio_at_a_time_has_a_folder(people):
    first = Project(str(people))
    with refused("studio-open", "Ctrl-C"):
        Project(str(people))
    first.close()
    Project(str(people)).close()


@pytest.mark.skipif(os.name != "posix", reason="modes and links of POSIX")
def test_what_it_keeps_is_for_its_owner_alone(people):
    project = Project(str(people))
    project.save()
    for path in (project.folder, *project.folder.rglob("*")):
        assert not stat.S_IMODE(path.lstat().st_mode) & 0o077, path
    project.close()


@pytest.mark.skipif(os.name != "posix", reason="modes and links of POSIX")
def test_a_folder_that_others_prepared_is_refused(people, tmp_path):
    folder = tmp_path / "people.studio"
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    folder.symlink_to(elsewhere, target_is_directory=True)
    with refused("not-our-folder", "--project"):
        Project(str(people))
    assert not list(elsewhere.rglob("*.*"))
    folder.unlink()
    folder.mkdir(mode=0o700)
    (folder / "private").symlink_to(elsewhere, target_is_directory=True)
    with refused("not-our-folder"):
        Project(str(people))
    (folder / "private").unlink()
    folder.chmod(0o777)
    with refused("not-our-folder", "chmod go-w"):
        Project(str(people))
    folder.chmod(0o755)
    Project(str(people)).close()
