"""Recomputes the checksum at the end of a checkpoint, so that readers accept damaged content."""
import ctypes
import ctypes.util

CHECKSUM_BYTES = 16


class _Hash(ctypes.Structure):
    _fields_ = [("low", ctypes.c_uint64), ("high", ctypes.c_uint64)]


def _xxh3(data):
    library = ctypes.CDLL(ctypes.util.find_library("xxhash") or "libxxhash.so.0")
    library.XXH3_128bits.restype = _Hash
    library.XXH3_128bits.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
    return library.XXH3_128bits(data, len(data))


def with_checksum(data):
    """Replaces the last bytes of `data` with the checksum of the bytes before them."""
    body = data[:-CHECKSUM_BYTES]
    made = _xxh3(body)
    return body + made.high.to_bytes(8, "little") + made.low.to_bytes(8, "little")
