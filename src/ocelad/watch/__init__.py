"""What a tracker goes through, seen from outside: its history, alarms at changes, scores before learning."""
