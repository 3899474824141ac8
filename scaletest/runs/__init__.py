"""The parts that all run types share: interface, registry, folder on disk, progress, stopping."""
