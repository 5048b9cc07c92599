#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Presets about TLS: what OpenSSL and GnuTLS are handed, and hand over, is what both ends wrote."""

import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from puppet import HERE  # noqa: E402, F401 (finds the harness)
from harness import check, check_equal, free_port, main, require_file, require_program, scenario, wait_line, wait_until  # noqa: E402
from presets_support import PYTHON, answers, asked, check_ready  # noqa: E402

TLS = """
import socket, ssl, threading
server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER); server.load_cert_chain("cert.pem", "key.pem")
client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT); client.check_hostname = False; client.verify_mode = ssl.CERT_NONE
ours, theirs = socket.socketpair()
def serve():
    with server.wrap_socket(theirs, server_side=True) as tls:
        while tls.recv(4096): pass
thread = threading.Thread(target=serve); thread.start()
with client.wrap_socket(ours) as tls:
    for n in range(10): tls.write(b"GET /secret HTTP/1.1")
    ours = tls.unwrap()
thread.join()
"""


TLS_SERVER = """
import socket, ssl, time
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER); context.load_cert_chain("cert.pem", "key.pem")
listener = socket.create_server(("127.0.0.1", 0)); print(listener.getsockname()[1], flush=True)
with context.wrap_socket(listener.accept()[0], server_side=True) as tls:
    for n in range(10): tls.write(b"tea %d\\n" % n); time.sleep(0.05)
    tls.unwrap()
"""


# The client does not wait: where the server, who is slow, has not taken what came before, it hands over the same once more.
TLS_WITHOUT_WAITING = """
import pathlib, select, socket, ssl, threading, time
server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER); server.load_cert_chain("cert.pem", "key.pem")
client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT); client.check_hostname = False; client.verify_mode = ssl.CERT_NONE
ours, theirs = socket.socketpair()
waits = threading.Event()  # the client, so that its handshake takes two calls
def serve():
    waits.wait()
    with server.wrap_socket(theirs, server_side=True, suppress_ragged_eofs=True) as tls:
        while tls.recv(4096): time.sleep(0.001)
thread = threading.Thread(target=serve); thread.start()
again = shaken = 0
ours.setblocking(False)
with client.wrap_socket(ours, do_handshake_on_connect=False) as tls:
    while True:
        try:
            shaken += 1; tls.do_handshake(); break
        except ssl.SSLWantReadError:
            waits.set(); select.select([tls], [], [])
    for n in range(50):
        while True:
            try:
                tls.write(bytes(16000)); break
            except ssl.SSLWantWriteError:
                again += 1; select.select([], [tls], [])
thread.join()
pathlib.Path("again").write_text(f"{again} {shaken}")
"""


# SSL_write() may write less than it is handed (SSL_MODE_ENABLE_PARTIAL_WRITE), and says how much.
TLS_IN_PARTS = """
import ctypes, pathlib, socket, ssl, threading
of = ctypes.CDLL("libssl.so.3")
for name in ("TLS_client_method", "SSL_CTX_new", "SSL_new"): getattr(of, name).restype = ctypes.c_void_p
made = lambda function, *args: ctypes.c_void_p(function(*args))
server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER); server.load_cert_chain("cert.pem", "key.pem")
ours, theirs = socket.socketpair()
def serve():
    with server.wrap_socket(theirs, server_side=True, suppress_ragged_eofs=True) as tls:
        while tls.recv(4096): pass
thread = threading.Thread(target=serve); thread.start()
context = made(of.SSL_CTX_new, made(of.TLS_client_method))
of.SSL_CTX_ctrl(context, 33, ctypes.c_long(1), None)
tls = made(of.SSL_new, context)
of.SSL_set_fd(tls, ours.fileno()); assert of.SSL_connect(tls) == 1
written, rest = [], bytes(range(250)) * 400
while rest:
    written.append(of.SSL_write(tls, rest, len(rest))); rest = rest[written[-1]:]
of.SSL_shutdown(tls); ours.close(); thread.join()
pathlib.Path("written").write_text(" ".join(map(str, written)))
"""


