"""What is asked: the matrix and its files, read and validated whole, written out to releases and cells."""
