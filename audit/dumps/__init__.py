"""What releases did: the stage that has it dumped, and how it is kept."""
