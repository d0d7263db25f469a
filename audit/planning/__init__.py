"""What has to be run: releases, cells, layouts, stimuli, and where."""
