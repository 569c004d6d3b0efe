"""Monitoring of a tracker: its history, change alarms, predictions before learning, streaming scores."""
