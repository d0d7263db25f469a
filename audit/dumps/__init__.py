"""What releases did: the dumper's process, its bounds, its answers, and how they are kept."""
