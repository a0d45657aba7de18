#!/usr/bin/env python3
"""Small PNG and JPEG files with the samples read by Pillow, OpenCV and torchvision, the reference for read_image().

    python3 tools/research/export/image_reference.py [tests/golden/images.json]

Needs Pillow, OpenCV, torch and torchvision; the file names the versions. `rgb` is Image.open(file).convert("RGB"), for
16-bit gray files round(v / 257), because Pillow clips those. `agree` names the readers that return the same samples,
`close` those that differ by at most 2. `squares` are images resized by data.side. `errors` are files that at least two
of the three readers refuse.
"""
import io
import json
import struct
import sys
import warnings
import zlib

import cv2
import numpy
import torch
import torchvision
from PIL import Image, ImageCms
from torchvision import transforms
from torchvision.io import ImageReadMode, decode_image

warnings.simplefilter("ignore")
SIGNATURE = b"\x89PNG\r\n\x1a\n"
GRAY, RGB, PALETTE, GRAY_ALPHA, RGBA = 0, 2, 3, 4, 6
CHANNELS = {GRAY: 1, RGB: 3, PALETTE: 1, GRAY_ALPHA: 2, RGBA: 4}
ADAM7 = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))


# -- PNG --------------------------------------------------------------------------------------------------------------

def chunk(kind, content, checksum=None):
    return struct.pack(">I", len(content)) + kind + content + struct.pack(
        ">I", zlib.crc32(kind + content) if checksum is None else checksum)


def packed_lines(samples, depth):
    """Converts samples [H, W, C] to the bytes of unfiltered lines."""
    lines = b""
    for line in samples:
        bits = "".join(f"{int(value):0{depth}b}" for value in line.reshape(-1))
        bits += "0" * (-len(bits) % 8)
        lines += b"\0" + bytes(int(bits[at:at + 8], 2) for at in range(0, len(bits), 8))
    return lines


END = chunk(b"IEND", b"")


def png(samples, depth, color, before=b"", after=b"", interlaced=False, end=END, extra=b""):
    """Content of a PNG file. @param before, after: chunks before and after IDAT"""
    height, width = samples.shape[:2]
    lines = packed_lines(samples, depth)
    if interlaced:
        passes = [samples[y::dy, x::dx] for x, y, dx, dy in ADAM7]
        lines = b"".join(packed_lines(part, depth) for part in passes if part.size)
    head = struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, int(interlaced))
    return SIGNATURE + chunk(b"IHDR", head) + before + chunk(b"IDAT", zlib.compress(lines + extra, 9)) + after + end


def drawn(generator, depth, color, height=5, width=9):
    return generator.integers(0, 1 << depth, (height, width, CHANNELS[color]), dtype=numpy.int64)


def palette(generator, colors):
    return chunk(b"PLTE", generator.integers(0, 256, 3 * colors, dtype=numpy.uint8).tobytes())


def png_kinds(generator):
    made = {}
    kinds = (("gray", GRAY, (1, 2, 4, 8, 16)), ("rgb", RGB, (8, 16)), ("palette", PALETTE, (1, 2, 4, 8)),
             ("gray-alpha", GRAY_ALPHA, (8, 16)), ("rgba", RGBA, (8, 16)))
    for name, color, depths in kinds:
        for depth in depths:
            colors = palette(generator, 1 << min(depth, 5)) if color == PALETTE else b""
            samples = drawn(generator, min(depth, 5) if color == PALETTE else depth, color)
            for interlaced in (False, True):
                made[f"{name}-{depth}{'-adam7' if interlaced else ''}"] = png(samples, depth, color, colors,
                                                                             interlaced=interlaced)
    return made


