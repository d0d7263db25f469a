"""What stands between the machine and code that somebody uploaded last night.

``python -I -S confine/__main__.py OPTION=VALUE… -- COMMAND…`` runs a command that cannot reach the network, cannot
write outside the folders it is given, cannot see other processes, and ends with all that it started. It is run by the
orchestrator's own interpreter and needs nothing but the standard library; what the system lacks is left out and told.
"""
