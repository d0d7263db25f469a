"""What releases are given: layouts that were probed, banks of states, stimuli as bytes."""
