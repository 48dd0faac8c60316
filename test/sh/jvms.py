"""The JDKs that the tests of Java run."""
import os
import shutil

from checks import *


def java_homes():
    """Of JAVAS, or Debian's. Skips the test where there is none."""
    if "JAVAS" in os.environ:
        return os.environ["JAVAS"].split()
    javac = shutil.which("javac")
    if not javac:
        skip("no javac: tools/install-deps --test installs it")
    return [os.path.dirname(os.path.dirname(os.path.realpath(javac)))]
