# SPDX-License-Identifier: BSD-2-Clause
"""A server of HTTP for tests, to which answers are posted."""

import contextlib
import http.server
import socket
import threading


class PostServer:
    """Listens on this host until close(). A subclass has answer(path, headers, body), which returns (status, headers, body);
    bytes, which are sent whatever they are; or None: the connection ends without an answer. The last two end it."""

    def __init__(self, port=0):
        self.connections, owner = [], self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self):
                super().setup()
                owner.connections.append(self.connection)

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # the client may have ended meanwhile
                    self.send(owner.answer(self.path, self.headers, body))

            def send(self, answer):
                if not isinstance(answer, tuple):
                    self.close_connection = True
                    self.wfile.write(answer or b"")
                    return
                status, headers, reply = answer
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(reply)))
                self.end_headers()
                self.wfile.write(reply)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        """From now on nothing is taken, on open connections either."""
        self.server.shutdown()
        self.server.server_close()
        for connection in self.connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
