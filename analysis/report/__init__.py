"""The page that people read: one HTML file with everything in it."""