def png_chunks(generator):
    """8-bit files with chunks that readers ignore."""
    gray, rgb = drawn(generator, 8, GRAY), drawn(generator, 8, RGB)
    colors, index = palette(generator, 3), generator.integers(0, 3, (5, 9, 1))
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    icc = lambda content: chunk(b"iCCP", b"icc\0\0" + zlib.compress(content, 9))  # noqa: E731
    exif = Image.Exif()
    exif[0x0112] = 6
    chromaticities = struct.pack(">8I", *(n * 1000 for n in (31270, 32900, 64000, 33000, 30000, 60000, 15000, 6000)))
    before = {"gama-1.8": chunk(b"gAMA", struct.pack(">I", 55556)), "gama-1": chunk(b"gAMA", struct.pack(">I", 100000)),
              "srgb": chunk(b"sRGB", b"\0"), "chrm": chunk(b"cHRM", chromaticities),
              "wrong-chrm": chunk(b"cHRM", bytes(32)), "damaged-icc": icc(profile[:100]),
              "no-icc": chunk(b"iCCP", b"icc\0\0garbage"), "sbit": chunk(b"sBIT", b"\5"),
              "exif-orientation": chunk(b"eXIf", exif.tobytes()[6:]),
              "ztxt": chunk(b"zTXt", b"Comment\0\0" + zlib.compress(b"text" * 100)),
              "damaged-ztxt": chunk(b"zTXt", b"Comment\0\0garbage"), "transparent": chunk(b"tRNS", b"\0\7"),
              "background": chunk(b"bKGD", b"\0\7"), "twice-gama": 2 * chunk(b"gAMA", struct.pack(">I", 55556)),
              "text-checksum": chunk(b"tEXt", b"Comment\0text", 1), "gama-checksum": chunk(b"gAMA", bytes(4), 1),
              "animation": chunk(b"acTL", struct.pack(">2I", 1, 0)),
              "unused-palette": palette(generator, 4), "private": chunk(b"prVt", b"anything")}
    made = {name: png(gray, 8, GRAY, chunks) for name, chunks in before.items()}
    made["rgb-icc-in-gray"] = png(gray, 8, GRAY, icc(profile))
    made["icc"] = png(rgb, 8, RGB, icc(profile))
    made["rgb-transparent"] = png(rgb, 8, RGB, chunk(b"tRNS", b"".join(struct.pack(">H", int(v)) for v in rgb[1, 1])))
    made["palette-transparent"] = png(index, 2, PALETTE, colors + chunk(b"tRNS", b"\0\x80"))
    made["palette-index-too-large"] = png(index + 1, 2, PALETTE, colors)
    made["palette-too-long"] = png(index % 2, 1, PALETTE, colors)
    made["text-after-samples"] = png(gray, 8, GRAY, after=chunk(b"tEXt", b"Comment\0text"))
    made["bytes-after-the-end"] = png(gray, 8, GRAY) + b"garbage"
    made["end-checksum"] = png(gray, 8, GRAY, end=chunk(b"IEND", b"", 1))
    made["samples-too-many"] = png(gray, 8, GRAY, extra=b"more")
    return made


def png_errors(generator):
    gray = drawn(generator, 8, GRAY)
    whole, lines = png(gray, 8, GRAY), packed_lines(gray, 8)
    head, end = whole[:33], chunk(b"IEND", b"")
    packed = zlib.compress(lines)
    return {"half": whole[:len(whole) // 2], "no-samples": head + end, "few-samples": png(gray, 8, GRAY)[:33] + chunk(
        b"IDAT", zlib.compress(lines[:20])) + end, "wrong-adler": head + chunk(b"IDAT", packed[:-1] + b"?") + end,
            "wrong-filter": head + chunk(b"IDAT", zlib.compress(b"\7" + lines[1:])) + end, "header-only": head[:20],
            "wrong-deflate": head + chunk(b"IDAT", packed[:4] + b"????" + packed[8:]) + end,
            "signature-only": SIGNATURE}


# -- JPEG -------------------------------------------------------------------------------------------------------------

def photograph(generator, channels=3):
    """Image of 13 x 17 (height x width) pixels: a gradient with noise."""
    y, x, c = numpy.ogrid[:13, :17, :channels]
    noise = generator.integers(0, 30, (13, 17, channels))
    return numpy.clip(15 * y + 3 * x + 40 * c + noise, 0, 255).astype(numpy.uint8)


def jpeg(image, **options):
    out = io.BytesIO()
    image.save(out, "JPEG", **{"quality": 80, "optimize": True, **options})
    return out.getvalue()


def sampled(pixels, factors):
    options = [cv2.IMWRITE_JPEG_SAMPLING_FACTOR, factors, cv2.IMWRITE_JPEG_OPTIMIZE, 1]
    return cv2.imencode(".jpg", pixels, options)[1].tobytes()


def changed(content, at, *values):
    return content[:at] + bytes(values) + content[at + len(values):]


def jpeg_kinds(generator):
    pixels = photograph(generator)
    image, inks = Image.fromarray(pixels), Image.fromarray(photograph(generator, 4), "CMYK")
    plain, printed, rgb = jpeg(image, subsampling=2), jpeg(inks), jpeg(image, keep_rgb=True)
    scan, adobe = plain.index(b"\xff\xda"), printed.index(b"Adobe")
    selection = scan + 5 + 2 * plain[scan + 4]
    exif = Image.Exif()
    exif[0x0112] = 6
    made = {name: sampled(pixels, factors) for name, factors in (
        ("4-4-4", 0x111111), ("4-2-2", 0x211111), ("4-2-0", 0x221111), ("4-4-0", 0x121111), ("4-1-1", 0x411111))}
    made |= {"gray": jpeg(image.convert("L")), "progressive": jpeg(image, progressive=True),
             "progressive-gray": jpeg(image.convert("L"), progressive=True),
             "restart-markers": jpeg(image, restart_marker_blocks=1), "low-quality": jpeg(image, quality=5),
             "se-is-0": changed(plain, selection + 1, 0), "ss-and-ah": changed(plain, selection, 5, 63, 0x11),
             "bytes-before-scan": plain[:scan] + b"\1\2\3" + plain[scan:],
             "fill-bytes": plain[:scan] + b"\xff\xff\xff" + plain[scan:],
             "bytes-before-end": plain[:-2] + b"abcdef" + plain[-2:], "bytes-after-end": plain + b"garbage",
             "jfif-0": changed(plain, 11, 0, 0), "comment": jpeg(image, comment=b"text"),
             "exif-orientation": jpeg(image, exif=exif), "icc": jpeg(image, icc_profile=b"profile"),
             "cmyk": printed, "cmyk-without-adobe": printed[:adobe - 4] + printed[adobe + 12:],
             "ycck": changed(printed, adobe + 11, 2), "rgb-adobe-0": rgb,
             "adobe-transform-9": changed(rgb, rgb.index(b"Adobe") + 11, 9)}
    return {"jpeg-" + name: content for name, content in made.items()}