def make_certificate(run):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "key.pem", "-out", "cert.pem", "-days", "2",
                    "-subj", "/CN=localhost"], cwd=run.dir, check=True, capture_output=True)


@asked("openssl.handshakes,sizes,written,received,calls")
@scenario
def openssl_is_asked_for_handshakes_and_what_is_written_and_read(run):
    require_file(PYTHON)
    require_program("openssl")
    make_certificate(run)
    (run.dir / "tls.py").write_text(TLS)
    got = answers(run, "openssl.handshakes,sizes,written", [PYTHON, "tls.py"])
    check_equal(got.spans("handshakes"), 2, "handshakes of both ends")
    check_equal([bytes.fromhex(args[0]) for args in got.args("written")], [b"GET /secret HTTP/1.1"] * 10, "what was written")
    check_equal([row["sum"] for row in got.rows("sizes").values()], [200], "bytes that were written")
    silent = answers(run, "openssl.received", [PYTHON, "tls.py"])
    check_equal(silent.args("received"), [], "what SSL_read_ex() reads")
    check("its probes fire only if the program reads by SSL_read()" in silent.said, silent.said)
    # The program openssl reads by SSL_read() what a server of Python says.
    (run.dir / "says.py").write_text(TLS_SERVER)
    server = run.start(PYTHON, "says.py", stdout=subprocess.PIPE, bufsize=0, cwd=run.dir)
    got = answers(run, "openssl.received,written,calls", ["openssl", "s_client", "-quiet", "-connect", f"127.0.0.1:{wait_line(server)}"])
    check_equal(b"".join(bytes.fromhex(args[0]) for args in got.args("received")), b"".join(b"tea %d\n" % n for n in range(10)), "what was read")
    calls = got.rows("calls")
    check_equal({name: row["count"] for name, row in calls.items()}, {"SSL_read": got.objects("received", "summary")[-1]["hits"],
                                                                     "SSL_write": got.objects("written", "summary")[-1]["hits"]}, "calls")
    check("'sslsniff' is asked by gnutls.sent,received, openssl.written,received: name one" in refused(run, "sslsniff"), "a name of two")


@asked("openssl.handshakes,sizes,written")
@scenario
def bytes_that_are_handed_over_again_since_the_peer_took_none_are_written_once(run):
    require_file(PYTHON)
    require_program("openssl")
    make_certificate(run)
    (run.dir / "tls.py").write_text(TLS_WITHOUT_WAITING)
    got = answers(run, "openssl.handshakes,sizes,written", [PYTHON, "tls.py"])
    again, shaken = map(int, (run.dir / "again").read_text().split())
    check(again > 0, "the peer took all at once")
    check(shaken > 1, "the handshake was done at once")
    check_equal(got.spans("handshakes"), 2, "handshakes, of both ends")
    check_equal([(row["count"], row["sum"]) for row in got.rows("sizes").values()], [(50, 50 * 16000)], "bytes that were written")
    check_equal(len(got.args("written")), 50, "what was written")


@asked("openssl.sizes,written")
@scenario
def what_is_written_in_parts_is_counted_by_what_was_written(run):
    require_file(PYTHON)
    require_program("openssl")
    make_certificate(run)
    (run.dir / "tls.py").write_text(TLS_IN_PARTS)
    got = answers(run, "openssl.sizes,written", [PYTHON, "tls.py"])
    written = list(map(int, (run.dir / "written").read_text().split()))
    check(len(written) > 1, f"all was written at once: {written}")
    check_equal([(row["count"], row["sum"]) for row in got.rows("sizes").values()], [(len(written), 100000)], "bytes that were written")
    check_equal([len(bytes.fromhex(args[0])) for args in got.args("written")], [min(each, 400) for each in written], "what was written")


def refused(run, preset):
    return subprocess.run([run.tool, "--preset", preset], capture_output=True, text=True).stderr


