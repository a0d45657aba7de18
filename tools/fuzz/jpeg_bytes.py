"""Writes a gray square as a baseline JPEG file (ITU-T T.81) without a library."""
import struct

# Tables K.3 and K.5 of the standard, for all components: number of codes of each length, and their values.
DC_COUNTS = bytes([0, 1, 5, 1, 1, 1, 1, 1, 1] + [0] * 7)
DC_VALUES = bytes(range(12))
AC_COUNTS = bytes([0, 2, 1, 3, 3, 2, 4, 3, 5, 5, 4, 4, 0, 0, 1, 125])
AC_VALUES = bytes.fromhex(
    "01020300041105122131410613516107227114328191a1082342b1c11552d1f02433627282090a161718191a25262728292a3435363738"
    "393a434445464748494a535455565758595a636465666768696a737475767778797a838485868788898a92939495969798999aa2a3a4a5"
    "a6a7a8a9aab2b3b4b5b6b7b8b9bac2c3c4c5c6c7c8c9cad2d3d4d5d6d7d8d9dae1e2e3e4e5e6e7e8e9eaf1f2f3f4f5f6f7f8f9fa")


def _segment(marker, content):
    return bytes([0xFF, marker]) + struct.pack(">H", len(content) + 2) + content


def small_jpeg(side):
    """JPEG content with side x side pixels of three components. side: a multiple of 8"""
    blocks = (side // 8) ** 2 * 3
    bits = "001010" * blocks  # DC difference of 0, then end of block
    bits += "1" * (-len(bits) % 8)
    scan = bytes(int(bits[at:at + 8], 2) for at in range(0, len(bits), 8))
    components = b"".join(bytes([number, 0x11, 0]) for number in (1, 2, 3))
    return (b"\xFF\xD8" + _segment(0xDB, b"\0" + bytes([16] * 64))
            + _segment(0xC0, struct.pack(">BHHB", 8, side, side, 3) + components)
            + _segment(0xC4, b"\x00" + DC_COUNTS + DC_VALUES) + _segment(0xC4, b"\x10" + AC_COUNTS + AC_VALUES)
            + _segment(0xDA, b"\x03" + b"".join(bytes([number, 0]) for number in (1, 2, 3)) + b"\x00\x3f\x00") + scan
            + b"\xFF\xD9")
