"""What commands with a known cause run.

Each measures itself how long the injected wait keeps it, without CPU time.

Where the environment names a file, a line there tells of every run: the worker that started it,
when it ended on the clock of the day, and the seconds that it was kept.
"""

import sys
from collections.abc import Sequence

TRUTH = "SCALETEST_TRUTH"

_MEASURED = """
import os, sys, time
def scheduled():
    with open("/proc/thread-self/schedstat") as file:
        run, wait, _ = map(int, file.read().split())
    return run / 1e9, wait / 1e9
class Kept:
    seconds = 0.0
    def __enter__(self):
        self.began, self.before = time.monotonic(), sum(scheduled())
    def __exit__(self, *_):
        Kept.seconds += max(0.0, time.monotonic() - self.began - sum(scheduled()) + self.before)
def tell(seconds):
    path = os.environ.get("SCALETEST_TRUTH")
    if path:
        with open(path, "a") as file:
            worker = int(os.environ.get("SCALETEST_WORKER", os.getppid()))
            file.write("%d %.6f %.6f\\n" % (worker, time.time(), seconds))
"""
# Runs its arguments as a command of its own, as a script without exec does, between two others.
_SCRIPTED = 'export SCALETEST_WORKER=$PPID; /bin/true; "$@"; /bin/true'


def python(code: str, *arguments: object) -> tuple[str, ...]:
    """Return a command that runs Python code without the packages of this environment."""
    return (sys.executable, "-S", "-c", code, *map(str, arguments))


def measured(code: str, *arguments: object, seconds: str = "Kept.seconds") -> tuple[str, ...]:
    """Such a command for code that puts the injected wait into `with Kept()`.

    seconds: the expression that tells how long it was kept.
    """
    return python(f"{_MEASURED}{code}\ntell({seconds})", *arguments)


def scripted(command: Sequence[str]) -> tuple[str, ...]:
    """Return a command that runs another one in a shell script."""
    return ("/bin/bash", "-c", _SCRIPTED, "script", *command)


def script(code: str, *arguments: object) -> tuple[str, ...]:
    """Return a command that runs a shell script."""
    return ("/bin/bash", "-c", code, "script", *map(str, arguments))


