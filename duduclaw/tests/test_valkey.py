"""The embedded Valkey: its socket fits whatever the state directory is called, and every reader agrees on it."""

import os
import shutil
from pathlib import Path

import pytest

from duduclaw.lib import valkey
from tests.stack import clean_env, manage, start_valkey

LONG = "a-directory-with-a-rather-long-name/" * 4


def test_a_short_home_holds_its_own_socket(home: Path) -> None:
    assert valkey.socket_path(home) == home / "valkey.sock"
    assert not (home / "valkey-socket").exists()


@pytest.fixture
def far_home(home: Path) -> Path:
    """A state directory whose socket would be too long for the kernel."""
    path = home / LONG
    path.mkdir(parents=True)
    return path


def test_a_long_home_names_the_private_directory_of_its_socket(far_home: Path) -> None:
    path = valkey.socket_path(far_home)
    assert len(os.fsencode(path)) <= valkey.LONGEST_SOCKET
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert (far_home / "valkey-socket").read_text(encoding="utf-8").strip() == str(path.parent)
    assert valkey.socket_path(far_home) == path
    path.parent.rmdir()


def test_a_directory_that_others_can_enter_or_that_is_gone_is_not_used_again(far_home: Path) -> None:
    first = valkey.socket_path(far_home).parent
    first.chmod(0o755)
    second = valkey.socket_path(far_home).parent
    assert second != first
    second.rmdir()
    third = valkey.socket_path(far_home).parent
    assert third not in (first, second)
    first.rmdir()
    third.rmdir()


def test_settings_and_server_agree_on_the_far_socket(far_home: Path) -> None:
    with start_valkey(far_home):
        path = valkey.socket_path(far_home)
        code = "from django.conf import settings; print(settings.REDIS_URL, settings.CELERY_BROKER_URL)"
        said = manage(clean_env(far_home), "shell", "--no-imports", "-c", code).stdout.split()
        assert said == [f"unix://{path}?db=0", f"redis+socket://{path}?virtual_host=0"]
    shutil.rmtree(path.parent)


def test_one_address_in_two_spellings() -> None:
    assert valkey.broker_url("unix:///run/v.sock?db=3") == "redis+socket:///run/v.sock?virtual_host=3"
    assert valkey.broker_url("redis://host:6379/1") == "redis://host:6379/1"
    assert valkey.layer_url("unix:///run/v.sock?db=3") == "unix:///run/v.sock?db=3"
