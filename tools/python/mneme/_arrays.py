"""Converts arrays, lists, images, torch Datasets and Hugging Face `datasets` to torch tensors."""
from collections.abc import Mapping

import torch

from mneme._errors import ScenarioError

PICTURE_MODES = {"L": "L", "1": "L", "LA": "L", "RGB": "RGB", "RGBA": "RGB", "RGBX": "RGB", "RGBa": "RGB",
                 "P": "RGB", "PA": "RGB", "CMYK": "RGB", "YCbCr": "RGB", "HSV": "RGB", "LAB": "RGB"}
INTEGERS = {torch.int8, torch.int16, torch.int32, torch.int64, torch.uint16, torch.uint32, torch.uint64}


def refuse(where, text):
    raise ScenarioError([(where, text)])


def kind_of(value):
    return f"{type(value).__module__.split('.')[0]}.{type(value).__name__}".removeprefix("builtins.")


def is_picture(value):
    """True for a Pillow image; does not import Pillow."""
    return kind_of(value).startswith("PIL.") and hasattr(value, "convert")


def is_torch_dataset(value):
    return isinstance(value, torch.utils.data.Dataset)


def is_split(value):
    """True for a split of Hugging Face `datasets`."""
    return hasattr(value, "column_names") and hasattr(value, "features") and not is_torch_dataset(value)


# -- images ------------------------------------------------------------------------------------------------------------


def resized(picture, side):
    """The largest centered square, resized to side x side pixels like with torchvision's CenterCrop and Resize."""
    from PIL import Image
    width, height = picture.size
    square = min(width, height)
    left, top = round((width - square) / 2), round((height - square) / 2)
    cut = picture.crop((left, top, left + square, top + square))
    return cut if square == side else cut.resize((side, side), Image.Resampling.BILINEAR)


def as_pixels(picture, mode, side=0):
    """Converts an image to [C, H, W] uint8, or to [H, W] if it is gray. side: see resized(); 0: keeps the size."""
    import numpy
    picture = picture.convert(mode)
    picture = resized(picture, side) if side else picture
    pixels = torch.from_numpy(numpy.array(picture, dtype=numpy.uint8))
    return pixels.permute(2, 0, 1).contiguous() if pixels.dim() == 3 else pixels


def are_pictures(value):
    return isinstance(value, (list, tuple)) and len(value) > 0 and all(map(is_picture, value))


def stacked_pictures(parts, side=0):
    """Converts the images of each part, {where: images}, to [N, 3, H, W], or to [N, H, W] if all are gray. Pixels equal
    the results of Pillow's convert("RGB") and convert("L"). side: see as_pixels()."""
    modes = set()
    for where, pictures in parts.items():
        for row, picture in enumerate(pictures):
            if picture.mode not in PICTURE_MODES:
                refuse(where, f"row {row} is an image of mode '{picture.mode}'; expected 8 bits a channel, as "
                              "picture.convert(\"RGB\") has")
            modes.add(PICTURE_MODES[picture.mode])
    mode = "RGB" if "RGB" in modes else "L"
    return {where: stacked([as_pixels(picture, mode, side) for picture in pictures], where)
            for where, pictures in parts.items()}


# -- rows --------------------------------------------------------------------------------------------------------------


def stacked(rows, where):
    for row, value in enumerate(rows):
        if value.shape != rows[0].shape:
            refuse(where, f"row {row} is {list(value.shape)} and row 0 is {list(rows[0].shape)}; expected rows of one "
                          "size; for pictures, side=64 resizes them")
    return torch.stack(rows)


def as_tensor(value, where):
    """Converts arrays of numpy, torch or pandas, and lists. Images become uint8 tensors."""
    if is_torch_dataset(value) or is_split(value) or is_splits(value):
        refuse(where, f"{kind_of(value)} is not an array; expected mneme.Data.from_datasets(train, test)")
    if isinstance(value, (list, tuple)) and len(value) > 0:
        if are_pictures(value):
            return stacked_pictures({where: value})[where]
        if all(isinstance(row, torch.Tensor) or hasattr(row, "__array__") and getattr(row, "ndim", 0) for row in value):
            return stacked([as_tensor(row, where) for row in value], where)
    try:
        if not isinstance(value, torch.Tensor) and hasattr(value, "__array__"):
            import numpy
            if numpy.ma.isMaskedArray(value):
                raise TypeError("its mask would be lost; expected .filled(value), or only the complete rows")
            value = numpy.asarray(value)
            value = numpy.array(value, dtype=value.dtype.newbyteorder("="), order="C")  # native byte order
        tensor = torch.as_tensor(value)
    except (TypeError, ValueError, RuntimeError) as wrong:
        refuse(where, f"{kind_of(value)} is not an array of numbers: {wrong}")
    return tensor.detach().cpu().contiguous()


