"""Old names of parameters and attributes. They work for two releases and raise a DeprecationWarning."""
import warnings


def warn(old, new, stacklevel=3):
    warnings.warn(f"{old} is deprecated; use {new}", DeprecationWarning, stacklevel=stacklevel)


class OldName:
    """An attribute under its old name. On a class or an object it is the value of the new name."""

    def __init__(self, new):
        self.new = new

    def __set_name__(self, owner, name):
        self.old = name

    def __get__(self, instance, owner=None):
        warn(self.old, self.new)
        return getattr(owner if instance is None else instance, self.new)


def flag(cls, new, old):
    """Returns the class attribute `new` from the nearest base class that declares it, under either name."""
    for base in cls.__mro__:
        has_old = old in vars(base) and not isinstance(vars(base)[old], OldName)
        if has_old and new in vars(base):
            raise TypeError(f"{base.__name__}: {old} is the old name of {new}; expected only one of them")
        if has_old:
            warn(f"{base.__name__}.{old}", new, stacklevel=6)  # the caller of run(), which calls host()
            return vars(base)[old]
        if new in vars(base):
            return vars(base)[new]
    raise AttributeError(f"{cls.__name__}.{new}")


def argument(new_value, default, old_value, new, old):
    """The argument `new`, or `old` if that was given instead (not None)."""
    if old_value is None:
        return new_value
    if new_value != default:
        raise TypeError(f"{old} is the old name of {new}; expected only one of them")
    warn(f"{old}=", f"{new}=", stacklevel=4)
    return old_value
