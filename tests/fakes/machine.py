"""A machine for the set-up scripts: a copy of them in a folder with a space, and a PATH whose python, apt-get and sudo are fakes.

Each fake command writes its call into a log and does only what the scripts rely on.
"""

import os
import shutil
import signal
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
_PATIENCE_S = 20
REAL_COMMANDS = (
    "awk",
    "basename",
    "bash",
    "cat",
    "chmod",
    "cp",
    "dirname",
    "env",
    "flock",
    "grep",
    "mkdir",
    "readlink",
    "rm",
    "sed",
    "sha256sum",
    "tail",
    "touch",
)

PYTHON = """#!/bin/bash
# A Python whose version is $FAKE_PYTHON; its venv is a copy of itself; its pip fails as $FAKE_PIP says.
case "$*" in
    *version_info*) [ "${FAKE_PYTHON:-3.12.1}" = 3.9.2 ] && echo False || echo True ;;
    -V) echo "Python ${FAKE_PYTHON:-3.12.1}" ;;
    "-m venv "*) mkdir -p "$3/bin" && cp "$0" "$3/bin/python" && echo venv >>"$CALLS" ;;
    *"-m pip "*--report*) echo '{"url": "torch-2.13.0+cpu.whl"}' ;;
    *"-m pip "*-e\\ *)
        printf '#!/bin/bash\\necho "serving in $PWD: $*"\\n' >"${0%/*}/antiphon"
        chmod +x "${0%/*}/antiphon"
        echo project >>"$CALLS" ;;
    *"-m pip "*" -r "*)
        echo "pip ${*: -1}" >>"$CALLS"
        echo "Collecting torch==2.13.0"
        echo "  Downloading torch-2.13.0+cpu-cp312-cp312-manylinux_2_28_x86_64.whl (190.2 MB)"
        echo "  Downloading yarl-1.25.1-cp312-cp312-manylinux_2_28_x86_64.whl (365 kB)"
        case "${FAKE_PIP:-}" in
            fail) echo "ERROR: no space left" >&2; exit 1 ;;
            interrupt) kill -INT $PPID; exit 130 ;;
            wait) [[ $* != *cpu.txt ]] || cat "$FAKE_PIPE" >/dev/null ;;
        esac ;;
    *engines.weights*) echo weights >>"$CALLS" ;;
    *importlib.metadata*) exit 1 ;;
esac
"""


class Machine:
    """`serve` runs the copied deploy/serve from another folder; `calls` are what that asked the fakes to do."""

    def __init__(self, folder: Path) -> None:
        self.project = folder / "a project"
        self.elsewhere = folder / "elsewhere"
        self.commands = folder / "bin"
        self._log = folder / "calls"
        self.environment = {"PATH": str(self.commands), "CALLS": str(self._log), "HOME": str(folder), "ANTIPHON_DEVICE": "cpu"}
        for made in (self.project, self.elsewhere, self.commands):
            made.mkdir(parents=True)
        shutil.copytree(ROOT / "deploy", self.project / "deploy")
        shutil.copy(ROOT / "pyproject.toml", self.project)
        for name in REAL_COMMANDS:
            self.commands.joinpath(name).symlink_to(shutil.which(name) or f"/usr/bin/{name}")
        self.command("python3", PYTHON)
        self.command("uname", "#!/bin/bash\necho Linux x86_64\n")
        self.command("id", "#!/bin/bash\necho 1000\n")
        self.command("espeak-ng", "#!/bin/bash\n")

    def command(self, name: str, script: str) -> None:
        path = self.commands / name
        path.write_text(script)
        path.chmod(0o755)

    def start(self, *options: str, **environment: str) -> subprocess.Popen[str]:
        return self._start([str(self.project / "deploy" / "serve"), *options], environment)

    def _start(self, command: list[str], environment: dict[str, str]) -> subprocess.Popen[str]:
        return subprocess.Popen(
            command,
            cwd=self.elsewhere,
            env=self.environment | environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
            preexec_fn=_as_in_a_terminal,
        )

    def serve(self, *options: str, **environment: str) -> tuple[int, str]:
        """Exit status and all that was said."""
        return self.finish(self.start(*options, **environment))

    def set_up_tests(self, **environment: str) -> tuple[int, str]:
        """As tests/run does before anything else."""
        script = 'set -euo pipefail; source "$1"; set_up_server; set_up_tests'
        return self.finish(self._start(["bash", "-c", script, "_", str(self.project / "deploy" / "setup.sh")], environment))

    def finish(self, process: subprocess.Popen[str]) -> tuple[int, str]:
        """Exit status and what it still had to say; a process that hangs is killed with all that it started."""
        try:
            said, _ = process.communicate(timeout=_PATIENCE_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            raise
        return process.returncode, said

    def calls(self) -> list[str]:
        """Since the last look."""
        lines = self._log.read_text().splitlines() if self._log.exists() else []
        self._log.unlink(missing_ok=True)
        return [line.replace(f"{self.project}{os.sep}", "") for line in lines]


def _as_in_a_terminal() -> None:
    """Tests that run in the background ignore SIGINT, and what they start would, too."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
