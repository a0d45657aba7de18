"""A port for a process that is about to start."""
import random
import socket


def free_port(count=2):
    """Returns the first of `count` free ports in a row; under torchrun the run listens at the second. All are below the
    range of ports of outgoing connections, one of which could otherwise get the port before the process listens."""
    draw = random.SystemRandom()  # so that concurrent tests draw different ports
    while True:
        port = draw.randrange(15000, 32000)
        try:
            for number in range(port, port + count):
                socket.create_server(("127.0.0.1", number)).close()
            return port
        except OSError:
            continue