def as_rows(value, where):
    """Converts to uint8 images, float32 numbers or int64 tokens."""
    rows = as_tensor(value, where)
    if rows.dtype.is_floating_point:
        return as_float32(rows, where)
    if rows.dtype in INTEGERS and rows.dim() == 2:
        return as_int64(rows, where)
    if rows.dtype in INTEGERS and rows.dim() > 2:
        refuse(where, f"{rows.dtype} of {rows.dim()} axes; expected uint8 images, as x.astype(\"uint8\"), float32 "
                      "numbers or int64 tokens [N, T]")
    return rows


def as_float32(rows, where):
    numbers = rows.to(torch.float32)
    too_large = (rows.isfinite() & ~numbers.isfinite()).nonzero()
    if len(too_large):
        place = too_large[0].tolist()
        refuse(where, f"row {place[0]}: {float(rows[tuple(place)]):g} is beyond float32, in which rows are computed")
    return numbers


def as_int64(values, where):
    """Converts integers of any type to int64. A value out of range is an error that names the value."""
    numbers = values.to(torch.int64)
    if values.dtype == torch.uint64 and bool((numbers < 0).any()):
        row = int((numbers < 0).nonzero()[0][0])
        refuse(where, f"row {row}: {int(numbers[row].flatten()[0]) % 2 ** 64} is beyond int64")
    return numbers


# -- labels ------------------------------------------------------------------------------------------------------------


def as_texts(value):
    """Returns a list of strings; None for other values."""
    if isinstance(value, torch.Tensor):
        return None
    if hasattr(value, "__array__"):
        import numpy
        value = numpy.asarray(value)
        value = value.tolist() if value.ndim == 1 else []
    if not isinstance(value, (list, tuple)) or not value or not any(isinstance(text, str) for text in value):
        return None
    return list(map(str, value)) if all(isinstance(text, str) for text in value) else None


def as_labels(value, where):
    """Converts integers of any type to labels [N] int64."""
    if isinstance(value, (list, tuple)) and any(isinstance(label, str) for label in value):
        row = next(row for row, label in enumerate(value) if not isinstance(label, str))
        refuse(where, f"row {row} is {value[row]!r} among texts; expected texts alone, or whole numbers alone")
    labels = as_tensor(value, where)
    if labels.dtype.is_floating_point or labels.dtype == torch.bool or labels.is_complex() or labels.dim() != 1:
        refuse(where, f"{labels.dtype} of {labels.dim()} axes; expected whole numbers [N] from 0, or texts")
    return as_int64(labels, where)


def numbered(train, test, where, what="class", names=None):
    """Converts labels to numbers: (names or None, train, test). Strings are numbered by their position in `names`, or
    in the sorted strings of the training part. test: None if there is none. where: locations for errors, (train's,
    test's). what: "class" or "domain"."""
    parts = [part for part in (train, test) if part is not None]
    texts = [as_texts(part) for part in parts]
    if all(part is None for part in texts):
        numbers = [as_labels(part, place) for part, place in zip(parts, where)]
        return names, numbers[0], numbers[1] if test is not None else None
    for part, place in zip(texts, where):
        if part is None:
            refuse(place, "numbers, while the other part has texts; expected the same in both")
    known = {name: number for number, name in enumerate(names or sorted(set(texts[0])))}
    for part, place, of in zip(texts, where, ("", " of test")):
        for row, name in enumerate(part):
            if name not in known:
                refuse(place, f"row {row}{of}: '{name}' is a {what} that "
                              f"{what + '_names has not' if names else 'no training row has'}")
    numbers = [torch.tensor([known[name] for name in part], dtype=torch.int64) for part in texts]
    return list(known), numbers[0], numbers[1] if test is not None else None