def jpeg_errors(generator):
    image = Image.fromarray(photograph(generator))
    plain, progressive = jpeg(image), jpeg(image, progressive=True)
    return {"jpeg-half": plain[:len(plain) // 2], "jpeg-no-end": plain[:-2], "jpeg-cut-by-20": plain[:-20],
            "jpeg-header": plain[:40], "progressive-half": progressive[:len(progressive) // 2],
            "progressive-no-end": progressive[:-2]}


# -- Readers ----------------------------------------------------------------------------------------------------------

def read_by_pillow(content):
    return numpy.asarray(Image.open(io.BytesIO(content)).convert("RGB"))


def read_by_opencv(content):
    mode = cv2.IMREAD_COLOR | cv2.IMREAD_IGNORE_ORIENTATION
    return cv2.imdecode(numpy.frombuffer(content, numpy.uint8), mode)[..., ::-1]


def read_by_torchvision(content):
    """Reads the samples. 16-bit samples are not converted, so they agree with no other reader."""
    pixels = decode_image(torch.frombuffer(bytearray(content), dtype=torch.uint8), ImageReadMode.RGB)
    return pixels.permute(1, 2, 0).numpy()


READERS = {"Pillow": read_by_pillow, "OpenCV": read_by_opencv, "torchvision": read_by_torchvision}


def results_of(content):
    results = {}
    for name, read in READERS.items():
        try:
            results[name] = read(content)
        except Exception:  # each reader has its own exceptions
            results[name] = None
    return results


def record(name, content):
    results = results_of(content)
    expected = results["Pillow"] if results["Pillow"] is not None else results["OpenCV"]
    if name.startswith("gray-16"):
        values = cv2.imdecode(numpy.frombuffer(content, numpy.uint8), cv2.IMREAD_UNCHANGED)
        expected = numpy.repeat(numpy.rint(values / 257.0).astype(numpy.uint8)[..., None], 3, 2)
    distance = {reader: int(numpy.abs(found.astype(int) - expected).max()) for reader, found in results.items()
                if found is not None and found.shape == expected.shape}
    return {"name": name, "height": expected.shape[0], "width": expected.shape[1],
            "agree": [reader for reader, far in distance.items() if far == 0],
            "close": [reader for reader, far in distance.items() if 0 < far <= 2],
            "file": content.hex(), "rgb": numpy.ascontiguousarray(expected).tobytes().hex()}


def refused(name, content):
    results = results_of(content)
    refusing = [reader for reader, found in results.items() if found is None]
    assert len(refusing) >= 2, (name, refusing)
    return {"name": name, "refused_by": refusing, "file": content.hex()}


def squares(generator):
    """Center squares of images, by torchvision's CenterCrop and Resize (bilinear, antialiased)."""
    made = []
    for height, width, sides in ((13, 17, (8, 16)), (20, 11, (8,)), (9, 32, (9, 12))):
        image = Image.fromarray(generator.integers(0, 256, (height, width, 3), dtype=numpy.uint8))
        content = io.BytesIO()
        image.save(content, "PNG", optimize=True)
        for side in sides:
            fit = transforms.Compose([transforms.CenterCrop(min(height, width)),
                                      transforms.Resize(side, transforms.InterpolationMode.BILINEAR, antialias=True)])
            made.append({"side": side, "file": content.getvalue().hex(),
                         "rgb": numpy.asarray(fit(image)).tobytes().hex()})
    return made


def main():
    generator = numpy.random.default_rng(55)
    kinds = png_kinds(generator) | png_chunks(generator) | jpeg_kinds(generator)
    errors = png_errors(generator) | jpeg_errors(generator)
    document = {"made_by": "tools/research/export/image_reference.py",
                "versions": {"Pillow": Image.__version__, "OpenCV": cv2.__version__, "numpy": numpy.__version__,
                             "torch": torch.__version__, "torchvision": torchvision.__version__},
                "images": [record(name, content) for name, content in kinds.items()],
                "squares": squares(generator),
                "errors": [refused(name, content) for name, content in errors.items()]}
    with open(sys.argv[1] if len(sys.argv) > 1 else "tests/golden/images.json", "w", encoding="utf-8") as file:
        json.dump(document, file, indent=0)
        file.write("\n")
    for entry in document["images"]:
        print(entry["name"], len(entry["file"]) // 2, "bytes; equal:", *entry["agree"], "; close:", *entry["close"])
    for entry in document["errors"]:
        print(entry["name"], "refused by", *entry["refused_by"])


if __name__ == "__main__":
    main()
