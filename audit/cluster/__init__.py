"""Who runs jobs: Ray, here or on a cluster; which node takes which."""
