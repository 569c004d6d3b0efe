"""Other libraries' interfaces. Nothing here is imported by ``import ocelad``."""
