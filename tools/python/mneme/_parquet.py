"""Reads columns of Parquet files with pyarrow."""
import io
import os

from mneme._arrays import as_tensor, refuse


def read_parquet(file):
    """The table in a Parquet file."""
    try:
        from pyarrow import ArrowException, parquet
    except ImportError:
        return refuse("data", "Parquet files need the package pyarrow; install it: pip install pyarrow")
    try:
        return parquet.read_table(os.fspath(file))
    except (ArrowException, OSError) as wrong:
        return refuse(os.fspath(file), f"cannot be read as Parquet: {wrong}")


def parquet_column(table, name, what):
    """A column as a numpy array, or as a list of strings or bytes."""
    import numpy
    if name not in table.column_names:
        refuse(name, f"no such column; expected one of {', '.join(table.column_names)}, as in {what}=\"...\"")
    column = table.column(name).combine_chunks()
    if column.null_count:
        row = column.is_null().to_pylist().index(True)
        refuse(name, f"row {row} is empty; expected a value in each row")
    values = column.to_pylist()
    if values and isinstance(values[0], (str, bytes, dict)):
        return values
    if values and isinstance(values[0], list):
        for row, value in enumerate(values):
            if len(value) != len(values[0]):
                refuse(name, f"row {row} has {len(value)} values and row 0 has {len(values[0])}; expected rows of one "
                             "size")
        types = column.type
        while hasattr(types, "value_type"):
            types = types.value_type
        return numpy.array(values, dtype=types.to_pandas_dtype())
    return column.to_numpy(zero_copy_only=False)


def picture_of(value, name, row):
    """Decodes an image: its bytes, or a dict with \"bytes\" as `datasets` writes it."""
    from PIL import Image, UnidentifiedImageError
    content = value.get("bytes") if isinstance(value, dict) else value
    if not isinstance(content, bytes):
        refuse(name, f"row {row} has no bytes of an image; expected encoded images, lists or numbers")
    try:
        picture = Image.open(io.BytesIO(content))
        picture.load()
    except (UnidentifiedImageError, OSError) as wrong:
        refuse(name, f"row {row} cannot be decoded as an image: {wrong}")
    return picture


def parquet_rows(table, columns):
    """[N, ...] from one column, [N, F] from several, or a list of images."""
    import numpy
    if isinstance(columns, str):
        values = parquet_column(table, columns, "rows")
        if isinstance(values, list) and values and isinstance(values[0], (bytes, dict)):
            return [picture_of(value, columns, row) for row, value in enumerate(values)]
        values = as_tensor(values, columns)
        return values if values.dim() > 1 else values.to(float).reshape(-1, 1)
    arrays = [as_tensor(parquet_column(table, name, "rows"), name) for name in columns]
    for name, array in zip(columns, arrays):
        if array.dim() != 1:
            refuse(name, f"has lists, among {len(columns)} columns of rows; expected numbers, or rows=\"{name}\" alone")
    return as_tensor(numpy.stack([array.numpy().astype(numpy.float32) for array in arrays], axis=1), "rows")
