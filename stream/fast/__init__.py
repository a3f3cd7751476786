"""Compiled kernels for the hot loops of the noise: the extra ``fast`` (numba). Same values, bit for bit.

The plain path in numpy stays the reference and is all that is ever needed. Nothing here changes what is
drawn: keys, digests, layouts and saved states know nothing of it; a counter may change over in its middle.
:func:`enable`, :func:`disable` and the environment variable ``TRILIFT_FAST`` (``1``, ``0``, or unset: as soon
as it pays) say when the kernels are used; :func:`status` tells whether they are.
"""

from trilift.stream.fast.switch import disable, enable, status

__all__ = ["disable", "enable", "status"]
