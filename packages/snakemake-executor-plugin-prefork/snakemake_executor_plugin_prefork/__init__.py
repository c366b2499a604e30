"""The local executor, but Python scripts run in children forked from a warm process.

All of Snakemake's local executor stays: its threads, the head of a script, its file, the benchmark,
errors. Only where it would start `bash -c "python SCRIPT"`, a child is forked from a process that
has imported the modules named by `--prefork-preload`. Everything else runs as it does there:
environments, containers, shell prefixes, `shell:`, `run:`, notebooks, shadow folders, other languages.
"""

import os
import subprocess
import sys
import threading
from dataclasses import dataclass, field

from snakemake_interface_executor_plugins.settings import ExecutorSettingsBase

from . import parts
from .client import ChildLost, Interrupted, Used, Zygote, ZygoteFailed

common_settings = parts.local.common_settings

# Each holds what it has imported. Jobs with one more number of threads run as by `local`.
MOST_ZYGOTES = 4
# Imports take the time of one job without them, so that few jobs gain nothing.
FEWEST_SCRIPTS = 3


@dataclass
class ExecutorSettings(ExecutorSettingsBase):
    preload: str = field(
        default="",
        metadata={
            "help": "Modules that most Python scripts import, separated by commas: scripts run in "
            "processes that have them already. A rule names others by the resource "
            "`prefork_preload`. On Linux alone; elsewhere, jobs run as by the executor `local`."
        },
    )


class Executor(parts.local.Executor):
    def __post_init__(self) -> None:
        super().__post_init__()
        self._preload = self.workflow.executor_settings.preload
        self._lock = threading.Lock()
        self._zygotes: dict[tuple[object, ...], Zygote] = {}
        scripts = sum(
            bool(job.is_script) and str(job.rule.script).endswith(".py")
            for job in self.dag.needrun_jobs()
        )
        # A job of its own process, as one in a shadow folder, is alone.
        self._forks = (
            sys.platform == "linux"
            and not self.workflow.subprocess_exec
            and scripts >= FEWEST_SCRIPTS
        )
        if self._forks and (why := parts.why_it_does_not_fit()):
            self._go_on_without(why)

    def _go_on_without(self, why: str) -> None:
        """Say once why jobs run as by the local executor."""
        with self._lock:
            if self._forks:
                parts.logger.warning(f"prefork: {why}; jobs run as by the local executor.")
            self._forks = False

    def cached_or_run(self, job, run_func, *args):
        def run(*args):
            with parts.scripts_run_by(self._run):
                run_func(*args)

        super().cached_or_run(job, run, *args)

    def shutdown(self) -> None:
        super().shutdown()
        self._end()

    def cancel(self) -> None:
        super().cancel()
        self._end()

    def _end(self) -> None:
        with self._lock:
            for zygote in self._zygotes.values():
                zygote.close()
            self._zygotes.clear()

    def _zygote(self, script, environment: dict[str, str]) -> Zygote | None:
        """Return what a script forks from: modules that were imported for as many threads.

        A variable that the run changes meanwhile reaches scripts, not what has been imported.
        """
        preload = str(script.resources.get("prefork_preload") or self._preload)
        names = [name.strip() for name in preload.split(",") if name.strip()]
        key = (script.threads, *names)
        with self._lock:
            if key not in self._zygotes and len(self._zygotes) < MOST_ZYGOTES:
                paths = parts.get_snakemake_searchpaths()
                self._zygotes[key] = Zygote(names, paths, environment)
            return self._zygotes.get(key)

    def _run(self, script, fname: str) -> bool | Exception:
        """Run a script in a child; return an error, or False if the local executor should run it."""
        if not (self._forks and parts.is_plain(script)):
            return False
        # In a shadow folder this is the folder.
        folder = os.getcwd()
        environment = parts.environment_of(script, folder)
        try:
            zygote = self._zygote(script, environment)
            child = zygote and zygote.fork()
        except ZygoteFailed as error:
            self._go_on_without(str(error))
            return False
        except Interrupted as error:
            return subprocess.CalledProcessError(error.code, parts.command_of(fname))
        if child is None:
            return False
        request = {"script": fname, "environment": environment, "folder": folder}
        try:
            if script.bench_record is None:
                code, _ = child.run(request)
            else:
                with parts.benchmarked(child.pid, script.bench_record):
                    code, used = child.run(request)
                _correct(script.bench_record, used)
        except ChildLost as error:
            self._go_on_without("the process to fork from was killed")
            return error.with_traceback(None)
        return subprocess.CalledProcessError(code, parts.command_of(fname)) if code else True


def _correct(record, used: Used) -> None:
    """Write what the kernel has counted: samples miss all of a short job but its beginning."""
    if used.seconds > record.cpu_time:
        record.cpu_time, record.cpu_usage = used.seconds, 100 * used.seconds
    record.max_rss = max(record.max_rss or 0, used.megabytes)
