"""Messages between a run and a node as bytes: streams in frames (runtime/transport/frames.hpp), and a link between the
two that records or damages the traffic."""
import socket
import struct
import threading

PREAMBLE_BYTES, HEADER_BYTES, FRAME_BYTES_MAX = 8, 8, 1 << 18
BEGIN, PART = 1, 2


class MessageReader:
    """Parses bytes into complete messages. Credits and heartbeats are skipped."""

    def __init__(self):
        self.bytes, self.preamble, self.coming, self.expected = bytearray(), None, b"", None

    def feed(self, data):
        self.bytes += data
        messages = []
        if self.preamble is None and len(self.bytes) >= PREAMBLE_BYTES:
            self.preamble = bytes(self.bytes[:PREAMBLE_BYTES])
            del self.bytes[:PREAMBLE_BYTES]
        while self.preamble and len(self.bytes) >= HEADER_BYTES:
            length, kind = struct.unpack("<IB", self.bytes[:5])
            if len(self.bytes) < HEADER_BYTES + length:
                break
            content = bytes(self.bytes[HEADER_BYTES:HEADER_BYTES + length])
            del self.bytes[:HEADER_BYTES + length]
            if kind == BEGIN:
                self.coming, self.expected = b"", struct.unpack("<Q", content)[0]
            elif kind == PART:
                self.coming += content
            if self.expected is not None and len(self.coming) == self.expected:
                messages.append(self.coming)
                self.expected = None
        return messages

    def unread(self):
        """Bytes of the incomplete message, as received."""
        begun = framed(self.coming, self.expected) if self.expected is not None else b""
        return begun + bytes(self.bytes)


def framed(message, announced=None):
    """Returns the frames of a message. announced: length in the header, if it differs from the message's"""
    out = struct.pack("<IB3xQ", 8, BEGIN, len(message) if announced is None else announced)
    for first in range(0, len(message), FRAME_BYTES_MAX):
        part = message[first:first + FRAME_BYTES_MAX]
        out += struct.pack("<IB3x", len(part), PART) + part
    return out


class Link:
    """Listens for nodes and forwards to the run at `port`. `passing(number, data)` may change the bytes that the node
    sends in connection `number`, `answering` may change those that the run sends."""

    def __init__(self, port, passing=None, answering=None):
        self.to, self.connections = port, 0
        self.change = {True: passing, False: answering}
        self.said = []  # all bytes that nodes have sent, by connection
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        self.listener.close()

    def _accept(self):
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(("127.0.0.1", self.to))
            except OSError:  # the run does not listen yet
                near.close()
                continue
            number, self.connections = self.connections, self.connections + 1
            self.said.append(bytearray())
            for end in (near, far):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for source, target, is_run in ((near, far, True), (far, near, False)):
                threading.Thread(target=self._carry, args=(source, target, number, is_run), daemon=True).start()

    def _carry(self, source, target, number, is_run):
        change = self.change[is_run]
        try:
            while data := source.recv(1 << 16):
                if is_run:
                    self.said[number] += data
                target.sendall(change(number, data) if change else data)
        except OSError:
            pass
        for end in (source, target):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


class DamagedMessage:
    """Forwards a stream and changes one message by `damage`. If its length changes, its frames are adjusted."""

    def __init__(self, at, damage):
        self.at, self.damage, self.reader, self.seen = at, damage, MessageReader(), 0
        self.is_done = False

    def __call__(self, number, data):
        if number > 0 or self.is_done:
            return data  # later connections are not changed
        out, begun = b"", self.reader.preamble is not None
        messages = self.reader.feed(data)
        if not begun and self.reader.preamble:
            out += self.reader.preamble
        for message in messages:
            if self.seen == self.at:
                message, self.is_done = self.damage(message), True
            self.seen += 1
            out += framed(message)
        return out + (self.reader.unread() if self.is_done else b"")


class ChangedMessages:
    """Forwards a stream and replaces each message by the messages that `change(message)` returns. Heartbeats and
    credits are forwarded unchanged."""

    def __init__(self, change):
        self.change, self.bytes, self.coming, self.expected, self.begun = change, bytearray(), b"", None, False

    def __call__(self, number, data):
        if number > 0:
            return data  # later connections are not changed
        self.bytes += data
        out = b""
        if not self.begun and len(self.bytes) >= PREAMBLE_BYTES:
            self.begun, out = True, self._taken(PREAMBLE_BYTES)
        while self.begun and len(self.bytes) >= HEADER_BYTES:
            length, kind = struct.unpack("<IB", self.bytes[:5])
            if len(self.bytes) < HEADER_BYTES + length:
                break
            frame = self._taken(HEADER_BYTES + length)
            if kind == BEGIN:
                self.coming, self.expected = b"", struct.unpack("<Q", frame[HEADER_BYTES:])[0]
            elif kind == PART:
                self.coming += frame[HEADER_BYTES:]
            else:
                out += frame
            if self.expected is not None and len(self.coming) == self.expected:
                self.expected = None
                out += b"".join(map(framed, self.change(self.coming)))
        return out

    def _taken(self, count):
        taken = bytes(self.bytes[:count])
        del self.bytes[:count]
        return taken
