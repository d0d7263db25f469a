"""One dumper process: what it is asked, how it is started and watched, what it answered."""