@asked("gnutls.handshakes,sizes,sent,received")
@scenario
def gnutls_is_asked_for_handshakes_and_what_is_sent_and_received(run):
    require_program("gnutls-serv", "gnutls-cli", "openssl")
    make_certificate(run)
    port = free_port()
    server = run.start("gnutls-serv", "--echo", "--quiet", "--port", port, "--x509certfile", "cert.pem", "--x509keyfile", "key.pem",
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=run.dir)
    wait_until(lambda: f":{port:04X} " in pathlib.Path("/proc/net/tcp").read_text(), "the server")
    check_ready(run, server.pid, "gnutls")
    client = "for n in 1 2 3 4 5; do echo tea-$n; sleep 0.05; done | gnutls-cli --insecure --logfile /dev/null -p {} 127.0.0.1"

    def work():
        subprocess.run(["bash", "-c", client.format(port)], cwd=run.dir, check=True, stdout=subprocess.DEVNULL)
    got = answers(run, "gnutls.handshakes,sizes,sent,received", options=["-p", server.pid], work=work)
    check("no traced process has mapped" not in got.said, f"the server has mapped it, by a longer name: {got.said}")
    lines = b"".join(b"tea-%d\n" % n for n in range(1, 6))
    check_equal(got.counts("handshakes"), {0: 1}, "handshakes")
    for question in ("sent", "received"):
        check_equal(b"".join(bytes.fromhex(args[0]) for args in got.args(question)), lines, question)
    check_equal([row["sum"] for row in got.rows("sizes").values()], [len(lines)], "bytes that were sent")


# GnuTLS says -28 where it would have to wait.
GNUTLS_WITHOUT_WAITING = """
import ctypes, pathlib, select, socket, ssl, threading, time
of = ctypes.CDLL("libgnutls.so.30"); of.gnutls_record_send.restype = ctypes.c_ssize_t
server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER); server.load_cert_chain("cert.pem", "key.pem")
ours, theirs = socket.socketpair(); ours.setblocking(False)
waits = threading.Event()
def serve():
    waits.wait()
    with server.wrap_socket(theirs, server_side=True, suppress_ragged_eofs=True) as tls:
        while tls.recv(4096): time.sleep(0.001)
thread = threading.Thread(target=serve); thread.start()
session, credentials = ctypes.c_void_p(), ctypes.c_void_p()
of.gnutls_init(ctypes.byref(session), 2 | 8); of.gnutls_set_default_priority(session)
of.gnutls_certificate_allocate_credentials(ctypes.byref(credentials)); of.gnutls_credentials_set(session, 1, credentials)
of.gnutls_transport_set_int2(session, ours.fileno(), ours.fileno())
again = {"handshake": 0, "send": 0}
def insist(name, call):
    while (done := call()) == -28: waits.set(); again[name] += 1; select.select([ours] * (name == "handshake"), [ours] * (name == "send"), [], 0.1)
    assert done >= 0, done
insist("handshake", lambda: of.gnutls_handshake(session))
for n in range(50): insist("send", lambda: of.gnutls_record_send(session, bytes(16000), ctypes.c_size_t(16000)))
of.gnutls_bye(session, 1); ours.close(); thread.join()
pathlib.Path("again").write_text(f"{again['handshake']} {again['send']}")
"""


@asked("gnutls.handshakes,sizes,sent")
@scenario
def what_gnutls_is_asked_again_since_it_would_wait_counts_once(run):
    require_file(PYTHON)
    require_program("gnutls-cli", "openssl")
    make_certificate(run)
    (run.dir / "tls.py").write_text(GNUTLS_WITHOUT_WAITING)
    got = answers(run, "gnutls.handshakes,sizes,sent", [PYTHON, "tls.py"])
    check(all(int(count) > 0 for count in (run.dir / "again").read_text().split()), "it never had to wait")
    check_equal(got.named_counts("handshakes"), {"done": 1}, "handshakes")
    check_equal([(row["count"], row["sum"]) for row in got.rows("sizes").values()], [(50, 50 * 16000)], "bytes that were sent")
    check_equal([len(bytes.fromhex(args[0])) for args in got.args("sent")], [400] * 50, "what was sent")


if __name__ == "__main__":
    main()