# -- torch Datasets ----------------------------------------------------------------------------------------------------


def items_of(dataset, where):
    """Returns (rows, or a list of images; labels) of a map-style Dataset with items (row, label)."""
    if isinstance(dataset, torch.utils.data.IterableDataset) or not hasattr(dataset, "__len__"):
        refuse(where, f"{kind_of(dataset)} has no length; expected a map-style Dataset, with len() and an index")
    rows, labels = [], []
    for number in range(len(dataset)):
        item = dataset[number]
        if not isinstance(item, (tuple, list)) or len(item) != 2:
            found = f"{len(item)} values" if isinstance(item, (tuple, list)) else f"a {kind_of(item)}"
            refuse(where, f"item {number} of {kind_of(dataset)} is {found}; expected (row, label)")
        rows.append(item[0])
        labels.append(item[1].item() if isinstance(item[1], torch.Tensor) and item[1].numel() == 1 else item[1])
    if not rows:
        refuse(where, f"{kind_of(dataset)} is empty")
    if any(map(is_picture, rows)) and not all(map(is_picture, rows)):
        refuse(where, "some items are images and some are not")
    return rows if are_pictures(rows) else stacked([as_tensor(row, where) for row in rows], where), labels


def names_of_classes(dataset):
    """`classes` of a torchvision Dataset, also if it is inside a Subset."""
    while hasattr(dataset, "dataset") and not hasattr(dataset, "classes"):
        dataset = dataset.dataset
    names = getattr(dataset, "classes", None)
    is_list = isinstance(names, (list, tuple)) and names and all(isinstance(name, str) for name in names)
    return list(names) if is_list else None


# -- Hugging Face `datasets` -------------------------------------------------------------------------------------------

TEST_SPLITS = ("test", "testing", "validation", "valid", "val", "dev")


def is_splits(value):
    """True for a DatasetDict or another mapping of splits."""
    return isinstance(value, Mapping) and len(value) > 0 and all(
        is_split(split) or is_torch_dataset(split) for split in value.values())


def parts_of(splits):
    """Returns (train, test or None) of a DatasetDict."""
    names = list(splits)
    others = [name for name in names if name != "train"]
    if "train" not in names or len(others) > 1 or not set(others) <= set(TEST_SPLITS):
        test = next((name for name in TEST_SPLITS if name in names), names[-1])
        refuse("data", f"a DatasetDict of the splits {', '.join(names)}; expected train and one for test, as in "
                       f"mneme.Data.from_datasets(splits[\"{names[0]}\"], splits[\"{test}\"])")
    return splits["train"], splits[others[0]] if others else None


def column_of(split, name, what):
    """A column as a numpy array; bytes stay bytes."""
    import numpy
    if not hasattr(split, "select_columns") or not hasattr(split, "__len__"):
        refuse("data", f"{kind_of(split)} has no length; expected rows in memory: load_dataset(..., streaming=False)")
    if name not in split.column_names:
        refuse(name, f"no such column; expected one of {', '.join(split.column_names)}, as in {what}=\"...\"")
    column = split.select_columns([name]).with_format("numpy")[:][name]
    shapes = [numpy.shape(row) for row in column] if column.dtype == object else []
    for row, shape in enumerate(shapes):
        if shape != shapes[0]:
            refuse(name, f"row {row} is {list(shape)} and row 0 is {list(shapes[0])}; expected rows of one size")
    return column.astype(numpy.uint8) if "uint8" in str(split.features[name]) else column


def rows_of(split, columns):
    """[N, ...] from one column, [N, F] from several, or a list of images."""
    import numpy
    if not isinstance(columns, str):
        columns = [column_of(split, name, "rows").astype(numpy.float32) for name in columns]
        return as_tensor(numpy.stack(columns, axis=1), "rows")
    if columns in split.column_names and type(split.features[columns]).__name__ == "Image":
        pictures = list(split.select_columns([columns]).with_format(None)[:][columns])
        if not are_pictures(pictures):
            refuse(columns, "images that are not decoded; expected the feature Image(decode=True)")
        return pictures
    return as_tensor(column_of(split, columns, "rows"), columns)
