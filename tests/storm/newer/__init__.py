"""The next version of the storm's app: new code beside old in a deployment."""
