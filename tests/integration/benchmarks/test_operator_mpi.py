"""ssh itself reads what the operator gives to the master of a benchmark."""

import base64
import subprocess
from pathlib import Path

from scaletest.benchmarks.documents import benchmark
from scaletest.benchmarks.objects import ssh
from tests.conftest import need


def test_the_master_talks_to_the_servers_of_this_key_alone(tmp_path: Path) -> None:
    need("ssh", "ssh-keygen")
    # given a Secret as a pod has it
    mounted = tmp_path / "mounted"
    mounted.mkdir()
    for name, text in ssh.make_key_pair().items():
        (mounted / name).write_bytes(base64.b64decode(text))
    # when ssh reads what the master has been given
    path = ssh.write_client_config(
        benchmark.read_benchmark({"kind": "MPIPingPong"}), mounted, tmp_path / "ssh"
    )
    done = subprocess.run(
        ["ssh", "-G", "-F", path, "one-worker-1"], capture_output=True, text=True, check=True
    )
    options = dict(line.split(" ", 1) for line in done.stdout.splitlines())
    assert (options["port"], options["stricthostkeychecking"], options["batchmode"]) == (
        "2222",
        "true",
        "yes",
    )
    known = (tmp_path / "ssh" / "known_hosts").read_text("utf-8")
    assert known == "* " + (mounted / ssh.PUBLIC).read_text("utf-8")
    # and expect that ssh-keygen takes the pair for one
    line = ["ssh-keygen", "-y", "-f", str(tmp_path / "ssh" / "key")]
    again = subprocess.run(line, capture_output=True, text=True, check=True).stdout
    assert again.split()[:2] == known.split()[1:]
