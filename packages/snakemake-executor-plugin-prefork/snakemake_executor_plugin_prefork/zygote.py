"""Import modules, then fork a child for each request; started with a socket and what to import."""

import atexit
import ctypes
import gc
import importlib
import io
import json
import os
import pickle
import selectors
import signal
import socket
import struct
import sys
import tempfile
import threading
import types
import weakref
from contextlib import suppress
from importlib.machinery import SourceFileLoader

NUMBER, ENDED = struct.Struct("!q"), struct.Struct("!qdq")
# Signals to the group of a run are for its jobs; this process ends when Snakemake has.
FOR_JOBS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# What the head of every script imports.
OF_HEAD = ("snakemake.logging", "snakemake.iocontainers")
# What would let a library start a thread when it is loaded, and the job needs not.
QUIET = {"JE_ARROW_MALLOC_CONF": "background_thread:false"}
# A job that runs out of memory is larger than what it was forked from; let the kernel see it so.
RATHER_KILL = 100


class Refused(Exception):
    """Why children of this process would not be like new ones."""


def _open_files():
    return len(os.listdir("/proc/self/fd"))


def _threads():
    if len(os.listdir("/proc/self/task")) > 1:
        # Libraries that provide for forks, as OpenBLAS does, end their threads at the first.
        pid = os.fork()
        if pid == 0:
            os._exit(0)
        os.waitpid(pid, 0)
    return len(os.listdir("/proc/self/task"))


def preload(modules, paths, folder):
    """Import; refuse what children would share and new processes have for themselves."""
    os.close(os.pidfd_open(os.getpid()))
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    files = _open_files()
    sys.path.extend(paths)
    tempfile.tempdir = os.environ["TMPDIR"] = folder
    gc.disable()
    for name in (*OF_HEAD, *modules):
        try:
            importlib.import_module(name)
        except Exception as error:
            raise Refused(f"cannot import {name} ({type(error).__name__}: {error})") from error
        if _threads() > 1:
            raise Refused(f"{name} starts threads when it is imported")
        if _open_files() > files:
            raise Refused(f"{name} leaves a file open when it is imported")
        if os.listdir(folder):
            raise Refused(f"{name} makes temporary files when it is imported")
    # The head of every script has these again; what imports have added stays.
    for path in reversed(paths):
        del sys.path[len(sys.path) - 1 - sys.path[::-1].index(path)]
    if torch := sys.modules.get("torch"):
        # Whatever was drawn by an import, a new process has not drawn yet.
        torch.random.default_generator.set_state(torch.Generator().get_state())
    # Leave out what libraries do at the end of a process for each object that they made in imports.
    weakref.finalize._registry = {}
    sys.stdout.flush()
    sys.stderr.flush()
    gc.enable()
    gc.collect()
    gc.freeze()  # A search for garbage in a child would copy all pages.


class End:
    """The end of a child: as Python's own, but nothing preloaded is taken apart.

    To free every object and to run what libraries of C++ have registered would copy most pages of
    this process, which takes ten times as long as the fork.
    """

    def __init__(self):
        self.preloaded, self.code = set(), None
        atexit.register(self)  # What is registered first runs last.

    def __call__(self):
        if self.code is None or threading.active_count() > 1:
            return  # Python does it: threads must stop before modules end.
        free_modules(self.preloaded)
        for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
            try:
                if stream and not stream.closed:
                    stream.flush()
            except Exception:
                self.code = self.code or 120  # As Python does.
        # With the interpreter's lock: libraries that the script has loaded may call Python.
        ctypes.PyDLL(None).exit(self.code)


def free_modules(preloaded):
    """Free what the script and its modules hold, as Python does: files are written and closed."""
    # Freed in a circle, a file may be closed below what it has still to write.
    for each in gc.get_objects():
        if issubclass(type(each), io.TextIOWrapper):
            with suppress(Exception):
                each.flush()
    sys.last_type = sys.last_value = sys.last_exc = sys.last_traceback = None
    sys.excepthook = sys.__excepthook__  # It may hold the frames of an error.
    atexit._clear()
    modules = [
        sys.modules.pop(name) for name in reversed(list(sys.modules)) if name not in preloaded
    ]
    own = [weakref.ref(each) for each in modules if isinstance(each, types.ModuleType)]
    del modules
    gc.collect()
    for module in filter(None, (each() for each in own)):
        names = vars(module)
        for hidden in (True, False):
            for name in list(names):
                if name.startswith("_") == hidden and name != "__builtins__":
                    names[name] = None
    gc.collect()


def end_without_libraries():
    """Let C's `exit` leave out what preloaded libraries do at their end; files are written."""
    libc = ctypes.CDLL(None)
    # What is registered first runs last, and before all that was registered before the fork.
    libc.on_exit(libc._exit, None)
    libc.on_exit(libc.fcloseall, None)