# Computes, and tells how long it ran on a CPU.
COMPUTE = "sum(range(int(sys.argv[1])))"
COMPUTED = "scheduled()[0]"
FLOCK = """
import fcntl
with open(sys.argv[1], "w") as file:
    with Kept():
        fcntl.flock(file, fcntl.LOCK_EX)
    time.sleep(float(sys.argv[2]))
    fcntl.flock(file, fcntl.LOCK_UN)
time.sleep(float(sys.argv[2]))
"""
# The same in a shell script, each command a process of its own; and with many short ones.
SCRIPT_BEGIN = """
exec 9>"$1"
began=$EPOCHREALTIME
flock 9
kept=$(( ${EPOCHREALTIME/./} - ${began/./} ))
"""
SCRIPT_END = """
sleep "$2"
flock -u 9
sleep "$2"
tell() { printf '%d %s %d.%06d\n' $PPID $EPOCHREALTIME $(($1 / 1000000)) $(($1 % 1000000)); }
[ -z "$SCALETEST_TRUTH" ] || tell $kept >> "$SCALETEST_TRUTH"
"""
FORKS = "for number in 1 2 3 4 5; do /bin/true; done"
# Takes a token out of a pipe, and puts it back.
TOKEN_SCRIPT = """
exec 9<>"$1"
began=$EPOCHREALTIME
read -r -n 1 -u 9
kept=$(( ${EPOCHREALTIME/./} - ${began/./} ))
sleep "$2"
printf x >&9
sleep "$2"
tell() { printf '%d %s %d.%06d\n' $PPID $EPOCHREALTIME $(($1 / 1000000)) $(($1 % 1000000)); }
[ -z "$SCALETEST_TRUTH" ] || tell $kept >> "$SCALETEST_TRUTH"
"""
# Writes to a database that others write to.
SQLITE = """
import sqlite3
connection = sqlite3.connect(sys.argv[1], timeout=60, isolation_level=None)
with Kept():
    connection.execute("begin immediate")
connection.execute("insert into written values (1)")
time.sleep(float(sys.argv[2]))
connection.execute("rollback")
time.sleep(float(sys.argv[2]))
"""
# Creates a file that must not exist, again and again until it can.
LOCK_FILE = """
with Kept():
    while True:
        try:
            os.close(os.open(sys.argv[1], os.O_CREAT | os.O_EXCL | os.O_WRONLY))
            break
        except FileExistsError:
            time.sleep(0.02)
time.sleep(float(sys.argv[2]))
os.unlink(sys.argv[1])
time.sleep(float(sys.argv[2]))
"""
SYSTEM_V = """
import ctypes
libc = ctypes.CDLL(None)
class Operation(ctypes.Structure):
    _fields_ = [("number", ctypes.c_ushort), ("by", ctypes.c_short), ("flags", ctypes.c_short)]
UNDO = 0x1000
with Kept():
    libc.semop(int(sys.argv[1]), ctypes.byref(Operation(0, -1, UNDO)), 1)
time.sleep(float(sys.argv[2]))
libc.semop(int(sys.argv[1]), ctypes.byref(Operation(0, 1, UNDO)), 1)
time.sleep(float(sys.argv[2]))
"""
# Asks a service by a datagram, and waits for the answer.
DATAGRAM = """
import socket
host, _, port = sys.argv[1].rpartition(":")
connection = socket.socket(type=socket.SOCK_DGRAM)
connection.connect((host, int(port)))
with Kept():
    connection.send(b"x")
    connection.recv(16)
"""
# The same by a socket that is connected to nobody.
SENT_DATAGRAM = """
import socket
host, _, port = sys.argv[1].rpartition(":")
connection = socket.socket(type=socket.SOCK_DGRAM)
with Kept():
    connection.sendto(b"x", (host, int(port)))
    connection.recvfrom(16)
"""
DATAGRAM_SERVER = """
import socket, sys, threading, time
server = socket.socket(type=socket.SOCK_DGRAM)
server.bind((sys.argv[1], 0))
slots = threading.Semaphore(int(sys.argv[2]))
def serve(client):
    with slots:
        time.sleep(float(sys.argv[3]))
    server.sendto(b"x", client)
print("%s:%d" % server.getsockname(), flush=True)
while True:
    threading.Thread(target=serve, args=(server.recvfrom(16)[1],), daemon=True).start()
"""
FCNTL = FLOCK.replace("fcntl.flock", "fcntl.lockf")
SEMAPHORE = """
import ctypes
libc = ctypes.CDLL(None)
libc.sem_open.restype = ctypes.c_void_p
semaphore = ctypes.c_void_p(libc.sem_open(sys.argv[1].encode(), os.O_CREAT, 0o600, 1))
with Kept():
    libc.sem_wait(semaphore)
time.sleep(float(sys.argv[2]))
libc.sem_post(semaphore)
time.sleep(float(sys.argv[2]))
"""
# Asks for so many bytes, and takes them.
CLIENT = """
import socket
host, _, port = sys.argv[1].rpartition(":")
connection = socket.socket(socket.AF_INET if port.isdigit() else socket.AF_UNIX)
with Kept():
    connection.connect((host, int(port)) if port.isdigit() else sys.argv[1])
    connection.sendall(b"x")
    while connection.recv(1 << 16):
        pass
"""
# Answers after some seconds, so many at a time; prints its address.
SERVER = """
import socket, sys, threading, time
unix = "/" in sys.argv[1]
answer = bytes(int(sys.argv[4]))
server = socket.socket(socket.AF_UNIX if unix else socket.AF_INET)
server.bind(sys.argv[1] if unix else (sys.argv[1], 0))
server.listen(128)
slots = threading.Semaphore(int(sys.argv[2]))
def serve(connection):
    with connection:
        connection.recv(1)
        with slots:
            time.sleep(float(sys.argv[3]))
        connection.sendall(answer)
print(sys.argv[1] if unix else "%s:%d" % server.getsockname(), flush=True)
while True:
    threading.Thread(target=serve, args=(server.accept()[0],), daemon=True).start()
"""
# Answers over HTTP after some seconds, so many at a time; each request has a thread.
POOL = """
import http.server, sys, threading, time
slots = threading.Semaphore(int(sys.argv[1]))
class Answers(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        with slots:
            time.sleep(float(sys.argv[2]))
        self.send_response(204)
        self.end_headers()
    def log_message(self, *_):
        pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers)
print("http://127.0.0.1:%d/" % server.server_port, flush=True)
server.serve_forever()
"""
WRITE = """
import mmap
data = mmap.mmap(-1, 1 << 20)
file = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_DIRECT)
with Kept():
    for _ in range(int(sys.argv[2])):
        os.pwrite(file, data, 0)
        os.fsync(file)
"""
# Sleeps, and touches all pages of a file of its worker's, in control groups; a new worker writes
# its file first.
TOUCH = """
import mmap
folder, size, groups = sys.argv[1], int(sys.argv[2]), sys.argv[4:]
time.sleep(float(sys.argv[3]))
for group in groups:
    with open(group, "w") as file:
        file.write(str(os.getpid()))
path = "%s/mapped-%d" % (folder, os.getppid())
if not os.path.exists(path):
    with open(path + ".new", "wb") as file:
        file.write(bytes(size))
        os.fsync(file.fileno())
    os.rename(path + ".new", path)
with open(path, "rb") as file, mmap.mmap(file.fileno(), size, prot=mmap.PROT_READ) as pages:
    pages.madvise(mmap.MADV_RANDOM)
    with Kept():
        for at in range(0, size, mmap.PAGESIZE):
            pages[at]
"""
# Reads from its worker's device.
READ_DEVICE = """
file = os.open(os.environ["SCALETEST_DEVICE"], os.O_RDONLY)
with Kept():
    os.read(file, 1)
"""
# Sleeps as long as its worker's device says.
SLEEP_BY_DEVICE = """
with open(os.environ["SCALETEST_DEVICE"]) as file:
    seconds = float(file.read())
with Kept():
    time.sleep(seconds)
"""
# A lock, then a service that seldom keeps it as long.
LOCK_AND_CLIENT = FLOCK.replace("sys.argv[2]", "sys.argv[3]") + CLIENT.replace(
    "with Kept():", "if True:"
).replace("sys.argv[1]", "sys.argv[2]")
# One of both, the lock in two of three requests.
LOCK_OR_CLIENT = """
import random
if random.random() < 2 / 3:
    exec(sys.argv[4])
else:
    exec(sys.argv[5])
"""
SLEEP = """
with Kept():
    time.sleep(float(sys.argv[1]))
"""
# The command line of scaletest, whose client needs some seconds for every request that it sends,
# one after the other.
SLOW_CLIENT = """
import sys, time
from scaletest.broker import Client
submit, seconds = Client.submit, float(sys.argv[1])
def paced(self, requests, *arguments, **options):
    time.sleep(seconds * len(requests))
    return submit(self, requests, *arguments, **options)
Client.submit = paced
from scaletest.cli.main import main
sys.argv = ["scaletest", *sys.argv[2:]]
sys.exit(main())
"""