def serve(control, mask):
    """Fork; return in a child, with its connection. End when Snakemake closes its end or is killed."""
    running = {}
    with selectors.DefaultSelector() as selector:
        selector.register(control, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                if key.fileobj is not control:
                    selector.unregister(key.fd)
                    reap(key.fd, *running.pop(key.fd))
                    continue
                message, fds, _, _ = socket.recv_fds(control, 1, 1)
                if not message:
                    os._exit(0)  # Children that run go on without us, as the local executor's.
                connection = socket.socket(fileno=fds[0])
                try:
                    pid = os.fork()
                except OSError:
                    with connection, suppress(OSError):
                        connection.sendall(NUMBER.pack(0))
                    continue
                if pid == 0:
                    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
                    # Close what would keep other ends from seeing that we are gone.
                    selector.close()
                    control.close()
                    for pidfd, (_, other) in running.items():
                        os.close(pidfd)
                        other.close()
                    return connection
                pidfd = os.pidfd_open(pid)
                running[pidfd] = (pid, connection)
                selector.register(pidfd, selectors.EVENT_READ)
                with suppress(OSError):  # Snakemake is gone; the child sees it too.
                    socket.send_fds(connection, [NUMBER.pack(pid)], [pidfd])


def reap(pidfd, pid, connection):
    _, status, used = os.wait4(pid, 0)
    os.close(pidfd)
    with connection, suppress(OSError):
        connection.sendall(ENDED.pack(status, used.ru_utime + used.ru_stime, used.ru_maxrss))


def wait_for_request(connection):
    with connection, connection.makefile("rb") as stream:
        size = stream.read(NUMBER.size)
        if len(size) < NUMBER.size:
            os._exit(1)  # Snakemake was killed meanwhile.
        return pickle.loads(stream.read(*NUMBER.unpack(size)))


def become(script, environment, folder, umask):
    """Make this process like one that has just been started for a script; return its names."""
    with suppress(OSError), open("/proc/self/oom_score_adj", "r+") as file:
        adjusted = min(1000, int(file.read()) + RATHER_KILL)
        file.seek(0)
        file.write(str(adjusted))
    os.chdir(folder)
    os.umask(umask)
    os.environ.clear()
    os.environ.update(environment)
    tempfile.tempdir = None
    importlib.invalidate_caches()
    sys.argv[:] = [script]
    sys.orig_argv[:] = [sys.executable, script]
    if not sys.flags.safe_path:
        sys.path.insert(0, os.path.dirname(script))
    if "numpy.random" in sys.modules:
        sys.modules["numpy"].random.seed()  # `random` does so itself when it is forked.
    main = types.ModuleType("__main__")
    main.__file__, main.__cached__, main.__annotations__ = script, None, {}
    main.__builtins__, main.__loader__ = (
        sys.modules["builtins"],
        SourceFileLoader("__main__", script),
    )
    sys.modules["__main__"] = main
    return main.__dict__


def run(script, names, end):
    with open(script, "rb") as file:
        code = compile(file.read(), script, "exec", dont_inherit=True)
    try:
        exec(code, names)
        end.code = 0
    except SystemExit as error:
        known = error.code is None or (isinstance(error.code, int) and 0 <= error.code < 256)
        end.code = int(error.code or 0) if known else None
        raise
    except BaseException as error:
        end.code = 1 if isinstance(error, Exception) else None
        # Python prints it, as always, without the lines of this file.
        hook = sys.excepthook
        sys.excepthook = lambda kind, value, trace: hook(kind, value, own_part(value, trace))
        raise


def own_part(error, trace):
    while trace and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    error.__traceback__ = trace
    return trace


def main():
    control, given = socket.socket(fileno=int(sys.argv[1])), json.loads(sys.argv[2])
    os.set_inheritable(control.fileno(), False)
    interrupt = signal.getsignal(signal.SIGINT)
    if interrupt is signal.default_int_handler:
        # Until a script runs, end without a traceback.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    if not sys.flags.safe_path:
        del sys.path[0]
    end = End()
    try:
        preload(**given)
        why = b""
    except (Refused, OSError, AttributeError) as error:
        why = str(error).encode()
    end.preloaded |= sys.modules.keys() - {"__main__"}
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, FOR_JOBS)
    control.sendall(NUMBER.pack(len(why)) + why)
    if why:
        os._exit(1)
    request = wait_for_request(serve(control, mask))
    names = become(**request)
    if interrupt is signal.default_int_handler:
        signal.signal(signal.SIGINT, interrupt)
    end_without_libraries()
    run(request["script"], names, end)


if __name__ == "__main__":
    main()
